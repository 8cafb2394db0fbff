//! Chromium without a window, with one page that plays, and what it tells on its
//! console.

use super::CompareError;
use media::{Span, Time};
use player::pipeline::FreezeMeter;
use rustix::process::{Pid, Signal, kill_process_group};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, ChildStderr, Command};

/// What precedes what the page tells.
const MARK: &str = "\"LAMINA ";
/// The longest line.
const MAX_LINE_BYTES: u64 = 1024 * 1024;
/// The most pictures of one viewing.
const MAX_PICTURES: usize = 200_000;

/// A browser with everything it started; ends when dropped.
#[derive(Debug)]
pub(super) struct Browser {
    child: Child,
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Its own group, so that renderers and helpers end with it.
        let group = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(group) = group {
            // If it is gone there is nothing to end.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// One picture: when it was on screen, its time in the film, how many were shown since
/// the one told before, and how high it is.
type Picture = (f64, f64, u32, u32);

/// A line of what the page tells.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Told {
    pictures: Vec<Picture>,
    at: Option<f64>,
    buffer: f64,
    pressed: Option<f64>,
    ended: Option<f64>,
    note: Option<String>,
    error: Option<String>,
}

/// What was seen in a browser or by any other player.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Viewing {
    /// From the order to play to the first picture.
    pub startup_ms: Option<u64>,
    /// From the first picture to the end.
    pub watched_ms: u64,
    /// How often the picture stood.
    pub freezes: u64,
    /// How long in all.
    pub frozen_ms: u64,
    /// How long at most.
    pub longest_ms: u64,
    /// Of `frozen_ms`, what was before the server died: the machine's doing.
    pub before_ms: u64,
    /// Pictures that were shown; 0 where that was not counted.
    pub pictures: u64,
    /// The share of pictures at the best quality.
    pub best: f64,
    /// Second by second after the first picture: the height of the picture, or the
    /// number of layers.
    pub quality: Vec<u32>,
    /// Bytes that went over the viewer's line.
    pub bytes: u64,
    /// What lay ready when the server died.
    pub buffer_ms: u64,
    /// What the player said of its troubles, at most twenty lines.
    pub notes: Vec<String>,
}

/// Opens the page and listens for so long; `strike` is carried out at its moment.
pub(super) async fn watch<F: Future<Output = Result<(), CompareError>>>(
    url: &str,
    folder: &Path,
    lasts: Duration,
    strike_at: Duration,
    strike: impl FnOnce() -> F,
) -> Result<Viewing, CompareError> {
    let failed =
        |error: std::io::Error| CompareError::Program { program: "chromium", why: error.to_string() };
    let mut child = Command::new("chromium")
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--mute-audio", "--no-first-run"])
        .args(["--autoplay-policy=no-user-gesture-required", "--enable-logging=stderr", "--log-level=0"])
        .args(["--disable-background-networking", "--disable-extensions", "--window-size=800,600"])
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(failed)?;
    let stderr = child.stderr.take();
    let _browser = Browser { child };
    let mut seen = Seen::default();
    let (mut lines, mut struck) = (stderr.map(BufReader::new), Some(strike));
    let deadline = tokio::time::Instant::now() + Duration::from_secs(30) + lasts;
    loop {
        let line = tokio::time::timeout_at(deadline, next_line(&mut lines)).await;
        let Ok(Some(line)) = line else { break };
        if let Some(told) = read(&line) {
            seen.take(told);
        }
        let watched = seen.watched();
        if watched >= strike_at
            && let Some(strike) = struck.take()
        {
            seen.struck = Some((watched, seen.buffer));
            strike().await?;
        }
        if watched >= lasts {
            break;
        }
    }
    if seen.pressed.is_none() {
        return Err(CompareError::Program { program: "chromium", why: "its page told nothing".into() });
    }
    Ok(seen.viewing())
}

async fn next_line(lines: &mut Option<BufReader<ChildStderr>>) -> Option<String> {
    let mut line = Vec::new();
    let read = lines.as_mut()?.take(MAX_LINE_BYTES).read_until(b'\n', &mut line).await.ok()?;
    (read > 0).then(|| String::from_utf8_lossy(&line).into_owned())
}

/// What the page told, if it is a line of its.
fn read(line: &str) -> Option<Told> {
    let from = line.find(MARK)? + MARK.len();
    let until = line.rfind("}\"")? + 1;
    serde_json::from_str(line.get(from..until)?).ok()
}

/// Everything heard so far.
#[derive(Debug, Default)]
struct Seen {
    pressed: Option<f64>,
    /// The last moment told of.
    now: f64,
    buffer: f64,
    /// After how long, and with what in the buffer.
    struck: Option<(Duration, f64)>,
    ended: Option<f64>,
    pictures: Vec<Picture>,
    notes: Vec<String>,
}

impl Seen {
    fn take(&mut self, told: Told) {
        self.pressed = self.pressed.or(told.pressed);
        self.ended = self.ended.or(told.ended);
        if let Some(at) = told.at {
            (self.now, self.buffer) = (at, told.buffer);
        }
        let room = MAX_PICTURES.saturating_sub(self.pictures.len());
        self.pictures.extend(told.pictures.into_iter().take(room));
        self.notes
            .extend(told.note.into_iter().chain(told.error).take(20_usize.saturating_sub(self.notes.len())));
    }

    /// Since the first picture; before it since the order to play, less a grace.
    fn watched(&self) -> Duration {
        let first = self.pictures.first().map(|picture| picture.0);
        let from = first.or(self.pressed.map(|pressed| pressed + 20_000.0)).unwrap_or(f64::MAX);
        Duration::try_from_secs_f64((self.now - from) / 1_000.0).unwrap_or_default()
    }

    /// The same definition of a freeze as at our own sink.
    fn viewing(self) -> Viewing {
        let time = |millis: f64| {
            Time::ZERO + Span::from(Duration::try_from_secs_f64(millis / 1_000.0).unwrap_or_default())
        };
        let mut meter = FreezeMeter::new(Span::from_millis(40));
        let mut last: Option<f64> = None;
        for (at, position, shown, _) in &self.pictures {
            // Pictures that were shown between two that were told of were on time.
            let between = u32::min(shown.saturating_sub(1), 100);
            if let Some(last) = last {
                for n in 1..=between {
                    let share = f64::from(n) / f64::from(between + 1);
                    meter.shown(time(last + (at - last) * share), Span::ZERO);
                }
            }
            meter.shown(time(*at), Span::from(Duration::try_from_secs_f64(*position).unwrap_or_default()));
            last = Some(*at);
        }
        if self.ended.is_none() {
            meter.finish(time(self.now));
        }
        let died = self.struck.map_or(Span::MAX, |(after, _)| after.into());
        let earlier = meter.list().iter().filter(|freeze| freeze.start < died);
        let before = earlier.fold(Span::ZERO, |sum, freeze| sum + freeze.length);
        let first = self.pictures.first().map_or(self.now, |picture| picture.0);
        let best = self.pictures.iter().map(|picture| picture.3).max().unwrap_or(0);
        let at_best = self.pictures.iter().filter(|picture| picture.3 == best).count();
        let whole = |millis: f64| {
            Span::from(Duration::try_from_secs_f64(millis / 1_000.0).unwrap_or_default()).as_millis()
        };
        Viewing {
            startup_ms: self
                .pictures
                .first()
                .zip(self.pressed)
                .map(|(first, pressed)| whole(first.0 - pressed)),
            watched_ms: whole(self.now - first),
            freezes: meter.count(),
            frozen_ms: meter.total().as_millis(),
            longest_ms: meter.longest().as_millis(),
            before_ms: before.as_millis(),
            pictures: self.pictures.iter().map(|picture| u64::from(picture.2)).sum(),
            best: super::share(at_best, self.pictures.len()),
            quality: heights(&self.pictures, first),
            bytes: 0,
            buffer_ms: whole(self.struck.map_or(self.buffer, |(_, buffer)| buffer) * 1_000.0),
            notes: self.notes,
        }
    }
}

/// The height of the last picture of each second.
fn heights(pictures: &[Picture], first: f64) -> Vec<u32> {
    let mut heights = Vec::new();
    for (at, _, _, height) in pictures {
        let second = Duration::try_from_secs_f64((at - first) / 1_000.0).unwrap_or_default().as_secs();
        let second = usize::try_from(second).unwrap_or(usize::MAX).min(3_600);
        heights.resize(heights.len().max(second + 1), 0);
        if let Some(slot) = heights.get_mut(second) {
            *slot = *height;
        }
    }
    heights
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;

    #[test]
    fn what_a_page_tells_becomes_freezes_by_our_own_definition() {
        let mut seen = Seen::default();
        let say = |what: &str| {
            read(&format!("[1:2:3/4.5:INFO:CONSOLE:9] \"LAMINA {what}\", source: http://x/ (9)\n")).unwrap()
        };
        seen.take(say("{\"pressed\":100}"));
        // 25 pictures a second for two seconds; then one second nothing.
        let pictures = |from: u32, many: u32| {
            let each = |n: u32| format!("[{},{},1,360]", from + n * 40, n);
            (0..many).map(each).collect::<Vec<_>>().join(",")
        };
        seen.take(say(&format!("{{\"pictures\":[{}],\"at\":2300,\"buffer\":1.5}}", pictures(300, 50))));
        seen.take(say(&format!("{{\"pictures\":[{}],\"at\":4300,\"buffer\":2}}", pictures(3_260, 25))));
        seen.take(say("{\"note\":\"fragLoadError\"}"));
        assert_eq!(seen.watched(), Duration::from_secs(4));
        let viewing = seen.viewing();
        assert_eq!((viewing.startup_ms, viewing.freezes, viewing.frozen_ms), (Some(200), 1, 1_000));
        assert_eq!((viewing.pictures, viewing.quality.len(), viewing.notes.len()), (75, 4, 1));
        assert!(read("[1] \"something else\"").is_none() && read("\"LAMINA {oops}\"").is_none());
    }
}
