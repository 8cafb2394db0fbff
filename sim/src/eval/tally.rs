//! Counting who played on: equation 11 of ADVODS, in its three readings.

use super::statistics::float;

/// What one failure of one Base node did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FailureTally {
    /// Normal users whose primary node failed.
    pub normals: usize,
    /// Those of them who played on without a stop.
    pub normals_nonstop: usize,
    /// VIPs whose primary node failed.
    pub vips: usize,
    /// Those of them who played on without a stop.
    pub vips_nonstop: usize,
}

/// The failures of every Base node in turn, each from the same stable state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Continuity {
    /// One for each Base node, in the order of the topology.
    pub failures: Vec<FailureTally>,
    /// Normal users served in the stable state.
    pub normals: usize,
    /// VIPs served in the stable state.
    pub vips: usize,
    /// Users whom no Base node could take.
    pub unserved: usize,
}

fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 1.0 } else { float(part) / float(whole) }
}

impl Continuity {
    /// The continuity of normal users **whose primary failed**: the reading in
    /// which the published values are possible. One where there are none.
    pub fn normal(&self) -> f64 {
        let whole = self.failures.iter().map(|failure| failure.normals).sum();
        share(self.failures.iter().map(|failure| failure.normals_nonstop).sum(), whole)
    }

    /// The same for VIPs.
    pub fn vip(&self) -> f64 {
        let whole = self.failures.iter().map(|failure| failure.vips).sum();
        share(self.failures.iter().map(|failure| failure.vips_nonstop).sum(), whole)
    }

    /// The continuity after one failure, of the node at `place`.
    pub fn normal_of_one(&self, place: usize) -> Option<f64> {
        self.failures.get(place).map(|failure| share(failure.normals_nonstop, failure.normals))
    }

    /// Equation 11 word for word: of **all** normal users, how many play on
    /// when one node fails, in the mean over the nodes.
    pub fn literal(&self) -> f64 {
        let stopped: usize =
            self.failures.iter().map(|failure| failure.normals - failure.normals_nonstop).sum();
        if self.failures.is_empty() {
            return 1.0;
        }
        1.0 - share(stopped, self.normals.max(1)) / float(self.failures.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_readings_differ() {
        let half = FailureTally { normals: 2, normals_nonstop: 1, vips: 0, vips_nonstop: 0 };
        let whole = FailureTally { normals: 4, normals_nonstop: 4, vips: 1, vips_nonstop: 0 };
        let continuity = Continuity { failures: vec![half, whole], normals: 6, vips: 1, unserved: 0 };
        assert!((continuity.normal() - 5.0 / 6.0).abs() < 1e-12);
        assert!(continuity.vip().abs() < 1e-12);
        assert_eq!(continuity.normal_of_one(0), Some(0.5));
        assert!((continuity.literal() - (1.0 - 1.0 / 12.0)).abs() < 1e-12);
        assert!((Continuity::default().normal() - 1.0).abs() < 1e-12);
    }
}
