//! What each delivery of a node has taken, by user and layer: so that all of it
//! comes back, however the delivery ends.
//!
//! Nobody has to remember to give anything back: after each input of the node the
//! grants are held against what is really served ([`Grants::settle`]).

use super::{Charge, ClassAdmission, ClassLimits, Demand, GrantId, Reason, Source};
use crate::node::autonomy::{Sla, UserId};
use media::{BitRate, ByteCount, Layer, TitleClass, TitleName};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Enhancements that were refused and are remembered as counted.
const MAX_REFUSED: usize = 4096;

/// What admission wants to know of a title.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TitleFacts {
    /// The title.
    pub title: TitleName,
    /// Its class.
    pub class: TitleClass,
    /// What each layer takes of a link, Base first: its mean rate.
    pub rates: Vec<BitRate>,
    /// Of a title that was not placed here: what it is in the store.
    pub archive: Option<Archived>,
}

/// A title in the store, on its way there, or known from the origin's archive and
/// copied as soon as somebody is let in to watch it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Archived {
    /// What all of its layers take on disk.
    pub size: ByteCount,
    /// What its copy takes of the link to the origin: the mean rate of all layers.
    pub rate: BitRate,
    /// Whether it is here as a whole.
    pub whole: bool,
}

/// For how long a title that is copied while it is watched takes its rate of the
/// link to the origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hold {
    /// Until the copy has arrived.
    #[default]
    Download,
    /// Until the viewing has ended for which it began.
    Session,
}

/// What letting somebody in means for the store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "the store was told that this is done"]
pub struct Moved {
    /// Whether the copy of the title has to begin.
    pub copy: bool,
    /// Titles to be deleted first.
    pub evicted: Vec<TitleName>,
}

/// A delivery: of which layer, to whom.
pub type Delivery = (UserId, Layer);

/// The admission of one node, and who has what of it.
#[derive(Clone, Debug)]
pub struct Grants {
    admission: ClassAdmission,
    vip_exempt: bool,
    hold: Hold,
    titles: BTreeMap<TitleName, TitleFacts>,
    given: BTreeMap<Delivery, GrantId>,
    /// Enhancements that were refused, by the epoch of the admission: they are
    /// asked for again and again, and counted once.
    refused: BTreeSet<(u64, Delivery)>,
}

impl Grants {
    /// Nothing is given away. `vip_exempt`: thresholds do not hold for VIPs.
    pub fn new(limits: ClassLimits, vip_exempt: bool, hold: Hold) -> Self {
        Self {
            admission: ClassAdmission::new(limits),
            vip_exempt,
            hold,
            titles: BTreeMap::new(),
            given: BTreeMap::new(),
            refused: BTreeSet::new(),
        }
    }

    /// The rule, what is taken of what, and who was refused.
    pub const fn admission(&self) -> &ClassAdmission {
        &self.admission
    }

    /// Sets other limits. Lower ones end nothing that was granted.
    pub const fn set_limits(&mut self, limits: ClassLimits) {
        self.admission.set_limits(limits);
    }

    /// What is known of titles from now on. Of one that is not named nothing is
    /// known: it is archived, and takes nothing of a link. The store follows:
    /// copies have arrived or will not, titles lie there from an earlier life. To
    /// be deleted is what does not fit into it.
    pub fn describe(&mut self, titles: Vec<TitleFacts>) -> Vec<TitleName> {
        self.titles = titles.into_iter().map(|facts| (facts.title.clone(), facts)).collect();
        let known = self.admission.store().iter().map(|(title, ..)| title.clone());
        let archives =
            |title: &TitleName| self.titles.get(title).is_some_and(|facts| facts.archive.is_some());
        let gone: Vec<TitleName> = known.filter(|title| !archives(title)).collect();
        for title in gone {
            self.admission.forget(&title);
        }
        let mut evicted = Vec::new();
        let archived = self.titles.values().filter_map(|facts| Some((facts, facts.archive?)));
        for (facts, archived) in archived.filter(|(_, archived)| archived.whole) {
            if self.admission.store().knows(&facts.title) {
                self.admission.copied(&facts.title);
                continue;
            }
            match self.admission.place(&facts.title, facts.class, archived.size) {
                Ok(placed) => evicted.extend(placed.evicted),
                Err(_) => evicted.push(facts.title.clone()),
            }
        }
        self.forget(&evicted);
        evicted
    }

    /// Whether the title is in the store, on its way there, or may be copied.
    pub fn archives(&self, title: &TitleName) -> bool {
        self.titles.get(title).is_some_and(|facts| facts.archive.is_some())
    }

    fn forget(&mut self, titles: &[TitleName]) {
        for title in titles {
            self.titles.remove(title);
        }
    }

    /// Lets a delivery begin and takes what it needs, or says why not and has
    /// taken nothing. One that goes on already takes nothing more. The refusal of
    /// an enhancement is counted once in an `epoch`.
    pub fn admit(
        &mut self,
        delivery: Delivery,
        title: &TitleName,
        (sla, epoch): (Sla, u64),
        standing: Result<(), Reason>,
    ) -> Result<Moved, Reason> {
        if self.given.contains_key(&delivery) {
            return Ok(Moved::default());
        }
        let demand = self.demand(delivery, title, sla);
        if let Err(reason) = self.admission.test(&demand, standing) {
            if self.is_news(delivery, epoch) {
                self.admission.refused(demand.class, reason);
            }
            return Err(reason);
        }
        let grant = self.admission.admit(&demand, standing)?;
        self.given.insert(delivery, grant.id);
        self.forget(&grant.evicted);
        Ok(Moved { copy: grant.copy, evicted: grant.evicted })
    }

    fn is_news(&mut self, delivery: Delivery, epoch: u64) -> bool {
        if delivery.1 == Layer::BASE {
            return true;
        }
        let news = self.refused.insert((epoch, delivery));
        if self.refused.len() > MAX_REFUSED {
            self.refused.pop_first();
        }
        news
    }

    /// A delivery that was let in does not begin, or is over. Whether it had
    /// anything.
    pub fn back(&mut self, delivery: Delivery) -> bool {
        self.given.remove(&delivery).is_some_and(|id| self.admission.release(id))
    }

    /// Holds what was given against what is served: what is over comes back, and
    /// who was taken over from a dead node takes what it needs, whatever the
    /// limits. Nobody who is served is ever sent away for a threshold.
    pub fn settle<'a>(
        &mut self,
        served: impl Fn(Delivery) -> bool,
        users: impl Iterator<Item = (UserId, &'a TitleName, Sla)>,
    ) {
        let over: Vec<Delivery> = self.given.keys().filter(|key| !served(**key)).copied().collect();
        for delivery in over {
            self.back(delivery);
        }
        for (user, title, sla) in users {
            let delivery = (user, Layer::BASE);
            if !self.given.contains_key(&delivery) {
                let demand = self.demand(delivery, title, sla);
                let id = self.admission.take_over(&demand);
                self.given.insert(delivery, id);
            }
        }
    }

    /// Of a user who has several layers from here, only the first counts as a
    /// viewing.
    fn demand(&self, (user, layer): Delivery, title: &TitleName, sla: Sla) -> Demand {
        let facts = self.titles.get(title);
        let mut others = self.given.range((user, Layer::BASE)..=(user, Layer(u8::MAX)));
        let charge = match sla {
            _ if others.any(|((_, other), _)| *other != layer) => Charge::None,
            Sla::Vip if self.vip_exempt => Charge::Untested,
            Sla::Vip | Sla::Normal => Charge::Tested,
        };
        let rate = facts.and_then(|facts| facts.rates.get(layer.index())).copied();
        let archive = facts.and_then(|facts| facts.archive).filter(|_| layer == Layer::BASE);
        let source = match archive {
            // Its copy brings all layers.
            None => Source::Held,
            Some(Archived { rate, size, .. }) if self.hold == Hold::Session => Source::Kept { rate, size },
            Some(Archived { rate, size, .. }) => Source::Copied { rate, size },
        };
        Demand {
            title: title.clone(),
            class: facts.map_or_else(TitleClass::default, |facts| facts.class),
            charge,
            slots: 1,
            rate: rate.unwrap_or(BitRate(0)),
            source,
        }
    }
}
