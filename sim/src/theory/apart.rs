//! A sweep over the thresholds of one class that is solved apart from all others.
//!
//! Only that class has a threshold, so with `F_t(x)` the weight of the states with t
//! of its viewings that take x of the links, and `R_n(x)` the same of all others, the
//! states under a threshold T weigh `sum over t <= T of F_t(x) R_n(x')`, n at most C -
//! t and x' at most what x leaves. Sums of `R` over all that is left are made once for
//! each n, so that the work grows with C times the units of the links, and not with
//! its square. What is blocked is summed by itself, as slices along the borders: no
//! difference is taken, and no digits are lost.

use super::at;
use super::sizing::{Site, Stream};
use super::wide::Wide;

/// The links, as so many units each, less one line for each unit of the first.
#[derive(Clone, Copy)]
struct Plane {
    height: usize,
    width: usize,
}

/// What a viewing takes of both links.
type Units = (usize, usize);

impl Plane {
    const fn cells(self) -> usize {
        self.height.saturating_mul(self.width)
    }

    /// The states with one viewing more, `viewings` in all.
    fn next(self, row: &[Wide], streams: &[(Units, f64)], viewings: u32) -> Vec<Wide> {
        let mut next = vec![Wide::ZERO; self.cells()];
        for ((down, right), erlangs) in streams {
            let rate = erlangs / f64::from(viewings);
            let lines = next.chunks_mut(self.width).skip(*down).zip(row.chunks(self.width));
            for (to, from) in lines {
                for (place, weight) in to.iter_mut().skip(*right).zip(from).filter(|(_, w)| w.is_some()) {
                    *place += *weight * rate;
                }
            }
        }
        next
    }

    /// Sums over everything up to each place, along each line.
    fn sums_right(self, mut row: Vec<Wide>) -> Vec<Wide> {
        for line in row.chunks_mut(self.width) {
            let mut sum = Wide::ZERO;
            for place in line {
                sum += *place;
                *place = sum;
            }
        }
        row
    }

    /// The same across the lines.
    fn sums_down(self, mut row: Vec<Wide>) -> Vec<Wide> {
        let mut sums = vec![Wide::ZERO; self.width];
        for line in row.chunks_mut(self.width) {
            for (place, sum) in line.iter_mut().zip(&mut sums) {
                *sum += *place;
                *place = *sum;
            }
        }
        row
    }

    /// Of the sums along one direction each, the weight of what is left at each place
    /// and has no room for one viewing more that takes so much.
    fn slices(self, right: &[Wide], down: &[Wide], (takes_down, takes_right): Units) -> Vec<Wide> {
        let mut slices = window(right, self.width, takes_down);
        for (to, from) in slices.chunks_mut(self.width).skip(takes_down).zip(down.chunks(self.width)) {
            for (place, more) in to.iter_mut().zip(window(from, 1, takes_right)) {
                *place += more;
            }
        }
        slices
    }
}

/// At each place the sum over it and those before it, a stride apart, `count` in all:
/// from sums over 1, 2, 4 and so on.
fn window(values: &[Wide], stride: usize, count: usize) -> Vec<Wide> {
    let mut sums = vec![Wide::ZERO; values.len()];
    let (mut block, mut size, mut done) = (values.to_vec(), 1_usize, 0_usize);
    while done < count && done.saturating_mul(stride) < values.len() {
        if count & size != 0 {
            for (sum, more) in sums.iter_mut().skip(done * stride).zip(&block) {
                *sum += *more;
            }
            done += size;
        }
        let before = block.clone();
        for (place, more) in block.iter_mut().skip(size.saturating_mul(stride)).zip(&before) {
            *place += *more;
        }
        size = size.saturating_mul(2);
    }
    sums
}

/// The sum over what one takes times what is left for the others.
fn meet(own: &[Wide], left: &[Wide]) -> Wide {
    own.iter().zip(left.iter().rev()).filter(|(own, _)| own.is_some()).map(|(own, left)| *own * *left).sum()
}

/// For each number of viewings of the class: the weight of all states, and for each
/// stream of those in which it is blocked but for the threshold. `links`: the limits
/// of those that can be full.
pub(super) fn by_viewings(site: &Site, class: usize, links: [Option<u32>; 2]) -> (Vec<Wide>, Vec<Vec<Wide>>) {
    let [to_viewers, to_origin] = links;
    let size = |link: Option<u32>| at(link.unwrap_or(0)).saturating_add(1);
    let plane = Plane { height: size(to_viewers), width: size(to_origin) };
    let taken = |link: Option<u32>, takes: u32| if link.is_some() { at(takes) } else { 0 };
    let units = |s: &Stream| (taken(to_viewers, s.to_viewers), taken(to_origin, s.to_origin));
    let of = |own: bool| -> Vec<(Units, f64)> {
        let chosen = site.streams.iter().filter(|stream| (stream.class == class) == own);
        chosen.map(|stream| (units(stream), stream.erlangs)).collect()
    };
    let mut kinds: Vec<Units> = site.streams.iter().map(units).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let mut none = vec![Wide::ZERO; plane.cells()];
    if let Some(first) = none.first_mut() {
        *first = Wide::ONE;
    }
    let (own, others) = (of(true), of(false));
    let mut rows = vec![none.clone()];
    for viewings in 1..=site.slots {
        let next = rows.last().map_or_else(Vec::new, |row| plane.next(row, &own, viewings));
        rows.push(next);
    }

    // From the last one on: what the others may have then is one viewing more each time.
    let (mut row, mut fewer) = (none, vec![Wide::ZERO; plane.cells()]);
    let mut all = Vec::with_capacity(rows.len());
    let mut blocked = vec![Vec::with_capacity(rows.len()); kinds.len()];
    for (viewings, own) in (0..).zip(rows.iter().rev()) {
        if viewings > 0 {
            row = plane.next(&row, &others, viewings);
        }
        // All slots are taken.
        let full = plane.sums_down(plane.sums_right(row.clone()));
        let (right, down) = (plane.sums_right(fewer.clone()), plane.sums_down(fewer.clone()));
        let full = meet(own, &full);
        all.push(full + meet(own, &plane.sums_down(right.clone())));
        for (kind, blocked) in kinds.iter().zip(&mut blocked) {
            blocked.push(full + meet(own, &plane.slices(&right, &down, *kind)));
        }
        for (sum, weight) in fewer.iter_mut().zip(&row) {
            *sum += *weight;
        }
    }
    all.reverse();
    for chances in &mut blocked {
        chances.reverse();
    }
    let of_stream = |stream: &Stream| {
        let kind = kinds.binary_search(&units(stream)).ok();
        kind.and_then(|kind| blocked.get(kind)).cloned().unwrap_or_default()
    };
    let blocked = site.streams.iter().map(of_stream).collect();
    (all, blocked)
}
