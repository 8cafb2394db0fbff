//! Containers, and what else lies in them.

use crate::films::{film, flashes, take, written};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};

#[test]
fn fragmented_mp4_and_moov_first_and_last() {
    for (name, flags) in [
        ("fragments.mp4", "-movflags frag_keyframe+empty_moov+default_base_moof -g 25"),
        ("first.mp4", "-movflags +faststart"),
        ("last.mp4", ""),
    ] {
        let taken = take(&film(name, &format!("{} -c:v libx264 -bf 2 -c:a aac {flags}", flashes(3.2))));
        taken.shows_the_film().is_in_step(3);
    }
}

#[test]
fn matroska_transport_stream_flv_and_avi() {
    for (name, coding) in [
        ("film.mkv", "-c:v libx264 -bf 3 -c:a aac"),
        ("film.ts", "-c:v libx264 -bf 3 -c:a aac"),
        ("film.flv", "-c:v libx264 -bf 2 -c:a aac -ar 44100"),
        ("film.avi", "-c:v mpeg4 -q:v 3 -c:a libmp3lame"),
    ] {
        let taken = take(&film(name, &format!("{} {coding}", flashes(3.2))));
        taken.shows_the_film().is_in_step(3);
    }
}

#[test]
fn text_subtitles_are_said_to_be_dropped() {
    let text = written("words.srt", "1\n00:00:00,500 --> 00:00:02,000\nSomebody speaks.\n\n");
    for (name, coding) in [("words.mkv", "srt"), ("words.mp4", "mov_text")] {
        let args = format!(
            "{} -i {} -map 0 -map 1 -map 2 -c:v libx264 -bf 2 -c:a aac -c:s {coding}",
            flashes(2.2),
            text.display()
        );
        take(&film(name, &args)).shows_the_film().is_in_step(2).warns("subtitles are not carried");
    }
}

/// Media data of more than 4 GB before `moov`, nearly all of it a hole that takes no room.
#[test]
fn a_film_beyond_four_gigabytes() {
    let whole = film("plain.mp4", &format!("{} -c:v libx264 -bf 2 -c:a aac", flashes(2.2)));
    let mut bytes = Vec::new();
    std::fs::File::open(&whole).unwrap().read_to_end(&mut bytes).unwrap();
    let place = bytes.windows(4).position(|kind| kind == b"moov").unwrap() - 4;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("huge.mp4");
    let mut file = std::fs::File::create(&path).unwrap();
    file.write_all(&bytes[..place]).unwrap();
    // A `free` box of 5 GB with a 64-bit size, then `moov`.
    let hole = 5_000_000_000_u64;
    file.write_all(&[&1_u32.to_be_bytes()[..], b"free", &hole.to_be_bytes()].concat()).unwrap();
    file.seek(SeekFrom::Start(place as u64 + hole)).unwrap();
    file.write_all(&bytes[place..]).unwrap();
    drop(file);
    take(&path).shows_the_film().is_in_step(2).is_unremarkable();
}
