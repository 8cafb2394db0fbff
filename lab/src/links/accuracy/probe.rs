//! Datagrams that tell on which link and when they were sent, and who notes when
//! they arrive.

use super::Line;
use crate::links::table::HEADERS;
use crate::links::{hurry, thread_number};
use media::{ByteCount, Span};
use sim::eval::statistics::float;
use socket2::SockRef;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Payload of a datagram that fills a line.
const LOAD_BYTES: usize = 1_172;
/// Payload of a datagram that asks how long it takes.
const PROBE_BYTES: usize = 100;
/// Between two looks at how much is to be offered.
const TICK: Duration = Duration::from_millis(2);
/// Between two probes on a link.
const SPACING: Duration = Duration::from_millis(5);
/// How long the lines are filled before it counts.
const FILLING: Duration = Duration::from_millis(700);
/// Longer than the longest delay with a full queue.
const TAIL: Duration = Duration::from_millis(800);
/// What is offered, in times of the rate.
const OFFERED: f64 = 1.2;
/// What is asked of the kernel for the sink.
const SINK_BYTES: usize = 8 * 1024 * 1024;

/// Where all links lead.
pub(super) struct Sink {
    socket: UdpSocket,
    address: SocketAddr,
    began: Instant,
}

/// What arrived.
struct Arrival {
    link: usize,
    sent: Span,
    at: Span,
    bytes: usize,
}

/// How fast a link is.
pub(super) struct Rate {
    /// Bits a second that arrived.
    pub(super) measured: f64,
    /// Bits a second that were offered.
    pub(super) offered: f64,
    /// What had to be offered to fill it.
    pub(super) needed: f64,
}

/// What the probes of a link saw.
pub(super) struct Probed {
    pub(super) sent: usize,
    /// What each took beyond what was set, in milliseconds.
    pub(super) errors_ms: Vec<f64>,
}

impl Sink {
    pub(super) fn open() -> io::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.set_read_timeout(Some(Duration::from_millis(50)))?;
        // What is not granted shows in the figures.
        let _ = SockRef::from(&socket).set_recv_buffer_size(SINK_BYTES);
        Ok(Self { address: socket.local_addr()?, socket, began: Instant::now() })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    fn now(&self) -> Span {
        Span::from(self.began.elapsed())
    }

    /// Notes what arrives until the order to stop.
    fn listen(&self, stop: &AtomicBool) -> Vec<Arrival> {
        // What waits for the processor here is not the links' delay.
        let _ = thread_number().is_some_and(|number| hurry(&number));
        let (mut arrivals, mut bytes) = (Vec::new(), [0; 2_048]);
        while !stop.load(Ordering::Relaxed) {
            let Ok(length) = self.socket.recv(&mut bytes) else { continue };
            let at = self.now();
            let Some((link, sent)) = bytes.get(..length).and_then(read) else { continue };
            arrivals.push(Arrival { link, sent, at, bytes: length });
        }
        arrivals
    }

    /// Listens while `work` goes on, and a little longer.
    fn during(
        &self,
        work: impl FnOnce() -> io::Result<Vec<usize>>,
    ) -> io::Result<(Vec<usize>, Vec<Arrival>)> {
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let listening = scope.spawn(|| self.listen(&stop));
            let sent = work();
            thread::sleep(TAIL);
            stop.store(true, Ordering::Relaxed);
            let arrivals = listening.join().map_err(|_| io::Error::other("the listener broke off"))?;
            Ok((sent?, arrivals))
        })
    }
}

fn write(link: usize, sent: Span, bytes: &mut [u8]) {
    let link = u64::try_from(link).unwrap_or(u64::MAX).to_be_bytes();
    let stamp = link.into_iter().chain(sent.as_nanos().to_be_bytes());
    bytes.iter_mut().zip(stamp).for_each(|(byte, stamp)| *byte = stamp);
}

fn read(bytes: &[u8]) -> Option<(usize, Span)> {
    let (link, rest) = bytes.split_first_chunk::<8>()?;
    let sent = rest.first_chunk::<8>()?;
    Some((usize::try_from(u64::from_be_bytes(*link)).ok()?, Span::from_nanos(u64::from_be_bytes(*sent))))
}

/// Offers each link more than its rate, and counts what arrives.
pub(super) fn rates(sink: &Sink, lines: &[Line], seconds: u32) -> io::Result<Vec<Rate>> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let whole = FILLING + Duration::from_secs(seconds.into());
    let began = Instant::now();
    let (sent, arrivals) = sink.during(|| {
        let mut sent = vec![0_usize; lines.len()];
        let mut bytes = [0; LOAD_BYTES];
        while began.elapsed() < whole {
            for (link, (line, sent)) in lines.iter().zip(&mut sent).enumerate() {
                let bits = OFFERED * rate(line) * began.elapsed().as_secs_f64();
                while float(*sent) * float(LOAD_BYTES) * 8.0 < bits {
                    write(link, sink.now(), &mut bytes);
                    socket.send_to(&bytes, line.address)?;
                    *sent += 1;
                }
            }
            thread::sleep(TICK);
        }
        Ok(sent)
    })?;
    let headers = usize::try_from(HEADERS).unwrap_or(0);
    let from = Span::from(began.duration_since(sink.began) + FILLING);
    let until = Span::from(began.duration_since(sink.began) + whole);
    let each = lines.iter().zip(sent).enumerate().map(|(number, (line, sent))| {
        let counted = arrivals.iter().filter(|one| one.link == number && one.at >= from && one.at <= until);
        let counted: Vec<&Arrival> = counted.collect();
        let bytes: usize = counted.iter().skip(1).map(|one| one.bytes + headers).sum();
        let ends = counted.first().zip(counted.last());
        let took = ends.map_or(0.0, |(first, last)| last.at.saturating_sub(first.at).as_secs_f64());
        let offered = float(sent * LOAD_BYTES) * 8.0 / whole.as_secs_f64();
        Rate { measured: float(bytes) * 8.0 / took.max(1e-9), offered, needed: rate(line) * 1.1 }
    });
    Ok(each.collect())
}

/// Sends a probe on each link every few milliseconds, and sees how long each takes.
pub(super) fn delays(sink: &Sink, lines: &[Line], seconds: u32) -> io::Result<Vec<Probed>> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let began = Instant::now();
    let (sent, arrivals) = sink.during(|| {
        let mut sent = vec![0_usize; lines.len()];
        let mut bytes = [0; PROBE_BYTES];
        while began.elapsed() < Duration::from_secs(seconds.into()) {
            let turn = Instant::now();
            for (link, (line, sent)) in lines.iter().zip(&mut sent).enumerate() {
                write(link, sink.now(), &mut bytes);
                socket.send_to(&bytes, line.address)?;
                *sent += 1;
            }
            // Who is late leaves one out: two at once would wait for each other.
            thread::sleep(SPACING.saturating_sub(turn.elapsed()).max(Duration::from_millis(2)));
        }
        Ok(sent)
    })?;
    let length = ByteCount(u64::try_from(PROBE_BYTES).unwrap_or(0) + HEADERS);
    let each = lines.iter().zip(sent).enumerate().map(|(number, (line, sent))| {
        let set = line.shape.delay + line.shape.rate.unwrap_or_default().time_for(length);
        let mine = arrivals.iter().filter(|one| one.link == number && one.bytes == PROBE_BYTES);
        let error = |one: &Arrival| (one.at.saturating_sub(one.sent).as_secs_f64() - set.as_secs_f64()).abs();
        Probed { sent, errors_ms: mine.map(|one| error(one) * 1_000.0).collect() }
    });
    Ok(each.collect())
}

fn rate(line: &Line) -> f64 {
    float(usize::try_from(line.shape.rate.unwrap_or_default().0).unwrap_or(0))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut bytes = [0; PROBE_BYTES];
        write(7, Span::from_millis(3), &mut bytes);
        assert_eq!(read(&bytes), Some((7, Span::from_millis(3))));
        assert_eq!(read(&[0; 15]), None);
    }
}
