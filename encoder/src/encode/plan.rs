//! What will be made: names, sizes and settings, decided before the first block.

use crate::base::{BaseFormat, REORDER, effort};
use crate::block::Recipe;
use crate::blocks::MAX_PICTURES;
use crate::error::EncodeError;
use crate::options::{EncodeOptions, Metrics, Progress};
use crate::source::{FilmFormat, Source};
use codec::{Ladder, Settings};
use gstreamer_video as gst_video;
use media::library::{Library, LibraryError};
use media::manifest::{Audio, Color, MANIFEST_VERSION, Made, Manifest, Ratio, WHOLE_MANIFEST};
use media::{Layer, LayerInfo, Span, TitleName};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// Blocks shorter than this cost more than they bring.
const MIN_BLOCK: Span = Span::from_millis(100);
/// Longer blocks make seeking and switching slow.
const MAX_BLOCK: Span = Span::from_secs(10);
/// The coarsest rate factor of x264enc.
const MAX_CRF: u32 = 50;

/// Everything about a title that does not depend on its blocks.
pub(super) struct Plan {
    pub(super) recipe: Recipe,
    /// Without init segments, blocks and duration.
    pub(super) manifest: Manifest,
    pub(super) block_ticks: u64,
    /// Pictures in a block at the nominal rate.
    pub(super) block_pictures: u64,
    pub(super) jobs: usize,
    pub(super) metrics: Metrics,
    /// Length of what will be encoded, if the film tells.
    pub(super) length: Option<Span>,
    pub(super) warnings: Vec<String>,
    /// What was aimed at and will not be reached.
    pub(super) missed: Vec<String>,
}

impl Plan {
    pub(super) fn new(
        options: &EncodeOptions,
        title: TitleName,
        source: &Source,
    ) -> Result<Self, EncodeError> {
        let film = source.format();
        let ladder = Ladder::new(film.size.0, film.size.1, &options.factors)?;
        let (crf, quantizers) = settings(options, ladder.layers())?;
        let delay = source.frame_ticks().saturating_mul(u64::from(REORDER));
        let delay =
            u32::try_from(delay).map_err(|_| EncodeError::Option("pictures that last for hours".into()))?;
        let manifest = manifest(options, title, source, &ladder, delay, crf, &quantizers);
        let (size, look) = (ladder.size(0), film.look.clone());
        let base = BaseFormat { size, rate: film.rate, look, crf, effort: effort(options.preset) };
        let block_ticks = block_ticks(options, source.timescale());
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Self {
            recipe: Recipe { ladder, base, preset: options.preset, quantizers, halves: options.halves },
            manifest,
            block_ticks,
            block_pictures: (block_ticks / source.frame_ticks().max(1)).clamp(1, MAX_PICTURES),
            jobs: options.jobs.unwrap_or(cores).clamp(1, 256),
            metrics: options.metrics,
            length: source.length(),
            warnings: Vec::new(),
            missed: Vec::new(),
        })
    }

    pub(super) fn opened(&self) -> Progress {
        let Manifest { width, height, .. } = self.manifest;
        Progress::Opened { width, height, length: self.length, jobs: self.jobs }
    }
}

/// Target length of a block in ticks.
pub(crate) fn block_ticks(options: &EncodeOptions, timescale: u32) -> u64 {
    let ticks = u128::from(options.block.as_nanos()) * u128::from(timescale) / 1_000_000_000;
    u64::try_from(ticks).unwrap_or(u64::MAX)
}

/// The title's name: as asked for, or the film's.
pub(super) fn title_name(options: &EncodeOptions) -> Result<TitleName, EncodeError> {
    if let Some(title) = &options.title {
        return Ok(title.clone());
    }
    let name = options.input.name();
    name.parse().map_err(|source| EncodeError::Name { name, source })
}

/// Options that make no sense, before anything is opened.
pub(super) fn check(options: &EncodeOptions) -> Result<(), EncodeError> {
    let wrong = |why: String| Err(EncodeError::Option(why));
    if !(MIN_BLOCK..=MAX_BLOCK).contains(&options.block) {
        return wrong(format!("a block of {} is not between {MIN_BLOCK} and {MAX_BLOCK}", options.block));
    }
    if let Some((from, to)) = options.from.zip(options.to)
        && from >= to
    {
        return wrong(format!("nothing lies from {from} to {to}"));
    }
    // Any size will do to see whether the factors are lawful.
    let ladder = Ladder::new(64, 64, &options.factors)?;
    options.aims.check(ladder.layers())?;
    settings(options, ladder.layers()).map(|_| ())
}

/// Refuses before the work what would be refused after it.
pub(super) fn refuse_existing(
    library: &Library,
    title: &TitleName,
    replace: bool,
) -> Result<(), EncodeError> {
    if library.contains(title) && !replace {
        let library = library.path().to_owned();
        return Err(LibraryError::Exists { title: title.clone(), library }.into());
    }
    Ok(())
}

/// Base's rate factor (x264enc takes whole ones) and the quantizers.
fn settings(options: &EncodeOptions, layers: usize) -> Result<(u32, Vec<u8>), EncodeError> {
    let settings = Settings::for_quality(options.quality, layers);
    let crf = options.crf.unwrap_or_else(|| settings.whole_crf());
    if crf > MAX_CRF {
        return Err(EncodeError::Option(format!("a rate factor of {crf} is beyond {MAX_CRF}")));
    }
    let quantizers = options.quantizers.clone().unwrap_or(settings.quantizers);
    if quantizers.len() + 1 != layers {
        let count = quantizers.len();
        return Err(EncodeError::Option(format!("{count} quantizers for {} enhancements", layers - 1)));
    }
    if let Some(quantizer) = quantizers.iter().find(|quantizer| **quantizer > 63) {
        return Err(EncodeError::Option(format!("a quantizer of {quantizer} is beyond 63")));
    }
    Ok((crf, quantizers))
}

fn manifest(
    options: &EncodeOptions,
    title: TitleName,
    source: &Source,
    ladder: &Ladder,
    delay: u32,
    crf: u32,
    quantizers: &[u8],
) -> Manifest {
    let film = source.format();
    let layer = |(number, factor): (u8, &u8)| {
        let (width, height) = ladder.size(usize::from(number));
        LayerInfo {
            factor: *factor,
            width,
            height,
            codec: "lenh".into(),
            file: format!("{}.mp4", Layer(number)),
            init: Vec::new(),
            delay: if number == 0 { delay } else { 0 },
            sync_every: None,
            halves: options.halves && number > 0,
        }
    };
    let block_ms = u32::try_from(options.block.as_millis()).unwrap_or(u32::MAX);
    Manifest {
        version: if options.halves { MANIFEST_VERSION } else { WHOLE_MANIFEST },
        title,
        width: film.size.0,
        height: film.size.1,
        frame_rate: Ratio { num: film.rate.0, den: film.rate.1 },
        timescale: source.timescale(),
        duration: 0,
        color: color(film),
        pixel_aspect: Ratio { num: film.look.pixel_aspect.0, den: film.look.pixel_aspect.1 },
        class: options.class,
        made: Made {
            by: concat!("lamina ", env!("CARGO_PKG_VERSION")).into(),
            preset: options.preset.name().into(),
            crf_centi: crf * 100,
            quantizers: quantizers.to_vec(),
            block_ms,
        },
        audio: film.audio.as_ref().map(|audio| Audio {
            codec: "mp4a.40.2".into(),
            sample_rate: audio.sample_rate,
            channels: audio.channels,
            config: audio.config.clone(),
        }),
        layers: (0..).zip(ladder.factors()).map(layer).collect(),
        blocks: Vec::new(),
    }
}

fn color(film: &FilmFormat) -> Color {
    let colorimetry = &film.look.colorimetry;
    let point = |iso: u32| u8::try_from(iso).unwrap_or(2);
    Color {
        full_range: colorimetry.range() == gst_video::VideoColorRange::Range0_255,
        primaries: point(colorimetry.primaries().to_iso()),
        transfer: point(colorimetry.transfer().to_iso()),
        matrix: point(colorimetry.matrix().to_iso()),
    }
}

/// A hidden library inside a library, for what is not to be seen; removed with
/// all that is in it when dropped.
pub(super) struct Aside {
    library: Library,
}

impl Aside {
    pub(super) fn create(library: &Library) -> Result<Self, EncodeError> {
        static SERIAL: AtomicU32 = AtomicU32::new(0);
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let path: PathBuf = library.path().join(format!(".once-{}-{serial}", std::process::id()));
        Ok(Self { library: Library::create(path)? })
    }

    pub(super) fn library(&self) -> &Library {
        &self.library
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        // It is hidden; if it cannot be removed it does no harm.
        let _ = std::fs::remove_dir_all(self.library.path());
    }
}
