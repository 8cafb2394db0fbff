//! What another program sees and hears of a film, and whether a title shows it.

use crate::films::Taken;
use std::path::Path;
use std::process::Command;

/// Side of the thumbnails that pictures are compared by.
const SIDE: usize = 32;
/// How far sound and pictures may be apart, in seconds.
const APART: f64 = 0.020;
/// How far a picture's time may be off: containers that count milliseconds round.
const OFF: f64 = 0.0015;
/// Samples a second of what is heard.
pub const HEARD_RATE: f64 = 48_000.0;

/// Pictures in the order shown: time from the first one in seconds, thumbnail.
pub struct Seen(Vec<(f64, Vec<u8>)>);

fn run(args: &[&str]) -> (Vec<u8>, String) {
    let output =
        Command::new("ffmpeg").arg("-nostdin").args(args).output().expect("ffmpeg is installed by ./x");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "ffmpeg {args:?}: {said}");
    (output.stdout, said)
}

impl Seen {
    /// Looks at the pictures of a file as ffmpeg shows them, rotation applied.
    pub fn of(file: &Path) -> Self {
        let filter = format!("scale={SIDE}:{SIDE}:flags=area,format=gray,showinfo");
        let file = file.to_str().unwrap();
        let out =
            ["-i", file, "-map", "0:v:0", "-vf", &filter, "-vsync", "passthrough", "-f", "rawvideo", "-"];
        let (bytes, said) = run(&[&["-v", "info", "-copyts"], &out[..]].concat());
        let times = said.lines().filter_map(|line| {
            let rest = line.split("pts_time:").nth(1).filter(|_| line.contains("showinfo"))?;
            rest.split_whitespace().next()?.parse::<f64>().ok()
        });
        let times: Vec<f64> = times.collect();
        let pictures = bytes.chunks_exact(SIDE * SIDE).map(<[u8]>::to_vec);
        assert_eq!(times.len(), bytes.len() / (SIDE * SIDE));
        let first = times[0];
        Self(times.iter().map(|time| time - first).zip(pictures).collect())
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Only these pictures, one after another at 25 a second.
    pub fn picked(&self, ranges: &[std::ops::Range<usize>]) -> Self {
        let chosen = ranges.iter().cloned().flatten().map(|n| self.0[n].1.clone());
        Self((0..).map(|n| f64::from(n) / 25.0).zip(chosen).collect())
    }

    pub fn times(&self) -> Vec<f64> {
        self.0.iter().map(|(time, _)| *time).collect()
    }

    /// When flashes begin.
    pub fn flashes(&self) -> Vec<f64> {
        let white = |picture: &[u8]| picture.iter().map(|&byte| u32::from(byte)).sum::<u32>() / 1_024 > 215;
        let mut dark = true;
        let mut found = Vec::new();
        for (time, picture) in &self.0 {
            if white(picture) && dark {
                found.push(*time);
            }
            dark = !white(picture);
        }
        found
    }

    fn distance(&self, at: usize, other: &Self, there: usize) -> u32 {
        let pairs = self.0[at].1.iter().zip(&other.0[there].1);
        pairs.map(|(one, other)| u32::from(one.abs_diff(*other))).sum()
    }
}

/// One channel of sound from the first picture's time on, silence where there is none.
pub fn heard(file: &Path) -> Vec<f64> {
    let filter = "aresample=48000:async=1:min_hard_comp=0.001:first_pts=0";
    let file = file.to_str().unwrap();
    let out = ["-map", "0:a:0", "-af", filter, "-ac", "1", "-f", "s16le", "-"];
    let (bytes, _) = run(&[&["-v", "error", "-i", file], &out[..]].concat());
    let sample = |pair: &[u8]| f64::from(i16::from_le_bytes([pair[0], pair[1]])) / 32_768.0;
    bytes.chunks_exact(2).map(sample).collect()
}

/// When beeps begin, in seconds.
pub fn beeps(samples: &[f64]) -> Vec<f64> {
    let loud = samples.iter().fold(0.0_f64, |loud, sample| loud.max(sample.abs())) / 4.0;
    let mut found: Vec<f64> = Vec::new();
    let mut last = f64::MIN;
    for (at, _) in samples.iter().enumerate().filter(|(_, sample)| sample.abs() > loud) {
        let at = at as f64 / HEARD_RATE;
        if at - last > 0.2 {
            found.push(at);
        }
        last = at;
    }
    found
}

impl Taken {
    /// The title's Base, which any player opens.
    pub fn base(&self) -> std::path::PathBuf {
        self.title.path().join("base.mp4")
    }

    /// Every picture of the film, in its order and at its time.
    pub fn shows_the_film(&self) -> &Self {
        let film = Seen::of(&self.film);
        self.shows(&film, 0..film.count())
    }

    /// These pictures of what was seen elsewhere, and no others.
    pub fn shows(&self, film: &Seen, range: std::ops::Range<usize>) -> &Self {
        let title = Seen::of(&self.base());
        assert_eq!(title.count(), range.len(), "pictures");
        assert_eq!(self.report.pictures, range.len() as u64);
        self.compare(&title, film, range)
    }

    /// The first pictures are those of what was seen elsewhere. Of the last ones
    /// before a damage some are missing: those that were to be decoded later.
    pub fn begins_with(&self, film: &Seen, count: usize) -> &Self {
        self.compare(&Seen::of(&self.base()), film, 0..count)
    }

    fn compare(&self, title: &Seen, film: &Seen, range: std::ops::Range<usize>) -> &Self {
        for (here, there) in range.clone().enumerate() {
            let (at, wanted) = (title.0[here].0, film.0[there].0 - film.0[range.start].0);
            assert!((at - wanted).abs() < OFF, "picture {here} is shown at {at} instead of {wanted}");
            let own = title.distance(here, film, there);
            let others = (there.saturating_sub(3)..(there + 4).min(film.count())).filter(|n| *n != there);
            let nearest = others.map(|other| title.distance(here, film, other)).min().unwrap_or(u32::MAX);
            // Two white pictures differ by what coding them costs, and where a side is
            // odd Base shows a pixel more.
            assert!(
                own <= nearest + nearest / 5 + 600,
                "picture {here} looks like another one: {own} against {nearest}"
            );
            assert!(own < 12_000, "picture {here} is another picture: {own}");
        }
        self
    }

    /// Each of so many flashes has its beep, at the start, in the middle and at
    /// the end.
    pub fn is_in_step(&self, count: usize) -> &Self {
        self.is_apart(count, 0.0)
    }

    /// The same with the sound later by so many seconds.
    pub fn is_apart(&self, count: usize, later: f64) -> &Self {
        let (flashes, beeps) = (Seen::of(&self.base()).flashes(), beeps(&heard(&self.base())));
        assert_eq!((flashes.len(), beeps.len()), (count, count), "{flashes:?} {beeps:?}");
        for (flash, beep) in flashes.iter().zip(&beeps) {
            let apart = beep - flash - later;
            assert!(apart.abs() < APART, "a beep is {apart} s from its flash: {flashes:?} {beeps:?}");
        }
        self
    }

    /// A pure tone is heard without a click, also across the edges of blocks.
    pub fn sounds_whole(&self, least_seconds: f64) -> &Self {
        let samples = heard(&self.base());
        assert!(samples.len() as f64 > least_seconds * HEARD_RATE, "{} samples", samples.len());
        // The first and last frames fade in and out.
        let inner = &samples[2_048..(least_seconds * HEARD_RATE) as usize - 4_096];
        let loud = inner.iter().fold(0.0_f64, |loud, sample| loud.max(sample.abs()));
        assert!(loud > 0.1, "it is silent");
        // For a sine x the value x[n-1] + x[n+1] is 2 cos(w) x[n]; a click is what is left.
        let turn = 2.0 * (2.0 * std::f64::consts::PI * 440.0 / HEARD_RATE).cos();
        let left = inner.windows(3).map(|w| (w[0] + w[2] - turn * w[1]).abs()).fold(0.0, f64::max);
        assert!(left < loud * 0.02, "a click: {left} beside {loud}");
        // And it never fades: every 10 ms hold a whole wave and more.
        for (n, part) in inner.chunks_exact(480).enumerate() {
            let peak = part.iter().fold(0.0_f64, |peak, sample| peak.max(sample.abs()));
            assert!(peak > loud * 0.8, "a hole at {} ms", n * 10);
        }
        self
    }

    /// Nothing was to be said about the film.
    pub fn is_unremarkable(&self) -> &Self {
        assert_eq!(self.report.warnings, Vec::<String>::new());
        self
    }

    /// Something like this was said.
    pub fn warns(&self, of: &str) -> &Self {
        let said = &self.report.warnings;
        assert!(said.iter().any(|warning| warning.contains(of)), "{said:?} says nothing of {of:?}");
        self
    }
}
