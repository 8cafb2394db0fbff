//! A thin proxy as a pure machine: who may open a session, which chunk goes to
//! whom, and from which node it is fetched. Drivers carry the bytes.
//!
//! A chunk that nobody holds is fetched once, whoever and however many ask for
//! it, and the fetching goes on if the first one to ask loses interest. Each
//! client gets the layers of its own quality and no others.

mod config;
mod fills;
mod io;
mod titles;

pub use config::{ProxyConfig, Upstream};
pub use io::{Event, FillFailure, Input, Outcome, Output};
pub use titles::Shape;

use crate::guests::{Guests, LinkId, StreamId};
use crate::message::{
    Hello, LayerSources, Message, NodeAddress, Open, Opened, PROTOCOL_VERSION, Refusal, Role, StreamRequest,
};
use crate::peer::PeerId;
use fills::Fills;
use media::{ChunkId, Layer, Time, TitleName, TitleSummary};
use std::collections::VecDeque;
use titles::Titles;

/// The machine of one proxy.
#[derive(Clone, Debug)]
pub struct Proxy {
    id: PeerId,
    config: ProxyConfig,
    guests: Guests,
    titles: Titles,
    fills: Fills,
    /// Who waits for the list of titles.
    curious: Vec<LinkId>,
    drain: Drain,
    outputs: VecDeque<Output>,
}

/// Whether the proxy is about to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Drain {
    No,
    Until(Time),
    Done,
}

impl Proxy {
    /// A proxy that knows no title yet. `seed` is for decisions by lot, of which
    /// there are none so far.
    pub fn new(_now: Time, id: PeerId, config: ProxyConfig, _seed: u64) -> Self {
        Self {
            id,
            guests: Guests::new(config.guests),
            titles: Titles::default(),
            fills: Fills::default(),
            curious: Vec::new(),
            drain: Drain::No,
            outputs: VecDeque::new(),
            config,
        }
    }

    /// The only way in.
    pub fn handle_input(&mut self, now: Time, input: Input) {
        match input {
            Input::Linked { link, hello, here } => {
                let welcome = self.while_serving().and_then(|()| self.guests.arrive(link, hello, here));
                self.greet(link, hello, welcome);
            }
            Input::Heard { link, message } => self.hear(now, link, message),
            Input::Gone { link } => {
                let sessions = self.guests.leave(link).len();
                self.titles.forget_asker(link);
                self.curious.retain(|other| *other != link);
                self.event(Event::Left { link, sessions });
            }
            Input::Asked { link, stream, request, held, length } => {
                if let Err(why) = self.ask(now, link, stream, &request, held, length) {
                    self.outputs.push_back(Output::Refuse { stream, why });
                    self.event(Event::RequestRefused { link, request, why });
                }
            }
            Input::Answered { stream, outcome } => {
                if let Some(link) = self.guests.answered(stream) {
                    self.event(Event::Answered { link, stream, outcome });
                }
            }
            Input::Learnt { title, shape } => self.learnt(now, &title, shape),
            Input::Listed(titles) => self.listed(titles),
            Input::Filled { chunk } => {
                if self.fills.done(&chunk) {
                    self.event(Event::Filled { chunk });
                }
            }
            Input::FillFailed { chunk, why } => self.fill_failed(now, &chunk, why),
            Input::Drain => self.start_to_drain(now),
            Input::Timeout => {}
        }
        self.end_of_drain(now);
    }

    /// Drain this to nothing after every input.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to come back with [`Input::Timeout`].
    pub fn poll_timeout(&self) -> Option<Time> {
        match self.drain {
            Drain::Until(end) => Some(end),
            Drain::No | Drain::Done => None,
        }
    }

    fn event(&mut self, event: Event) {
        self.outputs.push_back(Output::Event(event));
    }

    fn send(&mut self, link: LinkId, message: Message) {
        self.outputs.push_back(Output::Send { link, message });
    }

    fn while_serving(&self) -> Result<(), Refusal> {
        if self.drain == Drain::No { Ok(()) } else { Err(Refusal::Draining) }
    }

    fn greet(&mut self, link: LinkId, hello: Hello, welcome: Result<(), Refusal>) {
        match welcome {
            Ok(()) => {
                let own = Hello { version: PROTOCOL_VERSION, peer: self.id, role: Role::Proxy };
                self.send(link, Message::Hello(own));
                self.event(Event::Joined { link, peer: hello.peer, role: hello.role });
            }
            Err(why) => {
                self.send(link, Message::Refused { request: 0, why });
                self.outputs.push_back(Output::Part { link });
                self.event(Event::TurnedAway { link, peer: hello.peer, why });
            }
        }
    }

    fn hear(&mut self, now: Time, link: LinkId, message: Message) {
        if self.guests.link(link).is_none() {
            return;
        }
        match message {
            Message::ListTitles => {
                if self.curious.is_empty() {
                    self.outputs.push_back(Output::List { upstream: self.config.upstream.clone() });
                }
                // One answer is enough for everything a link asks meanwhile.
                if !self.curious.contains(&link) {
                    self.curious.push(link);
                }
            }
            Message::Open(open) => self.open(now, link, open),
            Message::Close(session) => {
                if self.guests.close(link, session) {
                    self.event(Event::Closed { link, session });
                }
            }
            Message::Probe(number) => self.send(link, Message::Alive(number)),
            Message::Hello(_)
            | Message::Titles(_)
            | Message::Opened(_)
            | Message::Refused { .. }
            | Message::Alive(_)
            | Message::Draining
            | Message::Agent(_)
            | Message::BackupIs { .. }
            | Message::DeliveryStart { .. }
            | Message::StillServed { .. }
            | Message::Contacts(_)
            | Message::Elsewhere { .. }
            | Message::LayerAt { .. }
            | Message::Position { .. }
            | Message::Publish { .. }
            | Message::Unpublish { .. }
            | Message::Done { .. }
            | Message::AskStatus
            | Message::Status(_)
            | Message::Neighbour(_) => self.event(Event::Rejected { link, why: Refusal::Malformed }),
        }
    }

    /// Opens a session at once if the title is known, or as soon as it is.
    fn open(&mut self, now: Time, link: LinkId, open: Open) {
        if let Err(why) = self.while_serving() {
            self.refuse_session(link, &open, why);
        } else if self.titles.is_fresh(now, &open.title, self.config.fresh) {
            self.answer_open(link, &open);
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

    fn learnt(&mut self, now: Time, title: &TitleName, shape: Result<Shape, Refusal>) {
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
            self.outputs.push_back(Output::Forget { title });
        }
        for (link, open) in waiting {
            match refusal {
                None => self.answer_open(link, &open),
                Some(why) => self.refuse_session(link, &open, why),
            }
        }
    }

    fn answer_open(&mut self, link: LinkId, open: &Open) {
        match self.grant_session(link, open) {
            Ok(opened) => {
                let (session, quality) = (opened.session, opened.quality);
                self.send(link, Message::Opened(opened));
                let sessions = self.guests.session_count();
                self.event(Event::Opened { link, session, title: open.title.clone(), quality, sessions });
            }
            Err(why) => self.refuse_session(link, open, why),
        }
    }

    /// To its clients the proxy is the one source of every layer they get.
    fn grant_session(&mut self, link: LinkId, open: &Open) -> Result<Opened, Refusal> {
        let here = self.guests.link(link).ok_or(Refusal::Malformed)?.here;
        let shape = self.titles.shape(&open.title).ok_or(Refusal::NoSuchTitle)?;
        let quality = open.quality.min(shape.top_quality()).min(self.config.top);
        let own = NodeAddress { peer: self.id, address: self.config.advertise.unwrap_or(here) };
        let sources = |layer| LayerSources { layer, nodes: vec![own] };
        let (manifest_length, manifest_hash) = (shape.manifest_length, shape.manifest_hash);
        let session = self.guests.open(link, &open.title, quality)?;
        Ok(Opened {
            request: open.request,
            session,
            quality,
            manifest_length,
            manifest_hash,
            sources: Layer::first(quality.layers()).map(sources).collect(),
            backup: None,
            epoch: 0,
            doors: Vec::new(),
        })
    }

    fn refuse_session(&mut self, link: LinkId, open: &Open, why: Refusal) {
        self.send(link, Message::Refused { request: open.request, why });
        self.event(Event::SessionRefused { link, title: open.title.clone(), why });
    }

    fn listed(&mut self, titles: Result<Vec<TitleSummary>, Refusal>) {
        let answer = match titles {
            Ok(titles) => Message::Titles(titles),
            Err(why) => Message::Refused { request: 0, why },
        };
        for link in std::mem::take(&mut self.curious) {
            self.send(link, answer.clone());
        }
    }

    fn ask(
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
                None
            }
            StreamRequest::Chunk(chunk) => {
                let shape = self.titles.shape(&chunk.id.title).ok_or(Refusal::NoSession)?;
                shape.check(&chunk.id)?;
                Some(&chunk.id)
            }
        };
        self.guests.ask(link, stream, request)?;
        if let Some(chunk) = chunk.filter(|chunk| !held && !self.fills.is_under_way(chunk))
            && let Err(why) = self.start_fill(now, chunk, length)
        {
            self.guests.answered(stream);
            return Err(why);
        }
        self.outputs.push_back(Output::Serve { stream });
        Ok(())
    }

    fn start_fill(&mut self, now: Time, chunk: &ChunkId, length: u64) -> Result<(), Refusal> {
        let shape = self.titles.shape(&chunk.title).ok_or(Refusal::NoSession)?;
        let sources = shape.sources(chunk.layer);
        let from = self.fills.start(now, chunk, length, sources, &self.config)?;
        self.outputs.push_back(Output::Fill { chunk: chunk.clone(), from });
        self.event(Event::Filling { chunk: chunk.clone(), from });
        Ok(())
    }

    fn fill_failed(&mut self, now: Time, chunk: &ChunkId, why: FillFailure) {
        let sources = self.titles.shape(&chunk.title).map(|shape| shape.sources(chunk.layer));
        let Some((failed, next)) =
            self.fills.failed(now, chunk, why, sources.unwrap_or_default(), &self.config)
        else {
            return;
        };
        self.event(Event::FillFailed { chunk: chunk.clone(), from: failed, why });
        match next {
            Some(from) => {
                self.outputs.push_back(Output::Fill { chunk: chunk.clone(), from });
                self.event(Event::Filling { chunk: chunk.clone(), from });
            }
            None => self.outputs.push_back(Output::GiveUp { chunk: chunk.clone() }),
        }
    }

    fn start_to_drain(&mut self, now: Time) {
        if self.drain != Drain::No {
            return;
        }
        self.drain = Drain::Until(now + self.config.drain);
        let links: Vec<LinkId> = self.guests.links().collect();
        self.event(Event::Draining { links: links.len(), open: self.guests.open_requests() });
        for link in links {
            self.send(link, Message::Draining);
        }
    }

    fn end_of_drain(&mut self, now: Time) {
        if let Drain::Until(end) = self.drain {
            let unanswered = self.guests.open_requests();
            if unanswered == 0 || now >= end {
                self.drain = Drain::Done;
                self.event(Event::Drained { unanswered });
                let links: Vec<LinkId> = self.guests.links().collect();
                self.outputs.extend(links.into_iter().map(|link| Output::Part { link }));
                self.outputs.push_back(Output::Drained);
            }
        }
    }
}

#[cfg(test)]
mod tests;
