//! Pictures between GStreamer and the codec.

use codec::Picture;
use gstreamer as gst;
use gstreamer_video as gst_video;
use gstreamer_video::prelude::*;

/// The format of 8-bit 4:2:0 pictures of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Look {
    /// What the samples mean.
    pub(crate) colorimetry: gst_video::VideoColorimetry,
    /// Width over height of one pixel.
    pub(crate) pixel_aspect: (u32, u32),
}

impl Look {
    /// That of `info`; with `full_range` samples use all values from 0 to 255, whatever it says.
    pub(crate) fn of(info: &gst_video::VideoInfo, full_range: bool) -> Self {
        let par = info.par();
        let positive = |n: i32| u32::try_from(n).ok().filter(|n| *n > 0);
        let pixel_aspect = positive(par.numer()).zip(positive(par.denom())).unwrap_or((1, 1));
        let said = info.colorimetry();
        let range = if full_range { gst_video::VideoColorRange::Range0_255 } else { said.range() };
        let colorimetry =
            gst_video::VideoColorimetry::new(range, said.matrix(), said.transfer(), said.primaries());
        Self { colorimetry, pixel_aspect }
    }

    /// Raw pictures of this size in I420, `rate` a second.
    pub(crate) fn info(&self, size: (u32, u32), rate: (u32, u32)) -> Option<gst_video::VideoInfo> {
        let fraction = |(num, den): (u32, u32)| {
            Some(gst::Fraction::new(i32::try_from(num).ok()?, i32::try_from(den).ok()?))
        };
        gst_video::VideoInfo::builder(gst_video::VideoFormat::I420, size.0, size.1)
            .fps(fraction(rate)?)
            .par(fraction(self.pixel_aspect)?)
            .colorimetry(&self.colorimetry)
            .build()
            .ok()
    }
}

/// Copies a picture out of a buffer.
pub(crate) fn picture(info: &gst_video::VideoInfo, buffer: &gst::BufferRef) -> Result<Picture, String> {
    if info.format() != gst_video::VideoFormat::I420 {
        return Err(format!("pictures in {:?} instead of I420", info.format()));
    }
    let frame = gst_video::VideoFrameRef::from_buffer_ref_readable(buffer, info)
        .map_err(|_| "a picture that cannot be read".to_owned())?;
    let plane = |index: u32| {
        let stride = frame.plane_stride().get(usize::try_from(index).ok()?).copied()?;
        Some((frame.plane_data(index).ok()?, usize::try_from(stride).ok()?))
    };
    let planes = plane(0).zip(plane(1)).zip(plane(2)).ok_or("a picture without its planes")?;
    let ((y, u), v) = planes;
    Picture::from_planes(info.width(), info.height(), [y, u, v]).map_err(|error| error.to_string())
}

/// Copies a picture into a new buffer of the format `info`.
pub(crate) fn buffer(info: &gst_video::VideoInfo, picture: &Picture) -> Result<gst::Buffer, String> {
    if (info.width(), info.height()) != picture.size() {
        return Err("a picture of another size".to_owned());
    }
    let mut bytes = vec![0_u8; info.size()];
    for (plane, (offset, stride)) in picture.planes().iter().zip(info.offset().iter().zip(info.stride())) {
        let stride = usize::try_from(*stride).map_err(|_| "a picture upside down")?;
        let rows = bytes.get_mut(*offset..).unwrap_or_default().chunks_mut(stride.max(1));
        for (to, from) in rows.zip(plane.rows()) {
            if let Some(to) = to.get_mut(..from.len()) {
                to.copy_from_slice(from);
            }
        }
    }
    Ok(gst::Buffer::from_mut_slice(bytes))
}
