//! Our encoder as a process of its own, on one core and on all: how much faster
//! more cores make it, and how much memory it takes.

use crate::bench::BenchError;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How often the memory is looked at.
const GLANCE: Duration = Duration::from_millis(10);

/// One run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Run {
    /// From start to end, in seconds.
    pub(crate) seconds: f64,
    /// The most memory that was resident, in MB.
    pub(crate) peak_mb: f64,
}

/// Runs `lamina` with these arguments on the first core that this process may
/// use, or on all.
pub(crate) fn run(
    program: &Path,
    arguments: &[&str],
    folder: &Path,
    one_core: bool,
) -> Result<Run, BenchError> {
    let failed = |why: String| BenchError::Program { program: "lamina", why };
    let mut command = if one_core {
        let mut pinned = Command::new("taskset");
        pinned.args(["--cpu-list", &first_core().unwrap_or_else(|| "0".to_owned())]).arg(program);
        pinned
    } else {
        Command::new(program)
    };
    let errors = folder.join("errors");
    let said = File::create(&errors).map_err(|error| BenchError::file("making", &errors, error))?;
    let start = Instant::now();
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
    let mut child = command.spawn().map_err(|source| BenchError::Missing { program: "taskset", source })?;
    let mut peak_mb = 0.0_f64;
    let status = loop {
        peak_mb = peak_mb.max(resident(&child).unwrap_or(0.0));
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) => std::thread::sleep(GLANCE),
            Err(error) => return Err(failed(error.to_string())),
        }
    };
    let seconds = start.elapsed().as_secs_f64();
    if !status.success() {
        let said = fs::read_to_string(&errors).unwrap_or_default();
        return Err(failed(said.trim().to_owned()));
    }
    Ok(Run { seconds, peak_mb })
}

/// The most memory that a process has had, in MB; none when it has ended.
fn resident(child: &Child) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: f64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kilobytes * 1.024e-3)
}

/// The first core of the list that the system gives for this process.
fn first_core() -> Option<String> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    Some(list.trim().split([',', '-']).next()?.to_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_timed_and_weighed_on_one_core_and_its_failure_told() {
        let folder = tempfile::tempdir().unwrap();
        let run = |arguments: &[&str]| run(Path::new("sh"), arguments, folder.path(), true);
        let done = run(&["-c", "taskset --cpu-list --pid $$ | grep -q ': [0-9]*$' && sleep 0.05"]).unwrap();
        assert!(done.seconds >= 0.05 && done.peak_mb > 0.1 && done.peak_mb < 100.0, "{done:?}");
        let failed = run(&["-c", "echo no film >&2; exit 2"]).unwrap_err().to_string();
        assert!(failed.contains("no film"), "{failed}");
    }
}
