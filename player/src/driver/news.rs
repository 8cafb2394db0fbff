//! What happens to the player: the network, the pipeline, the viewer, the time.

use super::{Driver, End, SAMPLE_TICKS, STATUS_TICKS, at_most};
use crate::link::{Link, News, farewell};
use crate::options::{Command, PlayError, PlayerEvent};
use crate::pipeline::{PipelineEvent, UserKey};
use media::{ByteCount, Quality, Span};
use protocol::Message;
use protocol::player::{Command as Wish, FetchFailure, Input, SourceId};
use std::time::Instant;

/// How far an arrow key goes.
const ARROW: Span = Span::from_secs(5);

impl Driver {
    pub(super) fn take_news(&mut self, news: News) {
        match news {
            News::Up { source, generation, connection, opened } => {
                let Some((_, listener)) =
                    self.network.dials.remove(&source).filter(|(g, _)| *g == generation)
                else {
                    return;
                };
                if opened.manifest_hash != self.manifest_hash {
                    tokio::spawn(farewell(connection, opened.session));
                    return self.leave_other(source);
                }
                let round_trip = Span::from(connection.rtt());
                self.network.standing.insert(source, generation);
                self.network.links.insert(source, Link::new(connection, opened.session, listener));
                self.put(Input::Connected { source, round_trip });
                self.read_answer(source, &opened);
            }
            News::Sought { door, found } => {
                self.network.seeking = None;
                // There the connection that asked took the place of an older one,
                // on which nothing would be heard any more.
                self.network.standing.remove(&door);
                if self.network.links.remove(&door).is_some() {
                    self.put(Input::Lost { source: door });
                }
                match found {
                    Some(found) => self.take_found(door, *found),
                    None => self.put(Input::NotFound { door }),
                }
            }
            News::Down { source, generation } => self.lose(source, generation),
            News::Said { source, generation, message } => {
                if self.network.standing.get(&source) == Some(&generation) {
                    self.hear(source, &message);
                }
            }
            News::Fetched { request, source, block, layer, result } => {
                self.network.fetches.remove(&request);
                self.fetched(request, source, (block, layer), result);
            }
        }
    }

    fn fetched(
        &mut self,
        request: protocol::player::RequestId,
        source: SourceId,
        (block, layer): (u32, media::Layer),
        result: Result<(bytes::Bytes, protocol::Part), FetchFailure>,
    ) {
        if !self.machine.is_open(request) {
            return;
        }
        self.listen_to(source);
        match result {
            Ok((bytes, part)) => {
                let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
                self.network.table.delivered(source, length);
                self.recorder.fetched(layer, length);
                self.shelf.put(block, layer, bytes);
                let (at_ms, node) = (self.recorder.at_ms(Instant::now()), self.network.table.name(source));
                let layer = layer.to_string();
                self.tell(PlayerEvent::Arrived { at_ms, layer, node, bytes: length });
                self.put(match part {
                    protocol::Part::Whole => Input::Arrived { request },
                    protocol::Part::First => Input::ArrivedHalf { request },
                });
            }
            Err(why) => self.put(Input::Failed { request, why }),
        }
    }

    fn lose(&mut self, source: SourceId, generation: u64) {
        if self.network.dials.get(&source).is_some_and(|(dialled, _)| *dialled == generation) {
            self.network.dials.remove(&source);
            // It was dialled anew because it was silent, and has been heard since.
            if self.network.links.contains_key(&source) && self.machine.hears(source) {
                return;
            }
        } else if self.network.standing.get(&source) == Some(&generation) {
            self.network.standing.remove(&source);
            self.network.links.remove(&source);
        } else {
            return;
        }
        self.put(Input::Lost { source });
    }

    fn hear(&mut self, source: SourceId, message: &Message) {
        self.listen_to(source);
        match message {
            Message::Alive(number) => self.put(Input::Alive { source, number: *number }),
            Message::Draining => self.put(Input::Draining { source }),
            _ => self.hear_network(source, message),
        }
    }

    /// Tells the machine what came from a source since it was last told.
    fn listen_to(&mut self, source: SourceId) {
        if let Some(bytes) = self.network.links.get_mut(&source).and_then(Link::news) {
            self.put(Input::Heard { source, bytes: ByteCount(bytes) });
        }
    }

    pub(super) fn listen_to_all(&mut self) {
        let sources: Vec<SourceId> = self.network.links.keys().copied().collect();
        for source in sources {
            self.listen_to(source);
        }
    }

    pub(super) fn take_event(&mut self, event: PipelineEvent) {
        match event {
            PipelineEvent::WantsBlock { serial } => self.put(Input::FeedWants { serial }),
            PipelineEvent::FirstPicture { at } => {
                let startup_ms = self.recorder.first_picture(at);
                self.tell(PlayerEvent::FirstPicture { startup_ms });
            }
            PipelineEvent::Shown { pts, quality, at, block } => {
                if let Some(change) = self.recorder.picture(at, block, quality, pts) {
                    let crate::report::Transition { at_ms, from, to, cause, .. } = change;
                    self.tell(PlayerEvent::Transition { at_ms, from, to, cause });
                }
            }
            PipelineEvent::Freeze { start, length, .. } => {
                self.tell(PlayerEvent::Freeze { at_ms: start.as_millis(), length_ms: length.as_millis() });
            }
            PipelineEvent::EndOfStream { serial } => self.put(Input::Ended { serial }),
            PipelineEvent::Key(key) => self.press(key),
            PipelineEvent::NoAudioDevice => self.tell(PlayerEvent::NoAudioDevice),
            PipelineEvent::Error(why) => self.end = Some(End::Failed(PlayError::Playback(why))),
            PipelineEvent::BlockChecked { ok: true, .. } | PipelineEvent::Paused => {}
            PipelineEvent::BlockChecked { block, quality, ok: false } => {
                tracing::warn!(block, %quality, "a block is not what the encoder made");
            }
        }
    }

    /// Twenty milliseconds have passed.
    pub(super) fn look_around(&mut self) {
        self.listen_to_all();
        if let Some(at) = self.pipeline.as_ref().and_then(crate::pipeline::Pipeline::position) {
            let serial = self.machine.serial();
            self.put(Input::Position { serial, at });
        }
        self.ticks = self.ticks.wrapping_add(1);
        if self.ticks.is_multiple_of(SAMPLE_TICKS) {
            let (position, level) = (self.machine.position(), self.machine.buffer_level());
            let sample = self.recorder.sample(Instant::now(), position, level);
            if self.ticks.is_multiple_of(STATUS_TICKS) {
                let crate::report::Sample { at_ms, position_ms, buffer_ms, quality } = sample;
                self.tell(PlayerEvent::Status { at_ms, position_ms, buffer_ms, quality });
            }
        }
    }

    pub(super) fn obey(&mut self, command: Command) {
        let position = self.machine.position();
        let wish = match command {
            Command::Pause => {
                self.paused = true;
                Wish::Pause
            }
            Command::Resume => {
                self.paused = false;
                Wish::Resume
            }
            Command::TogglePause => {
                return self.obey(if self.paused { Command::Resume } else { Command::Pause });
            }
            Command::SeekTo(to) => Wish::Seek(to),
            Command::Forward(by) => Wish::Seek(position + by),
            Command::Back(by) => Wish::Seek(position.saturating_sub(by)),
            Command::Quality(quality) => Wish::Quality(at_most(quality, self.options.quality)),
            Command::Rate(rate) => Wish::Rate(rate),
            Command::Stop => {
                self.end = Some(End::Stopped);
                return;
            }
        };
        self.put(Input::User(wish));
    }

    fn press(&mut self, key: UserKey) {
        let quality = self.machine.wish();
        self.obey(match key {
            UserKey::TogglePause => Command::TogglePause,
            UserKey::SeekForward => Command::Forward(ARROW),
            UserKey::SeekBack => Command::Back(ARROW),
            UserKey::Better => Command::Quality(Quality(quality.layers().saturating_add(1))),
            UserKey::Worse => Command::Quality(Quality(quality.layers().saturating_sub(1))),
            UserKey::Quality(quality) => Command::Quality(quality),
            UserKey::Faster => Command::Rate(faster(self.rate)),
            UserKey::Slower => Command::Rate(slower(self.rate)),
            UserKey::Quit => Command::Stop,
        });
    }
}

/// One step forward on the scale -16, -8, -4, -2, 1, 2, 4, 8, 16.
fn faster(rate: i8) -> i8 {
    match rate {
        i8::MIN..=-4 => rate / 2,
        -3..=0 => 1,
        1..=8 => rate.saturating_mul(2),
        _ => 16,
    }
}

/// One step back on the same scale.
fn slower(rate: i8) -> i8 {
    match rate {
        i8::MIN..=-9 => -16,
        -8..=-2 => rate.saturating_mul(2),
        -1..=1 => -2,
        2..=i8::MAX => rate / 2,
    }
}

#[cfg(test)]
mod tests {
    use super::{faster, slower};

    #[test]
    fn the_keys_walk_the_scale_of_speeds_both_ways() {
        let scale = [-16, -8, -4, -2, 1, 2, 4, 8, 16];
        for pair in scale.windows(2) {
            if let [low, high] = pair {
                assert_eq!((faster(*low), slower(*high)), (*high, *low));
            }
        }
        assert_eq!((faster(16), slower(-16)), (16, -16));
    }
}
