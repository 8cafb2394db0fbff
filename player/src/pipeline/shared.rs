//! What the owner, the feed thread and GStreamer's threads share. Nothing here
//! waits: requests are left where the thread finds them, the latest seek
//! replaces earlier ones, and at most one wake-up call is under way.

use super::BlockFeed;
use super::events::Events;
use super::meter::MeterReport;
use super::watch::Watch;
use media::Span;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// What the owner sends to the thread in order.
#[derive(Debug)]
pub(crate) enum Command {
    /// One block.
    Block(BlockFeed),
    /// Look around.
    Wake,
}

/// A seek.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlushRequest {
    pub(crate) serial: u64,
    pub(crate) to: Span,
    pub(crate) rate: f64,
}

/// See the module's description.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) events: Events,
    pub(crate) watch: Watch,
    commands: SyncSender<Command>,
    /// Set while a `Wake` is under way.
    woken: AtomicBool,
    stopping: AtomicBool,
    wants_play: AtomicBool,
    flush: Mutex<Option<FlushRequest>>,
    /// The serial after whose blocks the title ends.
    end: Mutex<Option<u64>>,
    /// Stream time up to which Base has left its source.
    consumed: AtomicU64,
    /// The serial of the last seek that was done.
    serial: AtomicU64,
    /// Set when GStreamer says that the last picture was shown.
    ended: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub(crate) fn new(events: Events, watch: Watch, commands: SyncSender<Command>) -> Self {
        Self {
            events,
            watch,
            commands,
            woken: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            wants_play: AtomicBool::new(false),
            flush: Mutex::new(None),
            end: Mutex::new(None),
            consumed: AtomicU64::new(0),
            serial: AtomicU64::new(0),
            ended: AtomicBool::new(false),
        }
    }

    /// Makes the thread look around.
    pub(crate) fn wake(&self) {
        if !self.woken.swap(true, Ordering::SeqCst) {
            // If the queue is full the thread is awake anyway; if it is closed
            // there is nobody to wake.
            let _ = self.commands.try_send(Command::Wake);
        }
    }

    /// The wake-up call arrived; the next one is a new one.
    pub(crate) fn awake(&self) {
        self.woken.store(false, Ordering::SeqCst);
    }

    pub(crate) fn ask_stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.wake();
    }

    pub(crate) fn stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    pub(crate) fn ask_flush(&self, request: FlushRequest) {
        *lock(&self.flush) = Some(request);
        self.wake();
    }

    /// The latest seek asked for, left in place: it counts as under way until
    /// [`Shared::flush_done`].
    pub(crate) fn flush_asked(&self) -> Option<FlushRequest> {
        *lock(&self.flush)
    }

    /// A seek was done. A later one may have been asked for meanwhile.
    pub(crate) fn flush_done(&self, serial: u64) {
        lock(&self.flush).take_if(|request| request.serial == serial);
    }

    pub(crate) fn ask_end(&self, serial: u64) {
        *lock(&self.end) = Some(serial);
        self.wake();
    }

    /// Whether the title ends with the blocks of this serial fed so far.
    pub(crate) fn ends(&self, serial: u64) -> bool {
        *lock(&self.end) == Some(serial)
    }

    pub(crate) fn ask_play(&self, play: bool) {
        self.wants_play.store(play, Ordering::SeqCst);
        self.wake();
    }

    pub(crate) fn wants_play(&self) -> bool {
        self.wants_play.load(Ordering::SeqCst)
    }

    /// Base has left its source up to this stream time.
    pub(crate) fn consume(&self, until: u64) {
        self.consumed.fetch_max(until, Ordering::SeqCst);
        self.wake();
    }

    pub(crate) fn consumed(&self) -> u64 {
        self.consumed.load(Ordering::SeqCst)
    }

    /// Nothing was fed or shown since a seek.
    pub(crate) fn begin_anew(&self, serial: u64) {
        self.serial.store(serial, Ordering::SeqCst);
        self.consumed.store(0, Ordering::SeqCst);
        self.ended.store(false, Ordering::SeqCst);
    }

    /// The last picture since the seek with the serial told was shown. Nothing
    /// if another seek is under way, which makes that meaningless.
    pub(crate) fn end_reached(&self) -> Option<u64> {
        let serial = self.serial.load(Ordering::SeqCst);
        if self.flush_asked().is_some() {
            return None;
        }
        self.ended.store(true, Ordering::SeqCst);
        self.watch.ended();
        Some(serial)
    }

    pub(crate) fn position(&self) -> Option<Span> {
        match self.flush_asked() {
            Some(request) => Some(request.to),
            None => self.watch.position(),
        }
    }

    /// Everything measured up to `now`.
    pub(crate) fn report(&self, now: Instant) -> MeterReport {
        let playing = self.wants_play() && !self.ended.load(Ordering::SeqCst);
        self.watch.report(playing.then_some(now))
    }
}
