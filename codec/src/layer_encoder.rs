//! All enhancement layers of one block, from source and Base pictures.

use crate::error::CodecError;
use crate::ladder::Ladder;
use crate::lift::Lift;
use crate::picture::{Picture, PictureRef};
use crate::scale;
use crate::scene::{self, Scene};
use crate::settings::Preset;
use crate::vpx::{Encoder, Pattern};
use bytes::Bytes;

/// Encodes the enhancement layers, block by block.
///
/// Each block starts with fresh VP9 encoders, so its bytes depend on its
/// pictures alone: blocks can be made in any order, on any machine, in
/// parallel (one `LayerEncoder` each), and come out bit-identical.
#[derive(Debug)]
pub struct LayerEncoder {
    ladder: Ladder,
    layers: Vec<EncodedLayer>,
    /// What each quality shows, Base first.
    shown: Vec<Lift>,
    /// The scenes that begin with the pictures still to come.
    ahead: std::vec::IntoIter<Option<Scene>>,
    started: bool,
}

#[derive(Debug)]
struct EncodedLayer {
    pattern: Pattern,
    quantizer: u8,
    key: Bytes,
    encoder: Encoder,
    /// Whether the encoder has just coded its key frame and nothing else.
    fresh: bool,
    prediction: Lift,
    source: Picture,
    reconstruction: Picture,
}

/// What the encoder made of one picture.
#[derive(Debug, Clone)]
pub struct EncodedPicture {
    /// One VP9 frame per enhancement layer, lowest first.
    pub layers: Vec<Bytes>,
    /// What a player shows with 1, 2, ... layers, at display size: bronze
    /// (Base scaled up) first.
    pub qualities: Vec<Picture>,
}

impl LayerEncoder {
    /// An encoder for a ladder, with one VP9 quantizer (0..=63, lower is
    /// finer) per enhancement layer.
    pub fn new(ladder: &Ladder, preset: Preset, quantizers: &[u8]) -> Result<Self, CodecError> {
        Self::with(ladder, preset, quantizers, false)
    }

    /// The same, in *halves*: nothing in a layer refers to its odd pictures, so
    /// that a decoder can do without them where the layer is the topmost one
    /// ([`LayerDecoder::with_halves`](crate::LayerDecoder::with_halves)).
    pub fn with_halves(ladder: &Ladder, preset: Preset, quantizers: &[u8]) -> Result<Self, CodecError> {
        Self::with(ladder, preset, quantizers, true)
    }

    fn with(ladder: &Ladder, preset: Preset, quantizers: &[u8], halves: bool) -> Result<Self, CodecError> {
        if quantizers.len() != ladder.enhancements() {
            return Err(CodecError::LayerCount {
                what: "quantizers",
                expected: ladder.enhancements(),
                found: quantizers.len(),
            });
        }
        Self::lowest(ladder, preset, quantizers, halves)
    }

    /// An encoder of only the lowest enhancements, as many as there are
    /// quantizers, each as if those above were made too; `halves` as in
    /// [`with_halves`](Self::with_halves).
    pub fn lowest(
        ladder: &Ladder,
        preset: Preset,
        quantizers: &[u8],
        halves: bool,
    ) -> Result<Self, CodecError> {
        let layers = (1..)
            .zip(quantizers)
            .take(ladder.enhancements())
            .map(|(layer, &quantizer)| {
                let pattern = preset.pattern(layer == ladder.enhancements(), halves);
                EncodedLayer::new(ladder, layer, pattern, quantizer)
            })
            .collect::<Result<_, _>>()?;
        let shown =
            (0..ladder.layers()).map(|layer| Lift::display(ladder, layer)).collect::<Result<_, _>>()?;
        let ahead = Vec::new().into_iter();
        Ok(Self { ladder: ladder.clone(), layers, shown, ahead, started: false })
    }

    /// The grey key frame of each enhancement layer: the same in every block,
    /// so a title stores it once and a decoder is built with it.
    pub fn keys(&self) -> Vec<Bytes> {
        self.layers.iter().map(|layer| layer.key.clone()).collect()
    }

    /// Starts a block. What was encoded before has no influence on it.
    pub fn start_block(&mut self) -> Result<(), CodecError> {
        self.start_block_of(std::iter::empty())
    }

    /// The same for a block whose pictures are known: it is looked where scenes
    /// begin inside it, since how fine a scene's first picture is coded depends
    /// on how much builds on it.
    pub fn start_block_of<'a>(
        &mut self,
        pictures: impl Iterator<Item = &'a Picture>,
    ) -> Result<(), CodecError> {
        for layer in &mut self.layers {
            layer.refresh()?;
        }
        let mut ahead = scene::look_ahead(pictures);
        if ahead.is_empty() {
            ahead.push(Some(Scene::UNKNOWN));
        }
        self.ahead = ahead.into_iter();
        self.started = true;
        Ok(())
    }

    /// Encodes one picture. `source` has the display's size; `base` is the
    /// decoded Base picture at the size the ladder gives it, cropped as its
    /// H.264 stream says.
    ///
    /// After an error the block is unusable: start it anew.
    pub fn encode(&mut self, source: &Picture, base: &Picture) -> Result<EncodedPicture, CodecError> {
        if !self.started {
            return Err(CodecError::NoBlock);
        }
        Ladder::check("the source", self.ladder.display(), source.size())?;
        Ladder::check("the Base picture", self.ladder.size(0), base.size())?;
        self.started = false;
        let mut encoded = EncodedPicture { layers: Vec::new(), qualities: Vec::new() };
        let mut shown = self.shown.iter_mut();
        let mut show = |view, encoded: &mut EncodedPicture| {
            let quality = shown.next().map(|lift| lift.run(view).to_picture()).transpose()?;
            encoded.qualities.extend(quality);
            Ok::<(), CodecError>(())
        };
        let scene = self.ahead.next().flatten();
        let mut below = base.view();
        show(below, &mut encoded)?;
        for (number, layer) in (1..).zip(&mut self.layers) {
            let reduced = reduced(source, &self.ladder, number)?;
            layer.source.copy_from(reduced.view());
            encoded.layers.push(layer.encode(below, scene)?);
            below = layer.reconstruction.view();
            show(below, &mut encoded)?;
        }
        self.started = true;
        Ok(encoded)
    }
}

impl EncodedLayer {
    fn new(ladder: &Ladder, layer: usize, pattern: Pattern, quantizer: u8) -> Result<Self, CodecError> {
        let (width, height) = ladder.coded_size(layer);
        let grey = Picture::new(width, height)?;
        let mut encoder = Encoder::new(grey.size(), pattern, quantizer)?;
        Ok(Self {
            pattern,
            quantizer,
            key: encoder.encode_key(grey.view())?,
            encoder,
            fresh: true,
            prediction: Lift::prediction(ladder, layer)?,
            source: grey.clone(),
            reconstruction: grey,
        })
    }

    fn refresh(&mut self) -> Result<(), CodecError> {
        if !self.fresh {
            let (width, height) = self.source.size();
            self.encoder = Encoder::new((width, height), self.pattern, self.quantizer)?;
            let key = self.encoder.encode_key(Picture::new(width, height)?.view())?;
            if key != self.key {
                return Err(CodecError::KeyChanged);
            }
            self.fresh = true;
        }
        Ok(())
    }

    fn encode(&mut self, below: PictureRef<'_>, scene: Option<Scene>) -> Result<Bytes, CodecError> {
        self.fresh = false;
        let prediction = self.prediction.run(below);
        let data = self.encoder.encode_inter(self.source.view(), prediction, scene)?;
        self.reconstruction.copy_from(self.encoder.reconstruction()?);
        Ok(data)
    }
}

/// The source at a layer's size.
fn reduced(source: &Picture, ladder: &Ladder, layer: usize) -> Result<Picture, CodecError> {
    let (width, height) = ladder.size_at(1);
    let mut picture = source.resized_canvas(width, height)?;
    let mut factor = 1;
    while factor < ladder.factor(layer) {
        factor *= 2;
        let (width, height) = ladder.size_at(factor);
        picture = scale::down(&picture)?;
        if picture.size() != (width, height) {
            picture = picture.resized_canvas(width, height)?;
        }
    }
    Ok(picture)
}

/// The source at the size of Base: what the Base encoder is fed.
pub fn downscale_to_base(source: &Picture, ladder: &Ladder) -> Result<Picture, CodecError> {
    Ladder::check("the source", ladder.display(), source.size())?;
    reduced(source, ladder, 0)
}
