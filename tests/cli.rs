//! The door: help, errors, hints and exit codes, as people meet them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a witness states what it saw"
)]

mod support;

use std::fs;
use std::path::Path;
use std::process::Command;
use support::{LAMINA, film, lamina, said};

/// Runs `lamina`, expects exit code 2, and gives what it said.
fn fails(arguments: &[&str], folder: &Path) -> String {
    let output = lamina(arguments, folder);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
    assert_eq!(said.lines().filter(|line| line.starts_with("error:")).count(), 1, "{arguments:?}: {said}");
    said
}

fn entries(folder: &Path) -> Vec<String> {
    let found = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        found.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn every_command_has_help_with_an_example() {
    let folder = tempfile::tempdir().unwrap();
    let commands = [
        "demo",
        "up",
        "encode",
        "merge",
        "import",
        "export",
        "verify",
        "inspect",
        "play",
        "titles",
        "serve",
        "proxy",
        "keys",
        "doctor",
        "simulate",
        "bench",
        "testbed",
        "publish",
        "unpublish",
        "status",
        "top",
        "plan",
        "figure",
    ];
    for command in commands {
        let output = lamina(&[command, "--help"], folder.path());
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(0));
        assert!(text.contains("Example"), "{command} --help shows no example");
        assert!(text.contains(&format!("lamina {command}")), "{command} --help");
    }
}

#[test]
fn a_plan_is_printed_drawn_and_held_against_its_targets() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let example = lamina(&["plan", "--example"], here);
    fs::write(here.join("plan.toml"), &example.stdout).unwrap();
    let output = lamina(&["plan", "plan.toml", "--json", "--svg", "plan.svg"], here);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let digits = report["classes"][2]["blocking"].to_string();
    assert!(digits.len() >= 10 && report["classes"][2]["threshold"].is_u64(), "{report}");
    assert!(fs::read_to_string(here.join("plan.svg")).unwrap().starts_with("<svg"));

    let text = String::from_utf8(example.stdout).unwrap();
    fs::write(here.join("small.toml"), text.replace("slots = 120", "slots = 60")).unwrap();
    let output = lamina(&["plan", "small.toml"], here);
    assert_eq!(output.status.code(), Some(1), "a missed target is a check that failed");
    assert!(String::from_utf8_lossy(&output.stdout).contains("slots would do"));
    for (wrong, right, told) in [
        ("slots = 0", "slots = 120", "site.slots"),
        ("slots = \"many\"", "slots = 120", "line 6"),
        ("gold = 0.9", "gold = 0.2", "`class.archived`: the shares of gold, silver and bronze add up to 1.7"),
        ("arrivals_per_hour = 1e10", "arrivals_per_hour = 60", "10000000000 is not between 0 and 1000000000"),
        ("[class.extra]", "[class.archived]", "unknown field `extra`"),
        ("minutes = 45", "mean_minutes = 45", "unknown field `minutes`"),
    ] {
        fs::write(here.join("wrong.toml"), text.replacen(right, wrong, 1)).unwrap();
        let said = fails(&["plan", "wrong.toml"], here);
        assert!(said.contains(told) && said.contains("\nhint: "), "{said}");
        assert_eq!(said.lines().count(), 2, "one line, and a hint: {said}");
    }
    assert!(fails(&["plan", "absent.toml"], here).contains("hint: `lamina plan --example`"));
}

#[test]
fn what_is_no_film_is_refused_in_one_line_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    fs::write(here.join("empty.mp4"), b"").unwrap();
    fs::write(
        here.join("noise.mp4"),
        (0..60_000_u32).map(|n| ((n * 7919) >> 5).to_le_bytes()[0]).collect::<Vec<_>>(),
    )
    .unwrap();
    fs::write(here.join("text.txt"), "a letter to a friend\n".repeat(100)).unwrap();
    let tone = ["-v", "error", "-f", "lavfi", "-i", "sine=duration=1", "tone.wav"];
    assert!(Command::new("ffmpeg").args(tone).current_dir(here).status().unwrap().success());
    for input in ["empty.mp4", "noise.mp4", "text.txt", "tone.wav", "absent.mp4", "."] {
        fails(&["encode", input, "-o", "library"], here);
        assert_eq!(entries(&here.join("library")), Vec::<String>::new(), "{input} left something");
    }
}

#[test]
fn an_existing_title_is_kept_unless_told_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    film(&here.join("film.mp4"), "160x90", "25", 1, &["-c:v", "mpeg4"]);
    let encode = ["encode", "film.mp4", "-o", "library", "--preset", "fast"];
    assert_eq!(lamina(&encode, here).status.code(), Some(0));
    let before = fs::read(here.join("library/film/title.json")).unwrap();
    let said = fails(&encode, here);
    assert!(said.contains("hint: --replace"), "{said}");
    assert_eq!(fs::read(here.join("library/film/title.json")).unwrap(), before);
    let replaced = lamina(&[&encode[..], &["--replace", "--json"]].concat(), here);
    assert_eq!(replaced.status.code(), Some(0));
    let report: serde_json::Value = serde_json::from_slice(&replaced.stdout).unwrap();
    assert_eq!(report["layers"].as_array().unwrap().len(), 3);
    assert_eq!(report["qualities"][2]["quality"], "gold");
    assert_eq!(entries(&here.join("library")), ["film"]);
}

#[test]
fn verify_says_what_is_damaged_and_exits_with_1() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    film(&here.join("film.mp4"), "160x90", "25", 2, &["-c:v", "libx264", "-pix_fmt", "yuv420p"]);
    assert_eq!(
        lamina(&["encode", "film.mp4", "-o", "library", "--preset", "fast"], here).status.code(),
        Some(0)
    );
    assert_eq!(lamina(&["verify", "library/film"], here).status.code(), Some(0));
    let path = here.join("library/film/enh1.mp4");
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, bytes).unwrap();
    let output = lamina(&["verify", "library/film", "--json"], here);
    assert_eq!(output.status.code(), Some(1));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["faults"][0]["kind"]["fault"], "chunk");
    fails(&["verify", "library"], here);
    fails(&["inspect", "library/none"], here);
}

#[test]
fn wrong_addresses_titles_and_keys_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    film(&here.join("film.mp4"), "160x90", "25", 1, &["-c:v", "mpeg4"]);
    assert_eq!(
        lamina(&["encode", "film.mp4", "-o", "library", "--preset", "fast"], here).status.code(),
        Some(0)
    );
    assert_eq!(lamina(&["keys", "init", "--keys", "keys"], here).status.code(), Some(0));
    assert_eq!(lamina(&["keys", "init", "--keys", "other"], here).status.code(), Some(0));
    let said = fails(&["keys", "init", "--keys", "keys"], here);
    assert!(said.contains("hint:"), "{said}");
    let node = support::Node::start(here, &["--level", "origin", "--library", "library", "--keys", "keys"]);
    let host = node.address.clone();
    let url = |title: &str| format!("lamina://{host}/{title}");

    let titles = lamina(&["titles", &host, "--keys", "keys", "--json"], here);
    let titles: serde_json::Value = serde_json::from_slice(&titles.stdout).unwrap();
    assert_eq!(titles[0]["title"], "film");

    let said = fails(&["play", &url("absent"), "--headless", "--keys", "keys"], here);
    assert!(said.contains("no such title") && said.contains("hint: `lamina titles"), "{said}");
    let said = fails(&["play", &url("film"), "--headless", "--keys", "other"], here);
    assert!(said.contains("certificate") && said.contains("hint: --keys"), "{said}");
    let said = fails(&["play", &url("film"), "--headless", "--keys", "nowhere"], here);
    assert!(said.contains("hint: --keys"), "{said}");
    let said = fails(&["play", "lamina://127.0.0.1:9/film", "--headless", "--keys", "keys"], here);
    assert!(said.contains("cannot reach") && said.contains("hint: check the address"), "{said}");
    let said = fails(&["play", "http://example/film", "--headless", "--keys", "keys"], here);
    assert!(said.contains("hint: an address looks like lamina://"), "{said}");
    fails(&["titles", "no-such-host.invalid", "--keys", "keys"], here);
    fails(&["serve", "--library", "nowhere", "--keys", "keys", "--listen", "127.0.0.1:0"], here);
    fails(&["serve", "--library", "library", "--keys", "nowhere", "--listen", "127.0.0.1:0"], here);
    let said = fails(&["serve", "--library", "library", "--keys", "keys", "--listen", &host], here);
    assert!(said.contains("hint: --listen"), "{said}");
    fails(&["proxy", "--keys", "keys", "--listen", "127.0.0.1:0"], here);
}

#[test]
fn a_full_disk_leaves_nothing_half_written() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    film(&here.join("film.mp4"), "320x180", "25", 4, &["-c:v", "mpeg4"]);
    // A small file system of its own, in a namespace of its own; only root can make one.
    let script = format!(
        "mkdir small && mount -t tmpfs -o size=64k tmpfs small || exit 77
         {LAMINA} encode film.mp4 -o small --preset fast; code=$?
         ls -A small; exit $code"
    );
    let output =
        Command::new("unshare").args(["-m", "sh", "-c", &script]).current_dir(here).output().unwrap();
    if matches!(output.status.code(), Some(77 | 1)) {
        eprintln!("not root: a full disk cannot be staged here");
        return;
    }
    let told = said(&output);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("hint: the disk is full"), "{told}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "something was left");
}

#[test]
fn the_doctor_finds_this_machine_well() {
    let folder = tempfile::tempdir().unwrap();
    let output = lamina(&["doctor", "--json"], folder.path());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stdout));
    let findings: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(findings.as_array().unwrap().iter().any(|finding| finding["what"] == "libvpx"));
}
