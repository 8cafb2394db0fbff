//! How many viewers a node can let in and out in a second, on one core, through
//! the code that runs in production; beside the bare decision.

use crate::bench::{BenchError, Machine, Say};
use media::{BitRate, ByClass, Quality, Span, Time, TitleClass, TitleName};
use protocol::Level;
use protocol::node::autonomy::admission::decide;
use protocol::node::autonomy::{
    Autonomy, AutonomyConfig, AutonomyInput, EntryKind, Sla, UserId, UserRequest,
};
use protocol::node::classes::{Charge, ClassAdmission, ClassLimits, Demand, Source};
use serde::Serialize;
use std::collections::VecDeque;
use std::fmt;
use std::hint::black_box;
use std::time::Instant;

/// Viewers who are let in and out in each measurement.
const VIEWERS: u64 = 200_000;
/// Who watches at the same time.
const AT_ONCE: usize = 150;

/// One way of deciding.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Way {
    /// What is done for each viewer.
    pub what: String,
    /// Viewers a second, in and out.
    pub viewers_per_second: f64,
    /// How many times as long as the bare decision one takes.
    pub times_bare: f64,
}

/// The whole bench.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Where it ran.
    pub machine: Machine,
    /// The ways, the bare decision first.
    pub ways: Vec<Way>,
}

/// Lets viewers of all classes in and out, and counts.
pub fn run(say: Say<'_>) -> Result<Report, BenchError> {
    let mut ways: Vec<Way> = Vec::new();
    let all: [(&str, fn()); 3] = [
        ("the bare decision", bare),
        ("the rule: class, slots, links, store", rule),
        ("the node: and its users, backups, grants", node),
    ];
    for (what, run) in all {
        say(what);
        let mut seconds = f64::INFINITY;
        for _ in 0..3 {
            let start = Instant::now();
            run();
            seconds = seconds.min(start.elapsed().as_secs_f64());
        }
        let viewers = f64::from(u32::try_from(VIEWERS).unwrap_or(u32::MAX));
        let viewers_per_second = viewers / seconds.max(1e-9);
        let bare = ways.first().map_or(viewers_per_second, |bare| bare.viewers_per_second);
        ways.push(Way { what: what.to_owned(), viewers_per_second, times_bare: bare / viewers_per_second });
    }
    Ok(Report { machine: Machine::look(), ways })
}

fn classes() -> impl Iterator<Item = (u64, TitleClass)> {
    (0..VIEWERS).zip(TitleClass::ALL.into_iter().cycle())
}

fn bare() {
    let mut counts: ByClass<u64> = ByClass::default();
    for (number, class) in classes() {
        counts[class] = counts[class].saturating_add(1) % 60;
        let free = u32::try_from(number % 50).unwrap_or(0);
        let below = counts[class] < black_box(50);
        black_box(below.then(|| decide(black_box(free), 5, EntryKind::Normal, Some(EntryKind::NormalDual))));
    }
}

fn rule() {
    let limits = ClassLimits { slots: 200, to_viewers: BitRate(1_000_000_000), ..ClassLimits::default() };
    let mut admission = ClassAdmission::new(limits);
    let Ok(title) = "film".parse::<TitleName>() else { return };
    let mut watching = VecDeque::new();
    for (_, class) in classes() {
        let (title, rate) = (title.clone(), BitRate(1_000_000));
        let demand = Demand { title, class, charge: Charge::Tested, slots: 1, rate, source: Source::Held };
        watching.extend(black_box(admission.admit(&demand, Ok(()))).ok().map(|grant| grant.id));
        if watching.len() > AT_ONCE
            && let Some(first) = watching.pop_front()
        {
            admission.release(first);
        }
    }
}

fn node() {
    let (Ok(id), Ok(title)) = ("base-1".parse(), "film".parse::<TitleName>()) else { return };
    let config = AutonomyConfig { capacity: 200, assume_stored: true, ..AutonomyConfig::production() };
    let mut node = Autonomy::new(Time::ZERO, id, Level::BASE, config, 1);
    let mut watching = VecDeque::new();
    for (number, _) in classes() {
        let (now, user) = (Time::ZERO + Span::from_nanos(number.saturating_mul(1_000)), UserId(number));
        let request = UserRequest {
            user,
            title: title.clone(),
            quality: Quality::BRONZE,
            sla: Sla::Normal,
            started: false,
            epoch: 0,
            position: Span::ZERO,
            remaining: Span::from_secs(600),
            buffer: Span::ZERO,
        };
        node.handle_input(now, AutonomyInput::Arrive { request });
        watching.push_back(user);
        if watching.len() > AT_ONCE
            && let Some(user) = watching.pop_front()
        {
            node.handle_input(now, AutonomyInput::Depart { user });
        }
        while let Some(output) = node.poll_output() {
            black_box(output);
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.machine)?;
        writeln!(f, "viewers/s   times bare  what")?;
        for Way { what, viewers_per_second, times_bare } in &self.ways {
            writeln!(f, "{viewers_per_second:>9.0}{times_bare:>13.1}  {what}")?;
        }
        Ok(())
    }
}
