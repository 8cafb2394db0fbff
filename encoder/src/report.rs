//! What came of it: rates and qualities.

use serde::{Deserialize, Serialize};

/// The result of an encode, for people and figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EncodeReport {
    /// The title's name.
    pub title: String,
    /// Its folder.
    pub folder: String,
    /// Displayed width in pixels.
    pub width: u32,
    /// Displayed height in pixels.
    pub height: u32,
    /// Number of blocks.
    pub blocks: u32,
    /// Number of pictures encoded (without repeats).
    pub pictures: u64,
    /// Length of the programme in seconds.
    pub seconds: f64,
    /// How long encoding took, in seconds.
    pub elapsed_seconds: f64,
    /// Pictures encoded a second.
    pub pictures_per_second: f64,
    /// The preset.
    pub preset: String,
    /// Base's rate factor.
    pub crf: f64,
    /// Quantizer of each enhancement, lowest first.
    pub quantizers: Vec<u8>,
    /// Rate of all layers with the sound, in kbit/s.
    pub total_kbit_s: f64,
    /// Rate of the sound alone (it rides in Base), in kbit/s.
    pub audio_kbit_s: f64,
    /// Each layer, Base first.
    pub layers: Vec<LayerReport>,
    /// Each quality, bronze first; empty if nothing was measured.
    pub qualities: Vec<QualityReport>,
    /// Number of pictures that the qualities were measured on.
    pub measured_pictures: u64,
    /// Of a title in halves, the steps of each block that was measured.
    pub by_block: Vec<BlockReport>,
    /// What people should know.
    pub warnings: Vec<String>,
}

/// The steps of one block of a title in halves.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BlockReport {
    /// Its index.
    pub block: u32,
    /// How long it is.
    pub seconds: f64,
    /// Bronze first.
    pub steps: Vec<StepReport>,
}

/// One step of a block.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepReport {
    /// As in [`QualityReport::quality`].
    pub step: String,
    /// Rate in kbit/s with all below it and the sound.
    pub kbit_s: f64,
    /// PSNR of luma in dB: of the mean squared error over the block's pictures.
    pub psnr_y: f64,
    /// PSNR of luma of its worst picture, in dB.
    pub worst_psnr_y: f64,
}

impl BlockReport {
    /// Whether each step costs more than the one below and is better in the mean.
    pub fn rises(&self) -> bool {
        let above = |pair: &[StepReport]| match pair {
            [low, high] => high.psnr_y > low.psnr_y && high.kbit_s > low.kbit_s,
            _ => true,
        };
        self.steps.windows(2).all(above)
    }
}

/// The rate of one layer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LayerReport {
    /// `base`, `enh1` and so on.
    pub layer: String,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// Rate in kbit/s; Base with its sound.
    pub kbit_s: f64,
    /// Part of the total, 0 to 1.
    pub share: f64,
}

/// How near to the film a quality is, at the displayed size.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QualityReport {
    /// `bronze`, `silver`, `gold`; between them, of a title in halves, such as
    /// `gold/a`: the even pictures as in gold, the odd ones as in silver.
    pub quality: String,
    /// PSNR of luma in dB: of the mean squared error over the measured pictures.
    pub psnr_y: f64,
    /// PSNR of luma of the worst of the measured pictures, in dB.
    pub worst_psnr_y: f64,
    /// SSIM of luma: mean over the measured pictures.
    pub ssim_y: f64,
    /// Rate of all layers of this quality with the sound, in kbit/s.
    pub kbit_s: f64,
}

/// Sums of squared errors and similarities over pictures, per quality; of a
/// title in halves also of the steps between qualities.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Measured {
    /// Number of pictures.
    pub(crate) pictures: u64,
    /// Sum of mean squared error and of SSIM, per quality.
    pub(crate) sums: Vec<(f64, f64)>,
    /// Largest mean squared error of a picture, per quality.
    #[serde(default)]
    pub(crate) worst: Vec<f64>,
}

impl Measured {
    /// Adds one picture's values.
    pub(crate) fn add_picture(&mut self, values: Vec<(f64, f64)>) {
        let worst = values.iter().map(|(mse, _)| *mse).collect();
        self.add(&Self { pictures: 1, sums: values, worst });
    }

    /// Adds what was measured elsewhere.
    pub(crate) fn add(&mut self, other: &Self) {
        self.pictures += other.pictures;
        if self.sums.is_empty() {
            self.sums.clone_from(&other.sums);
            self.worst.clone_from(&other.worst);
            return;
        }
        for (worst, other) in self.worst.iter_mut().zip(&other.worst) {
            *worst = worst.max(*other);
        }
        for (sum, more) in self.sums.iter_mut().zip(&other.sums) {
            sum.0 += more.0;
            sum.1 += more.1;
        }
    }

    /// PSNR in dB, that of the worst picture, and SSIM of each quality.
    pub(crate) fn means(&self) -> Vec<[f64; 3]> {
        let count = to_f64(self.pictures);
        let worst = self.worst.iter().copied().map(Some).chain(std::iter::repeat(None));
        let mean = |((mse, ssim), worst): (&(f64, f64), Option<f64>)| {
            let mean = codec::metrics::psnr(mse / count);
            [mean, worst.map_or(mean, codec::metrics::psnr), ssim / count]
        };
        self.sums.iter().zip(worst).map(mean).collect()
    }
}

/// For figures.
#[allow(clippy::cast_precision_loss, clippy::as_conversions, reason = "for figures")]
pub(crate) fn to_f64(count: u64) -> f64 {
    count as f64
}
