//! Viewings that may need the link to the origin: the exact solution for a node
//! that streams through what it does not store.
//!
//! Class k splits into hits, offered `rho_k h_k`, and misses, offered `rho_k (1 -
//! h_k)`. A miss holds a channel of the link to the origin for as long as it
//! holds its server, so the system still has a product form: states are `t_k`
//! viewings of which `m_k` are misses, lawful if `sum t <= C`, `sum m <= C_wan`
//! and `t_k <= T_k`. Solved by convolution over both sums, tilted in both
//! directions as in one. Downloading first has no product form: simulate that.

use super::terms::{poisson, rescale, solve};
use super::{MAX_CLASSES, MAX_SERVERS, TheoryError, at, check_erlangs, check_share};

/// The most multiplications.
const MAX_WORK: u64 = 4_000_000_000;

/// One class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Split {
    /// `rho_k`, in erlangs.
    pub erlangs: f64,
    /// `h_k`: the share of requests whose title is stored. 0 to 1.
    pub hits: f64,
    /// `T_k`; none: no threshold.
    pub threshold: Option<u32>,
}

/// The probabilities that a request is refused.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SplitBlocking {
    /// A request for what is stored.
    pub hit: f64,
    /// A request for what is not.
    pub miss: f64,
    /// A request of the class: `h hit + (1 - h) miss`.
    pub class: f64,
}

/// Weights over (viewings, misses), row by row: `channels + 1` in each row.
#[derive(Clone, Debug)]
struct Grid {
    width: usize,
    weights: Vec<f64>,
}

impl Grid {
    fn at(&self, viewings: usize, misses: usize) -> f64 {
        if misses >= self.width {
            return 0.0;
        }
        self.weights.get(viewings * self.width + misses).copied().unwrap_or(0.0)
    }

    fn row(&self, viewings: usize) -> &[f64] {
        self.weights.get(viewings * self.width..(viewings + 1) * self.width).unwrap_or(&[])
    }

    /// Only the empty state, in a grid of this size.
    fn empty_state(rows: usize, width: usize) -> Self {
        let mut weights = vec![0.0; rows * width];
        if let Some(first) = weights.first_mut() {
            *first = 1.0;
        }
        Self { width, weights }
    }

    /// The convolution with another grid, cut to the size of this one.
    fn with(&self, other: &Self) -> Self {
        let rows = self.weights.len() / self.width.max(1);
        let mut sum = Self { width: self.width, weights: vec![0.0; self.weights.len()] };
        let cells = other.weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0);
        for (cell, weight) in cells {
            let (down, right) = (cell / other.width, cell % other.width);
            for row in 0..rows.saturating_sub(down) {
                let to = (row + down) * self.width;
                let Some(to) = sum.weights.get_mut(to + right..to + self.width) else { continue };
                for (place, from) in to.iter_mut().zip(self.row(row)) {
                    *place += weight * from;
                }
            }
        }
        rescale(&mut sum.weights);
        sum
    }

    /// Sums over all rows up to each, each row further counting `z` times more.
    fn sums_down(&self, z: f64) -> Self {
        let mut sums = self.clone();
        let mut above = vec![0.0; self.width];
        for row in sums.weights.chunks_mut(self.width.max(1)) {
            for (place, above) in row.iter_mut().zip(&mut above) {
                *place += *above * z;
                *above = *place;
            }
        }
        sums
    }

    /// The same along each row.
    fn sums_right(&self, y: f64) -> Self {
        let mut sums = self.clone();
        for row in sums.weights.chunks_mut(self.width.max(1)) {
            let mut before = 0.0;
            for place in row {
                *place += before * y;
                before = *place;
            }
        }
        sums
    }
}

/// `B_k` of hits and misses of each class on `servers` servers (of the node, or
/// as many as the link to the viewers carries, if those are fewer) and `channels`
/// of the link to the origin.
pub fn blocking(servers: u32, channels: u32, classes: &[Split]) -> Result<Vec<SplitBlocking>, TheoryError> {
    check(servers, classes)?;
    let channels = channels.min(servers);
    let most = |split: &Split| split.threshold.map_or(servers, |threshold| threshold.min(servers));
    let z = solve(f64::from(servers), |z| {
        let viewings = |split: &Split| {
            let hits = split.erlangs * z * split.hits;
            let misses = (split.erlangs * z - hits).min(f64::from(channels));
            (hits + misses).min(f64::from(most(split)))
        };
        classes.iter().map(viewings).sum()
    });
    let y = solve(f64::from(channels), |y| {
        let misses = |split: &Split| (split.erlangs * z * (1.0 - split.hits) * y).min(f64::from(most(split)));
        classes.iter().map(misses).sum()
    });
    let (rows, width) = (at(servers) + 1, at(channels) + 1);
    let cells = u64::try_from(rows * width).unwrap_or(u64::MAX);
    let work = classes.iter().map(|split| u64::from(most(split)) + 1).max().unwrap_or(0);
    let work = work.saturating_mul(u64::try_from(width).unwrap_or(u64::MAX)).saturating_mul(cells);
    if work.saturating_mul(u64::try_from(classes.len()).unwrap_or(u64::MAX)) > MAX_WORK {
        return Err(TheoryError::States);
    }
    let own: Vec<Grid> = classes.iter().map(|split| terms(split, most(split), channels, (z, y))).collect();
    let mut result = Vec::new();
    for (class, split) in classes.iter().enumerate() {
        let others = own.iter().enumerate().filter(|(other, _)| *other != class);
        let others = others.fold(Grid::empty_state(rows, width), |sum, (_, terms)| sum.with(terms));
        if let Some(own) = own.get(class) {
            result.push(blocked(split, own, &others, (servers, channels), (z, y))?);
        }
    }
    Ok(result)
}

fn check(servers: u32, classes: &[Split]) -> Result<(), TheoryError> {
    if classes.is_empty() {
        return Err(TheoryError::Empty);
    }
    if classes.len() > MAX_CLASSES {
        return Err(TheoryError::Classes(classes.len()));
    }
    if servers > MAX_SERVERS {
        return Err(TheoryError::Servers(servers));
    }
    for (class, split) in (1..).zip(classes) {
        check_erlangs(class, split.erlangs)?;
        check_share(class, split.hits)?;
    }
    Ok(())
}

/// The terms of one class, for up to `most` viewings.
fn terms(split: &Split, most: u32, channels: u32, (z, y): (f64, f64)) -> Grid {
    let width = at(channels) + 1;
    let hits = poisson(split.erlangs * z * split.hits, most);
    let misses = poisson(split.erlangs * z * (1.0 - split.hits) * y, most.min(channels));
    let mut weights = vec![0.0; (at(most) + 1) * width];
    for (missed, miss) in misses.iter().enumerate() {
        let places = weights.iter_mut().skip(missed * width + missed).step_by(width);
        for (place, hit) in places.zip(&hits) {
            *place = miss * hit;
        }
    }
    rescale(&mut weights);
    Grid { width, weights }
}

fn blocked(
    split: &Split,
    own: &Grid,
    others: &Grid,
    (servers, channels): (u32, u32),
    (z, y): (f64, f64),
) -> Result<SplitBlocking, TheoryError> {
    let (rows, width) = (own.weights.len() / own.width.max(1), own.width);
    let (servers, channels) = (at(servers), at(channels));
    let in_row = others.sums_right(y);
    let (up_to, in_column) = (in_row.sums_down(z), others.sums_down(z));
    let threshold = split.threshold.map_or(usize::MAX, at);
    let (mut all, mut hit, mut channel) = (0.0, 0.0, 0.0);
    for viewings in 0..rows.min(servers + 1) {
        let room = servers - viewings;
        for misses in 0..width.min(channels + 1) {
            let weight = own.at(viewings, misses);
            if weight <= 0.0 {
                continue;
            }
            let left = channels - misses;
            all += weight * up_to.at(room, left);
            hit += weight * in_row.at(room, left);
            let Some(below) = room.checked_sub(1) else { continue };
            if viewings == threshold {
                hit += weight * up_to.at(below, left) * z;
            } else {
                channel += weight * in_column.at(below, left) * z;
            }
        }
    }
    if all <= 0.0 {
        return Err(TheoryError::Unstable);
    }
    let hit_blocked = (hit / all).clamp(0.0, 1.0);
    let miss_blocked = ((hit + channel) / all).clamp(0.0, 1.0);
    let class = split.hits * hit_blocked + (1.0 - split.hits) * miss_blocked;
    Ok(SplitBlocking { hit: hit_blocked, miss: miss_blocked, class })
}
