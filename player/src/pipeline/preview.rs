//! Small copies of what is shown, as JPEG pictures, for whoever looks in from
//! elsewhere.
//!
//! The player is never held back: a picture that comes while the one before is
//! still being scaled waits in a place for one, and the next one takes that place.
//! Who looks gets the latest, and never a queue.

use super::error::PipelineError;
use super::front::make;
use bytes::Bytes;
use gst::prelude::*;
use gstreamer as gst;
use gstreamer_app as gst_app;
use gstreamer_video as gst_video;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// The least and the most that a copy may be wide.
const WIDTHS: std::ops::RangeInclusive<u32> = 16..=1_280;
/// The longest picture that is passed on, in bytes.
const MAX_BYTES: usize = 1024 * 1024;
/// Of 100: such that edges are clean at half size.
const JPEG_QUALITY: i32 = 74;

/// Where small copies go. Shared by who looks and any number of pipelines, one
/// after the other.
#[derive(Debug)]
pub struct Preview {
    width: u32,
    every: Duration,
    pictures: watch::Sender<Bytes>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// When the last copy was begun.
    last: Option<Instant>,
    press: Option<Press>,
}

/// From a picture to a JPEG: `appsrc ! videoscale ! jpegenc ! appsink`.
#[derive(Debug)]
struct Press {
    pipeline: gst::Pipeline,
    source: gst_app::AppSrc,
    size: (u32, u32),
}

impl Preview {
    /// Copies of at most this width in pixels (16 to 1280), at most so many a
    /// second (1 to 60).
    pub fn new(width: u32, per_second: u32) -> Arc<Self> {
        let (pictures, _) = watch::channel(Bytes::new());
        let width = width.clamp(*WIDTHS.start(), *WIDTHS.end());
        let every = Duration::from_secs(1) / per_second.clamp(1, 60);
        Arc::new(Self { width, every, pictures, state: Mutex::default() })
    }

    /// The latest copy, a JPEG; empty until there is one.
    pub fn pictures(&self) -> watch::Receiver<Bytes> {
        self.pictures.subscribe()
    }

    /// A picture was shown. Without anybody who looks this costs nothing.
    pub(crate) fn shown(&self, buffer: &gst::Buffer, info: &gst_video::VideoInfo, at: Instant) {
        if self.pictures.receiver_count() == 0 {
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.last.is_some_and(|last| at.saturating_duration_since(last) < self.every) {
            return;
        }
        state.last = Some(at);
        self.ready(&mut state, info);
        if let Some(press) = &state.press {
            press.push(buffer);
        }
    }

    /// Makes everything for pictures like these, before the first is shown.
    pub(crate) fn prepare(&self, info: &gst_video::VideoInfo) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.ready(&mut state, info);
    }

    fn ready(&self, state: &mut State, info: &gst_video::VideoInfo) {
        let size = (info.width(), info.height());
        if state.press.as_ref().is_some_and(|press| press.size == size) {
            return;
        }
        state.press = Press::new(info, self.width, self.pictures.clone())
            .inspect_err(|error| tracing::warn!(%error, "there are no copies of what is shown"))
            .ok();
    }
}

impl Press {
    fn new(
        info: &gst_video::VideoInfo,
        width: u32,
        pictures: watch::Sender<Bytes>,
    ) -> Result<Self, PipelineError> {
        let size = (info.width(), info.height());
        let (wide, high) = scaled(size, width);
        let source = gst_app::AppSrc::builder()
            .caps(&info.to_caps().map_err(PipelineError::build)?)
            .format(gst::Format::Time)
            .is_live(true)
            .max_buffers(1)
            .leaky_type(gst_app::AppLeakyType::Downstream)
            .build();
        let small = gst::Caps::builder("video/x-raw")
            .field("width", i32::try_from(wide).unwrap_or(i32::MAX))
            .field("height", i32::try_from(high).unwrap_or(i32::MAX))
            .field("pixel-aspect-ratio", gst::Fraction::new(1, 1))
            .build();
        let sink = gst_app::AppSink::builder().sync(false).max_buffers(1).drop(true).build();
        let pass_on = gst_app::AppSinkCallbacks::builder().new_sample(move |sink| {
            let sample = sink.pull_sample().map_err(|_| gst::FlowError::Flushing)?;
            if let Some(map) = sample.buffer().and_then(|buffer| buffer.map_readable().ok())
                && map.len() <= MAX_BYTES
            {
                pictures.send_replace(Bytes::copy_from_slice(&map));
            }
            Ok(gst::FlowSuccess::Ok)
        });
        sink.set_callbacks(pass_on.build());
        let (scale, jpeg) = (make("videoscale")?, make("jpegenc")?);
        let filter = make("capsfilter")?;
        filter.set_property("caps", &small);
        jpeg.set_property("quality", JPEG_QUALITY);
        let pipeline = gst::Pipeline::with_name("preview");
        let chain = [source.upcast_ref(), &scale, &filter, &jpeg, sink.upcast_ref::<gst::Element>()];
        pipeline.add_many(chain).map_err(PipelineError::build)?;
        gst::Element::link_many(chain).map_err(PipelineError::build)?;
        pipeline.set_state(gst::State::Playing).map_err(PipelineError::build)?;
        Ok(Self { pipeline, source, size })
    }

    /// Hands a picture over; one that still waits there is dropped.
    fn push(&self, buffer: &gst::Buffer) {
        let mut copy = buffer.copy();
        if let Some(copy) = copy.get_mut() {
            // Copies follow one another as they are shown, whatever the film's times.
            copy.set_pts(gst::ClockTime::NONE);
            copy.set_dts(gst::ClockTime::NONE);
        }
        if self.source.push_buffer(copy).is_err() {
            tracing::debug!("a copy was not taken");
        }
    }
}

impl Drop for Press {
    fn drop(&mut self) {
        if self.pipeline.set_state(gst::State::Null).is_err() {
            tracing::debug!("the copies did not stop");
        }
    }
}

/// The size at most `width` wide, even in both directions, of the same shape.
fn scaled((width, height): (u32, u32), most: u32) -> (u32, u32) {
    let wide = width.min(most).max(2) & !1;
    let high = u64::from(height) * u64::from(wide) / u64::from(width.max(1));
    (wide, u32::try_from(high).unwrap_or(most).max(2) & !1)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]
mod tests {
    use super::*;

    #[test]
    fn a_copy_keeps_its_shape_and_is_never_larger() {
        assert_eq!(scaled((1_280, 720), 480), (480, 270));
        assert_eq!(scaled((320, 180), 480), (320, 180));
        assert_eq!(scaled((720, 1_280), 481), (480, 852));
    }

    #[tokio::test]
    async fn who_looks_gets_the_latest_and_a_bounded_number_of_them() {
        super::super::init().unwrap();
        let info = gst_video::VideoInfo::builder(gst_video::VideoFormat::I420, 64, 36).build().unwrap();
        let preview = Preview::new(32, 10);
        let picture = |grey: u8| gst::Buffer::from_slice(vec![grey; info.size()]);
        let began = Instant::now();
        preview.shown(&picture(0), &info, began);
        assert!(preview.state.lock().unwrap().last.is_none(), "nobody looks");
        let mut looking = preview.pictures();
        preview.shown(&picture(20), &info, began);
        looking.changed().await.unwrap();
        let first = looking.borrow_and_update().clone();
        assert_eq!(first[..2], [0xff, 0xd8], "a JPEG");
        preview.shown(&picture(220), &info, began + Duration::from_millis(60));
        assert_eq!(preview.state.lock().unwrap().last, Some(began), "too soon");
        preview.shown(&picture(220), &info, began + Duration::from_millis(100));
        looking.changed().await.unwrap();
        assert_ne!(*looking.borrow_and_update(), first);
    }
}
