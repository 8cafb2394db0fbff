//! Pictures between GStreamer's buffers and the codec.

use crate::pipeline::error::PipelineError;
use codec::{Picture, PictureRef};
use gst_video::prelude::*;
use gstreamer as gst;
use gstreamer_video as gst_video;
use media::Manifest;
use media::manifest::Color;

/// The value of ISO/IEC 23091-2 for "unknown".
const UNSPECIFIED: u8 = 2;

/// The caps of recombined pictures: display size, and what the manifest says
/// about rate, pixel shape and colours.
pub(crate) fn display_caps(manifest: &Manifest) -> Result<gst::Caps, PipelineError> {
    let ratio = |ratio: media::manifest::Ratio| {
        let part = |n: u32| i32::try_from(n).map_err(PipelineError::title);
        Ok::<_, PipelineError>(gst::Fraction::new(part(ratio.num)?, part(ratio.den)?))
    };
    let mut info =
        gst_video::VideoInfo::builder(gst_video::VideoFormat::I420, manifest.width, manifest.height)
            .fps(ratio(manifest.frame_rate)?)
            .par(ratio(manifest.pixel_aspect)?)
            .interlace_mode(gst_video::VideoInterlaceMode::Progressive);
    let colorimetry = colorimetry(manifest.color);
    if let Some(colorimetry) = &colorimetry {
        info = info.colorimetry(colorimetry);
    }
    info.build().and_then(|info| info.to_caps()).map_err(PipelineError::build)
}

/// Nothing if the film does not say what its colours are: sinks then guess by
/// size, as they do for any such film.
fn colorimetry(color: Color) -> Option<gst_video::VideoColorimetry> {
    let range = if color.full_range {
        gst_video::VideoColorRange::Range0_255
    } else {
        gst_video::VideoColorRange::Range16_235
    };
    if !color.full_range && [color.primaries, color.transfer, color.matrix].contains(&UNSPECIFIED) {
        return None;
    }
    Some(gst_video::VideoColorimetry::new(
        range,
        gst_video::VideoColorMatrix::from_iso(u32::from(color.matrix)),
        gst_video::VideoTransferFunction::from_iso(u32::from(color.transfer)),
        gst_video::VideoColorPrimaries::from_iso(u32::from(color.primaries)),
    ))
}

/// Runs `read` on the picture in a buffer, without copying it. Nothing if the
/// buffer does not hold a picture of this form.
pub(crate) fn with_picture<T>(
    buffer: &gst::BufferRef,
    info: &gst_video::VideoInfo,
    read: impl FnOnce(PictureRef<'_>) -> T,
) -> Option<T> {
    let frame = gst_video::VideoFrameRef::from_buffer_ref_readable(buffer, info).ok()?;
    let plane = |number: u32| {
        let stride = frame.plane_stride().get(usize::try_from(number).ok()?).copied()?;
        Some((frame.plane_data(number).ok()?, usize::try_from(stride).ok()?))
    };
    let planes = [plane(0)?, plane(1)?, plane(2)?];
    let view = PictureRef::new(frame.width(), frame.height(), planes).ok()?;
    Some(read(view))
}

/// Copies a picture into a writable buffer of the same size.
pub(super) fn write_picture(
    buffer: &mut gst::BufferRef,
    info: &gst_video::VideoInfo,
    picture: &Picture,
) -> Option<()> {
    let mut frame = gst_video::VideoFrameRef::from_buffer_ref_writable(buffer, info).ok()?;
    for (number, plane) in (0_u32..).zip(picture.planes()) {
        let stride = frame.plane_stride().get(usize::try_from(number).ok()?).copied()?;
        let stride = usize::try_from(stride).ok().filter(|stride| *stride >= plane.width())?;
        let rows = frame.plane_data_mut(number).ok()?.chunks_mut(stride);
        for (to, from) in rows.zip(plane.rows()) {
            to.get_mut(..from.len())?.copy_from_slice(from);
        }
    }
    Some(())
}
