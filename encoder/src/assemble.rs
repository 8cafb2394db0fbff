//! Putting coded blocks into a title's files, in order.

use crate::error::EncodeError;
use crate::nal;
use bytes::Bytes;
use media::container::{
    BlockSamples, base_codec, base_init, enhancement_init, random_access_index, write_chunk,
};
use media::library::{Library, TitleFolder, TitleWriter};
use media::manifest::Manifest;
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
}

impl Assembler {
    /// Starts a title. `manifest` says all but the init segments, the blocks
    /// and the duration.
    pub(crate) fn create(
        library: &Library,
        replace: bool,
        mut manifest: Manifest,
        shared: Shared,
    ) -> Result<Self, EncodeError> {
        let files: Vec<String> = manifest.layers.iter().map(|layer| layer.file.clone()).collect();
        let (sps, pps) = nal::parameter_sets(&shared.config)
            .ok_or_else(|| EncodeError::Option("Base has no parameter sets".into()))?;
        let mut writer = TitleWriter::create(library, manifest.title.clone(), replace, &files)?;
        // The real length is written over this one at the end.
        manifest.duration = 1;
        manifest.blocks.clear();
        if let Some(base) = manifest.layers.first_mut() {
            base.codec = base_codec(&sps);
        }
        for (layer, init) in (0..).map(Layer).zip(inits(&manifest, &shared, &sps, &pps)?) {
            writer.append(layer, &init)?;
        }
        manifest.duration = 0;
        Ok(Self { writer, manifest, shared, sps, pps, pictures: 0, audio_bytes: 0 })
    }

    /// How long the programme is so far.
    pub(crate) fn span(&self) -> Span {
        self.manifest.span()
    }

    /// How many pictures it has so far.
    pub(crate) fn pictures(&self) -> u64 {
        self.pictures
    }

    /// Appends the next block: the samples of each layer and the hashes of its
    /// decoded pictures. `config` is the block's own Base configuration, which
    /// must be that of all.
    pub(crate) fn push(
        &mut self,
        config: &[u8],
        layers: &[BlockSamples],
        base_hash: Hash,
        quality_hashes: Vec<Hash>,
    ) -> Result<(), EncodeError> {
        if nal::parameter_sets(config) != Some((self.sps.clone(), self.pps.clone())) {
            return Err(EncodeError::Option("two blocks of Base have different parameter sets".into()));
        }
        let Some(base) = layers.first() else { return Ok(()) };
        let index = self.manifest.block_count();
        let mut chunks = Vec::with_capacity(layers.len());
        for ((layer, samples), info) in (0..).map(Layer).zip(layers).zip(&self.manifest.layers) {
            let bytes = write_chunk(index, info.delay, samples)?;
            let offset = self.writer.append(layer, &bytes)?;
            let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            chunks.push(ChunkInfo { offset, length, hash: Hash::of(&bytes) });
        }
        self.manifest.blocks.push(BlockInfo {
            start: base.start,
            duration: base.end.saturating_sub(base.start),
            frames: u32::try_from(base.video.len()).unwrap_or(u32::MAX),
            base_hash,
            quality_hashes,
            chunks,
        });
        self.manifest.duration = base.end;
        self.pictures += u64::try_from(base.video.len()).unwrap_or(0);
        self.audio_bytes +=
            base.audio.iter().map(|frame| u64::try_from(frame.data.len()).unwrap_or(0)).sum::<u64>();
        Ok(())
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
