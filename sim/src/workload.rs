//! Who comes when, wanting what: the users of an evaluation.

use crate::rng::Rng;
use crate::topology::{SiteId, Topology};
use media::{Span, Time};
pub use protocol::node::autonomy::Sla;

/// One user comes to a Base node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When.
    pub at: Time,
    /// Its number, from 0 in order of arrival.
    pub user: u32,
    /// The class of its contract.
    pub sla: Sla,
    /// The Base node that its Pull-MA comes to first, at random.
    pub target: SiteId,
    /// When its film is over.
    pub ends_at: Time,
}

impl Arrival {
    /// How much of the film is left when the user comes.
    pub fn remaining(&self) -> Span {
        self.ends_at - self.at
    }
}

/// The users of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workload {
    /// How many.
    pub users: u32,
    /// How many of a thousand are VIPs; the number is rounded and then exact.
    pub vip_permille: u32,
    /// The time between two arrivals. Longer than a note on a board lives (twice
    /// the buffer) keeps searches from having anything to do with each other.
    pub spacing: Span,
    /// When the first one comes.
    pub first_at: Time,
    /// The longest playback left once all have come; each user's is uniform
    /// below it, so that nobody leaves while the network fills.
    pub longest_left: Span,
}

impl Workload {
    /// `users` of whom `vip_permille` in a thousand are VIPs, 40
    /// seconds apart, each with up to two hours left in the end.
    pub const fn new(users: u32, vip_permille: u32) -> Self {
        Self {
            users,
            vip_permille,
            spacing: Span::from_secs(40),
            first_at: Time::from_nanos(1_000_000_000),
            longest_left: Span::from_secs(7_200),
        }
    }

    /// How many of the users are VIPs.
    pub fn vips(&self) -> u32 {
        let wide = (u64::from(self.users) * u64::from(self.vip_permille) + 500) / 1000;
        u32::try_from(wide).unwrap_or(u32::MAX).min(self.users)
    }

    /// When the last user has come and the last search had its time.
    pub fn full_at(&self) -> Time {
        self.first_at + self.spacing.saturating_mul(u64::from(self.users))
    }

    /// The users in order of their arrival.
    pub fn arrivals(&self, topology: &Topology, rng: &mut Rng) -> Vec<Arrival> {
        let mut classes: Vec<Sla> =
            (0..self.users).map(|user| if user < self.vips() { Sla::Vip } else { Sla::Normal }).collect();
        rng.shuffle(&mut classes);
        let full_at = self.full_at();
        let users = (0..self.users).zip(classes);
        users
            .map(|(user, sla)| Arrival {
                at: self.first_at + self.spacing.saturating_mul(u64::from(user)),
                user,
                sla,
                target: SiteId::at(rng.below(topology.base_count())),
                ends_at: full_at + Span::from_nanos(rng.below_wide(self.longest_left.as_nanos())),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Shape;

    #[test]
    fn the_share_of_vips_is_exact_and_targets_are_spread() {
        let topology = Topology::generate(Shape::PAPER, &mut Rng::new(1)).unwrap();
        let arrivals = Workload::new(1400, 200).arrivals(&topology, &mut Rng::new(2));
        assert_eq!(arrivals.iter().filter(|arrival| arrival.sla == Sla::Vip).count(), 280);
        assert!(topology.base().all(|site| arrivals.iter().any(|arrival| arrival.target == site)));
        assert!(arrivals.windows(2).all(|pair| pair[1].at - pair[0].at == Span::from_secs(40)));
        assert_eq!(Workload::new(7, 500).vips(), 4);
    }

    #[test]
    fn nobody_leaves_before_all_have_come() {
        let topology = Topology::generate(Shape::DEMO, &mut Rng::new(1)).unwrap();
        let workload = Workload::new(100, 0);
        let arrivals = workload.arrivals(&topology, &mut Rng::new(2));
        assert!(arrivals.iter().all(|arrival| arrival.ends_at >= workload.full_at()));
    }
}
