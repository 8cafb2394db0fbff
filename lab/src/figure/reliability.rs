//! Evaluation I of ADVODS: reliability against the number of layers.

use super::chart::{self, Curve, Words};
use super::{Report, file};
use sim::eval::reliability::{Column, Inputs, Region, RegionPoint, Row, region, table, verdicts};
use std::fmt::Write as _;

const SERVICES: [(&str, Column); 4] = [
    ("bronze", |row| row.low),
    ("silver", |row| row.middle),
    ("gold", |row| row.high),
    ("mix of users", |row| row.mean),
];

pub(super) fn draw() -> Report {
    let rows = table(&Inputs::CHOSEN, 8);
    let region = region(&Inputs::CHOSEN);
    Report {
        claims: verdicts(&Inputs::CHOSEN).into_iter().map(Into::into).collect(),
        notes: vec![
            "the paper prints no inputs: ours were chosen so that three layers are best, and the region \
             shows how far that holds"
                .to_owned(),
        ],
        files: vec![
            file("reliability.csv", csv(&rows)),
            file("reliability.svg", svg(&rows)),
            file("region.csv", region_csv(&region)),
            file("region-gold.svg", map("gold", &region, |point| point.best_high)),
            file("region-mix.svg", map("the mix of users", &region, |point| point.best_mean)),
        ],
    }
}

fn csv(rows: &[Row]) -> String {
    let mut csv = "layers,bronze,silver,gold,mix\n".to_owned();
    for row in rows {
        let Row { layers, low, middle, high, mean } = row;
        let _ = writeln!(csv, "{layers},{low:.6},{middle:.6},{high:.6},{mean:.6}");
    }
    csv
}

fn svg(rows: &[Row]) -> String {
    let curve = |(name, column): (&str, Column)| Curve {
        name: name.to_owned(),
        points: rows.iter().map(|row| (f64::from(row.layers), column(row), 0.0)).collect(),
    };
    let words = Words {
        title: "Reliability against the number of layers",
        across: "layers",
        up: "reliability of the service",
    };
    chart::curves(words, 0.8, &SERVICES.map(curve))
}

fn region_csv(region: &Region) -> String {
    let mut csv = "pull,node,best_gold,best_mix\n".to_owned();
    for point in &region.points {
        let RegionPoint { pull, node, best_high, best_mean } = point;
        let _ = writeln!(csv, "{pull:.4},{node:.2},{best_high},{best_mean}");
    }
    csv
}

fn map(who: &str, region: &Region, best: fn(&RegionPoint) -> u32) -> String {
    let key = |value: f64| format!("{value:.4}");
    let mut pulls: Vec<String> = region.points.iter().map(|point| key(point.pull)).collect();
    pulls.dedup();
    let mut nodes: Vec<String> = region.points.iter().map(|point| key(point.node)).collect();
    nodes.sort();
    nodes.dedup();
    let field = |pull: &String, node: &String| {
        let at = |point: &&RegionPoint| key(point.pull) == *pull && key(point.node) == *node;
        region.points.iter().find(at).map(|point| f64::from(best(point)))
    };
    let values: Vec<Vec<Option<f64>>> =
        nodes.iter().map(|node| pulls.iter().map(|pull| field(pull, node)).collect()).collect();
    let title = format!("Best number of layers for {who}");
    let words = Words { title: &title, across: "reliability of one step of an agent", up: "of a node" };
    chart::map(words, &pulls, &nodes, &values)
}
