//! The fast scalers equal their formulas on any picture.
#![allow(clippy::unwrap_used, clippy::as_conversions, clippy::pedantic, reason = "tests state exact values")]

use codec::{Picture, scale};
use proptest::prelude::*;

/// Any small picture; extremes are frequent, so that the filters overshoot.
fn pictures() -> impl Strategy<Value = Picture> {
    (1_u32..70, 1_u32..40, any::<u64>(), 0_u8..3).prop_map(|(width, height, seed, kind)| {
        let mut picture = Picture::new(width, height).unwrap();
        let mut state = seed | 1;
        for plane in picture.planes_mut() {
            for sample in plane.data {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                let [low, ..] = state.to_le_bytes();
                *sample = match kind {
                    0 => low,
                    1 if low < 128 => 0,
                    1 => 255,
                    _ => 100 + low % 8,
                };
            }
        }
        picture
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn up_equals_its_formula(picture in pictures()) {
        prop_assert!(scale::up(&picture).unwrap() == scale::reference::up(&picture).unwrap());
    }

    #[test]
    fn down_equals_its_formula(picture in pictures()) {
        prop_assert!(scale::down(&picture).unwrap() == scale::reference::down(&picture).unwrap());
    }
}

/// Samples of the first row of luma.
fn first_row(picture: &Picture) -> Vec<u8> {
    picture.planes()[0].rows().next().unwrap().to_vec()
}

fn from_luma(width: u32, height: u32, luma: &[u8]) -> Picture {
    let chroma = vec![128; (width.div_ceil(2) * height.div_ceil(2)) as usize];
    let half = width.div_ceil(2) as usize;
    let planes = [(luma, width as usize), (&chroma[..], half), (&chroma[..], half)];
    Picture::from_planes(width, height, planes).unwrap()
}

#[test]
fn an_impulse_shows_the_taps() {
    // Ten columns, every row the same, so only the horizontal taps act.
    let row = [0, 0, 0, 0, 0, 128, 0, 0, 0, 0];
    let luma: Vec<u8> = row.repeat(4);
    let up = first_row(&scale::up(&from_luma(10, 4, &luma)).unwrap());
    // 128/256 of [.. 8 -34 228 69 -17 2 ..] for the odd columns and its mirror
    // image for the even ones, negative values clamped.
    assert_eq!(up, [0, 0, 0, 0, 0, 1, 4, 0, 0, 35, 114, 114, 35, 0, 0, 4, 1, 0, 0, 0]);
    let luma: Vec<u8> = [0, 0, 0, 0, 0, 0, 200, 200, 0, 0, 0, 0, 0, 0].repeat(6);
    let down = first_row(&scale::down(&from_luma(14, 6, &luma)).unwrap());
    // 200/1024 of 2*457, 139-68, -35+15, 4, clamped.
    assert_eq!(down, [1, 0, 14, 179, 14, 0, 1]);
}

#[test]
fn flat_pictures_stay_flat_at_any_size() {
    for level in [0, 1, 16, 128, 235, 255] {
        for (width, height) in [(1, 1), (2, 3), (7, 5), (64, 2)] {
            let luma = vec![level; (width * height) as usize];
            let picture = from_luma(width, height, &luma);
            for scaled in [scale::up(&picture).unwrap(), scale::down(&picture).unwrap()] {
                assert!(scaled.planes()[0].rows().flatten().all(|&sample| sample == level));
                assert!(scaled.planes()[1].rows().flatten().all(|&sample| sample == 128));
            }
        }
    }
}
