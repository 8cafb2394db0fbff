//! A thin proxy as a pure machine: who may open a session, which chunk goes to
//! whom, and from which node it is fetched. Drivers carry the bytes.
//!
//! A chunk that nobody holds is fetched once, whoever and however many ask for
//! it, and the fetching goes on if the first one to ask loses interest. Each
//! client gets the layers of its own quality and no others.

mod account;
mod advice;
mod agenda;
mod block_table;
mod cache_table;
mod clients;
mod config;
pub mod cooperation;
mod errand;
mod fills;
mod filter;
mod flows;
mod hearing;
mod hedging;
mod insistence;
mod io;
mod lanes;
mod lines;
mod peers;
mod plans;
mod prefetch;
mod refill;
mod remote_table;
mod replacement;
mod retrieval;
mod sessions;
mod talk;
mod titles;
mod users;
mod window;

pub use block_table::BlockTable;
pub use config::{ProxyConfig, Upstream};
pub use insistence::Insistence;
pub use io::{Event, FillFailure, Input, NotKept, Outcome, Output};
pub use prefetch::SessionQueue;
pub use talk::{BlockRange, MAX_ASKED_BLOCKS, MAX_RANGES, MAX_RUNS, QualityRun, Query, Reply};
pub use titles::{Pace, Shape};

use crate::guests::{Guests, LinkId};
use crate::message::{Hello, Message, PROTOCOL_VERSION, Refusal, Role};
use crate::node::autonomy::UserId;
use crate::peer::PeerId;
use advice::Advisor;
use agenda::Agenda;
use fills::Fills;
use lines::{Lines, NodeId};
use media::{Span, Time, TitleSummary};
use std::collections::{BTreeMap, VecDeque};
use titles::Titles;
use users::Users;

/// The numbers of requests that the machine itself makes upstream; those below are
/// the driver's.
pub const OWN_REQUESTS: u32 = 1 << 31;
/// How often it is looked how much a busy client took.
const MEASURE: Span = Span::from_millis(100);

/// The machine of one proxy.
#[derive(Clone, Debug)]
pub struct Proxy {
    id: PeerId,
    config: ProxyConfig,
    guests: Guests,
    titles: Titles,
    fills: Fills,
    advisor: Advisor,
    users: Users,
    agenda: Agenda,
    lines: Lines,
    /// Requests upstream that are not answered: for whom, and of whom.
    awaited: BTreeMap<u32, (UserId, NodeId)>,
    next_request: u32,
    /// Whether anything happened that may have consequences upstream, beside what the
    /// agenda says of users.
    changed: bool,
    /// When something upstream is due.
    due: Option<Time>,
    /// When it is looked again how much the clients took.
    measure: Option<Time>,
    /// Who waits for the list of titles.
    curious: Vec<LinkId>,
    born: Time,
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
    pub fn new(now: Time, id: PeerId, config: ProxyConfig, _seed: u64) -> Self {
        let mut proxy = Self {
            id,
            guests: Guests::new(config.guests),
            titles: Titles::default(),
            fills: Fills::default(),
            advisor: Advisor::new(config.cooperation),
            users: Users::new(),
            agenda: Agenda::default(),
            lines: Lines::default(),
            awaited: BTreeMap::new(),
            next_request: OWN_REQUESTS,
            changed: false,
            due: None,
            measure: None,
            curious: Vec::new(),
            born: now,
            drain: Drain::No,
            outputs: VecDeque::new(),
            config,
        };
        proxy.meet_peers(now);
        proxy
    }

    /// The only way in.
    pub fn handle_input(&mut self, now: Time, input: Input) {
        match input {
            Input::Linked { link, hello, here } => {
                let welcome = self.while_serving().and_then(|()| self.guests.arrive(link, hello, here));
                self.greet(link, hello, welcome);
            }
            Input::Heard { link, message } => self.hear(now, link, message),
            Input::Gone { link, parted } => {
                let sessions = self.guests.leave(link).len();
                self.titles.forget_asker(link);
                self.curious.retain(|other| *other != link);
                self.client_gone(now, link, parted);
                self.event(Event::Left { link, sessions });
            }
            Input::Taken { link, bytes } => {
                for user in self.users.values_mut().filter(|user| user.link == Some(link)) {
                    user.filter.taken(now, bytes);
                }
            }
            Input::Reached { address, peer, round_trip } => self.reached(now, address, peer, round_trip),
            Input::Unreached { address } => self.unreached(now, address),
            Input::Told { address, message } => self.hear_upstream(now, address, message),
            Input::HeardFrom { address } => {
                if let Some(node) = self.lines.find(address) {
                    self.heard_upstream(now, node);
                }
            }
            Input::Asked { link, stream, request, held, length } => {
                if let Err(why) = self.ask_for(now, link, stream, &request, held, length) {
                    self.outputs.push_back(Output::Refuse { stream, why });
                    self.event(Event::RequestRefused { link, request, why });
                }
            }
            Input::Answered { stream, outcome } => self.answered(now, stream, outcome),
            Input::Learnt { title, shape, kept } => self.learnt(now, &title, shape, &kept),
            Input::Restored { title, shape, kept } => self.teach(now, &title, &shape, &kept),
            Input::Came { chunk, bytes } => self.came(now, &chunk, bytes),
            Input::NotKept { chunk } => self.not_kept(now, &chunk),
            Input::Listed(titles) => self.listed(titles),
            Input::Filled { chunk } => self.filled(now, &chunk),
            Input::FillFailed { chunk, from, why } => self.fill_failed(now, &chunk, from, why),
            Input::Drain => self.start_to_drain(now),
            Input::Timeout => {}
        }
        if self.advisor.mind.poll_timeout().is_some_and(|when| when <= now) {
            self.think(now, cooperation::Input::Timeout);
        }
        self.tend(now);
        self.ask_in_turn(now);
        let busy = self.users.values().any(|user| user.filter.is_busy());
        self.measure = busy.then(|| self.measure.filter(|when| *when > now).unwrap_or(now + MEASURE));
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
            Drain::No => None,
            Drain::Done => return None,
        };
        [drain, self.due, self.measure, self.advisor.mind.poll_timeout()].into_iter().flatten().min()
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
            Message::Close(session) => self.close(now, link, session),
            Message::Position { user, position, buffer, paused } => {
                self.position(now, (link, user), (position, buffer), paused);
            }
            Message::Query(query) => self.queried(now, link, query),
            Message::AskStatus => self.tell_status(now, link),
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
            | Message::Publish { .. }
            | Message::Unpublish { .. }
            | Message::Done { .. }
            | Message::Status(_)
            | Message::Neighbour(_)
            | Message::Reply(_)
            | Message::ProxyStatus(_) => self.event(Event::Rejected { link, why: Refusal::Malformed }),
        }
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
