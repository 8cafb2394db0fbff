//! The requests that are open, each for one chunk at one source.

use crate::player::io::{RequestId, SourceId};
use media::{Layer, Time};
use std::collections::BTreeMap;

/// One open request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpenRequest {
    pub(crate) block: u32,
    pub(crate) layer: Layer,
    pub(crate) source: SourceId,
    pub(crate) asked: Time,
    /// Whether it doubles another one whose source is quiet.
    pub(crate) hedge: bool,
}

/// All open requests, bounded by the windows of the config.
#[derive(Clone, Debug, Default)]
pub(crate) struct Requests {
    open: BTreeMap<RequestId, OpenRequest>,
    next: u64,
}

impl Requests {
    pub(crate) fn add(&mut self, request: OpenRequest) -> RequestId {
        let id = RequestId(self.next);
        self.next = self.next.saturating_add(1);
        self.open.insert(id, request);
        id
    }

    pub(crate) fn remove(&mut self, id: RequestId) -> Option<OpenRequest> {
        self.open.remove(&id)
    }

    pub(crate) fn get(&self, id: RequestId) -> Option<&OpenRequest> {
        self.open.get(&id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (RequestId, &OpenRequest)> {
        self.open.iter().map(|(id, request)| (*id, request))
    }

    /// The names of those that `choose` picks, oldest first.
    pub(crate) fn picked(&self, choose: impl Fn(&OpenRequest) -> bool) -> Vec<RequestId> {
        self.iter().filter(|(_, request)| choose(request)).map(|(id, _)| id).collect()
    }

    /// How many `choose` picks.
    pub(crate) fn count(&self, choose: impl Fn(&OpenRequest) -> bool) -> usize {
        self.open.values().filter(|request| choose(request)).count()
    }

    /// A request that asks for this chunk.
    pub(crate) fn other(&self, block: u32, layer: Layer) -> Option<RequestId> {
        self.iter().find(|(_, r)| r.block == block && r.layer == layer).map(|(id, _)| id)
    }

    /// A doubled request that is alone now is no double any more.
    pub(crate) fn promote(&mut self, id: RequestId) {
        if let Some(request) = self.open.get_mut(&id) {
            request.hedge = false;
        }
    }
}
