//! Films from pipes and playlists, work that is killed and taken up, parts that
//! are merged, and titles as files for other players: through the program itself.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a witness states what it saw"
)]

mod support;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use support::site::Site;
use support::{Dice, LAMINA, film, lamina, said};

/// Runs `lamina`, which must succeed.
fn succeeds(words: &str, folder: &Path) -> Vec<u8> {
    let words: Vec<&str> = words.split_whitespace().collect();
    let output = lamina(&words, folder);
    assert_eq!(output.status.code(), Some(0), "{words:?}: {}", said(&output));
    output.stdout
}

fn files(title: &Path) -> Vec<Vec<u8>> {
    ["title.json", "base.mp4", "enh1.mp4", "enh2.mp4"]
        .map(|name| fs::read(title.join(name)).unwrap())
        .to_vec()
}

/// What ffprobe says about a file, each stream on one line.
fn probed(file: &Path, entries: &str) -> String {
    let args = ["-v", "error", "-count_frames", "-show_entries", entries, "-of", "compact=nk=1:p=0"];
    let output = Command::new("ffprobe").args(args).arg(file).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}", said(&output));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Kills an encode at a random moment, as often as `LAMINA_KILLS` says (3), and
/// takes it up each time.
#[test]
fn an_encode_that_is_killed_is_taken_up_to_the_same_bytes() {
    let kills = std::env::var("LAMINA_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(3_u32);
    let mut dice = Dice::by_lot("an_encode_that_is_killed");
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    film(&here.join("film.mp4"), "320x180", "25", 12, &["-c:v", "libx264", "-pix_fmt", "yuv420p"]);
    let settings = ["encode", "film.mp4", "--preset", "fast", "--metrics", "off", "--block", "0.5", "-o"];
    succeeds(&format!("{} whole", settings.join(" ")), here);
    for round in 0..kills {
        let mut child = Command::new(LAMINA)
            .args(settings)
            .args(["library", "--resume", "--replace"])
            .current_dir(here)
            .stderr(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // At the first line of the journal that is beyond the one drawn, or after
        // the end: a moment that needs no clock.
        let lines = usize::try_from(2 + dice.below(22)).unwrap();
        let journal = here.join("library/.work-film/journal");
        let written =
            |path: &Path| fs::read(path).map_or(0, |text| text.split(|byte| *byte == b'\n').count());
        while child.try_wait().unwrap().is_none() && written(&journal) < lines {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let output = lamina(&[&settings[..], &["library", "--resume", "--replace"]].concat(), here);
        assert_eq!(output.status.code(), Some(0), "round {round}: {}", said(&output));
        assert!(files(&here.join("library/film")) == files(&here.join("whole/film")), "round {round}");
        eprintln!(
            "round {round}: killed at line {lines}; {}",
            said(&output).lines().nth(1).unwrap_or_default()
        );
    }
}

#[test]
fn a_film_comes_through_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    film(&here.join("film.mkv"), "160x90", "25", 3, &["-c:v", "libx264", "-pix_fmt", "yuv420p", "-bf", "2"]);
    for name in ["film.mkv", "film.ts"] {
        if name == "film.ts" {
            let copy = ["-v", "error", "-i", "film.mkv", "-c", "copy", "film.ts"];
            assert!(Command::new("ffmpeg").args(copy).current_dir(here).status().unwrap().success());
        }
        let output = Command::new(LAMINA)
            .args([
                "encode",
                "-",
                "-o",
                "library",
                "--title",
                "piped",
                "--preset",
                "fast",
                "--replace",
                "--json",
            ])
            .current_dir(here)
            .stdin(Stdio::from(fs::File::open(here.join(name)).unwrap()))
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((report["pictures"].as_u64(), report["blocks"].as_u64()), (Some(75), Some(3)), "{name}");
        assert!(report["audio_kbit_s"].as_f64().unwrap() > 10.0, "{name}");
        succeeds("verify library/piped", here);
    }
    let output = lamina(&["encode", "-", "-o", "library"], here);
    assert!(said(&output).contains("hint: --title"), "{}", said(&output));
}

#[test]
fn a_title_becomes_a_file_and_a_playlist_and_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    film(&here.join("film.mp4"), "320x180", "30000/1001", 3, &["-c:v", "mpeg4", "-pix_fmt", "yuv420p"]);
    succeeds("encode film.mp4 -o library --preset fast", here);

    succeeds("export library/film --quality bronze -o bronze.mp4", here);
    assert_eq!(
        fs::read(here.join("bronze.mp4")).unwrap(),
        fs::read(here.join("library/film/base.mp4")).unwrap()
    );
    let report = succeeds("export library/film --quality gold -o gold.mp4 --json", here);
    let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
    assert_eq!((report["quality"].as_str(), report["copied"].as_bool()), (Some("gold"), Some(false)));
    let pictures = report["pictures"].as_u64().unwrap();
    let told = probed(&here.join("gold.mp4"), "stream=codec_name,width,height,start_time,nb_read_frames");
    let (width, height) = (320, 180);
    assert!(told.contains(&format!("h264|{width}|{height}|0.000000|{pictures}")), "{told}");
    assert!(told.contains("aac|0.000000"), "{told}");
    succeeds("export library/film --quality silver -o silver.mp4", here);
    let refused = lamina(&["export", "library/film", "-o", "gold.mp4"], here);
    assert_eq!(refused.status.code(), Some(2));
    assert!(said(&refused).contains("hint: --replace"), "{}", said(&refused));

    succeeds("export library/film --hls web", here);
    let told = probed(&here.join("web/index.m3u8"), "stream=codec_name,nb_read_frames");
    assert!(told.contains(&format!("h264|{pictures}")), "{told}");
    let list = fs::read_to_string(here.join("web/index.m3u8")).unwrap();
    assert_eq!(list.matches("#EXTINF:").count(), 3, "{list}");

    // A playlist that others made, of a whole folder.
    fs::create_dir(here.join("other")).unwrap();
    let make = "-v error -i film.mp4 -c:v libx264 -pix_fmt yuv420p -g 30 -c:a aac -f hls -hls_time 1 \
                -hls_playlist_type vod other/master.m3u8";
    assert!(
        Command::new("ffmpeg").args(make.split_whitespace()).current_dir(here).status().unwrap().success()
    );
    let report = succeeds("import other -o library --title other --preset fast --json", here);
    let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
    assert_eq!(report["pictures"].as_u64(), Some(pictures));
    succeeds("verify library/other", here);
}

#[test]
fn a_dash_folder_and_films_behind_addresses_are_imported() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    film(&here.join("film.mp4"), "160x90", "25", 3, &["-c:v", "libx264", "-pix_fmt", "yuv420p", "-g", "25"]);
    fs::create_dir(here.join("dash")).unwrap();
    fs::create_dir(here.join("hls")).unwrap();
    for made in [
        "-c copy -f dash -seg_duration 1 dash/manifest.mpd",
        "-c copy -f hls -hls_time 1 -hls_playlist_type vod -hls_segment_type fmp4 hls/master.m3u8",
    ] {
        let args = format!("-v error -i film.mp4 {made}");
        let made = Command::new("ffmpeg").args(args.split_whitespace()).current_dir(here).status();
        assert!(made.unwrap().success());
    }
    let site = Site::of(here);
    let at = |path: &str| format!("http://{}/{path}", site.address());
    for source in ["dash".to_owned(), at("dash/manifest.mpd"), at("hls/master.m3u8"), at("film.mp4?token=1")]
    {
        let report =
            succeeds(&format!("import {source} -o library --title t --preset fast --replace --json"), here);
        let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
        assert_eq!((report["pictures"].as_u64(), report["blocks"].as_u64()), (Some(75), Some(3)), "{source}");
        assert!(report["audio_kbit_s"].as_f64().unwrap() > 10.0, "{source}");
        assert_eq!(report["warnings"].as_array().map(Vec::len), Some(0), "{source}: {report}");
        succeeds("verify library/t", here);
    }
    for (source, line) in [
        (at("none.mp4"), "File not found"),
        (at("dash/"), "File not found"),
        // Nobody listens on the port of TCP's own multiplexer.
        ("http://127.0.0.1:1/film.mp4".to_owned(), "nothing could be fetched from there"),
    ] {
        let refused = lamina(&["import", &source, "-o", "library", "--title", "n"], here);
        assert_eq!(refused.status.code(), Some(2), "{source}");
        assert!(said(&refused).contains(line), "{source}: {}", said(&refused));
        assert!(!here.join("library/n").exists());
    }
}

#[test]
fn parts_are_merged_and_a_missing_one_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    film(&here.join("film.mp4"), "160x90", "25", 3, &["-c:v", "mpeg4"]);
    succeeds("encode film.mp4 -o whole --preset fast", here);
    for number in 1..=2 {
        let told = succeeds(&format!("encode film.mp4 -o parts --preset fast --shard {number}/2"), here);
        let line = BufReader::new(&told[..]).lines().next().unwrap().unwrap();
        assert!(line.starts_with(&format!("parts/film.part-{number}-of-2 ")), "{line}");
    }
    let refused = lamina(&["merge", "parts/film.part-2-of-2", "-o", "library"], here);
    assert_eq!(refused.status.code(), Some(2));
    assert!(said(&refused).contains("block 0 is in none of them"), "{}", said(&refused));
    succeeds("merge parts/film.part-2-of-2 parts/film.part-1-of-2 -o library", here);
    assert!(files(&here.join("library/film")) == files(&here.join("whole/film")));
}
