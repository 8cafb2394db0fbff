//! How long data stay away: with reservations, and with a search after the
//! failure, for the same failures (the claim of Lu and Mori, ICDCSW 2009).

use super::continuity::{self, Plan, Variant};
use super::statistics::{Estimate, float};
use super::verdict::Verdict;
use crate::topology::TopologyError;
use media::Span;

/// The times of one way to recover.
#[derive(Clone, Debug, PartialEq)]
pub struct Recovery {
    /// The way.
    pub variant: Variant,
    /// Means over runs, in seconds.
    pub mean: Estimate,
    /// The longest of all, in seconds.
    pub longest: f64,
    /// Every time, in seconds, ascending, for a distribution.
    pub times: Vec<f64>,
    /// The share of normal users who played on.
    pub continuity: Estimate,
}

/// Both ways on the same networks, users and failures.
pub fn compare(users: u32, vip_permille: u32, seeds: &[u64]) -> Result<[Recovery; 2], TopologyError> {
    Ok([
        measure(users, vip_permille, seeds, Variant::With)?,
        measure(users, vip_permille, seeds, Variant::Reactive)?,
    ])
}

fn measure(
    users: u32,
    vip_permille: u32,
    seeds: &[u64],
    variant: Variant,
) -> Result<Recovery, TopologyError> {
    let (mut means, mut times, mut shares) = (Vec::new(), Vec::new(), Vec::new());
    for seed in seeds {
        let mut config = variant.config();
        let plan = Plan::paper(users, vip_permille, *seed);
        // Once a search stands between a user and its data, what nodes take to
        // handle an agent counts, as it does for the news of a failure.
        if variant == Variant::Reactive {
            config.process_agents = config.process;
        }
        let outcome = continuity::fail_each(continuity::stable(&plan, config)?, variant, *seed);
        let seconds: Vec<f64> = outcome.recoveries.iter().map(|took| Span::as_secs_f64(*took)).collect();
        means.push(seconds.iter().sum::<f64>() / float(seconds.len().max(1)));
        shares.push(outcome.continuity.normal());
        times.extend(seconds);
    }
    times.sort_by(f64::total_cmp);
    Ok(Recovery {
        variant,
        mean: Estimate::of(&means),
        longest: times.last().copied().unwrap_or_default(),
        times,
        continuity: Estimate::of(&shares),
    })
}

/// The claims about recovery.
pub fn verdicts([reserved, reactive]: &[Recovery; 2]) -> Vec<Verdict> {
    let shorter = 1.0 - reserved.mean.mean / reactive.mean.mean.max(f64::EPSILON);
    vec![
        Verdict::new(
            "recovery with a reservation is shorter than with a search after the failure",
            format!("{:.0} % ({} s against {} s)", 100.0 * shorter, reserved.mean, reactive.mean),
            "30 % on average",
            shorter >= 0.30,
        ),
        Verdict::new(
            "no recovery with a reservation outlasts the buffer of 15 s",
            format!("longest {:.2} s", reserved.longest),
            "playback does not stop",
            reserved.longest <= 15.0,
        ),
    ]
}
