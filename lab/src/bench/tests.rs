#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]

use super::{combine, encode, rate};
use codec::Preset;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One second that moves and has detail.
fn film(folder: &Path) -> PathBuf {
    let path = folder.join("film.mp4");
    let made = Command::new("ffmpeg")
        .args(["-nostdin", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=192x128:rate=10:duration=2"])
        .args(["-vf", "noise=alls=12:allf=t", "-c:v", "mpeg4", "-q:v", "1", "-pix_fmt", "yuv420p"])
        .arg(&path)
        .status()
        .unwrap();
    assert!(made.success());
    path
}

#[test]
fn the_rate_bench_tells_a_whole_story_of_a_small_film() {
    let folder = tempfile::tempdir().unwrap();
    let options = rate::Options { preset: Preset::Fast, steps: vec![24.0, 34.0], seconds: 1.0 };
    let mut said = Vec::new();
    let report = rate::run(&[film(folder.path())], &options, &mut |line| said.push(line.to_owned())).unwrap();

    let clip = &report.clips[0];
    assert_eq!((clip.name.as_str(), clip.width, clip.height, clip.pictures), ("film", 192, 128, 10));
    for step in &clip.steps {
        let tiers: Vec<f64> = step.shown.iter().map(|score| score.psnr_y).collect();
        assert!(tiers[0] < tiers[1] && tiers[1] < tiers[2], "{tiers:?}");
        // x264 was asked far enough both ways to be read at every tier.
        assert!(step.over_x264.unwrap() > 0.5, "{step:?}");
        assert!(step.storage.unwrap() > 0.2, "{step:?}");
    }
    assert!(clip.gold_span_db > 3.0 && clip.bd_rate > -0.5, "{clip:?}");
    assert_eq!(said.len(), 4, "{said:?}");

    let text = report.to_string();
    assert!(text.contains("film: 192x128, 10 pictures, 1.00 s"), "{text}");
    let json: serde_json::Value = serde_json::to_value(&report).unwrap();
    assert_eq!(json["clips"][0]["steps"].as_array().unwrap().len(), 2);
}

#[test]
fn a_rate_bench_of_one_step_is_refused() {
    let options = rate::Options { steps: vec![30.0], ..rate::Options::default() };
    let refused = rate::run(&[], &options, &mut |_| ()).unwrap_err();
    assert_eq!(refused.to_string(), "a rate curve needs at least two quality steps");
}

#[test]
fn the_speed_benches_run_on_a_small_film() {
    let folder = tempfile::tempdir().unwrap();
    let film = film(folder.path());
    let options = encode::Options { presets: vec![Preset::Fast], repeats: 1, seconds: 1.0, program: None };
    let report = encode::run(&film, &options, &mut |_| ()).unwrap();
    assert_eq!((report.pictures, report.presets.len()), (10, 1));
    assert!(report.x264.median > 0.0 && report.presets[0].ratio.median > 0.0);

    let options = combine::Options { preset: Preset::Fast, repeats: 1, full_hd: false, seconds: 4 };
    let report = combine::run(&[film], &options, &mut |_| ()).unwrap();
    assert_eq!((report.titles[0].pictures, report.titles[0].width), (40, 192));
    assert!(report.titles[0].real_time.median > 0.0);
}
