//! The element `laminacombine`: decoded Base pictures and VP9 frames of the
//! enhancement layers in, pictures of the best quality at hand out.
//!
//! * sink pad `base`: raw I420 at Base's own size;
//! * sink pads `enh_0`, `enh_1`, ... (on request): `video/x-lamina-enh`, one
//!   VP9 frame a buffer with the time stamp of its picture, or an empty buffer
//!   with the GAP flag (what a GAP event becomes) over the time for which the
//!   layer is missing;
//! * source pad: raw I420 at the display size. A buffer's `offset` is its block
//!   and its `offset-end` the number of layers it was made of.
//!
//! Feeding rule: for each block, all enhancement buffers or one gap are pushed
//! before the first Base picture of that block reaches the element. Every pad
//! then always has its answer, and nothing can wait for something that comes
//! behind it.

mod align;
mod element;
mod picture_io;

pub(crate) use picture_io::{display_caps, with_picture};

use super::error::PipelineError;
use super::schedule::Schedule;
use bytes::Bytes;
use codec::Ladder;
use gst::glib;
use gst::prelude::*;
use gstreamer as gst;
use gstreamer_base as gst_base;
use media::{Manifest, container};
use std::sync::Arc;

/// The caps of an enhancement pad.
pub(crate) const ENHANCEMENT_CAPS: &str = "video/x-lamina-enh";

glib::wrapper! {
    /// The combining element.
    pub struct Combine(ObjectSubclass<element::Combine>)
        @extends gst_base::Aggregator, gst::Element, gst::Object;
}

/// What the element must know of a title before it starts.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) ladder: Ladder,
    /// The grey key frame of each enhancement.
    pub(crate) keys: Vec<Bytes>,
    /// Whether the enhancements come in halves.
    pub(crate) halves: bool,
    /// The caps of the source pad, fixed.
    pub(crate) caps: gst::Caps,
    pub(crate) schedule: Arc<Schedule>,
}

impl Job {
    /// Reads the layers' sizes and key frames from a title's manifest.
    pub(crate) fn new(manifest: &Manifest, schedule: Arc<Schedule>) -> Result<Self, PipelineError> {
        let factors: Vec<u8> = manifest.layers.iter().map(|layer| layer.factor).collect();
        let ladder = Ladder::new(manifest.width, manifest.height, &factors).map_err(PipelineError::title)?;
        let key = |layer: &media::LayerInfo| {
            container::enhancement_key(&layer.init).map(Bytes::copy_from_slice).map_err(PipelineError::title)
        };
        let keys = manifest.layers.iter().skip(1).map(key).collect::<Result<_, _>>()?;
        let caps = picture_io::display_caps(manifest)?;
        Ok(Self { ladder, keys, halves: manifest.in_halves(), caps, schedule })
    }
}

impl Combine {
    /// An element for one title, with a pad for each of its enhancements.
    pub(crate) fn for_title(job: Job) -> Result<Self, PipelineError> {
        let enhancements = job.ladder.enhancements();
        let element: Self = glib::Object::new();
        element.set_job(job);
        for number in 0..enhancements {
            element
                .request_pad_simple(&format!("enh_{number}"))
                .ok_or_else(|| PipelineError::Build(format!("laminacombine gives no pad enh_{number}")))?;
        }
        Ok(element)
    }

    fn set_job(&self, job: Job) {
        glib::subclass::prelude::ObjectSubclassIsExt::imp(self).set_job(job);
    }
}

/// Makes the element known to GStreamer, so that `gst-launch` style
/// descriptions and debug output can name it.
pub(crate) fn register() -> Result<(), glib::BoolError> {
    gst::Element::register(None, "laminacombine", gst::Rank::NONE, Combine::static_type())
}
