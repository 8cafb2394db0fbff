//! One viewer behind its proxy: what it has buffered, what it waits for, and what its
//! slots at the nodes still give.

use super::audience::Guest;
use super::{LAYER, TAU};
use media::{BitRate, ByteCount, Layer, Quality, Span, Time};
use protocol::node::NodeConfig;
use protocol::node::autonomy::Level;

/// Blocks that a viewer has before it plays.
const START: u32 = 4;
/// The largest buffer: that of Table 1 of ADVODS.
pub(super) const BUFFER: Span = Span::from_secs(15);
/// For how long it counts against a failure if playback stops.
pub(super) const AFTERMATH: Span = Span::from_secs(60);

/// A slot: a token bucket as nodes keep them, counted in time: when it would be full
/// of requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    rate: BitRate,
    burst: Span,
    full_at: Time,
}

impl Slot {
    fn new() -> Self {
        // A node's burst is one buffer of its viewers.
        let rate = BitRate(LAYER.0 * NodeConfig::new(Level::BASE).slot_rate / 100);
        let burst = rate.time_for(ByteCount(LAYER.0 / 8 * BUFFER.as_millis() / 1000));
        Self { rate, burst, full_at: Time::ZERO }
    }

    /// When so many bytes could go.
    pub(super) fn ready(&self, now: Time) -> Time {
        now.max(Time::ZERO + (self.full_at - Time::ZERO).saturating_sub(self.burst))
    }

    /// They go as soon as they can.
    pub(super) fn take(&mut self, now: Time, bytes: ByteCount) {
        self.full_at = self.full_at.max(now) + self.rate.time_for(bytes);
    }

    /// They do not go after all.
    pub(super) fn give_back(&mut self, bytes: ByteCount) {
        self.full_at = Time::ZERO + (self.full_at - Time::ZERO).saturating_sub(self.rate.time_for(bytes));
    }
}

/// A freeze that began, or goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Freeze {
    pub(super) from: Time,
    pub(super) to: Time,
}

/// A viewer.
#[derive(Clone, Debug)]
pub(super) struct Seat {
    pub(super) proxy: usize,
    pub(super) title: usize,
    pub(super) quality: Quality,
    pub(super) vip: bool,
    /// The block that it asks for or waits for.
    pub(super) next: u32,
    /// When its request was at the proxy.
    pub(super) asked: Time,
    from: u32,
    end: u32,
    /// When its first block would have been shown if playback had never waited.
    started: Option<Time>,
    waited: Span,
    /// Whether it has entered the proxy and not left it.
    pub(super) inside: bool,
    /// Whether the proxy knows that its service fails over.
    pub(super) fails_over: bool,
    /// Its slots by layer.
    pub(super) slots: [Slot; 3],
    /// Its node was lost; stops count until then.
    pub(super) shaken_until: Option<Time>,
}

impl Seat {
    pub(super) fn new(guest: &Guest, proxy: usize, blocks: u32) -> Self {
        Self {
            proxy,
            title: guest.wish.title,
            quality: guest.wish.quality,
            vip: guest.arrival.sla == crate::workload::Sla::Vip,
            next: guest.from,
            asked: Time::ZERO,
            from: guest.from,
            end: blocks,
            started: None,
            waited: Span::ZERO,
            inside: false,
            fails_over: false,
            slots: [Slot::new(); 3],
            shaken_until: None,
        }
    }

    pub(super) fn plays(&self) -> bool {
        self.inside && self.started.is_some()
    }

    pub(super) fn is_starting(&self) -> bool {
        self.started.is_none()
    }

    pub(super) fn is_done(&self) -> bool {
        self.next >= self.end
    }

    /// When playback began.
    pub(super) const fn shown_from(&self) -> Option<Time> {
        self.started
    }

    /// When the awaited block has to be there.
    pub(super) fn due(&self) -> Option<Time> {
        let ahead = TAU.saturating_mul(u64::from(self.next - self.from));
        self.started.map(|started| started + ahead + self.waited)
    }

    pub(super) fn buffered(&self, now: Time) -> Span {
        self.due().map_or(Span::ZERO, |due| due - now)
    }

    /// The awaited block is here; how long playback waited for it.
    pub(super) fn receive(&mut self, now: Time) -> Option<Freeze> {
        let freeze = match self.due() {
            Some(due) if now > due => {
                self.waited += now - due;
                Some(Freeze { from: due, to: now })
            }
            Some(_) => None,
            None => {
                if self.next + 1 >= (self.from + START).min(self.end) {
                    self.started = Some(now);
                }
                None
            }
        };
        self.next += 1;
        freeze
    }

    /// How long it has no room for the next block.
    pub(super) fn pause(&self, now: Time) -> Span {
        (self.buffered(now) + TAU).saturating_sub(BUFFER).min(self.buffered(now))
    }

    /// Its node is lost.
    pub(super) fn shake(&mut self, now: Time) {
        self.shaken_until = Some(now + AFTERMATH);
    }

    pub(super) fn slot_mut(&mut self, layer: Layer) -> Option<&mut Slot> {
        self.slots.get_mut(layer.index())
    }
}
