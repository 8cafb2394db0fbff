//! What nodes say of the viewer's service, and what it tells them.

use super::{Driver, Network};
use crate::link::{Call, Link, farewell, seek_anew};
use crate::opening::Granted;
use media::Span;
use protocol::message::Progress;
use protocol::player::{Found, Input, SourceId};
use protocol::{Message, NodeAddress, Open, Opened, Role, Visit};
use std::time::Duration;

/// How long a door may take to greet, and then to find service.
const SEEK_PATIENCE: Duration = Duration::from_millis(1_400);

impl Driver {
    pub(super) fn hear_network(&mut self, source: SourceId, message: &Message) {
        let own = self.network.open.user;
        let input = match *message {
            Message::BackupIs { user, backup, epoch } if user == own => {
                self.network.number(&backup).map(|backup| Input::BackupIs { from: source, backup, epoch })
            }
            Message::DeliveryStart { user, epoch, .. } if user == own => {
                Some(Input::DeliveryStart { source, epoch })
            }
            Message::LayerAt { user, layer, node, epoch } if user == own => {
                // The way by which we know who says so may not be its own word for it.
                let own = |node: &NodeAddress| {
                    self.network.table.get(source).is_some_and(|known| known.peer == Some(node.peer))
                };
                let itself = node.is_some_and(|node| own(&node));
                let node =
                    if itself { Some(source) } else { node.and_then(|node| self.network.number(&node)) };
                Some(Input::LayerAt { from: source, layer, node, epoch })
            }
            // Whatever else it says is none of a viewer's business.
            _ => None,
        };
        if let Some(input) = input {
            self.put(input);
        }
    }

    /// An answer to an attachment can say what was said while no connection
    /// stood: who stands behind, or that this node serves by now.
    pub(super) fn read_answer(&mut self, source: SourceId, opened: &Opened) {
        let epoch = opened.epoch;
        if !opened.sources.is_empty() && epoch > self.machine.epoch() {
            self.put(Input::DeliveryStart { source, epoch });
        }
        if let Some(backup) = opened.backup.and_then(|backup| self.network.number(&backup)) {
            self.put(Input::BackupIs { from: source, backup, epoch });
        }
    }

    /// A source has another version of the title. What it would still give by an
    /// older connection ended when a newer one took its place there.
    pub(super) fn leave_other(&mut self, source: SourceId) {
        self.network.leave(source);
        self.put(Input::OtherVersion { source });
    }

    /// A door found service; the machine takes it, or it is left at once.
    pub(super) fn take_found(&mut self, door: SourceId, granted: Granted) {
        let same = granted.opened.manifest_hash == self.manifest_hash;
        let home = self.network.number(&granted.node);
        let Some(home) = home.filter(|_| same) else {
            tokio::spawn(farewell(granted.connection, granted.opened.session));
            if let Some(source) = home {
                self.leave_other(source);
            }
            self.put(Input::NotFound { door });
            return;
        };
        let sources = self.network.table.order(&granted.opened, granted.node);
        let mut service = self.network.table.service(&granted.opened, granted.node);
        service.home = Some(home);
        let epoch = service.epoch;
        self.put(Input::Found(Found { sources, service }));
        if self.machine.home() == Some(home) && self.machine.epoch() == epoch {
            let round_trip = Span::from(granted.connection.rtt());
            let is_proxy = granted.connection.peer().role == Role::Proxy;
            self.network.settle(home, granted);
            if is_proxy {
                self.put(Input::Filters { source: home });
            }
            self.put(Input::Connected { source: home, round_trip });
        } else {
            tokio::spawn(farewell(granted.connection, granted.opened.session));
        }
    }
}

impl Network {
    fn number(&mut self, node: &NodeAddress) -> Option<SourceId> {
        self.table.number(Some(node.peer), node.address)
    }

    pub(super) fn seek(&mut self, door: SourceId, progress: Progress, former: [Option<SourceId>; 2]) {
        let Some(source) = self.table.get(door) else { return };
        let named = |source: Option<SourceId>| self.table.get(source?)?.peer;
        let former = former.into_iter().filter_map(named).collect();
        let call = Call {
            source: door,
            generation: 0,
            address: source.address,
            peer: source.peer,
            open: Open { visit: Visit::Seek(progress), former, ..self.open.clone() },
            within: SEEK_PATIENCE,
        };
        self.seeking = Some(seek_anew(self.endpoint.clone(), call, self.sender.clone()));
    }

    /// Closes the session at a source; what is said meanwhile is not heard.
    pub(super) fn leave(&mut self, source: SourceId) {
        self.dials.remove(&source);
        self.standing.remove(&source);
        if let Some(Link { connection, session, .. }) = self.links.remove(&source) {
            tokio::spawn(farewell(connection, session));
        }
    }

    pub(super) fn say(&self, source: SourceId, message: Message) {
        if let Some(link) = self.links.get(&source)
            && let Err(error) = link.connection.send(message)
        {
            tracing::debug!(source = source.0, %error, "a message was not sent");
        }
    }
}
