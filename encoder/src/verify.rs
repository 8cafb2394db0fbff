//! Checking a title: every chunk against its hash, every quality by decoding it.

use crate::base;
use crate::error::EncodeError;
use bytes::Bytes;
use codec::{Ladder, LayerDecoder, Picture};
use media::container::{BlockSamples, ContainerError, avc_config, enhancement_key, parse_chunk};
use media::library::TitleFolder;
use media::{Hash, Hasher, Layer, Quality};
use serde::Serialize;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// What a check found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct VerifyReport {
    /// The title's name.
    pub title: String,
    /// Blocks looked at.
    pub blocks: u32,
    /// Pictures decoded, each quality counted.
    pub pictures: u64,
    /// Chunks whose hash was compared.
    pub chunks: u32,
    /// Qualities that could be decoded with the layers that are kept here.
    pub qualities: Vec<Quality>,
    /// Layers that are not kept here.
    pub missing: Vec<Layer>,
    /// All that is wrong, in order of blocks.
    pub faults: Vec<Fault>,
}

impl VerifyReport {
    /// Whether nothing was found wrong.
    pub fn is_clean(&self) -> bool {
        self.faults.is_empty()
    }
}

/// Something wrong with a block.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Fault {
    /// Index of the block.
    pub block: u32,
    /// What it is.
    pub kind: FaultKind,
}

/// What can be wrong with a block.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case", tag = "fault")]
pub enum FaultKind {
    /// The chunk cannot be read, or its bytes are not those of the manifest.
    Chunk {
        /// The layer.
        layer: Layer,
        /// In words.
        why: String,
    },
    /// The chunk is right by its hash, but not of the container's form, or its
    /// times or number of pictures are not the manifest's.
    Samples {
        /// The layer.
        layer: Layer,
        /// In words.
        why: String,
    },
    /// Base does not decode.
    Decode {
        /// In words.
        why: String,
    },
    /// The decoded Base pictures differ from their hash.
    BaseHash,
    /// The first half of the chunk is not the manifest's.
    Half {
        /// The layer.
        layer: Layer,
    },
    /// The pictures with the first half of a quality's topmost layer differ from
    /// their hash.
    HalfHash {
        /// The quality.
        quality: Quality,
    },
    /// An enhancement was dropped while decoding.
    Dropped {
        /// The quality that was being decoded.
        quality: Quality,
        /// In words.
        why: String,
    },
    /// The recombined pictures differ from their hash.
    QualityHash {
        /// The quality.
        quality: Quality,
    },
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let block = self.block;
        match &self.kind {
            FaultKind::Chunk { layer, why } | FaultKind::Samples { layer, why } => {
                write!(f, "block {block}, {layer}: {why}")
            }
            FaultKind::Decode { why } => write!(f, "block {block}: Base does not decode: {why}"),
            FaultKind::BaseHash => {
                write!(f, "block {block}: the Base pictures are not those that were encoded")
            }
            FaultKind::Dropped { quality, why } => write!(f, "block {block}, {quality}: {why}"),
            FaultKind::Half { layer } => {
                write!(f, "block {block}, {layer}: its first half is not the manifest's")
            }
            FaultKind::HalfHash { quality } => {
                write!(f, "block {block}: the {quality}/a pictures are not those that were encoded")
            }
            FaultKind::QualityHash { quality } => {
                write!(f, "block {block}: the {quality} pictures are not those that were encoded")
            }
        }
    }
}

/// What all blocks need.
struct Checker<'a> {
    title: &'a TitleFolder,
    ladder: Ladder,
    config: &'a [u8],
    keys: Vec<Bytes>,
    /// Layers kept here without a gap from Base on.
    usable: usize,
}

/// Checks every chunk that is kept in a title's folder, and decodes every
/// quality that they allow. `progress` hears how many blocks are done, in the
/// threads that do them.
///
/// # Errors
/// Only what prevents checking: a manifest whose init segments are of no use.
/// What is wrong with the title is in the report.
pub fn verify(
    title: &TitleFolder,
    jobs: Option<usize>,
    progress: &(dyn Fn(u32) + Sync),
    cancel: &AtomicBool,
) -> Result<VerifyReport, EncodeError> {
    crate::init()?;
    let checker = Checker::new(title)?;
    let manifest = title.manifest();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let (next, done) = (AtomicU32::new(0), AtomicU32::new(0));
    let all = Layer::first(manifest.top_quality().layers());
    let report = Mutex::new(VerifyReport {
        title: manifest.title.to_string(),
        qualities: (1..).map(Quality).take(checker.usable).collect(),
        missing: all.filter(|layer| !title.has(*layer)).collect(),
        ..VerifyReport::default()
    });
    let failed: Mutex<Option<EncodeError>> = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..jobs.unwrap_or(cores).clamp(1, 256) {
            scope.spawn(|| {
                let fail = |error| *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                let mut decoders = match checker.decoders() {
                    Ok(decoders) => decoders,
                    Err(error) => return fail(error),
                };
                loop {
                    let block = next.fetch_add(1, Ordering::Relaxed);
                    if block >= manifest.block_count() {
                        return;
                    }
                    if cancel.load(Ordering::Relaxed) {
                        return fail(EncodeError::Cancelled);
                    }
                    let found = checker.block(block, &mut decoders);
                    report.lock().unwrap_or_else(PoisonError::into_inner).add(block, found);
                    progress(done.fetch_add(1, Ordering::Relaxed) + 1);
                }
            });
        }
    });
    if let Some(error) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    let mut report = report.into_inner().unwrap_or_else(PoisonError::into_inner);
    report.faults.sort();
    Ok(report)
}

/// What came of one block.
#[derive(Default)]
struct Found {
    chunks: u32,
    pictures: u64,
    faults: Vec<FaultKind>,
}

impl VerifyReport {
    fn add(&mut self, block: u32, found: Found) {
        self.blocks += 1;
        self.chunks += found.chunks;
        self.pictures += found.pictures;
        self.faults.extend(found.faults.into_iter().map(|kind| Fault { block, kind }));
    }
}

impl<'a> Checker<'a> {
    fn new(title: &'a TitleFolder) -> Result<Self, EncodeError> {
        let manifest = title.manifest();
        let factors: Vec<u8> = manifest.layers.iter().map(|layer| layer.factor).collect();
        let ladder = Ladder::new(manifest.width, manifest.height, &factors)?;
        let base = manifest.layers.first().ok_or(ContainerError::Missing("moov"))?;
        let keys = manifest
            .layers
            .iter()
            .skip(1)
            .map(|layer| enhancement_key(&layer.init).map(Bytes::copy_from_slice));
        let layers = Layer::first(manifest.top_quality().layers());
        Ok(Self {
            title,
            ladder,
            config: avc_config(&base.init)?,
            keys: keys.collect::<Result<_, _>>()?,
            usable: layers.take_while(|layer| title.has(*layer)).count(),
        })
    }

    /// One decoder for each quality.
    fn decoders(&self) -> Result<Vec<LayerDecoder>, EncodeError> {
        let make =
            if self.title.manifest().in_halves() { LayerDecoder::with_halves } else { LayerDecoder::new };
        let one = |_| make(&self.ladder, &self.keys);
        Ok((0..self.usable).map(one).collect::<Result<_, _>>()?)
    }

    fn block(&self, block: u32, decoders: &mut [LayerDecoder]) -> Found {
        let mut found = Found::default();
        let mut layers = Vec::new();
        let mut whole = true;
        for layer in self.title.layers() {
            match self.samples(block, layer) {
                Ok(samples) => {
                    whole = whole && layer.index() == layers.len();
                    if whole {
                        layers.push(samples);
                    }
                }
                Err(fault) => {
                    whole = false;
                    found.faults.push(fault);
                }
            }
            found.chunks += 1;
        }
        self.decode(block, &layers, decoders, &mut found);
        found
    }

    /// The samples of a chunk after all that the manifest says about it.
    fn samples(&self, block: u32, layer: Layer) -> Result<BlockSamples, FaultKind> {
        let manifest = self.title.manifest();
        let chunk = |why: String| FaultKind::Chunk { layer, why };
        let bytes = self.title.read_chunk(block, layer).map_err(|error| chunk(error.to_string()))?;
        let bytes = self.title.verified(block, layer, bytes).map_err(|error| chunk(error.to_string()))?;
        let delay = manifest.layers.get(layer.index()).map_or(0, |info| info.delay);
        let wrong = |why: String| FaultKind::Samples { layer, why };
        let samples = parse_chunk(bytes.bytes(), delay).map_err(|error| wrong(error.to_string()))?;
        let Some(info) = manifest.block(block) else { return Err(wrong("there is no such block".into())) };
        if (samples.start, samples.end) != (info.start, info.start.saturating_add(info.duration)) {
            return Err(wrong("its times are not the manifest's".into()));
        }
        if u32::try_from(samples.video.len()) != Ok(info.frames) {
            return Err(wrong(format!("{} pictures instead of {}", samples.video.len(), info.frames)));
        }
        if let Some(half) = layer.index().checked_sub(1).and_then(|above| info.halves.get(above)) {
            let first = usize::try_from(half.length).ok().and_then(|length| bytes.bytes().get(..length));
            if first.map(Hash::of) != Some(half.hash) {
                return Err(FaultKind::Half { layer });
            }
        }
        Ok(samples)
    }

    fn decode(&self, block: u32, layers: &[BlockSamples], decoders: &mut [LayerDecoder], found: &mut Found) {
        let (Some(base), Some(info)) = (layers.first(), self.title.manifest().block(block)) else { return };
        let decoded = base::decode(self.config, self.ladder.size(0), ranked(base));
        let pictures = match decoded {
            Ok(pictures) => pictures,
            Err(error) => return found.faults.push(FaultKind::Decode { why: error.to_string() }),
        };
        let mut hasher = Hasher::new();
        for picture in &pictures {
            picture.hash_into(&mut hasher);
        }
        if hasher.finish() != info.base_hash {
            return found.faults.push(FaultKind::BaseHash);
        }
        let qualities = (1..).map(Quality).zip(decoders).zip(&info.quality_hashes).take(layers.len());
        for ((quality, decoder), hash) in qualities {
            let enhancements = layers.get(1..usize::from(quality.layers())).unwrap_or_default();
            let half = enhancements.len().checked_sub(1).and_then(|above| info.halves.get(above));
            let whole = (*hash, false, FaultKind::QualityHash { quality });
            let half = half.map(|half| (half.pictures, true, FaultKind::HalfHash { quality }));
            for (hash, half, fault) in std::iter::once(whole).chain(half) {
                found.pictures += u64::from(info.frames);
                match recombine(decoder, &pictures, enhancements, half) {
                    Err(why) => found.faults.push(FaultKind::Dropped { quality, why }),
                    Ok(hasher) if hasher.finish() != hash => found.faults.push(fault),
                    Ok(_) => {}
                }
            }
        }
    }
}

/// Samples in decoding order with their place in display order.
pub(crate) fn ranked(base: &BlockSamples) -> impl Iterator<Item = (usize, &Bytes)> {
    let mut times: Vec<u64> = base.video.iter().map(|sample| sample.pts).collect();
    times.sort_unstable();
    base.video.iter().map(move |sample| (times.partition_point(|time| *time < sample.pts), &sample.data))
}

/// Decodes a block with these enhancements, of the topmost one only the first
/// half if so asked, and hashes its pictures.
fn recombine(
    decoder: &mut LayerDecoder,
    base: &[Picture],
    enhancements: &[BlockSamples],
    half: bool,
) -> Result<Hasher, String> {
    let mut hasher = Hasher::new();
    decoder.start_block(enhancements.len()).map_err(|error| error.to_string())?;
    for (index, picture) in base.iter().enumerate() {
        let frame = |layer: &BlockSamples| layer.video.get(index).map(|sample| sample.data.clone());
        let frames: Vec<Option<Bytes>> = enhancements.iter().map(frame).collect();
        let mut frames: Vec<Option<&[u8]>> = frames.iter().map(|frame| frame.as_deref()).collect();
        let left_out = usize::from(half && index % 2 == 1);
        frames.truncate(frames.len().saturating_sub(left_out));
        let decoded = decoder.decode(picture, &frames).map_err(|error| error.to_string())?;
        if decoded.layers + left_out != enhancements.len() + 1 {
            let why =
                decoded.failure.map_or_else(|| "a picture is missing".to_owned(), |error| error.to_string());
            return Err(format!("picture {index}: {why}"));
        }
        decoded.picture.hash_into(&mut hasher);
    }
    Ok(hasher)
}
