//! The GStreamer pipeline that decodes a film.

use super::RawInfo;
use super::animated::GifCopy;
use super::audio::AudioFormat;
use super::edits::{Cut, Edits};
use super::link::{Heard, listen, lock};
use super::notice;
use super::overlooked::Overlooked;
use super::tap::Tap;
use super::tracks;
use crate::drive::make;
use crate::error::EncodeError;
use crate::input::Input;
use bytes::Bytes;
use gstreamer as gst;
use gstreamer::prelude::*;
use gstreamer_video as gst_video;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long nothing may come before the film is given up.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long one wait lasts before signs of trouble are looked for.
const GLANCE: Duration = Duration::from_millis(20);
/// How long nothing comes from a film that has failed.
const LULL: Duration = Duration::from_secs(1);
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

/// The running pipeline.
pub(super) struct Graph {
    pipeline: gst::Pipeline,
    bus: gst::Bus,
    heard: Arc<Mutex<Heard>>,
    /// Since when nothing has come while something was wanted.
    quiet: Option<Instant>,
    /// When the film was last asked for something.
    asked: Instant,
    /// Whether all that was decoded before a fault is wanted.
    forgiving: bool,
    /// The format last seen, and what it says.
    seen: Option<(gst::Caps, RawInfo)>,
    /// The time that a picture without one gets.
    next_time: i64,
    /// Whether decoded pictures follow each other without times of their own.
    untimed: bool,
    /// Whether sound is made anew.
    made: bool,
    video: Option<Tap>,
    audio: Option<Tap>,
    sound_caps: Option<gst::Caps>,
    edits: Option<Edits>,
    /// What is read instead of the film.
    copy: Option<GifCopy>,
    /// What the edits leave of the pictures and of the sound.
    cuts: (Option<Cut>, Option<Cut>),
}

/// Nominal pictures a second, 25 if the film does not say.
pub(super) fn rate(info: &RawInfo) -> (u32, u32) {
    let fps = info.fps();
    let positive = |n: i32| u32::try_from(n).ok().filter(|n| *n > 0);
    positive(fps.numer()).zip(positive(fps.denom())).unwrap_or((25, 1))
}

/// Decoders shall tell what they cannot decode instead of passing over it.
fn strict(pipeline: &gst::Pipeline) {
    pipeline.connect_deep_element_added(|_, _, element| {
        let bound = element.find_property("max-errors");
        if bound.is_some_and(|bound| bound.value_type() == gst::glib::Type::I32) {
            element.set_property("max-errors", 0_i32);
        }
    });
}

/// Opens a film and waits until its streams are known.
pub(super) fn open(film: &Input, cancel: &AtomicBool) -> Result<Graph, EncodeError> {
    let uri = film.uri()?;
    let copy = GifCopy::of(film)?;
    let uri = copy.as_ref().map_or(uri, GifCopy::uri);
    // What comes through a pipe comes once, so that its sound cannot be looked at first.
    let twice = !matches!(film, Input::Pipe);
    let (edits, overlooked) = (Edits::read(film)?, Overlooked::read(film)?);
    let mut graph = Graph::start(&uri, twice, edits.clone(), overlooked.clone())?;
    if !graph.preroll(cancel)? {
        // The sound is no AAC-LC as it stands: have it decoded and made anew.
        drop(graph);
        graph = Graph::start(&uri, false, edits, overlooked)?;
        graph.preroll(cancel)?;
    }
    graph.copy = copy;
    Ok(graph)
}

impl Graph {
    /// Starts decoding. With `pass_aac` compressed AAC is taken as it is.
    fn start(
        uri: &str,
        pass_aac: bool,
        edits: Option<Edits>,
        overlooked: Overlooked,
    ) -> Result<Self, EncodeError> {
        tracks::pass_over_alpha();
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
        decoder.set_property("uri", uri);
        decoder.set_property("caps", formats.build());
        decoder.set_property("expose-all-streams", false);
        if let Some(edits) = &edits {
            edits.hide(&decoder);
        }
        overlooked.keep_short_tracks(&decoder);
        let pipeline = gst::Pipeline::new();
        strict(&pipeline);
        let failed = |why: &str| EncodeError::NoFilm { why: why.to_owned() };
        pipeline.add(&decoder).map_err(|_| failed("the pipeline cannot be built"))?;
        let bus = pipeline.bus().ok_or_else(|| failed("the pipeline cannot be watched"))?;
        let heard = Arc::new(Mutex::new(Heard { overlooked, ..Heard::default() }));
        notice::undecoded(&decoder, &heard);
        listen(&decoder, &pipeline, &heard);
        let graph = Self {
            pipeline,
            bus,
            heard,
            quiet: None,
            asked: Instant::now(),
            forgiving: false,
            seen: None,
            next_time: 0,
            untimed: false,
            made: false,
            video: None,
            audio: None,
            sound_caps: None,
            edits,
            copy: None,
            cuts: (None, None),
        };
        if graph.pipeline.set_state(gst::State::Playing).is_err() {
            graph.check()?;
            return Err(failed("it cannot be opened"));
        }
        Ok(graph)
    }

    /// Waits until all streams are known. False if the sound must be made anew.
    fn preroll(&mut self, cancel: &AtomicBool) -> Result<bool, EncodeError> {
        loop {
            self.glance(cancel)?;
            if !lock(&self.heard).all_pads {
                self.be_patient()?;
                self.notice_surrender()?;
                std::thread::sleep(Duration::from_millis(1));
                continue;
            }
            let (video, audio) = {
                let mut heard = lock(&self.heard);
                self.made = heard.made;
                (heard.video.take(), heard.audio.take())
            };
            self.video = self.video.take().or(video.map(Tap::new));
            self.audio = self.audio.take().or(audio.map(Tap::new));
            if self.video.is_none() {
                self.check()?;
                return Err(self.without_pictures());
            }
            self.untimed = tracks::untimed(&self.pipeline);
            for told in tracks::left_out(&self.pipeline) {
                self.warn(&told);
            }
            let Some(audio) = &mut self.audio else { return Ok(true) };
            self.sound_caps = audio.caps(GLANCE);
            if self.sound_caps.is_none() && !audio.ended() {
                self.be_patient()?;
                continue;
            }
            let stream = audio.stream();
            if self.audio_format().is_some() {
                self.cuts.1 = self.edits.as_ref().zip(stream).and_then(|(edits, stream)| edits.cut(&stream));
                return Ok(true);
            }
            if !self.made && self.sound_caps.is_some() {
                return Ok(false);
            }
            self.audio = None;
            self.warn("the sound cannot be used; the title is silent");
            return Ok(true);
        }
    }

    fn without_pictures(&self) -> EncodeError {
        let heard = lock(&self.heard);
        let coding = heard.undecoded.iter().find(|coding| !coding.starts_with("audio/"));
        coding.map_or(EncodeError::NoVideo, |coding| EncodeError::NoFilm {
            why: format!("there is no decoder for its pictures ({coding})"),
        })
    }

    /// Whether samples use all values from 0 to 255 although the format does not say so.
    pub(super) fn full_range(&self) -> bool {
        lock(&self.heard).full_range
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
        let Some(tap) = &mut self.video else { return Ok(Pulled::End) };
        let Some((sample, said)) = tap.pull(if wait { GLANCE } else { Duration::from_millis(2) }) else {
            let ended = tap.ended();
            return self.nothing(ended);
        };
        self.quiet = None;
        if self.seen.is_none() {
            self.cuts.0 =
                self.edits.as_ref().zip(tap.stream()).and_then(|(edits, stream)| edits.cut(&stream));
        }
        let caps = sample.caps().ok_or(EncodeError::Picture("a picture without a format".into()))?;
        let info = self.info(caps)?;
        let buffer = sample.buffer_owned().ok_or(EncodeError::Picture("an empty sample".into()))?;
        let time = said.filter(|_| !self.untimed).unwrap_or(self.next_time);
        if buffer.flags().contains(gst::BufferFlags::CORRUPTED) {
            return Err(self.broken("a picture is damaged".into()));
        }
        let duration = buffer.duration().map(gst::ClockTime::nseconds);
        let nominal = gst::ClockTime::SECOND
            .mul_div_floor(u64::from(rate(&info).1), u64::from(rate(&info).0))
            .map_or(40_000_000, gst::ClockTime::nseconds);
        self.next_time = time.saturating_add(i64::try_from(duration.unwrap_or(nominal)).unwrap_or(0));
        let Some(cut) = &self.cuts.0 else {
            return Ok(Pulled::Item(RawPicture { info, time, duration, buffer }));
        };
        let shown = cut.picture(time, duration.unwrap_or(nominal));
        let raw = shown.map(|(time, length)| RawPicture { info, time, duration: Some(length), buffer });
        Ok(raw.map_or(Pulled::Later, Pulled::Item))
    }

    /// The next frame of sound and its running time in nanoseconds.
    pub(super) fn next_sound(
        &mut self,
        wait: bool,
        cancel: &AtomicBool,
    ) -> Result<Pulled<(i64, Bytes)>, EncodeError> {
        self.glance(cancel)?;
        let Some(tap) = &mut self.audio else { return Ok(Pulled::End) };
        let Some((sample, time)) = tap.pull(if wait { GLANCE } else { Duration::ZERO }) else {
            let ended = tap.ended();
            return self.nothing(ended);
        };
        self.quiet = None;
        let data = sample
            .buffer()
            .and_then(|buffer| buffer.map_readable().ok())
            .map(|map| Bytes::copy_from_slice(&map));
        let time = time.and_then(|time| self.heard_at(time));
        // A frame without a time cannot be placed.
        let frame = time.zip(data).filter(|(_, data)| !data.is_empty());
        Ok(frame.map_or(Pulled::Later, Pulled::Item))
    }

    /// When a frame of sound that stands at `time` in the data is heard.
    fn heard_at(&self, time: i64) -> Option<i64> {
        let Some(cut) = &self.cuts.1 else { return Some(time) };
        let rate = self.audio_format().map_or(48_000, |format| i64::from(format.sample_rate));
        let samples = |count: u32| i64::from(count) * 1_000_000_000 / rate.max(1);
        // What is made anew comes later than it sounds.
        let early = if self.made { samples(MADE_PRIMING) } else { 0 };
        let frame = u64::try_from(samples(MADE_PRIMING)).unwrap_or(0);
        Some(cut.sound(time.saturating_sub(early), frame)?.saturating_add(early))
    }

    /// How long the film says it is.
    pub(super) fn length(&self) -> Option<media::Span> {
        self.edits.as_ref().and_then(Edits::length).or_else(|| self.whole_length())
    }

    /// The same of all its data.
    fn whole_length(&self) -> Option<media::Span> {
        if let Some(told) = lock(&self.heard).overlooked.length() {
            return Some(told);
        }
        let length = self.pipeline.query_duration::<gst::ClockTime>()?;
        let length = media::Span::from_nanos(length.nseconds());
        // Matroska counts its length from nothing, and its times from the first one.
        let shift = self.video.as_ref().map_or(0, Tap::shift);
        let matroska = tracks::counted(&self.pipeline) == Some(tracks::MATROSKA);
        Some(if matroska { length.saturating_sub(media::Span::from_nanos(shift)) } else { length })
    }

    /// The same, where the container counts it and is not guessed at.
    pub(super) fn stated_length(&self) -> Option<media::Span> {
        if let Some(edits) = &self.edits {
            return edits.data_end();
        }
        tracks::counted(&self.pipeline)?;
        self.length()
    }

    /// How far the film was read, by the clock that its length is told by.
    pub(super) fn reached(&self) -> media::Span {
        let taps = [&self.video, &self.audio].into_iter().flatten();
        media::Span::from_nanos(taps.map(Tap::reached).max().unwrap_or(0))
    }

    /// Whether nothing has come for so long that nothing will.
    pub(super) fn stalled(&self) -> bool {
        self.quiet.is_some_and(|since| since.elapsed() > PATIENCE / 2)
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
        let heard = lock(&self.heard);
        let sound = heard.undecoded.iter().filter(|coding| coding.starts_with("audio/"));
        let sound = sound.map(|coding| format!("there is no decoder for a track of sound ({coding})"));
        heard.warnings.iter().cloned().chain(sound).collect()
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

    /// Nothing came: because it ended, or not yet.
    fn nothing<T>(&mut self, ended: bool) -> Result<Pulled<T>, EncodeError> {
        if ended {
            self.check()?;
            return Ok(Pulled::End);
        }
        self.be_patient()?;
        if self.quiet.is_some_and(|since| since.elapsed() > LULL) {
            self.check()?;
        }
        Ok(Pulled::Later)
    }

    /// From now on a fault is told only when nothing comes any more: what was
    /// decoded before it is given out first, the same in every run.
    pub(super) fn forgive(&mut self) {
        self.forgiving = true;
    }

    /// The film breaks off after the last picture.
    fn broken(&self, why: String) -> EncodeError {
        EncodeError::Broken { why, at: media::Span::from_nanos(u64::try_from(self.next_time).unwrap_or(0)) }
    }

    fn be_patient(&mut self) -> Result<(), EncodeError> {
        if self.quiet.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
            return Err(EncodeError::Stalled { seconds: PATIENCE.as_secs() });
        }
        Ok(())
    }

    /// A decoder bin filters the messages of an element whose state it is just
    /// changing, so that the error of a fast demuxer can be lost there. A
    /// demuxer that reads by itself pauses its own task when it gives up; one
    /// that did so before it found a single stream will never find one.
    fn notice_surrender(&self) -> Result<(), EncodeError> {
        let quiet = self.quiet.is_some_and(|since| since.elapsed() > 25 * GLANCE);
        let gave_up = |element: gst::Element| {
            let paused = |pad: gst::Pad| pad.task_state() == gst::TaskState::Paused;
            element.src_pads().is_empty() && element.sink_pads().into_iter().any(paused)
        };
        if quiet && self.pipeline.iterate_recurse().into_iter().flatten().any(gave_up) {
            self.check()?;
            return Err(EncodeError::NoFilm { why: "its container breaks off or makes no sense".into() });
        }
        Ok(())
    }

    fn glance(&mut self, cancel: &AtomicBool) -> Result<(), EncodeError> {
        // While the reader waits for room among the blocks, nothing is expected of the film.
        if self.asked.elapsed() > 10 * GLANCE {
            self.quiet = None;
        }
        self.asked = Instant::now();
        if cancel.load(Ordering::Relaxed) {
            return Err(EncodeError::Cancelled);
        }
        if self.forgiving { Ok(()) } else { self.check() }
    }

    /// Looks for what the pipeline says about its failure.
    fn check(&self) -> Result<(), EncodeError> {
        let failed = lock(&self.heard).failed.clone();
        if let Some(why) = failed {
            return Err(EncodeError::NoFilm { why });
        }
        let Some(message) = self.bus.pop_filtered(&[gst::MessageType::Error]) else { return Ok(()) };
        let gst::MessageView::Error(error) = message.view() else { return Ok(()) };
        let why = told(&error.error().to_string(), error.debug().as_deref().unwrap_or_default());
        match self.seen {
            // It breaks off later than at the first picture.
            Some(_) => Err(self.broken(why)),
            None => Err(EncodeError::NoFilm { why }),
        }
    }
}

/// What an error says, or what stands behind it where that says nothing.
fn told(error: &str, details: &str) -> String {
    let after = |mark: &str| details.split(mark).nth(1)?.lines().next().map(str::trim);
    if let Some(format) = after("Missing decoder: ").filter(|format| !format.is_empty()) {
        return format!("there is no decoder for {format}");
    }
    if error.starts_with("Internal data stream error") && details.contains("SoupHTTPSrc") {
        return "nothing could be fetched from there".into();
    }
    if error.starts_with("Internal data stream error") {
        return "its data make no sense to its reader".into();
    }
    error.to_owned()
}

impl Drop for Graph {
    fn drop(&mut self) {
        // Nothing depends on how it stops.
        let _ = self.pipeline.set_state(gst::State::Null);
    }
}
