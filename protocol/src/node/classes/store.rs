//! Titles kept beside those that were placed here: whole titles, the least
//! important class and the least recently watched leave first.

use media::{BitRate, ByteCount, TitleClass, TitleName};
use std::collections::BTreeMap;

/// What is known of one title.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stored {
    class: TitleClass,
    size: ByteCount,
    /// Viewings that need it.
    watched: u64,
    /// When it was watched last, by the count of uses.
    used: u64,
    /// What its copy takes of the link to the origin, until it has arrived.
    arriving: Option<BitRate>,
}

/// A store of titles with a limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TitleStore {
    titles: BTreeMap<TitleName, Stored>,
    taken: ByteCount,
    uses: u64,
}

/// A title that was put into the store, and the titles that left for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// To be deleted.
    pub evicted: Vec<TitleName>,
}

/// In which order classes leave: ad-hoc titles first, first-time titles last.
const fn importance(class: TitleClass) -> u8 {
    match class {
        TitleClass::AdHoc => 0,
        TitleClass::Archived => 1,
        TitleClass::FirstTime => 2,
    }
}

impl TitleStore {
    /// What is taken, copies that are arriving included.
    pub const fn taken(&self) -> ByteCount {
        self.taken
    }

    /// How many titles there are, those that are arriving included.
    pub fn len(&self) -> usize {
        self.titles.len()
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.titles.is_empty()
    }

    /// Whether the title is here or on its way.
    pub fn knows(&self, title: &TitleName) -> bool {
        self.titles.contains_key(title)
    }

    /// Whether the title is here as a whole.
    pub fn holds(&self, title: &TitleName) -> bool {
        self.titles.get(title).is_some_and(|stored| stored.arriving.is_none())
    }

    /// Which titles would have to leave so that `size` more bytes fit, or
    /// nothing if it cannot be: what is watched or arriving stays.
    pub(super) fn room(
        &self,
        size: ByteCount,
        capacity: ByteCount,
        max_titles: usize,
    ) -> Option<Vec<TitleName>> {
        let allowed = capacity.0.checked_sub(size.0)?;
        let enough = |taken: u64, titles: usize| taken <= allowed && titles < max_titles;
        let (mut taken, mut titles) = (self.taken.0, self.titles.len());
        let mut leaving = Vec::new();
        if enough(taken, titles) {
            return Some(leaving);
        }
        let idle = self.titles.iter().filter(|(_, stored)| stored.watched == 0 && stored.arriving.is_none());
        let mut idle: Vec<(&TitleName, &Stored)> = idle.collect();
        idle.sort_by_key(|(_, stored)| (importance(stored.class), stored.used));
        for (title, stored) in idle {
            taken = taken.saturating_sub(stored.size.0);
            titles = titles.saturating_sub(1);
            leaving.push(title.clone());
            if enough(taken, titles) {
                return Some(leaving);
            }
        }
        None
    }

    /// Puts a title in, whether there is room or not: [`Self::room`] was asked.
    pub(super) fn put(
        &mut self,
        title: TitleName,
        class: TitleClass,
        size: ByteCount,
        arriving: Option<BitRate>,
    ) {
        self.remove(&title);
        self.uses = self.uses.saturating_add(1);
        self.taken += size;
        self.titles.insert(title, Stored { class, size, watched: 0, used: self.uses, arriving });
    }

    /// Takes a title out; the rate that its copy had taken.
    pub(super) fn remove(&mut self, title: &TitleName) -> Option<BitRate> {
        let stored = self.titles.remove(title)?;
        self.taken = ByteCount(self.taken.0.saturating_sub(stored.size.0));
        stored.arriving
    }

    /// The copy has arrived; the rate that it had taken.
    pub(super) fn arrived(&mut self, title: &TitleName) -> Option<BitRate> {
        self.titles.get_mut(title)?.arriving.take()
    }

    /// What a viewing had taken of the link is taken by its copy from now on.
    /// Whether that is still on its way.
    pub(super) fn goes_on(&mut self, title: &TitleName, rate: BitRate) -> bool {
        let arriving = self.titles.get_mut(title).and_then(|stored| stored.arriving.as_mut());
        let Some(arriving) = arriving else { return false };
        arriving.0 = arriving.0.saturating_add(rate.0);
        true
    }

    /// Each title: its class, size, viewings, and whether it is here as a whole.
    pub fn iter(&self) -> impl Iterator<Item = (&TitleName, TitleClass, ByteCount, u64, bool)> {
        let line = |(title, stored): (_, &Stored)| {
            (title, stored.class, stored.size, stored.watched, stored.arriving.is_none())
        };
        self.titles.iter().map(line)
    }

    /// Somebody begins to watch; nothing happens if the title is not here.
    pub(super) fn watch(&mut self, title: &TitleName) {
        if let Some(stored) = self.titles.get_mut(title) {
            self.uses = self.uses.saturating_add(1);
            stored.watched = stored.watched.saturating_add(1);
            stored.used = self.uses;
        }
    }

    /// Somebody has ended.
    pub(super) fn unwatch(&mut self, title: &TitleName) {
        if let Some(stored) = self.titles.get_mut(title) {
            stored.watched = stored.watched.saturating_sub(1);
        }
    }
}
