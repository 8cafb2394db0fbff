//! The proxy goes upstream for its clients: each is a user of the network, with
//! the number, the token and the quality that it came with, served by a Base node
//! and backed up by another one as any viewer is (Wakamiya et al., Pull-MA).
//!
//! One connection to each node speaks for all clients. A refusal upstream is the
//! client's refusal, by its name, also where everything it would ask for lies in
//! the cache: a cache may lose what it holds, and nobody would stand behind a
//! client that the network does not know.

use super::Proxy;
use super::advice::client;
use super::agenda::Entry;
use super::cooperation::Input as MindInput;
use super::io::{Event, Output};
use super::lines::{LineAction, NodeId};
use super::users::{Search, Seat, User};
use crate::message::{Message, Progress, Refusal, Visit};
use crate::node::autonomy::UserId;
use crate::service::{Delivery, Home, Patience};
use crate::status::CachedLine;
use media::{Layer, Span, Time};
use std::collections::VecDeque;

/// How often what is due is looked through again after a change.
const ROUNDS: u32 = 3;

impl Proxy {
    /// Does everything that is due upstream, if anything changed or its time came: for
    /// those users alone whom it concerns.
    pub(super) fn tend(&mut self, now: Time) {
        let idle = !self.changed && !self.agenda.has_news();
        if idle && self.due.is_none_or(|due| now < due) {
            return;
        }
        for _ in 0..ROUNDS {
            self.changed = false;
            self.tend_lines(now);
            for user in self.agenda.take(now) {
                self.tend_user(now, user);
            }
            self.tend_lines(now);
            self.look_at_origin(now);
            self.retry_parked(now);
            self.hedge(now);
            if !self.changed && !self.agenda.has_news() {
                break;
            }
        }
        self.due = self.next_due(now);
    }

    fn next_due(&self, now: Time) -> Option<Time> {
        let lines = self.lines.poll_timeout(&self.config, |node| self.is_needed(node));
        let parked = self.fills.parked().next().map(|_| now + self.config.ask_again);
        // What could not be done by now waits for an input.
        let lines = lines.filter(|when| *when > now);
        // What came up in the last round comes next.
        let news = self.agenda.has_news().then(|| now + self.config.ask_again);
        [lines, parked, news, self.hedge_timeout(now), self.agenda.next()].into_iter().flatten().min()
    }

    /// How a user stands on the agenda.
    fn entry(&self, now: Time, user: &User) -> Entry {
        let search =
            user.search.map(|search| search.again.unwrap_or(search.since + self.config.seek_patience));
        let report = user.standing.home().filter(|home| self.lines.is_up(*home)).map(|_| user.report_at);
        let waits = user.seats.values().filter_map(|seat| match seat {
            Seat::Waits(until) | Seat::Held { stands_by: Some(until), .. } => Some(*until),
            Seat::Asked(_, since) => Some(*since + self.config.seek_patience),
            Seat::Held { stands_by: None, .. } => None,
        });
        let doubt = user.standing.doubt_until();
        let times = [user.until, doubt, user.doors.poll_timeout(&self.patience(user)), search, report];
        let due = times.into_iter().flatten().chain(waits).filter(|when| *when > now).min();
        Entry { due, in_doubt: doubt.is_some(), nodes: user.needed() }
    }

    /// A node is there, or is not any more: news for those who need it.
    pub(super) fn mark_users_of(&mut self, node: NodeId) {
        let of = |user: &User| user.needs(node) || user.layers.iter().flatten().any(|other| *other == node);
        for (id, _) in self.users.iter().filter(|(_, user)| of(user)) {
            self.agenda.mark(*id);
        }
        self.changed = true;
    }

    fn is_needed(&self, node: NodeId) -> bool {
        self.advisor.is_peer(node) || self.agenda.needs(node)
    }

    fn tend_lines(&mut self, now: Time) {
        self.excuse_crowded();
        let (agenda, advisor) = (&self.agenda, &self.advisor);
        let needed = |node: NodeId| advisor.is_peer(node) || agenda.needs(node);
        for action in self.lines.poll(now, &self.config, needed) {
            match action {
                LineAction::Dial(node) => {
                    if let Some(to) = self.lines.at(node) {
                        self.outputs.push_back(Output::Dial { to });
                    }
                }
                LineAction::Probe(node, number) => self.say(node, Message::Probe(number)),
                LineAction::Silent(node) => {
                    if let Some(node) = self.lines.at(node) {
                        self.event(Event::Silent { node });
                    }
                    self.peer_lost(now, node);
                    self.refetch(now, node);
                    self.mark_users_of(node);
                }
            }
        }
    }

    fn tend_user(&mut self, now: Time, id: UserId) {
        let Some(user) = self.users.get(&id) else { return };
        if user.until.is_some_and(|until| until <= now) {
            return self.depart(now, id);
        }
        self.settle(now, id);
        self.seek(now, id);
        self.take_seats(now, id);
        self.report(now, id);
        if let Some(user) = self.users.get(&id) {
            let entry = self.entry(now, user);
            self.agenda.enter(id, entry);
        }
    }

    /// Whether somebody serves Base, or is hoped to.
    pub(super) fn is_served(&self, user: &User) -> bool {
        let serves = |node: &NodeId| self.lines.is_hopeful(*node) && !user.is_standing_by(*node);
        user.standing.home().is_some() && user.layers.first().is_some_and(|base| base.iter().any(serves))
    }

    pub(super) fn patience(&self, user: &User) -> Patience {
        let fresh = user.standing.home().is_none();
        Patience {
            first: if fresh { Span::ZERO } else { self.config.repull_after },
            door: self.config.seek_patience,
            pause: self.config.seek_pause,
        }
    }

    /// Seeks service for a client that nobody serves, at one door after the other.
    fn seek(&mut self, now: Time, id: UserId) {
        let Some(user) = self.users.get(&id) else { return };
        let (patience, served) = (self.patience(user), self.is_served(user));
        let late = user.search.is_some_and(|search| search.since + patience.door <= now);
        if late {
            self.search_failed(now, id, None);
        }
        let Some(mut user) = self.users.remove(&id) else { return };
        if served && user.search.is_none() {
            user.doors.served();
        } else if user.link.is_some() && user.search.is_none() {
            let backup = user.standing.backup();
            let door = user.doors.next(now, &patience, |known| self.round(backup, known));
            if let Some(door) = door {
                user.search = Some(Search::at(door, now));
                self.agenda.mark(id);
            }
        }
        self.users.insert(id, user);
        self.advance_search(now, id);
    }

    fn round(&self, backup: Option<NodeId>, known: &[NodeId]) -> VecDeque<NodeId> {
        let mut doors: Vec<NodeId> = Vec::new();
        for door in backup.iter().chain(known).filter(|door| self.lines.at(**door).is_some()) {
            if !doors.contains(door) {
                doors.push(*door);
            }
        }
        // Each in turn, as configured; who is known to be gone comes last.
        doors.sort_by_key(|door| !self.lines.is_hopeful(*door));
        doors.into()
    }

    /// Says what the search under way has to say, once it can be said.
    fn advance_search(&mut self, now: Time, id: UserId) {
        let Some(user) = self.users.get_mut(&id) else { return };
        let Some(search) = user.search.filter(|search| search.request.is_none()) else { return };
        let node = search.asked();
        if !self.lines.is_up(node) || search.again.is_some_and(|again| now < again) {
            return;
        }
        let request = self.next_request;
        let visit = if search.base.is_some() {
            Visit::Attach
        } else {
            let (started, epoch) =
                (user.progress.started || user.standing.home().is_some(), user.standing.epoch());
            Visit::Seek(Progress { started, epoch, ..user.progress })
        };
        user.search = Some(Search { request: Some(request), again: None, ..search });
        let open = user.open(id, request, visit);
        self.ask(id, node, request, Message::Open(open));
    }

    fn ask(&mut self, id: UserId, node: NodeId, request: u32, message: Message) {
        // The numbers below are those of the connection's own questions.
        self.next_request = request.wrapping_add(1) | super::OWN_REQUESTS;
        self.awaited.insert(request, (id, node));
        self.say(node, message);
    }

    /// A door found nothing, or nobody.
    pub(super) fn search_failed(&mut self, now: Time, id: UserId, why: Option<Refusal>) {
        let Some(user) = self.users.get(&id) else { return };
        let patience = self.patience(user);
        let Some(user) = self.users.get_mut(&id) else { return };
        let Some(search) = user.search.take() else { return };
        if let Some(request) = search.request {
            self.awaited.remove(&request);
        }
        // Somebody who answers knows better than nobody.
        user.refusal = user.refusal.or(why);
        let last = user.doors.not_found(now, search.door, &patience);
        let settled = matches!(why, Some(Refusal::Token | Refusal::Full | Refusal::NotAllowed));
        self.agenda.mark(id);
        let held = |line: &CachedLine| line.title == user.title && line.held > 0;
        let nobody = user.refusal.is_none() && self.advisor.mind.title_lines().iter().any(held);
        if user.asking.is_some() && user.standing.home().is_none() && (last || settled) {
            if nobody {
                // Nobody says no: what is kept can be given, while service is sought.
                return self.answer_anyway(now, id);
            }
            let why = user.refusal.unwrap_or(Refusal::Upstream);
            let answer = (user.link, user.asking, user.title.clone());
            self.depart(now, id);
            if let (Some(link), Some(request), title) = answer {
                self.send(link, Message::Refused { request, why });
                self.event(Event::SessionRefused { link, title, why });
            }
        }
    }

    /// Announces a client wherever it is served or may be.
    fn take_seats(&mut self, now: Time, id: UserId) {
        let Some(user) = self.users.get(&id) else { return };
        let patience = self.config.seek_patience;
        let due = |node: &NodeId| match user.seats.get(node) {
            None => true,
            Some(Seat::Waits(until)) => *until <= now,
            Some(Seat::Asked(_, since)) => *since + patience <= now,
            Some(Seat::Held { .. }) => false,
        };
        let wanted: Vec<NodeId> =
            user.wanted().into_iter().filter(|node| self.lines.is_up(*node) && due(node)).collect();
        for node in wanted {
            let request = self.next_request;
            let Some(user) = self.users.get_mut(&id) else { return };
            if let Some(Seat::Asked(before, _)) = user.seats.insert(node, Seat::Asked(request, now)) {
                self.awaited.remove(&before);
            }
            let open = user.open(id, request, Visit::Attach);
            self.ask(id, node, request, Message::Open(open));
        }
    }

    /// Tells the Base node how the client stands, once a second and after a move.
    fn report(&mut self, now: Time, id: UserId) {
        let every = self.config.report_every;
        let Some(user) = self.users.get_mut(&id).filter(|user| user.report_at <= now && user.link.is_some())
        else {
            return;
        };
        let Some(home) = user.standing.home() else { return };
        if matches!(user.seats.get(&home), Some(Seat::Held { .. })) && self.lines.is_up(home) {
            user.report_at = now + every;
            let (position, buffer, paused) = (user.progress.position, user.buffer, user.paused);
            self.say(home, Message::Position { user: id, position, buffer, paused });
        }
    }

    fn settle(&mut self, now: Time, id: UserId) {
        let Some(user) = self.users.get(&id) else { return };
        let mut standing = user.standing.clone();
        let delivery = standing.settle(now, |home| self.look_at(home));
        if let Some(user) = self.users.get_mut(&id) {
            user.standing = standing;
        }
        self.deliver(now, id, delivery);
    }

    pub(super) fn look_at(&self, home: NodeId) -> Home {
        Home {
            usable: self.lines.is_usable(home),
            heard: self.lines.heard_at(home),
            patience: self.config.doubt.max(self.lines.round_trip(home).saturating_mul(2)),
        }
    }

    pub(super) fn deliver(&mut self, now: Time, id: UserId, delivery: Delivery<NodeId>) {
        match delivery {
            Delivery::Ignored => {}
            Delivery::Refused { source, epoch } => self.say(source, Message::StillServed { user: id, epoch }),
            Delivery::Doubted { home } => {
                if let Some(number) = self.lines.probe_now(now, home) {
                    self.say(home, Message::Probe(number));
                }
            }
            Delivery::Accepted { source, epoch, words } => {
                self.move_home(now, id, source, epoch);
                for word in words {
                    self.hear_word(now, id, source, word);
                }
            }
        }
    }

    /// Another node serves Base and keeps the record from now on.
    pub(super) fn move_home(&mut self, now: Time, id: UserId, to: NodeId, epoch: u64) {
        let Some(user) = self.users.get_mut(&id) else { return };
        user.standing.move_to(to, epoch);
        if let Some(base) = user.layers.first_mut() {
            *base = vec![to];
        }
        if let Some(Seat::Held { stands_by, .. }) = user.seats.get_mut(&to) {
            *stands_by = None;
        }
        user.report_at = now;
        self.leave_seats(id);
        self.tell_epoch(id);
        if let Some(node) = self.lines.at(to) {
            self.event(Event::ServedBy { user: id, node, epoch });
        }
        self.agenda.mark(id);
    }

    /// The client must know the epoch if it is to seek service without us.
    pub(super) fn tell_epoch(&mut self, id: UserId) {
        let Some(user) = self.users.get(&id) else { return };
        let Some(link) = user.link.filter(|_| user.asking.is_none()) else { return };
        let Some(own) = self.own_address(link) else { return };
        let epoch = user.standing.epoch();
        self.send(link, Message::LayerAt { user: id, layer: Layer::BASE, node: Some(own), epoch });
    }

    /// Closes the sessions at nodes of which nothing is needed any more.
    pub(super) fn leave_seats(&mut self, id: UserId) {
        let Some(user) = self.users.get_mut(&id) else { return };
        let wanted = user.wanted();
        let left: Vec<(NodeId, Seat)> = user
            .seats
            .iter()
            .filter(|(node, _)| !wanted.contains(node))
            .map(|(node, seat)| (*node, *seat))
            .collect();
        for (node, seat) in left {
            if let Some(user) = self.users.get_mut(&id) {
                user.seats.remove(&node);
            }
            self.leave_seat(node, seat);
        }
    }

    fn leave_seat(&mut self, node: NodeId, seat: Seat) {
        match seat {
            Seat::Held { session, .. } => self.say(node, Message::Close(session)),
            // Its answer is answered by the end of the session.
            Seat::Asked(request, _) => drop(self.awaited.remove(&request)),
            Seat::Waits(_) => {}
        }
    }

    /// A client is done, or will not come back: nothing upstream is held for it.
    pub(super) fn depart(&mut self, now: Time, id: UserId) {
        let Some(user) = self.users.remove(&id) else { return };
        self.agenda.forget(id);
        self.think(now, MindInput::Left { client: client(id) });
        if let Some(request) = user.search.and_then(|search| search.request) {
            self.awaited.remove(&request);
        }
        for (node, seat) in user.seats {
            self.leave_seat(node, seat);
        }
        if let Some(link) = user.link {
            self.guests.close(link, user.session);
        }
        self.changed = true;
    }
}
