//! What the machine wants done.

use super::{Driver, End, Network};
use crate::fetch::{Errand, fetch};
use crate::link::{Call, Stopper, call};
use crate::options::PlayerEvent;
use crate::pipeline::BlockFeed;
use crate::report::{EpochReport, Failover};
use media::{Layer, Quality, Span, Time};
use protocol::Message;
use protocol::player::{Event, FetchFailure, Input, Output, RequestId, SourceId};
use std::time::{Duration, Instant};

/// How long a dial may take at least; a dead source is dialled anew every second.
const DIAL_PATIENCE: Duration = Duration::from_millis(950);
/// A first dial may cross the world.
const FIRST_DIAL_PATIENCE: Duration = Duration::from_secs(3);
/// A fetch without a deadline of its own is not waited for any longer than this.
const LONGEST_FETCH: Duration = Duration::from_secs(30);

impl Network {
    /// Dials a source unless that is being done already.
    pub(super) fn dial(&mut self, id: SourceId) {
        let Some(source) = self.table.get(id) else { return };
        if self.dials.contains_key(&id) {
            return;
        }
        self.generation += 1;
        let within = if self.dialled.insert(id) { FIRST_DIAL_PATIENCE } else { DIAL_PATIENCE };
        let job = Call {
            source: id,
            generation: self.generation,
            address: source.address,
            peer: source.peer,
            open: self.open.clone(),
            within,
        };
        let stopper = call(self.endpoint.clone(), job, self.sender.clone());
        self.dials.insert(id, (self.generation, stopper));
    }
}

impl Driver {
    /// Does everything that the machine wants by now.
    pub(super) fn drain(&mut self) {
        while let Some(output) = self.machine.poll_output() {
            self.execute(output);
        }
    }

    fn execute(&mut self, output: Output) {
        match output {
            Output::Dial { source } => self.network.dial(source),
            // Unsent, it is unanswered and counts against the source, as it should.
            Output::Probe { source, number } => self.network.say(source, Message::Probe(number)),
            Output::Leave { source } => self.network.leave(source),
            Output::Report { source, position, buffer, paused } => {
                let user = self.network.open.user;
                self.network.say(source, Message::Position { user, position, buffer, paused });
            }
            Output::StillServed { source, epoch } => {
                let user = self.network.open.user;
                self.network.say(source, Message::StillServed { user, epoch });
            }
            Output::Seek { door, progress, former } => self.network.seek(door, progress, former),
            Output::Request { request, source, block, layer, deadline } => {
                self.fetch(request, source, block, layer, deadline);
            }
            Output::Cancel { request } => {
                self.network.fetches.remove(&request);
            }
            Output::Feed { block, quality, half, serial, key_only } => {
                self.feed(block, (quality, half), serial, key_only);
            }
            Output::EndOfFeed { serial } => {
                if let Some(pipeline) = &self.pipeline {
                    pipeline.end_of_feed(serial);
                }
            }
            Output::Evict { block } => self.shelf.evict(block),
            Output::PipelineSeek { serial, to, rate } => self.seek(serial, to, rate),
            Output::PipelinePlay => {
                if let Some(pipeline) = &self.pipeline {
                    pipeline.play();
                }
            }
            Output::PipelinePause => {
                if let Some(pipeline) = &self.pipeline {
                    pipeline.pause();
                }
            }
            Output::GiveUp(why) => self.end = Some(End::GaveUp(why)),
            Output::Event(event) => self.note(&event),
        }
    }

    fn fetch(&mut self, request: RequestId, source: SourceId, block: u32, layer: Layer, deadline: Span) {
        let link = self.network.links.get(&source).zip(self.manifest.chunk(block, layer));
        let Some((link, info)) = link else {
            self.put(Input::Failed { request, why: FetchFailure::Broken });
            return;
        };
        let errand = Errand {
            request,
            source,
            id: self.manifest.chunk_id(block, layer),
            info: *info,
            half: self.manifest.half(block, layer).copied(),
            within: Duration::from(deadline).min(LONGEST_FETCH),
        };
        let stopper: Stopper = fetch(link.connection.clone(), errand, self.network.sender.clone());
        self.network.fetches.insert(request, stopper);
    }

    fn feed(&mut self, block: u32, (quality, half): (Quality, bool), serial: u64, key_only: Option<Span>) {
        self.recorder.fed(serial, block, key_only.is_some());
        let chunks = self.shelf.take(block, quality);
        let Some((pipeline, chunks)) = self.pipeline.as_ref().zip(chunks) else {
            // The machine feeds only what arrived, and only what was wanted.
            tracing::error!(block, "a block was to be fed that is not held");
            return;
        };
        if let Err(error) = pipeline.feed(BlockFeed { serial, block, quality, half, chunks, key_only }) {
            self.end = Some(End::Failed(error.into()));
        }
    }

    fn seek(&mut self, serial: u64, to: Span, rate: i8) {
        self.rate = rate;
        self.recorder.jumped();
        match &self.pipeline {
            Some(pipeline) => pipeline.flush(serial, to, f64::from(rate)),
            None => self.early_seek = Some((serial, to, rate)),
        }
    }

    /// The wall's time of a time of the machine.
    fn instant(&self, time: Time) -> Instant {
        self.origin + Duration::from(time - Time::ZERO)
    }

    fn at_ms(&self) -> u64 {
        self.recorder.at_ms(Instant::now())
    }

    /// For people and figures.
    fn note(&mut self, event: &Event) {
        tracing::debug!(?event, "player");
        let at_ms = self.at_ms();
        let table = &self.network.table;
        match *event {
            Event::Transition { block, from, to, cause, .. } => {
                // A half more or less is no other quality on screen.
                if from.quality != to.quality {
                    self.recorder.will_change(block, cause.to_string());
                }
            }
            Event::Silent { source, .. } => {
                self.tell(PlayerEvent::SourceSilent { at_ms, node: table.name(source) });
            }
            Event::OtherVersion { source } => {
                tracing::warn!(node = table.name(source), "this node has another version of the title");
            }
            Event::SourceLost { source } => {
                self.tell(PlayerEvent::SourceLost { at_ms, node: table.name(source) });
            }
            Event::SourceUp { source } => {
                self.tell(PlayerEvent::SourceUp { at_ms, node: table.name(source) });
            }
            Event::ServedBy { source, epoch } => {
                let node = table.name(source);
                self.recorder.epoch(EpochReport { at_ms, epoch, node });
            }
            Event::BackupKnown { source } => {
                self.tell(PlayerEvent::Backup { at_ms, node: table.name(source) });
            }
            Event::StillServed { source, .. } => {
                self.tell(PlayerEvent::StillServed { at_ms, node: table.name(source) });
            }
            Event::Repull { door } => self.tell(PlayerEvent::Repull { at_ms, door: table.name(door) }),
            Event::FailedOver { layer, from, to, heard, verdict, reasked, cause } => {
                let recovered = self.now() - heard;
                let (from, to) = (table.name(from), table.name(to));
                let failover = Failover {
                    at_ms: 0,
                    node: from.clone(),
                    layer: layer.to_string(),
                    to: to.clone(),
                    detected_ms: (verdict - heard).as_millis(),
                    recovered_ms: recovered.as_millis(),
                    reasked,
                    buffer_ms: self.machine.buffer_level().as_millis(),
                    cause: cause.to_string(),
                };
                self.recorder.failover(self.instant(heard), failover);
                let layer = layer.to_string();
                self.tell(PlayerEvent::FailedOver {
                    at_ms,
                    layer,
                    from,
                    to,
                    recovered_ms: recovered.as_millis(),
                    cause: cause.to_string(),
                });
            }
            Event::FetchFailed { block, layer, source, why } => {
                let node = table.name(source);
                self.network.table.failed(source);
                let why = match why {
                    FetchFailure::Refused(refusal) => refusal.to_string(),
                    FetchFailure::Corrupt => "damaged on the way".to_owned(),
                    FetchFailure::Broken => "the stream broke".to_owned(),
                    FetchFailure::Late => "not in time".to_owned(),
                };
                self.tell(PlayerEvent::FetchFailed { at_ms, chunk: format!("{block}/{layer}"), node, why });
            }
            Event::Coming { source } => self.tell(PlayerEvent::Coming { at_ms, node: table.name(source) }),
            Event::BaseFirst { .. } => self.recorder.base_first(),
            Event::Ended => self.end = Some(End::Ended),
            Event::Started { .. }
            | Event::Fetched { .. }
            | Event::Starved { .. }
            | Event::Refilled { .. } => {}
        }
    }
}
