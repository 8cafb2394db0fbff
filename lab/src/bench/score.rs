//! How close decoded pictures are to their source: one meter for everybody.

use codec::{CodecError, Picture, metrics};
use serde::Serialize;

/// Adds up what [`codec::metrics`] says of picture after picture.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Meter {
    pictures: u32,
    decibels: f64,
    squares: f64,
    similarity: f64,
}

/// How close a whole clip is to its source.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Score {
    /// Mean over the pictures of their PSNR of luma, in dB.
    pub psnr_y: f64,
    /// PSNR of the mean squared error of all pictures, in dB.
    pub psnr_y_global: f64,
    /// Mean over the pictures of their SSIM of luma.
    pub ssim_y: f64,
}

impl Meter {
    /// Compares one picture with its source.
    pub fn add(&mut self, source: &Picture, decoded: &Picture) -> Result<(), CodecError> {
        let square = metrics::mse_y(source, decoded)?;
        self.similarity += metrics::ssim_y(source, decoded)?;
        self.squares += square;
        self.decibels += metrics::psnr(square);
        self.pictures += 1;
        Ok(())
    }

    /// Adds what another meter saw.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            pictures: self.pictures + other.pictures,
            decibels: self.decibels + other.decibels,
            squares: self.squares + other.squares,
            similarity: self.similarity + other.similarity,
        }
    }

    /// Number of pictures so far.
    pub fn pictures(&self) -> u32 {
        self.pictures
    }

    /// The means so far; those of no picture are 0.
    pub fn score(&self) -> Score {
        let count = f64::from(self.pictures.max(1));
        Score {
            psnr_y: self.decibels / count,
            psnr_y_global: if self.pictures == 0 { 0.0 } else { metrics::psnr(self.squares / count) },
            ssim_y: self.similarity / count,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;

    #[test]
    fn both_means_are_told_apart() {
        let grey = Picture::new(16, 16).unwrap();
        let mut off = grey.clone();
        off.planes_mut().into_iter().take(1).for_each(|luma| luma.data.fill(138));

        let (mut first, mut second) = (Meter::default(), Meter::default());
        first.add(&grey, &grey).unwrap();
        second.add(&grey, &off).unwrap();
        let meter = first.plus(second);
        let score = meter.score();
        // Errors of 0 and 10 squared: 100 dB and 28.13 dB; together 31.14 dB.
        assert!((score.psnr_y - f64::midpoint(100.0, 28.130_803_6)).abs() < 1e-6, "{score:?}");
        assert!((score.psnr_y_global - 31.141_103_6).abs() < 1e-6, "{score:?}");
        assert_eq!(meter.pictures(), 2);
    }
}
