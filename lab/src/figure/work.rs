//! Many pieces on all cores.

use super::Progress;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// What each piece gives, in the order of the pieces, whoever was done first.
pub(super) fn all<J: Sync, T: Send>(
    pieces: &[J],
    progress: Progress<'_>,
    work: impl Fn(&J) -> T + Sync,
) -> Vec<T> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let lock = || done.lock().unwrap_or_else(PoisonError::into_inner);
    let worker = || {
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(piece) = pieces.get(place) else { return };
            let result = work(piece);
            let count = {
                let mut done = lock();
                done.push((place, result));
                done.len()
            };
            progress(count, pieces.len());
        }
    };
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(worker);
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, result)| result).collect()
}
