//! The final report.

use crate::report::{BlockReport, EncodeReport, LayerReport, Measured, QualityReport, StepReport, to_f64};
use media::{Layer, Manifest, Quality};
use std::path::Path;
use std::time::Duration;

/// What was done to make the title.
#[derive(Default)]
pub(crate) struct Work {
    pub(crate) measured: Measured,
    /// Of a title in halves, that of each block from the first on.
    pub(crate) by_block: Vec<Measured>,
    /// Pictures encoded.
    pub(crate) pictures: u64,
    pub(crate) elapsed: Duration,
}

/// What was written: the manifest as far as it goes, where, and the bytes of sound.
pub(crate) struct Made<'a> {
    pub(crate) manifest: &'a Manifest,
    pub(crate) folder: &'a Path,
    pub(crate) audio_bytes: u64,
}

pub(crate) fn report(made: &Made<'_>, warnings: &[String], work: &Work) -> EncodeReport {
    let Work { measured, by_block, pictures, elapsed } = work;
    let manifest = made.manifest;
    // The blocks of a part do not follow each other.
    let ticks = manifest.blocks.iter().map(|block| block.duration).sum();
    let seconds = manifest.at(ticks).as_secs_f64();
    let kbit_s = |bytes: u64| to_f64(bytes) * 8.0 / 1_000.0 / seconds.max(1e-9);
    let bytes = |layer: Layer| {
        manifest
            .blocks
            .iter()
            .filter_map(|block| block.chunks.get(layer.index()))
            .map(|chunk| chunk.length)
            .sum()
    };
    let rates: Vec<f64> =
        (0..).map(Layer).zip(&manifest.layers).map(|(layer, _)| kbit_s(bytes(layer))).collect();
    let total: f64 = rates.iter().sum();
    let layers =
        (0..).map(Layer).zip(&manifest.layers).zip(&rates).map(|((layer, info), rate)| LayerReport {
            layer: layer.to_string(),
            width: info.width,
            height: info.height,
            kbit_s: *rate,
            share: rate / total.max(1e-9),
        });
    let means = if measured.pictures == 0 { Vec::new() } else { measured.means() };
    let steps = steps(manifest, &rates, kbit_s);
    let qualities =
        steps.into_iter().zip(means).map(|((quality, kbit_s), [psnr_y, worst_psnr_y, ssim_y])| {
            QualityReport { quality, psnr_y, worst_psnr_y, ssim_y, kbit_s }
        });
    EncodeReport {
        title: manifest.title.to_string(),
        folder: made.folder.display().to_string(),
        width: manifest.width,
        height: manifest.height,
        blocks: manifest.block_count(),
        pictures: *pictures,
        seconds,
        elapsed_seconds: elapsed.as_secs_f64(),
        pictures_per_second: to_f64(*pictures) / elapsed.as_secs_f64().max(1e-9),
        preset: manifest.made.preset.clone(),
        crf: f64::from(manifest.made.crf_centi) / 100.0,
        quantizers: manifest.made.quantizers.clone(),
        total_kbit_s: total,
        audio_kbit_s: kbit_s(made.audio_bytes),
        layers: layers.collect(),
        qualities: qualities.collect(),
        measured_pictures: measured.pictures,
        by_block: (0..).zip(by_block).filter_map(|(index, block)| by_steps(manifest, index, block)).collect(),
        warnings: warnings.to_vec(),
    }
}

/// The steps of one block, if it was measured.
fn by_steps(manifest: &Manifest, index: u32, measured: &Measured) -> Option<BlockReport> {
    let block = manifest.blocks.get(usize::try_from(index).ok()?).filter(|_| measured.pictures > 0)?;
    let seconds = manifest.at(block.duration).as_secs_f64();
    let kbit_s = |bytes: u64| to_f64(bytes) * 8.0 / 1_000.0 / seconds.max(1e-9);
    let nothing = vec![0.0; block.chunks.len()];
    let names = steps(manifest, &nothing, |_| 0.0).into_iter().map(|(name, _)| name);
    let (mut below, mut rates) = (0, Vec::new());
    for (number, chunk) in block.chunks.iter().enumerate() {
        let half = number.checked_sub(1).and_then(|enhancement| block.halves.get(enhancement));
        rates.extend(half.map(|half| kbit_s(below + half.length)));
        below += chunk.length;
        rates.push(kbit_s(below));
    }
    let means = measured.means();
    let steps = names.zip(rates).zip(means);
    let steps = steps.map(|((step, kbit_s), [psnr_y, worst_psnr_y, _])| StepReport {
        step,
        kbit_s,
        psnr_y,
        worst_psnr_y,
    });
    Some(BlockReport { block: index, seconds, steps: steps.collect() })
}

/// Name and rate in kbit/s of each quality, lowest first, and of each step
/// between two of them.
fn steps(manifest: &Manifest, rates: &[f64], kbit_s: impl Fn(u64) -> f64) -> Vec<(String, f64)> {
    let mut steps = Vec::new();
    let mut below = 0.0;
    for ((number, quality), rate) in (1..).map(Quality).enumerate().zip(rates) {
        if let Some(enhancement) = number.checked_sub(1).filter(|_| manifest.in_halves()) {
            let halves = manifest.blocks.iter().filter_map(|block| block.halves.get(enhancement));
            let half = kbit_s(halves.map(|half| half.length).sum());
            steps.push((format!("{quality}/a"), below + half));
        }
        below += rate;
        steps.push((quality.to_string(), below));
    }
    steps
}
