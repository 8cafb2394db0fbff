//! Ears in the pipeline: what leaves the Base source, what is shown and when,
//! which keys are pressed, what GStreamer says.
//!
//! All of this runs in GStreamer's threads: it notes, wakes the feed thread and
//! returns.

use super::error::PipelineError;
use super::events::{PipelineEvent, UserKey};
use super::front::Front;
use super::shared::Shared;
use super::sinks::Sinks;
use gst::prelude::*;
use gstreamer as gst;
use gstreamer_app as gst_app;
use gstreamer_video as gst_video;
use media::Span;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Pictures on their way from the combiner to a window: a short queue, one
/// being converted, one being shown.
const MAX_ON_THE_WAY: usize = 16;

/// Pictures on their way to a window. A window does not say what it shows, but
/// sends a quality-of-service event with the running time of each picture once
/// it was shown.
#[derive(Debug, Default)]
pub(crate) struct Screen(Mutex<VecDeque<(gst::ClockTime, gst::Buffer)>>);

impl Screen {
    fn waiting(&self) -> MutexGuard<'_, VecDeque<(gst::ClockTime, gst::Buffer)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets what was under way: a seek.
    pub(crate) fn clear(&self) {
        self.waiting().clear();
    }

    fn coming(&self, running: gst::ClockTime, buffer: gst::Buffer) {
        let mut waiting = self.waiting();
        if waiting.len() >= MAX_ON_THE_WAY {
            waiting.pop_front();
        }
        waiting.push_back((running, buffer));
    }

    /// The pictures that are on screen by now, with the time at which each
    /// came. There is no event for the first picture after a start: it came
    /// as much earlier as it was due.
    fn shown(&self, running: gst::ClockTime, now: Instant) -> Vec<(Instant, gst::Buffer)> {
        let mut waiting = self.waiting();
        let count = waiting.partition_point(|(due, _)| *due <= running);
        let at = |due: gst::ClockTime| {
            let earlier = Duration::from_nanos(running.saturating_sub(due).nseconds());
            now.checked_sub(earlier).unwrap_or(now)
        };
        waiting.drain(..count).map(|(due, buffer)| (at(due), buffer)).collect()
    }
}

/// Puts the ears in place.
pub(crate) fn attach(
    pipeline: &gst::Pipeline,
    front: &Front,
    sinks: &Sinks,
    shared: &Arc<Shared>,
) -> Result<Arc<Screen>, PipelineError> {
    let screen = Arc::new(Screen::default());
    hear_bus(pipeline, shared)?;
    hear_source(front, shared);
    hear_sound(sinks, shared);
    match sinks.video.downcast_ref::<gst_app::AppSink>() {
        Some(sink) => hear_app_sink(sink, shared),
        None => hear_window(front, sinks, shared, &screen),
    }
    Ok(screen)
}

fn hear_bus(pipeline: &gst::Pipeline, shared: &Arc<Shared>) -> Result<(), PipelineError> {
    let bus = pipeline.bus().ok_or_else(|| PipelineError::build("a pipeline without a bus"))?;
    let shared = shared.clone();
    bus.set_sync_handler(move |_, message| {
        match message.view() {
            gst::MessageView::Eos(_) => {
                if let Some(serial) = shared.end_reached() {
                    shared.events.send(PipelineEvent::EndOfStream { serial });
                }
            }
            gst::MessageView::Error(error) if closed_window(&error.error()) => {
                shared.events.send(PipelineEvent::Key(UserKey::Quit));
            }
            gst::MessageView::Error(error) => {
                let source = error.src().map(|source| source.name().to_string()).unwrap_or_default();
                let text = format!("{source}: {}", error.error());
                tracing::error!(%text, debug = ?error.debug(), "GStreamer failed");
                shared.events.send(PipelineEvent::Error(text));
            }
            gst::MessageView::Warning(warning) => {
                tracing::warn!(text = %warning.error(), "GStreamer warns");
            }
            _ => {}
        }
        gst::BusSyncReply::Drop
    });
    Ok(())
}

/// Who closes the window wants to leave: sinks report it as a lost resource.
fn closed_window(error: &gst::glib::Error) -> bool {
    error.matches(gst::ResourceError::NotFound)
}

fn hear_source(front: &Front, shared: &Arc<Shared>) {
    let Some(pad) = front.base.static_pad("src") else { return };
    let shared = shared.clone();
    pad.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
        if let Some(buffer) = info.buffer()
            && let Some(start) = buffer.pts()
        {
            let length = buffer.duration().unwrap_or(gst::ClockTime::ZERO);
            shared.consume((start + length).nseconds());
        }
        gst::PadProbeReturn::Ok
    });
}

fn hear_sound(sinks: &Sinks, shared: &Arc<Shared>) {
    let Some(pad) = sinks.sound.as_ref().and_then(|sink| sink.static_pad("sink")) else { return };
    let shared = shared.clone();
    pad.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
        let length = info.buffer().and_then(|buffer| buffer.duration());
        shared.watch.heard(Span::from_nanos(length.map_or(0, gst::ClockTime::nseconds)));
        gst::PadProbeReturn::Ok
    });
}

fn hear_app_sink(sink: &gst_app::AppSink, shared: &Arc<Shared>) {
    let shared = shared.clone();
    let callbacks = gst_app::AppSinkCallbacks::builder().new_sample(move |sink| {
        let now = Instant::now();
        let sample = sink.pull_sample().map_err(|_| gst::FlowError::Flushing)?;
        if let Some(buffer) = sample.buffer_owned() {
            shared.watch.shown(&buffer, now);
            shared.wake();
        }
        Ok(gst::FlowSuccess::Ok)
    });
    sink.set_callbacks(callbacks.build());
}

fn hear_window(front: &Front, sinks: &Sinks, shared: &Arc<Shared>, screen: &Arc<Screen>) {
    let coming = screen.clone();
    front.pictures.add_probe(gst::PadProbeType::BUFFER, move |pad, info| {
        if let Some(buffer) = info.buffer()
            && let Some(running) = running_time(pad, buffer)
        {
            coming.coming(running, buffer.clone());
        }
        gst::PadProbeReturn::Ok
    });
    let Some(pad) = sinks.video.static_pad("sink") else { return };
    let (shared, screen) = (shared.clone(), screen.clone());
    pad.add_probe(gst::PadProbeType::EVENT_UPSTREAM, move |_, info| {
        let now = Instant::now();
        let Some(event) = info.event() else { return gst::PadProbeReturn::Ok };
        if let gst::EventView::Qos(qos) = event.view() {
            let (_, _, _, running) = qos.get();
            for (at, buffer) in running.map(|running| screen.shown(running, now)).unwrap_or_default() {
                shared.watch.shown(&buffer, at);
            }
            shared.wake();
            // Nobody before the sink may drop pictures because of it. Handled,
            // not dropped: GStreamer 1.22 would free a dropped event again.
            return gst::PadProbeReturn::Handled;
        }
        if let Some(key) = pressed(event) {
            shared.events.send(PipelineEvent::Key(key));
        }
        gst::PadProbeReturn::Ok
    });
}

/// The key that a navigation event speaks of, if it has a meaning.
fn pressed(event: &gst::EventRef) -> Option<UserKey> {
    match gst_video::NavigationEvent::parse(event) {
        Ok(gst_video::NavigationEvent::KeyPress { key, .. }) => UserKey::from_name(&key),
        _ => None,
    }
}

fn running_time(pad: &gst::Pad, buffer: &gst::BufferRef) -> Option<gst::ClockTime> {
    let segment = pad.sticky_event::<gst::event::Segment>(0)?;
    segment.segment().downcast_ref::<gst::ClockTime>()?.to_running_time(buffer.pts()?)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]
mod tests {
    use super::*;

    #[test]
    fn keys_come_as_navigation_events() {
        gst::init().unwrap();
        let event = |name: &str| gst_video::NavigationEvent::new_key_press(name).build();
        assert_eq!(pressed(&event("Left")), Some(UserKey::SeekBack));
        assert_eq!(pressed(&event("F1")), None);
        assert_eq!(pressed(&gst::event::Eos::new()), None);
    }

    #[test]
    fn the_first_picture_came_as_much_earlier_as_it_was_due() {
        gst::init().unwrap();
        let screen = Screen::default();
        let time = gst::ClockTime::from_mseconds;
        for due in [0, 40, 80] {
            screen.coming(time(due), gst::Buffer::new());
        }
        let now = Instant::now() + Duration::from_secs(1);
        let shown: Vec<Instant> = screen.shown(time(40), now).into_iter().map(|shown| shown.0).collect();
        assert_eq!(shown, [now.checked_sub(Duration::from_millis(40)).unwrap(), now]);
        assert_eq!(screen.shown(time(80), now).len(), 1);
        screen.coming(time(120), gst::Buffer::new());
        screen.clear();
        assert_eq!(screen.shown(time(200), now), []);
    }
}
