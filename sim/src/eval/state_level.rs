//! An oracle: Evaluation II computed directly on the state, with no agent, no
//! message and no time.
//!
//! It is never drawn. It exists so that the machines have something to be
//! compared with: where searches do not overlap, agent by agent and state by
//! state must give the same network.

use super::tally::{Continuity, FailureTally};
use crate::topology::{SiteId, Topology};
use crate::workload::{Arrival, Sla};
use media::Time;
use std::cmp::Reverse;

/// Which of several candidates is the best backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preference {
    /// Fewest steps, then most headroom, then the lowest name.
    Nearest,
    /// Most headroom, then fewest steps, then the lowest name.
    MostHeadroom,
}

/// What becomes of those who need a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// VIPs have a hot standby, normal users a reservation that holds no slot;
    /// what is displaced searches again.
    Autonomous {
        /// Which candidate is best.
        preference: Preference,
        /// A reservation needs a free slot, not only headroom (the strict
        /// reading of the row of a full node).
        strict: bool,
        /// A VIP without a standby keeps a reservation.
        vip_fallback: bool,
    },
    /// Everybody has a dedicated slot, chosen once; what is displaced is lost.
    Dedicated {
        /// Which candidate is best; headroom here means free slots.
        preference: Preference,
    },
}

impl Scheme {
    /// The scheme as the paper's rules have it.
    pub const PAPER: Self =
        Self::Autonomous { preference: Preference::Nearest, strict: false, vip_fallback: true };

    /// The baseline, with the same preference.
    pub const BASELINE: Self = Self::Dedicated { preference: Preference::Nearest };
}

/// The sizes of the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Deliveries that a Base node can carry.
    pub capacity: usize,
    /// Free slots below which entries start to move.
    pub bottom_line: usize,
}

impl Sizes {
    /// Table 1, and a tenth of the capacity as bottom line.
    pub const PAPER: Self = Self { capacity: 30, bottom_line: 3 };
}

/// What stands behind a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backup {
    /// A slot of its own on this Base node.
    Slot(usize),
    /// A reservation without a slot on this Base node.
    Row(usize),
}

/// Where one user ended up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The class of its contract.
    pub sla: Sla,
    /// When its film is over.
    pub ends_at: Time,
    /// The Base node that serves it.
    pub primary: Option<usize>,
    /// What stands behind it.
    pub backup: Option<Backup>,
}

/// The state of the whole network.
#[derive(Clone, Debug)]
pub struct State {
    sizes: Sizes,
    scheme: Scheme,
    steps: Vec<Vec<Option<u32>>>,
    bases: Vec<Base>,
    users: Vec<Placed>,
}

/// One Base node: how many it serves, and who is backed up there.
#[derive(Clone, Debug, Default)]
struct Base {
    served: usize,
    slots: Vec<usize>,
    rows: Vec<usize>,
}

impl State {
    /// The empty network.
    pub fn new(topology: &Topology, sizes: Sizes, scheme: Scheme) -> Self {
        let steps = topology.base().map(|site| topology.base_steps(site)).collect();
        let bases = vec![Base::default(); topology.base_count()];
        Self { sizes, scheme, steps, bases, users: Vec::new() }
    }

    /// The network after all of these have come, one after another.
    pub fn build(topology: &Topology, sizes: Sizes, scheme: Scheme, arrivals: &[Arrival]) -> Self {
        let mut state = Self::new(topology, sizes, scheme);
        for arrival in arrivals {
            state.place(arrival);
        }
        state
    }

    /// Where everybody ended up, in order of arrival.
    pub fn users(&self) -> &[Placed] {
        &self.users
    }

    fn base(&self, at: usize) -> &Base {
        const NOBODY: &Base = &Base { served: usize::MAX, slots: Vec::new(), rows: Vec::new() };
        self.bases.get(at).unwrap_or(NOBODY)
    }

    fn free(&self, at: usize) -> usize {
        let base = self.base(at);
        self.sizes.capacity.saturating_sub(base.served.saturating_add(base.slots.len()))
    }

    fn headroom(&self, at: usize) -> usize {
        self.sizes.capacity.saturating_sub(self.base(at).served)
    }

    /// The best Base node beside `from` and `except` that passes `test`.
    fn best(
        &self,
        from: usize,
        except: usize,
        preference: Preference,
        test: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let candidates = (0..self.bases.len()).filter(|at| *at != from && *at != except && test(*at));
        let reached = candidates.filter_map(|at| Some((at, (*self.steps.get(from)?.get(at)?)?)));
        let key = |(at, steps): &(usize, u32)| {
            let room = match self.scheme {
                Scheme::Autonomous { .. } => Reverse(self.headroom(*at)),
                Scheme::Dedicated { .. } => Reverse(self.free(*at)),
            };
            match preference {
                Preference::Nearest => (usize::try_from(*steps).unwrap_or(usize::MAX), room, 0, *at),
                Preference::MostHeadroom => (0, room, *steps, *at),
            }
        };
        reached.min_by_key(key).map(|(at, _)| at)
    }

    /// Of `users`, the one whose film is over first.
    fn least_left(&self, users: &[usize]) -> Option<usize> {
        users.iter().copied().min_by_key(|user| self.users.get(*user).map(|placed| placed.ends_at))
    }

    /// Takes away what stands behind a user.
    fn unback(&mut self, user: usize) {
        let Some(backup) = self.users.get_mut(user).and_then(|placed| placed.backup.take()) else { return };
        let (Backup::Slot(at) | Backup::Row(at)) = backup;
        if let Some(base) = self.bases.get_mut(at) {
            base.slots.retain(|other| *other != user);
            base.rows.retain(|other| *other != user);
        }
    }

    fn back(&mut self, user: usize, backup: Backup) {
        let (Backup::Slot(at) | Backup::Row(at)) = backup;
        if let (Some(base), Some(placed)) = (self.bases.get_mut(at), self.users.get_mut(user)) {
            placed.backup = Some(backup);
            match backup {
                Backup::Slot(_) => base.slots.push(user),
                Backup::Row(_) => base.rows.push(user),
            }
        }
    }

    /// One user comes: it is served where there is room, then looks for a backup.
    pub fn place(&mut self, arrival: &Arrival) {
        let user = self.users.len();
        let Arrival { sla, ends_at, .. } = *arrival;
        let target = arrival.target.index();
        let takes = |state: &Self, at: usize| state.base(at).served < state.sizes.capacity;
        let primary = if takes(self, target) {
            Some(target)
        } else {
            // The Pull-MA walks on by steps, then names: it knows no headroom.
            let steps = self.steps.get(target);
            let steps = |at: usize| steps.and_then(|steps| *steps.get(at)?).unwrap_or(u32::MAX);
            (0..self.bases.len()).filter(|at| takes(self, *at)).min_by_key(|at| (steps(*at), *at))
        };
        self.users.push(Placed { sla, ends_at, primary, backup: None });
        let Some(primary) = primary else { return };
        self.make_room(primary);
        if let Some(base) = self.bases.get_mut(primary) {
            base.served += 1;
        }
        self.search(user, primary, usize::MAX);
    }

    /// Before a primary or a standby enters: a full node gives up a standby, a
    /// node at its bottom line moves one reservation.
    fn make_room(&mut self, at: usize) {
        match self.scheme {
            Scheme::Autonomous { .. } if self.free(at) == 0 => {
                if let Some(leaves) = self.least_left(&self.base(at).slots) {
                    self.unback(leaves);
                    self.search_again(leaves, at);
                }
            }
            Scheme::Autonomous { .. } => self.move_one_row(at),
            Scheme::Dedicated { .. } if self.free(at) == 0 => {
                let slots = self.base(at).slots.clone();
                let of = |sla| -> Vec<usize> {
                    let is = |user: &&usize| self.users.get(**user).is_some_and(|placed| placed.sla == sla);
                    slots.iter().filter(is).copied().collect()
                };
                let leaves = self.least_left(&of(Sla::Normal)).or_else(|| self.least_left(&of(Sla::Vip)));
                if let Some(leaves) = leaves {
                    self.unback(leaves);
                }
            }
            Scheme::Dedicated { .. } => {}
        }
    }

    fn move_one_row(&mut self, at: usize) {
        if self.free(at) > self.sizes.bottom_line {
            return;
        }
        if let Some(leaves) = self.least_left(&self.base(at).rows) {
            self.unback(leaves);
            self.search_again(leaves, at);
        }
    }

    fn search_again(&mut self, user: usize, except: usize) {
        let primary = self.users.get(user).and_then(|placed| placed.primary);
        if let Some(primary) = primary {
            self.search(user, primary, except);
        }
    }

    /// The search for a backup of one user, whose primary is `from`.
    fn search(&mut self, user: usize, from: usize, except: usize) {
        let sla = self.users.get(user).map_or(Sla::Normal, |placed| placed.sla);
        match (self.scheme, sla) {
            (Scheme::Autonomous { preference, strict, vip_fallback }, Sla::Vip) => {
                let found = self.best(from, except, preference, |at| self.free(at) >= 1);
                if let Some(at) = found {
                    self.move_one_row(at);
                    self.back(user, Backup::Slot(at));
                } else if vip_fallback {
                    self.reserve(user, from, except, preference, strict);
                }
            }
            (Scheme::Autonomous { preference, strict, .. }, Sla::Normal) => {
                self.reserve(user, from, except, preference, strict);
            }
            (Scheme::Dedicated { preference }, _) => {
                let free = self.best(from, except, preference, |at| self.free(at) >= 1);
                if let Some(at) = free {
                    self.back(user, Backup::Slot(at));
                } else if sla == Sla::Vip {
                    self.take_from_normal(user, from);
                }
            }
        }
    }

    fn reserve(&mut self, user: usize, from: usize, except: usize, preference: Preference, strict: bool) {
        let room = |at: usize| if strict { self.free(at) } else { self.headroom(at) };
        if let Some(at) = self.best(from, except, preference, |at| room(at) >= 1) {
            self.back(user, Backup::Row(at));
        }
    }

    /// A VIP of the dedicated scheme takes the slot behind a normal user.
    fn take_from_normal(&mut self, user: usize, from: usize) {
        let normal = |other: &usize| self.users.get(*other).is_some_and(|placed| placed.sla == Sla::Normal);
        let backs = |at: usize| self.base(at).slots.iter().any(&normal);
        let Some(at) = self.best(from, from, Preference::Nearest, backs) else { return };
        let normals: Vec<usize> = self.base(at).slots.iter().copied().filter(&normal).collect();
        if let Some(leaves) = self.least_left(&normals) {
            self.unback(leaves);
            self.back(user, Backup::Slot(at));
        }
    }

    /// Fails every Base node in turn, each from this state.
    pub fn continuity(&self) -> Continuity {
        let served =
            |sla| self.users.iter().filter(|placed| placed.sla == sla && placed.primary.is_some()).count();
        Continuity {
            failures: (0..self.bases.len()).map(|failed| self.fail(failed)).collect(),
            normals: served(Sla::Normal),
            vips: served(Sla::Vip),
            unserved: self.users.iter().filter(|placed| placed.primary.is_none()).count(),
        }
    }

    /// What the failure of one Base node does. Hot standbys take over first,
    /// then reservations of VIPs, then those of normal users, as far as the
    /// headroom of their node goes.
    fn fail(&self, failed: usize) -> FailureTally {
        let mut tally = FailureTally::default();
        let strict = matches!(self.scheme, Scheme::Autonomous { strict: true, .. });
        let room = |at| if strict { self.free(at) } else { self.headroom(at) };
        let mut room: Vec<usize> = (0..self.bases.len()).map(room).collect();
        let lost =
            |sla| self.users.iter().filter(move |placed| placed.primary == Some(failed) && placed.sla == sla);
        let mut take = |placed: &&Placed| match placed.backup {
            // Under the strict reading a standby's own slot is not among the free ones.
            Some(Backup::Slot(_)) if strict => true,
            Some(Backup::Slot(at) | Backup::Row(at)) => match room.get_mut(at) {
                Some(room) if *room >= 1 => {
                    *room -= 1;
                    true
                }
                Some(_) | None => false,
            },
            None => false,
        };
        let standby = |placed: &&Placed| matches!(placed.backup, Some(Backup::Slot(_)));
        tally.vips = lost(Sla::Vip).count();
        tally.vips_nonstop += lost(Sla::Vip).filter(standby).filter(&mut take).count();
        tally.vips_nonstop += lost(Sla::Vip).filter(|placed| !standby(placed)).filter(&mut take).count();
        tally.normals = lost(Sla::Normal).count();
        tally.normals_nonstop = match self.scheme {
            Scheme::Autonomous { .. } => lost(Sla::Normal).filter(&mut take).count(),
            Scheme::Dedicated { .. } => lost(Sla::Normal).filter(standby).count(),
        };
        tally
    }

    /// Whether a Base node carries more than it can, by name of the first.
    pub fn overloaded(&self) -> Option<SiteId> {
        let over = |at: &usize| {
            let base = self.base(*at);
            base.served + base.slots.len() > self.sizes.capacity
        };
        (0..self.bases.len()).find(over).map(SiteId::at)
    }
}

/// The closed form of the dedicated scheme with perfect packing: all slots,
/// less those of the users, less those behind VIPs, for the normal users.
pub fn dedicated_closed_form(slots: f64, users: f64, vip_ratio: f64) -> f64 {
    ((slots - users - vip_ratio * users) / ((1.0 - vip_ratio) * users)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests;
