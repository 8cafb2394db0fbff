//! The enhancements of a block in two parts, that of the lowest one and that of those
//! above it, by one thread or, as soon as there is a second one, by two.

use super::How;
use crate::error::EncodeError;
use bytes::Bytes;
use codec::{EncodedPicture, LayerGroup, Picture, metrics};
use media::Hasher;
use std::sync::mpsc::sync_channel;

/// Layers of a block that one thread encodes.
pub(super) struct Part<'a> {
    group: LayerGroup<'a>,
    measure: bool,
    halves: bool,
    /// Pictures so far.
    pictures: usize,
    pub(super) coded: CodedPart,
}

/// What it made.
#[derive(Default)]
pub(super) struct CodedPart {
    /// The pictures of each layer.
    pub(super) layers: Vec<Vec<Bytes>>,
    /// The hash of each quality.
    pub(super) qualities: Vec<Hasher>,
    /// That with the first half of each layer; empty without halves.
    pub(super) halves: Vec<Hasher>,
    /// Each picture beside the film's, at each quality.
    pub(super) compared: Vec<Vec<(f64, f64)>>,
}

impl<'a> Part<'a> {
    pub(super) fn new(group: LayerGroup<'a>, measure: bool, halves: bool) -> Self {
        Self { group, measure, halves, pictures: 0, coded: CodedPart::default() }
    }

    /// Whether it has no layer.
    fn is_empty(&self) -> bool {
        self.group.reconstruction().is_none()
    }

    /// Encodes a picture of the film over `below`. In halves the part above
    /// another one needs of the odd pictures what the topmost quality of that
    /// shows, `shown`: it is what this one shows without its second half. The
    /// same for the part above this one is returned.
    pub(super) fn add(
        &mut self,
        film: &Picture,
        below: &Picture,
        shown: Option<&Picture>,
    ) -> Result<Option<Picture>, EncodeError> {
        let mut made = self.group.encode(film, below)?;
        let left_out = self.halves && self.pictures % 2 == 1;
        self.pictures += 1;
        let CodedPart { layers, qualities, halves, compared } = &mut self.coded;
        qualities.resize(made.qualities.len(), Hasher::new());
        for (hasher, picture) in qualities.iter_mut().zip(&made.qualities) {
            picture.hash_into(hasher);
        }
        if self.halves {
            halves.resize(made.layers.len(), Hasher::new());
            // Each layer's own quality, or the one below it.
            let lower = if left_out { 0 } else { made.qualities.len().saturating_sub(made.layers.len()) };
            let shown = shown.filter(|_| left_out).into_iter().chain(made.qualities.iter().skip(lower));
            for (hasher, picture) in halves.iter_mut().zip(shown) {
                picture.hash_into(hasher);
            }
        }
        if self.measure {
            compared.push(compare(film, &made)?);
        }
        layers.resize(made.layers.len(), Vec::new());
        for (samples, data) in layers.iter_mut().zip(made.layers) {
            samples.push(data);
        }
        Ok(made.qualities.pop().filter(|_| left_out))
    }
}

/// Pictures that the lower part may be ahead: first pictures take much longer.
const BETWEEN: usize = 4;

/// A picture on its way from the lower part to the upper one.
struct Passed {
    film: Picture,
    below: Picture,
    shown: Option<Picture>,
}

/// Encodes both parts, picture by picture in this thread until a second one is there
/// for the upper part.
pub(super) fn encode(
    mut under: Part<'_>,
    mut over: Part<'_>,
    mut pairs: impl Iterator<Item = (Picture, Picture)>,
    how: &How<'_>,
) -> Result<Vec<CodedPart>, EncodeError> {
    loop {
        if !over.is_empty() && (how.hand)() {
            return two_threads(under, over, pairs, how.done);
        }
        let Some((film, decoded)) = pairs.next() else { return Ok(vec![under.coded, over.coded]) };
        let shown = under.add(&film, &decoded, None)?;
        if let Some(below) = under.group.reconstruction().filter(|_| !over.is_empty()) {
            over.add(&film, below, shown.as_ref())?;
        }
        drop(film);
        (how.done)();
    }
}

/// The lower part in this thread, the upper one in another, some pictures behind.
fn two_threads(
    mut under: Part<'_>,
    mut over: Part<'_>,
    pairs: impl Iterator<Item = (Picture, Picture)>,
    done: &(dyn Fn() + Sync),
) -> Result<Vec<CodedPart>, EncodeError> {
    let (sender, receiver) = sync_channel::<Passed>(BETWEEN);
    std::thread::scope(|scope| {
        let above = scope.spawn(move || {
            over.group.prepare()?;
            for Passed { film, below, shown } in receiver {
                over.add(&film, &below, shown.as_ref())?;
                done();
            }
            Ok::<_, EncodeError>(over.coded)
        });
        let lower = || {
            for (film, decoded) in pairs {
                let shown = under.add(&film, &decoded, None)?;
                drop(decoded);
                let below = under.group.reconstruction().cloned();
                // Where the upper part has failed it says why.
                if below.is_none_or(|below| sender.send(Passed { film, below, shown }).is_err()) {
                    break;
                }
            }
            Ok::<_, EncodeError>(())
        };
        let below = lower();
        drop(sender);
        let above = above.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        below.and(above).map(|above| vec![under.coded, above])
    })
}

fn compare(film: &Picture, coded: &EncodedPicture) -> Result<Vec<(f64, f64)>, EncodeError> {
    let one = |picture| Ok((metrics::mse_y(film, picture)?, metrics::ssim_y(film, picture)?));
    coded.qualities.iter().map(one).collect()
}
