//! Scaling by two, up and down, with integer Lanczos-3 taps.
//!
//! Both directions are part of the format: encoder and player must agree bit
//! for bit, so the arithmetic below is exact and every implementation gives
//! the same samples. Planes are centre-aligned: output samples `2i` and
//! `2i + 1` of the up-scaled picture lie a quarter of a sample left and right
//! of input sample `i`, and the down-scaled sample `i` lies between input
//! samples `2i` and `2i + 1`. Samples outside the plane repeat its edge.
//!
//! * up: 6 taps of sum 256; rows, then columns, kept exact in 32 bits, and
//!   rounded once: `(s + 2^15) >> 16`;
//! * down: 12 taps of sum 1024; `>> 2` after the rows, `(s + 2^17) >> 18`
//!   after the columns.
//!
//! [`mod@reference`] computes each sample by these formulas; [`up`] and [`down`]
//! run kernels over whole rows, compiled also for AVX2 and chosen at run time.

mod down;
pub mod reference;
mod up;

use crate::error::CodecError;
use crate::picture::{Picture, PictureRef};

/// Taps of output sample `2i` over `x[i-3..=i+2]`; those of `2i + 1` are the
/// mirror image over `x[i-2..=i+3]`.
pub(crate) const UP_TAPS: [i32; 6] = [2, -17, 69, 228, -34, 8];

/// The first half of the symmetric taps over `x[2i-5..=2i+6]`.
pub(crate) const DOWN_TAPS: [i32; 6] = [4, 15, -35, -68, 139, 457];

/// Doubles both sides.
pub fn up(source: &Picture) -> Result<Picture, CodecError> {
    let mut target = Picture::new(source.width() * 2, source.height() * 2)?;
    up_into(source.view(), source.width() * 2, source.height() * 2, &mut target);
    Ok(target)
}

/// Halves both sides, rounding up.
pub fn down(source: &Picture) -> Result<Picture, CodecError> {
    let mut target = Picture::new(source.width().div_ceil(2), source.height().div_ceil(2))?;
    for (mut to, from) in target.planes_mut().into_iter().zip(source.planes()) {
        down::plane(from, &mut to);
    }
    Ok(target)
}

/// Doubles both sides, keeps the top-left `width` x `height` of the result
/// and extends that to the target's size by repeating the last column and row.
pub(crate) fn up_into(source: PictureRef<'_>, width: u32, height: u32, target: &mut Picture) {
    let kept = target.view().cropped(width, height).planes.map(|plane| (plane.width, plane.height));
    let planes = target.planes_mut().into_iter().zip(source.planes).zip(kept);
    for ((mut to, from), (width, height)) in planes {
        up::plane(from, width, height, &mut to);
    }
}
