//! Curves and maps as SVG documents (1.1), readable on paper and in any browser.

use std::fmt::Write as _;

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 460.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 190.0;
const TOP: f64 = 60.0;
const BOTTOM: f64 = 60.0;
const INK: &str = "#1f2933";
const FAINT: &str = "#e4e7eb";
const COLOURS: [&str; 6] = ["#2a7de1", "#d64545", "#1c8a5a", "#c58b00", "#7b3fb5", "#52606d"];

/// A curve: places, values, and half of their 95 % intervals.
#[derive(Clone, Debug)]
pub(crate) struct Curve {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64, f64)>,
}

/// What stands around a picture.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words<'a> {
    pub(crate) title: &'a str,
    pub(crate) across: &'a str,
    pub(crate) up: &'a str,
}

/// Curves over one axis; the other one begins at `low`.
pub(crate) fn curves(words: Words<'_>, low: f64, curves: &[Curve]) -> String {
    let points = || curves.iter().flat_map(|curve| curve.points.iter());
    let ends = |value: fn(&(f64, f64, f64)) -> f64| {
        let least = points().map(value).fold(f64::INFINITY, f64::min);
        (least, points().map(value).fold(f64::NEG_INFINITY, f64::max))
    };
    let (from, to) = ends(|point| point.0);
    let high = ends(|point| point.1 + point.2).1.max(low + 1e-9);
    let x = |at: f64| LEFT + (WIDTH - LEFT - RIGHT) * (at - from) / (to - from).max(1e-9);
    let y = |at: f64| HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (at - low) / (high - low);
    let mut svg = open(words);
    for tick in 0..=5_u32 {
        let share = f64::from(tick) / 5.0;
        let (across, up) = (from + (to - from) * share, low + (high - low) * share);
        line(&mut svg, (LEFT, y(up)), (WIDTH - RIGHT, y(up)), FAINT);
        text(&mut svg, (LEFT - 8.0, y(up) + 4.0), "end", INK, &number(up));
        text(&mut svg, (x(across), HEIGHT - BOTTOM + 20.0), "middle", INK, &number(across));
    }
    for (place, curve) in (0_u32..).zip(curves) {
        let colour = COLOURS.iter().cycle().nth(usize::try_from(place).unwrap_or(0)).unwrap_or(&INK);
        let path: Vec<String> =
            curve.points.iter().map(|(at, value, _)| format!("{:.1},{:.1}", x(*at), y(*value))).collect();
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            path.join(" ")
        );
        for (at, value, half) in &curve.points {
            let _ = writeln!(
                svg,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{colour}\"/>",
                x(*at),
                y(*value)
            );
            line(&mut svg, (x(*at), y(value - half)), (x(*at), y(value + half)), colour);
        }
        let at = (WIDTH - RIGHT + 16.0, TOP + 12.0 + 20.0 * f64::from(place));
        text(&mut svg, at, "start", colour, &curve.name);
    }
    svg.push_str("</svg>\n");
    svg
}

/// A map: one coloured field for each pair of places, with the value in it.
/// `values` has a row for each of `up`, from the lowest.
pub(super) fn map(words: Words<'_>, across: &[String], up: &[String], values: &[Vec<Option<f64>>]) -> String {
    let count = |names: &[String]| f64::from(u32::try_from(names.len().max(1)).unwrap_or(u32::MAX));
    let (wide, tall) = ((WIDTH - LEFT - 20.0) / count(across), (HEIGHT - TOP - BOTTOM) / count(up));
    let all = || values.iter().flatten().flatten();
    let low = all().copied().fold(f64::INFINITY, f64::min).min(0.0);
    let high = all().copied().fold(f64::NEG_INFINITY, f64::max).max(low + 1e-9);
    let mut svg = open(words);
    for (row, (name, fields)) in (0_u32..).zip(up.iter().zip(values)) {
        let y = HEIGHT - BOTTOM - tall * (f64::from(row) + 1.0);
        text(&mut svg, (LEFT - 8.0, y + tall / 2.0 + 4.0), "end", INK, name);
        for (column, value) in (0_u32..).zip(fields) {
            let x = LEFT + wide * f64::from(column);
            let Some(value) = value else { continue };
            let share = (value - low) / (high - low);
            let (hue, light) = (210.0 - 190.0 * (1.0 - share), 88.0 - 30.0 * share);
            let _ = writeln!(
                svg,
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{wide:.1}\" height=\"{tall:.1}\" \
                 fill=\"hsl({hue:.0},65%,{light:.0}%)\"/>"
            );
            if wide > 24.0 && tall > 12.0 {
                text(&mut svg, (x + wide / 2.0, y + tall / 2.0 + 4.0), "middle", INK, &number(*value));
            }
        }
    }
    let step = across.len().div_ceil(20).max(1);
    for (column, name) in (0_u32..).zip(across).step_by(step) {
        let x = LEFT + wide * (f64::from(column) + 0.5);
        text(&mut svg, (x, HEIGHT - BOTTOM + 20.0), "middle", INK, name);
    }
    svg.push_str("</svg>\n");
    svg
}

fn open(words: Words<'_>) -> String {
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" \
         height=\"{HEIGHT}\" font-family=\"system-ui, sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#ffffff\"/>\n"
    );
    text(&mut svg, (LEFT, 28.0), "start", INK, words.title);
    text(&mut svg, (LEFT, 48.0), "start", "#52606d", words.up);
    text(&mut svg, (WIDTH - RIGHT, HEIGHT - 16.0), "end", "#52606d", words.across);
    svg
}

fn line(svg: &mut String, from: (f64, f64), to: (f64, f64), colour: &str) {
    let _ = writeln!(
        svg,
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{colour}\"/>",
        from.0, from.1, to.0, to.1
    );
}

fn text(svg: &mut String, at: (f64, f64), anchor: &str, colour: &str, words: &str) {
    let words = words.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\" fill=\"{colour}\">{words}</text>",
        at.0, at.1
    );
}

fn number(value: f64) -> String {
    if value.abs() >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}
