//! A short film becomes a long programme, and damage to it is found.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]

mod common;

use common::{Place, aac_frames, encode, output, pictures, tone, verify};
use encoder::{FaultKind, repeat};
use media::container::parse_chunk;
use media::{Layer, Library, Quality, Span};
use std::sync::atomic::AtomicBool;

fn short(place: &Place) -> std::path::PathBuf {
    let args = format!("{} {} -c:v libx264 -bf 3 -c:a aac", pictures("160x96", "25", 2.2), tone(2.2));
    place.film("film.mp4", &args)
}

#[test]
fn repeats_are_whole_blocks_with_their_own_times_and_sound_that_runs_on() {
    let place = Place::new();
    let film = short(&place);
    let (once_report, once) = encode(&place.options(&film)).unwrap();
    let library = Library::create(place.path("long")).unwrap();
    let long = repeat(&once, &library, Span::from_secs(20), false, &AtomicBool::new(false)).unwrap();

    let (short, manifest) = (once.manifest(), long.manifest());
    assert_eq!(once_report.blocks, 3);
    assert_eq!(manifest.block_count(), 30);
    assert_eq!(manifest.duration, 10 * short.duration);
    for (index, block) in manifest.blocks.iter().enumerate() {
        let original = &short.blocks[index % 3];
        assert_eq!(block.start, original.start + u64::try_from(index / 3).unwrap() * short.duration);
        assert_eq!((block.base_hash, &block.quality_hashes), (original.base_hash, &original.quality_hashes));
        if index >= 3 {
            assert_ne!(block.chunks[1].hash, original.chunks[1].hash, "each repeat is a chunk of its own");
        }
    }
    let found = verify(&long);
    assert!(found.is_clean(), "{:?}", found.faults);

    let base = long.path().join("base.mp4");
    let sound = aac_frames(&base);
    assert!(sound.windows(2).all(|pair| pair[1].0 - pair[0].0 == 1_024), "frames run on without a gap");
    let end = sound.last().unwrap().0 + 1_024;
    assert!((end - 22 * 48_000).abs() <= 1_024, "the sound ends with the pictures: {end}");
    // Each frame of sound is within a frame of where its picture wants it.
    let original = aac_frames(&once.path().join("base.mp4"));
    for (time, hash) in &sound {
        let wanted = original.iter().filter(|frame| frame.1 == *hash).map(|frame| frame.0);
        let off = wanted.map(|at| (time - at).rem_euclid(105_600)).map(|off| off.min(105_600 - off)).min();
        assert!(off.unwrap() <= 1_024, "frame at {time}");
    }
    for index in 0..30 {
        let block = &manifest.blocks[usize::try_from(index).unwrap()];
        let chunk = long.read_chunk(index, Layer::BASE).unwrap();
        let samples = parse_chunk(&chunk, manifest.layers[0].delay).unwrap();
        let (start, end) = (block.start * 4, (block.start + block.duration) * 4);
        assert!(samples.audio.iter().all(|frame| (start..end).contains(&frame.pts)), "block {index}");
    }
    output("ffmpeg", &["-v", "error", "-i", "FILE", "-f", "null", "-"], &base);
}

#[test]
fn encoding_can_repeat_at_once_and_shows_only_the_result() {
    let place = Place::new();
    let film = short(&place);
    let mut options = place.options(&film);
    options.repeat_to = Some(Span::from_secs(5));
    let (report, title) = encode(&options).unwrap();
    assert_eq!((report.blocks, report.pictures), (9, 55));
    assert_eq!(title.manifest().span(), Span::from_millis(6_600));
    assert_eq!(place.listing(), ["film"]);
}

#[test]
fn one_flipped_byte_in_any_layer_is_found_and_named() {
    let place = Place::new();
    let film = short(&place);
    let (_, title) = encode(&place.options(&film)).unwrap();
    for layer in Layer::first(3) {
        let chunk = title.manifest().blocks[1].chunks[layer.index()];
        let path = title.path().join(&title.manifest().layers[layer.index()].file);
        let mut bytes = std::fs::read(&path).unwrap();
        let at = usize::try_from(chunk.offset + chunk.length / 2).unwrap();
        bytes[at] ^= 0x10;
        std::fs::write(&path, &bytes).unwrap();
        let found = verify(&title);
        assert_eq!(found.faults.len(), 1, "{:?}", found.faults);
        assert_eq!(found.faults[0].block, 1);
        assert!(matches!(&found.faults[0].kind, FaultKind::Chunk { layer: named, .. } if *named == layer));
        bytes[at] ^= 0x10;
        std::fs::write(&path, &bytes).unwrap();
    }
    assert!(verify(&title).is_clean());
}

#[test]
fn pictures_that_are_not_those_of_the_manifest_are_found() {
    let place = Place::new();
    let film = short(&place);
    let (_, title) = encode(&place.options(&film)).unwrap();
    let text = std::fs::read_to_string(title.path().join("title.json")).unwrap();
    let blocks = &title.manifest().blocks;
    let (right, wrong) = (blocks[0].quality_hashes[1].to_string(), blocks[0].quality_hashes[2].to_string());
    std::fs::write(title.path().join("title.json"), text.replace(&right, &wrong)).unwrap();
    let found = verify(&media::TitleFolder::open(title.path()).unwrap());
    let kinds: Vec<_> = found.faults.iter().map(|fault| &fault.kind).collect();
    assert_eq!(kinds, [&FaultKind::QualityHash { quality: Quality::SILVER }]);
    assert_eq!(found.faults[0].to_string(), "block 0: the silver pictures are not those that were encoded");
}

#[test]
fn a_nodes_folder_is_checked_as_far_as_it_goes() {
    let place = Place::new();
    let film = short(&place);
    let (_, title) = encode(&place.options(&film)).unwrap();
    let node = Library::create(place.path("node")).unwrap();
    let part = media::library::copy_layers(&title, &[Layer::BASE, Layer::ENH2], &node, false).unwrap();
    let found = verify(&part);
    assert!(found.is_clean());
    assert_eq!((found.qualities, found.missing, found.chunks), (vec![Quality::BRONZE], vec![Layer::ENH1], 6));
}
