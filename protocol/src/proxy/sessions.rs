//! The proxy's clients: who opens what, what becomes of each request, who leaves.

use super::filter::{Filter, Ruling};
use super::io::{Event, Outcome, Output};
use super::titles::Shape;
use super::users::User;
use super::{Drain, Proxy};
use crate::guests::{LinkId, StreamId};
use crate::message::{
    BASE_GRACE, ChunkRequest, LayerSources, MAX_SOURCES, Message, NodeAddress, Open, Opened, Part, Refusal,
    Role, SessionId, StreamRequest, Visit,
};
use crate::node::autonomy::UserId;
use media::{ChunkId, Layer, Quality, Span, Time, TitleName};

impl Proxy {
    /// Opens a session at once if the title is known, or as soon as it is.
    pub(super) fn open(&mut self, now: Time, link: LinkId, open: Open) {
        if let Err(why) = self.while_serving() {
            self.refuse_session(link, &open, why);
        } else if self.titles.is_fresh(now, &open.title, self.config.fresh) {
            self.admit(now, link, &open);
        } else {
            let title = open.title.clone();
            match self.titles.wait_for(link, open, self.config.guests.links) {
                Ok(false) => {}
                Ok(true) => {
                    let upstream = self.config.upstream.clone();
                    self.outputs.push_back(Output::Learn { title, upstream });
                }
                Err(open) => self.refuse_session(link, &open, Refusal::TooManyRequests),
            }
        }
    }

    pub(super) fn learnt(
        &mut self,
        now: Time,
        title: &TitleName,
        shape: Result<Shape, Refusal>,
        kept: &[(u32, Quality)],
    ) {
        let waiting = self.titles.waiting_for(title);
        let learnt = match shape {
            Ok(shape) => {
                let is_watched = |title: &TitleName| self.guests.watch(title);
                self.titles.learn(now, title, shape, self.config.max_titles, is_watched)
            }
            // What was learnt before is better than nothing.
            Err(Refusal::Upstream) if self.titles.shape(title).is_some() => Ok(None),
            Err(why) => {
                self.titles.forget(title);
                Err(why)
            }
        };
        let refusal = learnt.as_ref().err().copied();
        if let Some(title) = learnt.unwrap_or_else(|_| Some(title.clone())) {
            self.unlearn(now, &title);
            self.outputs.push_back(Output::Forget { title });
        }
        if let Some(shape) = self.titles.shape(title).cloned() {
            self.teach(now, title, &shape, kept);
        }
        for (link, open) in waiting {
            match refusal {
                None => self.admit(now, link, &open),
                Some(why) => self.refuse_session(link, &open, why),
            }
        }
    }

    /// The title is known: a client becomes a user of the network, or is one.
    fn admit(&mut self, now: Time, link: LinkId, open: &Open) {
        let admitted = match open.visit {
            Visit::Copy => self.copy(link, open),
            Visit::Attach if self.users.get(&open.user).is_none_or(|user| user.title != open.title) => {
                Err(Refusal::NotServing)
            }
            Visit::Attach | Visit::Seek(_) => self.enter(now, link, open),
        };
        if let Err(why) = admitted {
            self.refuse_session(link, open, why);
        }
    }

    /// A member copies: it takes no slot, here or upstream.
    fn copy(&mut self, link: LinkId, open: &Open) -> Result<(), Refusal> {
        let role = self.guests.link(link).ok_or(Refusal::Malformed)?.hello.role;
        if !matches!(role, Role::Node | Role::Proxy) {
            return Err(Refusal::NotAllowed);
        }
        let quality = self.best(open)?;
        let session = self.guests.open(link, &open.title, quality)?;
        self.grant(link, open.request, &open.title, (session, quality), 0)
    }

    fn best(&self, open: &Open) -> Result<Quality, Refusal> {
        let shape = self.titles.shape(&open.title).ok_or(Refusal::NoSuchTitle)?;
        Ok(open.quality.min(shape.top_quality()).min(self.config.top).max(Quality::BRONZE))
    }

    fn enter(&mut self, now: Time, link: LinkId, open: &Open) -> Result<(), Refusal> {
        let quality = self.best(open)?;
        // A user watches one title, and one connection watches it once.
        let other = |(id, user): (&UserId, &User)| {
            let same_title = user.title == open.title;
            let in_the_way =
                if *id == open.user { !same_title } else { same_title && user.link == Some(link) };
            in_the_way.then_some(*id)
        };
        let others: Vec<UserId> = self.users.iter().filter_map(other).collect();
        for id in others {
            self.depart(now, id);
        }
        let room = self.users.len() < self.config.guests.sessions.saturating_mul(2);
        if !room && !self.users.contains_key(&open.user) {
            return Err(Refusal::Full);
        }
        let session = self.guests.open(link, &open.title, quality)?;
        self.agenda.mark(open.user);
        if let Some(user) = self.users.get_mut(&open.user) {
            let former = user.link.replace(link).filter(|former| *former != link);
            let before = std::mem::replace(&mut user.session, session);
            user.until = None;
            user.asking = Some(open.request);
            user.filter.reconnected(now);
            if let Visit::Seek(progress) = open.visit {
                user.progress = progress;
            }
            if let Some(former) = former {
                self.guests.close(former, before);
            }
            self.answer(now, open.user);
            self.tell_epoch(open.user);
            return Ok(());
        }
        let filter = Filter::new(now, self.config.step, quality);
        let mut user = User::new(now, link, &Open { quality, ..open.clone() }, session, filter);
        let doors = self.config.upstream.iter().filter_map(|door| self.lines.number(now, *door));
        user.doors.know(doors.collect());
        self.users.insert(open.user, user);
        self.introduce(now, open.user, &open.title);
        let (users, advisor) = (&self.users, &self.advisor);
        self.lines.prune(|node| {
            let needed = |user: &User| user.needs(node) || user.doors.known().contains(&node);
            advisor.is_peer(node) || users.values().any(needed)
        });
        Ok(())
    }

    /// Answers a client's request to open, once somebody serves it.
    pub(super) fn answer(&mut self, now: Time, id: UserId) {
        if self.users.get(&id).is_some_and(|user| self.is_served(user)) {
            self.answer_anyway(now, id);
        }
    }

    /// Answers a client's request to open: it gets what is kept at least.
    pub(super) fn answer_anyway(&mut self, now: Time, id: UserId) {
        let Some(user) = self.users.get(&id) else { return };
        let Some((link, request)) = user.link.zip(user.asking) else { return };
        let (title, quality, epoch) = (user.title.clone(), user.quality, user.standing.epoch());
        let granted = self.guests.open(link, &title, quality).and_then(|session| {
            let granted = (session, quality);
            self.grant(link, request, &title, granted, epoch)
        });
        if let Some(user) = self.users.get_mut(&id) {
            user.asking = None;
            user.report_at = user.report_at.max(now);
            self.agenda.mark(id);
        }
        if let Err(why) = granted {
            self.depart(now, id);
            self.send(link, Message::Refused { request, why });
            self.event(Event::SessionRefused { link, title, why });
        }
    }

    /// To its clients the proxy is the one source of every layer they get; doors
    /// are its peers, and then the nodes.
    fn grant(
        &mut self,
        link: LinkId,
        request: u32,
        title: &TitleName,
        (session, quality): (SessionId, Quality),
        epoch: u64,
    ) -> Result<(), Refusal> {
        let own = self.own_address(link).ok_or(Refusal::Malformed)?;
        let shape = self.titles.shape(title).ok_or(Refusal::NoSuchTitle)?;
        let sources = |layer| LayerSources { layer, nodes: vec![own] };
        let (manifest_length, manifest_hash) = (shape.manifest_length, shape.manifest_hash);
        let opened = Opened {
            request,
            session,
            quality,
            manifest_length,
            manifest_hash,
            sources: Layer::first(quality.layers()).map(sources).collect(),
            backup: None,
            epoch,
            doors: self.doors_of(link, title),
        };
        self.send(link, Message::Opened(opened));
        let sessions = self.guests.session_count();
        self.event(Event::Opened { link, session, title: title.clone(), quality, sessions });
        Ok(())
    }

    fn doors_of(&self, link: LinkId, title: &TitleName) -> Vec<NodeAddress> {
        let user = self.users.values().find(|user| user.link == Some(link) && user.title == *title);
        let nodes = user.into_iter().flat_map(|user| {
            let home = user.standing.home().into_iter();
            home.chain(user.doors.known().iter().copied())
        });
        let mut doors = self.config.peers.clone();
        for door in nodes.filter_map(|node| self.lines.address(node)) {
            if !doors.contains(&door) {
                doors.push(door);
            }
        }
        doors.truncate(MAX_SOURCES);
        doors
    }

    pub(super) fn own_address(&self, link: LinkId) -> Option<NodeAddress> {
        let here = self.guests.link(link)?.here;
        Some(NodeAddress { peer: self.id, address: self.config.advertise.unwrap_or(here) })
    }

    fn refuse_session(&mut self, link: LinkId, open: &Open, why: Refusal) {
        self.send(link, Message::Refused { request: open.request, why });
        self.event(Event::SessionRefused { link, title: open.title.clone(), why });
    }

    pub(super) fn ask_for(
        &mut self,
        now: Time,
        link: LinkId,
        stream: StreamId,
        request: &StreamRequest,
        held: bool,
        length: u64,
    ) -> Result<(), Refusal> {
        self.while_serving()?;
        let chunk = match request {
            StreamRequest::Manifest(title) => {
                self.titles.shape(title).ok_or(Refusal::NoSuchTitle)?;
                self.guests.ask(link, stream, request)?;
                self.outputs.push_back(Output::Serve { stream });
                return Ok(());
            }
            StreamRequest::Chunk(chunk) => chunk,
        };
        let of = |user: &User| user.link == Some(link) && user.title == chunk.id.title;
        let role = self.guests.link(link).ok_or(Refusal::Malformed)?.hello.role;
        if role == Role::Proxy && !self.users.values().any(of) {
            return self.give_peer(link, stream, (chunk.part, length), held);
        }
        let shape = self.titles.shape(&chunk.id.title).ok_or(Refusal::NoSession)?;
        shape.check(chunk)?;
        self.guests.ask(link, stream, request)?;
        let asker = self.users.iter_mut().find(|(_, user)| of(user));
        let within = due_in(chunk);
        let (asker, ruling) = match asker {
            // Who copies has no line that is looked after.
            None => (None, Ruling::Given(Part::Whole)),
            Some((id, user)) => {
                let before = user.filter.target();
                let ruling = user.filter.rule(now, &chunk.id, length, within, shape);
                let after = user.filter.target();
                if before != after {
                    self.outputs.push_back(Output::Event(Event::Stepped { link, from: before, to: after }));
                }
                (Some(*id), ruling)
            }
        };
        let ruling = ruling.at_most(chunk.part);
        let half = shape.half_of(&chunk.id).filter(|_| ruling.part() == Some(Part::First));
        // One store and no second copy: here there is always the whole chunk.
        let started = match ruling {
            Ruling::LeftOut => Err(Refusal::Filtered),
            Ruling::Given(_) | Ruling::OnTrial(_) | Ruling::RestOnTrial => {
                self.provide(now, &chunk.id, (length, within), held, asker)
            }
        };
        if let Err(why) = started {
            self.guests.answered(stream);
            return Err(why);
        }
        let length = half.unwrap_or(length);
        self.advisor.counts.asked(held, length);
        if let Some(user) = asker.and_then(|id| self.users.get_mut(&id)) {
            user.filter.given(now, stream, &chunk.id, (length, within), (held, ruling));
        }
        self.outputs.push_back(ruling.output(stream));
        Ok(())
    }

    /// Takes care that a chunk comes, if it is not here: the mind plans its block
    /// when Base is asked for, and is asked again about what it did not plan.
    fn provide(
        &mut self,
        now: Time,
        chunk: &ChunkId,
        (length, within): (u64, Span),
        held: bool,
        asker: Option<UserId>,
    ) -> Result<(), Refusal> {
        let mut filled = held || self.fills.is_under_way(chunk);
        let mut advice = None;
        if let Some(id) = asker
            && (chunk.layer == Layer::BASE || !filled)
        {
            if !filled {
                self.missing(now, chunk);
            }
            let target = self.users.get(&id).map_or(Quality::NONE, |user| user.filter.target().quality);
            let quality = target.max(Quality(chunk.layer.0.saturating_add(1)));
            advice = self.consult(now, id, chunk, quality, within);
            filled = held || self.fills.is_under_way(chunk);
        }
        let left_out = advice.is_some_and(|quality| !quality.includes(chunk.layer));
        if !filled && left_out && chunk.layer != Layer::BASE {
            return Err(Refusal::Filtered);
        }
        if !filled {
            self.start_fill(now, chunk, length, asker)?;
        }
        self.fills.want(chunk, now + within);
        self.make_urgent(chunk, asker, now + within);
        Ok(())
    }

    pub(super) fn answered(&mut self, now: Time, stream: StreamId, outcome: Outcome) {
        let Some(link) = self.guests.answered(stream) else { return };
        let whole = matches!(outcome, Outcome::Sent { .. });
        for user in self.users.values_mut().filter(|user| user.link == Some(link)) {
            let before = user.filter.target();
            user.filter.ended(now, stream, whole, self.titles.shape(&user.title));
            let after = user.filter.target();
            if before != after {
                self.outputs.push_back(Output::Event(Event::Stepped { link, from: before, to: after }));
            }
        }
        self.event(Event::Answered { link, stream, outcome });
    }

    pub(super) fn close(&mut self, now: Time, link: LinkId, session: SessionId) {
        if !self.guests.close(link, session) {
            return;
        }
        let of = |user: &User| user.link == Some(link) && user.session == session;
        let user = self.users.iter().find(|(_, user)| of(user)).map(|(id, _)| *id);
        if let Some(id) = user {
            self.depart(now, id);
        }
        self.event(Event::Closed { link, session });
    }

    pub(super) fn position(
        &mut self,
        now: Time,
        (link, id): (LinkId, UserId),
        (position, buffer): (Span, Span),
        paused: bool,
    ) {
        let Some(user) = self.users.get_mut(&id).filter(|user| user.link == Some(link)) else {
            return self.event(Event::Rejected { link, why: Refusal::NotServing });
        };
        user.progress.position = position;
        user.progress.started = true;
        (user.buffer, user.paused) = (buffer, paused);
        user.filter.told(now, buffer);
    }

    /// A connection is over. Who ended it by itself is done; who did not may come
    /// back within its lease.
    pub(super) fn client_gone(&mut self, now: Time, link: LinkId, parted: bool) {
        let users: Vec<UserId> =
            self.users.iter().filter(|(_, user)| user.link == Some(link)).map(|(id, _)| *id).collect();
        for id in users {
            let Some(user) = self.users.get_mut(&id) else { continue };
            user.filter.reconnected(now);
            if parted || user.asking.is_some() || self.drain != Drain::No {
                self.depart(now, id);
            } else {
                (user.link, user.until) = (None, Some(now + self.config.lease));
                self.agenda.mark(id);
            }
        }
    }
}

/// In how long a chunk's picture is shown, as far as its request tells.
fn due_in(chunk: &ChunkRequest) -> Span {
    let of_use = Span::from_millis(chunk.deadline_ms.into());
    let grace = if chunk.id.layer == Layer::BASE { BASE_GRACE } else { Span::ZERO };
    of_use.saturating_sub(grace)
}
