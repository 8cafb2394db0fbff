//! Times: edits, offsets, late sound, uneven rates.

use crate::edits::edited;
use crate::films::{beeps, film, flashes, pictures, refused, take};
use crate::watched::Seen;

#[test]
fn negative_composition_offsets() {
    let args = format!("{} -c:v libx264 -bf 3 -c:a aac -movflags negative_cts_offsets", flashes(3.2));
    take(&film("cts.mp4", &args)).shows_the_film().is_in_step(3).is_unremarkable();
}

/// A film of 110 pictures that are all key frames.
fn for_cutting() -> std::path::PathBuf {
    film("whole.mp4", &format!("{} -c:v libx264 -bf 0 -g 5 -c:a aac", flashes(4.4)))
}

#[test]
fn an_edit_that_leaves_out_the_first_pictures() {
    let folder = tempfile::tempdir().unwrap();
    // From picture 10 on, at 12800 ticks a second.
    let cut = edited(&for_cutting(), 0, &[(3.6, Some(10 * 512))], folder.path());
    take(&cut).shows(&Seen::of(&for_cutting()), 10..100);
}

#[test]
fn edits_that_let_both_tracks_start_within_their_data() {
    let folder = tempfile::tempdir().unwrap();
    // Pictures from the tenth on; the sound within a frame (19.75 of them, and priming).
    let cut = edited(&for_cutting(), 0, &[(3.6, Some(10 * 512))], folder.path());
    let taken = take(&edited(&cut, 1, &[(3.6, Some(1_024 + 19_200))], folder.path()));
    taken.shows(&Seen::of(&for_cutting()), 10..100).is_in_step(4);
    // With sound that has to be decoded and made anew.
    let mp3 = film("mp3.mp4", &format!("-i {} -c:v copy -c:a libmp3lame", for_cutting().display()));
    let cut = edited(&mp3, 0, &[(3.6, Some(10 * 512))], folder.path());
    let taken = take(&edited(&cut, 1, &[(3.6, Some(1_105 + 19_200))], folder.path()));
    taken.shows(&Seen::of(&for_cutting()), 10..100).is_in_step(4);
}

#[test]
fn several_edits_leave_out_what_lies_between_them() {
    let folder = tempfile::tempdir().unwrap();
    let whole = for_cutting();
    let cut = edited(&whole, 0, &[(1.0, Some(10 * 512)), (1.8, Some(60 * 512))], folder.path());
    let sound = [(1.0, Some(1_024 + 19_200)), (1.8, Some(1_024 + 115_200))];
    let taken = take(&edited(&cut, 1, &sound, folder.path()));
    // Pictures 10 to 34 and 60 to 104: flashes of pictures 10, 60 and 85.
    taken.shows(&Seen::of(&whole).picked(&[10..35, 60..105]), 0..70).is_in_step(3);
}

#[test]
fn several_edits_over_negative_offsets_are_refused_in_one_line() {
    let args = format!("{} -c:v libx264 -bf 3 -g 12 -c:a aac -movflags negative_cts_offsets", flashes(4.4));
    let folder = tempfile::tempdir().unwrap();
    let parts = [(1.0, Some(10 * 512)), (0.5, None), (1.8, Some(60 * 512))];
    let cut = edited(&film("back.mp4", &args), 0, &parts, folder.path());
    assert!(refused(&cut).ends_with("its edits stand over negative composition offsets"));
}

#[test]
fn edits_that_go_back_are_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let cut = edited(&for_cutting(), 0, &[(1.0, Some(60 * 512)), (1.0, Some(10 * 512))], folder.path());
    assert!(refused(&cut).ends_with("the edits of track 1 go back in its data"));
}

#[test]
fn an_empty_edit_before_the_pictures() {
    let whole = film("plain.mp4", &format!("{} -c:v libx264 -bf 2 -c:a aac", flashes(3.2)));
    let folder = tempfile::tempdir().unwrap();
    // The pictures start half a second after the sound, which is cut there; the
    // reordering of two pictures stands in the media time.
    let late = edited(&whole, 0, &[(0.5, None), (3.2, Some(1_024))], folder.path());
    let taken = take(&late);
    taken.shows(&Seen::of(&whole), 0..80);
    let (flashes, beeps) =
        (Seen::of(&taken.base()).flashes(), crate::watched::beeps(&crate::watched::heard(&taken.base())));
    // Sound at 1.4 and 2.4 of the film, pictures from 0.5 on.
    assert!((beeps[0] - 0.9).abs() < 0.02 && (beeps[1] - 1.9).abs() < 0.02, "{beeps:?}");
    assert!((flashes[0] - 0.4).abs() < 0.002, "{flashes:?}");
}

#[test]
fn sound_that_starts_late() {
    for (name, sound) in [("late.mp4", "aac"), ("late.mkv", "libopus"), ("late.ts", "aac")] {
        let (pictures, beeps) = (pictures("160x96", (25, 1), 4.2), beeps((25, 1), 3.2));
        let args = format!("{pictures} -itsoffset 0.7 {beeps} -c:v libx264 -bf 2 -c:a {sound}");
        let taken = take(&film(name, &args));
        taken.shows_the_film();
        let heard = crate::watched::beeps(&crate::watched::heard(&taken.base()));
        let late = |(n, at): (usize, &f64)| (at - (n as f64 + 1.1)).abs() < 0.02;
        assert!(heard.len() == 3 && heard.iter().enumerate().all(late), "{name}: {heard:?}");
    }
}

#[test]
fn pictures_that_start_late() {
    let (pictures, beeps) = (pictures("160x96", (25, 1), 3.2), beeps((25, 1), 4.2));
    for name in ["behind.mp4", "behind.mkv"] {
        let args = format!(
            "-itsoffset 0.6 {pictures} {beeps} -vsync passthrough -c:v libx264 -bf 2 -c:a aac -map 0:v -map 1:a"
        );
        let taken = take(&film(name, &args));
        taken.shows_the_film();
        // What sounds before the first picture is not kept.
        let heard = crate::watched::beeps(&crate::watched::heard(&taken.base()));
        let moved = |(n, at): (usize, &f64)| (at - (n as f64 + 0.8)).abs() < 0.02;
        assert!(heard.len() >= 3 && heard.iter().enumerate().all(moved), "{name}: {heard:?}");
    }
}

#[test]
fn a_start_at_two_seconds() {
    for name in ["offset.mp4", "offset.mkv", "offset.ts"] {
        let args = format!("{} -c:v libx264 -bf 2 -c:a aac -output_ts_offset 2", flashes(3.2));
        take(&film(name, &args)).shows_the_film().is_in_step(3);
    }
}

#[test]
fn a_variable_rate_from_10_to_60_is_kept() {
    // Sixty a second, then ten, then sixty again.
    let select = "select='if(between(t,0.99,2.01),not(mod(n,6)),1)'";
    let source = format!("{},{select} {}", pictures("160x96", (60, 1), 3.2), beeps((60, 1), 3.2));
    for name in ["uneven.mp4", "uneven.mkv"] {
        let args = format!("{source} -vsync vfr -c:v libx264 -bf 3 -c:a aac");
        let taken = take(&film(name, &args));
        taken.shows_the_film().is_in_step(3).is_unremarkable();
        let times = Seen::of(&taken.base()).times();
        assert!(times.windows(2).any(|pair| pair[1] - pair[0] > 0.09), "it was made even");
    }
}

#[test]
fn a_rate_that_changes_in_the_middle() {
    // 25 a second for two seconds, then 50.
    let select = "select='if(lt(t,1.999),not(mod(n,2)),1)'";
    let source = format!("{},{select} {}", pictures("160x96", (50, 1), 4.2), beeps((50, 1), 4.2));
    for name in ["faster.mp4", "faster.ts"] {
        let args = format!("{source} -vsync vfr -c:v libx264 -bf 2 -c:a aac");
        let taken = take(&film(name, &args));
        taken.shows_the_film().is_in_step(4);
        assert_eq!(taken.report.pictures, 160);
    }
}

#[test]
fn a_picture_held_for_three_seconds() {
    let select = "select='not(between(t,0.59,3.39))'";
    let source = format!("{},{select} {}", pictures("160x96", (25, 1), 4.2), beeps((25, 1), 4.2));
    let taken = take(&film("held.mkv", &format!("{source} -vsync vfr -c:v libx264 -bf 2 -c:a aac")));
    taken.shows_the_film();
    let heard = crate::watched::beeps(&crate::watched::heard(&taken.base()));
    assert_eq!(heard.len(), 4, "the sound goes on: {heard:?}");
}
