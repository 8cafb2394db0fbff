//! What nodes say to a viewer.

use super::call::number;
use super::net::Net;
use media::Layer;
use protocol::player::{Input, SourceId};
use protocol::{LinkId, Message, Opened};

impl Net {
    pub(super) fn hear(&mut self, viewer: usize, link: LinkId, message: &Message) {
        let Some(seat) = self.seats.get_mut(viewer) else { return };
        let found = seat.wires.iter_mut().find(|(_, wire)| wire.link == link);
        let Some(source) = found.map(|(source, wire)| {
            wire.heard = true;
            *source
        }) else {
            return;
        };
        let own = seat.open.user;
        let input = match *message {
            Message::Alive(number) => Some(Input::Alive { source, number }),
            Message::Draining => Some(Input::Draining { source }),
            Message::BackupIs { user, backup, epoch } if user == own => {
                let backup = number(&mut seat.table, &backup);
                Some(Input::BackupIs { from: source, backup, epoch })
            }
            Message::DeliveryStart { user, epoch, .. } if user == own => {
                Some(Input::DeliveryStart { source, epoch })
            }
            Message::LayerAt { user, layer, node, epoch } if user == own && layer > Layer::BASE => {
                let node = node.map(|node| number(&mut seat.table, &node));
                Some(Input::LayerAt { from: source, layer, node, epoch })
            }
            _ => None,
        };
        self.listen(viewer);
        if let Some(input) = input {
            self.tell_viewer(viewer, input);
        }
    }

    /// An answer to an attachment can say what was said while no connection stood.
    pub(super) fn read_answer(&mut self, viewer: usize, source: SourceId, opened: &Opened) {
        let epoch = opened.epoch;
        let Some(seat) = self.seats.get_mut(viewer) else { return };
        let known = seat.machine.as_ref().map_or(u64::MAX, protocol::player::Player::epoch);
        if !opened.sources.is_empty() && epoch > known {
            self.tell_viewer(viewer, Input::DeliveryStart { source, epoch });
        }
        let Some(seat) = self.seats.get_mut(viewer) else { return };
        if let Some(backup) = opened.backup.map(|backup| number(&mut seat.table, &backup)) {
            self.tell_viewer(viewer, Input::BackupIs { from: source, backup, epoch });
        }
    }
}
