//! The simulator says what the testbed measures: one network of real processes whose
//! Base node dies under twelve viewers, and the same in virtual time, with the bounds
//! of `lamina testbed agree`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a witness states what it saw"
)]

mod support;

use serde_json::Value;
use std::process::Command;
use support::{LAMINA, film, said};

/// They come within two seconds, so that each is somewhere else in its block when the
/// node dies: one recovery alone says as much about that as about the take-over.
const SCENARIO: &str = "\
about = \"a Base node dies under twelve viewers\"
lasts = \"10 s\"
film = { is = \"film.mp4\" }

[nodes]
base = 2
enh1 = 1
enh2 = 1

[links]
nodes = { delay = \"5 ms\" }
viewers = { rate = \"8 Mbit/s\", delay = \"20 ms\" }

[[viewers]]
count = 12
at = \"base-1\"
within = \"2 s\"
light = true

[[fault]]
between = [\"5 s\", \"7 s\"]
kill = \"base-1\"
";

#[test]
fn the_simulator_says_what_the_testbed_measures() {
    let folder = tempfile::tempdir().unwrap();
    film(&folder.path().join("film.mp4"), "160x90", "25", 3, &["-c:v", "libx264", "-pix_fmt", "yuv420p"]);
    std::fs::write(folder.path().join("mine.toml"), SCENARIO).unwrap();
    let mut command = Command::new(LAMINA);
    command.args(["testbed", "agree", "mine.toml", "--repeat", "1", "--seed", "7", "--json", "-o", "out"]);
    command.current_dir(folder.path()).env("XDG_CACHE_HOME", folder.path().join("cache"));
    let output = command.output().unwrap();
    println!("{}", said(&output));
    let agreement: Value = serde_json::from_slice(&output.stdout).expect("it prints JSON");
    assert_eq!((&agreement["runs"], &agreement["kills"]), (&1.into(), &1.into()));
    let figures = agreement["figures"].as_array().unwrap();
    for figure in figures.iter().take(3) {
        assert_eq!(figure["holds"], true, "{figure}");
    }
    assert_eq!(figures[0]["what"], "stall ratio");
    assert!(figures[1]["testbed"][0].as_f64().unwrap() > 300.0, "verdicts take 300 ms: {}", figures[1]);
    assert_eq!(output.status.code(), Some(0));
    assert!(folder.path().join("out").join("agreement.json").is_file());
}
