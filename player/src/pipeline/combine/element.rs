//! The aggregator behind `laminacombine`.

use super::align::{Answer, answer};
use super::{ENHANCEMENT_CAPS, Job, picture_io};
use crate::pipeline::schedule::Slot;
use codec::{LayerDecoder, Picture};
use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;
use gst_base::prelude::*;
use gst_base::subclass::prelude::*;
use gstreamer as gst;
use gstreamer_base as gst_base;
use gstreamer_video as gst_video;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

static CATEGORY: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new("laminacombine", gst::DebugColorFlags::empty(), Some("Layer combiner"))
});

/// The element's private part.
#[derive(Debug, Default)]
pub struct Combine {
    job: Mutex<Option<Job>>,
    core: Mutex<Option<Core>>,
}

/// What exists between start and stop.
#[derive(Debug)]
struct Core {
    job: Job,
    decoder: LayerDecoder,
    /// The decoded Base picture, packed.
    base: Picture,
    base_info: Option<gst_video::VideoInfo>,
    display: gst_video::VideoInfo,
    pool: gst_video::VideoBufferPool,
    /// Start of the block that the decoder is in.
    block_start: Option<u64>,
    /// Whether a layer of that block was dropped though its frame was there.
    dropped: bool,
    /// Whether the source pad's segment was set since the start.
    segment_set: bool,
}

/// A Base picture with what the enhancement pads have for it.
struct Matched {
    base: gst::Buffer,
    slot: Slot,
    /// One entry for each enhancement, lowest first.
    frames: Vec<Option<gst::Buffer>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[glib::object_subclass]
impl ObjectSubclass for Combine {
    const NAME: &'static str = "LaminaCombine";
    type Type = super::Combine;
    type ParentType = gst_base::Aggregator;
}

impl ObjectImpl for Combine {
    fn constructed(&self) {
        self.parent_constructed();
        let element = self.obj();
        if let Some(template) = element.pad_template("base") {
            let pad = gst::PadBuilder::<gst_base::AggregatorPad>::from_template(&template).build();
            if element.add_pad(&pad).is_err() {
                gst::error!(CATEGORY, imp = self, "the pad `base` cannot be added");
            }
        }
    }
}

impl GstObjectImpl for Combine {}

impl ElementImpl for Combine {
    fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
        static METADATA: LazyLock<gst::subclass::ElementMetadata> = LazyLock::new(|| {
            gst::subclass::ElementMetadata::new(
                "Layer combiner",
                "Codec/Decoder/Video",
                "Makes one picture from Base and the enhancement layers at hand",
                "The Lamina authors",
            )
        });
        Some(&METADATA)
    }

    fn pad_templates() -> &'static [gst::PadTemplate] {
        static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> = LazyLock::new(|| {
            let raw = gst_video::VideoCapsBuilder::new().format(gst_video::VideoFormat::I420).build();
            let enhancement = gst::Caps::new_empty_simple(ENHANCEMENT_CAPS);
            let sink = gst_base::AggregatorPad::static_type();
            let (always, request) = (gst::PadPresence::Always, gst::PadPresence::Request);
            let templates = [
                gst::PadTemplate::with_gtype("src", gst::PadDirection::Src, always, &raw, sink),
                gst::PadTemplate::with_gtype("base", gst::PadDirection::Sink, always, &raw, sink),
                gst::PadTemplate::with_gtype("enh_%u", gst::PadDirection::Sink, request, &enhancement, sink),
            ];
            templates.into_iter().flatten().collect()
        });
        TEMPLATES.as_ref()
    }
}

impl AggregatorImpl for Combine {
    fn create_new_pad(
        &self,
        template: &gst::PadTemplate,
        name: Option<&str>,
        _caps: Option<&gst::Caps>,
    ) -> Option<gst_base::AggregatorPad> {
        let name = name.filter(|name| name.starts_with("enh_"))?;
        let builder = gst::PadBuilder::<gst_base::AggregatorPad>::from_template(template);
        Some(builder.name(name).build())
    }

    fn start(&self) -> Result<(), gst::ErrorMessage> {
        let failed = |what: &str| gst::error_msg!(gst::LibraryError::Init, ["{}", what]);
        let job = lock(&self.job).clone().ok_or_else(|| failed("no title was set"))?;
        let core = Core::new(job).map_err(|why| failed(&why))?;
        *lock(&self.core) = Some(core);
        Ok(())
    }

    fn stop(&self) -> Result<(), gst::ErrorMessage> {
        if let Some(core) = lock(&self.core).take() {
            core.close();
        }
        Ok(())
    }

    fn flush(&self) -> Result<gst::FlowSuccess, gst::FlowError> {
        if let Some(core) = lock(&self.core).as_mut() {
            core.block_start = None;
            core.segment_set = false;
        }
        self.parent_flush()
    }

    fn update_src_caps(&self, _caps: &gst::Caps) -> Result<gst::Caps, gst::FlowError> {
        lock(&self.job).as_ref().map(|job| job.caps.clone()).ok_or(gst::FlowError::NotNegotiated)
    }

    fn sink_event(&self, pad: &gst_base::AggregatorPad, event: gst::Event) -> bool {
        if let gst::EventView::Caps(caps) = event.view()
            && pad.name() == "base"
        {
            let Ok(info) = gst_video::VideoInfo::from_caps(caps.caps()) else { return false };
            if let Some(core) = lock(&self.core).as_mut() {
                core.base_info = Some(info);
            }
        }
        self.parent_sink_event(pad, event)
    }

    fn propose_allocation(
        &self,
        pad: &gst_base::AggregatorPad,
        decide: Option<&gst::query::Allocation>,
        query: &mut gst::query::Allocation,
    ) -> Result<(), gst::LoggableError> {
        if pad.name() == "base" {
            // Strides as the decoder likes them spare it a copy.
            query.add_allocation_meta::<gst_video::VideoMeta>(None);
        }
        self.parent_propose_allocation(pad, decide, query)
    }

    fn next_time(&self) -> Option<gst::ClockTime> {
        let base = self.base_pad()?;
        let head = base.peek_buffer()?.pts()?;
        base.segment().downcast_ref::<gst::ClockTime>()?.to_running_time(head)
    }

    fn aggregate(&self, _timeout: bool) -> Result<gst::FlowSuccess, gst::FlowError> {
        let Some(matched) = self.match_layers()? else { return Ok(gst::FlowSuccess::Ok) };
        let output = {
            let mut core = lock(&self.core);
            let core = core.as_mut().ok_or(gst::FlowError::Flushing)?;
            if !core.segment_set {
                core.segment_set = true;
                self.set_segment(matched.slot.show_from);
            }
            core.combine(self, &matched)?
        };
        let Some(output) = output else { return Ok(gst::FlowSuccess::Ok) };
        if let Some(pts) = output.pts() {
            self.obj().set_position(pts);
        }
        self.obj().finish_buffer(output)
    }
}

impl Combine {
    pub(super) fn set_job(&self, job: Job) {
        *lock(&self.job) = Some(job);
    }

    fn base_pad(&self) -> Option<gst_base::AggregatorPad> {
        self.obj().static_pad("base")?.downcast().ok()
    }

    fn enhancement_pads(&self) -> Vec<gst_base::AggregatorPad> {
        let pad = |number| self.obj().static_pad(&format!("enh_{number}"));
        (0..media::layer::MAX_LAYERS).map_while(pad).filter_map(|pad| pad.downcast().ok()).collect()
    }

    /// Running time starts with the first picture that is shown.
    fn set_segment(&self, start: u64) {
        let start = gst::ClockTime::from_nseconds(start);
        let mut segment = gst::FormattedSegment::<gst::ClockTime>::new();
        segment.set_start(start);
        segment.set_time(start);
        segment.set_position(start);
        self.obj().update_segment(&segment);
    }

    /// Takes the next Base picture off its pad, with its frames. Nothing if it
    /// is not to be combined; `NEED_DATA` if a pad has not answered yet.
    fn match_layers(&self) -> Result<Option<Matched>, gst::FlowError> {
        let base = self.base_pad().ok_or(gst::FlowError::Error)?;
        let Some(head) = base.peek_buffer() else {
            let end = if base.is_eos() { gst::FlowError::Eos } else { gst_base::AGGREGATOR_FLOW_NEED_DATA };
            return Err(end);
        };
        let schedule = lock(&self.job).as_ref().map(|job| job.schedule.clone());
        let slot = head.pts().and_then(|pts| schedule?.find(pts.nseconds()));
        let (Some(time), Some(slot), false) =
            (head.pts(), slot, head.flags().contains(gst::BufferFlags::GAP))
        else {
            gst::debug!(CATEGORY, imp = self, "no picture of this programme: {:?}", head);
            drop(base.pop_buffer());
            return Ok(None);
        };
        let pads = self.enhancement_pads();
        let mut frames = Vec::with_capacity(pads.len());
        for pad in &pads {
            match answer(pad, time) {
                Answer::Frame(frame) => frames.push(Some(frame)),
                Answer::Missing => frames.push(None),
                Answer::Unknown => return Err(gst_base::AGGREGATOR_FLOW_NEED_DATA),
            }
        }
        let base = base.pop_buffer().ok_or(gst_base::AGGREGATOR_FLOW_NEED_DATA)?;
        for (pad, frame) in pads.iter().zip(&frames) {
            if frame.is_some() {
                drop(pad.pop_buffer());
            }
        }
        Ok(Some(Matched { base, slot, frames }))
    }
}

impl Core {
    fn new(job: Job) -> Result<Self, String> {
        let display = gst_video::VideoInfo::from_caps(&job.caps).map_err(|error| error.to_string())?;
        let make = if job.halves { LayerDecoder::with_halves } else { LayerDecoder::new };
        let decoder = make(&job.ladder, &job.keys).map_err(|error| error.to_string())?;
        let (width, height) = job.ladder.size(0);
        let base = Picture::new(width, height).map_err(|error| error.to_string())?;
        let pool = gst_video::VideoBufferPool::new();
        let mut config = pool.config();
        let size = u32::try_from(display.size()).map_err(|error| error.to_string())?;
        config.set_params(Some(&job.caps), size, 2, 0);
        pool.set_config(config).map_err(|error| error.to_string())?;
        pool.set_active(true).map_err(|error| error.to_string())?;
        Ok(Self {
            job,
            decoder,
            base,
            base_info: None,
            display,
            pool,
            block_start: None,
            dropped: false,
            segment_set: false,
        })
    }

    fn close(&self) {
        // Deactivation only fails on a pool that was never active.
        let _ = self.pool.set_active(false);
    }

    /// Decodes one picture; nothing if it only leads to one that is shown.
    fn combine(
        &mut self,
        element: &Combine,
        matched: &Matched,
    ) -> Result<Option<gst::Buffer>, gst::FlowError> {
        let Matched { base, slot, frames } = matched;
        let info = self.base_info.as_ref().ok_or(gst::FlowError::NotNegotiated)?;
        let (width, height) = self.job.ladder.size(0);
        if (info.width(), info.height()) != (width, height) {
            gst::element_imp_error!(
                element,
                gst::StreamError::Format,
                ["Base is {}x{}, the manifest says {}x{}", info.width(), info.height(), width, height]
            );
            return Err(gst::FlowError::NotNegotiated);
        }
        let packed = &mut self.base;
        picture_io::with_picture(base, info, |picture| packed.copy_from(picture))
            .ok_or(gst::FlowError::Error)?;
        if self.block_start != Some(slot.start) {
            self.block_start = Some(slot.start);
            self.dropped = false;
            let at_hand = frames.iter().take_while(|frame| frame.is_some()).count();
            self.decoder.start_block(at_hand).map_err(|error| fail(element, &error))?;
        }
        let maps: Vec<_> = frames.iter().map_while(|frame| frame.as_ref()?.map_readable().ok()).collect();
        let slices: Vec<_> = maps.iter().map(|map| Some(map.as_slice())).collect();
        let decoded = self.decoder.decode(&self.base, &slices).map_err(|error| fail(element, &error))?;
        self.dropped |= decoded.failure.is_some();
        // Of the topmost layer of a step every other frame is missing, as it should be.
        let layers = match slot.half.map(|half| usize::from(half.layers())) {
            Some(half) if !self.dropped && slices.len() + 2 == half && decoded.layers + 1 == half => half,
            _ => decoded.layers,
        };
        if let Some(failure) = &decoded.failure {
            tracing::warn!(block = slot.block, layers = decoded.layers, %failure, "a layer was dropped");
        }
        let shown = base.pts().is_some_and(|pts| pts.nseconds() >= slot.show_from);
        if !shown {
            return Ok(None);
        }
        let mut output = self.pool.acquire_buffer(None)?;
        let inside = output.get_mut().ok_or(gst::FlowError::Error)?;
        picture_io::write_picture(inside, &self.display, decoded.picture).ok_or(gst::FlowError::Error)?;
        inside.set_pts(base.pts());
        inside.set_duration(base.duration());
        inside.set_offset(u64::from(slot.block));
        inside.set_offset_end(u64::try_from(layers).unwrap_or(0));
        Ok(Some(output))
    }
}

fn fail(element: &Combine, error: &codec::CodecError) -> gst::FlowError {
    gst::element_imp_error!(element, gst::StreamError::Decode, ["{}", error]);
    gst::FlowError::Error
}
