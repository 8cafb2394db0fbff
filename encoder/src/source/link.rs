//! Linking what the decoder finds to sinks, converted as far as needed.

use super::overlooked::Overlooked;
use crate::drive::make;
use gstreamer as gst;
use gstreamer::prelude::*;
use gstreamer_app::AppSink;
use gstreamer_video as gst_video;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Decoded pictures that wait to be read.
const WAITING_PICTURES: u32 = 4;
/// Frames of sound that wait to be read: three minutes, more than any film has
/// between its sound and its pictures.
const WAITING_SOUND: u32 = 8_192;

/// What the streaming threads tell.
#[derive(Default)]
pub(super) struct Heard {
    pub(super) video: Option<AppSink>,
    pub(super) audio: Option<AppSink>,
    /// Whether the sound is made anew instead of passed through.
    pub(super) made: bool,
    pub(super) all_pads: bool,
    pub(super) failed: Option<String>,
    /// What the header of the film says of its tracks.
    pub(super) overlooked: Overlooked,
    /// Whether samples use all values from 0 to 255 although the format does not say so.
    pub(super) full_range: bool,
    /// Codings that nothing here decodes.
    pub(super) undecoded: Vec<String>,
    pub(super) warnings: Vec<String>,
}

pub(super) fn lock(heard: &Mutex<Heard>) -> MutexGuard<'_, Heard> {
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Links each stream that the decoder finds: the first video, the first sound.
pub(super) fn listen(decoder: &gst::Element, pipeline: &gst::Pipeline, heard: &Arc<Mutex<Heard>>) {
    let (weak, state) = (pipeline.downgrade(), Arc::clone(heard));
    decoder.connect_pad_added(move |_, pad| {
        let Some(pipeline) = weak.upgrade() else { return };
        let caps = pad.current_caps().unwrap_or_else(|| pad.query_caps(None));
        if let Err(why) = link(&pipeline, pad, &caps, &state) {
            lock(&state).failed = Some(why);
        }
    });
    let state = Arc::clone(heard);
    decoder.connect_no_more_pads(move |_| lock(&state).all_pads = true);
}

fn link(
    pipeline: &gst::Pipeline,
    pad: &gst::Pad,
    caps: &gst::Caps,
    heard: &Mutex<Heard>,
) -> Result<(), String> {
    let name = caps.structure(0).map(|structure| structure.name().to_string()).unwrap_or_default();
    let (have_video, have_audio) = {
        let heard = lock(heard);
        (heard.video.is_some(), heard.audio.is_some())
    };
    if name.starts_with("video/") && !have_video {
        let sink = sink(WAITING_PICTURES);
        let stream = pad.stream_id().unwrap_or_default();
        let track = lock(heard).overlooked.track(&stream).cloned();
        let (chain, warning) = video_chain(caps, track.as_ref().is_some_and(|track| track.mirrored))?;
        attach(pipeline, pad, chain, &sink)?;
        let mut heard = lock(heard);
        heard.video = Some(sink);
        heard.full_range = track.is_some_and(|track| track.full_range) || unheard_range(caps);
        heard.warnings.extend(warning);
    } else if name.starts_with("audio/") && !have_audio {
        let sink = sink(WAITING_SOUND);
        attach(pipeline, pad, audio_chain(caps)?, &sink)?;
        let mut heard = lock(heard);
        heard.audio = Some(sink);
        heard.made = name != "audio/mpeg";
    } else {
        let unused = make("fakesink").map_err(|error| error.to_string())?;
        unused.set_property("sync", false);
        unused.set_property("async", false);
        join(pipeline, pad, &[unused])?;
    }
    Ok(())
}

fn sink(waiting: u32) -> AppSink {
    AppSink::builder().sync(false).max_buffers(waiting).enable_last_sample(false).wait_on_eos(false).build()
}

fn attach(
    pipeline: &gst::Pipeline,
    pad: &gst::Pad,
    mut chain: Vec<gst::Element>,
    sink: &AppSink,
) -> Result<(), String> {
    chain.push(sink.clone().upcast());
    join(pipeline, pad, &chain)
}

fn join(pipeline: &gst::Pipeline, pad: &gst::Pad, chain: &[gst::Element]) -> Result<(), String> {
    pipeline.add_many(chain).map_err(|error| error.to_string())?;
    gst::Element::link_many(chain).map_err(|error| error.to_string())?;
    for element in chain {
        element.sync_state_with_parent().map_err(|error| error.to_string())?;
    }
    let first = chain.first().and_then(|element| element.static_pad("sink"));
    let first = first.ok_or("an element without an input")?;
    pad.link(&first).map(|_| ()).map_err(|error| error.to_string())
}

/// Whether a format says that samples use all values, and does not say with which
/// matrix: then it is read as if it had said nothing.
fn unheard_range(caps: &gst::Caps) -> bool {
    let said = caps.structure(0).and_then(|structure| structure.get::<String>("colorimetry").ok());
    let said = said.and_then(|said| said.parse::<gst_video::VideoColorimetry>().ok());
    let info = gst_video::VideoInfo::from_caps(caps).ok();
    info.is_some_and(|info| info.format_info().is_yuv())
        && said.is_some_and(|said| said.range() == gst_video::VideoColorRange::Range0_255)
}

/// 8-bit 4:2:0 passes untouched; anything else is converted, with its own
/// range and matrix kept, since the converter would choose others.
fn video_chain(caps: &gst::Caps, mirrored: bool) -> Result<(Vec<gst::Element>, Option<String>), String> {
    let make = |name| make(name).map_err(|error| error.to_string());
    let flip = make("videoflip")?;
    flip.set_property_from_str("video-direction", if mirrored { "ur-ll" } else { "auto" });
    if !caps.is_fixed() {
        // Not decided before the first picture: whatever it is, make it I420.
        let (convert, filter) = (make("videoconvert")?, make("capsfilter")?);
        filter.set_property("caps", gst::Caps::builder("video/x-raw").field("format", "I420").build());
        return Ok((vec![convert, filter, flip], None));
    }
    let info = gst_video::VideoInfo::from_caps(caps).map_err(|_| format!("unknown pictures: {caps}"))?;
    if info.format() == gst_video::VideoFormat::I420 {
        return Ok((vec![flip], None));
    }
    let (convert, filter) = (make("videoconvert")?, make("capsfilter")?);
    // RGB and grey have no matrix to keep; the converter's choice is the usual one.
    let matrix = info.colorimetry().matrix() != gst_video::VideoColorMatrix::Unknown;
    let kept = matrix && !info.format_info().is_rgb();
    let wanted = gst::Caps::builder("video/x-raw").field("format", "I420");
    let colorimetry = info.colorimetry().to_string();
    let wanted = if kept { wanted.field("colorimetry", colorimetry) } else { wanted };
    filter.set_property("caps", wanted.build());
    let same_samples = matches!(
        info.format(),
        gst_video::VideoFormat::Nv12 | gst_video::VideoFormat::Nv21 | gst_video::VideoFormat::Yv12
    );
    let warning = (!same_samples)
        .then(|| format!("the pictures are {} and were converted to 8-bit 4:2:0", info.format().to_str()));
    Ok((vec![convert, filter, flip], warning))
}

/// AAC is only repacked; decoded sound is made AAC-LC.
fn audio_chain(caps: &gst::Caps) -> Result<Vec<gst::Element>, String> {
    let make = |name| make(name).map_err(|error| error.to_string());
    let filter = |caps: gst::Caps| {
        let filter = make("capsfilter")?;
        filter.set_property("caps", caps);
        Ok::<_, String>(filter)
    };
    let raw_aac = gst::Caps::builder("audio/mpeg").field("mpegversion", 4_i32).field("stream-format", "raw");
    if caps.structure(0).is_some_and(|structure| structure.name() == "audio/mpeg") {
        return Ok(vec![make("aacparse")?, filter(raw_aac.build())?]);
    }
    let encoder = make("avenc_aac")?;
    encoder.set_property("bitrate", 160_000_i32);
    let placed = places(caps).map(|places| {
        let setter = make("capssetter")?;
        let places = gst::Caps::builder("audio/x-raw").field("channel-mask", gst::Bitmask(places));
        setter.set_property("caps", places.build());
        Ok::<_, String>(setter)
    });
    let rest = [
        make("audioconvert")?,
        make("audioresample")?,
        filter(wanted_sound())?,
        encoder,
        filter(raw_aac.build())?,
    ];
    Ok(placed.transpose()?.into_iter().chain(rest).collect())
}

/// Where the channels belong of a format that has several and does not say it.
fn places(caps: &gst::Caps) -> Option<u64> {
    let structure = caps.structure(0)?;
    let channels = structure.get::<i32>("channels").ok().filter(|channels| *channels > 2)?;
    let told = structure.get::<gst::Bitmask>("channel-mask").ok().is_some_and(|mask| mask.0 != 0);
    LAYOUTS.iter().find(|(count, _)| *count == channels && !told).map(|(_, places)| *places)
}

/// Layouts of channels that AAC has a number for, by their count and their places
/// (front left 1, front right 2, front centre 4, LFE 8, rear 16 and 32, rear centre 256).
/// What has none of them becomes the first, which has room for most.
const LAYOUTS: [(i32, u64); 6] = [(6, 0x3f), (5, 0x37), (4, 0x107), (3, 0x7), (2, 0x3), (1, 0)];

/// The rates and layouts that decoded sound may be made into.
fn wanted_sound() -> gst::Caps {
    let rates =
        || gst::List::new([48_000_i32, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000]);
    let mut wanted = gst::Caps::builder_full();
    for (channels, places) in LAYOUTS {
        let layout =
            gst::Structure::builder("audio/x-raw").field("rate", rates()).field("channels", channels);
        let placed = places != 0;
        let layout = if placed { layout.field("channel-mask", gst::Bitmask(places)) } else { layout };
        wanted = wanted.structure(layout.build());
    }
    wanted.build()
}
