//! One VP9 encoder of fixed picture size and constant quantizer.

use super::decoder::control_id;
use super::{borrow, checked, golden, image};
use crate::error::CodecError;
use crate::frame_header::{self, Expected};
use crate::picture::PictureRef;
use crate::scene::Scene;
use bytes::Bytes;
use std::ffi::{c_int, c_uint, c_ulong};
use std::mem::MaybeUninit;
use std::ptr;
use vpx_sys::vp8e_enc_control_id::{
    VP8E_SET_CPUUSED, VP8E_SET_CQ_LEVEL, VP8E_SET_ENABLEAUTOALTREF, VP9E_SET_AQ_MODE,
};
use vpx_sys::{
    VP8_EFLAG_NO_REF_ARF, VP8_EFLAG_NO_REF_LAST, VP8_EFLAG_NO_UPD_ARF, VP8_EFLAG_NO_UPD_GF,
    VP8_EFLAG_NO_UPD_LAST, VPX_DL_GOOD_QUALITY, VPX_DL_REALTIME, VPX_EFLAG_FORCE_KF, VPX_ENCODER_ABI_VERSION,
    VPX_ERROR_RESILIENT_DEFAULT, vp8_com_control_id, vp8e_enc_control_id, vpx_codec_control_,
    vpx_codec_ctx_t, vpx_codec_cx_pkt_kind, vpx_codec_destroy, vpx_codec_enc_cfg_t,
    vpx_codec_enc_config_default, vpx_codec_enc_config_set, vpx_codec_enc_init_ver, vpx_codec_encode,
    vpx_codec_get_cx_data, vpx_codec_get_preview_frame, vpx_codec_vp9_cx, vpx_enc_pass, vpx_kf_mode,
    vpx_rational, vpx_rc_mode,
};

/// The coarsest quantizer.
const MAX_QUANTIZER: u8 = 63;

/// How hard libvpx searches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Speed {
    /// The realtime deadline instead of the good one.
    pub(crate) realtime: bool,
    /// `cpu-used`: higher is faster.
    pub(crate) cpu_used: u8,
}

/// How the pictures of a block differ from one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pattern {
    pub(crate) speed: Speed,
    /// Whether every second picture, beginning with the first, also replaces
    /// ALTREF, which the pictures after the first may refer to.
    pub(crate) long_term: bool,
    /// Added to the quantizer of the first picture of a scene.
    pub(crate) first: i8,
    /// Subtracted from the quantizer of the even pictures after the first, and
    /// added to that of the odd ones.
    pub(crate) step: i8,
    /// Whether the odd pictures of a block can be left out by a decoder:
    /// nothing refers to them, and nothing is learnt from them.
    pub(crate) droppable: bool,
}

/// From so many pictures on the first one of a scene is coded as fine as the
/// pattern says; with fewer to build on it, less so.
const LONG_SCENE: u32 = 10;

/// A VP9 encoder that writes one grey key frame and then inter frames
/// predicted from an injected golden picture and the picture before.
pub(crate) struct Encoder {
    context: Box<vpx_codec_ctx_t>,
    size: (u32, u32),
    pattern: Pattern,
    quantizer: u8,
    config: vpx_codec_enc_cfg_t,
    /// Pictures coded so far, the key frame included.
    frames: u32,
    /// The scene of which no picture that others may refer to is coded yet.
    scene: Option<Scene>,
}

// SAFETY: a libvpx context has no tie to the thread that made it; it is only
// reached through `&mut self`, and plane borrows keep that borrow alive.
unsafe impl Send for Encoder {}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Encoder").field("size", &self.size).finish_non_exhaustive()
    }
}

impl Encoder {
    /// An encoder for coded pictures of `size` (both sides multiples of 8).
    pub(crate) fn new(size: (u32, u32), pattern: Pattern, quantizer: u8) -> Result<Self, CodecError> {
        let config = config(size, quantizer, pattern.droppable)?;
        let version = c_int::try_from(VPX_ENCODER_ABI_VERSION).unwrap_or(0);
        let mut context = Box::<vpx_codec_ctx_t>::new_uninit();
        // SAFETY: the call fills the whole context before it does anything
        // else, copies `config`, and takes no other pointer of ours.
        let code = unsafe {
            vpx_codec_enc_init_ver(context.as_mut_ptr(), vpx_codec_vp9_cx(), &raw const config, 0, version)
        };
        checked("vpx_codec_enc_init", code, None)?;
        // SAFETY: initialised by the successful call above.
        let context = unsafe { context.assume_init() };
        let mut encoder = Self { context, size, pattern, quantizer, config, frames: 0, scene: None };
        encoder.set(VP8E_SET_CPUUSED, pattern.speed.cpu_used)?;
        encoder.set(VP8E_SET_CQ_LEVEL, quantizer)?;
        encoder.set(VP9E_SET_AQ_MODE, 0)?;
        encoder.set(VP8E_SET_ENABLEAUTOALTREF, 0)?;
        Ok(encoder)
    }

    fn set(&mut self, control: vp8e_enc_control_id, value: u8) -> Result<(), CodecError> {
        #[allow(clippy::as_conversions, reason = "a C enum of small positive values")]
        let id = control as c_int;
        // SAFETY: the controls used here take an int.
        let code = unsafe { vpx_codec_control_(&raw mut *self.context, id, c_int::from(value)) };
        checked("vpx_codec_control", code, Some(&mut self.context))
    }

    /// Encodes the key frame that fills all references.
    pub(crate) fn encode_key(&mut self, grey: PictureRef<'_>) -> Result<Bytes, CodecError> {
        let data = self.encode(grey, VPX_EFLAG_FORCE_KF)?;
        frame_header::check(&data, Expected::Key, self.size)?;
        Ok(data)
    }

    /// Injects `reference` as GOLDEN and encodes one frame.
    pub(crate) fn encode_inter(
        &mut self,
        source: PictureRef<'_>,
        reference: PictureRef<'_>,
        scene: Option<Scene>,
    ) -> Result<Bytes, CodecError> {
        self.fits("the reference", reference)?;
        let mut frame = golden(reference)?;
        let control = vp8_com_control_id::VP8_SET_REFERENCE;
        // SAFETY: this control takes a `vpx_ref_frame_t *`; the picture is
        // copied during the call and has the size of the encoder's buffers.
        let code = unsafe { vpx_codec_control_(&raw mut *self.context, control_id(control), &raw mut frame) };
        checked("VP8_SET_REFERENCE", code, Some(&mut self.context))?;
        let number = self.frames.saturating_sub(1);
        self.scene = scene.or(self.scene);
        let opened = if self.is_dropped(number) { None } else { self.scene.take() };
        self.requantize(number, opened)?;
        let flags = self.flags(number, opened.is_some());
        let data = self.encode(source, flags)?;
        frame_header::check(&data, Expected::Inter, self.size)?;
        Ok(data)
    }

    /// References that picture `number` of the block may use and replace. The
    /// first is predicted from GOLDEN alone; one that opens a scene stays at hand.
    fn flags(&self, number: u32, opens: bool) -> u32 {
        let mut flags = VP8_EFLAG_NO_UPD_GF;
        if number == 0 {
            flags |= VP8_EFLAG_NO_REF_LAST;
        }
        if number == 0 || !self.pattern.long_term {
            flags |= VP8_EFLAG_NO_REF_ARF;
        }
        if self.is_dropped(number) {
            // Into ALTREF, to which nothing refers then: of a picture that
            // replaces nothing libvpx would show us the unfiltered one.
            return flags | VP8_EFLAG_NO_UPD_LAST;
        }
        if !self.pattern.long_term || number % 2 == 1 && !opens {
            flags |= VP8_EFLAG_NO_UPD_ARF;
        }
        flags
    }

    /// Whether a decoder may do without this picture.
    fn is_dropped(&self, number: u32) -> bool {
        self.pattern.droppable && number % 2 == 1
    }

    /// `scene` is the one that the picture opens.
    fn requantize(&mut self, number: u32, scene: Option<Scene>) -> Result<(), CodecError> {
        let Pattern { first, step, .. } = self.pattern;
        let offset = match scene {
            Some(Scene { length }) => {
                let part = i32::try_from(length.min(LONG_SCENE)).unwrap_or(0);
                let whole = i32::try_from(LONG_SCENE).unwrap_or(1);
                i8::try_from(i32::from(first) * part / whole).unwrap_or(first)
            }
            None if number.is_multiple_of(2) => -step,
            None => step,
        };
        let quantizer = self.quantizer.saturating_add_signed(offset).min(MAX_QUANTIZER);
        if c_uint::from(quantizer) == self.config.rc_max_quantizer {
            return Ok(());
        }
        self.config.rc_min_quantizer = c_uint::from(quantizer);
        self.config.rc_max_quantizer = c_uint::from(quantizer);
        // SAFETY: libvpx copies the configuration, whose size did not change.
        let code = unsafe { vpx_codec_enc_config_set(&raw mut *self.context, &raw const self.config) };
        checked("vpx_codec_enc_config_set", code, Some(&mut self.context))?;
        self.set(VP8E_SET_CQ_LEVEL, quantizer)
    }

    /// The picture a decoder will show for the last encoded frame.
    pub(crate) fn reconstruction(&mut self) -> Result<PictureRef<'_>, CodecError> {
        // SAFETY: the image and its planes stay until the next call that
        // encodes or destroys; both need `&mut self`, which the borrow holds.
        unsafe { borrow(vpx_codec_get_preview_frame(&raw mut *self.context), self.size) }
    }

    fn fits(&self, what: &'static str, picture: PictureRef<'_>) -> Result<(), CodecError> {
        crate::Ladder::check(what, self.size, picture.size())
    }

    fn encode(&mut self, source: PictureRef<'_>, flags: u32) -> Result<Bytes, CodecError> {
        self.fits("the source", source)?;
        let image = image(source)?;
        let time = i64::from(self.frames);
        self.frames += 1;
        let deadline = if self.pattern.speed.realtime { VPX_DL_REALTIME } else { VPX_DL_GOOD_QUALITY };
        // SAFETY: the image describes planes that outlive the call, and libvpx
        // copies them before it returns.
        let code = unsafe {
            vpx_codec_encode(
                &raw mut *self.context,
                &raw const image,
                time,
                1,
                i64::from(flags),
                c_ulong::from(deadline),
            )
        };
        checked("vpx_codec_encode", code, Some(&mut self.context))?;
        self.packet()
    }

    /// The one packet that a frame gives without look-ahead.
    fn packet(&mut self) -> Result<Bytes, CodecError> {
        let mut iterator = ptr::null();
        let mut data = None;
        let mut packets = 0;
        loop {
            // SAFETY: the iterator belongs to this context; the packet stays
            // until the next call that encodes.
            let packet = unsafe { vpx_codec_get_cx_data(&raw mut *self.context, &raw mut iterator).as_ref() };
            let Some(packet) = packet else { break };
            if packet.kind == vpx_codec_cx_pkt_kind::VPX_CODEC_CX_FRAME_PKT {
                // SAFETY: the kind says that this member of the union is set.
                let frame = unsafe { packet.data.frame };
                let length = usize::try_from(frame.sz).unwrap_or(0);
                // SAFETY: libvpx wrote `sz` bytes at `buf`.
                let bytes = unsafe { std::slice::from_raw_parts(frame.buf.cast::<u8>(), length) };
                data = Some(Bytes::copy_from_slice(bytes));
                packets += 1;
            }
        }
        match (data, packets) {
            (Some(data), 1) => Ok(data),
            (_, packets) => Err(crate::error::FrameError::Pictures(packets).into()),
        }
    }
}

impl Drop for Encoder {
    fn drop(&mut self) {
        // SAFETY: initialised in `new`, destroyed once; a failure leaks at worst.
        let _ = unsafe { vpx_codec_destroy(&raw mut *self.context) };
    }
}

/// One pass, no look-ahead, one thread, constant quantizer: the same frame
/// comes out whatever the machine and whatever was encoded before.
///
/// Where pictures can be left out, frames are *error resilient*: none takes
/// probabilities or motion vectors from the frame decoded before it.
fn config(
    (width, height): (u32, u32),
    quantizer: u8,
    droppable: bool,
) -> Result<vpx_codec_enc_cfg_t, CodecError> {
    if quantizer > MAX_QUANTIZER {
        return Err(CodecError::Quantizer(quantizer));
    }
    let mut config = MaybeUninit::<vpx_codec_enc_cfg_t>::uninit();
    // SAFETY: the call writes the whole structure when it succeeds.
    let code = unsafe { vpx_codec_enc_config_default(vpx_codec_vp9_cx(), config.as_mut_ptr(), 0) };
    checked("vpx_codec_enc_config_default", code, None)?;
    // SAFETY: written by the successful call above.
    let mut config = unsafe { config.assume_init() };
    config.g_w = width;
    config.g_h = height;
    // Any fixed time base does: with a constant quantizer the rate is not used.
    config.g_timebase = vpx_rational { num: 1, den: 30 };
    config.g_threads = 1;
    config.g_pass = vpx_enc_pass::VPX_RC_ONE_PASS;
    config.g_lag_in_frames = 0;
    config.rc_end_usage = vpx_rc_mode::VPX_Q;
    config.rc_target_bitrate = 20_000;
    config.rc_min_quantizer = c_uint::from(quantizer);
    config.rc_max_quantizer = c_uint::from(quantizer);
    config.kf_mode = vpx_kf_mode::VPX_KF_DISABLED;
    config.g_error_resilient = if droppable { VPX_ERROR_RESILIENT_DEFAULT } else { 0 };
    Ok(config)
}
