//! The demonstration as a newcomer runs it, and what it leaves behind.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a witness states what it saw"
)]

mod support;

use player::PlayReport;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::{LAMINA, kept_folder, said};

/// Processes of the demonstration that still run: their command line names a
/// folder that only they have.
fn left_running(marker: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(marker)).collect()
}

fn demo(temporary: &Path) -> Command {
    let mut command = Command::new(LAMINA);
    // The nodes' folders are made here, which tells this demonstration from others.
    command.arg("demo").env("TMPDIR", temporary).env("XDG_CACHE_HOME", kept_folder());
    command
}

#[test]
fn the_demonstration_keeps_its_promises() {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("R");
    let output = demo(folder.path()).args(["--headless", "--report"]).arg(&report).output().unwrap();
    println!("{}\n{}", said(&output), String::from_utf8_lossy(&output.stdout));
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(left_running(&folder.path().display().to_string()), Vec::<String>::new());

    let gold = PlayReport::read(&report.join("report.json")).unwrap();
    assert_eq!(gold.freezes.count, 0, "{:?}", gold.freezes);
    // Which nodes serve is the network's doing: two of the topmost level, then
    // whoever served Base.
    let killed: Vec<&str> = gold.kills.iter().map(|kill| kill.node.as_str()).collect();
    assert_eq!(killed.len(), 3, "{killed:?}");
    assert!(killed[0].starts_with("enh2-") && killed[1].starts_with("enh2-") && killed[0] != killed[1]);
    let base: Vec<_> = gold.failovers.iter().filter(|failover| failover.layer == "base").collect();
    assert_eq!(base.iter().map(|failover| failover.node.as_str()).collect::<Vec<_>>(), [killed[2]]);
    assert!(gold.kills.iter().all(|kill| kill.buffer_s > 0.5 && kill.buffer_s <= 4.0), "{:?}", gold.kills);
    let steps: Vec<(&str, &str)> =
        gold.transitions.iter().map(|step| (step.from.as_str(), step.to.as_str())).collect();
    assert_eq!(steps, [("gold", "silver"), ("silver", "gold")], "{:?}", gold.transitions);
    assert_eq!(gold.transitions[0].cause, "failure");
    assert!(gold.frames_shown.abs_diff(gold.frames_expected) * 100 <= gold.frames_expected);
    assert!(gold.frames_expected >= 45 * 25);
    assert_eq!(gold.hash_mismatches, []);
    assert!(gold.blocks_checked >= 45, "{} blocks checked", gold.blocks_checked);

    let silver = PlayReport::read(&report.join("silver/report.json")).unwrap();
    assert_eq!((silver.freezes.count, silver.hash_mismatches.len()), (0, 0), "{:?}", silver.freezes);
    let bronze = PlayReport::read(&report.join("bronze/report.json")).unwrap();
    assert_eq!(bronze.freezes.count, 0, "{:?}", bronze.freezes);
    let layers: Vec<&str> =
        bronze.bytes_by_layer.iter().filter(|(_, n)| **n > 0).map(|(l, _)| l.as_str()).collect();
    assert_eq!(layers, ["base"], "the bronze viewer receives no enhancement byte");
    assert_eq!(bronze.sources.iter().filter(|source| source.bytes > 0).count(), 1);
    for file in ["chart.svg", "sheet.png", "buffer.csv", "timeline.csv"] {
        assert!(report.join(file).metadata().unwrap().len() > 200, "{file}");
    }
}

#[test]
fn ctrl_c_leaves_nothing_running() {
    let folder = tempfile::tempdir().unwrap();
    let marker = folder.path().display().to_string();
    let report = folder.path().join("R");
    let mut running = demo(folder.path()).arg("--report").arg(&report).stderr(Stdio::null()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_mins(4);
    // 16 processes, each started with a folder below ours; the film may have to be encoded first.
    while left_running(&marker).iter().filter(|line| line.contains("--exit-with-parent")).count() < 16 {
        assert!(Instant::now() < deadline, "the network does not start");
        std::thread::sleep(Duration::from_millis(50));
    }
    let pid = running.id().to_string();
    // The shell's own `kill`: the program of that name is not installed everywhere.
    assert!(Command::new("sh").args(["-c", &format!("kill -INT {pid}")]).status().unwrap().success());
    assert_eq!(running.wait().unwrap().code(), Some(2));
    let deadline = Instant::now() + Duration::from_secs(5);
    while !left_running(&marker).is_empty() {
        assert!(Instant::now() < deadline, "still running: {:?}", left_running(&marker));
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(!report.join("report.json").exists(), "nothing half-written");
}
