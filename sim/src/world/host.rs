//! A node as the world sees it: its machine, and whether it is alive.

use crate::topology::SiteId;
use media::{Span, Time};
use protocol::node::autonomy::{AgentMessage, Autonomy};
use std::collections::VecDeque;

/// What waits for a node that stands still.
pub(super) type Backlog = VecDeque<(SiteId, AgentMessage, Span)>;

/// Whether a node is alive.
#[derive(Clone, Debug, Default)]
pub enum HostState {
    /// It works.
    #[default]
    Up,
    /// It stands still, and messages pile up; the last ones, since a socket's
    /// buffer is not endless either.
    Hung(VecDeque<(SiteId, AgentMessage, Span)>),
    /// It is gone.
    Down,
}

/// The most messages that wait for a node that stands still.
pub(super) const MAX_BACKLOG: usize = 10_000;

/// A node.
#[derive(Clone, Debug)]
pub struct Host {
    pub(super) machine: Option<Autonomy>,
    pub(super) state: HostState,
    pub(super) wake: Option<Time>,
    pub(super) life: u32,
}

impl Host {
    pub(super) fn new(machine: Option<Autonomy>) -> Self {
        Self { machine, state: HostState::Up, wake: None, life: 0 }
    }

    /// Whether it works.
    pub fn is_up(&self) -> bool {
        matches!(self.state, HostState::Up)
    }

    /// Its machine; that of a dead node is gone.
    pub fn machine(&self) -> Option<&Autonomy> {
        self.machine.as_ref()
    }

    /// How often it has been revived.
    pub const fn life(&self) -> u32 {
        self.life
    }
}
