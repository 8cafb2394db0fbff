//! A node as a pure machine: who may open a session, what is granted, what is
//! refused and by which name. Drivers carry the bytes.
//!
//! One input, drain the outputs, then wait. Who stands behind whom is static
//! here, from the configuration; how nodes settle it among themselves is the
//! machine beside this one, [`autonomy`].

pub mod autonomy;
mod config;
mod io;
mod shelf;

pub use config::NodeConfig;
pub use io::{Event, Input, Outcome, Output};
pub use shelf::Held;

use crate::guests::{Guests, LinkId, StreamId};
use crate::message::{
    Hello, LayerSources, Message, NodeAddress, Open, Opened, PROTOCOL_VERSION, Refusal, Role, StreamRequest,
};
use crate::peer::PeerId;
use media::{Layer, Time};
use shelf::Shelf;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// The machine of one node.
#[derive(Clone, Debug)]
pub struct Node {
    id: PeerId,
    config: NodeConfig,
    guests: Guests,
    shelf: Shelf,
    drain: Drain,
    outputs: VecDeque<Output>,
}

/// Whether the node is about to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Drain {
    No,
    Until(Time),
    Done,
}

impl Node {
    /// A node that holds nothing yet. `seed` is for decisions by lot, of which
    /// there are none so far.
    pub fn new(_now: Time, id: PeerId, config: NodeConfig, _seed: u64) -> Self {
        let guests = Guests::new(config.guests);
        Self { id, config, guests, shelf: Shelf::default(), drain: Drain::No, outputs: VecDeque::new() }
    }

    /// The only way in.
    pub fn handle_input(&mut self, now: Time, input: Input) {
        match input {
            Input::Linked { link, hello, here } => self.greet(link, hello, here),
            Input::Heard { link, message } => self.hear(link, message),
            Input::Gone { link } => {
                let sessions = self.guests.leave(link).len();
                self.event(Event::Left { link, sessions });
            }
            Input::Shelf(held) => self.shelf.replace(held, self.config.max_titles),
            Input::Asked { link, stream, request } => self.ask(link, stream, request),
            Input::Answered { stream, outcome } => self.answered(stream, outcome),
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

    fn greet(&mut self, link: LinkId, hello: Hello, here: SocketAddr) {
        let welcome = match self.drain {
            Drain::No => self.guests.arrive(link, hello, here),
            Drain::Until(_) | Drain::Done => Err(Refusal::Draining),
        };
        match welcome {
            Ok(()) => {
                let own = Hello { version: PROTOCOL_VERSION, peer: self.id, role: Role::Node };
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

    fn hear(&mut self, link: LinkId, message: Message) {
        if self.guests.link(link).is_none() {
            return;
        }
        match message {
            Message::ListTitles => {
                let titles = self.shelf.summaries();
                self.send(link, Message::Titles(titles));
            }
            Message::Open(open) => self.open(link, open),
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
            | Message::Status(_) => self.event(Event::Rejected { link, why: Refusal::Malformed }),
        }
    }

    fn open(&mut self, link: LinkId, open: Open) {
        match self.grant_session(link, &open) {
            Ok(opened) => {
                let (session, quality) = (opened.session, opened.quality);
                self.send(link, Message::Opened(opened));
                let sessions = self.guests.session_count();
                self.event(Event::Opened { link, session, title: open.title, quality, sessions });
            }
            Err(why) => {
                self.send(link, Message::Refused { request: open.request, why });
                self.event(Event::SessionRefused { link, title: open.title, why });
            }
        }
    }

    fn grant_session(&mut self, link: LinkId, open: &Open) -> Result<Opened, Refusal> {
        if self.drain != Drain::No {
            return Err(Refusal::Draining);
        }
        let here = self.guests.link(link).ok_or(Refusal::Malformed)?.here;
        let held = self.shelf.title(&open.title)?;
        let (manifest_length, manifest_hash) = (held.manifest_length, held.manifest_hash);
        let quality = open.quality.min(held.top_quality());
        let sources = Layer::first(quality.layers()).map(|layer| self.sources(layer, held, here)).collect();
        let session = self.guests.open(link, &open.title, quality)?;
        Ok(Opened {
            request: open.request,
            session,
            quality,
            manifest_length,
            manifest_hash,
            sources,
            backup: self.config.backup,
            epoch: 0,
            doors: Vec::new(),
        })
    }

    /// Who serves a layer: as configured, and this node before all others where
    /// it offers the layer and the configuration does not place it.
    fn sources(&self, layer: Layer, held: &Held, here: SocketAddr) -> LayerSources {
        let configured = self.config.sources.iter().filter(|sources| sources.layer == layer);
        let mut nodes: Vec<NodeAddress> = configured.flat_map(|sources| sources.nodes.clone()).collect();
        let placed = nodes.iter().any(|node| node.peer == self.id);
        if !placed && self.config.offers(layer) && held.has(layer) {
            nodes.insert(0, NodeAddress { peer: self.id, address: self.config.advertise.unwrap_or(here) });
        }
        nodes.truncate(crate::message::MAX_SOURCES);
        LayerSources { layer, nodes }
    }

    fn ask(&mut self, link: LinkId, stream: StreamId, request: StreamRequest) {
        match self.grant(link, stream, &request) {
            Ok(()) => self.outputs.push_back(Output::Grant { stream, request }),
            Err(why) => {
                self.outputs.push_back(Output::Refuse { stream, why });
                self.event(Event::RequestRefused { link, request, why });
            }
        }
    }

    fn grant(&mut self, link: LinkId, stream: StreamId, request: &StreamRequest) -> Result<(), Refusal> {
        if self.drain != Drain::No {
            return Err(Refusal::Draining);
        }
        match request {
            StreamRequest::Manifest(title) => {
                self.shelf.title(title)?;
            }
            StreamRequest::Chunk(chunk) => {
                let held = self.shelf.title(&chunk.id.title)?;
                if chunk.id.block >= held.blocks || !held.top_quality().includes(chunk.id.layer) {
                    return Err(Refusal::NoSuchChunk);
                }
                if !self.config.offers(chunk.id.layer) || !held.has(chunk.id.layer) {
                    return Err(Refusal::LayerNotOffered);
                }
            }
        }
        self.guests.ask(link, stream, request)
    }

    fn answered(&mut self, stream: StreamId, outcome: Outcome) {
        let Some(link) = self.guests.answered(stream) else { return };
        match outcome {
            Outcome::Sent { bytes } => self.event(Event::Sent { link, stream, bytes }),
            Outcome::GivenUp => self.event(Event::GivenUp { link, stream }),
            Outcome::Damaged => self.event(Event::Damaged { link, stream }),
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

    /// What is open may finish, but not for ever.
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
