//! What makes a manifest consistent. A peer may send anything; after this,
//! sizes are bounded, blocks follow each other and every list has its length.

use super::{
    BlockInfo, LayerInfo, MANIFEST_VERSION, Manifest, ManifestError, Ratio, fits_a_chunk, lawful_layers,
};

/// The largest side of a picture in pixels.
const MAX_SIDE: u32 = 16_384;
/// The most blocks: a day of one-second blocks and more.
const MAX_BLOCKS: usize = 131_072;
/// The most pictures in one block.
const MAX_FRAMES: u32 = 10_000;
/// The longest init segment in bytes.
const MAX_INIT: usize = 64 * 1024;

fn inconsistent<T>(what: impl Into<String>) -> Result<T, ManifestError> {
    Err(ManifestError::Inconsistent(what.into()))
}

impl Manifest {
    /// Checks every bound and every agreement between fields.
    ///
    /// # Errors
    /// [`ManifestError::Inconsistent`] with the first fault found.
    pub fn check(&self) -> Result<(), ManifestError> {
        self.check_picture()?;
        self.check_layers()?;
        self.check_audio()?;
        self.check_blocks()
    }

    fn check_picture(&self) -> Result<(), ManifestError> {
        let lawful = |side: u32| (1..=MAX_SIDE).contains(&side);
        if !lawful(self.width) || !lawful(self.height) {
            return inconsistent(format!("a picture of {}x{}", self.width, self.height));
        }
        if self.timescale == 0 {
            return inconsistent("a clock that does not tick");
        }
        let lawful = |ratio: Ratio| ratio.num > 0 && ratio.den > 0;
        if !lawful(self.frame_rate) || !lawful(self.pixel_aspect) {
            return inconsistent("a ratio with a zero in it");
        }
        Ok(())
    }

    fn check_layers(&self) -> Result<(), ManifestError> {
        if !lawful_layers(self.layers.len()) {
            return inconsistent(format!("{} layers", self.layers.len()));
        }
        if self.made.quantizers.len() + 1 != self.layers.len() {
            return inconsistent("not one quantizer for each enhancement");
        }
        let mut above = u8::MAX;
        for layer in &self.layers {
            self.check_layer(layer)?;
            if layer.factor > above {
                return inconsistent("a layer that is smaller than the one below it");
            }
            above = layer.factor;
        }
        let mut layers = self.layers.iter();
        let base = layers.next().is_some_and(|base| base.halves);
        let mut enhancements = layers.map(|layer| layer.halves);
        let halves = enhancements.next().unwrap_or(false);
        if base || enhancements.any(|other| other != halves) || (halves && self.version < MANIFEST_VERSION) {
            return inconsistent("halves in some layers only, or before their version");
        }
        Ok(())
    }

    /// Whether the enhancements come in `a` and `b` halves.
    pub fn in_halves(&self) -> bool {
        self.layers.last().is_some_and(|layer| layer.halves)
    }

    fn check_layer(&self, layer: &LayerInfo) -> Result<(), ManifestError> {
        if !layer.factor.is_power_of_two() {
            return inconsistent(format!("a down-scale factor of {}", layer.factor));
        }
        let coded = |side: u32| side.div_ceil(u32::from(layer.factor)).next_multiple_of(2);
        if (layer.width, layer.height) != (coded(self.width), coded(self.height)) {
            return inconsistent(format!("a layer of {}x{} pixels", layer.width, layer.height));
        }
        if layer.init.is_empty() || layer.init.len() > MAX_INIT {
            return inconsistent(format!("an init segment of {} bytes", layer.init.len()));
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        if layer.file.is_empty()
            || layer.file.len() > 64
            || layer.file.starts_with('.')
            || !layer.file.chars().all(plain)
        {
            return inconsistent(format!("a layer in the file {:?}", layer.file));
        }
        Ok(())
    }

    fn check_audio(&self) -> Result<(), ManifestError> {
        match &self.audio {
            Some(audio) if audio.sample_rate == 0 || audio.channels == 0 || audio.config.len() > 64 => {
                inconsistent("an audio track without samples or channels")
            }
            Some(_) | None => Ok(()),
        }
    }

    fn check_blocks(&self) -> Result<(), ManifestError> {
        if self.blocks.is_empty() || self.blocks.len() > MAX_BLOCKS {
            return inconsistent(format!("{} blocks", self.blocks.len()));
        }
        let mut start = 0_u64;
        let mut ends = vec![0_u64; self.layers.len()];
        for (index, block) in self.blocks.iter().enumerate() {
            self.check_block(block, start, &mut ends)
                .or_else(|why| inconsistent(format!("block {index} has {why}")))?;
            start = match start.checked_add(block.duration) {
                Some(end) => end,
                None => return inconsistent("times beyond 64 bits"),
            };
        }
        if start == self.duration {
            Ok(())
        } else {
            inconsistent("blocks that do not add up to its duration")
        }
    }

    /// `ends` holds, for each layer, where its file's last chunk ended.
    fn check_block(&self, block: &BlockInfo, start: u64, ends: &mut [u64]) -> Result<(), &'static str> {
        if block.start != start {
            return Err("a start that is not the end of the one before");
        }
        if block.duration == 0 || block.frames == 0 || block.frames > MAX_FRAMES {
            return Err("no pictures, or too many");
        }
        if block.quality_hashes.len() != self.layers.len() || block.chunks.len() != self.layers.len() {
            return Err("not one hash and one chunk for each layer");
        }
        for (chunk, end) in block.chunks.iter().zip(ends) {
            if !fits_a_chunk(chunk.length) {
                return Err("a chunk of unlawful length");
            }
            if chunk.offset < *end {
                return Err("a chunk that overlaps the one before");
            }
            *end = chunk.offset.checked_add(chunk.length).ok_or("a chunk beyond 64 bits")?;
        }
        let wanted = if self.in_halves() { self.layers.len().saturating_sub(1) } else { 0 };
        if block.halves.len() != wanted {
            return Err("not one half for each enhancement");
        }
        let mut halves = block.halves.iter().zip(block.chunks.iter().skip(1));
        if halves.any(|(half, chunk)| half.length == 0 || half.length > chunk.length) {
            return Err("a half that is not a part of its chunk");
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]
pub(crate) mod tests {
    use crate::manifest::{Audio, BlockInfo, ChunkInfo, Color, Half, LayerInfo, Made, Manifest, Ratio};
    use crate::{Hash, Layer, Span, TitleClass};

    /// Three blocks of a 321x241 film in three layers.
    pub(crate) fn small() -> Manifest {
        let layer = |factor: u8, width, height, file: &str| LayerInfo {
            factor,
            width,
            height,
            codec: "lenh".into(),
            file: file.into(),
            init: vec![1, 2, 3],
            delay: 0,
            sync_every: None,
            halves: false,
        };
        let chunk =
            |index: u64, length| ChunkInfo { offset: 100 + index * 50_000, length, hash: Hash::of(b"c") };
        let block = |index: u64| BlockInfo {
            start: index * 30_030,
            duration: 30_030,
            frames: 30,
            base_hash: Hash::of(b"b"),
            quality_hashes: vec![Hash::of(b"q"); 3],
            chunks: vec![chunk(index, 10_010), chunk(index, 20_020), chunk(index, 40_040)],
            halves: Vec::new(),
        };
        Manifest {
            version: 1,
            title: "small".parse().unwrap(),
            width: 321,
            height: 241,
            frame_rate: Ratio { num: 30_000, den: 1_001 },
            timescale: 30_000,
            duration: 90_090,
            color: Color { full_range: false, primaries: 1, transfer: 1, matrix: 1 },
            pixel_aspect: Ratio { num: 1, den: 1 },
            class: TitleClass::Archived,
            made: Made {
                by: "test".into(),
                preset: "fast".into(),
                crf_centi: 3_000,
                quantizers: vec![38, 28],
                block_ms: 1_000,
            },
            audio: Some(Audio {
                codec: "mp4a.40.2".into(),
                sample_rate: 48_000,
                channels: 2,
                config: vec![0x11, 0x90],
            }),
            layers: vec![
                layer(2, 162, 122, "base.mp4"),
                layer(1, 322, 242, "enh1.mp4"),
                layer(1, 322, 242, "enh2.mp4"),
            ],
            blocks: (0..3).map(block).collect(),
        }
    }

    #[test]
    fn a_manifest_comes_back_as_it_was_written() {
        let manifest = small();
        assert_eq!(Manifest::parse(&manifest.to_bytes().unwrap()).unwrap(), manifest);
    }

    #[test]
    fn times_and_rates_follow_from_the_blocks() {
        let manifest = small();
        assert_eq!(manifest.span(), Span::from_millis(3_003));
        assert_eq!(manifest.nominal_rate(Layer::BASE).0, 80_000);
        assert_eq!(manifest.block_at(Span::ZERO), 0);
        assert_eq!(manifest.block_at(Span::from_millis(1_000)), 0);
        assert_eq!(manifest.block_at(Span::from_millis(1_001)), 1);
        assert_eq!(manifest.block_at(Span::from_secs(99)), 2);
    }

    /// The same with the first half of each enhancement's chunk as its `a`.
    fn small_in_halves() -> Manifest {
        let mut manifest = Manifest { version: 3, ..small() };
        manifest.layers.iter_mut().skip(1).for_each(|layer| layer.halves = true);
        for block in &mut manifest.blocks {
            let half = |chunk: &ChunkInfo| Half {
                length: chunk.length / 2,
                hash: Hash::of(b"a"),
                pictures: Hash::of(b"h"),
            };
            block.halves = block.chunks.iter().skip(1).map(half).collect();
        }
        manifest
    }

    #[test]
    fn halves_are_parts_of_their_chunks_and_belong_to_their_version() {
        let manifest = small_in_halves();
        assert_eq!(Manifest::parse(&manifest.to_bytes().unwrap()).unwrap(), manifest);
        assert!(manifest.in_halves() && !small().in_halves());
        let plain = String::from_utf8(small().to_bytes().unwrap()).unwrap();
        assert!(!plain.contains("\"halves\":["), "a title without halves is written as before");
        let faults: [Fault; 5] = [
            ("halves in some layers only, or before their version", |m| m.version = 2),
            ("halves in some layers only, or before their version", |m| m.layers[0].halves = true),
            ("halves in some layers only, or before their version", |m| m.layers[2].halves = false),
            ("block 1 has not one half for each enhancement", |m| m.blocks[1].halves.truncate(1)),
            ("block 2 has a half that is not a part of its chunk", |m| m.blocks[2].halves[1].length = 40_041),
        ];
        for (message, fault) in faults {
            let mut manifest = small_in_halves();
            fault(&mut manifest);
            let error = manifest.check().unwrap_err().to_string();
            assert_eq!(error, format!("the manifest contradicts itself: {message}"));
        }
    }

    type Fault = (&'static str, fn(&mut Manifest));

    #[test]
    fn every_contradiction_is_named() {
        let faults: [Fault; 14] = [
            ("a picture of 0x241", |m| m.width = 0),
            ("a clock that does not tick", |m| m.timescale = 0),
            ("a ratio with a zero in it", |m| m.frame_rate.den = 0),
            ("0 layers", |m| m.layers.clear()),
            ("not one quantizer for each enhancement", |m| m.made.quantizers.push(1)),
            ("a down-scale factor of 3", |m| m.layers[0].factor = 3),
            ("a layer of 160x122 pixels", |m| m.layers[0].width = 160),
            ("a layer in the file \"../x\"", |m| m.layers[0].file = "../x".into()),
            ("an audio track without samples or channels", |m| m.audio.as_mut().unwrap().channels = 0),
            ("0 blocks", |m| m.blocks.clear()),
            ("block 1 has a start that is not the end of the one before", |m| m.blocks[1].start += 1),
            ("block 2 has not one hash and one chunk for each layer", |m| m.blocks[2].chunks.truncate(2)),
            ("block 0 has a chunk of unlawful length", |m| m.blocks[0].chunks[1].length = 1 << 40),
            ("blocks that do not add up to its duration", |m| m.duration += 1),
        ];
        for (message, fault) in faults {
            let mut manifest = small();
            fault(&mut manifest);
            let error = manifest.check().unwrap_err().to_string();
            assert_eq!(error, format!("the manifest contradicts itself: {message}"));
        }
    }

    #[test]
    fn a_manifest_of_the_first_version_names_no_class_and_is_archived() {
        let manifest = Manifest { version: 2, class: TitleClass::AdHoc, ..small() };
        let bytes = manifest.to_bytes().unwrap();
        assert_eq!(Manifest::parse(&bytes).unwrap().class, TitleClass::AdHoc);
        let mut old: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        old["version"] = 1.into();
        assert_eq!(Manifest::parse(old.to_string().as_bytes()).unwrap().class, TitleClass::Archived);
        old.as_object_mut().unwrap().remove("class");
        assert_eq!(Manifest::parse(old.to_string().as_bytes()).unwrap().class, TitleClass::Archived);
    }

    #[test]
    fn another_version_is_refused_before_anything_else_is_read() {
        let error = Manifest::parse(br#"{"version": 4, "shape": "unknown"}"#).unwrap_err();
        assert_eq!(error.to_string(), "the manifest has version 4, this program reads up to 3");
        assert!(Manifest::parse(b"no json").is_err());
    }
}
