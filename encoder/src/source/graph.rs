//! The GStreamer pipeline that decodes a film.

use super::RawInfo;
use super::audio::AudioFormat;
use crate::drive::{make, signed_nanos};
use crate::error::EncodeError;
use bytes::Bytes;
use gstreamer as gst;
use gstreamer::prelude::*;
use gstreamer_app::AppSink;
use gstreamer_video as gst_video;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long nothing may come before the film is given up.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long one wait lasts before signs of trouble are looked for.
const GLANCE: Duration = Duration::from_millis(20);
/// Decoded pictures that wait to be read.
const WAITING_PICTURES: u32 = 4;
/// Frames of sound that wait to be read: three minutes, more than any film has
/// between its sound and its pictures.
const WAITING_SOUND: u32 = 8_192;
/// Samples that `avenc_aac` puts before the sound.
const MADE_PRIMING: u32 = 1_024;

/// One look into the pipeline.
pub(super) enum Pulled<T> {
    /// Something came.
    Item(T),
    /// Nothing yet.
    Later,
    /// Nothing will come any more.
    End,
}

/// A decoded picture as it came.
pub(super) struct RawPicture {
    pub(super) info: RawInfo,
    /// Running time in nanoseconds.
    pub(super) time: i64,
    /// In nanoseconds.
    pub(super) duration: Option<u64>,
    pub(super) buffer: gst::Buffer,
}

/// What the streaming threads tell.
#[derive(Default)]
struct Heard {
    video: Option<AppSink>,
    audio: Option<AppSink>,
    all_pads: bool,
    failed: Option<String>,
    warnings: Vec<String>,
}

/// The running pipeline.
pub(super) struct Graph {
    pipeline: gst::Pipeline,
    bus: gst::Bus,
    heard: Arc<Mutex<Heard>>,
    progress: Instant,
    /// The format last seen, and what it says.
    seen: Option<(gst::Caps, RawInfo)>,
    /// The time that a picture without one gets.
    next_time: i64,
    /// Whether sound is made anew.
    made: bool,
    /// Pulled to learn the format, and not read yet.
    first_sound: Option<gst::Sample>,
    sound_caps: Option<gst::Caps>,
}

fn lock(heard: &Mutex<Heard>) -> MutexGuard<'_, Heard> {
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Nominal pictures a second, 25 if the film does not say.
pub(super) fn rate(info: &RawInfo) -> (u32, u32) {
    let fps = info.fps();
    let positive = |n: i32| u32::try_from(n).ok().filter(|n| *n > 0);
    positive(fps.numer()).zip(positive(fps.denom())).unwrap_or((25, 1))
}

impl Graph {
    /// Starts decoding. With `pass_aac` compressed AAC is taken as it is.
    pub(super) fn start(path: &Path, pass_aac: bool) -> Result<Self, EncodeError> {
        let unreadable = |source| EncodeError::Unreadable { path: path.to_owned(), source };
        let whole = path.canonicalize().map_err(unreadable)?;
        let length = std::fs::File::open(&whole).and_then(|file| file.metadata()).map_err(unreadable)?;
        if !length.is_file() {
            return Err(unreadable(std::io::Error::other("it is no file")));
        }
        if length.len() == 0 {
            return Err(EncodeError::NoFilm { why: "it is empty".into() });
        }
        let uri = gst::glib::filename_to_uri(&whole, None)
            .map_err(|error| unreadable(std::io::Error::other(error.to_string())))?;
        let decoder = make("uridecodebin")?;
        // Any memory is taken here; the elements behind ask for plain memory.
        let raw = |name: &str| gst::Structure::new_empty(name);
        let mut formats = gst::Caps::builder_full()
            .structure_with_any_features(raw("video/x-raw"))
            .structure_with_any_features(raw("audio/x-raw"));
        if pass_aac {
            formats =
                formats.structure(gst::Structure::builder("audio/mpeg").field("mpegversion", 4_i32).build());
        }
        decoder.set_property("uri", uri.as_str());
        decoder.set_property("caps", formats.build());
        decoder.set_property("expose-all-streams", false);
        let pipeline = gst::Pipeline::new();
        let failed = |why: &str| EncodeError::NoFilm { why: why.to_owned() };
        pipeline.add(&decoder).map_err(|_| failed("the pipeline cannot be built"))?;
        let bus = pipeline.bus().ok_or_else(|| failed("the pipeline cannot be watched"))?;
        let heard = Arc::new(Mutex::new(Heard::default()));
        listen(&decoder, &pipeline, &heard);
        let graph = Self {
            pipeline,
            bus,
            heard,
            progress: Instant::now(),
            seen: None,
            next_time: 0,
            made: !pass_aac,
            first_sound: None,
            sound_caps: None,
        };
        if graph.pipeline.set_state(gst::State::Playing).is_err() {
            graph.check()?;
            return Err(failed("it cannot be opened"));
        }
        Ok(graph)
    }

    /// Waits until all streams are known. False if the sound must be made anew.
    pub(super) fn preroll(&mut self, cancel: &AtomicBool) -> Result<bool, EncodeError> {
        loop {
            self.glance(cancel)?;
            let (all, video, audio) = {
                let heard = lock(&self.heard);
                (heard.all_pads, heard.video.is_some(), heard.audio.clone())
            };
            if !all {
                std::thread::sleep(Duration::from_millis(1));
                continue;
            }
            if !video {
                self.check()?;
                return Err(EncodeError::NoVideo);
            }
            let Some(audio) = audio else { return Ok(true) };
            self.first_sound = audio.try_pull_sample(clock_time(GLANCE));
            if self.first_sound.is_none() && !audio.is_eos() {
                continue;
            }
            self.sound_caps = self.first_sound.as_ref().and_then(|sample| sample.caps_owned());
            if self.audio_format().is_some() {
                return Ok(true);
            }
            if !self.made && self.first_sound.is_some() {
                return Ok(false);
            }
            lock(&self.heard).audio = None;
            self.warn("the sound cannot be used; the title is silent");
            return Ok(true);
        }
    }

    /// What the first frame of sound says; none without sound or if it is not
    /// AAC-LC.
    pub(super) fn audio_format(&self) -> Option<AudioFormat> {
        let config = self.sound_caps.as_ref()?.structure(0)?.get::<gst::Buffer>("codec_data").ok()?;
        let config = config.map_readable().ok()?;
        AudioFormat::parse(&config, if self.made { MADE_PRIMING } else { 0 })
    }

    /// The next decoded picture; `wait` waits a little for it.
    pub(super) fn next_picture(
        &mut self,
        wait: bool,
        cancel: &AtomicBool,
    ) -> Result<Pulled<RawPicture>, EncodeError> {
        self.glance(cancel)?;
        let sink = lock(&self.heard).video.clone();
        let Some(sink) = sink else { return Ok(Pulled::End) };
        let Some(sample) =
            sink.try_pull_sample(clock_time(if wait { GLANCE } else { Duration::from_millis(2) }))
        else {
            return self.nothing(&sink);
        };
        self.progress = Instant::now();
        let caps = sample.caps().ok_or(EncodeError::Picture("a picture without a format".into()))?;
        let info = self.info(caps)?;
        let mut buffer = sample.buffer_owned().ok_or(EncodeError::Picture("an empty sample".into()))?;
        let said = running_time(&sample, buffer.pts());
        let time = said.unwrap_or(self.next_time);
        let duration = buffer.duration().map(gst::ClockTime::nseconds);
        let nominal = gst::ClockTime::SECOND
            .mul_div_floor(u64::from(rate(&info).1), u64::from(rate(&info).0))
            .map_or(40_000_000, gst::ClockTime::nseconds);
        self.next_time = time.saturating_add(i64::try_from(duration.unwrap_or(nominal)).unwrap_or(0));
        // The pool's picture is copied at once by the caller; nothing is held.
        buffer.make_mut();
        Ok(Pulled::Item(RawPicture { info, time, duration, buffer }))
    }

    /// The next frame of sound and its running time in nanoseconds.
    pub(super) fn next_sound(
        &mut self,
        wait: bool,
        cancel: &AtomicBool,
    ) -> Result<Pulled<(i64, Bytes)>, EncodeError> {
        self.glance(cancel)?;
        let sink = lock(&self.heard).audio.clone();
        let Some(sink) = sink else { return Ok(Pulled::End) };
        let wait = if wait { GLANCE } else { Duration::ZERO };
        let sample = self.first_sound.take().or_else(|| sink.try_pull_sample(clock_time(wait)));
        let Some(sample) = sample else { return self.nothing(&sink) };
        self.progress = Instant::now();
        let frame = sample.buffer().and_then(|buffer| {
            let time = running_time(&sample, buffer.pts())?;
            Some((time, Bytes::copy_from_slice(&buffer.map_readable().ok()?)))
        });
        // A frame without a time cannot be placed.
        Ok(frame.filter(|(_, data)| !data.is_empty()).map_or(Pulled::Later, Pulled::Item))
    }

    /// How long the film says it is.
    pub(super) fn length(&self) -> Option<media::Span> {
        let length = self.pipeline.query_duration::<gst::ClockTime>()?;
        Some(media::Span::from_nanos(length.nseconds()))
    }

    /// Whether nothing has come for so long that nothing will.
    pub(super) fn stalled(&self) -> bool {
        self.progress.elapsed() > PATIENCE / 2
    }

    /// Adds something that people should know.
    pub(super) fn warn(&self, text: &str) {
        let mut heard = lock(&self.heard);
        if !heard.warnings.iter().any(|known| known == text) {
            heard.warnings.push(text.to_owned());
        }
    }

    /// All that people should know.
    pub(super) fn warnings(&self) -> Vec<String> {
        lock(&self.heard).warnings.clone()
    }

    fn info(&mut self, caps: &gst::CapsRef) -> Result<RawInfo, EncodeError> {
        if let Some((seen, info)) = &self.seen
            && seen.as_ref() == caps
        {
            return Ok(info.clone());
        }
        let info = gst_video::VideoInfo::from_caps(caps)
            .map_err(|_| EncodeError::Picture(format!("unknown pictures: {caps}")))?;
        if info.interlace_mode() != gst_video::VideoInterlaceMode::Progressive {
            self.warn("the film is interlaced; its fields are coded as they are, woven");
        }
        self.seen = Some((caps.to_owned(), info.clone()));
        Ok(info)
    }

    fn nothing<T>(&self, sink: &AppSink) -> Result<Pulled<T>, EncodeError> {
        if sink.is_eos() {
            self.check()?;
            return Ok(Pulled::End);
        }
        if self.progress.elapsed() > PATIENCE {
            return Err(EncodeError::Stalled { seconds: PATIENCE.as_secs() });
        }
        Ok(Pulled::Later)
    }

    fn glance(&self, cancel: &AtomicBool) -> Result<(), EncodeError> {
        if cancel.load(Ordering::Relaxed) {
            return Err(EncodeError::Cancelled);
        }
        if self.progress.elapsed() > PATIENCE {
            return Err(EncodeError::Stalled { seconds: PATIENCE.as_secs() });
        }
        self.check()
    }

    /// Looks for what the pipeline says about its failure.
    fn check(&self) -> Result<(), EncodeError> {
        let failed = lock(&self.heard).failed.clone();
        if let Some(why) = failed {
            return Err(EncodeError::NoFilm { why });
        }
        let Some(message) = self.bus.pop_filtered(&[gst::MessageType::Error]) else { return Ok(()) };
        let gst::MessageView::Error(error) = message.view() else { return Ok(()) };
        let why = error.error().to_string();
        match self.seen {
            // It breaks off later than at the first picture.
            Some(_) => Err(EncodeError::Broken {
                why,
                at: media::Span::from_nanos(u64::try_from(self.next_time).unwrap_or(0)),
            }),
            None => Err(EncodeError::NoFilm { why }),
        }
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // Nothing depends on how it stops.
        let _ = self.pipeline.set_state(gst::State::Null);
    }
}

fn clock_time(wait: Duration) -> gst::ClockTime {
    gst::ClockTime::try_from(wait).unwrap_or(gst::ClockTime::ZERO)
}

fn running_time(sample: &gst::Sample, pts: Option<gst::ClockTime>) -> Option<i64> {
    let segment = sample.segment()?.downcast_ref::<gst::ClockTime>()?;
    signed_nanos(segment.to_running_time_full(pts?)?)
}

/// Links each stream that the decoder finds: the first video, the first sound.
fn listen(decoder: &gst::Element, pipeline: &gst::Pipeline, heard: &Arc<Mutex<Heard>>) {
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
        let (chain, warning) = video_chain(caps)?;
        attach(pipeline, pad, chain, &sink)?;
        let mut heard = lock(heard);
        heard.video = Some(sink);
        heard.warnings.extend(warning);
    } else if name.starts_with("audio/") && !have_audio {
        let sink = sink(WAITING_SOUND);
        attach(pipeline, pad, audio_chain(&name)?, &sink)?;
        lock(heard).audio = Some(sink);
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

/// 8-bit 4:2:0 passes untouched; anything else is converted, with its own
/// range and matrix kept, since the converter would choose others.
fn video_chain(caps: &gst::Caps) -> Result<(Vec<gst::Element>, Option<String>), String> {
    let make = |name| make(name).map_err(|error| error.to_string());
    let flip = make("videoflip")?;
    flip.set_property_from_str("video-direction", "auto");
    let info = gst_video::VideoInfo::from_caps(caps).map_err(|_| format!("unknown pictures: {caps}"))?;
    if info.format() == gst_video::VideoFormat::I420 {
        return Ok((vec![flip], None));
    }
    let (convert, filter) = (make("videoconvert")?, make("capsfilter")?);
    // RGB has no matrix to keep; the converter's choice is the usual one.
    let rgb = info.format_info().is_rgb();
    let wanted = gst::Caps::builder("video/x-raw").field("format", "I420");
    let colorimetry = info.colorimetry().to_string();
    let wanted = if rgb { wanted } else { wanted.field("colorimetry", colorimetry) };
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
fn audio_chain(name: &str) -> Result<Vec<gst::Element>, String> {
    let make = |name| make(name).map_err(|error| error.to_string());
    let filter = |caps: gst::Caps| {
        let filter = make("capsfilter")?;
        filter.set_property("caps", caps);
        Ok::<_, String>(filter)
    };
    let raw_aac = gst::Caps::builder("audio/mpeg").field("mpegversion", 4_i32).field("stream-format", "raw");
    if name == "audio/mpeg" {
        return Ok(vec![make("aacparse")?, filter(raw_aac.build())?]);
    }
    let rates = gst::List::new([48_000_i32, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000]);
    let layout = gst::Caps::builder("audio/x-raw")
        .field("rate", rates)
        .field("channels", gst::IntRange::new(1_i32, 6))
        .build();
    let encoder = make("avenc_aac")?;
    encoder.set_property("bitrate", 160_000_i32);
    Ok(vec![
        make("audioconvert")?,
        make("audioresample")?,
        filter(layout)?,
        encoder,
        filter(raw_aac.build())?,
    ])
}
