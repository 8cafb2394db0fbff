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
    // A matrix of 0 means RGB, which 4:2:0 cannot be.
    let unknown = [color.primaries, color.transfer, color.matrix].contains(&UNSPECIFIED) || color.matrix == 0;
    if unknown && !color.full_range {
        return None;
    }
    Some(gst_video::VideoColorimetry::new(
        range,
        gst_video::VideoColorMatrix::from_iso(u32::from(color.matrix).max(1)),
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

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;

    fn text(color: Color) -> Option<String> {
        gst::init().unwrap();
        colorimetry(color).map(|colorimetry| colorimetry.to_string())
    }

    #[test]
    fn colours_are_carried_as_the_film_states_them() {
        let color = Color { full_range: false, primaries: 1, transfer: 1, matrix: 1 };
        assert_eq!(text(color).as_deref(), Some("bt709"));
        assert_eq!(text(Color { full_range: true, ..color }).as_deref(), Some("1:3:5:1"));
        assert_eq!(text(Color { matrix: 2, ..color }), None);
    }

    #[test]
    fn every_value_that_a_manifest_can_hold_gives_caps_that_are_read_back() {
        for full_range in [false, true] {
            for value in 0..=u8::MAX {
                for color in [
                    Color { full_range, primaries: value, transfer: 1, matrix: 1 },
                    Color { full_range, primaries: 1, transfer: value, matrix: 1 },
                    Color { full_range, primaries: 1, transfer: 1, matrix: value },
                ] {
                    gst::init().unwrap();
                    let mut info = gst_video::VideoInfo::builder(gst_video::VideoFormat::I420, 64, 48);
                    let colorimetry = colorimetry(color);
                    if let Some(colorimetry) = &colorimetry {
                        info = info.colorimetry(colorimetry);
                    }
                    let caps = info.build().unwrap().to_caps().unwrap();
                    assert!(gst_video::VideoInfo::from_caps(&caps).is_ok(), "{color:?}");
                }
            }
        }
    }
}
