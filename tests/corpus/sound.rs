//! Sound: without a click, in step, in every common coding, or none.

use crate::films::{beeps, film, flashes, pictures, take, tone};

fn with_tone(name: &str, seconds: f64, rate: u32, coding: &str) -> std::path::PathBuf {
    let source = format!("{} {}", pictures("160x96", (25, 1), seconds), tone(seconds, rate));
    film(name, &format!("{source} -c:v libx264 {coding}"))
}

#[test]
fn aac_with_priming_runs_on_across_the_edges_of_blocks() {
    for rate in [48_000, 44_100, 32_000] {
        let taken = take(&with_tone(&format!("priming{rate}.mp4"), 4.2, rate, "-c:a aac"));
        taken.shows_the_film().sounds_whole(4.0).is_unremarkable();
    }
}

#[test]
fn sound_that_has_to_be_made_anew_runs_on_too() {
    for (name, coding) in [
        ("pcm.mkv", "-c:a pcm_s16le"),
        ("mp3.mp4", "-c:a libmp3lame"),
        ("opus.mkv", "-c:a libopus"),
        ("vorbis.mkv", "-c:a libvorbis"),
        ("flac.mkv", "-c:a flac"),
        ("ac3.ts", "-c:a ac3"),
    ] {
        let taken = take(&with_tone(name, 4.2, 48_000, coding));
        taken.shows_the_film().sounds_whole(4.0);
    }
}

#[test]
fn sound_that_is_made_anew_stays_in_step() {
    for (name, coding) in
        [("mp3s.mp4", "libmp3lame"), ("opuss.mkv", "libopus"), ("ac3s.ts", "ac3"), ("flacs.mkv", "flac")]
    {
        let taken = take(&film(name, &format!("{} -c:v libx264 -bf 2 -c:a {coding}", flashes(4.2))));
        taken.shows_the_film().is_in_step(4);
    }
}

#[test]
fn five_point_one() {
    let beeps =
        beeps((25, 1), 3.2).replace(":s=48000", ":s=48000,pan=5.1|c0=c0|c1=c0|c2=c0|c3=0*c0|c4=c0|c5=c0");
    let source = format!("{} {beeps}", pictures("160x96", (25, 1), 3.2));
    let source = source.replace(",pan=", ":d=3.2,pan=").replace("c5=c0:d=3.2", "c5=c0");
    for (name, coding) in [("six.mp4", "aac"), ("six.mkv", "ac3")] {
        let taken = take(&film(name, &format!("{source} -c:v libx264 -bf 2 -c:a {coding}")));
        assert_eq!(taken.title.manifest().audio.as_ref().unwrap().channels, 6, "{name}");
        taken.shows_the_film().is_in_step(3);
    }
}

#[test]
fn of_two_sound_tracks_the_first_is_taken_and_the_other_is_named() {
    let source =
        format!("{} {} {}", pictures("160x96", (25, 1), 3.2), beeps((25, 1), 3.2), tone(3.2, 48_000));
    for name in ["two.mp4", "two.mkv"] {
        let args =
            format!("{source} -map 0 -map 1 -map 2 -c:v libx264 -bf 2 -c:a aac -metadata:s:a:1 language=fra");
        let taken = take(&film(name, &args));
        taken.shows_the_film().is_in_step(3).warns("1 other track of sound left out");
    }
}

#[test]
fn a_film_without_sound() {
    let taken =
        take(&film("silent.mp4", &format!("{} -c:v libx264 -bf 2", pictures("160x96", (25, 1), 2.2))));
    taken.shows_the_film().is_unremarkable();
    assert_eq!(taken.title.manifest().audio, None);
}

#[test]
fn sound_that_ends_early_is_told() {
    let source = format!("{} {}", pictures("160x96", (25, 1), 4.2), beeps((25, 1), 2.0));
    let taken = take(&film("short.mp4", &format!("{source} -c:v libx264 -bf 2 -c:a aac")));
    taken.shows_the_film().warns("before the pictures");
}
