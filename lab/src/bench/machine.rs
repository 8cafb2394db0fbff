//! Where and with what a figure was taken.

use serde::Serialize;
use std::fmt;
use std::process::Command;

/// The machine and the programs behind a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// Processor, as the system names it.
    pub processor: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// This program, with its build profile.
    pub lamina: String,
    /// libx264 behind the yardstick.
    pub x264: String,
    /// ffmpeg that decodes the yardstick.
    pub ffmpeg: String,
    /// `GStreamer` behind our encoder and player.
    pub gstreamer: String,
}

impl Machine {
    /// Asks this machine. What cannot be found out is called `unknown`.
    pub fn look() -> Self {
        let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
        Self {
            processor: processor().unwrap_or_else(unknown),
            cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            lamina: format!("{} {profile}", env!("CARGO_PKG_VERSION")),
            x264: first_line("x264", "--version").unwrap_or_else(unknown),
            ffmpeg: first_line("ffmpeg", "-version").unwrap_or_else(unknown),
            gstreamer: gstreamer::version_string().to_string(),
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "machine    {}, {} cores", self.processor, self.cores)?;
        let Self { lamina, x264, ffmpeg, gstreamer, .. } = self;
        writeln!(f, "versions   lamina {lamina}; {x264}; {ffmpeg}; {gstreamer}")
    }
}

fn unknown() -> String {
    "unknown".to_owned()
}

fn processor() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let name = text.lines().find_map(|line| line.strip_prefix("model name"))?;
    Some(name.trim_start_matches([' ', '\t', ':']).to_owned())
}

/// The first line that a program says about itself, without its copyright.
fn first_line(program: &str, argument: &str) -> Option<String> {
    let output = Command::new(program).arg(argument).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().next()?;
    let line = line.split(" Copyright").next().unwrap_or(line);
    Some(line.replace(" version ", " ").trim().to_owned())
}
