//! Base: one block through a fresh x264, and back through the decoder that
//! players use.

use crate::drive::{Driven, ElementError, make};
use crate::frame::{self, Look};
use crate::nal;
use bytes::Bytes;
use codec::{Picture, Preset};
use gstreamer as gst;
use gstreamer::prelude::*;
use gstreamer_video as gst_video;

/// A key frame interval that no block reaches. It is the same for every block,
/// because x264 writes some of it into the SPS.
const NO_KEY_FRAME: u32 = 10_000;
/// Longest display delay of pictures, in pictures: x264 with three B-frames in
/// a pyramid.
pub(crate) const REORDER: u32 = 2;
/// Objective quality, one closed group of pictures, nothing that depends on a
/// rate buffer.
const OPTIONS: &str = "psy=0:aq-mode=0:scenecut=40:bframes=3:b-pyramid=normal:open-gop=0:force-cfr=1";

/// The instruction sets that x264 may use. Its AVX-512 code (build 164) reads
/// memory that it has not written when it weighs how far pictures are
/// referenced, so that the same pictures give other bytes from one run to the
/// next; the code for AVX2 does not, and is nearly as fast. Where there is no
/// AVX-512 x264 may choose.
fn instructions() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") {
        return ":asm=MMX2,SSE,SSE2,SSE3,SSSE3,SSE4,SSE4.2,AVX,FMA3,AVX2,LZCNT,BMI1,BMI2";
    }
    ""
}

/// How Base is coded; the same for all blocks of a title.
#[derive(Debug, Clone)]
pub(crate) struct BaseFormat {
    /// Size of Base in pixels.
    pub(crate) size: (u32, u32),
    /// Nominal pictures a second.
    pub(crate) rate: (u32, u32),
    /// Colours and pixel shape.
    pub(crate) look: Look,
    /// Constant rate factor of x264.
    pub(crate) crf: u32,
    /// x264's preset: see [`effort`].
    pub(crate) effort: &'static str,
}

/// How hard x264 searches. Base is small and all layers build on it: where the
/// enhancements take ten times as long, a slower search costs next to nothing. To
/// `fast` it would be dear.
pub(crate) fn effort(preset: Preset) -> &'static str {
    match preset {
        Preset::Fast => "medium",
        Preset::Default => "slow",
        Preset::Best => "slower",
    }
}

/// One block of Base.
#[derive(Debug)]
pub(crate) struct BaseBlock {
    /// `AVCDecoderConfigurationRecord`.
    pub(crate) config: Vec<u8>,
    /// Access units in decoding order: index of the picture in display order,
    /// and its slices.
    pub(crate) samples: Vec<(usize, Bytes)>,
}

fn failed(element: &'static str, why: &str) -> ElementError {
    ElementError::Failed { element, why: why.to_owned() }
}

/// Encodes the pictures of one block, all of Base's size. The same pictures
/// give the same bytes, whoever encodes them and whatever came before. Each is
/// given up when x264 has it.
pub(crate) fn encode(format: &BaseFormat, pictures: Vec<Picture>) -> Result<BaseBlock, ElementError> {
    const NAME: &str = "x264enc";
    let info = format.look.info(format.size, format.rate).ok_or_else(|| failed(NAME, "no such picture"))?;
    let caps = info.to_caps().map_err(|_| failed(NAME, "no such format"))?;
    let element = make(NAME)?;
    element.set_property_from_str("pass", "qual");
    element.set_property("quantizer", format.crf);
    element.set_property("vbv-buf-capacity", 0_u32);
    element.set_property_from_str("speed-preset", format.effort);
    element.set_property("threads", 1_u32);
    element.set_property("key-int-max", NO_KEY_FRAME);
    element.set_property("aud", false);
    element.set_property("option-string", format!("{OPTIONS}{}", instructions()));
    let wanted = gst::Caps::builder("video/x-h264").field("stream-format", "avc").build();
    let driven = Driven::start(NAME, element, &caps, &wanted, |_, time, buffer| {
        let map = buffer.map_readable().map_err(|_| "a unit that cannot be read")?;
        let slices = nal::slices_only(&map).ok_or("an access unit without slices")?;
        Ok((time, Bytes::from(slices)))
    })?;
    let count = pictures.len();
    for (index, picture) in (0..).zip(pictures) {
        let mut buffer = frame::buffer(&info, &picture).map_err(|why| failed(NAME, &why))?;
        stamp(&mut buffer, index, format.rate);
        driven.push(buffer)?;
    }
    let output = driven.finish()?;
    let config =
        output.caps.as_ref().and_then(codec_data).ok_or_else(|| failed(NAME, "no parameter sets"))?;
    let samples = in_display_order(output.items);
    if samples.len() != count
        || !samples.first().is_some_and(|(first, data)| *first == 0 && nal::is_idr(data))
    {
        return Err(failed(NAME, "it did not make one closed group of the pictures"));
    }
    Ok(BaseBlock { config, samples })
}

/// Decodes access units of one block into its pictures in display order.
/// `samples` come in decoding order with their display index.
pub(crate) fn decode<'a>(
    config: &[u8],
    size: (u32, u32),
    samples: impl IntoIterator<Item = (usize, &'a Bytes)>,
) -> Result<Vec<Picture>, ElementError> {
    const NAME: &str = "avdec_h264";
    let caps = gst::Caps::builder("video/x-h264")
        .field("stream-format", "avc")
        .field("alignment", "au")
        .field("codec_data", gst::Buffer::from_slice(config.to_vec()))
        .build();
    let element = make(NAME)?;
    element.set_property("max-threads", 1_i32);
    element.set_property("qos", false);
    element.set_property("output-corrupt", false);
    let wanted = gst::Caps::builder("video/x-raw").build();
    let driven = Driven::start(NAME, element, &caps, &wanted, move |caps, time, buffer| {
        let info = gst_video::VideoInfo::from_caps(caps).map_err(|_| "an unknown format")?;
        if (info.width(), info.height()) != size {
            return Err(format!("pictures of {}x{}", info.width(), info.height()));
        }
        Ok((time, frame::picture(&info, &buffer)?))
    })?;
    let mut expected = 0;
    for (index, data) in samples {
        let mut buffer = gst::Buffer::from_slice(data.clone());
        stamp(&mut buffer, u64::try_from(index).unwrap_or(u64::MAX), (NOMINAL, 1));
        driven.push(buffer)?;
        expected += 1;
    }
    let mut pictures = driven.finish()?.items;
    pictures.sort_by_key(|(time, _)| *time);
    if pictures.len() != expected {
        return Err(failed(NAME, &format!("{} pictures from {expected} access units", pictures.len())));
    }
    Ok(pictures.into_iter().map(|(_, picture)| picture).collect())
}

/// The rate that pictures are numbered with where only their order counts.
const NOMINAL: u32 = 25;

/// Inside a block pictures are counted, not timed: equal pictures give equal
/// bytes wherever their block lies and however uneven their times are.
fn stamp(buffer: &mut gst::Buffer, index: u64, (num, den): (u32, u32)) {
    let at = |index: u64| {
        gst::ClockTime::SECOND.mul_div_floor(index.saturating_mul(u64::from(den)), u64::from(num))
    };
    if let Some(buffer) = buffer.get_mut() {
        buffer.set_pts(at(index));
        buffer.set_duration(at(index.saturating_add(1)).zip(at(index)).map(|(end, start)| end - start));
    }
}

fn codec_data(caps: &gst::Caps) -> Option<Vec<u8>> {
    let buffer = caps.structure(0)?.get::<gst::Buffer>("codec_data").ok()?;
    let map = buffer.map_readable().ok()?;
    Some(map.to_vec())
}

/// Replaces times by ranks.
fn in_display_order(items: Vec<(i64, Bytes)>) -> Vec<(usize, Bytes)> {
    let mut times: Vec<i64> = items.iter().map(|(time, _)| *time).collect();
    times.sort_unstable();
    items.into_iter().map(|(time, data)| (times.partition_point(|other| *other < time), data)).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]
mod tests;
