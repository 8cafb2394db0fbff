//! What each delivery of a node has taken, by user and layer: so that all of it
//! comes back, however the delivery ends.
//!
//! Nobody has to remember to give anything back: after each input of the node the
//! grants are held against what is really served ([`Grants::settle`]).

use super::{Charge, ClassAdmission, ClassLimits, Demand, GrantId, Reason, Source};
use crate::node::autonomy::{Sla, UserId};
use media::{BitRate, Layer, TitleClass, TitleName};
use std::collections::BTreeMap;

/// What admission wants to know of a title.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TitleFacts {
    /// The title.
    pub title: TitleName,
    /// Its class.
    pub class: TitleClass,
    /// What each layer takes of a link, Base first: its mean rate.
    pub rates: Vec<BitRate>,
}

/// A delivery: of which layer, to whom.
pub type Delivery = (UserId, Layer);

/// The admission of one node, and who has what of it.
#[derive(Clone, Debug)]
pub struct Grants {
    admission: ClassAdmission,
    vip_exempt: bool,
    titles: BTreeMap<TitleName, TitleFacts>,
    given: BTreeMap<Delivery, GrantId>,
}

impl Grants {
    /// Nothing is given away. `vip_exempt`: thresholds do not hold for VIPs.
    pub fn new(limits: ClassLimits, vip_exempt: bool) -> Self {
        let admission = ClassAdmission::new(limits);
        Self { admission, vip_exempt, titles: BTreeMap::new(), given: BTreeMap::new() }
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
    /// known: it is archived, and takes nothing of a link.
    pub fn describe(&mut self, titles: Vec<TitleFacts>) {
        self.titles = titles.into_iter().map(|facts| (facts.title.clone(), facts)).collect();
    }

    /// Lets a delivery begin and takes what it needs, or says why not and has
    /// taken nothing. One that goes on already takes nothing more.
    pub fn admit(
        &mut self,
        delivery: Delivery,
        title: &TitleName,
        sla: Sla,
        standing: Result<(), Reason>,
    ) -> Result<(), Reason> {
        if self.given.contains_key(&delivery) {
            return Ok(());
        }
        let demand = self.demand(delivery, title, sla);
        let grant = self.admission.admit(&demand, standing)?;
        self.given.insert(delivery, grant.id);
        Ok(())
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
        Demand {
            title: title.clone(),
            class: facts.map_or_else(TitleClass::default, |facts| facts.class),
            charge,
            slots: 1,
            rate: rate.unwrap_or(BitRate(0)),
            source: Source::Held,
        }
    }
}
