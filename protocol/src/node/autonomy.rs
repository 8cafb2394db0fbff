//! The autonomous part of a node (Liu, Tsuda, Lu, Mori: ADVODS and its node
//! allocation technology ANAT), as a pure machine: who stores what, who serves
//! whom, who stands behind whom, and what happens when a node dies.
//!
//! One input, drain the outputs, then wait. Agents are messages; a node handles
//! each one alone and knows only its neighbours.

pub mod agent;
pub mod config;
pub mod io;
pub mod record;
pub mod reservation;

pub use agent::{
    AdmissionRefusal, AgentMessage, DiscoveryKind, EntryKind, LayerOrder, Level, PlacementOrder, SearchId,
    Sla, UserId,
};
pub use config::{AutonomyConfig, Moves, Policy};
pub use io::{
    AutonomyEvent, AutonomyInput, AutonomyOutput, Bound, RejectedWhy, SearchWhy, StopWhy, UserRequest,
    ViewerNotice,
};

use crate::peer::PeerId;
use media::{Layer, Time, TitleName};
use record::{Record, Records};
use reservation::{Reservations, Row};
use std::collections::VecDeque;

/// The autonomous part of one node.
#[derive(Clone, Debug)]
pub struct Autonomy {
    id: PeerId,
    level: Level,
    config: AutonomyConfig,
    records: Records,
    reservations: Reservations,
    outputs: VecDeque<AutonomyOutput>,
}

impl Autonomy {
    /// A node that knows nobody yet. `seed` decides when in a period it sends
    /// its survival signals.
    pub fn new(_now: Time, id: PeerId, level: Level, config: AutonomyConfig, _seed: u64) -> Self {
        Self {
            id,
            level,
            config,
            records: Records::default(),
            reservations: Reservations::default(),
            outputs: VecDeque::new(),
        }
    }

    /// The only way in.
    pub fn handle_input(&mut self, _now: Time, _input: AutonomyInput) {}

    /// Drain this to nothing after every input.
    pub fn poll_output(&mut self) -> Option<AutonomyOutput> {
        self.outputs.pop_front()
    }

    /// When to come back with [`AutonomyInput::Timeout`].
    pub fn poll_timeout(&self) -> Option<Time> {
        None
    }

    /// The node's name.
    pub fn id(&self) -> PeerId {
        self.id
    }

    /// The node's level.
    pub fn level(&self) -> Level {
        self.level
    }

    /// The settings.
    pub fn config(&self) -> &AutonomyConfig {
        &self.config
    }

    /// Slots in use: `|vip| + |normal| + |vipdual|`, tentative ones included,
    /// and enhancements served.
    pub fn used(&self) -> u32 {
        self.records.vip() + self.records.normal() + self.reservations.slots()
    }

    /// `C - used`.
    pub fn free(&self) -> u32 {
        self.config.capacity.saturating_sub(self.used())
    }

    /// What an activated normal can claim: `C - |vip| - |normal|`.
    pub fn headroom(&self) -> u32 {
        self.config.capacity.saturating_sub(self.records.vip() + self.records.normal())
    }

    /// The users served here, by number.
    pub fn records(&self) -> impl Iterator<Item = &Record> {
        self.records.iter()
    }

    /// The record of one user.
    pub fn record(&self, user: UserId) -> Option<&Record> {
        self.records.get(user)
    }

    /// The official reservations here, by user.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.reservations.rows()
    }

    /// The reservation of one user.
    pub fn row(&self, user: UserId) -> Option<&Row> {
        self.reservations.get(user)
    }

    /// Tentative rows, by search.
    pub fn tentative(&self) -> impl Iterator<Item = (&SearchId, &reservation::Tentative)> {
        self.reservations.tentative_rows()
    }

    /// The number of entries of a kind; tentative rows do not count.
    pub fn users(&self, kind: EntryKind) -> usize {
        match kind {
            EntryKind::Vip | EntryKind::Normal => self.records().filter(|record| record.kind == kind).count(),
            EntryKind::VipDual | EntryKind::NormalDual => self.rows().filter(|row| row.kind == kind).count(),
        }
    }

    /// The enhancements served here: user, layer, and the Base node.
    pub fn streams(&self) -> impl Iterator<Item = (UserId, Layer, PeerId)> {
        std::iter::empty()
    }

    /// Nodes thought dead, by name.
    pub fn believed_dead(&self) -> impl Iterator<Item = PeerId> {
        std::iter::empty()
    }

    /// Notes of other nodes on this node's board that are still valid.
    pub fn board_notes(&self) -> usize {
        0
    }

    /// Searches that passed here and are not answered yet.
    pub fn open_searches(&self) -> usize {
        0
    }

    /// Whether a layer of a title is stored here, whole.
    pub fn stores(&self, _title: &TitleName, layer: Layer) -> bool {
        self.level == Level::Origin || (self.config.assume_stored && self.level == Level::Layer(layer))
    }
}
