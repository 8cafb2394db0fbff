//! A small title, made here: a moving pattern, x264 for Base, the codec for the
//! enhancements, a tone for sound.
#![allow(
    dead_code,
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::missing_panics_doc,
    reason = "small numbers; several test binaries use parts of this"
)]

use bytes::Bytes;
use codec::{Ladder, LayerEncoder, Picture, Preset, downscale_to_base};
use gstreamer as gst;
use gstreamer::prelude::*;
use gstreamer_app as gst_app;
use media::container::{self, AudioSample, BlockSamples, VideoSample};
use media::manifest::{Audio, Color, Made, Ratio};
use media::{BlockInfo, ChunkInfo, Half, Hash, Hasher, LayerInfo, Manifest};
use std::ops::Range;
use std::sync::Arc;

pub const FPS: u64 = 25;
pub const SAMPLE_RATE: u32 = 48_000;

pub struct Recipe {
    pub size: (u32, u32),
    pub factors: &'static [u8],
    pub blocks: u64,
    pub frames: u64,
    /// The blocks that have sound; with none there is no track at all.
    pub sound: Range<u64>,
    /// Whether the enhancements come in halves.
    pub halves: bool,
}

impl Recipe {
    /// Three small layers with sound, in blocks of 0.4 s.
    pub fn small(blocks: u64) -> Self {
        Self { size: (160, 96), factors: &[2, 1, 1], blocks, frames: 10, sound: 0..blocks, halves: false }
    }
}

pub struct Title {
    pub manifest: Arc<Manifest>,
    /// `chunks[block][layer]`.
    pub chunks: Vec<Vec<Bytes>>,
}

/// A disc that wanders over a gradient, so that every picture is another one.
fn picture(size: (u32, u32), number: u64) -> Picture {
    let mut picture = Picture::new(size.0, size.1).unwrap();
    let (cx, cy) = ((number * 7 % u64::from(size.0)) as i64, (number * 5 % u64::from(size.1)) as i64);
    for (plane, out) in picture.planes_mut().into_iter().enumerate() {
        let scale = if plane == 0 { 1 } else { 2 };
        for (at, sample) in out.data.iter_mut().enumerate() {
            let (x, y) = ((at % out.width) as i64 * scale, (at / out.width) as i64 * scale);
            let inside = (x - cx).pow(2) + (y - cy).pow(2) < 400;
            let texture = ((x * 3 + y * 5 + number as i64) ^ (x * y / 7)) & 31;
            *sample = if inside { 200 } else { (60 + (x + y) / 4 % 80 + texture) as u8 };
        }
    }
    picture
}

fn raw_caps((width, height): (u32, u32)) -> gst::Caps {
    gst::Caps::builder("video/x-raw")
        .field("format", "I420")
        .field("width", width as i32)
        .field("height", height as i32)
        .field("framerate", gst::Fraction::new(FPS as i32, 1))
        .build()
}

/// Pushes buffers through a chain of elements and returns what comes out, with
/// running times in frames.
fn through(chain: &str, caps: &gst::Caps, input: Vec<gst::Buffer>) -> (gst::Caps, Vec<(u64, Vec<u8>)>) {
    let description = format!("appsrc name=in format=time ! {chain} ! appsink name=out sync=false");
    let pipeline = gst::parse::launch(&description).unwrap().downcast::<gst::Pipeline>().unwrap();
    let source = pipeline.by_name("in").unwrap().downcast::<gst_app::AppSrc>().unwrap();
    let sink = pipeline.by_name("out").unwrap().downcast::<gst_app::AppSink>().unwrap();
    source.set_caps(Some(caps));
    pipeline.set_state(gst::State::Playing).unwrap();
    for buffer in input {
        source.push_buffer(buffer).unwrap();
    }
    source.end_of_stream().unwrap();
    let (mut out, mut caps) = (Vec::new(), None);
    while let Ok(sample) = sink.pull_sample() {
        let buffer = sample.buffer().unwrap();
        let segment = sample.segment().unwrap().downcast_ref::<gst::ClockTime>().unwrap();
        let time = segment.to_running_time(buffer.pts().unwrap()).unwrap();
        out.push((time.nseconds(), buffer.map_readable().unwrap().to_vec()));
        caps = sample.caps_owned();
    }
    pipeline.set_state(gst::State::Null).unwrap();
    (caps.expect("nothing came out"), out)
}

fn timed(data: Vec<u8>, frame: u64) -> gst::Buffer {
    let mut buffer = gst::Buffer::from_slice(data);
    let inside = buffer.get_mut().unwrap();
    inside.set_pts(gst::ClockTime::from_nseconds(frame * 1_000_000_000 / FPS));
    inside.set_duration(gst::ClockTime::from_nseconds(1_000_000_000 / FPS));
    buffer
}

fn layout((width, height): (u32, u32)) -> gstreamer_video::VideoInfo {
    gstreamer_video::VideoInfo::builder(gstreamer_video::VideoFormat::I420, width, height).build().unwrap()
}

/// A picture as GStreamer lays it out: rows start at multiples of 4.
fn laid_out(picture: &Picture) -> Vec<u8> {
    let info = layout(picture.size());
    let mut bytes = vec![0; info.size()];
    for (number, plane) in picture.planes().into_iter().enumerate() {
        for (row, samples) in plane.rows().enumerate() {
            let at = info.offset()[number] + row * info.stride()[number] as usize;
            bytes[at..at + samples.len()].copy_from_slice(samples);
        }
    }
    bytes
}

fn hash<'a>(pictures: impl IntoIterator<Item = &'a Picture>) -> Hash {
    let mut hasher = Hasher::new();
    pictures.into_iter().for_each(|picture| picture.hash_into(&mut hasher));
    hasher.finish()
}

fn frame_number(time: u64) -> u64 {
    (time * FPS + 500_000_000) / 1_000_000_000
}

struct BaseBlock {
    avcc: Vec<u8>,
    samples: Vec<(u64, Vec<u8>)>,
    pictures: Vec<Picture>,
}

fn encode_base(size: (u32, u32), sources: &[Picture]) -> BaseBlock {
    let frames = sources.len();
    let encoder = format!(
        "x264enc threads=1 speed-preset=veryfast key-int-max={frames} bframes=3 b-pyramid=true \
         pass=qual quantizer=30 vbv-buf-capacity=0 option-string=scenecut=0:min-keyint={frames} \
         ! video/x-h264,stream-format=avc,alignment=au"
    );
    let input = (0..).zip(sources).map(|(number, picture)| timed(laid_out(picture), number)).collect();
    let (caps, samples) = through(&encoder, &raw_caps(size), input);
    let config = caps.structure(0).unwrap().get::<gst::Buffer>("codec_data").unwrap();
    let avcc = config.map_readable().unwrap().to_vec();
    let samples: Vec<_> = samples.into_iter().map(|(time, data)| (frame_number(time), data)).collect();
    let coded = samples.iter().map(|(number, data)| timed(data.clone(), *number)).collect();
    let (_, decoded) = through(
        "h264parse ! avdec_h264 max-threads=1 ! videoconvert ! video/x-raw,format=I420",
        &caps,
        coded,
    );
    assert_eq!(decoded.len(), frames);
    let info = layout(size);
    let pictures = decoded.iter().map(|(_, data)| {
        let plane = |n: usize| (&data[info.offset()[n]..], info.stride()[n] as usize);
        Picture::from_planes(size.0, size.1, [plane(0), plane(1), plane(2)]).unwrap()
    });
    BaseBlock { avcc, samples, pictures: pictures.collect() }
}

/// The SPS and PPS in an `avcC` with one of each.
fn parameter_sets(avcc: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let unit = |at: usize| {
        let length = usize::from(avcc[at]) << 8 | usize::from(avcc[at + 1]);
        avcc[at + 2..at + 2 + length].to_vec()
    };
    let sps = unit(6);
    let pps = unit(6 + 2 + sps.len() + 1);
    (sps, pps)
}

/// A tone as AAC frames of 1,024 samples, and its `AudioSpecificConfig`.
fn encode_sound(seconds: f64) -> (Vec<u8>, Vec<Vec<u8>>) {
    let count = (seconds * f64::from(SAMPLE_RATE)) as usize;
    let tone = |n: usize| {
        let value =
            ((n as f64 * 440.0 * std::f64::consts::TAU / f64::from(SAMPLE_RATE)).sin() * 8_000.0) as i16;
        value.to_le_bytes()
    };
    let caps = gst::Caps::builder("audio/x-raw")
        .field("format", "S16LE")
        .field("layout", "interleaved")
        .field("rate", SAMPLE_RATE as i32)
        .field("channels", 1_i32)
        .build();
    let data: Vec<u8> = (0..count).flat_map(tone).collect();
    let (caps, frames) = through("audioconvert ! avenc_aac", &caps, vec![timed(data, 0)]);
    let config = caps.structure(0).unwrap().get::<gst::Buffer>("codec_data").unwrap();
    let config = config.map_readable().unwrap().to_vec();
    (config, frames.into_iter().map(|(_, data)| data).collect())
}

struct Block {
    base: BaseBlock,
    keys: Vec<Bytes>,
    /// `layers[frame][enhancement]`.
    layers: Vec<Vec<Bytes>>,
    quality_hashes: Vec<Hash>,
    half_hashes: Vec<Hash>,
}

fn encode_block(recipe: &Recipe, ladder: &Ladder, index: u64) -> Block {
    let numbers = index * recipe.frames..(index + 1) * recipe.frames;
    let sources: Vec<Picture> = numbers.map(|number| picture(recipe.size, number)).collect();
    let small: Vec<Picture> =
        sources.iter().map(|source| downscale_to_base(source, ladder).unwrap()).collect();
    let base = encode_base(ladder.size(0), &small);
    let quantizers: Vec<u8> = (0..ladder.enhancements()).map(|n| 40 - 10 * n as u8).collect();
    let make = if recipe.halves { LayerEncoder::with_halves } else { LayerEncoder::new };
    let mut encoder = make(ladder, Preset::Fast, &quantizers).unwrap();
    let mut by_half = vec![Hasher::new(); ladder.enhancements()];
    encoder.start_block().unwrap();
    let keys = encoder.keys();
    let mut hashers = vec![Hasher::new(); ladder.layers()];
    let mut layers = Vec::new();
    for (number, (source, base)) in sources.iter().zip(&base.pictures).enumerate() {
        let encoded = encoder.encode(source, base).unwrap();
        layers.push(encoded.layers);
        // Without the odd pictures of a layer they are those of the quality below.
        for (layer, hasher) in by_half.iter_mut().enumerate() {
            encoded.qualities[layer + 1 - number % 2].hash_into(hasher);
        }
        for (hasher, picture) in hashers.iter_mut().zip(&encoded.qualities) {
            picture.hash_into(hasher);
        }
    }
    let finish = |hashers: &[Hasher]| hashers.iter().map(Hasher::finish).collect();
    Block { base, keys, layers, quality_hashes: finish(&hashers), half_hashes: finish(&by_half) }
}

impl Title {
    pub fn make(recipe: &Recipe) -> Self {
        player::pipeline::init().unwrap();
        // What GLib calls critical is a mistake of ours: it ends the test.
        gst::glib::log_set_always_fatal(gst::glib::LogLevels::LEVEL_CRITICAL);
        let ladder = Ladder::new(recipe.size.0, recipe.size.1, recipe.factors).unwrap();
        let blocks: Vec<Block> =
            (0..recipe.blocks).map(|index| encode_block(recipe, &ladder, index)).collect();
        let seconds = (recipe.blocks * recipe.frames) as f64 / FPS as f64;
        let sound = (!recipe.sound.is_empty()).then(|| encode_sound(seconds));
        let mut manifest = manifest(recipe, &ladder, sound.as_ref());
        let (sps, pps) = parameter_sets(&blocks[0].base.avcc);
        for layer in 0..ladder.layers() {
            let info = manifest.layers[layer].clone();
            manifest.layers[layer].init = if layer == 0 {
                container::base_init(&manifest, &info, &sps, &pps).unwrap()
            } else {
                container::enhancement_init(&manifest, &info, &blocks[0].keys[layer - 1]).unwrap()
            };
        }
        let frames = sound.map(|(_, frames)| frames).unwrap_or_default();
        let mut chunks = Vec::new();
        for (index, block) in (0..).zip(&blocks) {
            let samples = samples(recipe, &ladder, index, block, &frames);
            let mut halves = Vec::new();
            let write = |(samples, layer): (&BlockSamples, &LayerInfo)| -> Bytes {
                if !layer.halves {
                    return container::write_chunk(index as u32, layer.delay, samples).unwrap().into();
                }
                let (bytes, length) = container::write_halves(index as u32, layer.delay, samples).unwrap();
                let (hash, pictures) = (Hash::of(&bytes[..length]), block.half_hashes[halves.len()]);
                halves.push(Half { length: length as u64, hash, pictures });
                bytes.into()
            };
            let bytes: Vec<Bytes> = samples.iter().zip(&manifest.layers).map(write).collect();
            manifest.blocks.push(BlockInfo {
                start: index * recipe.frames,
                duration: recipe.frames,
                frames: recipe.frames as u32,
                base_hash: hash(&block.base.pictures),
                quality_hashes: block.quality_hashes.clone(),
                chunks: bytes.iter().map(|bytes| chunk_info(index, bytes)).collect(),
                halves,
            });
            chunks.push(bytes);
        }
        manifest.check().unwrap();
        Self { manifest: Arc::new(manifest), chunks }
    }
}

fn chunk_info(index: u64, bytes: &Bytes) -> ChunkInfo {
    ChunkInfo { offset: 10_000_000 * index, length: bytes.len() as u64, hash: Hash::of(bytes) }
}

fn samples(
    recipe: &Recipe,
    ladder: &Ladder,
    index: u64,
    block: &Block,
    sound: &[Vec<u8>],
) -> Vec<BlockSamples> {
    let (start, end) = (index * recipe.frames, (index + 1) * recipe.frames);
    let mut all = vec![BlockSamples { start, end, ..BlockSamples::default() }; ladder.layers()];
    for (at, (number, data)) in block.base.samples.iter().enumerate() {
        let data = Bytes::from(data.clone());
        all[0].video.push(VideoSample { pts: start + number, duration: 1, sync: at == 0, data });
    }
    for (number, layers) in (0..).zip(&block.layers) {
        for (layer, data) in layers.iter().enumerate() {
            let sample =
                VideoSample { pts: start + number, duration: 1, sync: number == 0, data: data.clone() };
            all[layer + 1].video.push(sample);
        }
    }
    let ticks = |frame: u64| frame * u64::from(SAMPLE_RATE) / FPS;
    for (number, data) in (0..).zip(sound) {
        let pts = number * container::AAC_FRAME;
        if recipe.sound.contains(&index) && (ticks(start)..ticks(end)).contains(&pts) {
            let data = Bytes::from(data.clone());
            all[0].audio.push(AudioSample { pts, duration: container::AAC_FRAME, data });
        }
    }
    all
}

fn manifest(recipe: &Recipe, ladder: &Ladder, sound: Option<&(Vec<u8>, Vec<Vec<u8>>)>) -> Manifest {
    let layer = |(number, factor): (usize, &u8)| LayerInfo {
        factor: *factor,
        width: ladder.size(number).0,
        height: ladder.size(number).1,
        codec: if number == 0 { "avc1".into() } else { "lenh".into() },
        file: format!("layer{number}.mp4"),
        init: vec![0],
        delay: if number == 0 { 2 } else { 0 },
        sync_every: None,
        halves: recipe.halves && number > 0,
    };
    Manifest {
        version: media::manifest::MANIFEST_VERSION,
        title: "test".parse().unwrap(),
        width: recipe.size.0,
        height: recipe.size.1,
        frame_rate: Ratio { num: FPS as u32, den: 1 },
        timescale: FPS as u32,
        duration: recipe.blocks * recipe.frames,
        color: Color { full_range: false, primaries: 1, transfer: 1, matrix: 1 },
        pixel_aspect: Ratio { num: 1, den: 1 },
        class: media::TitleClass::Archived,
        made: Made {
            by: "test".into(),
            preset: "fast".into(),
            crf_centi: 3_000,
            quantizers: vec![30; ladder.enhancements()],
            block_ms: 400,
        },
        audio: sound.map(|(config, _)| Audio {
            codec: "mp4a.40.2".into(),
            sample_rate: SAMPLE_RATE,
            channels: 1,
            config: config.clone(),
        }),
        layers: recipe.factors.iter().enumerate().map(layer).collect(),
        blocks: Vec::new(),
    }
}
