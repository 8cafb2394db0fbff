//! The clients as users of the network: what each asked for, who serves it
//! upstream, and where the proxy has a seat for it.

use super::cooperation::Beta;
use super::filter::Filter;
use super::lines::NodeId;
use crate::guests::LinkId;
use crate::message::{Open, Progress, Refusal, SessionId};
use crate::node::autonomy::{Sla, UserId};
use crate::service::{Doors, Standing};
use crate::token::SignedToken;
use media::{Layer, Quality, Span, Time, TitleName};
use std::collections::BTreeMap;

/// One client.
#[derive(Clone, Debug)]
pub(super) struct User {
    /// Its connection; none while it is lost and may come back.
    pub(super) link: Option<LinkId>,
    /// When it is given up, if it does not come back.
    pub(super) until: Option<Time>,
    /// What it watches.
    pub(super) title: TitleName,
    /// The best quality that it may have.
    pub(super) quality: Quality,
    /// What it was promised.
    token: Option<SignedToken>,
    /// The request of the client that waits for an answer.
    pub(super) asking: Option<u32>,
    /// Its session here.
    pub(super) session: SessionId,
    /// As the client last told it.
    pub(super) progress: Progress,
    /// In the client's buffer, as it last told.
    pub(super) buffer: Span,
    /// Whether it has paused, as it last told.
    pub(super) paused: bool,
    /// When the next report to the Base node is due.
    pub(super) report_at: Time,
    /// Who serves it, and who stands behind.
    pub(super) standing: Standing<NodeId>,
    /// For each layer, whom to ask, in order.
    pub(super) layers: Vec<Vec<NodeId>>,
    /// Where it is announced.
    pub(super) seats: BTreeMap<NodeId, Seat>,
    /// Where service can be sought.
    pub(super) doors: Doors<NodeId>,
    /// The search under way.
    pub(super) search: Option<Search>,
    /// Why the first door said no.
    pub(super) refusal: Option<Refusal>,
    /// What it gets of what it asks for.
    pub(super) filter: Filter,
    /// How much it insists on that, as the mind was told last.
    pub(super) beta: Option<Beta>,
}

/// An announcement of a user at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seat {
    /// The answer to the request of this number is awaited, since then.
    Asked(u32, Time),
    /// The node did not know the user; it is asked again then.
    Waits(Time),
    /// The node knows it.
    Held {
        /// The session there.
        session: SessionId,
        /// It last said that it does not serve the user: until when it is not
        /// asked again.
        stands_by: Option<Time>,
    },
}

/// A search for service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Search {
    /// Where it began.
    pub(super) door: NodeId,
    /// When it began.
    pub(super) since: Time,
    /// The Base node that the door named.
    pub(super) base: Option<NodeId>,
    /// The request whose answer is awaited, once it is sent.
    pub(super) request: Option<u32>,
    /// How often the Base node did not know the user yet.
    pub(super) tries: u32,
    /// When to ask it again.
    pub(super) again: Option<Time>,
}

impl Search {
    pub(super) fn at(door: NodeId, since: Time) -> Self {
        Self { door, since, base: None, request: None, tries: 0, again: None }
    }

    /// The node that is asked now.
    pub(super) fn asked(&self) -> NodeId {
        self.base.unwrap_or(self.door)
    }
}

impl User {
    pub(super) fn new(now: Time, link: LinkId, open: &Open, session: SessionId, filter: Filter) -> Self {
        let progress = match open.visit {
            crate::message::Visit::Seek(progress) => progress,
            crate::message::Visit::Attach | crate::message::Visit::Copy => Progress::default(),
        };
        Self {
            link: Some(link),
            until: None,
            title: open.title.clone(),
            quality: open.quality,
            token: open.token.clone(),
            asking: Some(open.request),
            session,
            progress,
            buffer: Span::ZERO,
            paused: false,
            report_at: now,
            standing: Standing::new(None, progress.epoch),
            layers: Vec::new(),
            seats: BTreeMap::new(),
            doors: Doors::default(),
            search: None,
            refusal: None,
            filter,
            beta: None,
        }
    }

    /// The class that it was promised; the nodes that serve it check the promise.
    pub(super) fn sla(&self) -> Sla {
        self.token.as_ref().map_or(Sla::Normal, |token| token.promise.sla)
    }

    /// The standby that keeps a slot ready for it and may be asked before it takes
    /// over, if it is known there.
    pub(super) fn hot_standby(&self) -> Option<NodeId> {
        let backup = self.standing.backup().filter(|_| self.sla() == Sla::Vip)?;
        matches!(self.seats.get(&backup), Some(Seat::Held { stands_by: None, .. })).then_some(backup)
    }

    /// The request by which it is announced upstream.
    pub(super) fn open(&self, user: UserId, request: u32, visit: crate::message::Visit) -> Open {
        let token = self.token.clone();
        Open { token, ..Open::new(request, self.title.clone(), self.quality, user, visit) }
    }

    /// Everybody who serves a layer of it or stands behind: at most two of each
    /// layer are kept.
    pub(super) fn wanted(&self) -> Vec<NodeId> {
        let mut wanted: Vec<NodeId> = Vec::new();
        let of_layers = self.layers.iter().flat_map(|nodes| nodes.iter().take(2).copied());
        for node in self.standing.home().into_iter().chain(self.standing.backup()).chain(of_layers) {
            if !wanted.contains(&node) {
                wanted.push(node);
            }
        }
        wanted
    }

    /// Every node to which it needs a connection, each once.
    pub(super) fn needed(&self) -> Vec<NodeId> {
        let mut needed = self.wanted();
        let asked = self.search.map(|search| search.asked());
        needed.extend(asked.filter(|asked| !needed.contains(asked)));
        needed
    }

    /// Whether it needs a connection to this node.
    pub(super) fn needs(&self, node: NodeId) -> bool {
        self.standing.home() == Some(node)
            || self.standing.backup() == Some(node)
            || self.layers.iter().any(|nodes| nodes.iter().take(2).any(|other| *other == node))
            || self.search.is_some_and(|search| search.asked() == node)
    }

    /// Whom to ask for a layer: who serves it, and behind the Base node its backup.
    pub(super) fn sources(&self, layer: Layer) -> impl Iterator<Item = NodeId> {
        let order = self.layers.get(layer.index()).into_iter().flatten().copied();
        let backup = self.standing.backup().filter(|_| layer == Layer::BASE);
        order.chain(backup)
    }

    /// Whether it may be asked at this node now.
    pub(super) fn may_ask(&self, now: Time, node: NodeId) -> bool {
        match self.seats.get(&node) {
            Some(Seat::Held { stands_by, .. }) => stands_by.is_none_or(|until| until <= now),
            Some(Seat::Asked(..) | Seat::Waits(_)) | None => false,
        }
    }

    /// Whether this node said last that it does not serve this user.
    pub(super) fn is_standing_by(&self, node: NodeId) -> bool {
        matches!(self.seats.get(&node), Some(Seat::Waits(_) | Seat::Held { stands_by: Some(_), .. }))
    }
}

/// All clients, by the number under which they watch.
pub(super) type Users = BTreeMap<UserId, User>;
