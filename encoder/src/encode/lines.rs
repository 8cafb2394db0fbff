//! The threads between the film and the title, and what each may hold.
//!
//! Where a block takes little memory each thread makes blocks of its own, all layers
//! of them: nothing waits for anything. Large pictures are made in pairs of threads: a
//! block goes to a thread that makes its Base, then to two that make its enhancements,
//! the upper layer some pictures behind the lower one. That needs half the memory, of
//! which libvpx takes the larger part, and leaves some of the processor idle. At the
//! end of the film, who has no block left takes the upper layer of another's.

use crate::block::{BasedBlock, BlockEncoder, CodedBlock, How, Recipe};
use crate::blocks::{Cutter, FilmBlock};
use crate::error::EncodeError;
use crate::options::{Metrics, Share};
use crate::source::Source;
use media::container::AudioSample;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Scope;
use std::time::Duration;

/// How often a wish to stop is looked for.
const GLANCE: Duration = Duration::from_millis(50);
/// Of how many blocks one is compared with the film.
const SAMPLED: u32 = 10;
/// Pictures that are read ahead of the blocks at work.
const AHEAD: u64 = 4;

/// A block on its way to an encoder.
pub(super) type Job = (FilmBlock, Vec<AudioSample>);
/// A block on its way to the writer.
type Coded = Result<CodedBlock, EncodeError>;

/// How many threads encode, and how they are arranged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Crew {
    /// Blocks that two threads work on.
    pairs: usize,
    /// Blocks that one works on.
    singles: usize,
}

impl Crew {
    /// Arranges so many threads; `small` if each may make blocks of its own.
    pub(super) fn new(jobs: usize, enhancements: usize, small: bool) -> Self {
        if enhancements < 2 || small {
            return Self { pairs: 0, singles: jobs.max(1) };
        }
        Self { pairs: jobs / 2, singles: if jobs < 2 { 1 } else { jobs % 2 } }
    }

    /// Blocks at work, from being read to being written: a pair has one at its
    /// Base beside that at its enhancements, and one is being read.
    pub(super) fn blocks(self) -> usize {
        2 * self.pairs + self.singles + 1
    }

    /// Pictures of the film in memory, if there are so many in a block. Each thread
    /// that makes whole blocks needs a whole one to begin with; where there is one
    /// block at a time, half of the next one is read before its first half is made.
    pub(super) fn pictures(self, block: u64) -> u64 {
        let halves = (3 * self.pairs + 2 * self.singles).max(3);
        u64::try_from(halves).unwrap_or(u64::MAX).saturating_mul(block).div_ceil(2).saturating_add(AHEAD)
    }
}

/// Room for decoded pictures. They are by far the largest part of what is held,
/// and a block gives them up one by one.
#[derive(Debug)]
pub(super) struct Room {
    most: u64,
    state: Mutex<Held>,
    left: Condvar,
}

#[derive(Debug, Default)]
struct Held {
    pictures: u64,
    /// Of them, those of blocks that were handed over.
    at_work: u64,
}

impl Room {
    /// For `most` pictures, or as many as one block needs if that is more.
    pub(super) fn new(most: u64) -> Self {
        Self { most, state: Mutex::default(), left: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, Held> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until another picture may be read. Where nothing is at work none
    /// would ever leave, and the block that is read is larger than the room.
    fn enter(&self, stop: &AtomicBool) {
        let mut held = self.state();
        while held.pictures >= self.most && held.at_work > 0 && !stop.load(Ordering::Relaxed) {
            held = self.left.wait_timeout(held, GLANCE).unwrap_or_else(PoisonError::into_inner).0;
        }
        held.pictures += 1;
    }

    fn hand_over(&self, pictures: u64) {
        self.state().at_work += pictures;
    }

    fn leave(&self, pictures: u64) {
        let mut held = self.state();
        held.pictures = held.pictures.saturating_sub(pictures);
        held.at_work = held.at_work.saturating_sub(pictures);
        self.left.notify_one();
    }
}

/// What the threads share.
pub(super) struct Lines<'a> {
    pub(super) jobs: Mutex<Receiver<Job>>,
    pub(super) stop: &'a AtomicBool,
    pub(super) recipe: &'a Recipe,
    pub(super) metrics: Metrics,
    pub(super) room: Room,
    /// Threads that have no more block to make.
    pub(super) free: AtomicUsize,
}

impl Lines<'_> {
    /// The next block to encode; none at the end.
    fn next(&self) -> Option<Job> {
        let job = self.jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        job.ok().filter(|_| !self.stop.load(Ordering::Relaxed))
    }

    fn base(&self, (film, sound): Job) -> Result<BasedBlock, EncodeError> {
        BasedBlock::encode(self.recipe, film, sound)
    }

    /// Whether somebody who has nothing left to do comes to help.
    fn take_hand(&self) -> bool {
        let take = |free: usize| free.checked_sub(1);
        self.free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    fn enhance(&self, encoder: &mut BlockEncoder, block: BasedBlock, paired: bool) -> Coded {
        let measure = match self.metrics {
            Metrics::Off => false,
            Metrics::Sampled => block.index().is_multiple_of(SAMPLED),
            Metrics::Full => true,
        };
        let helped = Cell::new(false);
        let hand = || {
            helped.set(!paired && self.take_hand());
            paired || helped.get()
        };
        let coded = encoder.encode(block, &How { measure, hand: &hand, done: &|| self.room.leave(1) });
        if helped.get() {
            self.free.fetch_add(1, Ordering::Relaxed);
        }
        coded
    }

    /// Starts the threads that encode; they end when there are no more blocks.
    pub(super) fn start<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        crew: Crew,
        coded: &SyncSender<Coded>,
    ) {
        for _ in 0..crew.pairs {
            let (sender, based) = sync_channel(0);
            let written = coded.clone();
            scope.spawn(move || self.make_bases(&sender, &written));
            let written = coded.clone();
            scope.spawn(move || {
                self.work(&written, true, || based.recv().ok().map(Ok));
            });
        }
        for _ in 0..crew.singles {
            let written = coded.clone();
            scope.spawn(move || {
                self.work(&written, false, || self.next().map(|job| self.base(job)));
            });
        }
    }

    fn make_bases(&self, based: &SyncSender<BasedBlock>, coded: &SyncSender<Coded>) {
        while let Some(job) = self.next() {
            let sent = match self.base(job) {
                Ok(block) => based.send(block).is_ok(),
                Err(error) => coded.send(Err(error)).is_ok(),
            };
            if !sent {
                return;
            }
        }
    }

    fn work(
        &self,
        coded: &SyncSender<Coded>,
        paired: bool,
        mut next: impl FnMut() -> Option<Result<BasedBlock, EncodeError>>,
    ) {
        let mut encoder = match BlockEncoder::new(self.recipe) {
            Ok(encoder) => encoder,
            Err(error) => {
                let _ = coded.send(Err(error));
                return;
            }
        };
        while let Some(block) = next() {
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            let done = block.and_then(|block| self.enhance(&mut encoder, block, paired));
            if coded.send(done).is_err() {
                return;
            }
        }
        // What it holds is not needed any more, and its time is somebody else's.
        drop(encoder);
        self.free.fetch_add(1, Ordering::Relaxed);
    }

    /// Reads the film block by block, each one when there is room for it; those
    /// of `share` from its block `done` on are encoded. Returns what is to be
    /// said about the film, and its number of blocks.
    pub(super) fn read(
        &self,
        mut source: Source,
        block_ticks: u64,
        (share, done): (Share, u32),
        jobs: &SyncSender<Job>,
        credits: &Receiver<()>,
    ) -> Result<(Vec<String>, u32), EncodeError> {
        let mut cutter = Cutter::new(block_ticks);
        let count = |block: &FilmBlock| u64::try_from(block.pictures.len()).unwrap_or(u64::MAX);
        let hand_over = |source: &mut Source, block: FilmBlock, last: bool| {
            let sound = source.sound_until(block.end, self.stop)?;
            if !share.takes(block.index) || block.index < share.nth(done) {
                self.room.leave(count(&block));
                return Ok(());
            }
            self.room.hand_over(count(&block));
            // Closed channels mean that somebody failed, and says so.
            let sent = jobs.send((block, sound)).is_ok() && (last || credits.recv().is_ok());
            if sent || last { Ok(()) } else { Err(EncodeError::Cancelled) }
        };
        if credits.recv().is_err() {
            return Err(EncodeError::Cancelled);
        }
        while let Some(shown) = source.next_picture(self.stop)? {
            self.room.enter(self.stop);
            if let Some(block) = cutter.push(shown) {
                hand_over(&mut source, block, false)?;
            }
        }
        let blocks = cutter.blocks();
        if let Some(block) = cutter.finish() {
            hand_over(&mut source, block, true)?;
        }
        source.check_end()?;
        Ok((source.warnings(), blocks))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_work_in_pairs_on_large_blocks_with_two_enhancements() {
        let (large, small) = (false, true);
        assert_eq!(Crew::new(1, 2, large), Crew { pairs: 0, singles: 1 });
        assert_eq!(Crew::new(5, 2, large), Crew { pairs: 2, singles: 1 });
        assert_eq!(Crew::new(4, 1, large), Crew { pairs: 0, singles: 4 });
        assert_eq!(Crew::new(4, 2, small), Crew { pairs: 0, singles: 4 });
        assert_eq!((Crew::new(2, 2, large).blocks(), Crew::new(2, 2, large).pictures(25)), (3, 42));
        assert_eq!((Crew::new(2, 2, small).blocks(), Crew::new(2, 2, small).pictures(25)), (3, 54));
        assert_eq!((Crew::new(1, 2, large).blocks(), Crew::new(1, 2, large).pictures(25)), (2, 42));
    }

    #[test]
    fn a_block_larger_than_the_room_goes_in_alone_and_others_wait() {
        let (room, stop) = (Room::new(2), AtomicBool::new(false));
        (0..5).for_each(|_| room.enter(&stop));
        room.hand_over(5);
        std::thread::scope(|scope| {
            let entered = scope.spawn(|| {
                room.enter(&stop);
                room.state().pictures
            });
            (0..4).for_each(|_| room.leave(1));
            assert!(entered.join().is_ok_and(|held| held == 2));
        });
    }
}
