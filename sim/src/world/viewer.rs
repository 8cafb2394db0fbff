//! A viewer as the world sees it: who it thinks serves it, and how long it got
//! nothing.

use crate::topology::SiteId;
use crate::workload::Arrival;
use media::{Layer, Quality, Time};

/// A time in which a viewer got no data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// When its node was lost.
    pub lost_at: Time,
    /// The node.
    pub lost: SiteId,
    /// When data came again, and from whom.
    pub resumed: Option<(Time, SiteId)>,
    /// Whether it had to pull again to get there.
    pub pulled: bool,
}

/// What a viewer comes for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish {
    /// Which of the titles of its world.
    pub title: usize,
    /// The best quality wanted.
    pub quality: Quality,
}

/// A viewer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Viewer {
    /// When it came, with which contract.
    pub arrival: Arrival,
    /// What for.
    pub wish: Wish,
    /// Whether it has come.
    pub come: bool,
    /// Whether it is done.
    pub gone: bool,
    /// The node from which it takes Base.
    pub primary: Option<SiteId>,
    /// The highest epoch it has heard of.
    pub epoch: u64,
    /// Who is to take over.
    pub backup: Option<SiteId>,
    /// Whether nobody would serve it.
    pub refused: bool,
    /// The last times without data, oldest first; at most 16.
    pub outages: Vec<Outage>,
    /// Every node that sends it Base now, by the world's own knowledge, with
    /// the time at which it began.
    pub senders: Vec<(SiteId, Time)>,
    /// Every node that sends it a layer above Base now, likewise.
    pub enhanced: Vec<(Layer, SiteId)>,
    /// When it last asked to be served.
    pub asked_at: Time,
}

/// The most outages remembered of one viewer.
pub(super) const MAX_OUTAGES: usize = 16;

impl Viewer {
    pub(super) fn new(arrival: Arrival, wish: Wish) -> Self {
        Self {
            arrival,
            wish,
            come: false,
            gone: false,
            primary: None,
            epoch: 0,
            backup: None,
            refused: false,
            outages: Vec::new(),
            senders: Vec::new(),
            enhanced: Vec::new(),
            asked_at: Time::ZERO,
        }
    }

    /// The outage that has not ended.
    pub fn outage(&self) -> Option<&Outage> {
        self.outages.last().filter(|outage| outage.resumed.is_none())
    }

    /// Whether somebody sends it this layer now.
    pub fn gets(&self, layer: Layer) -> bool {
        match layer {
            Layer::BASE => !self.senders.is_empty(),
            above => self.enhanced.iter().any(|(layer, _)| *layer == above),
        }
    }

    pub(super) fn lose(&mut self, at: Time, lost: SiteId) {
        if self.outage().is_none() {
            if self.outages.len() >= MAX_OUTAGES {
                self.outages.remove(0);
            }
            self.outages.push(Outage { lost_at: at, lost, resumed: None, pulled: false });
        }
    }

    pub(super) fn resume(&mut self, at: Time, from: SiteId) {
        if let Some(outage) = self.outages.last_mut().filter(|outage| outage.resumed.is_none()) {
            outage.resumed = Some((at, from));
        }
    }
}
