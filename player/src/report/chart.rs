//! The report as a picture: quality in steps, the buffer below it, and every
//! kill, failover and freeze where it happened.

use super::PlayReport;
use std::fmt::Write as _;

/// More failovers than this are dots without words, which would cover each other.
const MOST_WORDS: usize = 8;
const WIDTH: f64 = 1_000.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 24.0;
const QUALITY_TOP: f64 = 96.0;
const STEP: f64 = 34.0;
const BUFFER_HEIGHT: f64 = 150.0;
const INK: &str = "#1f2933";
const FAINT: &str = "#e4e7eb";
const QUALITY: &str = "#c58b00";
const BUFFER: &str = "#2a7de1";
const BAD: &str = "#d64545";
const KILL: &str = "#7b3fb5";
const FAILOVER: &str = "#1c8a5a";

/// The chart as an SVG document (1.1), readable on paper and in any browser.
pub fn chart(report: &PlayReport) -> String {
    let sheet = Sheet::of(report);
    let mut svg = String::new();
    sheet.open(&mut svg, report);
    sheet.grid(&mut svg, report);
    sheet.buffer(&mut svg, report);
    sheet.quality(&mut svg, report);
    sheet.marks(&mut svg, report);
    svg.push_str("</svg>\n");
    svg
}

/// Where things go.
struct Sheet {
    levels: Vec<String>,
    end_ms: u64,
    buffer_max_ms: u64,
    buffer_top: f64,
    bottom: f64,
}

impl Sheet {
    fn of(report: &PlayReport) -> Self {
        let mut levels: Vec<String> = ["bronze", "silver", "gold"].map(str::to_owned).to_vec();
        let seen = report.samples.iter().map(|s| &s.quality);
        for quality in seen.chain(report.transitions.iter().map(|t| &t.to)) {
            if quality != "none" && !levels.contains(quality) && levels.len() < 8 {
                levels.push(quality.clone());
            }
        }
        let last = report.samples.last().map_or(0, |sample| sample.at_ms);
        let buffer_top = QUALITY_TOP + STEP * float(levels.len()) + 40.0;
        let deepest = report.samples.iter().map(|sample| sample.buffer_ms).max().unwrap_or(0);
        Self {
            levels,
            end_ms: report.watched_ms.max(last).max(1_000),
            buffer_max_ms: report.buffer_limit_ms.max(deepest).max(1_000),
            buffer_top,
            bottom: buffer_top + BUFFER_HEIGHT,
        }
    }

    fn x(&self, at_ms: u64) -> f64 {
        LEFT + (WIDTH - LEFT - RIGHT) * ratio(at_ms.min(self.end_ms), self.end_ms)
    }

    fn buffer_y(&self, buffer_ms: u64) -> f64 {
        self.bottom - BUFFER_HEIGHT * ratio(buffer_ms, self.buffer_max_ms)
    }

    /// The line of a quality; the best stands on top.
    fn quality_y(&self, quality: &str) -> f64 {
        let place = self.levels.iter().position(|level| level == quality).unwrap_or(0);
        QUALITY_TOP + STEP * (float(self.levels.len().saturating_sub(place + 1)) + 0.5)
    }

    fn open(&self, svg: &mut String, report: &PlayReport) {
        let height = self.bottom + 64.0;
        let start =
            report.startup_ms.map_or_else(|| "no picture".to_owned(), |ms| format!("start-up {ms} ms"));
        let freezes = &report.freezes;
        let facts = format!(
            "{start} · {}, {} ms · {} of {} pictures · {} of quality · {} of {} blocks as encoded",
            counted(freezes.count, "freeze"),
            freezes.total_ms,
            report.frames_shown,
            report.frames_expected,
            counted(u64::try_from(report.transitions.len()).unwrap_or(u64::MAX), "change"),
            report.blocks_checked.saturating_sub(u64::try_from(report.hash_mismatches.len()).unwrap_or(0)),
            report.blocks_checked,
        );
        let _ = write!(
            svg,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
             height=\"{height}\" font-family=\"system-ui, sans-serif\" font-size=\"13\" fill=\"{INK}\">\n\
             <title>{title}</title>\n<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n\
             <text x=\"{LEFT}\" y=\"32\" font-size=\"19\" font-weight=\"600\">{title}</text>\n\
             <text x=\"{LEFT}\" y=\"54\" fill=\"#52606d\">{facts}</text>\n",
            title = escape(&report.title),
            facts = escape(&facts),
        );
    }

    fn grid(&self, svg: &mut String, report: &PlayReport) {
        let right = WIDTH - RIGHT;
        for level in &self.levels {
            let y = self.quality_y(level);
            line(svg, (LEFT, y), (right, y), &format!("stroke=\"{FAINT}\""));
            text(svg, (LEFT - 10.0, y + 4.0), "end", INK, level);
        }
        for second in 0..=self.buffer_max_ms / 1_000 {
            let y = self.buffer_y(second * 1_000);
            line(svg, (LEFT, y), (right, y), &format!("stroke=\"{FAINT}\""));
            text(svg, (LEFT - 10.0, y + 4.0), "end", INK, &format!("{second} s"));
        }
        text(svg, (LEFT, self.buffer_top - 10.0), "start", BUFFER, "buffer");
        let limit = self.buffer_y(report.buffer_limit_ms);
        line(svg, (LEFT, limit), (right, limit), &format!("stroke=\"{BUFFER}\" stroke-dasharray=\"2 4\""));
        let step = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_800, 3_600];
        let step = step.into_iter().find(|step| self.end_ms / 1_000 / step <= 16).unwrap_or(7_200);
        for second in (0..=self.end_ms / 1_000).step_by(step.try_into().unwrap_or(usize::MAX)) {
            let x = self.x(second * 1_000);
            line(svg, (x, self.bottom), (x, self.bottom + 5.0), &format!("stroke=\"{INK}\""));
            text(svg, (x, self.bottom + 20.0), "middle", INK, &format!("{second}"));
        }
        text(svg, (right, self.bottom + 40.0), "end", INK, "seconds since the first picture");
    }

    fn buffer(&self, svg: &mut String, report: &PlayReport) {
        let Some((first, last)) = report.samples.first().zip(report.samples.last()) else { return };
        let mut path = format!("M{:.1} {:.1}", self.x(first.at_ms), self.bottom);
        for sample in &report.samples {
            let _ = write!(path, " L{:.1} {:.1}", self.x(sample.at_ms), self.buffer_y(sample.buffer_ms));
        }
        let _ = write!(path, " L{:.1} {:.1} Z", self.x(last.at_ms), self.bottom);
        let _ = writeln!(
            svg,
            "<path d=\"{path}\" fill=\"{BUFFER}\" fill-opacity=\"0.18\" stroke=\"{BUFFER}\" stroke-width=\"1\"/>"
        );
    }

    /// The quality on screen as steps, from the changes themselves.
    fn quality(&self, svg: &mut String, report: &PlayReport) {
        let first = report.samples.iter().find(|sample| sample.quality != "none").map(|s| &s.quality);
        let Some(start) = report.transitions.first().map(|t| &t.from).or(first) else { return };
        let mut y = self.quality_y(start);
        let mut path = format!("M{:.1} {y:.1}", self.x(0));
        for change in &report.transitions {
            let x = self.x(change.at_ms);
            let _ = write!(path, " L{x:.1} {y:.1}");
            y = self.quality_y(&change.to);
            let _ = write!(path, " L{x:.1} {y:.1}");
        }
        let _ = write!(path, " L{:.1} {y:.1}", self.x(report.watched_ms));
        let _ = writeln!(svg, "<path d=\"{path}\" fill=\"none\" stroke=\"{QUALITY}\" stroke-width=\"3\"/>");
        for change in &report.transitions {
            let at = (
                self.x(change.at_ms) + 6.0,
                f64::midpoint(self.quality_y(&change.from), self.quality_y(&change.to)) + 4.0,
            );
            text(svg, at, "start", QUALITY, &change.cause);
        }
    }

    fn marks(&self, svg: &mut String, report: &PlayReport) {
        for freeze in &report.freezes.list {
            let (x, end) = (self.x(freeze.at_ms), self.x(freeze.at_ms + freeze.length_ms));
            let (top, width, height) = (QUALITY_TOP, (end - x).max(2.0), self.bottom - QUALITY_TOP);
            let _ = writeln!(
                svg,
                "<rect x=\"{x:.1}\" y=\"{top}\" width=\"{width:.1}\" height=\"{height}\" fill=\"{BAD}\" \
                 fill-opacity=\"0.35\"/>"
            );
        }
        for (row, kill) in report.kills.iter().enumerate() {
            let x = self.x(kill.at_ms);
            line(svg, (x, 74.0), (x, self.bottom), &format!("stroke=\"{KILL}\" stroke-dasharray=\"5 3\""));
            let y = if row % 2 == 0 { 76.0 } else { 90.0 };
            text(svg, (x + 5.0, y), "start", KILL, &format!("✕ {}", kill.node));
        }
        for (row, over) in report.failovers.iter().enumerate() {
            let row = if row % 2 == 0 { 10.0 } else { 26.0 };
            let (x, y) = (self.x(over.at_ms + over.recovered_ms), self.buffer_top - row);
            let _ = writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{FAILOVER}\"/>");
            if report.failovers.len() > MOST_WORDS {
                continue;
            }
            let words = format!("{} from {} after {} ms", over.layer, over.to, over.recovered_ms);
            // Words near the right edge stand before their mark.
            let (side, anchor) = if x > 0.7 * WIDTH { (-7.0, "end") } else { (7.0, "start") };
            text(svg, (x + side, y + 4.0), anchor, FAILOVER, &words);
        }
    }
}

fn counted(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

fn line(svg: &mut String, from: (f64, f64), to: (f64, f64), style: &str) {
    let _ = writeln!(
        svg,
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" {style}/>",
        from.0, from.1, to.0, to.1
    );
}

fn text(svg: &mut String, at: (f64, f64), anchor: &str, color: &str, words: &str) {
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\" fill=\"{color}\">{}</text>",
        at.0,
        at.1,
        escape(words)
    );
}

/// Text as it may stand in XML.
fn escape(text: &str) -> String {
    let lawful = text.chars().filter(|c| !c.is_control());
    lawful.fold(String::new(), |mut safe, c| {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            _ => safe.push(c),
        }
        safe
    })
}

#[allow(clippy::cast_precision_loss, clippy::as_conversions, reason = "places on a picture")]
fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}

#[allow(clippy::cast_precision_loss, clippy::as_conversions, reason = "places on a picture")]
fn float(count: usize) -> f64 {
    count as f64
}
