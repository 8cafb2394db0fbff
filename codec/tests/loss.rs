//! What a player sees when frames are missing or damaged: the lower quality,
//! exactly, until the next block.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::as_conversions,
    clippy::pedantic,
    reason = "tests state exact values"
)]

mod common;

use codec::{CodecError, FrameError, Ladder, LayerDecoder, LayerEncoder, Preset};
use common::{Shot, encode_block, encoder};

const GOLD: usize = 3;
const SILVER: usize = 2;
const BRONZE: usize = 1;

struct Rig {
    decoder: LayerDecoder,
    blocks: [Vec<Shot>; 2],
}

fn rig(factors: &[u8]) -> Rig {
    let (ladder, mut encoder) = encoder(160, 90, factors, Preset::Fast);
    let decoder = LayerDecoder::new(&ladder, &encoder.keys()).unwrap();
    let blocks = [0, 40].map(|start| encode_block(&mut encoder, &ladder, start, 6));
    Rig { decoder, blocks }
}

impl Rig {
    /// Decodes one picture of a block from the given frames, and expects
    /// exactly the picture of a quality.
    fn expect(&mut self, (block, picture): (usize, usize), frames: &[Option<&[u8]>], layers: usize) {
        let shot = &self.blocks[block][picture];
        let shown = self.decoder.decode(&shot.base, frames).unwrap();
        assert_eq!(shown.layers, layers, "picture {picture} of block {block}");
        assert!(*shown.picture == shot.qualities[layers - 1], "picture {picture} of block {block}");
    }

    fn failure(&mut self, (block, picture): (usize, usize), frames: &[Option<&[u8]>]) -> CodecError {
        self.decoder.decode(&self.blocks[block][picture].base, frames).unwrap().failure.unwrap()
    }

    fn frames(&self, block: usize, picture: usize) -> Vec<Vec<u8>> {
        self.blocks[block][picture].frames.iter().map(|frame| frame.to_vec()).collect()
    }

    fn start(&mut self, enhancements: usize) {
        self.decoder.start_block(enhancements).unwrap();
    }
}

fn some(frames: &[Vec<u8>]) -> Vec<Option<&[u8]>> {
    frames.iter().map(|frame| Some(frame.as_slice())).collect()
}

#[test]
fn a_lost_top_frame_gives_silver_until_the_next_block() {
    for factors in [[2, 1, 1], [4, 2, 1]] {
        let mut rig = rig(&factors);
        rig.start(2);
        for picture in 0..6 {
            let frames = rig.frames(0, picture);
            let mut given = some(&frames);
            if picture == 2 {
                given[1] = None;
            }
            rig.expect((0, picture), &given, if picture < 2 { GOLD } else { SILVER });
        }
        rig.start(2);
        for picture in 0..6 {
            let frames = rig.frames(1, picture);
            rig.expect((1, picture), &some(&frames), GOLD);
        }
    }
}

#[test]
fn a_lost_middle_frame_takes_the_layers_above_with_it() {
    let mut rig = rig(&[2, 1, 1]);
    rig.start(2);
    for picture in 0..6 {
        let frames = rig.frames(0, picture);
        let mut given = some(&frames);
        if picture == 3 {
            given[0] = None;
        }
        rig.expect((0, picture), &given, if picture < 3 { GOLD } else { BRONZE });
    }
}

#[test]
fn a_block_that_comes_with_fewer_layers_shows_those() {
    let mut rig = rig(&[2, 1, 1]);
    for (enhancements, layers) in [(1, SILVER), (0, BRONZE), (2, GOLD), (9, GOLD)] {
        rig.start(enhancements);
        for picture in 0..3 {
            let frames = rig.frames(0, picture);
            rig.expect((0, picture), &some(&frames), layers);
        }
    }
}

#[test]
fn before_a_block_is_started_there_is_only_bronze() {
    let mut rig = rig(&[2, 1, 1]);
    let frames = rig.frames(0, 0);
    rig.expect((0, 0), &some(&frames), BRONZE);
}

#[test]
fn a_refused_frame_is_named_and_the_next_block_is_whole_again() {
    let mut rig = rig(&[2, 1, 1]);
    let good = rig.frames(0, 1);
    let key = encoder(160, 90, &[2, 1, 1], Preset::Fast).1.keys()[0].to_vec();
    let cases = [
        (vec![], FrameError::Truncated),
        (key, FrameError::Kind("a key frame")),
        (vec![0x88, 0x00], FrameError::Kind("a repeated frame")),
        (vec![0; 200_000], FrameError::TooLarge { found: 200_000, bound: 50_176 }),
    ];
    for (bad, expected) in cases {
        rig.start(2);
        let first = rig.frames(0, 0);
        rig.expect((0, 0), &some(&first), GOLD);
        let failure = rig.failure((0, 1), &some(&[good[0].clone(), bad]));
        assert_eq!(failure, CodecError::Frame(expected));
        let third = rig.frames(0, 2);
        rig.expect((0, 2), &some(&third), SILVER);
        rig.start(2);
        for picture in 0..3 {
            let frames = rig.frames(1, picture);
            rig.expect((1, picture), &some(&frames), GOLD);
        }
    }
}

#[test]
fn flipped_bits_never_disturb_the_layers_below_or_the_next_block() {
    let mut rig = rig(&[2, 1, 1]);
    let frames = rig.frames(0, 1);
    let mut refused = 0;
    for bit in (0..frames[1].len() * 8).step_by(11).chain(0..64) {
        let mut damaged = frames.clone();
        damaged[1][bit / 8] ^= 0x80 >> (bit % 8);
        rig.start(2);
        let first = rig.frames(0, 0);
        rig.expect((0, 0), &some(&first), GOLD);
        // Damage that still decodes cannot be seen here: chunks carry hashes.
        let shown = rig.decoder.decode(&rig.blocks[0][1].base, &some(&damaged)).unwrap();
        if shown.failure.is_some() {
            refused += 1;
            assert_eq!(shown.layers, SILVER);
            assert!(*shown.picture == rig.blocks[0][1].qualities[1]);
        }
    }
    assert!(refused > 10, "{refused}");
    rig.start(2);
    for picture in 0..6 {
        let frames = rig.frames(1, picture);
        rig.expect((1, picture), &some(&frames), GOLD);
    }
}

#[test]
fn truncated_frames_never_panic() {
    let mut rig = rig(&[2, 1, 1]);
    let frames = rig.frames(0, 0);
    for length in 0..frames[0].len().min(64) {
        rig.start(2);
        let cut = [frames[0][..length].to_vec(), frames[1].clone()];
        let shown = rig.decoder.decode(&rig.blocks[0][0].base, &some(&cut)).unwrap();
        if shown.failure.is_some() {
            assert_eq!(shown.layers, BRONZE);
        }
    }
}

#[test]
fn a_base_picture_of_another_size_is_an_error() {
    let mut rig = rig(&[2, 1, 1]);
    rig.start(2);
    let wrong = codec::Picture::new(80, 44).unwrap();
    let error = rig.decoder.decode(&wrong, &[]).unwrap_err();
    let (expected, found) = ((80, 46), (80, 44));
    assert_eq!(error, CodecError::SizeMismatch { what: "the Base picture", expected, found });
}

#[test]
fn a_key_frame_of_another_size_is_refused() {
    let (ladder, _) = encoder(160, 90, &[2, 1, 1], Preset::Fast);
    let (_, larger) = encoder(4096, 2048, &[1, 1, 1], Preset::Fast);
    let error = LayerDecoder::new(&ladder, &larger.keys()).unwrap_err();
    let (expected, found) = ((160, 96), (4096, 2048));
    assert_eq!(error, CodecError::Frame(FrameError::Size { expected, found }));
    let error = LayerDecoder::new(&ladder, &[]).unwrap_err();
    assert_eq!(error, CodecError::LayerCount { what: "key frames", expected: 2, found: 0 });
}

#[test]
fn a_frame_hidden_behind_another_is_not_decoded() {
    let mut rig = rig(&[2, 1, 1]);
    let (_, larger) = encoder(4096, 2048, &[1, 1], Preset::Fast);
    for picture in 0..6 {
        if picture == 0 {
            rig.start(2);
        }
        // Left to itself, libvpx would go on to the key frame and its size.
        let mut frames = rig.frames(0, picture);
        frames[1].extend_from_slice(&larger.keys()[0]);
        rig.expect((0, picture), &some(&frames), GOLD);
    }
}

/// In halves, both enhancements' odd pictures may be missing where their layer
/// is the topmost one: each step is exactly what its layers show.
#[test]
fn an_odd_picture_of_the_topmost_half_costs_nothing_but_itself() {
    for preset in [Preset::Fast, Preset::Default] {
        let ladder = Ladder::new(160, 90, &[2, 1, 1]).unwrap();
        let mut encoder = LayerEncoder::with_halves(&ladder, preset, &common::quantizers(&ladder)).unwrap();
        let blocks = [0, 40].map(|start| encode_block(&mut encoder, &ladder, start, 7));
        let decoder = LayerDecoder::with_halves(&ladder, &encoder.keys()).unwrap();
        let mut rig = Rig { decoder, blocks };
        for (block, top) in [(0, GOLD), (1, SILVER), (0, SILVER), (1, GOLD)] {
            rig.start(top - 1);
            for picture in 0..7 {
                let frames = rig.frames(block, picture);
                let (mut given, mut shown) = (some(&frames[..top - 1]), top);
                if picture % 2 == 1 {
                    given[top - 2] = None;
                    shown = top - 1;
                }
                rig.expect((block, picture), &given, shown);
            }
        }
        // An even picture is still one that all later ones build on.
        rig.start(2);
        for picture in 0..7 {
            let frames = rig.frames(0, picture);
            let mut given = some(&frames);
            if picture == 2 {
                given[1] = None;
            }
            rig.expect((0, picture), &given, if picture < 2 { GOLD } else { SILVER });
        }
    }
}
