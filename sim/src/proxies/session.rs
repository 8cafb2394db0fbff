//! One requester at one server: a link of constant rate, the two queues in front
//! of it, and what is being sent. Nothing interrupts a transfer.

use media::{BitRate, ByteCount, Quality, Span, Time};
use protocol::proxy::SessionQueue;
use protocol::proxy::cooperation::{Fetch, FetchId, FetchKind};

/// What is being sent.
#[derive(Clone, Debug)]
pub struct Sending {
    /// What was asked for.
    pub fetch: Fetch,
    /// What is sent of it, at most what the server had.
    pub quality: Quality,
    /// Its weight.
    pub bytes: ByteCount,
    /// Since when.
    pub since: Time,
}

/// A session.
#[derive(Clone, Debug)]
pub struct Session {
    rate: BitRate,
    /// One way.
    pub delay: Span,
    queue: SessionQueue,
    sending: Option<Sending>,
    /// All that was sent.
    pub sent: ByteCount,
    /// For how long it was busy.
    pub busy: Span,
    /// Requests for a block that was being sent at the same or a higher quality,
    /// or waited as a miss: each one a fault of the requester.
    pub twice: u64,
    /// Misses that wait.
    waiting: Vec<(FetchId, u32, Quality)>,
}

impl Session {
    /// A quiet session.
    pub fn new((rate, delay): (BitRate, Span), prefetch_size: usize) -> Self {
        Self {
            rate,
            delay,
            queue: SessionQueue::new(prefetch_size, 4096),
            sending: None,
            sent: ByteCount(0),
            busy: Span::ZERO,
            twice: 0,
            waiting: Vec::new(),
        }
    }

    /// A request arrives; those that it drives out.
    pub fn ask(&mut self, fetch: Fetch) -> Vec<Fetch> {
        let (id, block, want, kind) = (fetch.id, fetch.block, fetch.want, fetch.kind);
        let out = self.queue.push(fetch);
        self.waiting.retain(|(waiting, ..)| !out.iter().any(|gone| gone.id == *waiting));
        let sent = self.sending.as_ref().is_some_and(|now| now.fetch.block == block && now.quality >= want);
        let waits = self.waiting.iter().any(|(_, other, quality)| *other == block && *quality >= want);
        self.twice += u64::from(sent || waits);
        if kind == FetchKind::Miss {
            self.waiting.push((id, block, want));
        }
        out
    }

    /// A request is withdrawn; itself, if it still waited.
    pub fn cancel(&mut self, fetch: FetchId) -> Option<Fetch> {
        let gone = self.queue.cancel(fetch);
        if gone.is_some() {
            self.waiting.retain(|(waiting, ..)| *waiting != fetch);
        }
        gone
    }

    /// What is to be sent next, if nothing is being sent.
    pub fn take(&mut self) -> Option<Fetch> {
        if self.sending.is_some() {
            return None;
        }
        let next = self.queue.pop()?;
        self.waiting.retain(|(waiting, ..)| *waiting != next.id);
        Some(next)
    }

    /// Sends it from now on; until when.
    pub fn send(&mut self, now: Time, fetch: Fetch, quality: Quality, bytes: ByteCount) -> Time {
        let takes = self.rate.time_for(bytes);
        self.sent += bytes;
        self.busy += takes;
        self.sending = Some(Sending { fetch, quality, bytes, since: now });
        now + takes
    }

    /// What was being sent is over.
    pub fn end(&mut self) -> Option<Sending> {
        self.sending.take()
    }
}
