//! The rule itself: test everything in order, then take everything, or nothing.

use super::store::{Placed, TitleStore};
use super::{Charge, ClassLimits, Demand, Grant, GrantId, Reason, Source};
use media::{BitRate, ByClass, ByteCount, TitleClass, TitleName};
use std::collections::BTreeMap;

/// What is taken at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// `n_k`: viewings of each class.
    pub viewings: ByClass<u64>,
    /// Slots.
    pub slots: u64,
    /// Of the link to the viewers.
    pub to_viewers: BitRate,
    /// Of the link to the origin.
    pub to_origin: BitRate,
}

/// How often a class was refused for a reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    counts: BTreeMap<(TitleClass, Reason), u64>,
}

impl Refusals {
    /// Of this class for this reason.
    pub fn of(&self, class: TitleClass, reason: Reason) -> u64 {
        self.counts.get(&(class, reason)).copied().unwrap_or(0)
    }

    /// For this reason.
    pub fn because(&self, reason: Reason) -> u64 {
        TitleClass::ALL.into_iter().map(|class| self.of(class, reason)).sum()
    }

    /// Each class and reason that occurred, and how often.
    pub fn iter(&self) -> impl Iterator<Item = (TitleClass, Reason, u64)> {
        self.counts.iter().map(|((class, reason), count)| (*class, *reason, *count))
    }

    fn count(&mut self, class: TitleClass, reason: Reason) {
        let count = self.counts.entry((class, reason)).or_default();
        *count = count.saturating_add(1);
    }
}

/// What one viewing has taken.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Taken {
    title: TitleName,
    class: TitleClass,
    counts: bool,
    slots: u64,
    rate: BitRate,
    through: BitRate,
    /// Whether it keeps its title in the store.
    keeps: bool,
}

/// The admission of one node.
#[derive(Clone, Debug)]
pub struct ClassAdmission {
    limits: ClassLimits,
    used: Usage,
    store: TitleStore,
    grants: BTreeMap<GrantId, Taken>,
    given: u64,
    refusals: Refusals,
}

fn fits(used: u64, need: u64, limit: u64) -> Option<u64> {
    used.checked_add(need).filter(|sum| *sum <= limit)
}

impl ClassAdmission {
    /// With nothing taken.
    pub fn new(limits: ClassLimits) -> Self {
        Self {
            limits,
            used: Usage::default(),
            store: TitleStore::default(),
            grants: BTreeMap::new(),
            given: 0,
            refusals: Refusals::default(),
        }
    }

    /// What there is to give away.
    pub const fn limits(&self) -> &ClassLimits {
        &self.limits
    }

    /// Sets other limits. Lower ones end nothing that was granted.
    pub const fn set_limits(&mut self, limits: ClassLimits) {
        self.limits = limits;
    }

    /// What is taken.
    pub const fn used(&self) -> &Usage {
        &self.used
    }

    /// The titles copied here.
    pub const fn store(&self) -> &TitleStore {
        &self.store
    }

    /// How many viewings go on.
    pub fn viewings(&self) -> usize {
        self.grants.len()
    }

    /// Who was refused, and why.
    pub const fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    /// Whether the viewing could begin now, and the titles that would have to
    /// leave the store for it. `standing` is what the rules about users say
    /// ([`super::standing`]); it is the second reason to be given. Nothing
    /// changes and nothing is counted.
    pub fn test(&self, demand: &Demand, standing: Result<(), Reason>) -> Result<Vec<TitleName>, Reason> {
        let (used, limits, class) = (&self.used, &self.limits, demand.class);
        if demand.charge == Charge::Tested {
            fits(used.viewings[class], 1, limits.thresholds[class]).ok_or(Reason::Threshold)?;
        }
        standing?;
        fits(used.slots, demand.slots, limits.slots).ok_or(Reason::Slots)?;
        fits(used.to_viewers.0, demand.rate.0, limits.to_viewers.0).ok_or(Reason::ViewerLink)?;
        let origin =
            |rate: BitRate| fits(used.to_origin.0, rate.0, limits.to_origin.0).ok_or(Reason::OriginLink);
        let leaving = match demand.source {
            Source::Held => Vec::new(),
            Source::Through { rate } => {
                origin(rate)?;
                Vec::new()
            }
            Source::Copied { .. } | Source::Kept { .. } if self.store.knows(&demand.title) => Vec::new(),
            Source::Copied { rate, size } | Source::Kept { rate, size } => {
                origin(rate)?;
                self.store.room(size, limits.storage, limits.max_titles).ok_or(Reason::Storage)?
            }
        };
        if self.grants.len() >= limits.max_grants {
            return Err(Reason::Bound);
        }
        Ok(leaving)
    }

    /// Lets the viewing begin, and takes all that it needs, or says why not, and
    /// has taken nothing.
    pub fn admit(&mut self, demand: &Demand, standing: Result<(), Reason>) -> Result<Grant, Reason> {
        match self.test(demand, standing) {
            Ok(leaving) => Ok(self.take(demand, leaving)),
            Err(reason) => {
                self.refused(demand.class, reason);
                Err(reason)
            }
        }
    }

    /// Somebody was refused.
    pub(super) fn refused(&mut self, class: TitleClass, reason: Reason) {
        self.refusals.count(class, reason);
    }

    /// Lets the viewing begin at its best, or at the first of the `lower` demands
    /// for which there is room, such as the lower qualities of the title: 0 for
    /// the best, 1 for the first lower one. If all are refused, the reason of the
    /// best one counts.
    pub fn admit_first(
        &mut self,
        best: &Demand,
        lower: &[Demand],
        standing: Result<(), Reason>,
    ) -> Result<(usize, Grant), Reason> {
        let reason = match self.test(best, standing) {
            Ok(leaving) => return Ok((0, self.take(best, leaving))),
            Err(reason) => reason,
        };
        if reason.cured_by_less() {
            for (at, demand) in (1..).zip(lower) {
                if let Ok(leaving) = self.test(demand, standing) {
                    return Ok((at, self.take(demand, leaving)));
                }
            }
        }
        self.refusals.count(best.class, reason);
        Err(reason)
    }

    /// A viewing that another node began goes on here: it is never refused, and
    /// takes what it needs whatever the limits.
    pub fn take_over(&mut self, demand: &Demand) -> GrantId {
        let held = Demand { source: Source::Held, ..demand.clone() };
        self.take(&held, Vec::new()).id
    }

    /// Takes what was tested.
    fn take(&mut self, demand: &Demand, leaving: Vec<TitleName>) -> Grant {
        let (used, class) = (&mut self.used, demand.class);
        let counts = demand.charge != Charge::None;
        used.viewings[class] = used.viewings[class].saturating_add(u64::from(counts));
        used.slots = used.slots.saturating_add(demand.slots);
        used.to_viewers.0 = used.to_viewers.0.saturating_add(demand.rate.0);
        let (mut through, mut copy) = (BitRate(0), false);
        match demand.source {
            Source::Held => {}
            Source::Through { rate } => {
                used.to_origin.0 += rate.0;
                through = rate;
            }
            Source::Copied { rate, size } | Source::Kept { rate, size } => {
                if !self.store.knows(&demand.title) {
                    used.to_origin.0 += rate.0;
                    for title in &leaving {
                        self.store.remove(title);
                    }
                    let kept = matches!(demand.source, Source::Kept { .. });
                    let copying = if kept { BitRate(0) } else { rate };
                    through = if kept { rate } else { BitRate(0) };
                    self.store.put(demand.title.clone(), class, size, Some(copying));
                    copy = true;
                }
            }
        }
        let keeps = self.store.knows(&demand.title);
        if keeps {
            self.store.watch(&demand.title);
        }
        let id = GrantId(self.given);
        self.given = self.given.wrapping_add(1);
        let title = demand.title.clone();
        let taken = Taken { title, class, counts, slots: demand.slots, rate: demand.rate, through, keeps };
        self.grants.insert(id, taken);
        Grant { id, copy, evicted: leaving }
    }

    /// A viewing has ended, however it ended. Whether it was still going on: a
    /// second word about the same end does no harm.
    pub fn release(&mut self, id: GrantId) -> bool {
        let Some(taken) = self.grants.remove(&id) else { return false };
        let used = &mut self.used;
        used.viewings[taken.class] = used.viewings[taken.class].saturating_sub(u64::from(taken.counts));
        used.slots = used.slots.saturating_sub(taken.slots);
        used.to_viewers.0 = used.to_viewers.0.saturating_sub(taken.rate.0);
        // A copy that goes on without its viewer goes on by the same link.
        if !(taken.keeps && self.store.goes_on(&taken.title, taken.through)) {
            used.to_origin.0 = used.to_origin.0.saturating_sub(taken.through.0);
        }
        if taken.keeps {
            self.store.unwatch(&taken.title);
        }
        true
    }

    /// A copy has arrived as a whole: the link to the origin is free again.
    /// Whether it was still on its way.
    pub fn copied(&mut self, title: &TitleName) -> bool {
        let rate = self.store.arrived(title);
        self.give_back(rate)
    }

    /// A copy will not arrive, or a title was deleted: what it took is free
    /// again. Viewings of it go on until they are released. Whether it was known.
    pub fn forget(&mut self, title: &TitleName) -> bool {
        let known = self.store.knows(title);
        for taken in self.grants.values_mut().filter(|taken| taken.keeps && taken.title == *title) {
            taken.keeps = false;
        }
        let rate = self.store.remove(title);
        self.give_back(rate);
        known
    }

    /// Makes a title known that is here already, whole.
    pub fn place(&mut self, title: &TitleName, class: TitleClass, size: ByteCount) -> Result<Placed, Reason> {
        if self.store.knows(title) {
            return Ok(Placed { evicted: Vec::new() });
        }
        let limits = &self.limits;
        let evicted = self.store.room(size, limits.storage, limits.max_titles).ok_or(Reason::Storage)?;
        for title in &evicted {
            self.store.remove(title);
        }
        self.store.put(title.clone(), class, size, None);
        Ok(Placed { evicted })
    }

    fn give_back(&mut self, rate: Option<BitRate>) -> bool {
        let taken = rate.map_or(0, |rate| rate.0);
        self.used.to_origin.0 = self.used.to_origin.0.saturating_sub(taken);
        rate.is_some()
    }
}
