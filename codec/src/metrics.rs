//! How close two pictures are: PSNR and SSIM of luma.

use crate::error::CodecError;
use crate::ladder::Ladder;
use crate::picture::{Picture, PlaneRef};

/// Peak signal-to-noise ratio of luma in dB; 100 dB stands for identical.
pub fn psnr_y(a: &Picture, b: &Picture) -> Result<f64, CodecError> {
    Ok(psnr(mse_y(a, b)?))
}

/// Mean squared error of luma, for averages over pictures before taking dB.
pub fn mse_y(a: &Picture, b: &Picture) -> Result<f64, CodecError> {
    Ladder::check("the compared picture", a.size(), b.size())?;
    let ([a, ..], [b, ..]) = (a.planes(), b.planes());
    let sum: u64 = a.rows().zip(b.rows()).map(|(a, b)| squared_error(a, b)).sum();
    Ok(to_f64(sum) / to_f64(area(a)))
}

/// A mean squared error in dB, at most 100.
pub fn psnr(mse: f64) -> f64 {
    if mse <= 0.0 { 100.0 } else { (10.0 * (255.0 * 255.0 / mse).log10()).min(100.0) }
}

fn squared_error(a: &[u8], b: &[u8]) -> u64 {
    // A row has at most 16384 samples, so its sum fits in 32 bits.
    let sum: u32 = a.iter().zip(b).map(|(&a, &b)| u32::from(a.abs_diff(b)).pow(2)).sum();
    u64::from(sum)
}

/// Structural similarity of luma (Wang et al. 2004, without Gaussian weights):
/// the mean over 8x8 windows, 4 samples apart, as ffmpeg's `ssim` filter and
/// x264 take it; pictures under 8 samples a side count as one window.
pub fn ssim_y(a: &Picture, b: &Picture) -> Result<f64, CodecError> {
    Ladder::check("the compared picture", a.size(), b.size())?;
    let ([a, ..], [b, ..]) = (a.planes(), b.planes());
    let mut above: Vec<Sums> = Vec::new();
    let (mut total, mut windows) = (0.0, 0_u64);
    for row in 0..a.height.div_ceil(4) {
        let current = cells(a, b, row);
        for (upper, lower) in above.windows(2).zip(current.windows(2)) {
            let sums = upper.iter().chain(lower).fold(Sums::default(), Sums::plus);
            total += sums.similarity();
            windows += 1;
        }
        above = current;
    }
    if windows == 0 {
        let all = (0..a.height.div_ceil(4)).flat_map(|row| cells(a, b, row));
        return Ok(all.fold(Sums::default(), |sum, cell| sum.plus(&cell)).similarity());
    }
    Ok(total / to_f64(windows))
}

/// Sums over a window.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    count: u32,
    a: u32,
    b: u32,
    aa: u32,
    bb: u32,
    ab: u32,
}

impl Sums {
    fn plus(self, other: &Self) -> Self {
        Self {
            count: self.count + other.count,
            a: self.a + other.a,
            b: self.b + other.b,
            aa: self.aa + other.aa,
            bb: self.bb + other.bb,
            ab: self.ab + other.ab,
        }
    }

    fn similarity(&self) -> f64 {
        let (c1, c2) = ((0.01_f64 * 255.0).powi(2), (0.03_f64 * 255.0).powi(2));
        let count = f64::from(self.count.max(1));
        let (a, b) = (f64::from(self.a) / count, f64::from(self.b) / count);
        let unbiased = count / (count - 1.0).max(1.0);
        let variances = (f64::from(self.aa) + f64::from(self.bb)) / count - a * a - b * b;
        let covariance = f64::from(self.ab) / count - a * b;
        ((2.0 * a * b + c1) * (2.0 * covariance * unbiased + c2))
            / ((a * a + b * b + c1) * (variances * unbiased + c2))
    }
}

/// Sums over the 4x4 cells of one row of cells.
fn cells(a: PlaneRef<'_>, b: PlaneRef<'_>, row: usize) -> Vec<Sums> {
    let mut cells = vec![Sums::default(); a.width.div_ceil(4)];
    for (a, b) in a.rows().zip(b.rows()).skip(row * 4).take(4) {
        for ((cell, a), b) in cells.iter_mut().zip(a.chunks(4)).zip(b.chunks(4)) {
            for (&a, &b) in a.iter().zip(b) {
                let (a, b) = (u32::from(a), u32::from(b));
                cell.count += 1;
                cell.a += a;
                cell.b += b;
                cell.aa += a * a;
                cell.bb += b * b;
                cell.ab += a * b;
            }
        }
    }
    cells
}

fn area(plane: PlaneRef<'_>) -> u64 {
    u64::try_from(plane.width * plane.height).unwrap_or(u64::MAX)
}

#[allow(clippy::cast_precision_loss, clippy::as_conversions, reason = "sums stay far below 2^53")]
fn to_f64(n: u64) -> f64 {
    n as f64
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;

    /// A picture whose luma is given by a formula.
    fn picture(width: u32, height: u32, luma: impl Fn(u32, u32) -> u8) -> Picture {
        let mut picture = Picture::new(width, height).unwrap();
        let [y, ..] = picture.planes_mut();
        for (row, samples) in (0..).zip(y.data.chunks_exact_mut(y.width)) {
            for (column, sample) in (0..).zip(samples) {
                *sample = luma(column, row);
            }
        }
        picture
    }

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-4, "{found} instead of {expected}");
    }

    #[test]
    fn identical_pictures_are_perfect() {
        let a = picture(33, 17, |x, y| (x * 7 + y * 13).to_le_bytes()[0]);
        close(psnr_y(&a, &a).unwrap(), 100.0);
        close(ssim_y(&a, &a).unwrap(), 1.0);
    }

    #[test]
    fn a_shift_of_two_levels_is_42_11_db() {
        let a = picture(64, 64, |_, _| 100);
        let b = picture(64, 64, |_, _| 102);
        close(psnr_y(&a, &b).unwrap(), 42.1102);
        // Flat windows differ in luminance alone: (2ab + c1) / (a^2 + b^2 + c1).
        close(ssim_y(&a, &b).unwrap(), 1.0 - 4.0 / 20_410.502_5);
    }

    #[test]
    fn lost_detail_costs_structure() {
        let sharp = picture(64, 64, |x, y| if (x / 2 + y / 2) % 2 == 0 { 60 } else { 180 });
        let flat = picture(64, 64, |_, _| 120);
        assert!(ssim_y(&sharp, &flat).unwrap() < 0.05);
        close(psnr_y(&sharp, &flat).unwrap(), psnr(3600.0));
    }

    #[test]
    fn pictures_of_different_sizes_are_not_compared() {
        let a = Picture::new(16, 16).unwrap();
        let b = Picture::new(16, 18).unwrap();
        assert!(psnr_y(&a, &b).is_err() && ssim_y(&a, &b).is_err());
    }
}
