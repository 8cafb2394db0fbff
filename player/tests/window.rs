//! Titles in a window, on a screen of their own (Xvfb).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    unreachable_pub,
    missing_docs,
    reason = "tests state exact values on small numbers"
)]

mod support;

use media::Span;
use player::pipeline::{PipelineEvent, SinkKind};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use support::{GOLD, TITLE, Viewer};

/// Set for the process that draws.
const INSIDE: &str = "LAMINA_TEST_INSIDE_WINDOW";

/// An X server without a screen, ended with the test.
struct Screen {
    server: Child,
    display: String,
}

impl Screen {
    fn open() -> Self {
        let mut server = Command::new("Xvfb")
            .args(["-displayfd", "1", "-screen", "0", "640x480x24", "-nolisten", "tcp"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("Xvfb (Debian package xvfb)");
        let mut number = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut number).unwrap();
        Self { server, display: format!(":{}", number.trim()) }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Runs one test of this binary in a process that sees a screen: a process's
/// own environment cannot be changed safely.
fn on_a_screen(test: &str) {
    let screen = Screen::open();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env("DISPLAY", &screen.display)
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
}

fn inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_title_plays_in_a_window_bit_for_bit() {
    if !inside() {
        return on_a_screen("a_title_plays_in_a_window_bit_for_bit");
    }
    let mut viewer = Viewer::with(&TITLE, GOLD, SinkKind::Window);
    viewer.pipeline.play();
    viewer.play_out().await;
    let checked: Vec<_> = (0..10).map(|block| (block, 3, true)).collect();
    assert_eq!(viewer.checked(), checked);
    let pictures = viewer.pictures();
    assert_eq!(pictures.len(), 100);
    for (number, _, at) in &pictures {
        let late = at.duration_since(pictures[0].2).abs_diff(Duration::from_millis(number * 40));
        assert!(late < Duration::from_millis(60), "picture {number} is {late:?} off");
    }
    let report = viewer.stop();
    assert_eq!((report.frames_shown, report.frames_expected, report.freeze_count), (100, 100, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_window_survives_pauses_and_seeks() {
    if !inside() {
        return on_a_screen("a_window_survives_pauses_and_seeks");
    }
    let mut viewer = Viewer::with(&TITLE, GOLD, SinkKind::Window);
    viewer.pipeline.play();
    viewer.shown(20).await;
    viewer.pipeline.pause();
    viewer.until(|event| *event == PipelineEvent::Paused).await;
    for number in 0..40_u64 {
        viewer.seek(Span::from_millis(number * 1_733 % 3_900), 1.0);
        viewer.during(Duration::from_millis(50)).await;
    }
    viewer.pipeline.play();
    viewer.seek(Span::from_millis(2_800), 1.0);
    let before = viewer.checked().len();
    viewer.play_out().await;
    assert_eq!(viewer.checked()[before..], [(7, 3, true), (8, 3, true), (9, 3, true)]);
    let report = viewer.stop();
    assert_eq!((report.freeze_count, report.frames_dropped), (0, 0));
}
