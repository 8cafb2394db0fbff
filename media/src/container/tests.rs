#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]

use super::*;
use crate::manifest::tests_support::small;
use proptest::prelude::*;

const FRAME: u64 = 1_001;

fn picture(display: u64, sync: bool, size: usize) -> VideoSample {
    let data = vec![u8::try_from(display).unwrap(); size].into();
    VideoSample { pts: 30_030 + display * FRAME, duration: FRAME, sync, data }
}

/// Five pictures in the decoding order of a B pyramid, and two frames of sound.
fn block() -> BlockSamples {
    let frame =
        |n: u64| AudioSample { pts: 48_048 + n * AAC_FRAME, duration: AAC_FRAME, data: vec![9; 7].into() };
    BlockSamples {
        start: 30_030,
        end: 30_030 + 5 * FRAME,
        video: [0, 4, 2, 1, 3].map(|n| picture(n, n == 0, 20 + usize::try_from(n).unwrap())).to_vec(),
        audio: vec![frame(0), frame(1)],
    }
}

fn delay() -> u32 {
    u32::try_from(2 * FRAME).unwrap()
}

#[test]
fn a_block_comes_back_as_it_was_written() {
    let bytes = Bytes::from(write_chunk(1, delay(), &block()).unwrap());
    let back = parse_chunk(&bytes, delay()).unwrap();
    assert_eq!(back, block());
    let inside = bytes.as_ptr_range();
    for sample in &back.video {
        assert!(inside.contains(&sample.data.as_ptr()), "samples are slices of the chunk");
    }
    assert_eq!(write_chunk(1, delay(), &back).unwrap(), bytes, "the same samples give the same bytes");
}

#[test]
fn the_first_half_of_a_chunk_is_a_chunk_of_its_even_pictures() {
    for count in 1..6 {
        let video = (0..count).map(|n| picture(n, n == 0, 20)).collect::<Vec<_>>();
        let whole = BlockSamples { start: 30_030, end: 30_030 + count * FRAME, video, audio: Vec::new() };
        let (bytes, length) = write_halves(1, 0, &whole).unwrap();
        let bytes = Bytes::from(bytes);
        assert_eq!(parse_chunk(&bytes, 0).unwrap(), whole);
        let half = parse_chunk(&bytes.slice(..length), 0).unwrap();
        let even: Vec<_> = whole.video.iter().step_by(2).map(|sample| (sample.pts, &sample.data)).collect();
        assert_eq!(half.video.iter().map(|sample| (sample.pts, &sample.data)).collect::<Vec<_>>(), even);
        assert_eq!((half.start, half.end), (whole.start, whole.end));
        assert_eq!(length == bytes.len(), count == 1, "a single picture has no second half");
    }
}

#[test]
fn halves_of_different_blocks_and_of_base_do_not_fit_together() {
    let video = [0, 1, 2].map(|n| picture(n, n == 0, 20)).to_vec();
    let whole = BlockSamples { start: 30_030, end: 30_030 + 3 * FRAME, video, audio: Vec::new() };
    let (bytes, length) = write_halves(1, 0, &whole).unwrap();
    let joined = |a: &[u8], b: &[u8]| parse_chunk(&Bytes::from([a, b].concat()), 0);
    let wrong = Err(ContainerError::Inconsistent("two halves that do not fit together"));
    assert_eq!(joined(&bytes[length..], &bytes[..length]), wrong);
    let longer = BlockSamples { end: whole.end + 1, ..whole.clone() };
    assert_eq!(joined(&bytes[..length], &write_halves(1, 0, &longer).unwrap().0[length..]), wrong);
    let twice = write_chunk(1, delay(), &block()).unwrap().repeat(2);
    assert_eq!(parse_chunk(&twice.into(), delay()), wrong);
    let more = Err(ContainerError::Inconsistent("bytes after the chunk's `mdat`"));
    assert_eq!(joined(&bytes, &bytes[length..]), more);
}

#[test]
fn composition_offsets_are_never_negative_at_a_variable_rate() {
    // A picture held for three seconds in the middle of a pyramid.
    let times = [0, 95_000, 91_000, 1_000, 92_000];
    let video = times.map(|pts| VideoSample { pts, duration: 0, sync: pts == 0, data: vec![1; 9].into() });
    let block = BlockSamples { start: 0, end: 96_000, video: video.to_vec(), audio: Vec::new() };
    let bytes = Bytes::from(write_chunk(0, 2_000, &block).unwrap());
    let back = parse_chunk(&bytes, 2_000).unwrap();
    assert_eq!(back.video.iter().map(|sample| sample.pts).collect::<Vec<_>>(), times);
    let durations: Vec<_> = back.video.iter().map(|sample| sample.duration).collect();
    assert_eq!(durations, [1_000, 1_000, 1_000, 90_000, 3_000]);
}

#[test]
fn pictures_outside_their_block_are_refused() {
    let mut late = block();
    late.end = late.start + FRAME;
    assert_eq!(
        write_chunk(0, delay(), &late),
        Err(ContainerError::Inconsistent("pictures outside their block"))
    );
    let empty = BlockSamples::default();
    assert_eq!(write_chunk(0, 0, &empty), Err(ContainerError::Inconsistent("a block without pictures")));
}

#[test]
fn players_find_the_decoders_configuration() {
    let manifest = small();
    let sps = [0x67, 0x64, 0x00, 0x1f, 0xac, 0xd9];
    let init = base_init(&manifest, &manifest.layers[0], &sps, &[0x68, 0xeb]).unwrap();
    let avcc = avc_config(&init).unwrap();
    assert_eq!(&avcc[..6], [1, 0x64, 0x00, 0x1f, 0xff, 0xe1]);
    assert_eq!(&avcc[8..14], sps);
    assert_eq!(base_codec(&sps), "avc1.64001f");
    assert_eq!(enhancement_key(&init), Err(ContainerError::Missing("uuid")));
}

#[test]
fn an_enhancement_holds_its_grey_key_and_no_known_entry() {
    let manifest = small();
    let init = enhancement_init(&manifest, &manifest.layers[1], b"grey").unwrap();
    assert_eq!(enhancement_key(&init).unwrap(), b"grey");
    assert_eq!(avc_config(&init), Err(ContainerError::Missing("avc1")));
    let has = |code: &[u8]| init.windows(4).any(|window| window == code);
    assert!(has(b"lenh") && !has(b"vp09"));
}

#[test]
fn a_cut_chunk_is_never_read() {
    let bytes = Bytes::from(write_chunk(1, delay(), &block()).unwrap());
    for length in 0..bytes.len() {
        assert!(parse_chunk(&bytes.slice(..length), delay()).is_err(), "cut at {length}");
    }
}

/// What holds for everything that is read, however wrong.
fn is_well_formed(chunk: &Bytes, back: &BlockSamples) {
    assert!(!back.video.is_empty() && back.video.len() <= MAX_SAMPLES && back.audio.len() <= MAX_SAMPLES);
    let inside = chunk.as_ptr_range();
    let all = back.video.iter().map(|s| &s.data).chain(back.audio.iter().map(|s| &s.data));
    for data in all {
        assert!(data.is_empty() || inside.contains(&data.as_ptr()));
    }
    for sample in &back.video {
        assert!(sample.duration > 0 && sample.pts >= back.start && sample.pts < back.end);
    }
}

#[test]
fn every_single_flipped_bit_gives_an_error_or_a_lawful_block() {
    let bytes = write_chunk(1, delay(), &block()).unwrap();
    for bit in 0..bytes.len() * 8 {
        let mut wrong = bytes.clone();
        wrong[bit / 8] ^= 1 << (bit % 8);
        let wrong = Bytes::from(wrong);
        if let Ok(back) = parse_chunk(&wrong, delay()) {
            is_well_formed(&wrong, &back);
        }
    }
}

proptest! {
    #[test]
    fn damaged_chunks_never_panic(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        cut in any::<prop::sample::Index>(),
        delay in any::<u32>(),
    ) {
        let mut bytes = write_chunk(1, 2_002, &block()).unwrap();
        for (at, value) in damage {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        let length = bytes.len();
        for bytes in [Bytes::from(bytes[..cut.index(length)].to_vec()), Bytes::from(bytes)] {
            if let Ok(back) = parse_chunk(&bytes, delay) {
                is_well_formed(&bytes, &back);
            }
        }
    }

    #[test]
    fn damaged_init_segments_never_panic(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
    ) {
        let manifest = small();
        let mut init = enhancement_init(&manifest, &manifest.layers[1], b"grey").unwrap();
        for (at, value) in damage {
            let at = at.index(init.len());
            init[at] = value;
        }
        let _ = (avc_config(&init), enhancement_key(&init));
    }

    #[test]
    fn any_order_of_pictures_comes_back(
        steps in prop::collection::vec(1_u64..5_000, 1..40),
        seed in any::<u64>(),
        delay in 0_u32..10_000,
    ) {
        let mut pts = 0;
        let mut video: Vec<VideoSample> = steps.iter().map(|step| {
            let sample = VideoSample { pts, duration: *step, sync: false, data: vec![1, 2, 3].into() };
            pts += step;
            sample
        }).collect();
        // Pictures are decoded at most two places early, as in a B pyramid.
        for at in (1..video.len()).step_by(3) {
            if seed >> (at % 64) & 1 == 1 {
                let early = video.remove((at + 2).min(video.len() - 1));
                video.insert(at, early);
            }
        }
        let delay = if delay == 0 { video.sort_by_key(|s| s.pts); 0 } else { delay };
        let block = BlockSamples { start: 0, end: pts, video, audio: Vec::new() };
        let bytes = Bytes::from(write_chunk(0, delay, &block).unwrap());
        prop_assert_eq!(parse_chunk(&bytes, delay).unwrap(), block);
    }
}
