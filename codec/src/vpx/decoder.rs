//! One VP9 decoder of fixed picture size.

use super::{borrow, checked, golden};
use crate::error::{CodecError, FrameError};
use crate::frame_header::{self, Expected};
use crate::picture::PictureRef;
use std::ffi::{c_int, c_uint};
use std::ptr;
use vpx_sys::{
    VPX_DECODER_ABI_VERSION, vp8_com_control_id, vpx_codec_control_, vpx_codec_ctx_t, vpx_codec_dec_cfg_t,
    vpx_codec_dec_init_ver, vpx_codec_decode, vpx_codec_destroy, vpx_codec_get_frame, vpx_codec_vp9_dx,
};

/// Luma samples from which a second thread is worth its cost: about 720p.
const TWO_THREADS_FROM: u64 = 800_000;

/// A VP9 decoder that takes pictures of one size and nothing else.
pub(crate) struct Decoder {
    context: Box<vpx_codec_ctx_t>,
    size: (u32, u32),
    /// The frame with its index, as libvpx gets it.
    indexed: Vec<u8>,
}

// SAFETY: a libvpx context has no tie to the thread that made it; it is only
// reached through `&mut self`, and plane borrows keep that borrow alive.
unsafe impl Send for Decoder {}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoder").field("size", &self.size).finish_non_exhaustive()
    }
}

impl Decoder {
    /// A decoder for coded pictures of `size` (both sides multiples of 8).
    pub(crate) fn new(size: (u32, u32)) -> Result<Self, CodecError> {
        // With a second thread the loop filter runs beside the decoding: 1080p
        // takes 12 instead of 21 ms a picture for both layers, bit for bit the same.
        let large = u64::from(size.0) * u64::from(size.1) >= TWO_THREADS_FROM;
        let config = vpx_codec_dec_cfg_t { threads: if large { 2 } else { 1 }, w: size.0, h: size.1 };
        let version = c_int::try_from(VPX_DECODER_ABI_VERSION).unwrap_or(0);
        let mut context = Box::<vpx_codec_ctx_t>::new_uninit();
        // SAFETY: the call fills the whole context before it does anything
        // else, copies `config`, and takes no other pointer of ours.
        let code = unsafe {
            vpx_codec_dec_init_ver(context.as_mut_ptr(), vpx_codec_vp9_dx(), &raw const config, 0, version)
        };
        checked("vpx_codec_dec_init", code, None)?;
        // SAFETY: initialised by the successful call above.
        let context = unsafe { context.assume_init() };
        Ok(Self { context, size, indexed: Vec::new() })
    }

    /// Decodes the grey key frame, after which every reference is filled and
    /// nothing of the past counts.
    pub(crate) fn decode_key(&mut self, data: &[u8]) -> Result<(), CodecError> {
        frame_header::check(data, Expected::Key, self.size)?;
        self.decode(data).map(|_| ())
    }

    /// Injects `reference` as GOLDEN and decodes one frame.
    pub(crate) fn decode_inter(
        &mut self,
        reference: PictureRef<'_>,
        data: &[u8],
    ) -> Result<PictureRef<'_>, CodecError> {
        frame_header::check(data, Expected::Inter, self.size)?;
        if reference.size() != self.size {
            let (expected, found) = (self.size, reference.size());
            return Err(CodecError::SizeMismatch { what: "the reference", expected, found });
        }
        let mut frame = golden(reference)?;
        let control = vp8_com_control_id::VP8_SET_REFERENCE;
        // SAFETY: this control takes a `vpx_ref_frame_t *`; the picture is
        // copied during the call and has the size of the decoder's buffers.
        let code = unsafe { vpx_codec_control_(&raw mut *self.context, control_id(control), &raw mut frame) };
        checked("VP8_SET_REFERENCE", code, Some(&mut self.context))?;
        self.decode(data)
    }

    fn decode(&mut self, data: &[u8]) -> Result<PictureRef<'_>, CodecError> {
        self.index(data)?;
        let length = c_uint::try_from(self.indexed.len()).unwrap_or(0);
        // SAFETY: libvpx reads `length` bytes and keeps no pointer to them.
        let code = unsafe {
            vpx_codec_decode(&raw mut *self.context, self.indexed.as_ptr(), length, ptr::null_mut(), 0)
        };
        checked("vpx_codec_decode", code, Some(&mut self.context))?;
        let mut iterator = ptr::null();
        // SAFETY: the iterator belongs to this context; the image and its
        // planes stay until the next call that decodes or destroys, and both
        // need `&mut self`, which the returned borrow holds.
        unsafe {
            let image = vpx_codec_get_frame(&raw mut *self.context, &raw mut iterator);
            borrow(image, self.size)
        }
    }

    /// Appends a superframe index of one frame (VP9 bitstream specification,
    /// annex B).
    ///
    /// Without it libvpx takes bytes left over after a frame for another one,
    /// whose header nobody has checked.
    fn index(&mut self, data: &[u8]) -> Result<(), FrameError> {
        const ONE_FRAME_OF_4_SIZE_BYTES: u8 = 0b1101_1000;
        let bound = frame_header::byte_bound(self.size);
        let size =
            u32::try_from(data.len()).map_err(|_| FrameError::TooLarge { found: data.len(), bound })?;
        self.indexed.clear();
        self.indexed.extend_from_slice(data);
        self.indexed.push(ONE_FRAME_OF_4_SIZE_BYTES);
        self.indexed.extend_from_slice(&size.to_le_bytes());
        self.indexed.push(ONE_FRAME_OF_4_SIZE_BYTES);
        Ok(())
    }
}

impl Drop for Decoder {
    fn drop(&mut self) {
        // SAFETY: initialised in `new`, destroyed once; a failure leaks at worst.
        let _ = unsafe { vpx_codec_destroy(&raw mut *self.context) };
    }
}

#[allow(clippy::as_conversions, reason = "a C enum of small positive values")]
pub(super) fn control_id(control: vp8_com_control_id) -> c_int {
    control as c_int
}
