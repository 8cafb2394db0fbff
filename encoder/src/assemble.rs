//! Putting coded blocks into a title's files, in order.

use crate::block::BlockHashes;
use crate::error::EncodeError;
use crate::journal::{Header, Journal, Record, Story};
use crate::nal;
use crate::report::Measured;
use crate::work::Work;
use bytes::Bytes;
use media::container::{
    BlockSamples, base_codec, base_init, enhancement_init, random_access_index, write_chunk, write_halves,
};
use media::library::{Library, TitleFolder, TitleWriter};
use media::manifest::{Half, Manifest};
use media::{BlockInfo, ChunkInfo, Hash, Layer, Span};

/// What all blocks of a title share.
#[derive(Debug, Clone)]
pub(crate) struct Shared {
    /// Base's `AVCDecoderConfigurationRecord`.
    pub(crate) config: Vec<u8>,
    /// Grey key frame of each enhancement.
    pub(crate) keys: Vec<Bytes>,
}

/// A title that was written.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) title: TitleFolder,
    /// Bytes of sound in it, which are in Base's chunks.
    pub(crate) audio_bytes: u64,
}

/// A title being written.
pub(crate) struct Assembler {
    writer: TitleWriter,
    manifest: Manifest,
    shared: Shared,
    sps: Vec<u8>,
    pps: Vec<u8>,
    pictures: u64,
    audio_bytes: u64,
    measured: Measured,
    /// Of a title in halves, what was measured of each block.
    by_block: Vec<Measured>,
    journal: Option<Journal>,
}

/// A block as it is written: chunk bytes of each layer, and what the manifest
/// says of them but their place.
pub(crate) struct Written {
    pub(crate) block: BlockInfo,
    pub(crate) chunks: Vec<Bytes>,
    pub(crate) audio_bytes: u64,
    pub(crate) measured: Measured,
}

impl Assembler {
    /// Starts a title. `manifest` says all but the init segments, the blocks
    /// and the duration.
    pub(crate) fn create(
        library: &Library,
        replace: bool,
        manifest: Manifest,
        shared: Shared,
    ) -> Result<Self, EncodeError> {
        let files: Vec<String> = manifest.layers.iter().map(|layer| layer.file.clone()).collect();
        let writer = TitleWriter::create(library, manifest.title.clone(), replace, &files)?;
        let mut new = Self::with(writer, manifest, shared)?;
        new.write_inits()?;
        Ok(new)
    }

    /// Goes on with work that was begun, or begins it: `header` is written to
    /// its journal if there is none.
    pub(crate) fn take_up(work: Work, header: &Header) -> Result<Self, EncodeError> {
        let shared = Shared {
            config: header.config.clone(),
            keys: header.keys.iter().cloned().map(Bytes::from).collect(),
        };
        let Work { library, replace, folder, mut journal, story } = work;
        let ends = |layer: usize| story.records.last()?.block.chunks.get(layer).map(ChunkInfo::end);
        let files = header.manifest.layers.iter().enumerate();
        let files: Vec<(String, u64)> =
            files.map(|(n, layer)| (layer.file.clone(), ends(n).unwrap_or(0))).collect();
        let title = header.manifest.title.clone();
        let writer = TitleWriter::take_up(&library, title, replace, folder, &files)?;
        let mut new = Self::with(writer, header.manifest.clone(), shared)?;
        journal.cut(Some(&story))?;
        if story.header.is_none() {
            journal.header(header)?;
        }
        if story.records.is_empty() {
            new.write_inits()?;
        }
        new.remember(story);
        new.journal = Some(journal);
        Ok(new)
    }

    fn remember(&mut self, story: Story) {
        for record in story.records {
            self.count(&record.block, record.audio_bytes, &record.measured);
            self.manifest.blocks.push(record.block);
        }
    }

    fn count(&mut self, block: &BlockInfo, audio_bytes: u64, measured: &Measured) {
        self.manifest.duration = block.start.saturating_add(block.duration);
        self.pictures += u64::from(block.frames);
        self.audio_bytes += audio_bytes;
        self.measured.add(measured);
        if self.manifest.in_halves() {
            self.by_block.push(measured.clone());
        }
    }

    fn with(writer: TitleWriter, mut manifest: Manifest, shared: Shared) -> Result<Self, EncodeError> {
        let (sps, pps) = nal::parameter_sets(&shared.config)
            .ok_or_else(|| EncodeError::Option("Base has no parameter sets".into()))?;
        manifest.duration = 0;
        manifest.blocks.clear();
        if let Some(base) = manifest.layers.first_mut() {
            base.codec = base_codec(&sps);
        }
        let measured = Measured::default();
        let by_block = Vec::new();
        let (pictures, audio_bytes, journal) = (0, 0, None);
        Ok(Self { writer, manifest, shared, sps, pps, pictures, audio_bytes, measured, by_block, journal })
    }

    fn write_inits(&mut self) -> Result<(), EncodeError> {
        // The real length is written over this one at the end.
        let draft = Manifest { duration: 1, ..self.manifest.clone() };
        for (layer, init) in (0..).map(Layer).zip(inits(&draft, &self.shared, &self.sps, &self.pps)?) {
            self.writer.append(layer, &init)?;
        }
        Ok(())
    }

    /// How long the programme is so far.
    pub(crate) fn span(&self) -> Span {
        self.manifest.span()
    }

    /// The manifest as far as it goes.
    pub(crate) fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Bytes of sound so far.
    pub(crate) fn audio_bytes(&self) -> u64 {
        self.audio_bytes
    }

    /// How many blocks it has so far.
    pub(crate) fn blocks(&self) -> u32 {
        self.manifest.block_count()
    }

    /// How many pictures it has so far.
    pub(crate) fn pictures(&self) -> u64 {
        self.pictures
    }

    /// What was measured so far.
    pub(crate) fn measured(&self) -> &Measured {
        &self.measured
    }

    /// The same of each block in turn, of a title in halves.
    pub(crate) fn by_block(&self) -> &[Measured] {
        &self.by_block
    }

    /// Appends the block with this index: the samples of each layer and the
    /// hashes of its decoded pictures. `config` is the block's own Base
    /// configuration, which must be that of all.
    pub(crate) fn push(
        &mut self,
        index: u32,
        config: &[u8],
        layers: &[BlockSamples],
        hashes: BlockHashes,
        measured: Measured,
    ) -> Result<(), EncodeError> {
        if nal::parameter_sets(config) != Some((self.sps.clone(), self.pps.clone())) {
            return Err(EncodeError::Option("two blocks of Base have different parameter sets".into()));
        }
        let Some(base) = layers.first() else { return Ok(()) };
        let mut chunks = Vec::with_capacity(layers.len());
        let mut halves = Vec::new();
        let mut shown = hashes.halves.into_iter();
        for (samples, info) in layers.iter().zip(&self.manifest.layers) {
            if !info.halves {
                chunks.push(Bytes::from(write_chunk(index, info.delay, samples)?));
                continue;
            }
            let (bytes, length) = write_halves(index, info.delay, samples)?;
            let hash = Hash::of(bytes.get(..length).unwrap_or_default());
            let length = u64::try_from(length).unwrap_or(u64::MAX);
            halves.extend(shown.next().map(|pictures| Half { length, hash, pictures }));
            chunks.push(Bytes::from(bytes));
        }
        let block = BlockInfo {
            start: base.start,
            duration: base.end.saturating_sub(base.start),
            frames: u32::try_from(base.video.len()).unwrap_or(u32::MAX),
            base_hash: hashes.base,
            quality_hashes: hashes.qualities,
            chunks: Vec::new(),
            halves,
        };
        let audio_bytes = base.audio.iter().map(|frame| u64::try_from(frame.data.len()).unwrap_or(0)).sum();
        self.append(index, Written { block, chunks, audio_bytes, measured })
    }

    /// Appends a block whose chunks are written already.
    pub(crate) fn append(&mut self, index: u32, written: Written) -> Result<(), EncodeError> {
        let Written { mut block, chunks, audio_bytes, measured } = written;
        block.chunks.clear();
        for (layer, bytes) in (0..).map(Layer).zip(&chunks) {
            let offset = self.writer.append(layer, bytes)?;
            let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            block.chunks.push(ChunkInfo { offset, length, hash: Hash::of(bytes) });
        }
        self.count(&block, audio_bytes, &measured);
        self.manifest.blocks.push(block.clone());
        match &mut self.journal {
            Some(journal) => journal.record(Record { index, block, audio_bytes, measured }),
            None => Ok(()),
        }
    }

    /// Shows what was written as a part of a film of so many blocks.
    pub(crate) fn finish_part(mut self, name: &str, blocks: u32) -> Result<std::path::PathBuf, EncodeError> {
        if let Some(journal) = &mut self.journal {
            journal.complete(blocks)?;
        }
        Ok(self.writer.finish_part(name)?)
    }

    /// Writes the indexes and shows the title.
    pub(crate) fn finish(mut self) -> Result<Finished, EncodeError> {
        let inits = inits(&self.manifest, &self.shared, &self.sps, &self.pps)?;
        for (index, init) in inits.into_iter().enumerate() {
            let layer = Layer(u8::try_from(index).unwrap_or(u8::MAX));
            let delay = self.manifest.layers.get(index).map_or(0, |info| info.delay);
            let place = |block: &BlockInfo| Some((block.start, block.chunks.get(index)?.offset));
            let table = random_access_index(delay, self.manifest.blocks.iter().filter_map(place))?;
            self.writer.append(layer, &table)?;
            self.writer.overwrite_start(layer, &init)?;
            if let Some(info) = self.manifest.layers.get_mut(index) {
                info.init = init;
            }
        }
        if let Some(journal) = self.journal {
            journal.remove()?;
        }
        Ok(Finished { title: self.writer.finish(&self.manifest)?, audio_bytes: self.audio_bytes })
    }
}

/// The init segment of each layer. Their lengths do not depend on the duration.
fn inits(manifest: &Manifest, shared: &Shared, sps: &[u8], pps: &[u8]) -> Result<Vec<Vec<u8>>, EncodeError> {
    let mut layers = manifest.layers.iter();
    let mut inits = Vec::with_capacity(manifest.layers.len());
    if let Some(base) = layers.next() {
        inits.push(base_init(manifest, base, sps, pps)?);
    }
    for (layer, key) in layers.zip(&shared.keys) {
        inits.push(enhancement_init(manifest, layer, key)?);
    }
    Ok(inits)
}
