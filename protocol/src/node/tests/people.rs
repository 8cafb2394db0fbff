//! Viewers and operators as scripted ends: they go where they are sent, and
//! remember what they were told.

use super::rig::{End, Rig, ms, peer};
use crate::message::{ChunkRequest, Open, Progress, SessionId, Visit};
use crate::node::autonomy::{Sla, UserId};
use crate::node::*;
use crate::token::Claims;
use media::{ChunkId, Quality};
use std::collections::BTreeMap;

#[derive(Clone)]
pub(super) struct Person {
    pub(super) name: PeerId,
    pub(super) role: Role,
    pub(super) claims: Result<Claims, Refusal>,
    pub(super) quality: Quality,
    /// Whether its node still delivers when another one calls.
    pub(super) content: bool,
    /// Whether it has paused, and says so.
    pub(super) paused: bool,
    pub(super) links: BTreeMap<PeerId, LinkId>,
    pub(super) sessions: BTreeMap<PeerId, SessionId>,
    pub(super) base: Option<PeerId>,
    pub(super) backup: Option<PeerId>,
    pub(super) layers: BTreeMap<Layer, Option<PeerId>>,
    pub(super) epoch: u64,
    /// Everything heard, when and from whom.
    pub(super) heard: Vec<(Time, PeerId, Message)>,
    beats: bool,
}

impl Rig {
    /// Somebody who has not called anybody yet.
    pub(super) fn person(&mut self, user: UserId, role: Role) -> &mut Person {
        self.people.entry(user).or_insert_with(|| Person {
            name: peer(&format!("person-{}", user.0)),
            role,
            claims: Ok(Claims::NONE),
            quality: Quality::GOLD,
            content: false,
            paused: false,
            links: BTreeMap::new(),
            sessions: BTreeMap::new(),
            base: None,
            backup: None,
            layers: BTreeMap::new(),
            epoch: 0,
            heard: Vec::new(),
            beats: false,
        })
    }

    pub(super) fn vip(&mut self, user: UserId) {
        self.person(user, Role::Viewer).claims = Ok(Claims { sla: Sla::Vip, top: Quality::GOLD });
    }

    /// Says something to a node, which is called first if need be.
    pub(super) fn tell(&mut self, user: UserId, name: &str, message: &Message) {
        let name = peer(name);
        let link = self.people[&user].links.get(&name).copied().filter(|link| self.stands(*link));
        let Some(link) = link.or_else(|| self.call(user, name)) else { return };
        self.people.get_mut(&user).unwrap().links.insert(name, link);
        self.say(End::Person(user), link, message);
    }

    fn open(&mut self, user: UserId, name: &str, title: &str, visit: Visit) {
        let quality = self.person(user, Role::Viewer).quality;
        let person = &self.people[&user];
        let former = person.base.into_iter().chain(person.backup).collect();
        let open = Open { former, ..Open::new(1, title.parse().unwrap(), quality, user, visit) };
        self.tell(user, name, &Message::Open(open));
    }

    /// A viewer wants the film, beginning at this node.
    pub(super) fn seek(&mut self, user: UserId, name: &str) {
        self.seek_title(user, name, "film");
    }

    pub(super) fn seek_title(&mut self, user: UserId, name: &str, title: &str) {
        let epoch = self.person(user, Role::Viewer).epoch;
        let progress = Progress { started: epoch > 0, epoch, ..Progress::default() };
        self.open(user, name, title, Visit::Seek(progress));
        let person = self.people.get_mut(&user).unwrap();
        if !std::mem::replace(&mut person.beats, true) {
            self.beat(user);
        }
    }

    pub(super) fn attach(&mut self, user: UserId, name: &str) {
        self.open(user, name, "film", Visit::Attach);
    }

    pub(super) fn copy(&mut self, user: UserId, name: &str) {
        self.open(user, name, "film", Visit::Copy);
    }

    pub(super) fn beats(&mut self, user: UserId) {
        let person = &self.people[&user];
        if !person.beats {
            return;
        }
        let link = person.base.and_then(|base| person.links.get(&base)).copied();
        if let Some(link) = link {
            let paused = person.paused;
            let position = Message::Position { user, position: ms(1000), buffer: ms(1000), paused };
            self.say(End::Person(user), link, &position);
        }
        self.beat(user);
    }

    /// The viewer is done, and says so.
    pub(super) fn leave(&mut self, user: UserId) {
        let (base, sessions) = (self.base_of(user).to_owned(), self.people[&user].sessions.clone());
        self.tell(user, &base, &Message::Close(sessions[&peer(&base)]));
        self.people.get_mut(&user).unwrap().beats = false;
        self.run(ms(20));
        self.hang_up(user, true);
    }

    /// The viewer is gone from one moment to the next.
    pub(super) fn vanish(&mut self, user: UserId) {
        self.people.get_mut(&user).unwrap().beats = false;
        self.hang_up(user, false);
    }

    /// What becomes of a request for a chunk.
    pub(super) fn chunk(&mut self, user: UserId, name: &str, layer: Layer) -> Result<(), Refusal> {
        self.chunk_of(user, name, layer, 1)
    }

    pub(super) fn chunk_of(
        &mut self,
        user: UserId,
        name: &str,
        layer: Layer,
        block: u32,
    ) -> Result<(), Refusal> {
        let id = ChunkId { title: "film".parse().unwrap(), block, layer };
        let link = self.people[&user].links[&peer(name)];
        self.ask(link, StreamRequest::Chunk(ChunkRequest::whole(id, 100)))
    }

    pub(super) fn base_of(&self, user: UserId) -> &str {
        self.people[&user].base.as_ref().map_or("nobody", PeerId::as_str)
    }

    pub(super) fn backup_of(&self, user: UserId) -> &str {
        self.people[&user].backup.as_ref().map_or("nobody", PeerId::as_str)
    }

    pub(super) fn layer_of(&self, user: UserId, layer: Layer) -> &str {
        let node = self.people[&user].layers.get(&layer);
        node.and_then(Option::as_ref).map_or("nobody", PeerId::as_str)
    }

    pub(super) fn refusals(&self, user: UserId) -> Vec<Refusal> {
        let why = |(_, _, message): &(Time, PeerId, Message)| match message {
            Message::Refused { why, .. } => Some(*why),
            _ => None,
        };
        self.people[&user].heard.iter().filter_map(why).collect()
    }

    /// When a delivery start was heard, and from whom.
    pub(super) fn starts(&self, user: UserId) -> Vec<(Time, &str)> {
        let start = |(at, from, message): &'_ (Time, PeerId, Message)| match message {
            Message::DeliveryStart { .. } => Some((*at, *from)),
            _ => None,
        };
        let all = self.people[&user].heard.iter();
        all.filter_map(|line| start(line).map(|(at, _)| (at, line.1.as_str()))).collect()
    }

    /// A node tells a person something.
    pub(super) fn tells(&mut self, user: UserId, from: PeerId, message: Message) {
        let now = self.now;
        let person = self.people.get_mut(&user).unwrap();
        person.heard.push((now, from, message.clone()));
        let mut go = Vec::new();
        match message {
            Message::Opened(opened) => {
                person.sessions.insert(from, opened.session);
                if !opened.sources.is_empty() {
                    person.base = Some(from);
                    person.epoch = opened.epoch;
                    for source in opened.sources.into_iter().filter(|source| source.layer > Layer::BASE) {
                        let node = source.nodes.first().map(|node| node.peer);
                        go.extend(node);
                        person.layers.insert(source.layer, node);
                    }
                    if let Some(backup) = opened.backup {
                        person.backup = Some(backup.peer);
                        go.push(backup.peer);
                    }
                }
            }
            Message::Elsewhere { base, .. } => go.push(base.peer),
            Message::BackupIs { backup, .. } => {
                person.backup = Some(backup.peer);
                go.push(backup.peer);
            }
            Message::DeliveryStart { epoch, .. } if person.content => {
                self.tell(user, from.as_str(), &Message::StillServed { user, epoch });
            }
            Message::DeliveryStart { epoch, .. } if epoch > person.epoch => {
                (person.base, person.backup, person.epoch) = (Some(from), None, epoch);
            }
            Message::LayerAt { layer, node, .. } => {
                let node = node.map(|node| node.peer);
                person.layers.insert(layer, node);
                go.extend(node);
            }
            _ => {}
        }
        for name in go.into_iter().filter(|name| *name != from) {
            self.attach(user, name.as_str());
        }
    }
}
