//! Reading a film: `GStreamer` decodes whatever it knows, and out come pictures
//! in display order and frames of AAC, both timed from the first picture.

mod animated;
mod audio;
mod edits;
mod graph;
mod link;
mod notice;
mod overlooked;
mod tap;
mod timeline;
mod tracks;

pub(crate) use audio::AudioFormat;
pub(crate) use timeline::Timeline;

use crate::error::EncodeError;
use crate::frame::{self, Look};
use crate::input::Input;
use audio::AudioClock;
use codec::Picture;
use graph::{Graph, Pulled};
use gstreamer_video as gst_video;
use media::Span;
use media::container::AudioSample;
use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;

/// Pictures that are read ahead of the sound before the two are held to be
/// hopelessly apart.
const MAX_AHEAD: usize = 90;
/// Frames of sound kept while pictures are awaited: six minutes.
const MAX_SOUND: usize = 16_384;

/// A film that ends so much earlier than it says was cut.
const CUT: Span = Span::from_millis(300);
/// People notice when the sound ends so much earlier than the pictures.
const NOTICED_SILENCE: Span = Span::from_millis(500);

/// Containers whose middle is damaged are read on behind it; this much is more than
/// what clocks are off by.
const NOTICED_HOLE: Span = Span::from_millis(60);

/// What kind of film it is, known once the first picture is decoded.
#[derive(Debug, Clone)]
pub(crate) struct FilmFormat {
    /// Displayed size in pixels.
    pub(crate) size: (u32, u32),
    /// Nominal pictures a second.
    pub(crate) rate: (u32, u32),
    /// Colours and pixel shape.
    pub(crate) look: Look,
    /// The sound, if there is any.
    pub(crate) audio: Option<AudioFormat>,
}

/// A decoded picture and when it is displayed.
#[derive(Debug)]
pub(crate) struct Shown {
    /// In ticks from the first picture.
    pub(crate) pts: u64,
    /// How long, in ticks, as far as the film says.
    pub(crate) duration: u64,
    /// The picture at the displayed size.
    pub(crate) picture: Picture,
}

/// A film being read.
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Source {
    graph: Graph,
    format: FilmFormat,
    timeline: Timeline,
    clock: Option<AudioClock>,
    from: i64,
    to: Option<i64>,
    /// Pictures that were decoded but not asked for yet.
    ahead: VecDeque<Shown>,
    pictures_ended: bool,
    sound: VecDeque<AudioSample>,
    sound_ended: bool,
    keep_going: bool,
    /// Whether pictures ended before the film did.
    damaged: bool,
}

/// What is wanted of a film.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) film: &'a Input,
    /// Only what is displayed from here on counts,
    pub(crate) from: Option<Span>,
    /// and before this.
    pub(crate) to: Option<Span>,
    /// Whether a damaged film ends where the damage begins.
    pub(crate) keep_going: bool,
}

impl Source {
    /// Opens a film and reads its first picture.
    pub(crate) fn open(wanted: Wanted<'_>, cancel: &AtomicBool) -> Result<Self, EncodeError> {
        let Wanted { film, from, to, keep_going } = wanted;
        let mut graph = graph::open(film, cancel)?;
        let nanos = |span: Span| i64::try_from(span.as_nanos()).unwrap_or(i64::MAX);
        let (from, to) = (nanos(from.unwrap_or_default()), to.map(nanos));
        let first = loop {
            match graph.next_picture(true, cancel)? {
                Pulled::Item(raw) if raw.time >= from => break raw,
                Pulled::Item(_) | Pulled::Later => {}
                Pulled::End => return Err(EncodeError::Empty),
            }
        };
        if keep_going {
            graph.forgive();
        }
        let info = first.info.clone();
        let rate = graph::rate(&info);
        let audio = graph.audio_format();
        let format = FilmFormat {
            size: (info.width(), info.height()),
            rate,
            look: Look::of(&info, graph.full_range()),
            audio: audio.clone(),
        };
        let mut source = Self {
            graph,
            timeline: Timeline::new(rate, first.time),
            clock: audio.as_ref().map(|audio| AudioClock::new(audio, first.time)),
            format,
            from,
            to,
            ahead: VecDeque::new(),
            pictures_ended: false,
            sound: VecDeque::new(),
            sound_ended: audio.is_none(),
            keep_going,
            damaged: false,
        };
        source.take(&first)?;
        Ok(source)
    }

    /// What kind of film it is.
    pub(crate) fn format(&self) -> &FilmFormat {
        &self.format
    }

    /// Ticks a second of the times of pictures.
    pub(crate) fn timescale(&self) -> u32 {
        self.timeline.timescale()
    }

    /// Ticks of one picture at the nominal rate.
    pub(crate) fn frame_ticks(&self) -> u64 {
        self.timeline.frame_ticks()
    }

    /// How long what is asked for is, if the film tells.
    pub(crate) fn length(&self) -> Option<Span> {
        let to = self.to.map(|to| Span::from_nanos(u64::try_from(to).unwrap_or(0)));
        let end = match (self.graph.length(), to) {
            (Some(length), Some(to)) => length.min(to),
            (length, to) => length.or(to)?,
        };
        Some(end.saturating_sub(Span::from_nanos(u64::try_from(self.from).unwrap_or(0))))
    }

    /// What people should know about the film, once it is read.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let pictures = Span::from_ticks(self.timeline.last(), self.timescale());
        if let Some(clock) = &self.clock {
            if let Some((at, length)) = clock.hole().filter(|(_, length)| *length > NOTICED_HOLE) {
                self.graph.warn(&format!(
                    "at {at} the sound is interrupted for {length}: data may be missing there, of the pictures too"
                ));
            }
            let silent = pictures.saturating_sub(clock.end());
            if silent > NOTICED_SILENCE {
                self.graph.warn(&format!("the sound ends {silent} before the pictures"));
            }
            let shown =
                Span::from_ticks(self.timeline.last() + self.timeline.frame_ticks(), self.timescale());
            let more = self.length().unwrap_or_default().saturating_sub(shown);
            if more > NOTICED_SILENCE && silent < NOTICED_SILENCE && !self.damaged {
                self.graph
                    .warn(&format!("the sound goes on for {more} after the pictures; that is left out"));
            }
        }
        self.graph.warnings()
    }

    /// The next picture in display order; none at the end.
    pub(crate) fn next_picture(&mut self, cancel: &AtomicBool) -> Result<Option<Shown>, EncodeError> {
        while self.ahead.is_empty() && !self.pictures_ended {
            self.read_picture(true, cancel)?;
            self.read_sound(false, cancel)?;
        }
        Ok(self.ahead.pop_front())
    }

    /// Whether the film ends where it says that it does, asked at its end.
    ///
    /// # Errors
    /// [`EncodeError::Broken`] if it was cut, unless that shall not matter.
    pub(crate) fn check_end(&mut self) -> Result<(), EncodeError> {
        let told = self.graph.stated_length().filter(|_| self.to.is_none() && !self.damaged);
        let Some(told) = told.filter(|_| self.pictures_ended && self.sound_ended) else { return Ok(()) };
        let at = self.graph.reached();
        if at + CUT >= told {
            return Ok(());
        }
        self.or_end(Err(EncodeError::Broken { why: format!("it should be {told} long"), at }), true)
    }

    /// What cannot be read ends the pictures or the sound, if the film shall be
    /// taken up to its damage.
    fn or_end(&mut self, read: Result<(), EncodeError>, pictures: bool) -> Result<(), EncodeError> {
        use EncodeError::{Broken, Picture, SizeChanges, Stalled};
        match read {
            Err(error @ (Broken { .. } | Picture(_) | SizeChanges { .. } | Stalled { .. }))
                if self.keep_going =>
            {
                self.damaged = true;
                *(if pictures { &mut self.pictures_ended } else { &mut self.sound_ended }) = true;
                self.graph.warn(&format!("{error}; it was taken up to there"));
                Ok(())
            }
            read => read,
        }
    }

    /// The frames of sound that start before `end` (ticks) and were not
    /// returned yet.
    pub(crate) fn sound_until(
        &mut self,
        end: u64,
        cancel: &AtomicBool,
    ) -> Result<Vec<AudioSample>, EncodeError> {
        let Some(audio) = self.format.audio.clone() else { return Ok(Vec::new()) };
        let timescale = self.timescale();
        let before = |pts: u64| {
            u128::from(pts) * u128::from(timescale) < u128::from(end) * u128::from(audio.sample_rate)
        };
        // Sound and pictures come from one reader: while the sound is late,
        // pictures must flow, or neither would come.
        while !self.sound_ended && self.sound.back().is_none_or(|last| before(last.pts)) {
            let room = !self.pictures_ended && self.ahead.len() < MAX_AHEAD;
            self.read_sound(!room, cancel)?;
            if room {
                self.read_picture(false, cancel)?;
            } else if self.damaged && self.pictures_ended {
                // Pictures behind the damage would stand in the way of the sound before it.
                let _ = self.graph.next_picture(false, cancel);
            }
            if room {
                continue;
            }
            if self.graph.stalled() {
                self.sound_ended = true;
                self.graph.warn("the sound ends or lies too far from the pictures; the rest is silent");
            }
        }
        let count = self.sound.iter().take_while(|frame| before(frame.pts)).count();
        Ok(self.sound.drain(..count).collect())
    }

    fn read_picture(&mut self, wait: bool, cancel: &AtomicBool) -> Result<(), EncodeError> {
        let read = self.one_picture(wait, cancel);
        self.or_end(read, true)
    }

    fn one_picture(&mut self, wait: bool, cancel: &AtomicBool) -> Result<(), EncodeError> {
        match self.graph.next_picture(wait, cancel)? {
            Pulled::Item(raw) if self.to.is_some_and(|to| raw.time >= to) => self.pictures_ended = true,
            Pulled::Item(raw) if raw.time >= self.from => self.take(&raw)?,
            Pulled::Item(_) | Pulled::Later => {}
            Pulled::End => self.pictures_ended = true,
        }
        Ok(())
    }

    fn take(&mut self, raw: &graph::RawPicture) -> Result<(), EncodeError> {
        if (raw.info.width(), raw.info.height()) != self.format.size {
            return Err(EncodeError::SizeChanges {
                from: self.format.size,
                to: (raw.info.width(), raw.info.height()),
            });
        }
        let picture = frame::picture(&raw.info, &raw.buffer).map_err(EncodeError::Picture)?;
        let (pts, duration) = self.timeline.place(raw.time, raw.duration);
        self.ahead.push_back(Shown { pts, duration, picture });
        Ok(())
    }

    fn read_sound(&mut self, wait: bool, cancel: &AtomicBool) -> Result<(), EncodeError> {
        let read = self.more_sound(wait, cancel);
        self.or_end(read, false)
    }

    fn more_sound(&mut self, wait: bool, cancel: &AtomicBool) -> Result<(), EncodeError> {
        let Some(clock) = &mut self.clock else { return Ok(()) };
        while !self.sound_ended && self.sound.len() < MAX_SOUND {
            match self.graph.next_sound(wait && self.sound.is_empty(), cancel)? {
                Pulled::Item((time, data)) => self.sound.extend(clock.place(time, data)),
                Pulled::Later => break,
                Pulled::End => self.sound_ended = true,
            }
        }
        Ok(())
    }
}

/// The info of raw pictures, as `GStreamer` tells it.
pub(crate) type RawInfo = gst_video::VideoInfo;
