//! A stored title back to pictures, at every quality: Base by a stock demuxer
//! and decoder (`GStreamer`'s `qtdemux` and `avdec_h264`) that are given the
//! chunks as they lie on disk, the rest by [`codec::LayerDecoder`].

use bytes::Bytes;
use codec::{CodecError, Ladder, LadderError, LayerDecoder, Picture};
use gstreamer as gst;
use gstreamer::prelude::*;
use media::container::{self, ContainerError};
use media::library::{LibraryError, TitleFolder};
use media::{ChunkError, Layer, Quality};
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;

/// How long the decoder may take over a block.
const DEADLINE: gst::ClockTime = gst::ClockTime::from_seconds(60);

/// One picture of a title at every quality that its stored layers give.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tiers {
    /// When it is displayed, in ticks of the title.
    pub pts: u64,
    /// The decoded Base picture at its own size.
    pub base: Picture,
    /// The picture as shown, at display size, bronze first.
    pub qualities: Vec<Picture>,
}

/// A title cannot be brought back to pictures. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum StoredError {
    /// A chunk cannot be read.
    #[error("the title cannot be read")]
    Library(#[from] LibraryError),
    /// A chunk is not what the manifest says.
    #[error("the title is damaged")]
    Chunk(#[from] ChunkError),
    /// A chunk or init segment has another form.
    #[error("the title's container cannot be read")]
    Container(#[from] ContainerError),
    /// The manifest's sizes make no ladder.
    #[error("the title's layers have impossible sizes")]
    Ladder(#[from] LadderError),
    /// The layers do not decode.
    #[error("the title's layers cannot be decoded")]
    Codec(#[from] CodecError),
    /// Base does not decode.
    #[error("the title's Base layer cannot be decoded: {0}")]
    Base(String),
    /// The temporary file for the decoder failed.
    #[error("a temporary file failed")]
    Temporary(#[from] std::io::Error),
    /// A picture that is missing in some layer.
    #[error("block {block}: picture {picture} is missing at {quality}")]
    Missing {
        /// The block.
        block: u32,
        /// The picture within the block, from 0.
        picture: usize,
        /// The quality it is missing at.
        quality: Quality,
    },
}

/// Decodes one block and gives its pictures in display order to `each`.
pub fn decode_block<E: From<StoredError>>(
    title: &TitleFolder,
    block: u32,
    mut each: impl FnMut(Tiers) -> Result<(), E>,
) -> Result<(), E> {
    let mut decoders = Decoders::new(title)?;
    let samples = Samples::read(title, block)?;
    decoders.start().map_err(StoredError::from)?;
    let mut bases = Bases::decode(title, block, decoders.ladder.size(0))?;
    for (picture, &pts) in samples.pts.iter().enumerate() {
        let missing = || StoredError::Missing { block, picture, quality: Quality::BRONZE };
        let base = bases.picture()?.ok_or_else(missing)?;
        let frames: Vec<Option<&[u8]>> =
            samples.enhancements.iter().map(|layer| layer.get(picture).map(Bytes::as_ref)).collect();
        let qualities = decoders.decode(&base, &frames, block, picture)?;
        each(Tiers { pts, base, qualities })?;
    }
    Ok(())
}

/// The picture that is on screen `ticks` after the title's start, at every
/// quality; the last one after the end.
pub fn picture_at(title: &TitleFolder, ticks: u64) -> Result<Tiers, StoredError> {
    let manifest = title.manifest();
    let block = manifest.block_at(manifest.at(ticks));
    let mut found = None;
    decode_block(title, block, |tiers| {
        if found.is_none() || tiers.pts <= ticks {
            found = Some(tiers);
        }
        Ok::<(), StoredError>(())
    })?;
    found.ok_or(StoredError::Missing { block, picture: 0, quality: Quality::BRONZE })
}

/// The layers without a gap that are kept here, Base first.
fn whole_layers(title: &TitleFolder) -> impl Iterator<Item = Layer> {
    Layer::first(title.manifest().top_quality().layers()).take_while(|layer| title.has(*layer))
}

/// Coded pictures of the enhancements of one block.
struct Samples {
    /// Times of the pictures in display order.
    pts: Vec<u64>,
    /// VP9 frames per enhancement, in display order.
    enhancements: Vec<Vec<Bytes>>,
}

impl Samples {
    fn read(title: &TitleFolder, block: u32) -> Result<Self, StoredError> {
        let mut layers = Vec::new();
        let mut pts = Vec::new();
        for layer in whole_layers(title) {
            let chunk = title.verified(block, layer, title.read_chunk(block, layer)?)?;
            let delay = title.manifest().layers.get(layer.index()).map_or(0, |info| info.delay);
            let mut video = container::parse_chunk(chunk.bytes(), delay)?.video;
            video.sort_by_key(|sample| sample.pts);
            if layer == Layer::BASE {
                pts = video.iter().map(|sample| sample.pts).collect();
            } else {
                layers.push(video.into_iter().map(|sample| sample.data).collect());
            }
        }
        Ok(Self { pts, enhancements: layers })
    }
}

/// One decoder per quality.
struct Decoders {
    ladder: Ladder,
    qualities: Vec<LayerDecoder>,
}

impl Decoders {
    fn new(title: &TitleFolder) -> Result<Self, StoredError> {
        let manifest = title.manifest();
        let factors: Vec<u8> = manifest.layers.iter().map(|layer| layer.factor).collect();
        let ladder = Ladder::new(manifest.width, manifest.height, &factors)?;
        let keys = manifest.layers.iter().skip(1);
        let keys = keys.map(|layer| container::enhancement_key(&layer.init).map(Bytes::copy_from_slice));
        let keys: Vec<Bytes> = keys.collect::<Result<_, _>>()?;
        let decoders = whole_layers(title).map(|_| LayerDecoder::new(&ladder, &keys));
        Ok(Self { qualities: decoders.collect::<Result<_, _>>()?, ladder })
    }

    fn start(&mut self) -> Result<(), CodecError> {
        self.qualities.iter_mut().enumerate().try_for_each(|(above, decoder)| decoder.start_block(above))
    }

    fn decode(
        &mut self,
        base: &Picture,
        frames: &[Option<&[u8]>],
        block: u32,
        picture: usize,
    ) -> Result<Vec<Picture>, StoredError> {
        let decode = |(layers, decoder): (usize, &mut LayerDecoder)| {
            let decoded = decoder.decode(base, frames)?;
            if decoded.layers != layers {
                let quality = Quality(u8::try_from(layers).unwrap_or(u8::MAX));
                return Err(StoredError::Missing { block, picture, quality });
            }
            Ok(decoded.picture.clone())
        };
        (1..).zip(&mut self.qualities).map(decode).collect()
    }
}

/// The decoded Base pictures of a block.
struct Bases {
    pictures: BufReader<File>,
    size: (u32, u32),
}

impl Bases {
    /// Gives the init segment and the one chunk to a stock demuxer as a file.
    fn decode(title: &TitleFolder, block: u32, size: (u32, u32)) -> Result<Self, StoredError> {
        let folder = tempfile::Builder::new().prefix("lamina-block-").tempdir()?;
        let (coded, decoded) = (folder.path().join("base.mp4"), folder.path().join("base.yuv"));
        let mut file = File::create(&coded)?;
        if let Some(layer) = title.manifest().layers.first() {
            file.write_all(&layer.init)?;
        }
        file.write_all(&title.read_chunk(block, Layer::BASE)?)?;
        drop(file);
        run_decoder(&coded, &decoded)?;
        // The file lives on, nameless, as long as it is open.
        Ok(Self { pictures: BufReader::with_capacity(1 << 20, File::open(&decoded)?), size })
    }

    /// The next picture, out of `GStreamer`'s plain I420: rows of a multiple of
    /// four bytes.
    fn picture(&mut self) -> Result<Option<Picture>, StoredError> {
        if self.pictures.fill_buf()?.is_empty() {
            return Ok(None);
        }
        let mut picture = Picture::new(self.size.0, self.size.1)?;
        for plane in picture.planes_mut() {
            let padding = i64::try_from(plane.width.next_multiple_of(4) - plane.width).unwrap_or(0);
            for row in plane.data.chunks_exact_mut(plane.width) {
                self.pictures.read_exact(row)?;
                self.pictures.seek_relative(padding)?;
            }
        }
        Ok(Some(picture))
    }
}

fn run_decoder(coded: &Path, decoded: &Path) -> Result<(), StoredError> {
    let failed = |error: &dyn std::fmt::Display| StoredError::Base(error.to_string());
    gst::init().map_err(|error| failed(&error))?;
    let line = "filesrc name=coded ! qtdemux ! h264parse ! avdec_h264 max-threads=1 \
                ! video/x-raw,format=I420 ! filesink name=decoded sync=false";
    let pipeline = gst::parse::launch(line).map_err(|error| failed(&error))?;
    let bin = pipeline.downcast_ref::<gst::Bin>();
    for (name, path) in [("coded", coded), ("decoded", decoded)] {
        let element = bin.and_then(|bin| bin.by_name(name)).ok_or_else(|| failed(&"no such element"))?;
        element.set_property("location", path.to_string_lossy().as_ref());
    }
    let ended = play_to_end(&pipeline);
    pipeline.set_state(gst::State::Null).map_err(|error| failed(&error))?;
    ended.map_err(StoredError::Base)
}

fn play_to_end(pipeline: &gst::Element) -> Result<(), String> {
    let bus = pipeline.bus().ok_or("it has no bus")?;
    pipeline.set_state(gst::State::Playing).map_err(|error| error.to_string())?;
    let ends = [gst::MessageType::Eos, gst::MessageType::Error];
    match bus.timed_pop_filtered(DEADLINE, &ends).as_ref().map(|message| message.view()) {
        Some(gst::MessageView::Error(error)) => Err(error.error().to_string()),
        Some(_) => Ok(()),
        None => Err(format!("it was not done after {DEADLINE}")),
    }
}

#[cfg(test)]
mod tests;
