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
    /// The scenes that begin with the pictures of the block.
    ahead: Vec<Option<Scene>>,
    /// Pictures of the block that [`encode`](Self::encode) has made.
    pictures: usize,
    started: bool,
}

#[derive(Debug)]
struct EncodedLayer {
    pattern: Pattern,
    quantizer: u8,
    key: Bytes,
    /// None only while it is replaced.
    encoder: Option<Encoder>,
    /// Whether the encoder has just coded its key frame and nothing else.
    fresh: bool,
    /// Whether the encoder is that of the block that was started.
    ready: bool,
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
        let layers: Vec<_> = (1..)
            .zip(quantizers)
            .take(ladder.enhancements())
            .map(|(layer, &quantizer)| {
                let pattern = preset.pattern(layer == ladder.enhancements(), halves);
                EncodedLayer::new(ladder, layer, pattern, quantizer)
            })
            .collect::<Result<_, _>>()?;
        let shown = (0..=layers.len()).map(|layer| Lift::display(ladder, layer)).collect::<Result<_, _>>()?;
        Ok(Self { ladder: ladder.clone(), layers, shown, ahead: Vec::new(), pictures: 0, started: false })
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
            layer.ready = false;
        }
        self.ahead = scene::look_ahead(pictures);
        if self.ahead.is_empty() {
            self.ahead.push(Some(Scene::UNKNOWN));
        }
        self.pictures = 0;
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
        self.started = false;
        let count = self.layers.len();
        let encoded = self.groups(count).0.encode(source, base)?;
        self.pictures += 1;
        self.started = true;
        Ok(encoded)
    }

    /// The lowest `count` enhancement layers and those above them, for two
    /// threads: what the lower group reconstructs of a picture is what the upper
    /// one encodes it over. Together they make the same bytes as [`encode`](Self::encode),
    /// of one block, the one that was started.
    pub fn split(&mut self, count: usize) -> Result<(LayerGroup<'_>, LayerGroup<'_>), CodecError> {
        if !std::mem::take(&mut self.started) {
            return Err(CodecError::NoBlock);
        }
        Ok(self.groups(count))
    }

    fn groups(&mut self, count: usize) -> (LayerGroup<'_>, LayerGroup<'_>) {
        let count = count.min(self.layers.len());
        let ladder = &self.ladder;
        // Each looks ahead by itself.
        let ahead = self.ahead.get(self.pictures..).unwrap_or_default().iter();
        let (lower, upper) = self.layers.split_at_mut(count);
        // The lower group also shows Base.
        let (shows, above) = self.shown.split_at_mut(count + 1);
        let lower = LayerGroup { ladder, first: 1, layers: lower, shown: shows, ahead: ahead.clone() };
        (lower, LayerGroup { ladder, first: count + 1, layers: upper, shown: above, ahead })
    }
}

/// Some layers of a [`LayerEncoder`]; see [`LayerEncoder::split`].
#[derive(Debug)]
pub struct LayerGroup<'a> {
    ladder: &'a Ladder,
    /// Number of the lowest layer of the group.
    first: usize,
    layers: &'a mut [EncodedLayer],
    /// One more than layers where the group begins at Base.
    shown: &'a mut [Lift],
    /// The scenes that begin with the pictures still to come.
    ahead: std::slice::Iter<'a, Option<Scene>>,
}

impl LayerGroup<'_> {
    /// Makes the encoders of the block. The first picture would do it too, but who
    /// waits for one from the group below has time for it.
    pub fn prepare(&mut self) -> Result<(), CodecError> {
        self.layers.iter_mut().try_for_each(EncodedLayer::refresh)
    }

    /// Encodes one picture over `below`: the decoded Base picture, or what the
    /// group below has reconstructed. The qualities are those that the group's
    /// layers add, with bronze if it is the lowest.
    ///
    /// After an error the block is unusable.
    pub fn encode(&mut self, source: &Picture, below: &Picture) -> Result<EncodedPicture, CodecError> {
        Ladder::check("the source", self.ladder.display(), source.size())?;
        let base = self.shown.len() > self.layers.len();
        if base {
            Ladder::check("the Base picture", self.ladder.size(0), below.size())?;
        }
        let mut encoded = EncodedPicture { layers: Vec::new(), qualities: Vec::new() };
        let mut shown = self.shown.iter_mut();
        let mut show = |view, encoded: &mut EncodedPicture| {
            let quality = shown.next().map(|lift| lift.run(view).to_picture()).transpose()?;
            encoded.qualities.extend(quality);
            Ok::<(), CodecError>(())
        };
        let scene = self.ahead.next().copied().flatten();
        let mut below = below.view();
        if base {
            show(below, &mut encoded)?;
        }
        for (number, layer) in (self.first..).zip(self.layers.iter_mut()) {
            let reduced = reduced(source, self.ladder, number)?;
            layer.source.copy_from(reduced.view());
            encoded.layers.push(layer.encode(below, scene)?);
            below = layer.reconstruction.view();
            show(below, &mut encoded)?;
        }
        Ok(encoded)
    }

    /// What the topmost layer of the group makes of the last picture; none if
    /// the group is empty.
    pub fn reconstruction(&self) -> Option<&Picture> {
        self.layers.last().map(|layer| &layer.reconstruction)
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
            encoder: Some(encoder),
            fresh: true,
            ready: false,
            prediction: Lift::prediction(ladder, layer)?,
            source: grey.clone(),
            reconstruction: grey,
        })
    }

    fn refresh(&mut self) -> Result<(), CodecError> {
        if !std::mem::replace(&mut self.ready, true) && !self.fresh {
            let (width, height) = self.source.size();
            // libvpx takes some hundred megabytes: not for two at once.
            self.encoder = None;
            let mut encoder = Encoder::new((width, height), self.pattern, self.quantizer)?;
            let key = encoder.encode_key(Picture::new(width, height)?.view())?;
            self.encoder = Some(encoder);
            if key != self.key {
                return Err(CodecError::KeyChanged);
            }
            self.fresh = true;
        }
        Ok(())
    }

    fn encode(&mut self, below: PictureRef<'_>, scene: Option<Scene>) -> Result<Bytes, CodecError> {
        self.refresh()?;
        self.fresh = false;
        let encoder = self.encoder.as_mut().ok_or(CodecError::NoBlock)?;
        let prediction = self.prediction.run(below);
        let data = encoder.encode_inter(self.source.view(), prediction, scene)?;
        self.reconstruction.copy_from(encoder.reconstruction()?);
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
