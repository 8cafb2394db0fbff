//! A node as a pure machine: who may open a session, what is granted, what is
//! refused and by which name, and what it does in the network of nodes. Drivers
//! carry the bytes.
//!
//! One input, drain the outputs, then wait. Who stores what, who serves whom and
//! who stands behind whom is settled by [`autonomy`]; this machine gives it its
//! neighbours and its viewers, and says what it wants said.

mod archive;
pub mod autonomy;
mod book;
pub mod classes;
mod config;
mod copies;
mod io;
mod lengths;
mod mesh;
mod network;
mod operator;
mod pace;
mod service;
mod shelf;
mod slots;
mod viewers;

pub use config::NodeConfig;
pub use io::{Event, Input, Outcome, Output, Traveller};
pub use lengths::ChunkLengths;
pub use mesh::Door;
pub use shelf::Held;

use crate::guests::{Guests, LinkId, StreamId};
use crate::message::{Hello, Message, PROTOCOL_VERSION, Refusal, Role, StreamRequest};
use crate::peer::PeerId;
use archive::Archive;
use autonomy::{Autonomy, AutonomyConfig};
use book::Book;
use copies::Fetching;
use media::{Hash, Layer, Span, Time, TitleName};
use mesh::Mesh;
use shelf::Shelf;
use slots::Slots;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use viewers::Viewers;

/// The machine of one node.
#[derive(Clone, Debug)]
pub struct Node {
    id: PeerId,
    config: NodeConfig,
    born: Time,
    guests: Guests,
    shelf: Shelf,
    viewers: Viewers,
    slots: Slots,
    book: Book,
    mesh: Mesh,
    autonomy: Autonomy,
    archive: Archive,
    /// Layers that are being copied, until the shelf shows them.
    fetching: BTreeMap<(TitleName, Layer), Fetching>,
    /// Layers that are being deleted, until the shelf shows it.
    leaving: BTreeSet<(TitleName, Layer)>,
    /// Titles that were withdrawn by order: not published again without one.
    withdrawn: BTreeSet<TitleName>,
    /// When neighbours thought dead are dialled again.
    recall: Option<Time>,
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
    /// A node that holds nothing and knows nobody yet. `seed` tells this life of
    /// the node from its earlier ones, and its beat from that of others.
    pub fn new(now: Time, id: PeerId, config: NodeConfig, seed: u64) -> Self {
        let rules = AutonomyConfig { since: config.since, ..config.autonomy };
        Self {
            id,
            born: now,
            guests: Guests::new(config.guests),
            shelf: Shelf::default(),
            viewers: Viewers::default(),
            slots: Slots::new(config.slot_rate, config.slot_burst, config.most_slots()),
            book: Book::new(id, config.autonomy.max_nodes),
            mesh: Mesh::new(config.redial),
            autonomy: Autonomy::new(now, id, config.level, rules, seed),
            archive: Archive::default(),
            fetching: BTreeMap::new(),
            leaving: BTreeSet::new(),
            withdrawn: config.withdrawn.iter().cloned().collect(),
            recall: None,
            drain: Drain::No,
            outputs: VecDeque::new(),
            config,
        }
    }

    /// The only way in.
    pub fn handle_input(&mut self, now: Time, input: Input) {
        match input {
            Input::Linked { link, hello, here } => self.greet(link, hello, here),
            Input::Reached { link, address, hello } => self.reached(link, address, hello),
            Input::Unreached { address } => self.unreached(now, address),
            Input::Heard { link, message, travel } => self.hear(now, link, message, travel),
            Input::Opens { link, open, claims } => self.opens(now, link, &open, claims),
            Input::Gone { link, parted } => self.gone(now, link, parted),
            Input::Shelf(held) => self.shelve(now, held),
            Input::Asked { link, stream, request } => self.ask(now, link, stream, request),
            Input::Answered { stream, outcome } => self.answered(stream, outcome),
            Input::Damaged { title, layer, version } => self.damaged(now, title, layer, version),
            Input::Looked { title, found } => self.looked(now, &title, *found),
            Input::Downloaded { title, whole } => self.downloaded(now, title, whole),
            Input::Drain => self.start_to_drain(now),
            Input::Timeout => {}
        }
        self.network_due(now);
        self.openings_due(now);
        self.slots_due(now);
        self.release_the_old();
        self.end_of_drain(now);
    }

    /// Drain this to nothing after every input.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to come back with [`Input::Timeout`].
    pub fn poll_timeout(&self) -> Option<Time> {
        let drain = match self.drain {
            Drain::Until(end) => Some(end),
            Drain::Done => return None,
            Drain::No => None,
        };
        let network = [self.autonomy.poll_timeout(), self.mesh.next(), self.recall];
        network.into_iter().chain([self.viewers.next(), self.slots.next(), drain]).flatten().min()
    }

    /// The part of the node that is the network's.
    pub fn autonomy(&self) -> &Autonomy {
        &self.autonomy
    }

    fn event(&mut self, event: Event) {
        self.outputs.push_back(Output::Event(event));
    }

    fn send(&mut self, link: LinkId, message: Message) {
        self.outputs.push_back(Output::Send { link, message });
    }

    fn greet(&mut self, link: LinkId, hello: Hello, here: SocketAddr) {
        let welcome = match self.drain {
            // It has dialled itself, or somebody has its name.
            _ if hello.role == Role::Node && hello.peer == self.id => Err(Refusal::Identity),
            Drain::No => self.guests.arrive(link, hello, here),
            Drain::Until(_) | Drain::Done => Err(Refusal::Draining),
        };
        match welcome {
            Ok(()) => {
                let own = Hello { version: PROTOCOL_VERSION, peer: self.id, role: Role::Node };
                self.send(link, Message::Hello(own));
                self.joined(link, hello);
            }
            Err(why) => {
                self.send(link, Message::Refused { request: 0, why });
                self.outputs.push_back(Output::Part { link });
                self.event(Event::TurnedAway { link, peer: hello.peer, why });
            }
        }
    }

    fn joined(&mut self, link: LinkId, hello: Hello) {
        self.event(Event::Joined { link, peer: hello.peer, role: hello.role });
        if hello.role == Role::Node {
            self.linked(link, hello.peer);
        }
    }

    fn hear(&mut self, now: Time, link: LinkId, message: Message, travel: Span) {
        let Some(hello) = self.guests.link(link).map(|guest| guest.hello) else { return };
        match message {
            Message::ListTitles => {
                let titles = self.shelf.summaries();
                self.send(link, Message::Titles(titles));
            }
            Message::Close(session) => self.close(now, link, session),
            Message::Probe(number) => self.send(link, Message::Alive(number)),
            Message::Position { user, position, buffer, paused } => {
                self.position(now, link, user, (position, buffer), paused);
            }
            Message::StillServed { user, epoch } => self.still_served(now, link, user, epoch),
            Message::Agent(agent) if hello.role == Role::Node => self.agent(now, hello.peer, agent, travel),
            Message::Contacts(contacts) if hello.role == Role::Node => {
                self.contacts(now, link, hello.peer, contacts);
            }
            Message::Neighbour(contact) if hello.role == Role::Node => {
                self.neighbour(now, link, hello.peer, contact, travel);
            }
            Message::Publish { request, title, copies, popularity } => {
                self.publish(now, link, hello, request, (&title, copies, popularity));
            }
            Message::Unpublish { request, title } => self.unpublish(now, link, hello, request, &title),
            Message::AskStatus => self.tell_status(now, link, hello.role),
            // What a node that was dialled says when it stops; the rest follows.
            Message::Draining if hello.role == Role::Node => {}
            Message::Hello(_)
            | Message::Open(_)
            | Message::Titles(_)
            | Message::Opened(_)
            | Message::Refused { .. }
            | Message::Alive(_)
            | Message::Draining
            | Message::Agent(_)
            | Message::BackupIs { .. }
            | Message::DeliveryStart { .. }
            | Message::Contacts(_)
            | Message::Elsewhere { .. }
            | Message::LayerAt { .. }
            | Message::Done { .. }
            | Message::Status(_)
            | Message::Neighbour(_)
            | Message::Query(_)
            | Message::Reply(_)
            | Message::ProxyStatus(_) => self.event(Event::Rejected { link, why: Refusal::Malformed }),
        }
    }

    fn gone(&mut self, now: Time, link: LinkId, parted: bool) {
        if let Some(guest) = self.guests.link(link).filter(|guest| guest.hello.role == Role::Node) {
            let peer = guest.hello.peer;
            self.unlinked(now, link, peer);
        }
        let sessions = self.guests.leave(link).len();
        self.slots.gone(link);
        self.viewers_gone(now, link, parted);
        self.event(Event::Left { link, sessions });
    }

    fn ask(&mut self, now: Time, link: LinkId, stream: StreamId, request: StreamRequest) {
        match self.grant(now, link, stream, &request) {
            Ok(version) => self.pace(now, link, stream, request, version),
            Err(why) => {
                self.outputs.push_back(Output::Refuse { stream, why });
                self.event(Event::RequestRefused { link, request, why });
            }
        }
    }

    fn grant(
        &mut self,
        now: Time,
        link: LinkId,
        stream: StreamId,
        request: &StreamRequest,
    ) -> Result<Hash, Refusal> {
        if self.drain != Drain::No {
            return Err(Refusal::Draining);
        }
        // Who began with a version that was replaced since goes on with it.
        let title = request.title();
        let held = self.shelf.watched(title, self.guests.version(link, title))?;
        let version = held.manifest_hash;
        match request {
            StreamRequest::Manifest(_) => {}
            StreamRequest::Chunk(chunk) => {
                if chunk.id.block >= held.blocks || !held.top_quality().includes(chunk.id.layer) {
                    return Err(Refusal::NoSuchChunk);
                }
                if !held.has(chunk.id.layer) {
                    return Err(Refusal::LayerNotOffered);
                }
                self.serves(now, link, &chunk.id)?;
                if self.config.archive_first && self.shelf.comes(title, version) {
                    return Err(Refusal::Coming);
                }
            }
        }
        self.guests.ask(link, stream, request)?;
        Ok(version)
    }

    fn answered(&mut self, stream: StreamId, outcome: Outcome) {
        self.slots.forget(stream);
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
        // Viewers first: they must know when their backup calls.
        for link in links {
            self.send(link, Message::Draining);
        }
        self.network(now, autonomy::AutonomyInput::Leave);
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
