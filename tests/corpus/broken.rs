//! What cannot be read, or not to its end.

use crate::films::{film, flashes, pictures, refused, take_with, tone, written};
use crate::watched::Seen;
use encoder::EncodeError;
use std::path::{Path, PathBuf};

/// A film whose index comes first, so that what is left of it can be read.
fn indexed() -> PathBuf {
    film("indexed.mp4", &format!("{} -c:v libx264 -bf 2 -g 12 -c:a aac -movflags +faststart", flashes(4.2)))
}

fn spoilt(name: &str, folder: &Path, film: &Path, spoil: impl FnOnce(&mut Vec<u8>)) -> PathBuf {
    let mut bytes = std::fs::read(film).unwrap();
    spoil(&mut bytes);
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn nothing_text_noise_and_sound_alone() {
    assert_eq!(refused(&written("empty.mp4", "")), "this is no film that can be read: it is empty");
    refused(&written("text.txt", "once upon a time\n"));
    let noise: String =
        (0..50_000_u32).map(|n| char::from((n.wrapping_mul(2_654_435_761) >> 25) as u8)).collect();
    refused(&written("noise.mp4", &noise));
    let sound = film("sound.m4a", &format!("{} -c:a aac", tone(1.0, 48_000)));
    assert_eq!(refused(&sound), "there are no pictures in this film");
}

#[test]
fn a_box_that_claims_petabytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("huge.mp4");
    let mut bytes = b"\0\0\0\x14ftypisom\0\0\0\0isom".to_vec();
    bytes.extend_from_slice(b"\0\0\0\x01moov\x00\x10\0\0\0\0\0\0");
    std::fs::write(&path, &bytes).unwrap();
    refused(&path);
}

#[test]
fn an_index_that_claims_samples_without_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = spoilt("claims.mp4", folder.path(), &indexed(), |bytes| {
        let at = bytes.windows(4).position(|kind| kind == b"stsz").unwrap();
        bytes[at + 12..at + 16].copy_from_slice(&u32::MAX.to_be_bytes());
    });
    refused(&path);
}

#[test]
fn a_film_cut_in_the_middle_is_refused_and_kept_up_to_there_if_asked() {
    let whole = indexed();
    let folder = tempfile::tempdir().unwrap();
    for (name, part) in [("cut.mp4", 0.6), ("cut.mkv", 0.6)] {
        let source = if name == "cut.mp4" {
            whole.clone()
        } else {
            film("whole.mkv", &format!("-i {} -c copy", whole.display()))
        };
        let path = spoilt(name, folder.path(), &source, |bytes| {
            bytes.truncate((bytes.len() as f64 * part) as usize);
        });
        let line = refused(&path);
        assert!(line.starts_with("the film breaks off at"), "{line}");
        let kept = take_with(&path, |options| options.keep_going = true).unwrap();
        kept.warns("the film breaks off at");
        let count = kept.report.pictures as usize;
        assert!((20..100).contains(&count), "{name}: {count} pictures");
        kept.begins_with(&Seen::of(&whole), count - 3);
    }
}

#[test]
fn a_film_whose_middle_was_overwritten_is_refused_and_kept_up_to_there_if_asked() {
    let whole = indexed();
    let folder = tempfile::tempdir().unwrap();
    let path = spoilt("hole.mp4", folder.path(), &whole, |bytes| {
        let (from, to) = (bytes.len() * 55 / 100, bytes.len() * 65 / 100);
        bytes[from..to].fill(0);
    });
    let line = refused(&path);
    assert!(line.starts_with("the film breaks off at"), "{line}");
    let kept = take_with(&path, |options| options.keep_going = true).unwrap();
    kept.warns("the film breaks off at");
    let count = kept.report.pictures as usize;
    assert!((20..100).contains(&count), "{count} pictures");
    kept.begins_with(&Seen::of(&whole), count - 3);
}

#[test]
fn a_size_that_changes_is_refused_and_kept_up_to_there_if_asked() {
    let part =
        |name: &str, size: &str| film(name, &format!("{} -c:v libx264 -bf 0", pictures(size, (25, 1), 1.0)));
    let (one, two) = (part("one.ts", "160x96"), part("two.ts", "192x96"));
    let list = written("sizes.txt", &format!("file '{}'\nfile '{}'\n", one.display(), two.display()));
    let path = film("sizes.ts", &format!("-f concat -safe 0 -i {} -c copy", list.display()));
    assert_eq!(refused(&path), "the pictures change from 160x96 to 192x96");
    let kept = take_with(&path, |options| options.keep_going = true).unwrap();
    kept.warns("the pictures change");
    assert_eq!(kept.report.pictures, 25);
}

#[test]
fn a_film_that_breaks_before_its_first_picture_is_refused_even_then() {
    let folder = tempfile::tempdir().unwrap();
    let path = spoilt("stump.mp4", folder.path(), &indexed(), |bytes| bytes.truncate(700));
    let error = take_with(&path, |options| options.keep_going = true).map(|_| ()).unwrap_err();
    assert!(
        matches!(error, EncodeError::NoFilm { .. } | EncodeError::Empty | EncodeError::Broken { .. }),
        "{error}"
    );
}
