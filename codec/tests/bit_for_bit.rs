//! Encoder and decoder agree bit for bit, in every block, at every quality.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::as_conversions,
    clippy::pedantic,
    reason = "tests state exact values"
)]

mod common;

use codec::{LayerDecoder, Picture, Preset, metrics};
use common::{Shot, base_of, encode_block, encoder, film};

const LADDERS: [&[u8]; 5] = [&[2, 1, 1], &[4, 2, 1], &[1, 1], &[2, 2, 1], &[4, 4, 2, 1]];
const SIZES: [(u32, u32); 4] = [(320, 180), (321, 241), (128, 96), (33, 17)];

/// Decodes a block at every quality and compares each picture.
fn assert_agreement(decoder: &mut LayerDecoder, shots: &[Shot], what: &str) {
    for enhancements in 0..=shots[0].frames.len() {
        decoder.start_block(enhancements).unwrap();
        for (number, shot) in shots.iter().enumerate() {
            let shown = decoder.decode(&shot.base, &shot.lowest(enhancements)).unwrap();
            assert_eq!(shown.failure, None, "{what}");
            assert_eq!(shown.layers, enhancements + 1, "{what}");
            let equal = *shown.picture == shot.qualities[enhancements];
            assert!(equal, "{what}: picture {number} with {enhancements} enhancements differs");
        }
    }
}

#[test]
fn every_quality_of_every_ladder_size_and_preset_is_reconstructed_exactly() {
    for preset in Preset::ALL {
        for factors in LADDERS {
            for (width, height) in SIZES {
                let (ladder, mut encoder) = encoder(width, height, factors, preset);
                let mut decoder = LayerDecoder::new(&ladder, &encoder.keys()).unwrap();
                let what = format!("{preset} {factors:?} {width}x{height}");
                let shots = encode_block(&mut encoder, &ladder, 0, 4);
                assert_agreement(&mut decoder, &shots, &what);
            }
        }
    }
}

#[test]
fn a_height_that_is_no_multiple_of_eight_is_padded() {
    let (ladder, mut encoder) = encoder(960, 540, &[2, 1, 1], Preset::Fast);
    let mut decoder = LayerDecoder::new(&ladder, &encoder.keys()).unwrap();
    let shots = encode_block(&mut encoder, &ladder, 0, 5);
    assert_agreement(&mut decoder, &shots, "960x540");
}

#[test]
fn blocks_come_out_the_same_in_any_order_from_anyone() {
    for preset in Preset::ALL {
        let (ladder, mut one) = encoder(160, 96, &[2, 1, 1], preset);
        let (_, mut other) = encoder(160, 96, &[2, 1, 1], preset);
        assert_eq!(one.keys(), other.keys(), "the grey key frame of a fresh encoder");
        let frames = |shots: Vec<Shot>| shots.into_iter().map(|shot| shot.frames).collect::<Vec<_>>();
        let forward = [0, 10, 20].map(|start| frames(encode_block(&mut one, &ladder, start, 3)));
        let backward = [20, 10, 0].map(|start| frames(encode_block(&mut other, &ladder, start, 3)));
        assert_eq!(one.keys(), other.keys());
        assert_eq!(forward[0], backward[2]);
        assert_eq!(forward[1], backward[1]);
        assert_eq!(forward[2], backward[0]);
        // A decoder does not mind the order either.
        let mut decoder = LayerDecoder::new(&ladder, &one.keys()).unwrap();
        for start in [20, 0, 10] {
            assert_agreement(&mut decoder, &encode_block(&mut one, &ladder, start, 3), "any order");
        }
    }
}

/// Picture `time` of a film of which another scene begins at picture `cut`.
fn with_cut((width, height): (u32, u32), cut: u32, time: u32) -> Picture {
    let mut picture = film(width, height, time);
    if time >= cut {
        for plane in picture.planes_mut() {
            plane.data.reverse();
            plane.data.iter_mut().for_each(|sample| *sample = 255 - *sample);
        }
    }
    picture
}

#[test]
fn two_threads_make_the_same_block_as_one() {
    let (ladder, mut one) = encoder(97, 63, &[2, 1, 1], Preset::Default);
    let sources: Vec<Picture> = (0..8).map(|time| with_cut((97, 63), 4, time)).collect();
    one.start_block_of(sources.iter()).unwrap();
    let shots: Vec<_> = sources
        .iter()
        .map(|source| {
            let base = base_of(source, &ladder);
            (one.encode(source, &base).unwrap(), base)
        })
        .collect();
    let (_, mut two) = encoder(97, 63, &[2, 1, 1], Preset::Default);
    assert!(two.split(1).is_err(), "no block was started");
    // Both threads know of the scene that begins inside the block.
    two.start_block_of(sources.iter()).unwrap();
    let (mut lower, mut upper) = two.split(1).unwrap();
    let (sender, receiver) = std::sync::mpsc::sync_channel(1);
    let above = std::thread::scope(|scope| {
        let above = scope.spawn(move || {
            let pairs = receiver.into_iter();
            pairs.map(|(source, below)| upper.encode(&source, &below).unwrap()).collect::<Vec<_>>()
        });
        for (source, (shot, base)) in sources.into_iter().zip(&shots) {
            let coded = lower.encode(&source, base).unwrap();
            assert_eq!((&coded.layers[..], &coded.qualities[..]), (&shot.layers[..1], &shot.qualities[..2]));
            sender.send((source, lower.reconstruction().unwrap().clone())).unwrap();
        }
        drop(sender);
        above.join().unwrap()
    });
    for (coded, (shot, _)) in above.iter().zip(&shots) {
        assert_eq!((&coded.layers[..], &coded.qualities[..]), (&shot.layers[1..], &shot.qualities[2..]));
    }
    assert_eq!(above.len(), 8);
}

#[test]
fn quality_grows_with_every_layer() {
    let (ladder, mut encoder) = encoder(320, 180, &[2, 1, 1], Preset::Default);
    let shots = encode_block(&mut encoder, &ladder, 0, 3);
    for (time, shot) in (0..).zip(&shots) {
        let source = common::film(320, 180, time);
        let psnr = |layers: usize| codec::metrics::psnr_y(&source, &shot.qualities[layers]).unwrap();
        // The first picture is as fine in the lower enhancement as in the upper one.
        let more = if time == 0 { 0.0 } else { 1.0 };
        assert!(psnr(1) > psnr(0) && psnr(2) > psnr(1) + more, "{} {} {}", psnr(0), psnr(1), psnr(2));
    }
}

/// After a cut nothing of the past helps: the picture is coded as fine as the
/// first of a block, so that those after it can build on it.
#[test]
fn a_scene_that_begins_inside_a_block_begins_with_a_fine_picture() {
    let (ladder, mut encoder) = encoder(160, 90, &[2, 1, 1], Preset::Default);
    let before = film(160, 90, 0);
    let mut after = film(160, 90, 0);
    for plane in after.planes_mut() {
        plane.data.reverse();
        plane.data.iter_mut().for_each(|sample| *sample = 255 - *sample);
    }
    let block: Vec<Picture> = (0..16).map(|n| if n < 5 { before.clone() } else { after.clone() }).collect();
    let mut silver = |block: &[Picture], ahead: &[Picture]| -> Vec<f64> {
        encoder.start_block_of(ahead.iter()).unwrap();
        let one = |source: &Picture| {
            let coded = encoder.encode(source, &base_of(source, &ladder)).unwrap();
            metrics::psnr_y(source, &coded.qualities[1]).unwrap()
        };
        block.iter().map(one).collect()
    };
    let (seen, unseen) = (silver(&block, &block), silver(&block, &[]));
    let alone = silver(&block[5..], &block[5..]);
    assert!((seen[5] - alone[0]).abs() < 1.0, "as fine as at a block's beginning: {seen:?} {alone:?}");
    assert!(seen[5] > unseen[5] + 1.0, "finer than if nobody had looked: {seen:?} {unseen:?}");
    assert!(seen[15] > unseen[15] + 0.5, "and those after it build on it: {seen:?} {unseen:?}");
}
