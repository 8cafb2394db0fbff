//! The viewers who are connected here, as users of the network: by which
//! connection they can be told something, and who waits for an answer.

use super::autonomy::{AdmissionRefusal, UserId};
use crate::guests::LinkId;
use crate::peer::PeerId;
use media::{Layer, Quality, Span, Time, TitleName};
use std::collections::BTreeMap;

/// All of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Viewers {
    users: BTreeMap<UserId, Viewer>,
}

/// One of them.
#[derive(Clone, Debug)]
pub(super) struct Viewer {
    /// The connection by which it came last.
    pub(super) link: LinkId,
    /// What it watches.
    pub(super) title: TitleName,
    /// The answer it waits for.
    pub(super) opening: Option<Opening>,
    /// Who serves its enhancements, as far as it was told.
    told: BTreeMap<Layer, Option<PeerId>>,
    /// Since when it has paused.
    paused: Option<Time>,
}

impl Viewer {
    pub(super) fn new(link: LinkId, title: TitleName, opening: Opening) -> Self {
        Self { link, title, opening: Some(opening), told: BTreeMap::new(), paused: None }
    }

    /// The viewer says whether it has paused. For how long by now.
    pub(super) fn stands_still(&mut self, now: Time, paused: bool) -> Span {
        if !paused {
            self.paused = None;
            return Span::ZERO;
        }
        now - *self.paused.get_or_insert(now)
    }

    /// The viewer is told who serves a layer. Whether that is news to it.
    pub(super) fn tell(&mut self, layer: Layer, node: Option<PeerId>) -> bool {
        self.told.insert(layer, node) != Some(node)
    }
}

/// A request to open a title that is not answered yet.
#[derive(Clone, Debug)]
pub(super) struct Opening {
    /// The number of the request.
    pub(super) request: u32,
    /// Whether it seeks: who does is not content with a reservation.
    pub(super) seeks: bool,
    /// The best quality that may be granted.
    pub(super) quality: Quality,
    /// Who may think that it serves the viewer.
    pub(super) former: Vec<PeerId>,
    /// Layers that nobody can serve, and why.
    pub(super) refused: BTreeMap<Layer, AdmissionRefusal>,
    /// Whether it has begun to watch.
    pub(super) started: bool,
    /// When it is answered with what is known by then.
    pub(super) due: Time,
}

impl Viewers {
    /// A viewer comes by this connection. Whether there was room.
    pub(super) fn arrive(&mut self, user: UserId, viewer: Viewer, max: usize) -> bool {
        let room = self.users.len() < max || self.users.contains_key(&user);
        if room {
            self.users.insert(user, viewer);
        }
        room
    }

    /// How many there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.users.len()
    }

    pub(super) fn get(&self, user: UserId) -> Option<&Viewer> {
        self.users.get(&user)
    }

    pub(super) fn get_mut(&mut self, user: UserId) -> Option<&mut Viewer> {
        self.users.get_mut(&user)
    }

    /// The request that a viewer waits for an answer to.
    pub(super) fn opening_mut(&mut self, user: UserId) -> Option<&mut Opening> {
        self.users.get_mut(&user)?.opening.as_mut()
    }

    /// The request is answered.
    pub(super) fn answered(&mut self, user: UserId) -> Option<Opening> {
        self.users.get_mut(&user)?.opening.take()
    }

    pub(super) fn leave(&mut self, user: UserId) {
        self.users.remove(&user);
    }

    /// Whether this connection speaks for the user.
    pub(super) fn speaks(&self, link: LinkId, user: UserId) -> bool {
        self.users.get(&user).is_some_and(|viewer| viewer.link == link)
    }

    /// Who speaks by this connection about this title: one viewer, or all those
    /// that a proxy speaks for.
    pub(super) fn users(&self, link: LinkId, title: &TitleName) -> impl Iterator<Item = UserId> {
        let of = move |viewer: &Viewer| viewer.link == link && viewer.title == *title;
        self.users.iter().filter(move |(_, viewer)| of(viewer)).map(|(user, _)| *user)
    }

    /// A connection is over; who spoke by it.
    pub(super) fn gone(&mut self, link: LinkId) -> Vec<UserId> {
        let of = self.users.iter().filter(|(_, viewer)| viewer.link == link);
        let users: Vec<UserId> = of.map(|(user, _)| *user).collect();
        for user in &users {
            self.users.remove(user);
        }
        users
    }

    /// Who has waited long enough.
    pub(super) fn due(&self, now: Time) -> Vec<UserId> {
        let due = |viewer: &Viewer| viewer.opening.as_ref().is_some_and(|opening| opening.due <= now);
        self.users.iter().filter(|(_, viewer)| due(viewer)).map(|(user, _)| *user).collect()
    }

    /// When the next one has.
    pub(super) fn next(&self) -> Option<Time> {
        self.users.values().filter_map(|viewer| viewer.opening.as_ref().map(|opening| opening.due)).min()
    }
}
