//! Any prefix of the layers of a block, back to pictures.

use crate::error::CodecError;
use crate::ladder::Ladder;
use crate::lift::Lift;
use crate::picture::Picture;
use crate::vpx::Decoder;
use bytes::Bytes;

/// Decodes the enhancement layers on top of decoded Base pictures.
///
/// A layer whose frame is missing or damaged is left out, with all above it,
/// until the next block: a VP9 frame is never decoded without the frame before
/// it, which libvpx would turn into garbage without an error. Until then the
/// output is exactly the lower quality.
#[derive(Debug)]
pub struct LayerDecoder {
    ladder: Ladder,
    layers: Vec<DecodedLayer>,
    /// What each quality shows, Base first.
    shown: Vec<Lift>,
    output: Picture,
    /// Enhancement layers still whole in this block.
    open: usize,
    /// Whether the layers were coded in halves.
    halves: bool,
    /// Pictures decoded in this block.
    pictures: u32,
}

#[derive(Debug)]
struct DecodedLayer {
    key: Bytes,
    /// None after a failure, until the next block needs it.
    decoder: Option<Decoder>,
    prediction: Lift,
}

/// One combined picture.
#[derive(Debug)]
pub struct DecodedPicture<'a> {
    /// Layers it was made of, Base included: 1 is bronze, 2 silver, 3 gold.
    pub layers: usize,
    /// The picture at display size, valid until the next call.
    pub picture: &'a Picture,
    /// Why a layer was dropped at this picture though its frame was there.
    pub failure: Option<CodecError>,
}

impl LayerDecoder {
    /// A decoder for a ladder, with the grey key frame of each enhancement
    /// layer ([`LayerEncoder::keys`](crate::LayerEncoder::keys)).
    pub fn new(ladder: &Ladder, keys: &[Bytes]) -> Result<Self, CodecError> {
        if keys.len() != ladder.enhancements() {
            return Err(CodecError::LayerCount {
                what: "key frames",
                expected: ladder.enhancements(),
                found: keys.len(),
            });
        }
        let layer = |(layer, key): (usize, &Bytes)| {
            let mut decoder = Decoder::new(ladder.coded_size(layer))?;
            decoder.decode_key(key)?;
            let prediction = Lift::prediction(ladder, layer)?;
            Ok(DecodedLayer { key: key.clone(), decoder: Some(decoder), prediction })
        };
        let layers = (1..).zip(keys).map(layer).collect::<Result<_, CodecError>>()?;
        let shown =
            (0..ladder.layers()).map(|layer| Lift::display(ladder, layer)).collect::<Result<_, _>>()?;
        let (width, height) = ladder.display();
        let output = Picture::new(width, height)?;
        Ok(Self { ladder: ladder.clone(), layers, shown, output, open: 0, halves: false, pictures: 0 })
    }

    /// The same for layers that were coded in halves
    /// ([`LayerEncoder::with_halves`](crate::LayerEncoder::with_halves)): an odd
    /// picture of a block that is not at hand costs nothing but itself.
    pub fn with_halves(ladder: &Ladder, keys: &[Bytes]) -> Result<Self, CodecError> {
        Ok(Self { halves: true, ..Self::new(ladder, keys)? })
    }

    /// Starts a block of which the lowest `enhancements` layers above Base are
    /// at hand (more than there are counts as all).
    pub fn start_block(&mut self, enhancements: usize) -> Result<(), CodecError> {
        self.open = 0;
        for (number, layer) in (1..).zip(self.layers.iter_mut().take(enhancements)) {
            layer.start(self.ladder.coded_size(number))?;
        }
        self.open = enhancements.min(self.layers.len());
        self.pictures = 0;
        Ok(())
    }

    /// Combines one picture: the decoded Base picture and one VP9 frame per
    /// enhancement layer, lowest first, as far as they are at hand.
    ///
    /// Errors only on a Base picture of the wrong size; what is wrong with an
    /// enhancement layer costs that layer, not the picture.
    pub fn decode(
        &mut self,
        base: &Picture,
        enhancements: &[Option<&[u8]>],
    ) -> Result<DecodedPicture<'_>, CodecError> {
        Ladder::check("the Base picture", self.ladder.size(0), base.size())?;
        let present = enhancements.iter().map_while(|frame| *frame);
        let mut failure = None;
        let mut current = base.view();
        let mut used = 0;
        for (layer, frame) in self.layers.iter_mut().take(self.open).zip(present) {
            let DecodedLayer { decoder, prediction, .. } = layer;
            let Some(decoder) = decoder else { break };
            match decoder.decode_inter(prediction.run(current), frame) {
                Ok(picture) => current = picture,
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
            used += 1;
        }
        if let Some(lift) = self.shown.get_mut(used) {
            self.output.copy_from(lift.run(current));
        }
        if failure.is_some() {
            // libvpx wants a resynchronisation after an error: begin anew.
            if let Some(layer) = self.layers.get_mut(used) {
                layer.decoder = None;
            }
        }
        let droppable = self.halves && self.pictures % 2 == 1;
        if failure.is_some() || !droppable {
            self.open = used;
        }
        self.pictures = self.pictures.wrapping_add(1);
        Ok(DecodedPicture { layers: used + 1, picture: &self.output, failure })
    }
}

impl DecodedLayer {
    fn start(&mut self, size: (u32, u32)) -> Result<(), CodecError> {
        let mut decoder = match self.decoder.take() {
            Some(decoder) => decoder,
            None => Decoder::new(size)?,
        };
        decoder.decode_key(&self.key)?;
        self.decoder = Some(decoder);
        Ok(())
    }
}
