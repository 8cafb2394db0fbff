//! A stored title against its source: rate of each layer, score of each tier.

use crate::bench::BenchError;
use crate::bench::score::{Meter, Score};
use crate::bench::x264::Source;
use crate::bench::yuv::{Film, Header, Reader, Writer};
use crate::stored::{self, StoredError};
use codec::{Ladder, Picture};
use media::container;
use media::library::TitleFolder;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

/// The same pictures at full size and at Base's.
#[derive(Debug, Clone)]
pub struct Sources {
    /// Full size.
    pub full: Source,
    /// Scaled down as Base's encoder is fed.
    pub base: Source,
}

/// What a title costs and gives.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Bytes of coded pictures in each layer, Base first; neither boxes nor sound.
    pub layer_bytes: Vec<u64>,
    /// Bytes of all files of the title, with boxes, sound and manifest.
    pub file_bytes: u64,
    /// Base at its own size against the scaled-down source.
    pub base: Score,
    /// What is shown at each quality against the source, bronze first.
    pub shown: Vec<Score>,
}

impl Sources {
    /// Decodes the pictures of a film that a title was made of.
    pub fn decode(film: &Path, title: &TitleFolder, folder: &Path) -> Result<Self, BenchError> {
        let manifest = title.manifest();
        let pictures: u32 = manifest.blocks.iter().map(|block| block.frames).sum();
        let ladder = ladder(title)?;
        let mut decoder = Film::open(film)?;
        let header = decoder.header().clone();
        let (width, height) = ladder.display();
        if (header.width, header.height) != (width, height) {
            return Err(differ("size of the decoded film", (width, height), (header.width, header.height)));
        }
        let base_size = ladder.size(0);
        let base_header = Header { width: base_size.0, height: base_size.1, ..header.clone() };
        let keyint = header.pictures_a_second();
        let source = |name: &str| Source {
            path: folder.join(name),
            keyint,
            seconds: manifest.span().as_secs_f64(),
            pictures,
        };
        let sources = Self { full: source("full.y4m"), base: source("base.y4m") };
        let mut full = Output::create(&sources.full.path, &header)?;
        let mut base = Output::create(&sources.base.path, &base_header)?;
        for decoded in 0..pictures {
            let missing = || differ("pictures of the decoded film", pictures, decoded);
            let picture = decoder.picture()?.ok_or_else(missing)?;
            base.write(&codec::downscale_to_base(&picture, &ladder)?)?;
            full.write(&picture)?;
        }
        full.finish()?;
        base.finish()?;
        Ok(sources)
    }
}

/// Measures a title, its blocks on all cores.
pub fn measure(title: &TitleFolder, sources: &Sources) -> Result<Measured, BenchError> {
    let manifest = title.manifest();
    let mut layer_bytes = vec![0; manifest.layers.len()];
    for block in 0..manifest.block_count() {
        for (layer, bytes) in title.layers().zip(&mut layer_bytes) {
            let chunk = title.read_chunk(block, layer).map_err(StoredError::from)?;
            let delay = manifest.layers.get(layer.index()).map_or(0, |info| info.delay);
            let samples = container::parse_chunk(&chunk, delay).map_err(StoredError::from)?;
            *bytes += samples.video.iter().map(|sample| length(&sample.data)).sum::<u64>();
        }
    }
    let mut blocks = measure_blocks(title, sources)?;
    blocks.sort_by_key(|(block, _)| *block);
    let mut sums = vec![Meter::default(); manifest.layers.len() + 1];
    for (_, meters) in blocks {
        sums.iter_mut().zip(meters).for_each(|(sum, meter)| *sum = sum.plus(meter));
    }
    let mut scores = sums.iter().map(Meter::score);
    let base = scores.next().unwrap_or_else(|| Meter::default().score());
    Ok(Measured { layer_bytes, file_bytes: file_bytes(title.path())?, base, shown: scores.collect() })
}

/// Meters of a block: Base at its own size, then each quality as shown.
type BlockMeters = (u32, Vec<Meter>);

fn measure_blocks(title: &TitleFolder, sources: &Sources) -> Result<Vec<BlockMeters>, BenchError> {
    let next = AtomicU32::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let block = next.fetch_add(1, Ordering::Relaxed);
            if block >= title.manifest().block_count() {
                return Ok(done);
            }
            done.push((block, measure_block(title, sources, block)?));
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        let mut blocks = Vec::new();
        for worker in workers {
            let done: Result<Vec<BlockMeters>, BenchError> = worker.join().unwrap_or_else(|_| {
                Err(BenchError::Setting("a thread that measures ended early".to_owned()))
            });
            blocks.extend(done?);
        }
        Ok(blocks)
    })
}

fn measure_block(title: &TitleFolder, sources: &Sources, block: u32) -> Result<Vec<Meter>, BenchError> {
    let before = title.manifest().blocks.iter().take(usize::try_from(block).unwrap_or(usize::MAX));
    let before = before.map(|block| u64::from(block.frames)).sum();
    let mut full = Pictures::open(&sources.full.path, before)?;
    let mut base = Pictures::open(&sources.base.path, before)?;
    let mut meters = vec![Meter::default(); title.manifest().layers.len() + 1];
    stored::decode_block(title, block, |tiers| {
        let (source, small) = (full.next()?, base.next()?);
        let pairs = tiers.qualities.iter().map(|shown| (&source, shown));
        for (meter, (source, shown)) in
            meters.iter_mut().zip(std::iter::once((&small, &tiers.base)).chain(pairs))
        {
            meter.add(source, shown)?;
        }
        Ok::<(), BenchError>(())
    })?;
    Ok(meters)
}

/// Pictures of a source, from one of them on.
struct Pictures<'a> {
    path: &'a Path,
    reader: Reader<File>,
}

impl<'a> Pictures<'a> {
    fn open(path: &'a Path, skip: u64) -> Result<Self, BenchError> {
        let file = File::open(path).map_err(|error| BenchError::file("opening", path, error))?;
        let mut reader = Reader::new(file).map_err(BenchError::pictures(path))?;
        reader.skip(skip).map_err(BenchError::pictures(path))?;
        Ok(Self { path, reader })
    }

    fn next(&mut self) -> Result<Picture, BenchError> {
        let picture = self.reader.picture().map_err(BenchError::pictures(self.path))?;
        picture.ok_or_else(|| differ("pictures of the source", "more", "no more"))
    }
}

/// A YUV4MPEG2 file being written.
struct Output<'a> {
    path: &'a Path,
    writer: Writer<BufWriter<File>>,
}

impl<'a> Output<'a> {
    fn create(path: &'a Path, header: &Header) -> Result<Self, BenchError> {
        let file = File::create(path).map_err(|error| BenchError::file("creating", path, error))?;
        let writer = Writer::new(BufWriter::with_capacity(1 << 20, file), header);
        Ok(Self { path, writer: writer.map_err(BenchError::pictures(path))? })
    }

    fn write(&mut self, picture: &Picture) -> Result<(), BenchError> {
        self.writer.picture(picture).map_err(BenchError::pictures(self.path))
    }

    fn finish(self) -> Result<(), BenchError> {
        self.writer.finish().map(drop).map_err(BenchError::pictures(self.path))
    }
}

fn ladder(title: &TitleFolder) -> Result<Ladder, BenchError> {
    let manifest = title.manifest();
    let factors: Vec<u8> = manifest.layers.iter().map(|layer| layer.factor).collect();
    Ok(Ladder::new(manifest.width, manifest.height, &factors).map_err(StoredError::from)?)
}

fn file_bytes(folder: &Path) -> Result<u64, BenchError> {
    let failed = |error| BenchError::file("reading", folder, error);
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        bytes += entry.and_then(|entry| entry.metadata()).map_err(failed)?.len();
    }
    Ok(bytes)
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

fn differ(what: &str, expected: impl std::fmt::Debug, found: impl std::fmt::Debug) -> BenchError {
    BenchError::Differ {
        what: what.to_owned(),
        expected: format!("{expected:?}"),
        found: format!("{found:?}"),
    }
}
