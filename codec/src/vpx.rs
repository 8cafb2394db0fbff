//! A safe wrapper over the few calls of libvpx that the layers need: the only
//! unsafe code of the project.
#![allow(unsafe_code, reason = "libvpx is a C library; every block states why it is sound")]

mod decoder;
mod encoder;

pub(crate) use decoder::Decoder;
pub(crate) use encoder::{Encoder, Pattern, Speed};

use crate::error::CodecError;
use crate::picture::PictureRef;
use std::ffi::{CStr, c_int};
use std::ptr;
use vpx_sys::{
    vpx_codec_ctx_t, vpx_codec_err_t, vpx_codec_err_to_string, vpx_codec_error_detail, vpx_color_range,
    vpx_color_space, vpx_image_t, vpx_img_fmt, vpx_ref_frame_t, vpx_ref_frame_type,
};

/// The version of the libvpx that is linked, such as `v1.12.0`.
pub fn libvpx_version() -> String {
    // SAFETY: takes nothing and returns a static string.
    unsafe { words(vpx_sys::vpx_codec_version_str()) }
}

/// Turns a return code into an error with libvpx's own words.
fn checked(
    call: &'static str,
    code: vpx_codec_err_t,
    context: Option<&mut vpx_codec_ctx_t>,
) -> Result<(), CodecError> {
    if code == vpx_codec_err_t::VPX_CODEC_OK {
        return Ok(());
    }
    // SAFETY: returns a static string for every code.
    let mut detail = unsafe { words(vpx_codec_err_to_string(code)) };
    if let Some(context) = context {
        // SAFETY: the context was initialised; the string, if any, is owned by
        // it and is copied before the context is used again.
        let more = unsafe { words(vpx_codec_error_detail(context)) };
        if !more.is_empty() {
            detail = format!("{detail}: {more}");
        }
    }
    Err(CodecError::Vpx { call, detail })
}

/// Copies a C string; a null pointer gives nothing.
///
/// # Safety
/// `text` is null or points to a NUL-terminated string.
unsafe fn words(text: *const std::ffi::c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: not null, and NUL-terminated by the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// Describes borrowed planes to libvpx, which only reads them.
///
/// The pointers are valid as long as the borrow of `picture`; both sides must
/// be multiples of 8, for libvpx copies whole aligned rows.
fn image(picture: PictureRef<'_>) -> Result<vpx_image_t, CodecError> {
    let (width, height) = picture.size();
    let [y, u, v] = picture.planes();
    let fits = width % 8 == 0 && height % 8 == 0 && u.stride == v.stride;
    let stride = |stride| c_int::try_from(stride).ok().filter(|_| fits);
    let (Some(luma), Some(chroma)) = (stride(y.stride), stride(u.stride)) else {
        return Err(CodecError::PictureSize { width, height });
    };
    Ok(vpx_image_t {
        fmt: vpx_img_fmt::VPX_IMG_FMT_I420,
        cs: vpx_color_space::VPX_CS_UNKNOWN,
        range: vpx_color_range::VPX_CR_STUDIO_RANGE,
        w: width,
        h: height,
        bit_depth: 8,
        d_w: width,
        d_h: height,
        r_w: 0,
        r_h: 0,
        x_chroma_shift: 1,
        y_chroma_shift: 1,
        planes: [
            y.data.as_ptr().cast_mut(),
            u.data.as_ptr().cast_mut(),
            v.data.as_ptr().cast_mut(),
            ptr::null_mut(),
        ],
        stride: [luma, chroma, chroma, 0],
        bps: 12,
        user_priv: ptr::null_mut(),
        img_data: ptr::null_mut(),
        img_data_owner: 0,
        self_allocd: 0,
        fb_priv: ptr::null_mut(),
    })
}

fn golden(picture: PictureRef<'_>) -> Result<vpx_ref_frame_t, CodecError> {
    Ok(vpx_ref_frame_t { frame_type: vpx_ref_frame_type::VP8_GOLD_FRAME, img: image(picture)? })
}

/// Borrows the planes of a picture that libvpx owns.
///
/// # Safety
/// `image` is null, or points to an image whose planes stay unchanged for `'a`.
unsafe fn borrow<'a>(image: *const vpx_image_t, expected: (u32, u32)) -> Result<PictureRef<'a>, CodecError> {
    // SAFETY: null or valid by the caller's promise.
    let Some(image) = (unsafe { image.as_ref() }) else {
        return Err(crate::error::FrameError::Pictures(0).into());
    };
    let found = (image.d_w, image.d_h);
    let plain = image.fmt == vpx_img_fmt::VPX_IMG_FMT_I420 && image.bit_depth == 8;
    if found != expected || !plain {
        return Err(crate::error::FrameError::Size { expected, found }.into());
    }
    let [y, u, v, _] = image.planes;
    let [luma, chroma, chroma_too, _] = image.stride;
    let plane = |number, start: *mut u8, stride: c_int| {
        let (width, height) = crate::picture::plane_size(number, found.0, found.1);
        let stride = usize::try_from(stride).ok().filter(|&stride| stride >= width);
        let stride = stride.filter(|_| !start.is_null());
        stride.map(|stride| {
            let length = stride * (height - 1) + width;
            // SAFETY: libvpx keeps `height` rows of `width` samples, `stride`
            // apart, from `start` on; they stay unchanged for 'a.
            (unsafe { std::slice::from_raw_parts(start, length) }, stride)
        })
    };
    match (plane(0, y, luma), plane(1, u, chroma), plane(2, v, chroma_too)) {
        (Some(y), Some(u), Some(v)) => PictureRef::new(found.0, found.1, [y, u, v]),
        _ => Err(crate::error::FrameError::Pictures(0).into()),
    }
}
