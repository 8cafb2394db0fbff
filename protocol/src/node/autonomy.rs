//! The autonomous part of a node (Liu, Tsuda, Lu, Mori: ADVODS and its node
//! allocation technology ANAT), as a pure machine: who stores what, who serves
//! whom, who stands behind whom, and what happens when a node dies.
//!
//! One input, drain the outputs, then wait. Agents are messages; a node handles
//! each one alone and knows only its neighbours. Each idea has a file; this one
//! says who is asked when.

pub mod admission;
pub mod agent;
pub mod board;
pub mod config;
mod discovery;
mod holding;
pub mod io;
mod keeping;
pub mod ledger;
mod placement;
mod quest;
pub mod record;
pub mod reservation;
pub mod route;
mod search;
mod standings;
mod streams;
pub mod survival;
mod takeover;
pub mod talk;
mod triggers;

pub use agent::{DiscoveryKind, EntryKind, LayerOrder, Level, PlacementOrder, SearchId, Sla, UserId};
pub use config::{AutonomyConfig, Moves, Policy};
pub use io::{
    AutonomyEvent, AutonomyInput, AutonomyOutput, Bound, RejectedWhy, SearchWhy, StopWhy, UserRequest,
    ViewerNotice,
};
pub use talk::{AdmissionRefusal, AgentMessage};

use crate::node::classes::{Grants, Moved};
use crate::peer::PeerId;
use board::Board;
use holding::Store;
use ledger::Ledger;
use media::{Hash, Layer, Span, Time, TitleName};
use placement::Pushes;
use quest::Quest;
use record::{Record, Records};
use reservation::{Reservations, Row};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use streams::Streams;
use survival::Survival;

/// The autonomous part of one node.
#[derive(Clone, Debug)]
pub struct Autonomy {
    id: PeerId,
    level: Level,
    config: AutonomyConfig,
    born: Time,
    now: Time,
    survival: Survival,
    records: Records,
    reservations: Reservations,
    streams: Streams,
    grants: Grants,
    /// Of which state of records and streams the grants were settled.
    settled: (u64, u64),
    board: Board,
    walks: discovery::Walks,
    quests: BTreeMap<UserId, Quest>,
    /// Counts the searches that began here.
    serial: u32,
    /// Backup nodes thought dead, and whom they had stood behind.
    former: BTreeSet<(PeerId, UserId)>,
    store: Store,
    ledger: Ledger,
    pushes: Pushes,
    /// When layers that nobody could serve are looked for again.
    layers_again: Option<Time>,
    /// Whether it has said good-bye: it says no more then.
    left: bool,
    outputs: VecDeque<AutonomyOutput>,
}

impl Autonomy {
    /// A node that knows nobody yet. `seed` decides when in a period it sends
    /// its survival signals, and with its upper half from where it counts its
    /// searches and pushes: those of an earlier life must not be taken for them.
    pub fn new(now: Time, id: PeerId, level: Level, config: AutonomyConfig, seed: u64) -> Self {
        let bounds = (config.max_neighbours, config.max_nodes);
        let count_from = u32::try_from(seed >> 32).unwrap_or(0);
        Self {
            id,
            level,
            config,
            born: now,
            now,
            survival: Survival::new(now, config.signal_every, config.dead_after, bounds, seed),
            records: Records::default(),
            reservations: Reservations::default(),
            streams: Streams::default(),
            grants: Grants::new(config.class_limits(), config.vip_exempt, config.origin_hold),
            settled: (0, 0),
            board: Board::default(),
            walks: discovery::Walks::default(),
            quests: BTreeMap::new(),
            serial: count_from,
            former: BTreeSet::new(),
            store: Store::default(),
            ledger: Ledger::default(),
            pushes: Pushes::counting_from(count_from),
            layers_again: None,
            left: false,
            outputs: VecDeque::new(),
        }
    }

    /// The only way in.
    pub fn handle_input(&mut self, now: Time, input: AutonomyInput) {
        let now = now.max(self.now);
        self.now = now;
        if let Some(span) = self.survival.wake(now) {
            self.event(AutonomyEvent::Slept { span });
        }
        match input {
            AutonomyInput::NeighbourIs { peer, level, travel } => self.neighbour(now, peer, level, travel),
            AutonomyInput::NeighbourGone { peer } => {
                self.survival.unlink(peer);
                self.board.forget(peer);
                self.walks_without(now, peer);
            }
            AutonomyInput::Signals(on) => self.survival.switch(now, on),
            AutonomyInput::Joined => {
                self.somebody_joined(now);
                self.missing_layers_again(now);
                self.look_again(now);
            }
            AutonomyInput::Restarted { peer } => self.restarted(now, peer),
            AutonomyInput::Leave => self.leave(now),
            AutonomyInput::Attached { user } => self.viewer_attached(now, user),
            AutonomyInput::Heard { from, message, travel } => {
                self.sign_of_life(now, from);
                self.hear(now, from, message, travel);
            }
            AutonomyInput::Arrive { request } => self.viewer_arrives(now, request),
            AutonomyInput::Position { user, position, buffer } => self.viewer_at(now, user, position, buffer),
            AutonomyInput::StillServed { user } => self.still_served(now, user),
            AutonomyInput::Depart { user } => self.end_user(user, StopWhy::Departed),
            AutonomyInput::Publish(order) => self.publish(now, order),
            AutonomyInput::Unpublish { title } => self.unpublish(&title),
            AutonomyInput::Stored { title, layer, size, version } => {
                self.layer_stored(title, layer, size, version);
            }
            AutonomyInput::Lost { title, layer } => self.copy_lost(title, layer),
            AutonomyInput::Titles(titles) => {
                let evicted = self.grants.describe(titles);
                self.evict(evicted);
            }
            AutonomyInput::Timeout => self.timeout(now),
        }
        self.settle_grants();
    }

    /// What deliveries have taken comes back when they are over.
    fn settle_grants(&mut self) {
        let state = (self.records.changes(), self.streams.changes());
        if std::mem::replace(&mut self.settled, state) == state {
            return;
        }
        let (records, streams) = (&self.records, &self.streams);
        let served = |(user, layer): (UserId, Layer)| match layer {
            Layer::BASE => records.get(user).is_some(),
            above => streams.contains(user, above),
        };
        let users = records.iter().map(|record| (record.info.user, &record.info.title, record.info.sla));
        self.grants.settle(served, users);
    }

    /// What deliveries have taken of what there is, and who was refused.
    pub fn grants(&self) -> &Grants {
        &self.grants
    }

    /// Drain this to nothing after every input.
    pub fn poll_output(&mut self) -> Option<AutonomyOutput> {
        self.outputs.pop_front()
    }

    /// When to come back with [`AutonomyInput::Timeout`].
    pub fn poll_timeout(&self) -> Option<Time> {
        let lease = self.config.lease.and_then(|lease| {
            let heard = self.records.iter().map(|record| record.heard);
            heard.chain(self.reservations.rows().map(|row| row.heard)).min().map(|heard| heard + lease)
        });
        [
            self.survival.next(),
            self.walks.next(),
            self.reservations.next_lapse(),
            self.quests_next(),
            self.streams.next(),
            self.pushes.next(),
            self.layers_again,
            lease,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn timeout(&mut self, now: Time) {
        if self.survival.signal_due(now) {
            self.beat();
        }
        self.silences_due(now);
        self.walks_due(now);
        self.reservations.lapse(now, None);
        self.quests_due(now);
        self.leases_due(now);
        self.streams_due(now);
        self.pushes_due(now);
        self.layers_due(now);
    }

    fn neighbour(&mut self, now: Time, peer: PeerId, level: Level, travel: Span) {
        let new = self.survival.neighbour(peer).is_none();
        if !self.survival.link(now, peer, level, travel) {
            return self.event(AutonomyEvent::BoundReached { what: Bound::Neighbours });
        }
        if new {
            // Whoever begins anew hears at once who is dead.
            self.send(peer, AgentMessage::Digest(self.digest()));
            self.holder_returned(now);
        }
    }

    fn hear(&mut self, now: Time, from: PeerId, message: AgentMessage, travel: Span) {
        match message {
            AgentMessage::Signal => {}
            AgentMessage::FailureDetected(said) => self.hear_failure(now, from, said),
            AgentMessage::Returned(said) => self.hear_returned(now, from, said),
            AgentMessage::Placement(agent) => self.hear_placement(from, agent),
            AgentMessage::Placed { title, layer, answer, version } => {
                self.hear_placed(from, (&title, layer, version), answer);
            }
            AgentMessage::Take { title, layer, .. } => self.hear_take(from, title, layer),
            AgentMessage::Search(agent) => self.hear_search(now, from, *agent),
            AgentMessage::Granted { user, layer, node, epoch } => {
                self.hear_granted(now, from, (user, layer), node, epoch);
            }
            AgentMessage::NotGranted { user, layer, why } => self.hear_not_granted(now, user, layer, why),
            AgentMessage::Adopt { user, layer, base, epoch } => {
                self.hear_adopt((user, layer), base, epoch);
            }
            AgentMessage::NotDelivered { user, layer } => self.hear_not_delivered(now, from, user, layer),
            AgentMessage::ReleaseLayer { user, layer, epoch } => {
                self.release_layers(from, user, Some(layer), epoch);
            }
            AgentMessage::Release { user, epoch } => self.hear_release(from, user, epoch),
            AgentMessage::Discovery(agent) => self.hear_agent(now, from, agent, travel),
            AgentMessage::Cancel(search) => {
                self.reservations.cancel(search);
            }
            AgentMessage::Confirm { search, kind, info } => self.hear_confirm(now, from, search, kind, *info),
            AgentMessage::Confirmed(search) => self.hear_confirmed(now, from, search),
            AgentMessage::Denied { search, why } => self.hear_denied(now, from, search, Some(why)),
            AgentMessage::Relocate { user, at_once } => self.hear_relocate(now, from, user, at_once),
            AgentMessage::Relocated { user, to } => self.hear_relocated(from, user, to),
            AgentMessage::SearchAgain(user) => self.hear_search_again(now, from, user),
            news @ AgentMessage::Position { .. } => self.hear_position(now, from, news),
            AgentMessage::TookOver { user, epoch } => self.hear_took_over(user, epoch),
            AgentMessage::Digest(digest) => self.hear_digest(from, digest),
            AgentMessage::Standings(some) => self.hear_standings(now, from, &some),
            AgentMessage::Editions(some) => self.hear_editions(from, &some),
        }
    }

    fn output(&mut self, output: AutonomyOutput) {
        self.outputs.push_back(output);
    }

    fn event(&mut self, event: AutonomyEvent) {
        self.output(AutonomyOutput::Event(event));
    }

    fn send(&mut self, to: PeerId, message: AgentMessage) {
        if self.left {
            return;
        }
        self.output(AutonomyOutput::Send { to, message });
    }

    /// A message to whoever it is for, should that be this node.
    fn send_or_hear(&mut self, to: PeerId, message: AgentMessage) {
        if to == self.id {
            self.hear(self.now, to, message, Span::ZERO);
        } else {
            self.send(to, message);
        }
    }

    fn capacity(&self) -> u32 {
        if self.level == Level::Origin { self.config.origin_capacity } else { self.config.capacity }
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
        let streams = u32::try_from(self.streams.len()).unwrap_or(u32::MAX);
        let used = self.records.vip().saturating_add(self.records.normal());
        used.saturating_add(self.reservations.slots()).saturating_add(streams)
    }

    /// `C - used`.
    pub fn free(&self) -> u32 {
        self.capacity().saturating_sub(self.used())
    }

    /// What an activated normal can claim: `C - |vip| - |normal|`.
    pub fn headroom(&self) -> u32 {
        self.capacity().saturating_sub(self.records.vip().saturating_add(self.records.normal()))
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
        self.streams.iter()
    }

    /// Nodes thought dead, by name.
    pub fn believed_dead(&self) -> impl Iterator<Item = PeerId> {
        self.survival.dead()
    }

    /// Whether a node is thought dead.
    pub fn thinks_dead(&self, node: PeerId) -> bool {
        self.survival.is_dead(node)
    }

    /// The nodes linked with this one, dead or alive, by name.
    pub fn neighbours(&self) -> impl Iterator<Item = (PeerId, &survival::Neighbour)> {
        self.survival.everybody().filter_map(|peer| Some((peer, self.survival.neighbour(peer)?)))
    }

    /// Whether a layer of what the user watches is served from here, or held
    /// ready with a slot of its own.
    pub fn serves(&self, user: UserId, layer: Layer) -> bool {
        if layer > Layer::BASE {
            return self.streams.contains(user, layer);
        }
        let standby = || self.row(user).is_some_and(|row| row.kind == EntryKind::VipDual);
        self.record(user).is_some() || standby()
    }

    /// Whether the user has anything to do with this node.
    pub fn knows(&self, user: UserId) -> bool {
        self.record(user).is_some() || self.row(user).is_some() || self.streams.any(user)
    }

    /// Notes of other nodes on this node's board that are still valid.
    pub fn board_notes(&self) -> usize {
        self.board.notes(self.now)
    }

    /// Searches that passed here and are not answered yet.
    pub fn open_searches(&self) -> usize {
        self.walks.open()
    }

    /// Users of this node for whom a backup is being searched.
    pub fn searching(&self) -> usize {
        self.quests.len()
    }

    /// Whether a layer of a title is stored here, whole.
    pub fn stores(&self, title: &TitleName, layer: Layer) -> bool {
        let of_level = self.level == Level::Origin || self.level == Level::Layer(layer);
        let placed = of_level && (self.config.assume_stored || self.store.has(title, layer));
        placed || self.archives(title)
    }

    /// Whether a title that was not placed here is in this node's store, or can be
    /// copied there: all of its layers, since it lies nowhere else out here.
    pub fn archives(&self, title: &TitleName) -> bool {
        self.level == Level::BASE && self.grants.archives(title)
    }

    /// Which version of a title the network carries, as far as is known here; of
    /// one that was withdrawn none.
    pub fn edition(&self, title: &TitleName) -> Option<Option<Hash>> {
        self.ledger.get(title).map(|last| last.version)
    }

    fn evict(&mut self, titles: Vec<TitleName>) {
        for title in titles {
            self.output(AutonomyOutput::Evict { title });
        }
    }

    /// What letting somebody in means for the store.
    fn moved(&mut self, title: &TitleName, moved: Moved) {
        self.evict(moved.evicted);
        if moved.copy {
            self.output(AutonomyOutput::Copy { title: title.clone() });
        }
    }
}

#[cfg(test)]
mod tests;
