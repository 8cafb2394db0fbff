//! The figures of the rate bench, for people and for programs.

use super::LEAST_SPAN;
use crate::bench::Machine;
use crate::bench::bjontegaard::Curve;
use crate::bench::score::Score;
use crate::bench::table::Table;
use crate::bench::tiers::Measured;
use crate::bench::x264::{self, kbit};
use media::manifest::Made;
use serde::Serialize;
use std::fmt;

/// One encoding by x264.
pub type Yardstick = x264::Encoding;

/// The whole bench.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Where it ran.
    pub machine: Machine,
    /// Preset of our encoder.
    pub preset: String,
    /// Settings of the yardstick.
    pub x264: String,
    /// Over all clips.
    pub means: Means,
    /// Clip by clip.
    pub clips: Vec<Clip>,
}

/// Figures over all clips.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Means {
    /// Mean BD-rate of gold over PSNR-Y; 0.5 is 50 % more than x264.
    pub bd_rate: f64,
    /// The worst of the clips' BD-rates.
    pub worst_bd_rate: f64,
    /// Mean of storage over simulcast storage.
    pub storage: f64,
    /// Mean place of silver between bronze (0) and gold (1), in dB.
    pub silver_at: f64,
}

/// One clip.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Clip {
    /// The file's stem.
    pub name: String,
    /// Width of the picture.
    pub width: u32,
    /// Height of the picture.
    pub height: u32,
    /// Pictures used.
    pub pictures: u32,
    /// Their length in seconds.
    pub seconds: f64,
    /// BD-rate of gold over PSNR-Y (mean over pictures); 0.5 is 50 % more.
    pub bd_rate: f64,
    /// The same over PSNR-Y of the mean squared error.
    pub bd_rate_global: f64,
    /// The same over SSIM.
    pub bd_rate_ssim: f64,
    /// Mean distance in dB of PSNR-Y at equal rate; negative is worse than x264.
    pub bd_psnr: f64,
    /// Mean distance of SSIM at equal rate.
    pub bd_ssim: f64,
    /// All layers over three files by x264, mean over the steps.
    pub storage: f64,
    /// Place of silver between bronze (0) and gold (1) in dB, mean over the steps.
    pub silver_at: f64,
    /// From the lowest to the highest gold, in dB.
    pub gold_span_db: f64,
    /// Step by step, in the order of the knob.
    pub steps: Vec<Step>,
    /// x264 at full size.
    pub full: Vec<Yardstick>,
    /// x264 at the size of Base, of the scaled-down source.
    pub base: Vec<Yardstick>,
}

/// One step of the quality knob.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// The knob.
    pub quality: f32,
    /// Base's rate factor.
    pub crf: f64,
    /// Quantizers of the enhancements, lowest layer first.
    pub quantizers: Vec<u8>,
    /// Rate of coded pictures of each layer in kbit/s, Base first.
    pub layer_kbit: Vec<f64>,
    /// Bytes of the title's files, with boxes, sound and manifest.
    pub file_bytes: u64,
    /// Base at its own size.
    pub base: Score,
    /// What is shown at each quality, bronze first.
    pub shown: Vec<Score>,
    /// Rate of single-layer x264 at gold's PSNR-Y; none beyond its range.
    pub x264_kbit: Option<f64>,
    /// Gold's rate over that.
    pub over_x264: Option<f64>,
    /// Rate of one file by x264 per tier, each at that tier's PSNR-Y.
    pub simulcast_kbit: Option<f64>,
    /// Gold's rate (all layers) over that.
    pub storage: Option<f64>,
    /// Place of silver between bronze (0) and gold (1) in dB.
    pub silver_at: Option<f64>,
}

impl Step {
    /// Rate of all layers in kbit/s.
    pub fn gold_kbit(&self) -> f64 {
        self.layer_kbit.iter().sum()
    }
}

/// Relates a step to x264's curves at full size and at Base's.
pub(super) fn step(
    quality: f32,
    made: &Made,
    measured: &Measured,
    seconds: f64,
    [full, base]: [&Curve; 2],
) -> Step {
    let layer_kbit: Vec<f64> = measured.layer_bytes.iter().map(|&bytes| kbit(bytes, seconds)).collect();
    let gold_kbit: f64 = layer_kbit.iter().sum();
    let psnr: Vec<f64> = measured.shown.iter().map(|score| score.psnr_y).collect();
    let x264_kbit = psnr.last().and_then(|&gold| full.rate_at(gold));
    let above: Option<f64> = psnr.iter().skip(1).map(|&tier| full.rate_at(tier)).sum();
    let simulcast_kbit = base.rate_at(measured.base.psnr_y).zip(above).map(|(base, above)| base + above);
    let silver_at = match *psnr {
        [bronze, silver, gold] if gold > bronze => Some((silver - bronze) / (gold - bronze)),
        _ => None,
    };
    Step {
        quality,
        crf: f64::from(made.crf_centi) / 100.0,
        quantizers: made.quantizers.clone(),
        layer_kbit,
        file_bytes: measured.file_bytes,
        base: measured.base,
        shown: measured.shown.clone(),
        x264_kbit,
        over_x264: x264_kbit.map(|x264| gold_kbit / x264),
        simulcast_kbit,
        storage: simulcast_kbit.map(|simulcast| gold_kbit / simulcast),
        silver_at,
    }
}

/// The mean of some figures; of none, not a number.
pub(super) fn mean(figures: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = figures.fold((0.0, 0.0), |(sum, count), figure| (sum + figure, count + 1.0));
    sum / count
}

impl Means {
    pub(super) fn over(clips: &[Clip]) -> Self {
        Self {
            bd_rate: mean(clips.iter().map(|clip| clip.bd_rate)),
            worst_bd_rate: clips.iter().map(|clip| clip.bd_rate).fold(f64::NEG_INFINITY, f64::max),
            storage: mean(clips.iter().map(|clip| clip.storage)),
            silver_at: mean(clips.iter().map(|clip| clip.silver_at)),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.machine)?;
        writeln!(f, "ours       preset {}, layers 2-1-1, blocks of 1 s", self.preset)?;
        writeln!(f, "yardstick  x264 {}, one thread", self.x264)?;
        writeln!(f, "rates      coded pictures only: neither boxes nor sound; files: all of the title")?;
        writeln!(f, "scores     luma against the source, mean over the pictures (PSNR, SSIM 8x8)")?;
        writeln!(f, "x264's rate at a score is read off the curve through its points (pchip, log rate)\n")?;
        self.clips.iter().try_for_each(|clip| clip.write(f))?;
        self.summary(f)
    }
}

impl Report {
    fn summary(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new(&[
            "gold against x264",
            "BD-rate",
            "BD-PSNR",
            "BD-SSIM",
            "BD-rate (SSIM)",
            "storage/simulcast",
            "silver at",
        ]);
        for clip in &self.clips {
            table.row(vec![
                clip.name.clone(),
                percent(clip.bd_rate),
                format!("{:+.2} dB", clip.bd_psnr),
                format!("{:+.4}", clip.bd_ssim),
                percent(clip.bd_rate_ssim),
                format!("{:.3}", clip.storage),
                format!("{:.2}", clip.silver_at),
            ]);
        }
        table.rule();
        let Means { bd_rate, worst_bd_rate, storage, silver_at } = self.means;
        let blank = String::new;
        let mean = ["mean".to_owned(), percent(bd_rate), blank(), blank(), blank()];
        table.row([&mean[..], &[format!("{storage:.3}"), format!("{silver_at:.2}")]].concat());
        table.row(vec!["worst".to_owned(), percent(worst_bd_rate)]);
        write!(f, "{table}")
    }
}

impl Clip {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, width, height, pictures, seconds, .. } = self;
        writeln!(f, "{name}: {width}x{height}, {pictures} pictures, {seconds:.2} s")?;
        let mut table = Table::new(&[
            "quality",
            "crf/q",
            "base+enh kbit/s",
            "gold kbit/s",
            "bronze silver gold dB",
            "SSIM",
            "Base own dB",
            "x264 kbit/s",
            "gold/x264",
            "storage",
            "silver at",
            "files kB",
        ]);
        self.steps.iter().for_each(|step| table.row(step.cells()));
        write!(f, "{table}")?;
        let points = |encodings: &[Yardstick]| {
            let point = |it: &Yardstick| format!("{}: {:.0} {:.2}", it.crf, it.kbit, it.score.psnr_y);
            encodings.iter().map(point).collect::<Vec<_>>().join(", ")
        };
        writeln!(f, "x264 (crf: kbit/s dB)  {}", points(&self.full))?;
        writeln!(f, "x264 at Base's size    {}", points(&self.base))?;
        writeln!(
            f,
            "BD-rate {} (of mean squared errors {}), gold spans {:.1} dB{}\n",
            percent(self.bd_rate),
            percent(self.bd_rate_global),
            self.gold_span_db,
            if self.gold_span_db < LEAST_SPAN {
                ": too little for a fair figure, spread --steps"
            } else {
                ""
            },
        )
    }
}

impl Step {
    fn cells(&self) -> Vec<String> {
        let list = |figures: Vec<String>, between: &str| figures.join(between);
        let quantizers = list(self.quantizers.iter().map(ToString::to_string).collect(), "/");
        let ssim = self.shown.last().map_or(0.0, |score| score.ssim_y);
        let maybe = |figure: Option<f64>, digits: usize| {
            figure.map_or_else(|| "-".to_owned(), |figure| format!("{figure:.digits$}"))
        };
        vec![
            format!("{}", self.quality),
            format!("{:.1}/{quantizers}", self.crf),
            list(self.layer_kbit.iter().map(|rate| format!("{rate:.0}")).collect(), "+"),
            format!("{:.0}", self.gold_kbit()),
            list(self.shown.iter().map(|score| format!("{:.2}", score.psnr_y)).collect(), " "),
            format!("{ssim:.4}"),
            format!("{:.2}", self.base.psnr_y),
            maybe(self.x264_kbit, 0),
            maybe(self.over_x264, 2),
            maybe(self.storage, 3),
            maybe(self.silver_at, 2),
            format!("{:.0}", kbit(self.file_bytes, 8.0)),
        ]
    }
}

fn percent(fraction: f64) -> String {
    format!("{:+.1} %", 100.0 * fraction)
}
