//! What cannot be encoded fails with one clear reason and leaves nothing behind.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]

mod common;

use common::{Place, encode, pictures, tone};
use encoder::{EncodeError, Progress};
use media::Span;
use media::library::LibraryError;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

fn refused(place: &Place, film: &Path) -> EncodeError {
    let error = encode(&place.options(film)).map(|_| ()).unwrap_err();
    assert!(place.listing().is_empty(), "{:?}", place.listing());
    error
}

#[test]
fn files_that_are_no_films() {
    let place = Place::new();
    let file = |name: &str, bytes: &[u8]| {
        std::fs::write(place.path(name), bytes).unwrap();
        place.path(name)
    };
    assert!(matches!(refused(&place, &place.path("absent.mp4")), EncodeError::Unreadable { .. }));
    assert!(matches!(refused(&place, &std::env::temp_dir()), EncodeError::Unreadable { .. }));
    let empty = refused(&place, &file("empty.mp4", b""));
    assert_eq!(empty.to_string(), "this is no film that can be read: it is empty");
    let noise: Vec<u8> =
        (0..100_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24).to_le_bytes()[0]).collect();
    assert!(matches!(refused(&place, &file("noise.mp4", &noise)), EncodeError::NoFilm { .. }));
    assert!(matches!(refused(&place, &file("text.mp4", b"once upon a time")), EncodeError::NoFilm { .. }));
    // A box that claims petabytes.
    let mut huge = b"\0\0\0\x14ftypisom\0\0\0\0isom".to_vec();
    huge.extend_from_slice(b"\0\0\0\x01moov\x00\x10\0\0\0\0\0\0");
    assert!(matches!(refused(&place, &file("huge.mp4", &huge)), EncodeError::NoFilm { .. }));
    let sound = place.film("sound.m4a", &format!("{} -c:a aac", tone(1.0)));
    assert!(matches!(refused(&place, &sound), EncodeError::NoVideo));
}

#[test]
fn a_film_cut_in_the_middle_fails_or_ends_there_but_never_hangs() {
    let place = Place::new();
    let args = format!("{} -c:v libx264 -movflags +faststart", pictures("160x96", "25", 3.0));
    let bytes = std::fs::read(place.film("whole.mp4", &args)).unwrap();
    let cut = place.path("cut.mp4");
    for keep in [bytes.len() * 2 / 3, bytes.len() / 10] {
        std::fs::write(&cut, &bytes[..keep]).unwrap();
        match encode(&place.options(&cut)) {
            Ok((report, title)) => {
                assert!(report.pictures < 75);
                std::fs::remove_dir_all(title.path()).unwrap();
            }
            Err(error) => assert!(
                matches!(error, EncodeError::NoFilm { .. } | EncodeError::Broken { .. } | EncodeError::Empty),
                "{error}"
            ),
        }
        assert!(place.listing().is_empty());
    }
}

#[test]
fn a_film_that_changes_its_size_is_refused() {
    let place = Place::new();
    let part = |name: &str, size: &str| {
        place.film(name, &format!("{} -c:v libx264 -bsf:v h264_mp4toannexb", pictures(size, "25", 0.4)))
    };
    let mut bytes = std::fs::read(part("one.264", "160x96")).unwrap();
    bytes.extend(std::fs::read(part("other.264", "192x96")).unwrap());
    std::fs::write(place.path("both.264"), bytes).unwrap();
    let error = refused(&place, &place.path("both.264"));
    assert_eq!(error.to_string(), "the pictures change from 160x96 to 192x96");
}

#[test]
fn an_existing_title_is_kept_unless_it_shall_be_replaced() {
    let place = Place::new();
    let film = place.film("film.mp4", &format!("{} -c:v libx264", pictures("96x64", "25", 0.4)));
    let (_, first) = encode(&place.options(&film)).unwrap();
    let error = encode(&place.options(&film)).map(|_| ()).unwrap_err();
    assert!(matches!(&error, EncodeError::Library(LibraryError::Exists { .. })));
    assert_eq!(error.hint(), Some("--replace replaces it"));
    let mut options = place.options(&film);
    options.replace = true;
    options.quality += 4.0;
    let (_, second) = encode(&options).unwrap();
    assert_ne!(first.manifest().made, second.manifest().made);
    assert_eq!(place.listing(), ["film"]);
}

#[test]
fn somebody_may_stop_it() {
    let place = Place::new();
    let film = place.film("film.mp4", &format!("{} -c:v libx264", pictures("160x96", "25", 8.0)));
    let cancel = AtomicBool::new(false);
    let mut blocks = 0;
    let mut progress = |told: Progress| {
        if let Progress::Block { .. } = told {
            blocks += 1;
            cancel.store(true, Ordering::Relaxed);
        }
    };
    let result = encoder::encode(&place.options(&film), &mut progress, &cancel);
    assert!(matches!(result, Err(EncodeError::Cancelled)));
    assert!(blocks < 8);
    assert!(place.listing().is_empty());
}

#[test]
fn options_that_make_no_sense() {
    let place = Place::new();
    let film = place.film("film.mp4", &format!("{} -c:v libx264", pictures("96x64", "25", 0.4)));
    let mut short = place.options(&film);
    short.block = Span::from_millis(1);
    let mut backwards = place.options(&film);
    (backwards.from, backwards.to) = (Some(Span::from_secs(2)), Some(Span::from_secs(1)));
    let mut many = place.options(&film);
    many.quantizers = Some(vec![30]);
    for options in [short, backwards, many] {
        assert!(matches!(encode(&options), Err(EncodeError::Option(_))));
    }
    let mut growing = place.options(&film);
    growing.factors = vec![1, 2];
    assert!(matches!(encode(&growing), Err(EncodeError::Ladder(_))));
    let mut late = place.options(&film);
    late.from = Some(Span::from_secs(60));
    assert!(matches!(encode(&late), Err(EncodeError::Empty)));
    assert!(place.listing().is_empty());
}
