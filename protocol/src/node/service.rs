//! The node and its viewers: who seeks, who attaches, what is granted to whom,
//! and what the network wants a viewer to know.

use super::autonomy::record::Record;
use super::autonomy::{
    AdmissionRefusal, AgentMessage, AutonomyInput, Level, UserId, UserRequest, ViewerNotice,
};
use super::viewers::{Opening, Viewer};
use super::{Drain, Event, Node};
use crate::guests::LinkId;
use crate::message::{
    LayerSources, MAX_FORMER, MAX_SOURCES, Message, NodeAddress, Open, Opened, Progress, Refusal, Role,
    SessionId, Visit,
};
use crate::token::Claims;
use media::{ChunkId, Layer, Quality, Span, Time};
use std::collections::BTreeMap;

/// The most nodes of one level that are named to a member that copies.
const MAX_HOLDERS: usize = 8;
/// How long a title of unknown length is taken to be.
const UNKNOWN_LENGTH: Span = Span::from_secs(3600);

/// What a viewer is told.
const fn refusal(why: AdmissionRefusal) -> Refusal {
    match why {
        AdmissionRefusal::Threshold => Refusal::Threshold,
        AdmissionRefusal::BottomLine => Refusal::BottomLine,
        AdmissionRefusal::NothingToDisplace => Refusal::NothingToDisplace,
        AdmissionRefusal::ViewerLink => Refusal::ViewerLink,
        AdmissionRefusal::OriginLink => Refusal::OriginLink,
        AdmissionRefusal::Storage => Refusal::Storage,
        AdmissionRefusal::Full
        | AdmissionRefusal::NotStored
        | AdmissionRefusal::NoHeadroom
        | AdmissionRefusal::Bound
        | AdmissionRefusal::Dead
        | AdmissionRefusal::NotBase => Refusal::Full,
    }
}

impl Node {
    /// Somebody wants to open a title.
    pub(super) fn opens(&mut self, now: Time, link: LinkId, open: &Open, claims: Result<Claims, Refusal>) {
        let Some(role) = self.guests.link(link).map(|guest| guest.hello.role) else { return };
        let outcome = match claims {
            _ if self.drain != Drain::No => Err(Refusal::Draining),
            Err(why) => Err(why),
            Ok(claims) => match open.visit {
                Visit::Seek(progress) => self.seek_or_look(now, link, open, claims, progress),
                Visit::Attach => self.attach(now, link, open, claims),
                Visit::Copy if role == Role::Node || role == Role::Proxy => self.copy(link, open),
                Visit::Copy => Err(Refusal::NotAllowed),
            },
        };
        if let Err(why) = outcome {
            self.refuse(link, open, why);
        }
    }

    pub(super) fn refuse(&mut self, link: LinkId, open: &Open, why: Refusal) {
        self.send(link, Message::Refused { request: open.request, why });
        self.event(Event::SessionRefused { link, title: open.title.clone(), why });
    }

    /// A search for service begins here.
    pub(super) fn seek(
        &mut self,
        now: Time,
        link: LinkId,
        open: &Open,
        claims: Claims,
        progress: Progress,
    ) -> Result<(), Refusal> {
        match self.autonomy.record(open.user).map(|record| record.info.title == open.title) {
            // What is found for it is told here from now on.
            Some(true) => self.network(now, AutonomyInput::Attached { user: open.user }),
            Some(false) => self.network(now, AutonomyInput::Depart { user: open.user }),
            None => {}
        }
        let held = self.shelf.title(&open.title).ok();
        let most = held.map_or(claims.top, |held| held.top_quality().min(claims.top));
        let quality = open.quality.min(most).max(Quality::BRONZE);
        let length = held.map_or(UNKNOWN_LENGTH, |held| held.summary.duration);
        let due = now + self.config.seek_wait;
        self.await_answer(link, open, quality, due)?;
        self.event(Event::Seeks { link, user: open.user, title: open.title.clone(), quality });
        let request = UserRequest {
            user: open.user,
            title: open.title.clone(),
            quality,
            sla: claims.sla,
            started: progress.started,
            epoch: progress.epoch,
            position: progress.position,
            remaining: length.saturating_sub(progress.position),
            buffer: progress.buffer,
        };
        self.network(now, AutonomyInput::Arrive { request });
        Ok(())
    }

    fn await_answer(
        &mut self,
        link: LinkId,
        open: &Open,
        quality: Quality,
        due: Time,
    ) -> Result<(), Refusal> {
        let seeks = matches!(open.visit, Visit::Seek(_));
        let started = matches!(open.visit, Visit::Seek(progress) if progress.started);
        let former = open.former.iter().copied().take(MAX_FORMER).filter(|_| seeks).collect();
        let opening =
            Opening { request: open.request, seeks, quality, former, refused: BTreeMap::new(), started, due };
        let viewer = Viewer::new(link, open.title.clone(), opening);
        let max = self.config.guests.sessions;
        if self.viewers.arrive(open.user, viewer, max) { Ok(()) } else { Err(Refusal::Full) }
    }

    /// A viewer was sent here by name.
    fn attach(&mut self, now: Time, link: LinkId, open: &Open, claims: Claims) -> Result<(), Refusal> {
        let record = self.autonomy.record(open.user).map(|record| &record.info.title);
        let row = || self.autonomy.row(open.user).map(|row| &row.info.title);
        let other = record.or_else(row).is_some_and(|title| *title != open.title);
        if other || !self.autonomy.knows(open.user) {
            return Err(Refusal::NotServing);
        }
        let top = self.shelf.title(&open.title)?.top_quality();
        let quality = open.quality.min(top).min(claims.top).max(Quality::BRONZE);
        self.await_answer(link, open, quality, now + self.config.opening_wait)?;
        self.network(now, AutonomyInput::Attached { user: open.user });
        self.try_to_open(now, open.user);
        Ok(())
    }

    /// Who may have a layer: this node, the nodes of the layer's level, an origin
    /// last. Some of them may not have this title.
    fn holders(&self, layer: Layer, here: NodeAddress, held: bool) -> LayerSources {
        let alive = |peer: crate::PeerId| !self.autonomy.thinks_dead(peer);
        let level = |level: Level| self.book.of_level(level, alive).take(MAX_HOLDERS);
        let own = held.then_some(here).into_iter();
        let nodes = own.chain(level(Level::Layer(layer))).chain(level(Level::Origin));
        LayerSources { layer, nodes: nodes.take(MAX_SOURCES).collect() }
    }

    /// A member copies. It takes no slot, and hears who else may have the title.
    fn copy(&mut self, link: LinkId, open: &Open) -> Result<(), Refusal> {
        let held = self.shelf.title(&open.title)?;
        let (manifest_length, manifest_hash) = (held.manifest_length, held.manifest_hash);
        let quality = held.top_quality();
        let address = self.guests.link(link).ok_or(Refusal::Malformed)?.here;
        let here = NodeAddress { peer: self.id, address };
        let layers = Layer::first(quality.layers());
        let sources = layers.map(|layer| self.holders(layer, here, held.has(layer))).collect();
        let session = self.guests.open(link, &open.title, quality)?;
        self.guests.is_about(session, manifest_hash);
        let opened = Opened {
            request: open.request,
            session,
            quality,
            manifest_length,
            manifest_hash,
            sources,
            backup: None,
            epoch: 0,
            doors: Vec::new(),
        };
        self.send(link, Message::Opened(opened));
        let sessions = self.guests.session_count();
        self.event(Event::Opened { link, session, title: open.title.clone(), quality, sessions });
        Ok(())
    }

    /// Answers a request to open as soon as everything about it is known.
    fn try_to_open(&mut self, now: Time, user: UserId) {
        let Some(viewer) = self.viewers.get(user) else { return };
        let Some(opening) = &viewer.opening else { return };
        let settled = match self.autonomy.record(user) {
            Some(record) => {
                let above = Layer::first(opening.quality.layers()).skip(1);
                let known =
                    |layer: Layer| record.layer_node(layer).is_some() || opening.refused.contains_key(&layer);
                above.into_iter().all(known)
            }
            // Served elsewhere: who attached here learns nothing more from this node.
            None => !opening.seeks && self.autonomy.knows(user),
        };
        if settled || opening.due <= now {
            self.answer_opening(now, user);
        }
    }

    fn answer_opening(&mut self, now: Time, user: UserId) {
        let Some(opening) = self.viewers.answered(user) else { return };
        let Some(viewer) = self.viewers.get(user) else { return };
        let (link, title) = (viewer.link, viewer.title.clone());
        let (request, quality) = (opening.request, opening.quality);
        let served = self.autonomy.record(user).is_some();
        let granted = if served || (!opening.seeks && self.autonomy.knows(user)) {
            self.opened(user, &opening)
        } else {
            Err(Refusal::SearchLost)
        };
        match granted {
            Ok(opened) => {
                let session = opened.session;
                if let Some(viewer) = self.viewers.get_mut(user) {
                    for source in &opened.sources {
                        viewer.tell(source.layer, source.nodes.first().map(|node| node.peer));
                    }
                }
                self.send(link, Message::Opened(opened));
                let sessions = self.guests.session_count();
                self.event(Event::Opened { link, session, title, quality, sessions });
            }
            Err(why) => {
                self.send(link, Message::Refused { request, why });
                self.event(Event::SessionRefused { link, title, why });
                self.viewers.leave(user);
                self.network(now, AutonomyInput::Depart { user });
            }
        }
    }

    fn opened(&mut self, user: UserId, opening: &Opening) -> Result<Opened, Refusal> {
        let viewer = self.viewers.get(user).ok_or(Refusal::Malformed)?;
        let (link, title) = (viewer.link, viewer.title.clone());
        let held = self.shelf.title(&title)?;
        let (manifest_length, manifest_hash) = (held.manifest_length, held.manifest_hash);
        let here = self.guests.link(link).ok_or(Refusal::Malformed)?.here;
        let record = self.autonomy.record(user);
        if let Some(record) = record {
            self.is_enough(opening, record)?;
        }
        let sources = record.map_or_else(Vec::new, |record| {
            let node = |layer: Layer| match record.layer_node(layer) {
                _ if layer == Layer::BASE => Some(NodeAddress { peer: self.id, address: here }),
                Some(node) if node == self.id => Some(NodeAddress { peer: self.id, address: here }),
                Some(node) => self.book.address(node),
                None => None,
            };
            let of = |layer| LayerSources { layer, nodes: node(layer).into_iter().collect() };
            Layer::first(opening.quality.layers()).map(of).collect()
        });
        let backup =
            record.and_then(|record| record.backup).and_then(|backup| self.book.address(backup.node));
        let epoch = record.map_or(0, |record| record.info.epoch);
        let doors = self.book.doors(MAX_SOURCES, |peer| !self.autonomy.thinks_dead(peer));
        let (request, quality) = (opening.request, opening.quality);
        // A proxy speaks for many on one connection.
        let proxied = self.guests.link(link).is_some_and(|guest| guest.hello.role == Role::Proxy);
        let session = self.guests.open_for(link, &title, quality, proxied.then_some(user))?;
        self.guests.is_about(session, manifest_hash);
        Ok(Opened {
            request,
            session,
            quality,
            manifest_length,
            manifest_hash,
            sources,
            backup,
            epoch,
            doors,
        })
    }

    /// Whether a viewer who was refused layers is to be content with the others
    /// (downgrade). Who has begun to watch always is: continuity goes first.
    fn is_enough(&self, opening: &Opening, record: &Record) -> Result<(), Refusal> {
        let Some((lowest, why)) = opening.refused.first_key_value() else { return Ok(()) };
        let (granted, wanted) = (u64::from(lowest.0), u64::from(opening.quality.layers()));
        // The user is content with q layers of Q if q is at least beta times Q.
        let least = (wanted * u64::from(self.config.beta)).div_ceil(100).max(1);
        let refused_for_want = !matches!(why, AdmissionRefusal::NotStored | AdmissionRefusal::Dead);
        let less = granted < least || (!self.config.downgrade && refused_for_want);
        if !opening.started && record.layer_node(*lowest).is_none() && less {
            return Err(refusal(*why));
        }
        Ok(())
    }

    /// Requests that have waited long enough for all to be known.
    pub(super) fn openings_due(&mut self, now: Time) {
        for user in self.viewers.due(now) {
            self.answer_opening(now, user);
        }
    }

    /// The network has something to say to a viewer.
    pub(super) fn notice(&mut self, now: Time, user: UserId, notice: ViewerNotice) {
        match notice {
            ViewerNotice::BackupIs { node, epoch } => {
                let link = self.viewers.get(user).map(|viewer| viewer.link);
                if let Some((link, backup)) = link.zip(self.book.address(node)) {
                    self.send(link, Message::BackupIs { user, backup, epoch });
                    self.event(Event::BackupTold { user, backup: node, epoch });
                }
            }
            ViewerNotice::DeliveryStart { position, epoch } => {
                let link = self.viewers.get(user).map(|viewer| viewer.link);
                if let Some(link) = link {
                    self.send(link, Message::DeliveryStart { user, position, epoch });
                }
                self.event(Event::DeliveryStarted { user, epoch, told: link.is_some() });
                // It may have asked here before, as of its standby.
                self.slots.refill(user);
            }
            ViewerNotice::ServedBy { layer, node, epoch } => {
                self.served_by(now, user, layer, node, epoch);
            }
            ViewerNotice::Refused { layer, why } => self.not_served(now, user, layer, why),
        }
    }

    fn served_by(&mut self, now: Time, user: UserId, layer: Layer, node: crate::PeerId, epoch: u64) {
        let Some(viewer) = self.viewers.get(user) else { return };
        let link = viewer.link;
        let request = viewer.opening.as_ref().map(|opening| opening.request);
        let here = node == self.id;
        if layer == Layer::BASE {
            self.tell_former(now, user, node, epoch);
        }
        match request {
            Some(request) if layer == Layer::BASE && !here => {
                if let Some(base) = self.book.address(node) {
                    self.viewers.leave(user);
                    self.send(link, Message::Elsewhere { request, base, epoch });
                    self.event(Event::SentOn { user, to: node });
                }
            }
            Some(_) => {
                if let Some(opening) = self.viewers.opening_mut(user).filter(|_| layer == Layer::BASE) {
                    opening.due = opening.due.min(now + self.config.opening_wait);
                }
                self.try_to_open(now, user);
            }
            None if layer == Layer::BASE && here => {}
            None if self.viewers.get_mut(user).is_some_and(|viewer| !viewer.tell(layer, Some(node))) => {}
            None => {
                let own = NodeAddress { peer: self.id, address: self.config.address };
                let node = if here { Some(own) } else { self.book.address(node) };
                self.send(link, Message::LayerAt { user, layer, node, epoch });
            }
        }
    }

    /// Who served a viewer that has sought anew, or took over unnoticed by it,
    /// hears that another node serves it, and need not wait for its lease.
    fn tell_former(&mut self, now: Time, user: UserId, node: crate::PeerId, epoch: u64) {
        let opening = self.viewers.opening_mut(user);
        let former = opening.map_or_else(Vec::new, |opening| std::mem::take(&mut opening.former));
        for to in former.into_iter().filter(|to| *to != node) {
            let message = AgentMessage::TookOver { user, epoch };
            if to == self.id {
                self.agent(now, to, message, Span::ZERO);
            } else {
                self.tell(now, to, Message::Agent(message));
            }
        }
    }

    fn not_served(&mut self, now: Time, user: UserId, layer: Layer, why: AdmissionRefusal) {
        let Some(viewer) = self.viewers.get(user) else { return };
        let (link, title) = (viewer.link, viewer.title.clone());
        let Some(request) = viewer.opening.as_ref().map(|opening| opening.request) else {
            let epoch = self.autonomy.record(user).map_or(0, |record| record.info.epoch);
            // It is asked for again and again; what did not change is not said again.
            if self.viewers.get_mut(user).is_some_and(|viewer| viewer.tell(layer, None)) {
                self.send(link, Message::LayerAt { user, layer, node: None, epoch });
            }
            return;
        };
        if layer > Layer::BASE {
            if let Some(opening) = self.viewers.opening_mut(user) {
                opening.refused.insert(layer, why);
            }
            return self.try_to_open(now, user);
        }
        let why = match why {
            // The last one asked may be none that could have it.
            AdmissionRefusal::NotStored if self.shelf.title(&title).is_err() => Refusal::NoSuchTitle,
            why => refusal(why),
        };
        self.viewers.leave(user);
        self.send(link, Message::Refused { request, why });
        self.event(Event::SessionRefused { link, title, why });
    }

    /// Whether the chunk is given to whoever asks by this connection. What a proxy
    /// asks for is for any of those it speaks for.
    pub(super) fn serves(&mut self, now: Time, link: LinkId, chunk: &ChunkId) -> Result<(), Refusal> {
        let role = self.guests.link(link).ok_or(Refusal::Malformed)?.hello.role;
        let member = matches!(role, Role::Node | Role::Proxy);
        let mut users = self.viewers.users(link, &chunk.title);
        let Some(first) = users.next() else {
            // A copy has a session and no user.
            return if member { Ok(()) } else { Err(Refusal::NoSession) };
        };
        let archived = self.shelf.title(&chunk.title).is_ok_and(|held| held.archived);
        if !archived && !self.config.offers(chunk.layer) {
            return Err(Refusal::LayerNotOffered);
        }
        let served = |user: &UserId| self.autonomy.serves(*user, chunk.layer);
        let Some(user) = Some(first).into_iter().chain(users).find(served) else {
            return Err(Refusal::NotServing);
        };
        // Who asks lives, and is about there; a proxy tells it of each by itself.
        let quiet = self.config.quiet;
        let record = self.autonomy.record(user).filter(|record| record.heard + quiet <= now);
        if record.is_some() && chunk.layer == Layer::BASE && role != Role::Proxy {
            let held = self.shelf.title(&chunk.title)?;
            let passed = held.summary.duration.as_nanos() / u64::from(held.blocks.max(1));
            let position = Span::from_nanos(passed.saturating_mul(chunk.block.into()));
            self.network(now, AutonomyInput::Position { user, position, buffer: Span::ZERO });
        }
        Ok(())
    }

    /// A viewer says how it stands. Who has paused for long gives back what it
    /// has; when it plays on it seeks anew, as one who has begun to watch.
    pub(super) fn position(
        &mut self,
        now: Time,
        link: LinkId,
        user: UserId,
        (position, buffer): (Span, Span),
        paused: bool,
    ) {
        let Some(viewer) = self.viewers.get_mut(user).filter(|viewer| viewer.link == link) else {
            return self.event(Event::Rejected { link, why: Refusal::NotServing });
        };
        let long = viewer.stands_still(now, paused) >= self.config.pause;
        self.network(now, AutonomyInput::Position { user, position, buffer });
        if paused && long && self.config.pause > Span::ZERO && self.autonomy.record(user).is_some() {
            self.event(Event::SlotGivenBack { user });
            self.network(now, AutonomyInput::Depart { user });
        }
    }

    pub(super) fn still_served(&mut self, now: Time, link: LinkId, user: UserId, epoch: u64) {
        let current = self.autonomy.record(user).is_some_and(|record| record.info.epoch == epoch);
        if !self.viewers.speaks(link, user) {
            self.event(Event::Rejected { link, why: Refusal::NotServing });
        } else if current {
            self.network(now, AutonomyInput::StillServed { user });
        }
    }

    /// A viewer is done with a session.
    pub(super) fn close(&mut self, now: Time, link: LinkId, session: SessionId) {
        let Some((title, user)) =
            self.guests.session(link, session).map(|session| (session.title.clone(), session.user))
        else {
            return;
        };
        let proxied = self.guests.link(link).is_some_and(|guest| guest.hello.role == Role::Proxy);
        self.guests.close(link, session);
        self.event(Event::Closed { link, session });
        let own = if proxied {
            user.filter(|user| self.viewers.speaks(link, *user))
        } else {
            self.viewers.users(link, &title).next()
        };
        if let Some(user) = own {
            self.viewers.leave(user);
            self.network(now, AutonomyInput::Depart { user });
        }
    }

    /// A connection is over. Who ended it by itself is done; who did not may come
    /// back within its lease.
    pub(super) fn viewers_gone(&mut self, now: Time, link: LinkId, parted: bool) {
        for user in self.viewers.gone(link) {
            if parted {
                self.network(now, AutonomyInput::Depart { user });
            }
        }
    }
}
