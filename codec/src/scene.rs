//! Looking ahead over a block: where scenes begin and how long they are.

use crate::picture::Picture;

/// Luma samples a side of the cells that pictures are compared by.
const CELL: usize = 16;
/// A cut changes the cells by more than this many levels in the mean, which
/// noise and dark pictures do not,
const LEVELS: u32 = 6;
/// by more than this part, in eighths, of how they differ from their own mean,
/// which motion does not,
const EIGHTHS: u32 = 5;
/// and by more than this many times what the picture before changed, which
/// lasting motion and fades do not.
const TIMES: u32 = 4;

/// What is known of a scene when its first picture is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scene {
    /// Pictures in it.
    pub(crate) length: u32,
}

impl Scene {
    /// One that nobody looked at.
    pub(crate) const UNKNOWN: Self = Self { length: u32::MAX };
}

/// For each picture of a block the scene that begins with it, if one does; with
/// the first picture one always does.
pub(crate) fn look_ahead<'a>(pictures: impl Iterator<Item = &'a Picture>) -> Vec<Option<Scene>> {
    let mut steps: Vec<Step> = Vec::new();
    let (mut before, mut cells) = (Vec::new(), Vec::new());
    for picture in pictures {
        std::mem::swap(&mut before, &mut cells);
        means(picture, &mut cells);
        let last = steps.last().map_or(0, |step| step.change);
        steps.push(Step::between(&before, &cells, last));
    }
    let mut scenes = Vec::with_capacity(steps.len());
    // Backwards, so that a scene's end is known at its beginning.
    let mut length = 0;
    for step in steps.iter().rev() {
        length += 1;
        if step.cut {
            scenes.push(Some(Scene { length }));
            length = 0;
        } else {
            scenes.push(None);
        }
    }
    scenes.reverse();
    scenes
}

/// From one picture to the next.
struct Step {
    cut: bool,
    /// Sum of the differences of the cells.
    change: u32,
}

impl Step {
    /// `last` is the change before this one.
    fn between(before: &[u8], cells: &[u8], last: u32) -> Self {
        if before.len() != cells.len() {
            return Self { cut: true, change: 0 };
        }
        let count = u32::try_from(cells.len()).unwrap_or(u32::MAX).max(1);
        let change = cells.iter().zip(before).map(|(a, b)| u32::from(a.abs_diff(*b))).sum::<u32>();
        let mean = cells.iter().map(|&cell| u32::from(cell)).sum::<u32>() / count;
        let detail = cells.iter().map(|&cell| u32::from(cell).abs_diff(mean)).sum::<u32>();
        let strange = change > LEVELS * count && change > detail / 8 * EIGHTHS;
        Self { cut: strange && change > last.saturating_mul(TIMES), change }
    }
}

/// The mean of luma in each cell.
fn means(picture: &Picture, cells: &mut Vec<u8>) {
    cells.clear();
    let [luma, ..] = picture.planes();
    let mut sums = vec![(0_u32, 0_u32); luma.width().div_ceil(CELL)];
    let last = luma.height().saturating_sub(1);
    for (number, row) in luma.rows().enumerate() {
        for ((sum, count), samples) in sums.iter_mut().zip(row.chunks(CELL)) {
            *sum += samples.iter().map(|&sample| u32::from(sample)).sum::<u32>();
            *count += u32::try_from(samples.len()).unwrap_or(0);
        }
        if number % CELL == CELL - 1 || number == last {
            let mean = |(sum, count): &(u32, u32)| u8::try_from(sum / (*count).max(1)).unwrap_or(u8::MAX);
            cells.extend(sums.iter().map(mean));
            sums.fill((0, 0));
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;

    /// A picture with a slope of brightness that starts at `x`.
    fn slope(x: usize, level: usize) -> Picture {
        let mut picture = Picture::new(160, 96).unwrap();
        let [luma, ..] = picture.planes_mut();
        for row in luma.data.chunks_exact_mut(luma.width) {
            for (column, sample) in row.iter_mut().enumerate() {
                *sample = u8::try_from((level + (column + x) % 160).min(255)).unwrap();
            }
        }
        picture
    }

    fn scenes(film: &[Picture]) -> Vec<(usize, u32)> {
        let found = look_ahead(film.iter()).into_iter().enumerate();
        found.filter_map(|(at, scene)| scene.map(|scene| (at, scene.length))).collect()
    }

    #[test]
    fn a_cut_is_seen_and_motion_is_not() {
        let mut film: Vec<Picture> = (0..6).map(|n| slope(3 * n, 20)).collect();
        film.extend((0..4).map(|_| slope(80, 90)));
        assert_eq!(scenes(&film), [(0, 6), (6, 4)]);
        assert_eq!(scenes(&film[..6]), [(0, 6)]);
        assert_eq!(scenes(&film[..1]), [(0, 1)]);
        assert_eq!(scenes(&[]), []);
    }

    #[test]
    fn a_fade_is_no_cut() {
        // The first step comes after stillness, but is small beside the picture's detail.
        let film: Vec<Picture> = (0..8).map(|n| slope(0, 12 * n)).collect();
        assert_eq!(scenes(&film), [(0, 8)]);
    }
}
