//! Titles that were not placed here and are fetched from the origin's archive while
//! somebody watches them (Simon et al., section 2.1: a title that is not on the
//! site's server is downloaded there).
//!
//! Who asks for such a title waits until the archive has said what it is; then
//! admission decides, and the copy begins with the first who is let in. Here is
//! what is asked and what is under way; what is taken of the link to the origin
//! and of the store is admission's, the bytes are the driver's.

use super::autonomy::{AutonomyInput, Level, UserId};
use super::mesh::Door;
use super::{Drain, Event, Held, Node, Output};
use crate::guests::LinkId;
use crate::message::{Open, Progress, Refusal};
use crate::token::Claims;
use media::{Time, TitleName};
use std::collections::{BTreeMap, BTreeSet};

/// Titles about which the archive is asked at once; who asks for more looks among
/// the nodes.
const MAX_LOOKS: usize = 64;

/// What is under way between the archive and the store.
#[derive(Clone, Debug, Default)]
pub(super) struct Archive {
    /// Who waits until the archive has said what a title is.
    waiting: BTreeMap<TitleName, Vec<Waiting>>,
    /// Titles that are being deleted, until the shelf shows it.
    leaving: BTreeSet<TitleName>,
}

/// A request to open a title.
#[derive(Clone, Debug)]
struct Waiting {
    link: LinkId,
    open: Open,
    claims: Claims,
    progress: Progress,
}

impl Node {
    /// A viewer seeks. A title that is nowhere on this node is asked for at the
    /// archive first, if there is a store for it.
    pub(super) fn seek_or_look(
        &mut self,
        now: Time,
        link: LinkId,
        open: &Open,
        claims: Claims,
        progress: Progress,
    ) -> Result<(), Refusal> {
        let Some(from) = self.archive_for(&open.title) else {
            return self.seek(now, link, open, claims, progress);
        };
        let waiting = Waiting { link, open: open.clone(), claims, progress };
        if let Some(others) = self.archive.waiting.get_mut(&open.title) {
            if others.len() >= self.config.guests.sessions {
                return Err(Refusal::Full);
            }
            others.push(waiting);
            return Ok(());
        }
        self.archive.waiting.insert(open.title.clone(), vec![waiting]);
        self.outputs.push_back(Output::Look { title: open.title.clone(), from });
        self.event(Event::Looking { title: open.title.clone() });
        Ok(())
    }

    /// Where a title is to be asked for that is not here.
    fn archive_for(&self, title: &TitleName) -> Option<Door> {
        let stores = self.config.level == Level::BASE && self.config.autonomy.store_limit.0 > 0;
        let full = self.archive.waiting.len() >= MAX_LOOKS && !self.archive.waiting.contains_key(title);
        if !stores || full || self.shelf.title(title).is_ok() {
            return None;
        }
        // Its copy is on its way by placement already.
        if self.fetching.keys().any(|(coming, _)| coming == title) {
            return None;
        }
        self.origin()
    }

    /// Where the archive is.
    fn origin(&self) -> Option<Door> {
        let alive = |peer: crate::PeerId| !self.autonomy.thinks_dead(peer);
        let known = || self.book.of_level(Level::Origin, alive).next().map(Door::from);
        self.config.archive.or_else(known)
    }

    /// The archive has said what a title is, or that it has none; whoever waited
    /// for it goes on.
    pub(super) fn looked(&mut self, now: Time, title: &TitleName, found: Result<Held, Refusal>) {
        let waiting = self.archive.waiting.remove(title).unwrap_or_default();
        let wanted = self.drain == Drain::No && self.shelf.title(title).is_err();
        match found {
            Ok(held) if wanted && held.archived && held.summary.title == *title => {
                self.shelf.arrives(held);
                self.describe(now);
            }
            Ok(_) => {}
            // Another node may have it.
            Err(why) => self.event(Event::NotInArchive { title: title.clone(), why }),
        }
        for Waiting { link, open, claims, progress } in waiting {
            if self.guests.link(link).is_none() {
                continue;
            }
            let stopping = self.drain != Drain::No;
            let outcome =
                if stopping { Err(Refusal::Draining) } else { self.seek(now, link, &open, claims, progress) };
            if let Err(why) = outcome {
                self.refuse(link, &open, why);
            }
        }
        if !self.autonomy.grants().admission().store().knows(title) {
            self.shelf.stays_away(title);
            self.describe(now);
        }
    }

    /// Admission has let somebody in for whom the copy has to begin.
    pub(super) fn download(&mut self, title: TitleName) {
        let Some(from) = self.origin() else { return };
        self.event(Event::Downloading { title: title.clone() });
        self.outputs.push_back(Output::Download { title, from });
    }

    /// Admission wants a title gone from the store.
    pub(super) fn evict(&mut self, title: TitleName) {
        self.shelf.evict(&title);
        self.event(Event::Evicted { title: title.clone() });
        self.archive.leaving.insert(title.clone());
        self.outputs.push_back(Output::Evict { title });
    }

    /// A copy has ended. One that is whole counts as soon as the shelf shows it.
    pub(super) fn downloaded(&mut self, now: Time, title: TitleName, whole: bool) {
        if whole {
            self.archive.leaving.remove(&title);
        } else {
            self.shelf.stays_away(&title);
            self.describe(now);
            self.let_go(now, &title);
        }
        self.event(Event::Downloaded { title, whole });
    }

    /// Who watches a title that will not come is not served any more: when it seeks
    /// anew, the archive is asked again.
    fn let_go(&mut self, now: Time, title: &TitleName) {
        if self.shelf.title(title).is_ok() {
            return;
        }
        let records = self.autonomy.records().filter(|record| record.info.title == *title);
        let users: Vec<UserId> = records.map(|record| record.info.user).collect();
        for user in users {
            self.network(now, AutonomyInput::Depart { user });
        }
    }

    /// The library was looked through, the store too.
    pub(super) fn store_shows(&mut self, stored: Vec<Held>) {
        let leaving = &mut self.archive.leaving;
        leaving.retain(|title| stored.iter().any(|held| held.summary.title == *title));
        let leaving = &self.archive.leaving;
        self.shelf.store(stored.into_iter().filter(|held| !leaving.contains(&held.summary.title)));
    }

    /// Admission hears what is here.
    pub(super) fn describe(&mut self, now: Time) {
        let facts = self.shelf.facts();
        self.network(now, AutonomyInput::Titles(facts));
    }

    /// What is in the store and was replaced or withdrawn by order since is
    /// deleted, as soon as nobody watches it.
    pub(super) fn drop_old_editions(&mut self, now: Time) {
        let store = self.autonomy.grants().admission().store();
        let idle = |title: &TitleName| store.iter().any(|(of, _, _, watched, _)| of == title && watched == 0);
        let old = |title: &TitleName, version| {
            self.autonomy.edition(title).is_some_and(|edition| edition != Some(version))
        };
        let all = self.shelf.archived().filter(|(title, version)| old(title, *version) && idle(title));
        let old: Vec<TitleName> = all.map(|(title, _)| title.clone()).collect();
        if old.is_empty() {
            return;
        }
        for title in old {
            self.evict(title);
        }
        self.describe(now);
    }
}
