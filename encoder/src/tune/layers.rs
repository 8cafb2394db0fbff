//! Encoding the enhancements of a block for their rates and errors alone, the lowest
//! in one thread and those above it in another, as a film is encoded: two threads
//! for each block hold as much memory as one, the encoders being most of it.

use super::sample::{Sums, length};
use crate::error::EncodeError;
use codec::{EncodedPicture, LayerEncoder, LayerGroup, Picture, metrics};
use std::sync::mpsc::sync_channel;

/// Pictures that the lower thread may be ahead.
const BETWEEN: usize = 4;

/// What a thread adds up.
#[derive(Default)]
struct Counted {
    bytes: Vec<u64>,
    errors: Vec<f64>,
}

impl Counted {
    fn add(&mut self, film: &Picture, coded: &EncodedPicture) -> Result<(), EncodeError> {
        self.bytes.resize(coded.layers.len(), 0);
        self.errors.resize(coded.qualities.len(), 0.0);
        for (sum, data) in self.bytes.iter_mut().zip(&coded.layers) {
            *sum += length(data);
        }
        for (sum, quality) in self.errors.iter_mut().zip(&coded.qualities) {
            *sum += metrics::mse_y(film, quality)?;
        }
        Ok(())
    }
}

/// Sums over `pairs` of a picture of the film and of decoded Base. Base's bytes are
/// not in it.
pub(super) fn code<'a>(
    encoder: &mut LayerEncoder,
    pairs: impl Iterator<Item = (&'a Picture, &'a Picture)> + Clone,
    paired: bool,
) -> Result<Sums, EncodeError> {
    encoder.start_block_of(pairs.clone().map(|(film, _)| film))?;
    let pictures = u64::try_from(pairs.clone().count()).unwrap_or(u64::MAX);
    let (mut under, over) = encoder.split(if paired { 1 } else { usize::MAX })?;
    let mut counted = Counted::default();
    let above = if paired {
        together(&mut under, over, pairs, &mut counted)?
    } else {
        for (film, base) in pairs {
            counted.add(film, &under.encode(film, base)?)?;
        }
        Counted::default()
    };
    counted.bytes.extend(above.bytes);
    counted.errors.extend(above.errors);
    Ok(Sums { bytes: counted.bytes, errors: counted.errors, pictures })
}

fn together<'a>(
    under: &mut LayerGroup<'_>,
    mut over: LayerGroup<'_>,
    pairs: impl Iterator<Item = (&'a Picture, &'a Picture)>,
    counted: &mut Counted,
) -> Result<Counted, EncodeError> {
    let (sender, receiver) = sync_channel::<(&Picture, Picture)>(BETWEEN);
    std::thread::scope(|scope| {
        let above = scope.spawn(move || {
            let mut counted = Counted::default();
            over.prepare()?;
            for (film, below) in receiver {
                counted.add(film, &over.encode(film, &below)?)?;
            }
            Ok::<_, EncodeError>(counted)
        });
        let lower = || {
            for (film, base) in pairs {
                counted.add(film, &under.encode(film, base)?)?;
                let below = under.reconstruction().cloned();
                // Where the upper thread has failed it says why.
                if below.is_none_or(|below| sender.send((film, below)).is_err()) {
                    break;
                }
            }
            Ok::<_, EncodeError>(())
        };
        let below = lower();
        drop(sender);
        let above = above.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        below.and(above)
    })
}
