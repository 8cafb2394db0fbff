//! Who is connected, with which sessions and how many open requests: the part
//! that a node and a proxy have in common.

use crate::message::{Hello, PROTOCOL_VERSION, Refusal, SessionId, StreamRequest};
use crate::node::autonomy::UserId;
use media::{Hash, Quality, TitleName};
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// A connection, numbered by whoever drives the machine; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct LinkId(pub u64);

/// A stream with one request on it, numbered by whoever drives the machine;
/// never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct StreamId(pub u64);

/// How many of each are let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuestLimits {
    /// Connections, with or without a session. 1 or more, default 1024.
    pub links: usize,
    /// Sessions altogether: the capacity. Default 200.
    pub sessions: usize,
    /// Sessions of one connection; a viewer needs one, a proxy one per title.
    /// Default 64.
    pub sessions_per_link: usize,
    /// Open requests of one session. Default 64, which is also the most streams
    /// that a connection may have.
    pub requests: usize,
}

impl Default for GuestLimits {
    fn default() -> Self {
        Self { links: 1024, sessions: 200, sessions_per_link: 64, requests: 64 }
    }
}

/// The book of guests.
#[derive(Clone, Debug)]
pub struct Guests {
    limits: GuestLimits,
    links: BTreeMap<LinkId, Link>,
    sessions: BTreeMap<SessionId, Session>,
    /// Whose request is on which stream.
    streams: BTreeMap<StreamId, (LinkId, Option<SessionId>)>,
    next_session: u64,
}

/// One connection.
#[derive(Clone, Debug)]
pub struct Link {
    /// What the peer said first.
    pub hello: Hello,
    /// This side's address as the peer sees it.
    pub here: SocketAddr,
    /// Open requests that need no session.
    open: usize,
}

/// One session.
#[derive(Clone, Debug)]
pub struct Session {
    /// Whose it is.
    pub link: LinkId,
    /// What is watched.
    pub title: TitleName,
    /// The best quality granted.
    pub quality: Quality,
    /// BLAKE3 of the manifest that its owner was told of.
    pub version: Option<Hash>,
    /// For which user, where one connection speaks for many.
    pub user: Option<UserId>,
    open: usize,
}

impl Guests {
    /// An empty book.
    pub fn new(limits: GuestLimits) -> Self {
        Self {
            limits,
            links: BTreeMap::new(),
            sessions: BTreeMap::new(),
            streams: BTreeMap::new(),
            next_session: 1,
        }
    }

    /// Somebody connects.
    ///
    /// # Errors
    /// Another version, or too many connections; the link is not kept.
    pub fn arrive(&mut self, link: LinkId, hello: Hello, here: SocketAddr) -> Result<(), Refusal> {
        if hello.version != PROTOCOL_VERSION {
            return Err(Refusal::Version);
        }
        if self.links.len() >= self.limits.links {
            return Err(Refusal::Full);
        }
        self.links.insert(link, Link { hello, here, open: 0 });
        Ok(())
    }

    /// A connection is over, with its sessions and requests. The sessions that
    /// ended with it.
    pub fn leave(&mut self, link: LinkId) -> Vec<SessionId> {
        self.links.remove(&link);
        self.streams.retain(|_, (owner, _)| *owner != link);
        let of_link = |(id, session): (&SessionId, &Session)| (session.link == link).then_some(*id);
        let ended: Vec<SessionId> = self.sessions.iter().filter_map(of_link).collect();
        for session in &ended {
            self.sessions.remove(session);
        }
        ended
    }

    /// Opens a session, or changes the quality of the one that this connection
    /// has for this title.
    ///
    /// # Errors
    /// [`Refusal::Full`] if the capacity, or what one connection may have of it,
    /// is used up.
    pub fn open(&mut self, link: LinkId, title: &TitleName, quality: Quality) -> Result<SessionId, Refusal> {
        self.open_for(link, title, quality, None)
    }

    /// The same for one of the users that this connection speaks for: each has a
    /// session of its own, and only the capacity bounds their number.
    ///
    /// # Errors
    /// As [`Guests::open`].
    pub fn open_for(
        &mut self,
        link: LinkId,
        title: &TitleName,
        quality: Quality,
        user: Option<UserId>,
    ) -> Result<SessionId, Refusal> {
        if !self.links.contains_key(&link) {
            return Err(Refusal::Malformed);
        }
        let same =
            |session: &Session| session.link == link && session.title == *title && session.user == user;
        if let Some((id, session)) = self.sessions.iter_mut().find(|(_, session)| same(session)) {
            session.quality = quality;
            return Ok(*id);
        }
        let own = self.sessions.values().filter(|session| session.link == link && session.user.is_none());
        let crowded = user.is_none() && own.count() >= self.limits.sessions_per_link;
        if self.sessions.len() >= self.limits.sessions || crowded {
            return Err(Refusal::Full);
        }
        let id = SessionId(self.next_session);
        self.next_session = self.next_session.saturating_add(1);
        let session = Session { link, title: title.clone(), quality, version: None, user, open: 0 };
        self.sessions.insert(id, session);
        Ok(id)
    }

    /// The session is about this version of its title from now on.
    pub fn is_about(&mut self, id: SessionId, version: Hash) {
        if let Some(session) = self.sessions.get_mut(&id) {
            session.version = Some(version);
        }
    }

    /// Which version of a title the session of this connection is about.
    pub fn version(&self, link: LinkId, title: &TitleName) -> Option<Hash> {
        let mut own = self.sessions.values().filter(|session| session.link == link);
        own.find(|session| session.title == *title)?.version
    }

    /// Whether anybody has a session for this version of a title.
    pub fn watch_version(&self, title: &TitleName, version: Hash) -> bool {
        let of = |session: &Session| session.version == Some(version) && session.title == *title;
        self.sessions.values().any(of)
    }

    /// A session, if it is this connection's.
    pub fn session(&self, link: LinkId, id: SessionId) -> Option<&Session> {
        self.sessions.get(&id).filter(|session| session.link == link)
    }

    /// Ends a session, if it is this connection's.
    pub fn close(&mut self, link: LinkId, id: SessionId) -> bool {
        let own = self.sessions.get(&id).is_some_and(|session| session.link == link);
        if own {
            self.sessions.remove(&id);
        }
        own
    }

    /// Enters a request. A manifest needs no session: it is asked for together
    /// with one.
    ///
    /// # Errors
    /// No session for the title, a layer above its quality, or too many open
    /// requests; the request is not kept.
    pub fn ask(&mut self, link: LinkId, stream: StreamId, request: &StreamRequest) -> Result<(), Refusal> {
        let guest = self.links.get_mut(&link).ok_or(Refusal::Malformed)?;
        let (open, session) = match request {
            StreamRequest::Manifest(_) => (&mut guest.open, None),
            StreamRequest::Chunk(chunk) => {
                let of = |session: &Session| session.link == link && session.title == chunk.id.title;
                let rank = |session: &Session| (!session.quality.includes(chunk.id.layer), session.open);
                // Of many users' sessions the one that has most room.
                let sessions = self.sessions.iter_mut().filter(|(_, session)| of(session));
                let (id, session) =
                    sessions.min_by_key(|(_, session)| rank(session)).ok_or(Refusal::NoSession)?;
                if !session.quality.includes(chunk.id.layer) {
                    return Err(Refusal::AboveQuality);
                }
                (&mut session.open, Some(*id))
            }
        };
        if *open >= self.limits.requests {
            return Err(Refusal::TooManyRequests);
        }
        *open = open.saturating_add(1);
        self.streams.insert(stream, (link, session));
        Ok(())
    }

    /// Enters a request of a connection that needs no session.
    ///
    /// # Errors
    /// Too many open requests; the request is not kept.
    pub fn ask_without_session(&mut self, link: LinkId, stream: StreamId) -> Result<(), Refusal> {
        let guest = self.links.get_mut(&link).ok_or(Refusal::Malformed)?;
        if guest.open >= self.limits.requests.saturating_mul(4) {
            return Err(Refusal::TooManyRequests);
        }
        guest.open = guest.open.saturating_add(1);
        self.streams.insert(stream, (link, None));
        Ok(())
    }

    /// The request on this stream is over; whose it was.
    pub fn answered(&mut self, stream: StreamId) -> Option<LinkId> {
        let (link, session) = self.streams.remove(&stream)?;
        let open = match session {
            Some(id) => self.sessions.get_mut(&id).map(|session| &mut session.open),
            None => self.links.get_mut(&link).map(|link| &mut link.open),
        };
        if let Some(open) = open {
            *open = open.saturating_sub(1);
        }
        Some(link)
    }

    /// A connection.
    pub fn link(&self, link: LinkId) -> Option<&Link> {
        self.links.get(&link)
    }

    /// Every connection, in the order of arrival.
    pub fn links(&self) -> impl Iterator<Item = LinkId> {
        self.links.keys().copied()
    }

    /// Whether anybody has a session for this title.
    pub fn watch(&self, title: &TitleName) -> bool {
        self.sessions.values().any(|session| session.title == *title)
    }

    /// The number of sessions.
    pub fn session_count(&self) -> usize {
        self.sessions.len()
    }

    /// The number of requests that are not answered yet.
    pub fn open_requests(&self) -> usize {
        self.streams.len()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;
    use crate::message::{ChunkRequest, Role};
    use media::{ChunkId, Layer};

    const A: LinkId = LinkId(1);
    const B: LinkId = LinkId(2);

    fn guests(sessions: usize) -> Guests {
        let limits = GuestLimits { links: 2, sessions, sessions_per_link: 2, requests: 1 };
        let mut guests = Guests::new(limits);
        for link in [A, B] {
            guests.arrive(link, hello(PROTOCOL_VERSION), ([127, 0, 0, 1], 1).into()).unwrap();
        }
        guests
    }

    fn hello(version: u16) -> Hello {
        Hello { version, peer: "viewer".parse().unwrap(), role: Role::Viewer }
    }

    fn film() -> TitleName {
        "film".parse().unwrap()
    }

    fn chunk(layer: Layer) -> StreamRequest {
        StreamRequest::Chunk(ChunkRequest::whole(ChunkId { title: film(), block: 0, layer }, 0))
    }

    #[test]
    fn another_version_and_one_too_many_are_not_let_in() {
        let mut guests = guests(1);
        let here = ([127, 0, 0, 1], 1).into();
        assert_eq!(guests.arrive(LinkId(3), hello(PROTOCOL_VERSION + 1), here), Err(Refusal::Version));
        assert_eq!(guests.arrive(LinkId(3), hello(PROTOCOL_VERSION), here), Err(Refusal::Full));
        assert_eq!(guests.leave(A), []);
        assert_eq!(guests.arrive(LinkId(3), hello(PROTOCOL_VERSION), here), Ok(()));
    }

    #[test]
    fn capacity_is_in_sessions_and_comes_back() {
        let mut guests = guests(1);
        let first = guests.open(A, &film(), Quality::GOLD).unwrap();
        assert_eq!(guests.open(B, &film(), Quality::GOLD), Err(Refusal::Full));
        // Asking again changes the session, and takes no other.
        assert_eq!(guests.open(A, &film(), Quality::BRONZE), Ok(first));
        assert!(!guests.close(B, first), "nobody ends another one's session");
        assert_eq!(guests.leave(A), [first]);
        assert!(guests.open(B, &film(), Quality::GOLD).is_ok());
    }

    #[test]
    fn each_user_of_a_proxy_has_a_session_of_its_own() {
        let mut guests = guests(4);
        let open = |guests: &mut Guests, user, quality| {
            guests.open_for(A, &film(), quality, Some(UserId(user))).unwrap()
        };
        let anna = open(&mut guests, 1, Quality::BRONZE);
        let berta = open(&mut guests, 2, Quality::GOLD);
        assert_ne!(anna, berta);
        assert_eq!(open(&mut guests, 1, Quality::SILVER), anna);
        // A layer is asked for by the session that has it, and each has its own room.
        assert_eq!(guests.ask(A, StreamId(1), &chunk(Layer::ENH2)), Ok(()));
        assert_eq!(guests.ask(A, StreamId(2), &chunk(Layer::BASE)), Ok(()));
        assert_eq!(guests.ask(A, StreamId(3), &chunk(Layer::BASE)), Err(Refusal::TooManyRequests));
        assert_eq!(guests.session(A, berta).unwrap().user, Some(UserId(2)));
        assert!(guests.close(A, berta));
        assert_eq!(guests.ask(A, StreamId(4), &chunk(Layer::ENH2)), Err(Refusal::AboveQuality));
        // More users than a viewer may have sessions.
        for user in 3..6 {
            open(&mut guests, user, Quality::BRONZE);
        }
        assert_eq!(guests.open_for(A, &film(), Quality::BRONZE, Some(UserId(9))), Err(Refusal::Full));
    }

    #[test]
    fn a_request_needs_a_session_its_quality_and_room() {
        let mut guests = guests(2);
        assert_eq!(guests.ask(A, StreamId(1), &chunk(Layer::BASE)), Err(Refusal::NoSession));
        guests.open(A, &film(), Quality::SILVER).unwrap();
        assert_eq!(guests.ask(A, StreamId(2), &chunk(Layer::ENH2)), Err(Refusal::AboveQuality));
        assert_eq!(guests.ask(A, StreamId(3), &chunk(Layer::ENH1)), Ok(()));
        assert_eq!(guests.ask(A, StreamId(4), &chunk(Layer::BASE)), Err(Refusal::TooManyRequests));
        assert_eq!(guests.ask(B, StreamId(5), &chunk(Layer::BASE)), Err(Refusal::NoSession));
        assert_eq!(guests.answered(StreamId(3)), Some(A));
        assert_eq!(guests.answered(StreamId(3)), None);
        assert_eq!(guests.ask(A, StreamId(6), &chunk(Layer::BASE)), Ok(()));
        assert_eq!(guests.open_requests(), 1);
        guests.leave(A);
        assert_eq!((guests.open_requests(), guests.session_count()), (0, 0));
    }
}
