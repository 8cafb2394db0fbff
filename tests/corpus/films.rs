//! Making films: moving pictures that flash, and a beep with each flash.

use encoder::{EncodeError, EncodeOptions, EncodeReport, Metrics, Preset};
use media::Hash;
use media::library::TitleFolder;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

/// How many pictures a second, as a fraction, and in whole numbers.
pub type Rate = (u32, u32);

/// `testsrc2` that is white for an eighth of each second or so: in every round of
/// as many pictures as there are in a second, from 0.4 of it on.
pub fn pictures(size: &str, (num, den): Rate, seconds: f64) -> String {
    let round = f64::from(num) / f64::from(den);
    let (round, first) = (round.round(), (round.round() * 0.4).round());
    let flash =
        format!("drawbox=c=white:t=fill:enable='between(mod(n,{round}),{first},{})'", first + round / 8.0);
    format!("-f lavfi -i testsrc2=s={size}:r={num}/{den}:d={seconds},{flash}")
}

/// Silence with a beep of 1 kHz at each flash of [`pictures`].
pub fn beeps((num, den): Rate, seconds: f64) -> String {
    let rate = f64::from(num) / f64::from(den);
    let (period, first) = (rate.round() / rate, (rate.round() * 0.4).round() / rate);
    let gate = format!("between(mod(t,{period}),{first},{})", first + 0.08);
    format!("-f lavfi -i aevalsrc='0.8*sin(2*PI*1000*t)*{gate}':s=48000:d={seconds}")
}

/// A pure tone, whose every tear would be heard.
pub fn tone(seconds: f64, rate: u32) -> String {
    format!("-f lavfi -i sine=440:d={seconds}:r={rate},volume=4")
}

/// Pictures and beeps of `seconds` at 25 a second.
pub fn flashes(seconds: f64) -> String {
    format!("{} {}", pictures("160x96", (25, 1), seconds), beeps((25, 1), seconds))
}

/// A film made by ffmpeg; `args` are those before its name. It is kept with the
/// build and made only once.
pub fn film(name: &str, args: &str) -> PathBuf {
    let kept = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("corpus");
    std::fs::create_dir_all(&kept).unwrap();
    let key = Hash::of(format!("{name} {args}").as_bytes()).to_string();
    let folder = kept.join(&key[..16]);
    let path = folder.join(name);
    if !path.exists() {
        // Made aside and renamed, so that a killed run leaves no half of a film.
        let aside = tempfile::tempdir_in(&kept).unwrap();
        let made = aside.path().join(name);
        let mut command = Command::new("ffmpeg");
        command.args(["-v", "error", "-nostdin", "-y"]).args(args.split_whitespace()).arg(&made);
        let output = command.output().expect("ffmpeg is installed by ./x");
        assert!(output.status.success(), "ffmpeg {args}: {}", String::from_utf8_lossy(&output.stderr));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::rename(&made, &path).unwrap();
    }
    path
}

/// A title that was made of a film, in a library that is gone after the test.
pub struct Taken {
    pub film: PathBuf,
    pub report: EncodeReport,
    pub title: TitleFolder,
    _library: tempfile::TempDir,
}

/// Encodes a film and checks every chunk and picture of the title.
pub fn take(film: &Path) -> Taken {
    take_with(film, |_| ()).unwrap()
}

/// The same with other options. Where it fails the library must be empty.
pub fn take_with(film: &Path, adjust: impl FnOnce(&mut EncodeOptions)) -> Result<Taken, EncodeError> {
    let library = tempfile::tempdir().unwrap();
    let mut options = EncodeOptions::new(film, library.path());
    options.preset = Preset::Fast;
    options.metrics = Metrics::Off;
    options.jobs = Some(1);
    adjust(&mut options);
    let outcome = encoder::encode(&options, &mut |_| (), &AtomicBool::new(false));
    let report = outcome.inspect_err(|_| {
        assert_eq!(std::fs::read_dir(library.path()).unwrap().count(), 0, "a refused film left something");
    })?;
    let title = TitleFolder::open(&report.folder).unwrap();
    let found = encoder::verify(&title, Some(1), &|_| {}, &AtomicBool::new(false)).unwrap();
    assert!(found.is_clean(), "{:?}", found.faults);
    Ok(Taken { film: film.to_owned(), report, title, _library: library })
}

/// The one line that a film is refused with.
pub fn refused(film: &Path) -> String {
    let error = take_with(film, |_| ()).map(|_| ()).unwrap_err();
    let line = match std::error::Error::source(&error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    };
    assert!(!line.contains('\n') && line.len() < 200, "no clear line: {line}");
    line
}

/// A small file of text, kept with the build.
pub fn written(name: &str, text: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("corpus");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    let aside = tempfile::NamedTempFile::new_in(&folder).unwrap();
    std::fs::write(aside.path(), text).unwrap();
    aside.persist(&path).unwrap();
    path
}
