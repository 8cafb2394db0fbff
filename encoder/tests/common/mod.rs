//! Films made on the spot, and what the tests do with them.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "each test file uses a part of this, and tests may unwrap"
)]

use encoder::{EncodeError, EncodeOptions, EncodeReport, Metrics, Preset, Progress, VerifyReport};
use media::TitleFolder;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

/// A folder for films and a library in it, gone after the test.
pub struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn library(&self) -> PathBuf {
        self.path("library")
    }

    /// Makes a film with ffmpeg; `args` are those before its name.
    pub fn film(&self, name: &str, args: &str) -> PathBuf {
        let path = self.path(name);
        let mut command = Command::new("ffmpeg");
        command.args(["-v", "error", "-y"]).args(args.split_whitespace()).arg(&path);
        let status = command.status().expect("ffmpeg is installed");
        assert!(status.success(), "ffmpeg {args}");
        path
    }

    /// Options for a quick encode of this film.
    pub fn options(&self, film: &Path) -> EncodeOptions {
        let mut options = EncodeOptions::new(film, self.library());
        options.preset = Preset::Fast;
        options.metrics = Metrics::Off;
        options
    }

    /// All that lies in the library, hidden or not.
    pub fn listing(&self) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.library()) else { return Vec::new() };
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

/// `testsrc2` of this size and rate for so many seconds.
pub fn pictures(size: &str, rate: &str, seconds: f64) -> String {
    format!("-f lavfi -i testsrc2=s={size}:r={rate}:d={seconds}")
}

/// A tone in AAC, 48 kHz.
pub fn tone(seconds: f64) -> String {
    format!("-f lavfi -i sine=440:d={seconds}:r=48000")
}

pub fn encode(options: &EncodeOptions) -> Result<(EncodeReport, TitleFolder), EncodeError> {
    let report = encoder::encode(options, &mut |_: Progress| {}, &AtomicBool::new(false))?;
    let title = TitleFolder::open(&report.folder).unwrap();
    Ok((report, title))
}

pub fn verify(title: &TitleFolder) -> VerifyReport {
    encoder::verify(title, None, &|_| {}, &AtomicBool::new(false)).unwrap()
}

/// What a program prints, which must succeed.
pub fn output(program: &str, args: &[&str], file: &Path) -> Vec<u8> {
    let path = file.to_str().unwrap();
    let args: Vec<&str> = args.iter().map(|arg| if *arg == "FILE" { path } else { arg }).collect();
    let output = Command::new(program).args(&args).output().expect("the program is installed");
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Frames of AAC as ffmpeg finds them in a file: time in samples and checksum.
pub fn aac_frames(file: &Path) -> Vec<(i64, String)> {
    let args = ["-v", "error", "-i", "FILE", "-map", "0:a:0", "-c", "copy", "-f", "framemd5", "-"];
    let text = String::from_utf8(output("ffmpeg", &args, file)).unwrap();
    let line = |line: &str| {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        (fields[2].parse().unwrap(), fields[5].to_owned())
    };
    text.lines().filter(|text| !text.starts_with('#')).map(line).collect()
}

/// One channel of decoded sound, 48 kHz.
pub fn samples(file: &Path) -> Vec<i16> {
    let args = ["-v", "error", "-i", "FILE", "-map", "0:a:0", "-ac", "1", "-ar", "48000", "-f", "s16le", "-"];
    let bytes = output("ffmpeg", &args, file);
    bytes.chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])).collect()
}
