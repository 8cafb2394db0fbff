//! The node among nodes: whom it meets, whom it links itself with, and what its
//! autonomous part wants said and done.

use super::autonomy::{AgentMessage, AutonomyEvent, AutonomyInput, AutonomyOutput};
use super::book::News;
use super::{Drain, Event, Node, Output, Traveller};
use crate::guests::LinkId;
use crate::message::{Contact, Hello, MAX_CONTACTS, Message, NodeAddress, Refusal};
use crate::peer::PeerId;
use media::{Span, Time};
use std::net::SocketAddr;

impl Node {
    /// Puts one input into the autonomous part, and does what it wants.
    pub(super) fn network(&mut self, now: Time, input: AutonomyInput) {
        self.autonomy.handle_input(now, input);
        while let Some(output) = self.autonomy.poll_output() {
            self.carry_out(now, output);
        }
    }

    fn carry_out(&mut self, now: Time, output: AutonomyOutput) {
        match output {
            AutonomyOutput::Send { to, message } => {
                if let Some(agent) = Traveller::of(&message) {
                    self.event(Event::Went { to, agent });
                }
                self.tell(now, to, Message::Agent(message));
            }
            AutonomyOutput::TellViewer { user, notice } => self.notice(now, user, notice),
            AutonomyOutput::Fetch { title, layer, origin, version } => {
                self.fetch(title, layer, origin, version);
            }
            AutonomyOutput::Drop { title, layer } => self.drop_copy(title, layer),
            AutonomyOutput::Copy { title } => self.download(title),
            AutonomyOutput::Evict { title } => self.evict(title),
            // Requests are granted by what the autonomous part knows of the user.
            AutonomyOutput::StartDelivery { .. } | AutonomyOutput::StopDelivery { .. } => {}
            AutonomyOutput::Event(event) => {
                let moved =
                    matches!(event, AutonomyEvent::BelievedDead { .. } | AutonomyEvent::BelievedAlive { .. });
                self.event(Event::Network(event));
                if moved {
                    self.choose_neighbours(now);
                }
            }
        }
    }

    /// A message to a node, by the connection there is or by one that is made.
    pub(super) fn tell(&mut self, now: Time, to: PeerId, message: Message) {
        if let Some(link) = self.mesh.link(to) {
            return self.send(link, message);
        }
        let signal = matches!(message, Message::Agent(AgentMessage::Signal));
        match self.book.address(to) {
            // A signal that waits says nothing.
            Some(_) if signal => {}
            Some(node) if self.drain == Drain::No => {
                if self.mesh.wait(to, message) {
                    self.mesh.want(now, node.into());
                } else {
                    self.event(Event::Unsaid { to });
                }
            }
            Some(_) | None => self.event(Event::Unsaid { to }),
        }
    }

    /// A message about agents came from a node.
    pub(super) fn agent(&mut self, now: Time, from: PeerId, mut message: AgentMessage, travel: Span) {
        // Where the search began the title may be unknown; who can serve Base has it.
        if let AgentMessage::Search(agent) = &mut message
            && agent.base.is_none()
            && let Ok(held) = self.shelf.title(&agent.info.title)
        {
            agent.info.quality = agent.info.quality.min(held.top_quality());
        }
        self.network(now, AutonomyInput::Heard { from, message, travel });
    }

    /// A connection to a node stands, whoever dialled.
    pub(super) fn linked(&mut self, link: LinkId, peer: PeerId) {
        for message in self.mesh.linked(peer, link) {
            self.send(link, message);
        }
        if self.mesh.neighbours().any(|neighbour| neighbour == peer) || self.wants(peer) {
            self.befriend(peer);
        }
    }

    /// A dial succeeded.
    pub(super) fn reached(&mut self, link: LinkId, address: SocketAddr, hello: Hello) {
        self.mesh.reached(address);
        if hello.peer == self.id {
            return self.outputs.push_back(Output::Part { link });
        }
        if self.guests.arrive(link, hello, self.config.address).is_err() {
            self.outputs.push_back(Output::Part { link });
            return self.event(Event::TurnedAway { link, peer: hello.peer, why: Refusal::Full });
        }
        self.joined(link, hello);
        // Who is joined through does not know this node, nor this node the others.
        let own = self.own_contact();
        self.send(link, Message::Contacts(vec![own]));
    }

    /// A dial failed.
    pub(super) fn unreached(&mut self, now: Time, address: SocketAddr) {
        let join = self.mesh.is_alone() && self.config.join.iter().any(|door| door.address == address);
        let wanted = self.wanted().iter().any(|node| node.address == address);
        self.mesh.unreached(now, address, join || wanted);
    }

    pub(super) fn unlinked(&mut self, now: Time, link: LinkId, peer: PeerId) {
        self.mesh.gone(peer, link);
        // Its silence is judged elsewhere; until then it is called back.
        if self.mesh.link(peer).is_none() {
            self.choose_neighbours(now);
        }
    }

    fn own_contact(&self) -> Contact {
        let node = NodeAddress { peer: self.id, address: self.config.address };
        Contact { node, level: self.config.level, since: self.config.since }
    }

    /// A node tells where nodes are. What is news goes to all neighbours, and who
    /// was not known itself hears of everybody.
    pub(super) fn contacts(&mut self, now: Time, link: LinkId, from: PeerId, contacts: Vec<Contact>) {
        let mut news = Vec::new();
        for contact in contacts {
            if self.learn(now, link, from, contact) != News::Known {
                news.push(contact);
            }
        }
        if news.is_empty() {
            return;
        }
        if news.iter().any(|contact| contact.node.peer == from) {
            self.tell_contacts(link);
        }
        self.pass_on(from, &news);
        self.choose_neighbours(now);
    }

    /// What is news goes to all neighbours but the one it came from.
    fn pass_on(&mut self, from: PeerId, news: &[Contact]) {
        let others = self.mesh.neighbours().filter(|peer| *peer != from);
        let others: Vec<LinkId> = others.filter_map(|peer| self.mesh.link(peer)).collect();
        for other in others {
            self.send(other, Message::Contacts(news.to_vec()));
        }
    }

    fn learn(&mut self, now: Time, link: LinkId, from: PeerId, contact: Contact) -> News {
        let news = self.book.learn(contact);
        let peer = contact.node.peer;
        if news != News::Known {
            self.event(Event::Met { node: contact });
            self.network(now, AutonomyInput::Joined);
            self.fetch_from_there(peer);
        }
        if news == News::Restarted {
            // Older connections are with its last life, and may seem to stand for
            // seconds yet.
            let own = (from == peer).then_some(link);
            for stale in self.mesh.restarted(peer, own) {
                self.outputs.push_back(Output::Part { link: stale });
            }
        }
        if news == News::Restarted && self.autonomy.neighbours().any(|(neighbour, _)| neighbour == peer) {
            self.network(now, AutonomyInput::Restarted { peer });
        }
        news
    }

    fn tell_contacts(&mut self, link: LinkId) {
        let mut all: Vec<Contact> = self.book.all().copied().collect();
        all.push(self.own_contact());
        for part in all.chunks(MAX_CONTACTS) {
            self.send(link, Message::Contacts(part.to_vec()));
        }
    }

    /// A node says that we are neighbours from now on.
    pub(super) fn neighbour(
        &mut self,
        now: Time,
        link: LinkId,
        from: PeerId,
        contact: Contact,
        travel: Span,
    ) {
        if contact.node.peer != from {
            return self.event(Event::Rejected { link, why: Refusal::Identity });
        }
        if self.learn(now, link, from, contact) != News::Known {
            self.pass_on(from, &[contact]);
        }
        let known = |node: &Self| node.autonomy.neighbours().any(|(peer, _)| peer == from);
        let new = !known(self);
        self.network(now, AutonomyInput::NeighbourIs { peer: from, level: contact.level, travel });
        if !known(self) {
            // There is no room. It does not hear that we are neighbours, and
            // awaits no signals.
            return;
        }
        self.befriend(from);
        if new {
            self.event(Event::Linked { peer: from });
        }
        self.choose_neighbours(now);
    }

    /// Tells a node, once on each connection, that we are neighbours, and all
    /// that is known of others.
    fn befriend(&mut self, peer: PeerId) {
        if let Some(link) = self.mesh.befriend(peer) {
            let own = self.own_contact();
            self.send(link, Message::Neighbour(own));
            self.tell_contacts(link);
        }
    }

    /// The nodes with which this one links itself, as configured or chosen.
    fn wanted(&self) -> Vec<NodeAddress> {
        if self.drain != Drain::No {
            return Vec::new();
        }
        if !self.config.neighbours.is_empty() {
            return self.config.neighbours.clone();
        }
        let alive = |peer: PeerId| !self.autonomy.thinks_dead(peer);
        let chosen = self.book.chosen(self.config.level, self.config.links, alive);
        chosen.into_iter().filter_map(|peer| self.book.address(peer)).collect()
    }

    fn wants(&self, peer: PeerId) -> bool {
        self.wanted().iter().any(|node| node.peer == peer)
    }

    /// Sees to it that there is a link to every node that is wanted, and to
    /// somebody of the network at all.
    pub(super) fn choose_neighbours(&mut self, now: Time) {
        for node in self.wanted() {
            match self.mesh.link(node.peer) {
                Some(_) => self.befriend(node.peer),
                None => self.mesh.want(now, node.into()),
            }
        }
        if self.mesh.is_alone() && self.drain == Drain::No {
            for door in self.config.join.clone() {
                self.mesh.want(now, door);
            }
        }
        if self.recall.is_none() && self.lost().next().is_some() {
            self.recall = Some(now + self.config.recall);
        }
    }

    /// Neighbours that are thought dead. They may have started anew by now, with
    /// the old connection not noticed to be over, or the network may have failed
    /// and not they: two halves of it would never meet again if nobody tried.
    fn lost(&self) -> impl Iterator<Item = NodeAddress> {
        let lost = |peer: &PeerId| self.autonomy.thinks_dead(*peer);
        let stays = self.drain == Drain::No;
        self.mesh.neighbours().filter(lost).filter_map(|peer| self.book.address(peer)).filter(move |_| stays)
    }

    fn call_the_lost(&mut self, now: Time) {
        let lost: Vec<NodeAddress> = self.lost().collect();
        self.recall = (!lost.is_empty()).then(|| now + self.config.recall);
        for node in lost {
            self.mesh.want(now, node.into());
        }
    }

    /// What is due by now.
    pub(super) fn network_due(&mut self, now: Time) {
        if self.drain == Drain::Done {
            return;
        }
        if self.autonomy.poll_timeout().is_some_and(|due| due <= now) {
            self.network(now, AutonomyInput::Timeout);
        }
        if self.recall.is_some_and(|at| at <= now) {
            self.call_the_lost(now);
        }
        for door in self.mesh.due(now) {
            self.outputs.push_back(Output::Dial(door));
        }
    }
}
