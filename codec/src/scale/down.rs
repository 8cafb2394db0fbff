//! Halving a plane, whole rows at a time.

use super::DOWN_TAPS;
use crate::picture::{PlaneMut, PlaneRef};
use multiversion::multiversion;

/// Samples of the even and odd columns, each with three more on either side.
#[derive(Default)]
struct Columns {
    even: Vec<i32>,
    odd: Vec<i32>,
}

pub(super) fn plane(source: PlaneRef<'_>, target: &mut PlaneMut<'_>) {
    let mut columns = Columns::default();
    let mut rows: [Vec<i32>; 12] = Default::default();
    let mut ahead = -5;
    for row in &mut rows {
        filter_row(source.row_clamped(ahead), target.width, &mut columns, row);
        ahead += 1;
    }
    for out in target.data.chunks_exact_mut(target.width.max(1)) {
        along(rows.each_ref().map(Vec::as_slice), out);
        rows.rotate_left(2);
        let [.., before, last] = &mut rows;
        filter_row(source.row_clamped(ahead), target.width, &mut columns, before);
        filter_row(source.row_clamped(ahead + 1), target.width, &mut columns, last);
        ahead += 2;
    }
}

fn filter_row(samples: &[u8], width: usize, columns: &mut Columns, row: &mut Vec<i32>) {
    let (Some(&first), Some(&last)) = (samples.first(), samples.last()) else { return };
    let (first, last) = (i32::from(first), i32::from(last));
    let Columns { even, odd } = columns;
    for side in [&mut *even, &mut *odd] {
        side.clear();
        side.extend_from_slice(&[first; 3]);
    }
    for pair in samples.chunks(2) {
        if let [a, rest @ ..] = pair {
            even.push(i32::from(*a));
            odd.push(rest.first().map_or(last, |b| i32::from(*b)));
        }
    }
    for side in [&mut *even, &mut *odd] {
        side.extend_from_slice(&[last; 3]);
    }
    row.resize(width, 0);
    across(even, odd, row);
}

#[multiversion(targets("x86_64+avx2", "aarch64+neon"))]
fn across(even: &[i32], odd: &[i32], row: &mut [i32]) {
    let [t0, t1, t2, t3, t4, t5] = DOWN_TAPS;
    for ((even, odd), out) in even.windows(7).zip(odd.windows(7)).zip(row) {
        // The windows hold columns 2(i-3)..2(i+3) and one right of each.
        if let (&[_, e1, e2, e3, e4, e5, e6], &[o0, o1, o2, o3, o4, o5, _]) = (even, odd) {
            let sum = t0 * (o0 + e6)
                + t1 * (e1 + o5)
                + t2 * (o1 + e5)
                + t3 * (e2 + o4)
                + t4 * (o2 + e4)
                + t5 * (e3 + o3);
            *out = sum >> 2;
        }
    }
}

#[multiversion(targets("x86_64+avx2", "aarch64+neon"))]
fn along(rows: [&[i32]; 12], out: &mut [u8]) {
    let [t0, t1, t2, t3, t4, t5] = DOWN_TAPS;
    let [r0, r1, r2, r3, r4, r5, r6, r7, r8, r9, r10, r11] = rows;
    let outer = r0.iter().zip(r11).zip(r1.iter().zip(r10)).zip(r2.iter().zip(r9));
    let inner = r3.iter().zip(r8).zip(r4.iter().zip(r7)).zip(r5.iter().zip(r6));
    for ((out, outer), inner) in out.iter_mut().zip(outer).zip(inner) {
        let (((a, b), (c, d)), (e, f)) = outer;
        let (((g, h), (i, j)), (k, l)) = inner;
        let sum = t0 * (a + b) + t1 * (c + d) + t2 * (e + f) + t3 * (g + h) + t4 * (i + j) + t5 * (k + l);
        let [low, ..] = ((sum + (1 << 17)) >> 18).clamp(0, 255).to_le_bytes();
        *out = low;
    }
}
