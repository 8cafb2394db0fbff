//! A line whose rate changes over time, as a trace that is replayed in a loop.
//!
//! Two formats are read. Mahimahi's (Netravali et al., USENIX ATC 2015): each line
//! is the millisecond at which one packet of 1500 bytes may leave. And tables of
//! two columns, seconds and bits a second: from then on the line has this rate.
//!
//! Both become the same thing, the capacity that has gone by until a moment. A
//! datagram has left when as much capacity as it is long has gone by; what nobody
//! used is lost, as time on a line is.

use media::{ByteCount, Span};

/// What one line of a Mahimahi trace stands for, in bits.
const PACKET_BITS: u64 = 1_500 * 8;
/// The most lines that are read.
const MAX_LINES: usize = 1_000_000;
/// The longest trace: a day.
const MAX_SECONDS: f64 = 86_400.0;
/// The fastest line: a terabit a second.
const MAX_RATE: f64 = 1e12;
const NANOS: u128 = 1_000_000_000;

/// Bits times a billion, so that a rate times nanoseconds is whole.
type Capacity = u128;

/// What is wrong with a trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct TraceError {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong there.
    pub what: &'static str,
}

/// From a moment on, so much capacity goes by in each nanosecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretch {
    from: u64,
    /// What has gone by until then.
    before: Capacity,
    rate: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Course {
    /// Moments in nanoseconds at which a packet may leave, not decreasing.
    Packets(Vec<u64>),
    /// Rates, one after the other.
    Rates(Vec<Stretch>),
}

/// A trace, replayed in a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    course: Course,
    /// After so many nanoseconds it begins anew.
    period: u64,
    /// What goes by in one period.
    whole: Capacity,
}

impl Trace {
    /// Reads a trace: a table if there is a comma in it, Mahimahi's format
    /// otherwise. Empty lines and what follows a `#` do not count.
    ///
    /// # Errors
    /// The first line that makes no sense.
    pub fn read(text: &str) -> Result<Self, TraceError> {
        let lines = || {
            let lines = (1..).zip(text.lines());
            lines.map(|(number, line)| (number, line.split('#').next().unwrap_or_default().trim()))
        };
        let wrong = |line, what| Err(TraceError { line, what });
        if text.lines().nth(MAX_LINES).is_some() {
            return wrong(MAX_LINES + 1, "a trace has at most a million lines");
        }
        let filled: Vec<(usize, &str)> = lines().filter(|(_, line)| !line.is_empty()).collect();
        if filled.iter().any(|(_, line)| line.contains(',')) { table(&filled) } else { packets(&filled) }
    }

    /// How long it takes until it begins anew.
    pub fn period(&self) -> Span {
        Span::from_nanos(self.period)
    }

    /// Bits a second on average.
    pub fn mean_rate(&self) -> media::BitRate {
        let rate = self.whole / u128::from(self.period.max(1));
        media::BitRate(u64::try_from(rate).unwrap_or(u64::MAX))
    }

    /// The capacity of a datagram.
    fn needs(length: ByteCount) -> Capacity {
        u128::from(length.0) * 8 * NANOS
    }

    /// What has gone by after so long.
    fn gone(&self, at: Span) -> Capacity {
        let (rounds, within) = (at.as_nanos() / self.period, at.as_nanos() % self.period);
        let inside = match &self.course {
            Course::Packets(moments) => {
                // At its very moment a packet has still to leave.
                let before = moments.partition_point(|moment| *moment < within);
                u128::try_from(before).unwrap_or(0) * u128::from(PACKET_BITS) * NANOS
            }
            Course::Rates(stretches) => {
                let after = stretches.partition_point(|stretch| stretch.from <= within);
                let stretch = after.checked_sub(1).and_then(|index| stretches.get(index));
                stretch.map_or(0, |stretch| {
                    stretch.before + u128::from(within - stretch.from) * u128::from(stretch.rate)
                })
            }
        };
        u128::from(rounds) * self.whole + inside
    }

    /// When so much has gone by.
    fn when(&self, capacity: Capacity) -> Span {
        // Of what ends exactly with a period the end is meant, not the next begin.
        let rounds = capacity.saturating_sub(1) / self.whole;
        let rest = capacity - rounds * self.whole;
        let within = match &self.course {
            Course::Packets(moments) => {
                let number = rest.div_ceil(u128::from(PACKET_BITS) * NANOS).saturating_sub(1);
                let index = usize::try_from(number).unwrap_or(usize::MAX);
                moments.get(index).copied().unwrap_or(self.period)
            }
            Course::Rates(stretches) => {
                let after = stretches.partition_point(|stretch| stretch.before < rest);
                let stretch = after.checked_sub(1).and_then(|index| stretches.get(index));
                stretch.map_or(0, |stretch| {
                    let took = (rest - stretch.before).div_ceil(u128::from(stretch.rate.max(1)));
                    stretch.from.saturating_add(u64::try_from(took).unwrap_or(u64::MAX))
                })
            }
        };
        let rounds = u64::try_from(rounds).unwrap_or(u64::MAX);
        Span::from_nanos(rounds.saturating_mul(self.period).saturating_add(within))
    }
}

/// A line that follows a trace, and how much of it was used.
#[derive(Clone, Debug)]
pub(super) struct Following {
    trace: std::sync::Arc<Trace>,
    since: media::Time,
    used: Capacity,
}

impl Following {
    pub(super) fn new(trace: std::sync::Arc<Trace>, since: media::Time) -> Self {
        Self { trace, since, used: 0 }
    }

    /// When a datagram has left that cannot leave before `start`.
    pub(super) fn sent(&mut self, start: media::Time, length: ByteCount) -> media::Time {
        let gone = self.trace.gone(start.since(self.since));
        self.used = self.used.max(gone) + Trace::needs(length);
        self.since + self.trace.when(self.used)
    }
}

fn packets(lines: &[(usize, &str)]) -> Result<Trace, TraceError> {
    let mut moments: Vec<u64> = Vec::with_capacity(lines.len());
    for &(line, text) in lines {
        let wrong = |what| Err(TraceError { line, what });
        let Some(millis) = text.parse::<u32>().ok() else {
            return wrong("a whole number of milliseconds is needed");
        };
        if f64::from(millis) > MAX_SECONDS * 1_000.0 {
            return wrong("a trace lasts a day at most");
        }
        let moment = u64::from(millis) * 1_000_000;
        if moments.last().is_some_and(|last| *last > moment) {
            return wrong("milliseconds must not go back");
        }
        moments.push(moment);
    }
    let last = lines.last().map_or(1, |(line, _)| *line);
    let period = moments.last().copied().filter(|last| *last > 0);
    let Some(period) = period else {
        return Err(TraceError { line: last, what: "a trace must last a millisecond at least" });
    };
    let whole = u128::try_from(moments.len()).unwrap_or(0) * u128::from(PACKET_BITS) * NANOS;
    Ok(Trace { course: Course::Packets(moments), period, whole })
}

fn table(lines: &[(usize, &str)]) -> Result<Trace, TraceError> {
    let mut rows: Vec<(u64, u64)> = Vec::with_capacity(lines.len());
    for (place, &(line, text)) in lines.iter().enumerate() {
        let wrong = |what| Err(TraceError { line, what });
        let columns =
            text.split_once(',').map(|(at, rate)| (at.trim().parse::<f64>(), rate.trim().parse::<f64>()));
        let Some((Ok(at), Ok(rate))) = columns else {
            if place == 0 && text.chars().any(char::is_alphabetic) {
                continue;
            }
            return wrong("two numbers are needed: seconds, bits a second");
        };
        if !(0.0..=MAX_SECONDS).contains(&at) {
            return wrong("seconds are between 0 and a day");
        }
        if !(0.0..=MAX_RATE).contains(&rate) {
            return wrong("bits a second are between 0 and a million million");
        }
        let from = Span::from(std::time::Duration::from_secs_f64(at)).as_nanos();
        match rows.last() {
            None if from != 0 => return wrong("the first rate must hold from second 0 on"),
            Some((before, _)) if *before >= from => return wrong("seconds must go forward"),
            _ => rows.push((from, whole_number(rate))),
        }
    }
    let end = match rows.as_slice() {
        [] => return Err(TraceError { line: 1, what: "there is no rate in it" }),
        [_] => 1_000_000_000,
        // The last rate holds as long as the one before it.
        [.., (before, _), (last, _)] => last + (last - before),
    };
    let mut stretches = Vec::with_capacity(rows.len());
    let mut whole = 0;
    let ends = rows.iter().skip(1).map(|(from, _)| *from).chain([end]);
    for (&(from, rate), until) in rows.iter().zip(ends) {
        stretches.push(Stretch { from, before: whole, rate });
        whole += u128::from(until - from) * u128::from(rate);
    }
    if whole == 0 {
        let line = lines.last().map_or(1, |(line, _)| *line);
        return Err(TraceError { line, what: "nothing ever gets through" });
    }
    Ok(Trace { course: Course::Rates(stretches), period: end, whole })
}

/// A number that is known to be between 0 and [`MAX_RATE`].
#[allow(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the caller has checked the range"
)]
fn whole_number(value: f64) -> u64 {
    value.round() as u64
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;
    use media::Time;
    use std::sync::Arc;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn following(text: &str) -> Following {
        Following::new(Arc::new(Trace::read(text).unwrap()), Time::ZERO)
    }

    #[test]
    fn each_line_of_a_mahimahi_trace_lets_one_packet_go() {
        let mut line = following("10\n10\n30\n");
        let mut sent = |start, length| line.sent(at(start), ByteCount(length));
        assert_eq!([sent(0, 1_500), sent(0, 1_500), sent(0, 1_500)], [at(10), at(10), at(30)]);
        // It begins anew after 30 ms, and small ones share a packet.
        assert_eq!([sent(30, 750), sent(30, 750), sent(30, 1)], [at(40), at(40), at(40)]);
        // What nobody used is gone.
        assert_eq!(sent(1_000, 1_500), at(1_000));
        assert_eq!(sent(1_001, 3_000), at(1_030));
    }

    #[test]
    fn a_table_holds_each_rate_until_the_next() {
        // A megabit a second, nothing for a second, two megabits a second.
        let mut line = following("seconds,bit/s\n0,1e6\n1,0\n2,2000000 # fast\n");
        let mut sent = |start, length| line.sent(at(start), ByteCount(length));
        assert_eq!(sent(0, 125_000), at(1_000), "a megabit is through when its second is over");
        assert_eq!(sent(0, 125_000), at(2_500));
        assert_eq!(sent(0, 125_000), at(3_000), "the last rate holds as long as the one before it");
        assert_eq!(sent(0, 12_500), at(3_100), "and then it begins anew");
        assert_eq!(sent(4_200, 1), at(5_000) + Span::from_nanos(4_000));
    }

    #[test]
    fn means_are_those_of_a_whole_round() {
        let trace = Trace::read("0,3000000\n2,1000000").unwrap();
        assert_eq!((trace.period(), trace.mean_rate().0), (Span::from_secs(4), 2_000_000));
        assert_eq!(Trace::read("1\n2\n").unwrap().mean_rate().0, 12_000_000);
        let alone = Trace::read("0, 8000").unwrap();
        assert_eq!((alone.period(), alone.mean_rate().0), (Span::from_secs(1), 8_000));
    }

    #[test]
    fn a_trace_that_makes_no_sense_is_refused_with_its_line() {
        let line = |text: &str| Trace::read(text).unwrap_err().line;
        assert_eq!([line(""), line("0\n"), line("# nothing\n\n7\nseven\n"), line("5\n4")], [1, 1, 4, 2]);
        assert_eq!(
            [line("0,1\n0,2"), line("1,5"), line("0,-1"), line("0,0\n3,0"), line("a,b\nc,d")],
            [2, 1, 1, 2, 2]
        );
        assert_eq!([line("0,nan"), line("9999999999999"), line("99999999999,1")], [1, 1, 1]);
        assert_eq!(
            Trace::read("4\nx").unwrap_err().to_string(),
            "line 2: a whole number of milliseconds is needed"
        );
    }
}
