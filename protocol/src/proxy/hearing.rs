//! What nodes upstream say of the clients' service, and what becomes of it: who
//! backs up, who takes over, where layers are, and what a search found.

use super::io::{Event, Output};
use super::lines::NodeId;
use super::users::{Search, Seat, User};
use super::{Proxy, Upstream};
use crate::message::{LayerSources, MAX_SOURCES, Message, NodeAddress, Opened, Refusal};
use crate::node::autonomy::UserId;
use crate::peer::PeerId;
use crate::service::Word;
use media::{Layer, Span, Time};
use std::net::SocketAddr;

/// How often a Base node that does not know a user yet is asked in one search.
const MOST_TRIES: u32 = 5;

impl Proxy {
    /// Something a node said on its control stream.
    pub(super) fn hear_upstream(&mut self, now: Time, address: SocketAddr, message: Message) {
        let Some(node) = self.lines.find(address) else { return };
        self.heard_upstream(now, node);
        self.changed = true;
        match message {
            Message::Opened(opened) => self.opened_upstream(now, node, &opened),
            Message::Refused { request, why } => self.refused_upstream(now, node, request, why),
            Message::Elsewhere { request, base, .. } => self.sent_on(now, node, request, base),
            Message::Alive(number) => self.lines.alive(now, node, number),
            Message::Draining => {
                self.lines.draining(node);
                self.mark_users_of(node);
                self.peer_lost(now, node);
            }
            Message::Reply(reply) => self.replied(now, node, reply),
            Message::BackupIs { user, backup, epoch } => {
                if let Some(backup) = self.lines.number(now, backup.into()) {
                    self.hear_word(now, user, node, Word::Backup(backup, epoch));
                }
            }
            Message::LayerAt { user, layer, node: at, epoch } => {
                let at = at.and_then(|at| self.lines.number(now, at.into()));
                self.hear_word(now, user, node, Word::Layer(layer, at, epoch));
            }
            Message::DeliveryStart { user, epoch, .. } => self.hear_delivery(now, user, node, epoch),
            // Whatever else it says is none of a proxy's business.
            Message::Hello(_)
            | Message::ListTitles
            | Message::Titles(_)
            | Message::Open(_)
            | Message::Close(_)
            | Message::Probe(_)
            | Message::Agent(_)
            | Message::StillServed { .. }
            | Message::Contacts(_)
            | Message::Position { .. }
            | Message::Publish { .. }
            | Message::Unpublish { .. }
            | Message::Done { .. }
            | Message::AskStatus
            | Message::Status(_)
            | Message::Neighbour(_)
            | Message::Query(_)
            | Message::ProxyStatus(_) => {}
        }
    }

    /// Something came from a node: it is there.
    pub(super) fn heard_upstream(&mut self, now: Time, node: NodeId) {
        self.agenda.mark_doubts();
        if self.lines.heard(now, node) {
            self.peer_found(now, node);
            self.mark_users_of(node);
        }
    }

    fn hear_delivery(&mut self, now: Time, id: UserId, node: NodeId, epoch: u64) {
        let Some(user) = self.users.get(&id) else { return };
        self.agenda.mark(id);
        let mut standing = user.standing.clone();
        let delivery = standing.hear_delivery(now, node, epoch, |home| self.look_at(home));
        if let Some(user) = self.users.get_mut(&id) {
            user.standing = standing;
        }
        self.deliver(now, id, delivery);
    }

    pub(super) fn hear_word(&mut self, now: Time, id: UserId, from: NodeId, word: Word<NodeId>) {
        let Some(user) = self.users.get_mut(&id) else { return };
        self.agenda.mark(id);
        let (Word::Backup(_, epoch) | Word::Layer(_, _, epoch)) = word;
        let before = user.standing.epoch();
        if user.standing.postpone(from, word) || !user.standing.is_from_home(from, epoch) {
            return;
        }
        match word {
            Word::Backup(backup, _) => self.set_backup(id, Some(backup)),
            Word::Layer(Layer::BASE, Some(node), _) if node != from => self.move_home(now, id, node, epoch),
            Word::Layer(Layer::BASE, Some(_), _) => {}
            // It will not serve any longer, and nobody else does yet.
            Word::Layer(Layer::BASE, None, _) => {
                if let Some(base) = user.layers.first_mut() {
                    base.clear();
                }
            }
            Word::Layer(layer, node, _) => {
                if let Some(order) = user.layers.get_mut(layer.index()) {
                    *order = node.into_iter().collect();
                }
                if let Some(Seat::Held { stands_by, .. }) = node.and_then(|node| user.seats.get_mut(&node)) {
                    *stands_by = None;
                }
                self.leave_seats(id);
            }
        }
        if epoch > before {
            self.tell_epoch(id);
        }
    }

    fn set_backup(&mut self, id: UserId, backup: Option<NodeId>) {
        let Some(user) = self.users.get_mut(&id) else { return };
        if user.standing.set_backup(backup).is_none() {
            return;
        }
        self.leave_seats(id);
        if let Some(node) = backup.and_then(|node| self.lines.at(node)) {
            self.event(Event::BackupKnown { user: id, node });
        }
    }

    fn opened_upstream(&mut self, now: Time, node: NodeId, opened: &Opened) {
        let awaited = self.awaited.remove(&opened.request).filter(|(_, asked)| *asked == node);
        let user = awaited.and_then(|(id, _)| Some((id, self.users.get_mut(&id)?)));
        let Some((id, user)) = user else {
            // Nobody waits for it any more.
            return self.say(node, Message::Close(opened.session));
        };
        self.agenda.mark(id);
        let sought = user.search.is_some_and(|search| search.request == Some(opened.request));
        user.seats.insert(node, Seat::Held { session: opened.session, stands_by: None });
        if sought {
            return self.take_found(now, id, node, opened);
        }
        // It can say what was said while no connection stood.
        if !opened.sources.is_empty() && opened.epoch > user.standing.epoch() {
            self.hear_delivery(now, id, node, opened.epoch);
        }
        if let Some(backup) = opened.backup.and_then(|backup| self.lines.number(now, backup.into())) {
            self.hear_word(now, id, node, Word::Backup(backup, opened.epoch));
        }
        self.leave_seats(id);
    }

    /// Service was found: the client has its nodes.
    fn take_found(&mut self, now: Time, id: UserId, home: NodeId, opened: &Opened) {
        let Some(user) = self.users.get(&id) else { return };
        let (patience, served) = (self.patience(user), self.is_served(user));
        if opened.sources.is_empty() || !user.standing.takes(opened.epoch, served) {
            self.search_failed(now, id, None);
            return self.leave_seats(id);
        }
        let layers = Layer::first(opened.quality.layers());
        let layers: Vec<Vec<NodeId>> =
            layers.map(|layer| self.told(now, home, layer, &opened.sources)).collect();
        let backup = opened.backup.and_then(|backup| self.lines.number(now, backup.into()));
        let doors = opened.doors.iter().take(MAX_SOURCES);
        let doors: Vec<NodeId> = doors.filter_map(|door| self.lines.number(now, (*door).into())).collect();
        let Some(user) = self.users.get_mut(&id) else { return };
        user.search = None;
        user.refusal = None;
        user.doors.found(now, &patience);
        user.doors.served();
        user.doors.know(doors);
        user.quality = user.quality.min(opened.quality);
        user.filter.set_wish(user.quality);
        user.layers = layers;
        self.move_home(now, id, home, opened.epoch);
        self.order_base(now, id, home, &opened.sources);
        self.set_backup(id, backup);
        self.answer(now, id);
    }

    /// Who was told to serve a layer; of which nothing was told, who told.
    fn told(&mut self, now: Time, home: NodeId, layer: Layer, sources: &[LayerSources]) -> Vec<NodeId> {
        let Some(told) = sources.iter().find(|told| told.layer == layer) else { return vec![home] };
        let nodes = told.nodes.iter().take(MAX_SOURCES);
        nodes.filter_map(|node| self.lines.number(now, Upstream::from(*node))).collect()
    }

    /// The others that were told for Base stand behind who told.
    fn order_base(&mut self, now: Time, id: UserId, home: NodeId, sources: &[LayerSources]) {
        let mut others = self.told(now, home, Layer::BASE, sources);
        others.retain(|node| *node != home);
        if let Some(base) = self.users.get_mut(&id).and_then(|user| user.layers.first_mut()) {
            *base = [home].into_iter().chain(others).collect();
        }
    }

    fn sent_on(&mut self, now: Time, node: NodeId, request: u32, base: NodeAddress) {
        let Some((id, _)) = self.awaited.remove(&request).filter(|(_, asked)| *asked == node) else { return };
        let base = self.lines.number(now, base.into());
        self.agenda.mark(id);
        let Some(user) = self.users.get_mut(&id) else { return };
        let Some(search) = user.search.filter(|search| search.request == Some(request)) else { return };
        match base {
            Some(base) => user.search = Some(Search { base: Some(base), request: None, ..search }),
            None => self.search_failed(now, id, None),
        }
    }

    fn refused_upstream(&mut self, now: Time, node: NodeId, request: u32, why: Refusal) {
        let Some((id, _)) = self.awaited.remove(&request).filter(|(_, asked)| *asked == node) else { return };
        let again = now + self.config.ask_again;
        self.agenda.mark(id);
        let Some(user) = self.users.get_mut(&id) else { return };
        match user.search {
            Some(search) if search.request == Some(request) => {
                let patient =
                    search.base.is_some() && why == Refusal::NotServing && search.tries < MOST_TRIES;
                if patient {
                    let tries = search.tries.saturating_add(1);
                    user.search = Some(Search { request: None, tries, again: Some(again), ..search });
                } else {
                    self.search_failed(now, id, Some(why));
                }
            }
            Some(_) | None => {
                let until = if why == Refusal::NotServing { again } else { now + self.config.redial_every };
                user.seats.insert(node, Seat::Waits(until));
            }
        }
    }

    /// A connection to a node stands.
    pub(super) fn reached(&mut self, now: Time, address: SocketAddr, peer: PeerId, round_trip: Span) {
        let Some(node) = self.lines.find(address) else { return };
        // Whatever was said by an older one is forgotten there.
        self.forget_seats(node);
        self.lines.up(now, node, peer, round_trip);
        self.peer_found(now, node);
        self.mark_users_of(node);
    }

    /// A connection is over, or could not be made.
    pub(super) fn unreached(&mut self, now: Time, address: SocketAddr) {
        let Some(node) = self.lines.find(address) else { return };
        self.lines.down(node);
        self.peer_lost(now, node);
        self.forget_seats(node);
        self.mark_users_of(node);
        let of = |user: &User| user.search.is_some_and(|search| search.asked() == node);
        let searching: Vec<UserId> =
            self.users.iter().filter(|(_, user)| of(user)).map(|(id, _)| *id).collect();
        for id in searching {
            self.search_failed(now, id, None);
        }
        self.refetch(now, node);
    }

    fn forget_seats(&mut self, node: NodeId) {
        self.awaited.retain(|_, (_, asked)| *asked != node);
        for user in self.users.values_mut() {
            user.seats.remove(&node);
            if let Some(search) = user.search.as_mut().filter(|search| search.asked() == node) {
                search.request = None;
            }
        }
    }

    pub(super) fn say(&mut self, node: NodeId, message: Message) {
        if let Some(to) = self.lines.at(node).filter(|_| self.lines.is_up(node)) {
            self.outputs.push_back(Output::Tell { to, message });
        }
    }
}
