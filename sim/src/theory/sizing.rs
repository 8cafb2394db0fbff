//! A site as a whole: slots, the link to the viewers and the link to the origin
//! at once, and the threshold of one class with which targets are met.
//!
//! Every viewing takes one slot, some units of the link to the viewers, and, if
//! its title is not stored, some of the link to the origin for as long as it
//! lasts. All limits are lawful borders of a product form, so the generalised
//! Kaufman-Roberts recursion is exact: with `q_n(x)` the weight of all states with
//! n viewings that take x of the other resources, `n q_n(x) = sum rho_s q_(n-1)(x -
//! u_s)` over all streams s. A threshold is a resource too, of which viewings of
//! its class take one unit each; so one pass gives every threshold at once. Where no
//! other class has one, its class is solved apart from the others, and much larger
//! sites are possible. All
//! terms are positive, and no weight is too large or too small to be told (the
//! states that count under a threshold of 0 may weigh `1e-3000` of those under
//! none): no digits are lost.

use super::wide::Wide;
use super::{MAX_CLASSES, MAX_SERVERS, TheoryError, apart, at, check_erlangs};

/// The most steps of the recursion.
pub const MAX_STEPS: u64 = 1_000_000_000;
/// What a state of slots and links costs where one class is solved apart.
const STEPS_APART: u64 = 20;

/// Viewings that take the same.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stream {
    /// Its class, from 0.
    pub class: usize,
    /// Offered load in erlangs.
    pub erlangs: f64,
    /// Units of the link to the viewers.
    pub to_viewers: u32,
    /// Units of the link to the origin; 0 for what is stored.
    pub to_origin: u32,
}

/// A site and its demand.
#[derive(Clone, Debug, PartialEq)]
pub struct Site {
    /// C.
    pub slots: u32,
    /// Units of the link to the viewers; none: it never fills.
    pub to_viewers: Option<u32>,
    /// Units of the link to the origin; none: it never fills.
    pub to_origin: Option<u32>,
    /// How many classes there are.
    pub classes: usize,
    /// What is asked for.
    pub streams: Vec<Stream>,
    /// `T_k` of each class but the one that is looked at; `u32::MAX`: none.
    pub thresholds: Vec<u32>,
}

/// The blocking of each class for each threshold of one of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    /// `blocking[T][k]`, for T from 0 to C: the mean over the streams of class k,
    /// weighed by their loads; 0 for a class that asks for nothing. Only for T = 0
    /// if there is no stream of the class that is looked at.
    pub blocking: Vec<Vec<f64>>,
}

/// One limited resource beside the slots.
#[derive(Clone, Debug)]
struct Axis {
    limit: u32,
    /// What each stream takes.
    takes: Vec<u32>,
    stride: usize,
}

/// All axes, and where the threshold that is looked at stands.
struct Space {
    axes: Vec<Axis>,
    cells: usize,
}

impl Space {
    /// The limits beside the slots, and what each stream takes of them: first the
    /// threshold that is looked at.
    fn limits(site: &Site, class: usize) -> Vec<(u32, Vec<u32>)> {
        let slots = site.slots;
        let counts =
            |of: usize| site.streams.iter().map(move |stream| u32::from(stream.class == of)).collect();
        let asked = site.streams.iter().any(|stream| stream.class == class);
        let mut limits = vec![(if asked { slots } else { 0 }, counts(class))];
        for (other, threshold) in site.thresholds.iter().enumerate() {
            if other != class && *threshold < slots {
                limits.push((*threshold, counts(other)));
            }
        }
        let [to_viewers, to_origin] = site.links();
        let takes = |of: fn(&Stream) -> u32| site.streams.iter().map(of).collect();
        limits.extend(to_viewers.map(|limit| (limit, takes(|stream| stream.to_viewers))));
        limits.extend(to_origin.map(|limit| (limit, takes(|stream| stream.to_origin))));
        limits
    }

    fn new(site: &Site, class: usize) -> Result<Self, TheoryError> {
        if site.steps(class) > MAX_STEPS {
            return Err(TheoryError::States);
        }
        let mut cells: usize = 1;
        let mut axes = Vec::new();
        for (limit, takes) in Self::limits(site, class) {
            axes.push(Axis { limit, takes, stride: cells });
            cells = cells.saturating_mul(at(limit).saturating_add(1));
        }
        Ok(Self { axes, cells })
    }

    /// For each stream how far one more viewing leads, and for each cell and
    /// stream whether that is still lawful, links and other thresholds only.
    fn moves(&self, streams: usize) -> (Vec<usize>, Vec<Vec<bool>>) {
        let taken = |axis: &Axis, stream: usize| axis.takes.get(stream).copied().unwrap_or(0);
        let ahead = (0..streams)
            .map(|stream| self.axes.iter().map(|axis| axis.stride * at(taken(axis, stream))).sum())
            .collect();
        let lawful = |stream: usize| {
            let fits = |cell: usize| {
                self.axes.iter().skip(1).all(|axis| {
                    let used = cell / axis.stride % (at(axis.limit) + 1);
                    used + at(taken(axis, stream)) <= at(axis.limit)
                })
            };
            (0..self.cells).map(fits).collect()
        };
        (ahead, (0..streams).map(lawful).collect())
    }
}

impl Site {
    /// The site under another demand: all loads `factor` times.
    #[must_use]
    pub fn under(&self, factor: f64) -> Self {
        let streams = self.streams.iter();
        let streams = streams.map(|stream| Stream { erlangs: stream.erlangs * factor, ..*stream });
        Self { streams: streams.collect(), ..self.clone() }
    }

    /// The links to the viewers and to the origin, if they can be full: one that all
    /// slots together cannot fill is no limit.
    fn links(&self) -> [Option<u32>; 2] {
        let limit = |limit: Option<u32>, takes: fn(&Stream) -> u32| {
            let most = self.streams.iter().map(takes).max().unwrap_or(0);
            limit.filter(|limit| u64::from(*limit) < u64::from(most) * u64::from(self.slots))
        };
        [limit(self.to_viewers, |stream| stream.to_viewers), limit(self.to_origin, |stream| stream.to_origin)]
    }

    /// Whether no class but this one has a threshold.
    fn is_alone(&self, class: usize) -> bool {
        let held = |(other, threshold): (usize, &u32)| other != class && *threshold < self.slots;
        !self.thresholds.iter().enumerate().any(held)
    }

    /// How many steps a sweep over the thresholds of `class` takes.
    pub fn steps(&self, class: usize) -> u64 {
        if self.is_alone(class) {
            let cells = self.links().into_iter().flatten();
            let cells =
                cells.fold(u64::from(self.slots) + 1, |all, link| all.saturating_mul(u64::from(link) + 1));
            return cells.saturating_mul(STEPS_APART);
        }
        let streams = u64::try_from(self.streams.len()).unwrap_or(u64::MAX);
        let rows = streams.saturating_mul(u64::from(self.slots) + 1);
        let limits = Space::limits(self, class);
        limits.iter().fold(rows, |steps, (limit, _)| steps.saturating_mul(u64::from(*limit) + 1))
    }

    /// `B_k` for each threshold of `class`, from 0 to C.
    pub fn sweep(&self, class: usize) -> Result<Sweep, TheoryError> {
        self.check(class)?;
        if self.is_alone(class) && self.streams.iter().any(|stream| stream.class == class) {
            if self.steps(class) > MAX_STEPS {
                return Err(TheoryError::States);
            }
            let (all, blocked) = apart::by_viewings(self, class, self.links());
            return self.sum_up(class, &all, &blocked);
        }
        self.sweep_together(class)
    }

    /// The sweep with thresholds of other classes too: all classes in one recursion.
    fn sweep_together(&self, class: usize) -> Result<Sweep, TheoryError> {
        let space = Space::new(self, class)?;
        let (ahead, lawful) = space.moves(self.streams.len());
        let counts = space.axes.first().map_or(1, |axis| at(axis.limit) + 1);
        // By the number of viewings of the class: all weight, and for each stream
        // the weight of the states in which it is blocked but for the threshold.
        let mut all = vec![Wide::ZERO; counts];
        let mut blocked = vec![vec![Wide::ZERO; counts]; self.streams.len()];
        let mut row = vec![Wide::ZERO; space.cells];
        if let Some(first) = row.first_mut() {
            *first = Wide::ONE;
        }
        for viewings in 0..=self.slots {
            if viewings > 0 {
                row = self.next_row(&row, viewings, &ahead, &lawful);
            }
            for (cell, weight) in row.iter().enumerate().filter(|(_, weight)| weight.is_some()) {
                let count = cell % counts;
                if let Some(all) = all.get_mut(count) {
                    *all += *weight;
                }
                for (lawful, blocked) in lawful.iter().zip(&mut blocked) {
                    let open = viewings < self.slots && lawful.get(cell).copied().unwrap_or(false);
                    if let (false, Some(blocked)) = (open, blocked.get_mut(count)) {
                        *blocked += *weight;
                    }
                }
            }
        }
        self.sum_up(class, &all, &blocked)
    }

    fn check(&self, class: usize) -> Result<(), TheoryError> {
        if class >= self.classes || self.thresholds.len() != self.classes {
            return Err(TheoryError::Empty);
        }
        if self.streams.len() > MAX_CLASSES {
            return Err(TheoryError::Classes(self.streams.len()));
        }
        if self.slots > MAX_SERVERS {
            return Err(TheoryError::Servers(self.slots));
        }
        self.streams.iter().try_for_each(|stream| check_erlangs(stream.class + 1, stream.erlangs))
    }

    fn next_row(&self, row: &[Wide], viewings: u32, ahead: &[usize], lawful: &[Vec<bool>]) -> Vec<Wide> {
        let mut next = vec![Wide::ZERO; row.len()];
        for ((stream, ahead), lawful) in self.streams.iter().zip(ahead).zip(lawful) {
            let rate = stream.erlangs / f64::from(viewings);
            let places = next.get_mut(*ahead..).unwrap_or(&mut []);
            for ((place, weight), lawful) in places.iter_mut().zip(row).zip(lawful) {
                if *lawful && weight.is_some() {
                    *place += *weight * rate;
                }
            }
        }
        next
    }

    /// From weights by number of viewings to probabilities by threshold.
    fn sum_up(&self, class: usize, all: &[Wide], blocked: &[Vec<Wide>]) -> Result<Sweep, TheoryError> {
        let mut sweep = Vec::with_capacity(all.len());
        let mut total = Wide::ZERO;
        let mut sums = vec![Wide::ZERO; self.streams.len()];
        for (threshold, weight) in all.iter().enumerate() {
            total += *weight;
            if !total.is_some() {
                return Err(TheoryError::Unstable);
            }
            let mut load = vec![0.0; self.classes];
            let mut lost = vec![0.0; self.classes];
            for ((stream, sum), blocked) in self.streams.iter().zip(&mut sums).zip(blocked) {
                let here = blocked.get(threshold).copied().unwrap_or(Wide::ZERO);
                let before = *sum;
                *sum += here;
                // At the threshold every state blocks its class.
                let share = if stream.class == class { before + *weight } else { *sum } / total;
                if let (Some(load), Some(lost)) = (load.get_mut(stream.class), lost.get_mut(stream.class)) {
                    *load += stream.erlangs;
                    *lost += stream.erlangs * share;
                }
            }
            let of = |(lost, load): (f64, f64)| if load > 0.0 { (lost / load).clamp(0.0, 1.0) } else { 0.0 };
            sweep.push(lost.into_iter().zip(load).map(of).collect());
        }
        Ok(Sweep { blocking: sweep })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]
mod tests {
    use super::super::{Load, MAX_ERLANGS, System, misses};
    use super::*;
    use crate::rng::Rng;

    fn stream(class: usize, erlangs: f64, to_viewers: u32, to_origin: u32) -> Stream {
        Stream { class, erlangs, to_viewers, to_origin }
    }

    fn site(slots: u32, streams: Vec<Stream>) -> Site {
        Site { slots, to_viewers: None, to_origin: None, classes: 3, streams, thresholds: vec![u32::MAX; 3] }
    }

    fn near(left: f64, right: f64) -> bool {
        (left - right).abs() < 1e-12
    }

    #[test]
    fn one_pass_gives_what_convolution_gives_for_each_threshold() {
        let rho = 100.0 / 3.0;
        let site = site(100, (0..3).map(|class| stream(class, rho, 1, 0)).collect());
        let sweep = site.sweep(2).unwrap();
        assert_eq!(sweep.blocking.len(), 101);
        for (threshold, blocked) in (0..).zip(&sweep.blocking) {
            let loads = vec![Load::of(rho), Load::of(rho), Load::of(rho).up_to(threshold)];
            let expected = System::new(100, loads).unwrap().blocking();
            assert!(blocked.iter().zip(&expected).all(|(left, right)| near(*left, *right)), "{threshold}");
        }
    }

    #[test]
    fn a_million_erlangs_leave_all_digits_under_every_threshold() {
        for (rho, other) in [(1e6, 900.0), (1e6, 1e6), (MAX_ERLANGS, 1e-3), (0.0, 1e6)] {
            let streams = vec![stream(0, other, 1, 0), stream(2, rho, 1, 0)];
            let blocking = site(1000, streams).sweep(2).unwrap().blocking;
            for threshold in [0, 1, 500, 999, 1000] {
                let loads = vec![Load::of(other), Load::of(rho).up_to(threshold)];
                let expected = System::new(1000, loads).unwrap().blocking();
                let found = &blocking[at(threshold)];
                let same = near(found[0], expected[0]) && (rho <= 0.0 || near(found[2], expected[1]));
                assert!(same, "{rho} {other} {threshold}: {found:?} {expected:?}");
            }
        }
    }

    #[test]
    fn an_overfilled_link_keeps_the_states_that_are_likely_only_at_its_border() {
        // Gold alone would fill the link with 120 viewings; bronze, a thousandth as
        // often asked for, with 480: most states are of the latter.
        let streams = vec![stream(0, 1e9, 4, 0), stream(0, 1e6, 1, 0)];
        let site = Site { to_viewers: Some(480), ..site(600, streams) };
        let blocked = site.sweep(2).unwrap().blocking[0][0];
        let (mut all, mut lost) = (0.0, 0.0);
        for gold in 0..=120_u32 {
            for bronze in 0..=480 - 4 * gold {
                let term = |rho: f64, n: u32| (1..=n).map(|k| (rho / f64::from(k)).ln()).sum::<f64>();
                // Beside the fullest state.
                let weight = (term(1e9, gold) + term(1e6, bronze) - term(1e6, 480)).exp();
                let left = 480 - 4 * gold - bronze;
                all += weight;
                lost +=
                    weight * (1e9 * f64::from(u32::from(left < 4)) + 1e6 * f64::from(u32::from(left < 1)));
            }
        }
        let expected = lost / all / (1e9 + 1e6);
        assert!((blocked - expected).abs() < 1e-9, "{blocked} {expected}");
    }

    #[test]
    fn the_smallest_loss_under_a_target_of_one_percent_is_at_nineteen() {
        let rho = 100.0 / 3.0;
        let site = site(100, (0..3).map(|class| stream(class, rho, 1, 0)).collect());
        let blocking = site.sweep(2).unwrap().blocking;
        let met = (0..101).filter(|threshold| blocking[*threshold][..2].iter().all(|b| *b <= 0.01));
        let best = met.min_by(|left, right| {
            let loss = |at: &usize| blocking[*at].iter().sum::<f64>();
            loss(left).total_cmp(&loss(right))
        });
        assert_eq!(best, Some(19));
        assert_eq!(format!("{:.5} {:.5}", blocking[19][0], blocking[20][0]), "0.00894 0.01085");
    }

    #[test]
    fn links_and_thresholds_together_agree_with_the_two_dimensional_solution() {
        let loads = [(14.0, 0.9), (10.0, 0.9), (10.0, 0.2)];
        let streams = loads.iter().enumerate().flat_map(|(class, (rho, hits))| {
            [stream(class, rho * hits, 2, 0), stream(class, rho * (1.0 - hits), 2, 1)]
        });
        let site = Site {
            to_origin: Some(12),
            // 81 units carry 40 viewings of two units: the slots are not the limit.
            to_viewers: Some(81),
            ..site(60, streams.collect())
        };
        let sweep = site.sweep(2).unwrap();
        for threshold in [0_u32, 8, 40] {
            let split = |(rho, hits): (f64, f64), threshold| misses::Split { erlangs: rho, hits, threshold };
            let classes = [split(loads[0], None), split(loads[1], None), split(loads[2], Some(threshold))];
            let expected = misses::blocking(40, 12, &classes).unwrap();
            for (found, expected) in sweep.blocking[at(threshold)].iter().zip(expected) {
                assert!(near(*found, expected.class), "{threshold}: {found} {expected:?}");
            }
        }
    }

    #[test]
    fn one_class_apart_gives_what_all_together_give() {
        let seed = 2007;
        let mut rng = Rng::new(seed);
        let number = |count: usize| u32::try_from(count).unwrap();
        for case in 0..60 {
            let slots = 1 + rng.below(9);
            let streams = (0..=rng.below(5)).map(|_| {
                let of = number(rng.below(4));
                stream(rng.below(3), rng.unit() * 5.0, of, number(rng.below(3)))
            });
            let streams: Vec<Stream> = [stream(2, 1.5, 1, 1)].into_iter().chain(streams).collect();
            let site = Site {
                to_viewers: rng.chance(0.7).then(|| number(rng.below(2 * slots + 2))),
                to_origin: rng.chance(0.7).then(|| number(rng.below(slots + 1))),
                ..site(number(slots), streams)
            };
            let (apart, together) = (site.sweep(2).unwrap(), site.sweep_together(2).unwrap());
            assert_eq!(apart.blocking.len(), together.blocking.len());
            for (apart, together) in apart.blocking.iter().zip(&together.blocking) {
                let same = apart.iter().zip(together).all(|(left, right)| near(*left, *right));
                assert!(same, "seed {seed}, case {case}: {apart:?} {together:?} in {site:?}");
            }
        }
    }

    #[test]
    fn a_threshold_held_by_another_class_counts_as_a_resource() {
        let loads = [20.0, 30.0, 25.0];
        let mut site = site(50, (0..3).map(|class| stream(class, loads[class], 1, 0)).collect());
        site.thresholds[1] = 12;
        let found = site.sweep(2).unwrap().blocking[7].clone();
        let classes = vec![Load::of(20.0), Load::of(30.0).up_to(12), Load::of(25.0).up_to(7)];
        let expected = System::new(50, classes).unwrap().blocking();
        assert!(
            found.iter().zip(&expected).all(|(left, right)| near(*left, *right)),
            "{found:?} {expected:?}"
        );
        assert_eq!(site.sweep(3), Err(TheoryError::Empty));
        assert_eq!(Site { slots: MAX_SERVERS, ..site }.sweep(2), Err(TheoryError::States));
    }
}
