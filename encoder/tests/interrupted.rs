//! Work that is interrupted and taken up again, or shared out, gives the same
//! bytes as work in one go.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]

mod common;

use common::{Place, encode, pictures, tone, verify};
use encoder::{EncodeError, EncodeOptions, Progress, Share, merge};
use media::library::TitleFolder;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

fn film(place: &Place) -> PathBuf {
    let args = format!("{} {} -c:v libx264 -c:a aac", pictures("160x96", "25", 6.4), tone(6.4));
    place.film("film.mp4", &args)
}

fn files(title: &Path) -> Vec<Vec<u8>> {
    let names = ["title.json", "base.mp4", "enh1.mp4", "enh2.mp4"];
    assert_eq!(std::fs::read_dir(title).unwrap().count(), names.len(), "nothing else is in the title");
    names.iter().map(|name| std::fs::read(title.join(name)).unwrap()).collect()
}

/// Options for the same film into another library.
fn options(place: &Place, film: &Path, library: &str) -> EncodeOptions {
    EncodeOptions { library: place.path(library), jobs: Some(2), ..place.options(film) }
}

/// Encodes until so many blocks are written, then stops.
fn interrupt(options: &EncodeOptions, blocks: usize) {
    let cancel = AtomicBool::new(false);
    let mut seen = 0;
    let mut progress = |told: Progress| {
        seen += usize::from(matches!(told, Progress::Block { .. }));
        if seen >= blocks {
            cancel.store(true, Ordering::Relaxed);
        }
    };
    assert!(matches!(encoder::encode(options, &mut progress, &cancel), Err(EncodeError::Cancelled)));
}

/// Goes on, and says how many blocks had been there.
fn go_on(options: &EncodeOptions) -> (u32, TitleFolder) {
    let mut before = 0;
    let mut progress = |told: Progress| {
        if let Progress::Resumed { blocks, .. } = told {
            before = blocks;
        }
    };
    let report = encoder::encode(options, &mut progress, &AtomicBool::new(false)).unwrap();
    (before, TitleFolder::open(report.folder).unwrap())
}

#[test]
fn work_is_taken_up_at_the_first_block_that_is_missing_or_damaged() {
    let place = Place::new();
    let film = film(&place);
    let (_, whole) = encode(&options(&place, &film, "whole")).unwrap();
    let whole = files(whole.path());

    let resumed = EncodeOptions { resume: true, ..options(&place, &film, "library") };
    interrupt(&resumed, 3);
    let folder = place.path("library").join(".work-film");
    // A line cut in the middle, and bytes that no line speaks of.
    let mut journal = std::fs::read(folder.join("journal")).unwrap();
    journal.extend_from_slice(b"{\"block\":{\"index\":");
    std::fs::write(folder.join("journal"), journal).unwrap();
    let mut enh = std::fs::read(folder.join("enh1.mp4")).unwrap();
    enh.extend_from_slice(b"half a chunk");
    std::fs::write(folder.join("enh1.mp4"), enh).unwrap();
    let (before, title) = go_on(&resumed);
    assert!((3..6).contains(&before), "{before}");
    assert!(files(title.path()) == whole);
    assert_eq!(place.listing(), ["film"]);

    // What a power failure spoilt is encoded again.
    let again = EncodeOptions { replace: true, ..resumed };
    interrupt(&again, 4);
    let mut base = std::fs::read(folder.join("base.mp4")).unwrap();
    let at = base.len() / 3;
    base[at] ^= 1;
    std::fs::write(folder.join("base.mp4"), base).unwrap();
    let (before, title) = go_on(&again);
    assert!(before < 4, "{before}");
    assert!(files(title.path()) == whole);
}

#[test]
fn work_on_another_film_or_with_other_settings_is_not_taken_up() {
    let place = Place::new();
    let film = film(&place);
    let begun = EncodeOptions { resume: true, ..options(&place, &film, "library") };
    interrupt(&begun, 2);
    let other = EncodeOptions { quality: begun.quality + 3.0, ..begun.clone() };
    let error = encode(&other).map(|_| ()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the work that was begun cannot be taken up: it was made with other settings"
    );
    assert_eq!(error.hint(), Some("without --resume it is begun anew"));
    let film = place.film("film.mp4", &format!("{} -c:v libx264", pictures("160x96", "25", 6.0)));
    let error = encode(&EncodeOptions { input: film.into(), ..begun.clone() }).map(|_| ()).unwrap_err();
    assert!(matches!(error, EncodeError::Resume(why) if why == "it was made of another film"));
    assert_eq!(place.listing(), [".work-film"], "it is still there");
    let (report, _) = encode(&EncodeOptions { resume: false, ..begun }).unwrap();
    assert_eq!((report.blocks, place.listing()), (6, vec!["film".to_owned()]));
}

#[test]
fn parts_of_a_film_make_the_same_title() {
    let place = Place::new();
    let film = film(&place);
    let (_, whole) = encode(&options(&place, &film, "whole")).unwrap();
    let whole = files(whole.path());
    // More parts than blocks: the last ones are empty.
    for count in [1, 3, 9] {
        let mut parts = Vec::new();
        for number in (1..=count).rev() {
            let share = Share::new(number, count);
            let part = EncodeOptions { share, resume: true, ..options(&place, &film, "parts") };
            if (number, count) == (1, 3) {
                interrupt(&part, 1);
            }
            let report = encoder::encode(&part, &mut |_| {}, &AtomicBool::new(false)).unwrap();
            assert_eq!(
                usize::try_from(report.blocks).unwrap(),
                (0..7_u32).filter(|block| block % count == number - 1).count()
            );
            parts.push(PathBuf::from(report.folder));
        }
        let join = |parts: &[PathBuf], library: &str| {
            merge(parts, &place.path(library), true, &mut |_| {}, &AtomicBool::new(false))
        };
        let title = TitleFolder::open(join(&parts, "library").unwrap().folder).unwrap();
        assert!(files(title.path()) == whole, "{count} parts");
        assert!(verify(&title).is_clean());
        if count == 3 {
            let error = join(&parts[1..], "none").map(|_| ()).unwrap_err().to_string();
            assert_eq!(error, "these parts do not make a title: block 2 is in none of them");
            let enh = parts[0].join("enh2.mp4");
            let mut bytes = std::fs::read(&enh).unwrap();
            let last = bytes.len() - 1;
            bytes[last] ^= 1;
            std::fs::write(&enh, bytes).unwrap();
            let error = join(&parts, "none").map(|_| ()).unwrap_err().to_string();
            assert!(error.ends_with("is damaged"), "{error}");
            assert_eq!(std::fs::read_dir(place.path("none")).unwrap().count(), 0);
        }
    }
}
