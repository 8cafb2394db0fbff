//! What is in a title, for people and scripts.

use crate::report::to_f64;
use media::Layer;
use media::library::TitleFolder;
use media::manifest::{Color, Made, Ratio};
use serde::Serialize;

/// All there is to say about a title without decoding it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Inspection {
    /// The title's name.
    pub title: String,
    /// Its folder.
    pub folder: String,
    /// Length of the programme in seconds.
    pub seconds: f64,
    /// Displayed width in pixels.
    pub width: u32,
    /// Displayed height in pixels.
    pub height: u32,
    /// Nominal pictures a second.
    pub frame_rate: Ratio,
    /// Width over height of one pixel.
    pub pixel_aspect: Ratio,
    /// Meaning of the samples.
    pub color: Color,
    /// By what admission tells it from others.
    pub class: media::TitleClass,
    /// How it was made.
    pub made: Made,
    /// Number of blocks.
    pub blocks: u32,
    /// Number of pictures.
    pub pictures: u64,
    /// Shortest and longest block in seconds.
    pub block_seconds: (f64, f64),
    /// The sound.
    pub audio: Option<AudioInspection>,
    /// The layers, Base first.
    pub layers: Vec<LayerInspection>,
    /// Rate of all layers in kbit/s.
    pub total_kbit_s: f64,
}

/// The sound of a title.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AudioInspection {
    /// RFC 6381 name.
    pub codec: String,
    /// Samples a second.
    pub sample_rate: u32,
    /// Number of channels.
    pub channels: u8,
}

/// One layer of a title.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LayerInspection {
    /// `base`, `enh1` and so on.
    pub layer: String,
    /// RFC 6381 name, or `lenh`.
    pub codec: String,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// Whether its file is in the folder.
    pub kept: bool,
    /// Bytes of all its chunks.
    pub bytes: u64,
    /// Mean rate in kbit/s.
    pub kbit_s: f64,
    /// Mean rate of its first halves in kbit/s, if it comes in halves.
    pub half_kbit_s: Option<f64>,
    /// Rate of its largest block in kbit/s.
    pub peak_kbit_s: f64,
}

/// Describes a title.
pub fn inspect(title: &TitleFolder) -> Inspection {
    let manifest = title.manifest();
    let seconds = manifest.span().as_secs_f64();
    let lengths = || manifest.blocks.iter().map(|block| manifest.at(block.duration).as_secs_f64());
    let kbit_s = |bytes: u64, seconds: f64| to_f64(bytes) * 8.0 / 1_000.0 / seconds.max(1e-9);
    let layer = |(layer, info): (Layer, &media::LayerInfo)| {
        let chunks = || manifest.blocks.iter().filter_map(move |block| block.chunks.get(layer.index()));
        let bytes = chunks().map(|chunk| chunk.length).sum();
        let peak = chunks().zip(lengths()).map(|(chunk, seconds)| kbit_s(chunk.length, seconds));
        let halves =
            manifest.blocks.iter().filter_map(|block| block.halves.get(layer.index().checked_sub(1)?));
        let half_bytes: u64 = halves.map(|half| half.length).sum();
        LayerInspection {
            half_kbit_s: info.halves.then(|| kbit_s(half_bytes, seconds)),
            layer: layer.to_string(),
            codec: info.codec.clone(),
            width: info.width,
            height: info.height,
            kept: title.has(layer),
            bytes,
            kbit_s: kbit_s(bytes, seconds),
            peak_kbit_s: peak.fold(0.0, f64::max),
        }
    };
    let layers: Vec<LayerInspection> = (0..).map(Layer).zip(&manifest.layers).map(layer).collect();
    Inspection {
        title: manifest.title.to_string(),
        folder: title.path().display().to_string(),
        seconds,
        width: manifest.width,
        height: manifest.height,
        frame_rate: manifest.frame_rate,
        pixel_aspect: manifest.pixel_aspect,
        color: manifest.color,
        class: manifest.class,
        made: manifest.made.clone(),
        blocks: manifest.block_count(),
        pictures: manifest.blocks.iter().map(|block| u64::from(block.frames)).sum(),
        block_seconds: lengths().fold((f64::INFINITY, 0.0), |(low, high), s| (low.min(s), high.max(s))),
        audio: manifest.audio.as_ref().map(|audio| AudioInspection {
            codec: audio.codec.clone(),
            sample_rate: audio.sample_rate,
            channels: audio.channels,
        }),
        total_kbit_s: layers.iter().map(|layer| layer.kbit_s).sum(),
        layers,
    }
}
