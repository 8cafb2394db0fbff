//! What the encoder is asked for, and what it tells while it works.

use crate::input::Input;
use crate::tune::Aims;
use codec::{Preset, Settings};
use media::{Span, TitleClass, TitleName};
use std::path::PathBuf;
use std::time::Duration;

/// How much of the title is compared with the film.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Metrics {
    /// Nothing is.
    Off,
    /// Every tenth block, the first included.
    #[default]
    Sampled,
    /// Every picture.
    Full,
}

/// What to encode, where to, and how.
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
#[derive(Debug, Clone)]
pub struct EncodeOptions {
    /// The film.
    pub input: Input,
    /// The library's folder; made if it is not there.
    pub library: PathBuf,
    /// The title's name; the film's file name without extension if none.
    pub title: Option<TitleName>,
    /// By what admission tells the title from others. Default: archived.
    pub class: TitleClass,
    /// Speed against size of the enhancements. Default: `default`.
    pub preset: Preset,
    /// The one knob, from which Base's rate factor and all quantizers follow.
    /// Lower is better. Default: [`Settings::DEFAULT_QUALITY`].
    pub quality: f32,
    /// Base's rate factor instead of the knob's (x264 CRF, 0..=50).
    pub crf: Option<u32>,
    /// Quantizer of each enhancement instead of the knob's (VP9, 0..=63).
    pub quantizers: Option<Vec<u8>>,
    /// What the tiers shall be, found on a sample of the film, instead of the knob.
    pub aims: Aims,
    /// Target length of a block, 100 ms to 10 s. Default: 1 s.
    pub block: Span,
    /// Down-scale factor of each layer, Base first. Default: 2, 1, 1.
    pub factors: Vec<u8>,
    /// Pictures before this time of the film are left out.
    pub from: Option<Span>,
    /// Pictures from this time of the film on are left out.
    pub to: Option<Span>,
    /// Threads that encode, two to a block; as many as there are cores if none.
    /// The result does not depend on it.
    pub jobs: Option<usize>,
    /// Whether each enhancement is written in two halves, of which the second
    /// can be left out where its layer is the topmost one. Default: no.
    pub halves: bool,
    /// What is compared with the film.
    pub metrics: Metrics,
    /// Whether an existing title may be replaced.
    pub replace: bool,
    /// Repeat the blocks until the title is at least this long.
    pub repeat_to: Option<Span>,
    /// Whether a damaged film is taken up to its damage instead of refused.
    pub keep_going: bool,
    /// Whether what an interrupted process began is gone on with, and what this
    /// one begins is kept if it is interrupted.
    pub resume: bool,
    /// Which blocks are encoded, into a part of the title that [`merge`](crate::merge)
    /// joins with the others; all of them, into a title, if none.
    pub share: Option<Share>,
}

/// Every `of`-th block of a film, from block `number - 1` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    number: u32,
    of: u32,
}

impl Share {
    /// All blocks.
    pub(crate) const ALL: Self = Self { number: 1, of: 1 };
    /// The most shares of a film.
    pub const MOST: u32 = 10_000;

    /// Share `number`, from 1, of `of`; none if there is no such share.
    pub fn new(number: u32, of: u32) -> Option<Self> {
        ((1..=of).contains(&number) && of <= Self::MOST).then_some(Self { number, of })
    }

    /// Whether the block with this index is in it.
    pub(crate) fn takes(self, index: u32) -> bool {
        index % self.of == self.number - 1
    }

    /// Index of its `n`-th block, from 0.
    pub(crate) fn nth(self, n: u32) -> u32 {
        n.saturating_mul(self.of).saturating_add(self.number - 1)
    }

    /// The name of the folder of this part of a title.
    pub(crate) fn folder(self, title: &TitleName) -> String {
        format!("{title}.part-{}-of-{}", self.number, self.of)
    }
}

impl std::str::FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/').and_then(|(one, of)| one.parse().ok().zip(of.parse().ok()));
        let (number, of) = numbers.ok_or("a share is written as 2/8")?;
        Self::new(number, of).ok_or_else(|| format!("there is no share {text}"))
    }
}

impl EncodeOptions {
    /// The defaults for a film and a library.
    pub fn new(input: impl Into<Input>, library: impl Into<PathBuf>) -> Self {
        Self {
            input: input.into(),
            library: library.into(),
            title: None,
            class: TitleClass::default(),
            preset: Preset::default(),
            quality: Settings::DEFAULT_QUALITY,
            crf: None,
            quantizers: None,
            aims: Aims::default(),
            block: Span::from_secs(1),
            factors: vec![2, 1, 1],
            from: None,
            to: None,
            jobs: None,
            halves: false,
            metrics: Metrics::default(),
            replace: false,
            repeat_to: None,
            keep_going: false,
            resume: false,
            share: None,
        }
    }
}

/// What happens while a film is encoded.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// The film is understood.
    Opened {
        /// Displayed width in pixels.
        width: u32,
        /// Displayed height in pixels.
        height: u32,
        /// Length of what will be encoded, if the film tells.
        length: Option<Span>,
        /// How many threads encode.
        jobs: usize,
    },
    /// Settings were found for what is aimed at.
    Tuned {
        /// Base's rate factor.
        crf: u32,
        /// Quantizer of each enhancement, lowest first.
        quantizers: Vec<u8>,
    },
    /// A block was written; they come in order.
    Block {
        /// Its index.
        index: u32,
        /// The programme's length so far.
        done: Span,
        /// Pictures so far.
        pictures: u64,
        /// Time since the start.
        elapsed: Duration,
        /// How long the rest will take, if the film's length is known.
        left: Option<Duration>,
    },
    /// So many blocks had been encoded before.
    Resumed {
        /// Their number.
        blocks: u32,
        /// How long they are together.
        done: Span,
    },
    /// The blocks are being repeated.
    Repeating,
}
