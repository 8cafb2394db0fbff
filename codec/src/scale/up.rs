//! Doubling a plane, whole rows at a time.

use super::UP_TAPS;
use crate::picture::{PlaneMut, PlaneRef};
use multiversion::multiversion;

/// An input row after the horizontal filter: the even and odd output columns
/// apart, so that the vertical filter runs over plain slices.
#[derive(Default)]
struct Row {
    even: Vec<i32>,
    odd: Vec<i32>,
}

/// Doubles `source`, keeps `width` x `height` of it and extends the kept part
/// to the whole of `target`.
pub(super) fn plane(source: PlaneRef<'_>, width: usize, height: usize, target: &mut PlaneMut<'_>) {
    let width = width.min(source.width * 2).min(target.width);
    let mut padded = Vec::with_capacity(source.width + 6);
    let mut rows: [Row; 7] = Default::default();
    let mut ahead = -3;
    for row in &mut rows {
        filter_row(source.row_clamped(ahead), &mut padded, row);
        ahead += 1;
    }
    let mut doubled = vec![0; source.width * 2];
    let mut targets = target.data.chunks_exact_mut(target.width.max(1)).take(target.height);
    let mut left = height.min(source.height * 2);
    while left > 0 {
        let [r0, r1, r2, r3, r4, r5, r6] = &rows;
        filter_column([r0, r1, r2, r3, r4, r5], &mut doubled);
        put(&doubled, width, targets.next());
        if left > 1 {
            filter_column([r6, r5, r4, r3, r2, r1], &mut doubled);
            put(&doubled, width, targets.next());
        }
        left = left.saturating_sub(2);
        rows.rotate_left(1);
        let [.., last] = &mut rows;
        filter_row(source.row_clamped(ahead), &mut padded, last);
        ahead += 1;
    }
    extend_down(target.data, target.width, height);
}

fn put(doubled: &[u8], width: usize, target: Option<&mut [u8]>) {
    let (Some(target), Some(kept)) = (target, doubled.get(..width)) else { return };
    let (inside, outside) = target.split_at_mut(width.min(target.len()));
    inside.copy_from_slice(kept);
    outside.fill(kept.last().copied().unwrap_or(128));
}

/// Repeats row `height - 1` over the rows below it.
fn extend_down(data: &mut [u8], width: usize, height: usize) {
    let (kept, below) = data.split_at_mut((width * height).min(data.len()));
    if let Some(last) = kept.len().checked_sub(width).and_then(|start| kept.get(start..)) {
        below.chunks_exact_mut(width.max(1)).for_each(|row| row.copy_from_slice(last));
    }
}

fn filter_row(samples: &[u8], padded: &mut Vec<u8>, row: &mut Row) {
    let (Some(&first), Some(&last)) = (samples.first(), samples.last()) else { return };
    padded.clear();
    padded.extend_from_slice(&[first; 3]);
    padded.extend_from_slice(samples);
    padded.extend_from_slice(&[last; 3]);
    row.even.resize(samples.len(), 0);
    row.odd.resize(samples.len(), 0);
    across(padded, &mut row.even, &mut row.odd);
}

#[multiversion(targets("x86_64+avx2", "aarch64+neon"))]
fn across(padded: &[u8], even: &mut [i32], odd: &mut [i32]) {
    let [t0, t1, t2, t3, t4, t5] = UP_TAPS;
    for ((x, even), odd) in padded.windows(7).zip(even).zip(odd) {
        if let &[a, b, c, d, e, f, g] = x {
            let [a, b, c, d, e, f, g] = [a, b, c, d, e, f, g].map(i32::from);
            *even = t0 * a + t1 * b + t2 * c + t3 * d + t4 * e + t5 * f;
            *odd = t0 * g + t1 * f + t2 * e + t3 * d + t4 * c + t5 * b;
        }
    }
}

fn filter_column(rows: [&Row; 6], doubled: &mut [u8]) {
    let even = rows.map(|row| row.even.as_slice());
    let odd = rows.map(|row| row.odd.as_slice());
    along(even, odd, doubled);
}

#[multiversion(targets("x86_64+avx2", "aarch64+neon"))]
fn along(even: [&[i32]; 6], odd: [&[i32]; 6], doubled: &mut [u8]) {
    let [e0, e1, e2, e3, e4, e5] = even;
    let [o0, o1, o2, o3, o4, o5] = odd;
    let evens = e0.iter().zip(e1).zip(e2).zip(e3).zip(e4).zip(e5);
    let odds = o0.iter().zip(o1).zip(o2).zip(o3).zip(o4).zip(o5);
    for ((pair, even), odd) in doubled.as_chunks_mut::<2>().0.iter_mut().zip(evens).zip(odds) {
        let (((((e0, e1), e2), e3), e4), e5) = even;
        let (((((o0, o1), o2), o3), o4), o5) = odd;
        *pair = [weigh([e0, e1, e2, e3, e4, e5]), weigh([o0, o1, o2, o3, o4, o5])];
    }
}

#[inline]
fn weigh([x0, x1, x2, x3, x4, x5]: [&i32; 6]) -> u8 {
    let [t0, t1, t2, t3, t4, t5] = UP_TAPS;
    let sum = t0 * x0 + t1 * x1 + t2 * x2 + t3 * x3 + t4 * x4 + t5 * x5;
    let [low, ..] = ((sum + (1 << 15)) >> 16).clamp(0, 255).to_le_bytes();
    low
}
