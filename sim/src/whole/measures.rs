//! What is counted of a run.

use super::seat::Freeze;
use media::{ByteCount, Time, TitleClass};

/// What a run gave, in the stretch that counts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measures {
    /// Viewers who came, by class of their title.
    pub asked: [u64; 3],
    /// Those of them whom nobody served.
    pub refused: [u64; 3],
    /// Normal viewers who lost their node while they watched.
    pub normals: u64,
    /// Those of them whose playback stopped within the minute that followed.
    pub normals_stopped: u64,
    /// Those of them to whom a node sent again before a buffer was over.
    pub normals_served: u64,
    /// Seconds that normal viewers were without a node, a minute at most for each.
    pub normals_away: f64,
    /// VIPs who lost their node while they watched.
    pub vips: u64,
    /// As of normal viewers.
    pub vips_stopped: u64,
    /// As of normal viewers.
    pub vips_served: u64,
    /// Seconds of freezes; the start is none.
    pub frozen: f64,
    /// Seconds in which somebody watched, freezes included.
    pub watched: f64,
    /// Layers that were received.
    pub received: u64,
    /// Layers that were wanted.
    pub wanted: u64,
    /// Bytes from nodes to proxies.
    pub from_nodes: u64,
    /// Bytes from proxies to proxies.
    pub from_peers: u64,
    /// The most that all caches held together, as the sum of each one's most.
    pub cached: u64,
    /// What the nodes stored before anything failed.
    pub stored: u64,
    /// What as many nodes would have stored of whole titles.
    pub stored_whole: u64,
    /// Messages between nodes beside survival signals, and between proxies.
    pub messages: u64,
    /// Minutes that were counted.
    pub minutes: f64,
    /// Things that happened in the whole run.
    pub happened: u64,
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { float(part) / float(whole) }
}

#[allow(clippy::cast_precision_loss, clippy::as_conversions, reason = "for figures")]
fn float(count: u64) -> f64 {
    count as f64
}

impl Measures {
    /// `B_k`: the share of viewers of a class who were refused.
    pub fn blocking(&self, class: TitleClass) -> f64 {
        let of = |counts: &[u64; 3]| {
            let [archived, first_time, ad_hoc] = *counts;
            match class {
                TitleClass::Archived => archived,
                TitleClass::FirstTime => first_time,
                TitleClass::AdHoc => ad_hoc,
            }
        };
        share(of(&self.refused), of(&self.asked))
    }

    /// Of the normal viewers who lost their node, how many played on.
    pub fn continuity_normal(&self) -> f64 {
        1.0 - share(self.normals_stopped, self.normals)
    }

    /// The same of VIPs.
    pub fn continuity_vip(&self) -> f64 {
        1.0 - share(self.vips_stopped, self.vips)
    }

    /// Of the normal viewers who lost their node, how many had another before a
    /// buffer was over, whatever their proxy had for them: equation 11 of ADVODS.
    pub fn served_normal(&self) -> f64 {
        if self.normals == 0 { 1.0 } else { share(self.normals_served, self.normals) }
    }

    /// The same of VIPs.
    pub fn served_vip(&self) -> f64 {
        if self.vips == 0 { 1.0 } else { share(self.vips_served, self.vips) }
    }

    /// Mean seconds until a node sends again to a normal viewer who lost its own.
    pub fn away_normal(&self) -> f64 {
        if self.normals == 0 { 0.0 } else { self.normals_away / float(self.normals) }
    }

    /// Seconds of freezes in an hour of watching.
    pub fn freeze(&self) -> f64 {
        if self.watched > 0.0 { self.frozen / self.watched * 3600.0 } else { 0.0 }
    }

    /// Received over requested quality.
    pub fn ratio(&self) -> f64 {
        share(self.received, self.wanted)
    }

    /// Mbit/s from the nodes to all proxies.
    pub fn origin_rate(&self) -> f64 {
        float(self.from_nodes) * 8.0 / 1e6 / (self.minutes * 60.0).max(1e-9)
    }

    /// Mbit/s between proxies.
    pub fn peer_rate(&self) -> f64 {
        float(self.from_peers) * 8.0 / 1e6 / (self.minutes * 60.0).max(1e-9)
    }

    /// Gbyte in nodes and caches.
    pub fn storage(&self) -> f64 {
        float(self.stored + self.cached) / 1e9
    }

    /// What the nodes store over what whole titles would take.
    pub fn placement(&self) -> f64 {
        share(self.stored, self.stored_whole)
    }

    /// Messages a second.
    pub fn message_rate(&self) -> f64 {
        float(self.messages) / (self.minutes * 60.0).max(1e-9)
    }
}

/// The stretch that counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) from: Time,
    pub(super) to: Time,
}

impl Window {
    pub(super) fn has(&self, at: Time) -> bool {
        self.from <= at && at < self.to
    }

    /// How much of a stretch lies in it, in seconds.
    pub(super) fn overlap(&self, freeze: Freeze) -> f64 {
        let (from, to) = (freeze.from.max(self.from), freeze.to.min(self.to));
        if to > from { (to - from).as_secs_f64() } else { 0.0 }
    }
}

pub(super) fn sum(sizes: impl Iterator<Item = ByteCount>) -> u64 {
    sizes.fold(0, |sum, size| sum.saturating_add(size.0))
}
