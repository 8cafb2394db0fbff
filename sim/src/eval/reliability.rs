//! Evaluation I of ADVODS: how reliable a service is, against the number of
//! layers (equations 3 to 10, generalised from three layers to any number).
//!
//! More layers mean longer pulls, so agents are lost more easily; they also
//! mean smaller layers, of which more copies fit, so nodes are lost less easily.

use super::statistics::float;
use super::verdict::Verdict;

/// What the formulas need.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Inputs {
    /// Volume of the whole title in GB.
    pub volume: f64,
    /// Reliability of pushing 1 GB (alpha, equation 3).
    pub push: f64,
    /// Reliability of one step of a Pull-MA (beta, equation 4).
    pub pull: f64,
    /// Reliability of 1 GB of stored data (gamma, equation 5).
    pub data: f64,
    /// Reliability of one node (lambda, equation 6).
    pub node: f64,
    /// Copies of an undivided title that the disks of one level hold for a user.
    pub copies: u32,
    /// Shares of the users who want bronze, silver and gold.
    pub mix: [f64; 3],
}

impl Inputs {
    /// The paper prints no values. With these, all curves peak at three layers;
    /// they were chosen for that, so the peak is no independent confirmation,
    /// and [`region`] shows how far it holds.
    pub const CHOSEN: Self = Self {
        volume: 3.0,
        push: 0.999,
        pull: 0.995,
        data: 0.995,
        node: 0.9,
        copies: 1,
        mix: [0.6, 0.3, 0.1],
    };
}

/// Reliability of the three services with one number of layers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Number of layers.
    pub layers: u32,
    /// Bronze: the lowest third of the layers (equation 10).
    pub low: f64,
    /// Silver: two thirds (equation 9).
    pub middle: f64,
    /// Gold: all (equation 8).
    pub high: f64,
    /// The mean over the mix of users.
    pub mean: f64,
}

/// Equation 6: that at least one of `nodes` nodes is there.
pub fn any_node(node: f64, nodes: u32) -> f64 {
    1.0 - (1.0 - node).powf(f64::from(nodes))
}

/// Equation 7: one layer of `volume` GB, `steps` steps from the user, on `nodes` nodes.
pub fn layer(inputs: &Inputs, volume: f64, steps: u32, nodes: u32) -> f64 {
    let push = inputs.push.powf(volume);
    let pull = inputs.pull.powf(f64::from(steps));
    let data = inputs.data.powf(volume);
    push * pull * data * any_node(inputs.node, nodes)
}

/// The reliabilities with `layers` layers of equal size.
pub fn row(inputs: &Inputs, layers: u32) -> Row {
    let layers = layers.max(1);
    let volume = inputs.volume / f64::from(layers);
    let needed = |thirds: u32| (layers * thirds).div_ceil(3);
    let service = |thirds| -> f64 {
        (1..=needed(thirds)).map(|step| layer(inputs, volume, step, inputs.copies * layers)).product()
    };
    let (low, middle, high) = (service(1), service(2), service(3));
    let [bronze, silver, gold] = inputs.mix;
    Row { layers, low, middle, high, mean: bronze * low + silver * middle + gold * high }
}

/// The table for 1 to `most` layers.
pub fn table(inputs: &Inputs, most: u32) -> Vec<Row> {
    (1..=most).map(|layers| row(inputs, layers)).collect()
}

/// One column of a table.
pub type Column = fn(&Row) -> f64;

/// The number of layers at which one column of a table is highest.
pub fn best(rows: &[Row], column: Column) -> u32 {
    rows.iter().max_by(|a, b| column(a).total_cmp(&column(b))).map_or(0, |row| row.layers)
}

/// Where three layers are best, on a grid of agents and nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Region {
    /// One for each point of the grid.
    pub points: Vec<RegionPoint>,
}

/// The best number of layers at one point of the grid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RegionPoint {
    /// Reliability of one step of a Pull-MA.
    pub pull: f64,
    /// Reliability of one node.
    pub node: f64,
    /// Best number of layers for gold.
    pub best_high: u32,
    /// Best number of layers for the mean of all users.
    pub best_mean: u32,
}

/// Scans pull 0.98 to 0.9995 by 0.0005 and node 0.80 to 0.99 by 0.01.
pub fn region(inputs: &Inputs) -> Region {
    let pulls = (0..40_u32).map(|step| 0.98 + 0.0005 * f64::from(step));
    let points = pulls.flat_map(|pull| (0..20_u32).map(move |step| (pull, 0.80 + 0.01 * f64::from(step))));
    let points = points.map(|(pull, node)| {
        let rows = table(&Inputs { pull, node, ..*inputs }, 8);
        RegionPoint { pull, node, best_high: best(&rows, |r| r.high), best_mean: best(&rows, |r| r.mean) }
    });
    Region { points: points.collect() }
}

impl Region {
    /// At how many points of the grid three layers are best: for gold, and for the mean.
    pub fn three(&self) -> (usize, usize) {
        let high = self.points.iter().filter(|point| point.best_high == 3).count();
        (high, self.points.iter().filter(|point| point.best_mean == 3).count())
    }
}

/// The claims of Evaluation I.
pub fn verdicts(inputs: &Inputs) -> Vec<Verdict> {
    let rows = table(inputs, 8);
    let columns: [(&str, Column); 4] = [
        ("bronze", |row| row.low),
        ("silver", |row| row.middle),
        ("gold", |row| row.high),
        ("the mix of users", |row| row.mean),
    ];
    let mut verdicts: Vec<Verdict> = columns
        .into_iter()
        .map(|(name, column)| {
            let layers = best(&rows, column);
            Verdict::new(format!("most reliable number of layers for {name}"), layers, "3", layers == 3)
        })
        .collect();
    let region = region(inputs);
    let (high, mean) = region.three();
    let all = region.points.len();
    let share = |count| 100.0 * float(count) / float(all.max(1));
    verdicts.push(Verdict::new(
        "three layers are best wherever one looks (grid of agents and nodes)",
        format!("gold {high} of {all} ({:.0} %), mix {mean} of {all} ({:.0} %)", share(high), share(mean)),
        "not stated",
        high == all && mean == all,
    ));
    verdicts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_equation_6_is_its_closed_form() {
        // sum over k failed nodes of C(n,k) lambda^(n-k) (1-lambda)^k, for k below n.
        for (node, nodes) in [(0.9_f64, 1_u32), (0.9, 3), (0.5, 8), (0.99, 20), (0.03, 12)] {
            let mut choose = 1.0_f64;
            let mut sum = 0.0;
            for failed in 0..nodes {
                sum += choose * node.powf(f64::from(nodes - failed)) * (1.0 - node).powf(f64::from(failed));
                choose *= f64::from(nodes - failed) / f64::from(failed + 1);
            }
            assert!((sum - any_node(node, nodes)).abs() < 1e-12, "{node} {nodes}");
        }
    }

    #[test]
    fn the_table_agrees_to_five_digits() {
        let expected = [
            [0.87949, 0.87949, 0.87949, 0.87949],
            [0.97621, 0.94821, 0.94821, 0.96501],
            [0.98805, 0.97135, 0.95017, 0.97925],
            [0.97603, 0.95705, 0.93373, 0.96611],
            [0.97797, 0.93745, 0.91094, 0.95911],
            [0.97917, 0.93974, 0.88399, 0.95782],
            [0.96290, 0.91569, 0.85352, 0.93780],
            [0.96383, 0.88799, 0.81997, 0.92669],
        ];
        for (row, wanted) in table(&Inputs::CHOSEN, 8).iter().zip(expected) {
            let ours = [row.low, row.middle, row.high, row.mean];
            for (ours, wanted) in ours.iter().zip(wanted) {
                assert!(
                    (ours - wanted).abs() < 0.000_005_1,
                    "{} layers: {ours} and not {wanted}",
                    row.layers
                );
            }
        }
    }

    #[test]
    fn all_four_curves_peak_at_three_layers_but_not_everywhere() {
        let verdicts = verdicts(&Inputs::CHOSEN);
        let words: Vec<bool> = verdicts.iter().map(|verdict| verdict.holds).collect();
        assert_eq!(words, [true, true, true, true, false]);
        assert_eq!(region(&Inputs::CHOSEN).points.len(), 800);
        assert_eq!(region(&Inputs::CHOSEN).three(), (245, 745));
    }
}
