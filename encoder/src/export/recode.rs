//! A block of silver or gold, recombined and encoded as H.264.

use super::chunk;
use crate::base::{self, BaseFormat};
use crate::error::EncodeError;
use crate::frame::Look;
use crate::nal;
use bytes::Bytes;
use codec::{Ladder, LayerDecoder, Picture, downscale_to_base};
use gstreamer_video as gst_video;
use media::container::{
    BlockSamples, ContainerError, VideoSample, avc_config, base_init, enhancement_key, parse_chunk,
    write_chunk,
};
use media::library::TitleFolder;
use media::manifest::Manifest;
use media::{Layer, LayerInfo, Quality};

/// What all blocks of an export share.
pub(super) struct Recoder<'a> {
    title: &'a TitleFolder,
    layers: usize,
    ladder: Ladder,
    /// One layer at the displayed size, sides rounded up to even.
    whole: Ladder,
    format: BaseFormat,
    config: &'a [u8],
    keys: Vec<Bytes>,
}

/// A block as it is written.
pub(super) struct Recoded {
    pub(super) config: Vec<u8>,
    pub(super) start: u64,
    pub(super) chunk: Vec<u8>,
}

impl<'a> Recoder<'a> {
    pub(super) fn new(title: &'a TitleFolder, quality: Quality, crf: u32) -> Result<Self, EncodeError> {
        let manifest = title.manifest();
        let factors: Vec<u8> = manifest.layers.iter().map(|layer| layer.factor).collect();
        let base = manifest.layers.first().ok_or(ContainerError::Missing("moov"))?;
        let enhancements = manifest.layers.iter().skip(1);
        let keys = enhancements.map(|layer| enhancement_key(&layer.init).map(Bytes::copy_from_slice));
        let whole = Ladder::new(manifest.width, manifest.height, &[1])?;
        let rate = (manifest.frame_rate.num, manifest.frame_rate.den);
        let format = BaseFormat { size: whole.size(0), rate, look: look(manifest), crf, effort: "medium" };
        Ok(Self {
            title,
            layers: usize::from(quality.layers()),
            ladder: Ladder::new(manifest.width, manifest.height, &factors)?,
            whole,
            format,
            config: avc_config(&base.init)?,
            keys: keys.collect::<Result<_, _>>()?,
        })
    }

    /// Ticks by which composition times run late.
    pub(super) fn delay(&self) -> u32 {
        self.title.manifest().layers.first().map_or(0, |base| base.delay)
    }

    /// The init segment of the file whose blocks have this configuration.
    pub(super) fn init(&self, config: &[u8]) -> Result<Vec<u8>, EncodeError> {
        let manifest = self.title.manifest();
        let Some(base) = manifest.layers.first() else { return Err(EncodeError::Empty) };
        let (width, height) = self.whole.size(0);
        let layer = LayerInfo { factor: 1, width, height, ..base.clone() };
        let (sps, pps) = nal::parameter_sets(config).ok_or(ContainerError::Missing("avcC"))?;
        Ok(base_init(manifest, &layer, &sps, &pps)?)
    }

    /// Recombines a block and encodes it, with its sound as it is.
    pub(super) fn block(&self, block: u32) -> Result<Recoded, EncodeError> {
        let manifest = self.title.manifest();
        let mut layers = Vec::with_capacity(self.layers);
        for (layer, info) in (0..).map(Layer).zip(&manifest.layers).take(self.layers) {
            layers.push(parse_chunk(&chunk(self.title, block, layer)?, info.delay)?);
        }
        let mut layers = layers.into_iter();
        let Some(base) = layers.next() else { return Err(EncodeError::Empty) };
        let pictures = self.recombined(&base, layers.as_slice())?;
        let coded = base::encode(&self.format, pictures)?;
        let mut times: Vec<u64> = base.video.iter().map(|sample| sample.pts).collect();
        times.sort_unstable();
        let sample = |(index, data): (usize, Bytes)| {
            let pts = times.get(index).copied()?;
            let until = times.get(index + 1).copied().unwrap_or(base.end);
            Some(VideoSample { pts, duration: until.saturating_sub(pts), sync: index == 0, data })
        };
        let video = coded.samples.into_iter().filter_map(sample).collect();
        let samples = BlockSamples { start: base.start, end: base.end, video, audio: base.audio };
        let chunk = write_chunk(block, self.delay(), &samples)?;
        Ok(Recoded { config: coded.config, start: base.start, chunk })
    }

    /// The pictures of a block in display order, at the size that is encoded.
    fn recombined(&self, base: &BlockSamples, above: &[BlockSamples]) -> Result<Vec<Picture>, EncodeError> {
        let size = self.ladder.size(0);
        let decoded = base::decode(self.config, size, crate::verify::ranked(base))?;
        let mut decoder = LayerDecoder::new(&self.ladder, &self.keys)?;
        decoder.start_block(above.len())?;
        let mut pictures = Vec::with_capacity(decoded.len());
        for (index, picture) in decoded.iter().enumerate() {
            let frames: Vec<Option<&[u8]>> =
                above.iter().map(|layer| layer.video.get(index).map(|sample| &sample.data[..])).collect();
            let shown = decoder.decode(picture, &frames)?;
            if shown.layers != above.len() + 1 {
                return Err(EncodeError::Damaged(format!("picture {index} of a block does not decode")));
            }
            pictures.push(downscale_to_base(shown.picture, &self.whole)?);
        }
        Ok(pictures)
    }
}

/// Colours and pixel shape as the manifest has them.
fn look(manifest: &Manifest) -> Look {
    let color = manifest.color;
    let range = if color.full_range {
        gst_video::VideoColorRange::Range0_255
    } else {
        gst_video::VideoColorRange::Range16_235
    };
    let colorimetry = gst_video::VideoColorimetry::new(
        range,
        gst_video::VideoColorMatrix::from_iso(color.matrix.into()),
        gst_video::VideoTransferFunction::from_iso(color.transfer.into()),
        gst_video::VideoColorPrimaries::from_iso(color.primaries.into()),
    );
    Look { colorimetry, pixel_aspect: (manifest.pixel_aspect.num, manifest.pixel_aspect.den) }
}
