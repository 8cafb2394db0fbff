//! Where pictures and sound end.

use super::error::PipelineError;
use super::front::make;
use gst::prelude::*;
use gstreamer as gst;
use gstreamer_app as gst_app;
use std::path::{Path, PathBuf};

/// Where pictures and sound go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SinkKind {
    /// Nowhere, but each at its time: for tests, reports and machines without
    /// a screen.
    Headless,
    /// A window, and the audio device if there is one.
    Window,
    /// Nowhere, as fast as it goes.
    Unpaced,
    /// Nowhere, and nothing is decoded: pictures are measured by their times alone.
    Light,
}

/// The sinks of a pipeline.
#[derive(Debug)]
pub(crate) struct Sinks {
    pub(crate) video: gst::Element,
    pub(crate) sound: Option<gst::Element>,
    /// Elements that must stand before the video sink.
    pub(crate) before_video: Vec<gst::Element>,
    /// Whether sound was wanted and no device was found.
    pub(crate) no_device: bool,
}

impl Sinks {
    /// Makes the sinks; without `sound` there is none.
    pub(crate) fn new(kind: SinkKind, sound: bool) -> Result<Self, PipelineError> {
        match kind {
            SinkKind::Headless | SinkKind::Unpaced | SinkKind::Light => {
                let paced = kind != SinkKind::Unpaced;
                let video = headless_video(paced).upcast();
                let sound = sound.then(|| silent_sound(paced)).transpose()?;
                Ok(Self { video, sound, before_video: Vec::new(), no_device: false })
            }
            SinkKind::Window => {
                let (sound, no_device) = if sound { device_sound()? } else { (None, false) };
                let before_video = vec![make("videoconvert")?, make("videoscale")?];
                Ok(Self { video: window()?, sound, before_video, no_device })
            }
        }
    }

    /// Ends every wait in the sinks and refuses data.
    pub(crate) fn flush_start(&self) {
        for pad in self.pads() {
            pad.send_event(gst::event::FlushStart::new());
        }
    }

    /// Takes data again; the running time starts at 0.
    pub(crate) fn flush_stop(&self) {
        for pad in self.pads() {
            pad.send_event(gst::event::FlushStop::new(true));
        }
    }

    fn pads(&self) -> impl Iterator<Item = gst::Pad> {
        let sinks = std::iter::once(&self.video).chain(&self.sound);
        sinks.filter_map(|sink| sink.static_pad("sink"))
    }
}

impl Drop for Sinks {
    fn drop(&mut self) {
        // A window was opened before there was a pipeline to close it.
        for sink in std::iter::once(&self.video).chain(&self.sound) {
            if sink.set_state(gst::State::Null).is_err() {
                tracing::debug!(sink = %sink.name(), "a sink did not stop");
            }
        }
    }
}

fn headless_video(paced: bool) -> gst_app::AppSink {
    // A picture is handed over after the wait for its time, and taken at once.
    gst_app::AppSink::builder()
        .name("screen")
        .sync(paced)
        .max_lateness(-1)
        .qos(false)
        .max_buffers(2)
        .drop(false)
        .enable_last_sample(false)
        .build()
}

/// Sound on the system clock, unheard.
fn silent_sound(paced: bool) -> Result<gst::Element, PipelineError> {
    let sink = make("fakesink")?;
    sink.set_property("sync", paced);
    sink.set_property("enable-last-sample", false);
    Ok(sink)
}

/// Whether a sound server or card can be there. Asking the sound libraries is
/// no way to find out: without any they write a page of complaints.
fn may_have_device() -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).unwrap_or_default();
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let card = || {
        let entries = std::fs::read_dir("/dev/snd").into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name()).any(|name| name.to_string_lossy().starts_with("pcm"))
    };
    set("PULSE_SERVER")
        || set("PIPEWIRE_REMOTE")
        || runtime.join("pulse/native").exists()
        || runtime.join("pipewire-0").exists()
        || Path::new("/run/pulse/native").exists()
        || home.join(".asoundrc").exists()
        || card()
}

/// The audio device, or silence if there is none.
fn device_sound() -> Result<(Option<gst::Element>, bool), PipelineError> {
    if !may_have_device() {
        return Ok((Some(silent_sound(true)?), true));
    }
    let auto = make("autoaudiosink")?;
    let ready = auto.set_state(gst::State::Ready).is_ok();
    let found = ready
        && auto.downcast_ref::<gst::Bin>().is_some_and(|bin| {
            bin.iterate_elements()
                .into_iter()
                .flatten()
                .any(|sink| sink.factory().is_some_and(|factory| factory.name() != "fakesink"))
        });
    if found {
        return Ok((Some(auto), false));
    }
    if auto.set_state(gst::State::Null).is_err() {
        tracing::debug!("autoaudiosink did not stop");
    }
    Ok((Some(silent_sound(true)?), true))
}

/// The first kind of window that opens here.
fn window() -> Result<gst::Element, PipelineError> {
    for name in ["ximagesink", "xvimagesink", "autovideosink"] {
        let Ok(sink) = make(name) else { continue };
        if sink.set_state(gst::State::Ready).is_err() {
            // It must be at rest before it is dropped.
            let _ = sink.set_state(gst::State::Null);
            continue;
        }
        for (property, value) in [("sync", true), ("qos", true), ("enable-last-sample", false)] {
            if sink.has_property(property) {
                sink.set_property(property, value);
            }
        }
        if sink.has_property("max-lateness") {
            // The default drops a picture that is 5 ms late, without a word.
            sink.set_property("max-lateness", -1_i64);
        }
        return Ok(sink);
    }
    Err(PipelineError::Build("no window can be opened (is DISPLAY set?)".into()))
}
