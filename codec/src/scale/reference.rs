//! The scalers as formulas, one sample at a time: slow, and the definition.

use super::{DOWN_TAPS, UP_TAPS};
use crate::error::CodecError;
use crate::picture::{Picture, PlaneRef};

/// Doubles both sides.
pub fn up(source: &Picture) -> Result<Picture, CodecError> {
    scaled(source, (source.width() * 2, source.height() * 2), up_sample)
}

/// Halves both sides, rounding up.
pub fn down(source: &Picture) -> Result<Picture, CodecError> {
    let size = (source.width().div_ceil(2), source.height().div_ceil(2));
    scaled(source, size, down_sample)
}

fn scaled(
    source: &Picture,
    (width, height): (u32, u32),
    sample: fn(PlaneRef<'_>, isize, isize) -> i32,
) -> Result<Picture, CodecError> {
    let mut target = Picture::new(width, height)?;
    for (to, from) in target.planes_mut().into_iter().zip(source.planes()) {
        for (y, row) in (0..).zip(to.data.chunks_exact_mut(to.width)) {
            for (x, out) in (0..).zip(row) {
                *out = u8::try_from(sample(from, x, y).clamp(0, 255)).unwrap_or(0);
            }
        }
    }
    Ok(target)
}

fn at(row: &[u8], x: isize) -> i32 {
    let last = row.len().saturating_sub(1);
    let x = usize::try_from(x).unwrap_or(0).min(last);
    row.get(x).map_or(0, |&sample| i32::from(sample))
}

/// First input position and taps of an up-scaled sample.
fn up_taps(position: isize) -> (isize, [i32; 6]) {
    let mut taps = UP_TAPS;
    if position % 2 == 0 {
        (position / 2 - 3, taps)
    } else {
        taps.reverse();
        (position / 2 - 2, taps)
    }
}

fn up_sample(plane: PlaneRef<'_>, x: isize, y: isize) -> i32 {
    let (left, across) = up_taps(x);
    let (top, along) = up_taps(y);
    let sum: i32 = (top..)
        .zip(along)
        .map(|(y, tap)| {
            let row = plane.row_clamped(y);
            tap * (left..).zip(across).map(|(x, tap)| tap * at(row, x)).sum::<i32>()
        })
        .sum();
    (sum + (1 << 15)) >> 16
}

fn down_sample(plane: PlaneRef<'_>, x: isize, y: isize) -> i32 {
    let taps = || DOWN_TAPS.into_iter().chain(DOWN_TAPS.into_iter().rev());
    let sum: i32 = (2 * y - 5..)
        .zip(taps())
        .map(|(y, tap)| {
            let row = plane.row_clamped(y);
            tap * ((2 * x - 5..).zip(taps()).map(|(x, tap)| tap * at(row, x)).sum::<i32>() >> 2)
        })
        .sum();
    (sum + (1 << 17)) >> 18
}
