//! The links of a network on this machine, without privileges: UDP relays that
//! behave as [`sim::Pipe`] says, all on one thread.
//!
//! A *door* stands in front of somebody who listens. Which link a dialler takes to
//! it is decided by the address it dials from: on Linux all of 127/8 is this
//! machine, so that each may have an address of its own. Several doors may share a
//! link, as everything between two places does.

pub mod accuracy;
mod lateness;
mod relay;
mod table;

pub use lateness::Lateness;
pub use table::{Count, DoorId, LinkId, Way};

use media::{Span, Time};
use rustix::event::epoll;
use sim::{PipeShape, Trace};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;
use table::Table;

/// A link: the way there and the way back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkShape {
    /// From its first end to its second: from who dials to who listens, unless a
    /// route says [`Way::Against`].
    pub there: PipeShape,
    /// The other way.
    pub back: PipeShape,
}

impl LinkShape {
    /// Nothing between both ends.
    pub const OPEN: Self = Self::both(PipeShape::OPEN);

    /// The same in both directions.
    pub const fn both(shape: PipeShape) -> Self {
        Self { there: shape, back: shape }
    }
}

/// What a link has carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// From its first end to its second.
    pub there: Count,
    /// The other way.
    pub back: Count,
}

/// The relay, which runs until this is dropped.
#[derive(Debug)]
pub struct Links {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    /// The thread's number in the system, if it is known.
    number: Option<String>,
}

#[derive(Debug)]
struct Shared {
    epoll: OwnedFd,
    table: Mutex<Table>,
    stop: AtomicBool,
    began: Instant,
}

impl Shared {
    fn now(&self) -> Time {
        Time::ZERO + Span::from(self.began.elapsed())
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Links {
    /// Starts the relay's thread. The seed decides what is lost, and jitter.
    ///
    /// # Errors
    /// The system has no room for a thread or a set of sockets.
    pub fn start(seed: u64) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            table: Mutex::new(Table::new(seed)),
            stop: AtomicBool::new(false),
            began: Instant::now(),
        });
        let of = Arc::clone(&shared);
        let (tell, told) = std::sync::mpsc::sync_channel(1);
        let begin = move || {
            // Whoever started it waits for this.
            let _ = tell.send(thread_number());
            relay::run(&of);
        };
        let thread = std::thread::Builder::new().name("links".to_owned()).spawn(begin)?;
        let number = told.recv().ok().flatten();
        Ok(Self { shared, thread: Some(thread), number })
    }

    /// Gives the relay's thread real-time priority (`chrt -r 10`), so that it keeps
    /// its times on a busy machine; whether that was allowed.
    pub fn hurry(&self) -> bool {
        self.number.as_deref().is_some_and(hurry)
    }

    /// A new link, which carries nothing until it is on a route.
    pub fn link(&self, shape: LinkShape) -> LinkId {
        self.shared.table().link(shape)
    }

    /// A new door in front of whoever listens at `target`, open for everybody; and
    /// the address to dial instead.
    ///
    /// # Errors
    /// There is no free port.
    pub fn door(&self, target: SocketAddr) -> io::Result<(DoorId, SocketAddr)> {
        self.shared.table().door(&self.shared.epoll, target)
    }

    /// Who dials this door from this address takes this link from now on.
    pub fn route(&self, door: DoorId, from: IpAddr, link: LinkId, way: Way) {
        self.shared.table().route(door, from, link, way);
    }

    /// Who dials this door and is on no route gets a link of its own like this.
    pub fn others(&self, door: DoorId, shape: LinkShape) {
        self.shared.table().others(door, shape);
    }

    /// The link behaves like this from now on.
    pub fn reshape(&self, link: LinkId, shape: LinkShape) {
        self.shared.table().reshape(link, shape);
    }

    /// From now on the link has the rates of these traces, which begin now, there
    /// and back; where there is none, that of its shape.
    pub fn follow(&self, link: LinkId, there: Option<Arc<Trace>>, back: Option<Arc<Trace>>) {
        let now = self.shared.now();
        self.shared.table().follow(link, now, [there, back]);
    }

    /// What a link has carried so far.
    pub fn counts(&self, link: LinkId) -> Counts {
        self.shared.table().counts(link)
    }

    /// What the links of all who dialled this door without a route have carried.
    pub fn counts_of_others(&self, door: DoorId) -> Counts {
        self.shared.table().counts_of_others(door)
    }

    /// How late datagrams went that had to wait.
    pub fn lateness(&self) -> Lateness {
        self.shared.table().lateness.clone()
    }

    /// Datagrams and diallers that the relay itself had no room for: figures taken
    /// over it are worth nothing if there were any.
    pub fn turned_away(&self) -> u64 {
        self.shared.table().turned_away
    }
}

impl Drop for Links {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It looks at the order at least twenty times a second.
            let _ = thread.join();
        }
    }
}

/// The number that the system has for the thread that asks, if it tells.
fn thread_number() -> Option<String> {
    let itself = std::fs::read_link("/proc/thread-self").ok()?;
    Some(itself.file_name()?.to_str()?.to_owned())
}

/// Gives a thread real-time priority; whether that was allowed.
fn hurry(thread: &str) -> bool {
    let mut chrt = std::process::Command::new("chrt");
    chrt.args(["-r", "-p", "10", thread]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    chrt.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests;
