//! Damaged bytes at every door: containers, edit lists, manifests, messages, tokens. Whatever comes,
//! the answer is an error or something lawful, never a panic, and what is read
//! is never larger than what was sent.
//!
//! `LAMINA_FUZZ` says how many cases each of the seven takes (1000), `PROPTEST_RNG_SEED`
//! where it begins; `./x check` runs 1.6 million, `./x fuzz` five. A failure is shrunk, printed, and
//! kept in a file beside this one.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a witness states what it saw"
)]

use bytes::Bytes;
use media::container::{
    AudioSample, BlockSamples, VideoSample, avc_config, base_init, enhancement_init, enhancement_key,
    parse_chunk, read_edits, read_tracks, write_chunk, write_halves,
};
use media::manifest::{Audio, Color, Half, MANIFEST_VERSION, Made, Ratio};
use media::{BlockInfo, ChunkInfo, Hash, LayerInfo, Manifest, Quality, Span};
use proptest::prelude::*;
use protocol::frame::{self, LENGTH_BYTES};
use protocol::message::Message;
use protocol::message::{StreamReply, StreamRequest};
use protocol::node::autonomy::Sla;
use protocol::token::{MAX_SIGNATURE_BYTES, Promise, SignedToken};
use std::io::Cursor;
use transport::keys::token::{token_from_text, token_to_text};

/// One way to damage bytes. Positions are parts of the length, so that they fit any.
#[derive(Debug, Clone)]
enum Damage {
    Set(prop::sample::Index, u8),
    Flip(prop::sample::Index, u8),
    /// A number of four bytes that somebody might have to multiply or allocate.
    Number(prop::sample::Index, u32),
    Cut(prop::sample::Index),
    Remove(prop::sample::Index, u8),
    Insert(prop::sample::Index, Vec<u8>),
    /// Repeats a stretch of the bytes elsewhere.
    Copy(prop::sample::Index, prop::sample::Index, u8),
}

fn damages() -> impl Strategy<Value = Vec<Damage>> {
    let at = || any::<prop::sample::Index>();
    let number =
        prop_oneof![Just(0), Just(1), Just(u32::MAX), Just(1 << 31), Just(u32::MAX - 7), any::<u32>()];
    let one = prop_oneof![
        4 => (at(), any::<u8>()).prop_map(|(at, byte)| Damage::Set(at, byte)),
        4 => (at(), 0..8_u8).prop_map(|(at, bit)| Damage::Flip(at, bit)),
        4 => (at(), number).prop_map(|(at, number)| Damage::Number(at, number)),
        1 => at().prop_map(Damage::Cut),
        1 => (at(), 1..64_u8).prop_map(|(at, count)| Damage::Remove(at, count)),
        1 => (at(), prop::collection::vec(any::<u8>(), 1..64)).prop_map(|(at, more)| Damage::Insert(at, more)),
        1 => (at(), at(), 1..64_u8).prop_map(|(from, to, count)| Damage::Copy(from, to, count)),
    ];
    prop::collection::vec(one, 1..10)
}

fn damaged(mut bytes: Vec<u8>, damages: &[Damage]) -> Vec<u8> {
    for damage in damages {
        if bytes.is_empty() {
            break;
        }
        let length = bytes.len();
        match damage {
            Damage::Set(at, byte) => bytes[at.index(length)] = *byte,
            Damage::Flip(at, bit) => bytes[at.index(length)] ^= 1 << bit,
            Damage::Number(at, number) => {
                let at = at.index(length);
                let end = (at + 4).min(length);
                bytes[at..end].copy_from_slice(&number.to_be_bytes()[..end - at]);
            }
            Damage::Cut(at) => bytes.truncate(at.index(length)),
            Damage::Remove(at, count) => {
                let at = at.index(length);
                bytes.drain(at..(at + usize::from(*count)).min(length));
            }
            Damage::Insert(at, more) => {
                let at = at.index(length);
                bytes.splice(at..at, more.iter().copied());
            }
            Damage::Copy(from, to, count) => {
                let (from, to) = (from.index(length), to.index(length));
                let part = bytes[from..(from + usize::from(*count)).min(length)].to_vec();
                bytes.splice(to..to, part);
            }
        }
    }
    bytes
}

fn cases() -> ProptestConfig {
    let cases = std::env::var("LAMINA_FUZZ").ok().and_then(|cases| cases.parse().ok()).unwrap_or(1_000);
    ProptestConfig { cases, max_shrink_iters: 100_000, ..ProptestConfig::default() }
}

fn manifest() -> Manifest {
    let layer = |factor: u8, side: (u32, u32), file: &str| LayerInfo {
        factor,
        width: side.0,
        height: side.1,
        codec: "lenh".into(),
        file: file.into(),
        init: vec![7; 40],
        delay: if factor == 2 { 2_002 } else { 0 },
        sync_every: None,
        halves: factor == 1,
    };
    let block = |index: u64| BlockInfo {
        start: index * 30_030,
        duration: 30_030,
        frames: 30,
        base_hash: Hash::of(b"b"),
        quality_hashes: vec![Hash::of(b"q"); 2],
        chunks: vec![ChunkInfo { offset: 100 + index * 9_000, length: 9_000, hash: Hash::of(b"c") }; 2],
        halves: vec![Half { length: 4_000, hash: Hash::of(b"a"), pictures: Hash::of(b"p") }],
    };
    Manifest {
        class: media::TitleClass::Archived,
        version: MANIFEST_VERSION,
        title: "film".parse().unwrap(),
        width: 321,
        height: 241,
        frame_rate: Ratio { num: 30_000, den: 1_001 },
        timescale: 30_000,
        duration: 90_090,
        color: Color { full_range: false, primaries: 1, transfer: 1, matrix: 1 },
        pixel_aspect: Ratio { num: 4, den: 3 },
        made: Made {
            by: "a test".into(),
            preset: "fast".into(),
            crf_centi: 3_000,
            quantizers: vec![38],
            block_ms: 1_000,
        },
        audio: Some(Audio {
            codec: "mp4a.40.2".into(),
            sample_rate: 48_000,
            channels: 2,
            config: vec![0x11, 0x90],
        }),
        layers: vec![layer(2, (162, 122), "base.mp4"), layer(1, (322, 242), "enh1.mp4")],
        blocks: (0..3).map(block).collect(),
    }
}

/// A block in the decoding order of a B pyramid, with sound.
fn chunk() -> Vec<u8> {
    let picture = |n: u64| VideoSample {
        pts: n * 1_001,
        duration: 1_001,
        sync: n == 0,
        data: vec![1; 20 + usize::try_from(n).unwrap()].into(),
    };
    let frame = |n: u64| AudioSample { pts: n * 1_024, duration: 1_024, data: vec![9; 7].into() };
    let video = [0, 4, 2, 1, 3].map(picture).to_vec();
    let block = BlockSamples { start: 0, end: 5_005, video, audio: (0..3).map(frame).collect() };
    write_chunk(1, 2_002, &block).unwrap()
}

/// An enhancement's block in halves.
fn halves() -> Vec<u8> {
    let picture = |n: u64| VideoSample {
        pts: n * 1_001,
        duration: 1_001,
        sync: n == 0,
        data: vec![2; 20 + usize::try_from(n).unwrap()].into(),
    };
    let video = (0..5).map(picture).collect();
    write_halves(1, 0, &BlockSamples { start: 0, end: 5_005, video, audio: Vec::new() }).unwrap().0
}

/// Bodies of messages as they have been since version 1: two of them with lists in lists.
fn messages() -> Vec<Vec<u8>> {
    let seven = "07".repeat(32);
    let bodies = [
        "000103622d3101".to_owned(),
        "02010466696c6d05800ad005030100".into(),
        "03090466696c6d02ac02000101050401017601030802010201026231".into(),
        format!("04010203ac02{seven}010101026531007f0000015001026232007f000001510301026233007f00000152"),
        "050904".into(),
        "0a160102623201".into(),
        "0a0b02623107010466696c6d010262330101000002026231026531010406070101026232020309000101026232020309000101"
            .into(),
        "0b07026232007f0000015101".into(),
        "0c070502".into(),
    ];
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    bodies.iter().map(|body| body.as_bytes().chunks(2).map(byte).collect()).collect()
}

/// The head of a film by others: two tracks with edits, one with composition offsets.
fn head() -> Vec<u8> {
    let boxed = |kind: &[u8], body: &[u8]| {
        [&u32::try_from(body.len() + 8).unwrap().to_be_bytes()[..], kind, body].concat()
    };
    let numbers = |numbers: &[u32]| numbers.iter().flat_map(|n| n.to_be_bytes()).collect::<Vec<u8>>();
    let elst = numbers(&[0, 2, 500, u32::MAX, 1 << 16, 3_000, 1_024, 1 << 16]);
    let long = numbers(&[1 << 24, 1, 0, 3_000, 0, 1_024, 1 << 16]);
    let ctts = boxed(b"ctts", &numbers(&[0, 2, 1, 512, 1, (-512_i32).cast_unsigned()]));
    let track = |id: u32, elst: &[u8]| {
        let minf = boxed(b"minf", &boxed(b"stbl", &ctts));
        let mdia = boxed(b"mdia", &[boxed(b"mdhd", &numbers(&[0, 0, 0, 12_800, 0])), minf].concat());
        let edts = boxed(b"edts", &boxed(b"elst", elst));
        boxed(b"trak", &[boxed(b"tkhd", &numbers(&[0, 0, 0, id])), edts, mdia].concat())
    };
    let mvhd = boxed(b"mvhd", &numbers(&[0, 0, 0, 1_000, 0]));
    let moov = [mvhd, track(1, &elst), track(2, &long)].concat();
    [boxed(b"ftyp", b"isom"), boxed(b"moov", &moov)].concat()
}

/// A token as a viewer shows it.
fn token() -> String {
    let promise = Promise {
        viewer: "anna".parse().unwrap(),
        sla: Sla::Vip,
        top: Quality::BRONZE,
        until: 1_800_000_000,
    };
    token_to_text(&SignedToken { promise, signature: vec![7; 70] }).unwrap()
}

#[test]
fn what_is_damaged_here_was_lawful_before() {
    assert_eq!(read_edits(&mut Cursor::new(head())).unwrap().unwrap().tracks.len(), 2);
    assert_eq!(read_tracks(&mut Cursor::new(head())).unwrap().tracks.len(), 2);
    assert!(messages().iter().all(|body| frame::decode::<Message>(body).is_ok()));
    assert_eq!(parse_chunk(&Bytes::from(chunk()), 2_002).unwrap().video.len(), 5);
    assert_eq!(parse_chunk(&Bytes::from(halves()), 0).unwrap().video.len(), 5);
    assert_eq!(Manifest::parse(&manifest().to_bytes().unwrap()).unwrap(), manifest());
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn chunks(damages in damages(), whole in any::<bool>(), delay in prop_oneof![Just(None), any::<u32>().prop_map(Some)]) {
        let (chunk, own) = if whole { (chunk(), 2_002) } else { (halves(), 0) };
        let (bytes, delay) = (Bytes::from(damaged(chunk, &damages)), delay.unwrap_or(own));
        if let Ok(block) = parse_chunk(&bytes, delay) {
            let held: usize = block.video.iter().map(|sample| sample.data.len()).sum();
            prop_assert!(!block.video.is_empty() && block.video.len() <= bytes.len());
            prop_assert!(block.video.iter().all(|sample| sample.pts >= block.start && sample.pts < block.end));
            prop_assert!(held <= bytes.len() * block.video.len());
        }
    }

    #[test]
    fn edit_lists(damages in damages()) {
        let bytes = damaged(head(), &damages);
        let told = read_tracks(&mut Cursor::new(&bytes)).unwrap();
        prop_assert!(told.tracks.len() <= bytes.len() && told.length_places.len() <= 2);
        if let Ok(film) = read_edits(&mut Cursor::new(&bytes)).unwrap() {
            prop_assert!(film.tracks.len() <= bytes.len());
            prop_assert!(film.overwrites.len() <= bytes.len());
            prop_assert!(film.tracks.iter().all(|track| track.edits.len() <= bytes.len()));
        }
    }

    #[test]
    fn tokens(damages in damages()) {
        let bytes = damaged(token().into_bytes(), &damages);
        if let Ok(read) = token_from_text(&String::from_utf8_lossy(&bytes)) {
            prop_assert!(read.signature.len() <= MAX_SIGNATURE_BYTES);
            prop_assert_eq!(token_from_text(&token_to_text(&read).unwrap()).unwrap(), read);
        }
    }

    #[test]
    fn init_segments(damages in damages()) {
        let manifest = manifest();
        let base = base_init(&manifest, &manifest.layers[0], &[0x67, 0x64, 0, 0x1f, 0xac], &[0x68, 0xeb]).unwrap();
        let enh = enhancement_init(&manifest, &manifest.layers[1], b"grey").unwrap();
        for bytes in [base, enh] {
            let bytes = damaged(bytes, &damages);
            prop_assert!(avc_config(&bytes).map_or(0, <[u8]>::len) <= bytes.len());
            prop_assert!(enhancement_key(&bytes).map_or(0, <[u8]>::len) <= bytes.len());
        }
    }

    #[test]
    fn manifests(damages in damages()) {
        let bytes = damaged(manifest().to_bytes().unwrap(), &damages);
        if let Ok(read) = Manifest::parse(&bytes) {
            // What was believed can be used and written again.
            prop_assert!(read.check().is_ok());
            prop_assert!(read.block_at(Span::from_secs(1)) < read.block_count());
            prop_assert!(read.top_quality() >= Quality::BRONZE);
            prop_assert_eq!(Manifest::parse(&read.to_bytes().unwrap()).unwrap(), read);
        }
    }

    #[test]
    fn damaged_messages(damages in damages(), which in any::<prop::sample::Index>()) {
        let messages = messages();
        let bytes = damaged(messages[which.index(messages.len())].clone(), &damages);
        if let Ok(read) = frame::decode::<Message>(&bytes) {
            let again = frame::encode(&read).unwrap();
            prop_assert_eq!(frame::decode::<Message>(&again[LENGTH_BYTES..]).unwrap(), read);
        }
    }

    #[test]
    fn noise_as_messages(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(read) = frame::decode::<Message>(&bytes) {
            prop_assert!(frame::encode(&read).is_ok());
        }
        if let Ok(read) = frame::decode::<StreamRequest>(&bytes) {
            prop_assert!(frame::encode(&read).is_ok());
        }
        if let Ok(read) = frame::decode::<StreamReply>(&bytes) {
            prop_assert!(frame::encode(&read).is_ok());
        }
    }
}
