//! What a slot is worth: a token bucket for each viewer and layer. Whoever asks
//! for more is not refused, but waits.
//!
//! Without it a slot would be worth whatever its viewer can carry, and a node's
//! capacity would mean nothing.

use super::autonomy::UserId;
use super::lengths::ChunkLengths;
use crate::guests::{LinkId, StreamId};
use crate::message::StreamRequest;
use media::{ByteCount, Hash, Layer, Span, Time};
use std::collections::{BTreeMap, VecDeque};

const SECOND: u128 = 1_000_000_000;

/// A bucket that fills evenly, counted in billionths of a byte: nothing is
/// rounded.
#[derive(Clone, Debug)]
struct Bucket {
    /// Bytes a second.
    rate: u64,
    /// Bytes that it holds.
    burst: u64,
    level: u128,
    at: Time,
}

impl Bucket {
    fn full(now: Time, rate: u64, burst: u64) -> Self {
        Self { rate, burst, level: u128::from(burst) * SECOND, at: now }
    }

    fn fill(&mut self, now: Time) {
        let came = u128::from(self.rate) * u128::from((now - self.at).as_nanos());
        self.level = self.level.saturating_add(came).min(u128::from(self.burst) * SECOND);
        self.at = self.at.max(now);
    }

    /// What is longer than the bucket costs all of it.
    fn cost(&self, bytes: ByteCount) -> u128 {
        u128::from(bytes.0.min(self.burst)) * SECOND
    }

    /// Takes so much out, if there is so much.
    fn take(&mut self, now: Time, bytes: ByteCount) -> bool {
        self.fill(now);
        let left = self.level.checked_sub(self.cost(bytes));
        self.level = left.unwrap_or(self.level);
        left.is_some()
    }

    /// When there will be so much.
    fn when(&self, bytes: ByteCount) -> Time {
        let missing = self.cost(bytes).saturating_sub(self.level);
        let nanos = missing.div_ceil(u128::from(self.rate.max(1)));
        self.at + Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    fn is_full(&self, now: Time) -> bool {
        self.when(ByteCount(self.burst)) <= now
    }
}

/// A request that waits for its slot.
#[derive(Clone, Debug)]
pub(super) struct Paced {
    pub(super) link: LinkId,
    pub(super) stream: StreamId,
    pub(super) user: UserId,
    pub(super) request: StreamRequest,
    pub(super) version: Hash,
    pub(super) layer: Layer,
    bytes: ByteCount,
    /// When its chunk is of no use any more: the order in which those wait.
    due: Time,
}

/// Names a request for a chunk by what counts here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wish {
    pub(super) link: LinkId,
    pub(super) stream: StreamId,
    pub(super) user: UserId,
    pub(super) version: Hash,
    pub(super) layer: Layer,
    pub(super) bytes: ByteCount,
    pub(super) due: Time,
}

#[derive(Clone, Debug)]
struct Slot {
    bucket: Bucket,
    waiting: VecDeque<Paced>,
}

/// The slots in use. One that is full and has nobody waiting is forgotten, as a
/// new one is full too; by viewer and not by session, so that nobody gets more
/// for opening it again.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    /// Hundredths of the nominal rate.
    rate: u64,
    window: Span,
    max: usize,
    in_use: BTreeMap<(UserId, Layer), Slot>,
}

impl Slots {
    /// `rate` in hundredths of a layer's nominal rate, 0 for no bound; `window` of
    /// it at once; at most `max` at a time.
    pub(super) fn new(rate: u64, window: Span, max: usize) -> Self {
        Self { rate, window, max, in_use: BTreeMap::new() }
    }

    /// Whether anybody is paced at all.
    pub(super) fn pace(&self) -> bool {
        self.rate > 0
    }

    /// A request is granted. Whether it may start at once; if not it waits and
    /// comes out of [`Self::due`]. Nothing if there is no room for another slot.
    pub(super) fn ask(
        &mut self,
        now: Time,
        wish: Wish,
        request: &StreamRequest,
        lengths: &ChunkLengths,
    ) -> Option<bool> {
        let Wish { link, stream, user, version, layer, bytes, due } = wish;
        let key = (user, layer);
        if !self.in_use.contains_key(&key) {
            self.forget_idle(now);
            if self.in_use.len() >= self.max {
                return None;
            }
            let (most, lasts) = lengths.busiest(layer, self.window);
            let nominal = u128::from(most.0) * SECOND * u128::from(self.rate);
            let rate = nominal.div_ceil(u128::from(lasts.as_nanos().max(1)) * 100);
            let rate = u64::try_from(rate).unwrap_or(u64::MAX).max(1);
            let bucket = Bucket::full(now, rate, most.0);
            self.in_use.insert(key, Slot { bucket, waiting: VecDeque::new() });
        }
        let slot = self.in_use.get_mut(&key)?;
        if slot.waiting.is_empty() && slot.bucket.take(now, bytes) {
            return Some(true);
        }
        let place = slot.waiting.partition_point(|other| other.due <= due);
        slot.waiting.insert(
            place,
            Paced { link, stream, user, request: request.clone(), version, layer, bytes, due },
        );
        Some(false)
    }

    /// Of these users, whose slot allows another chunk soonest.
    pub(super) fn readiest(&self, users: impl Iterator<Item = UserId>, layer: Layer) -> Option<UserId> {
        users.min_by_key(|user| match self.in_use.get(&(*user, layer)) {
            // One that is not in use is full.
            None => (0, Time::ZERO, *user),
            Some(slot) => (slot.waiting.len(), slot.bucket.when(ByteCount(slot.bucket.burst)), *user),
        })
    }

    /// Requests that may start by now.
    pub(super) fn due(&mut self, now: Time) -> Vec<Paced> {
        let mut free = Vec::new();
        for slot in self.in_use.values_mut().filter(|slot| !slot.waiting.is_empty()) {
            while slot.waiting.front().is_some_and(|first| slot.bucket.take(now, first.bytes)) {
                free.extend(slot.waiting.pop_front());
            }
        }
        free
    }

    /// When the next one may.
    pub(super) fn next(&self) -> Option<Time> {
        let next = |slot: &Slot| slot.waiting.front().map(|first| slot.bucket.when(first.bytes));
        self.in_use.values().filter_map(next).min()
    }

    /// Nobody waits for this any more.
    pub(super) fn forget(&mut self, stream: StreamId) {
        for slot in self.in_use.values_mut().filter(|slot| !slot.waiting.is_empty()) {
            slot.waiting.retain(|paced| paced.stream != stream);
        }
    }

    /// Nobody waits by this connection any more.
    pub(super) fn gone(&mut self, link: LinkId) {
        for slot in self.in_use.values_mut() {
            slot.waiting.retain(|paced| paced.link != link);
        }
    }

    /// The viewer begins anew here: its slots are full.
    pub(super) fn refill(&mut self, user: UserId) {
        for (_, slot) in self.in_use.range_mut((user, Layer::BASE)..=(user, Layer(u8::MAX))) {
            slot.bucket = Bucket::full(slot.bucket.at, slot.bucket.rate, slot.bucket.burst);
        }
    }

    /// How many requests wait.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.in_use.values().map(|slot| slot.waiting.len()).sum()
    }

    fn forget_idle(&mut self, now: Time) {
        self.in_use.retain(|_, slot| !slot.waiting.is_empty() || !slot.bucket.is_full(now));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]
mod tests;
