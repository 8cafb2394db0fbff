//! What people bring: codings of the net and of old cameras, strange headers, clocks
//! of broadcasts, tracks of very unequal length.

use crate::films::{beeps, film, flashes, pictures, refused, take, take_with, tone, written};
use crate::watched::Seen;

#[test]
fn transparency_is_left_out_and_that_is_said() {
    for (name, coding) in
        [("clear9.webm", "libvpx-vp9 -deadline realtime -cpu-used 8"), ("clear8.webm", "libvpx")]
    {
        let coding = format!("-vf format=yuva420p -c:v {coding} -auto-alt-ref 0 -b:v 1M -c:a libopus");
        let taken = take(&film(name, &format!("{} {coding}", flashes(2.2))));
        taken.shows_the_film().is_in_step(2).warns("the transparency of the pictures is left out");
    }
}

#[test]
fn a_gif_moves_at_its_own_pace() {
    let taken = take(&film("moves.gif", &pictures("160x96", (25, 1), 1.2)));
    taken.shows_the_film().warns("converted to 8-bit 4:2:0");
    assert_eq!(taken.report.pictures, 30);
    let taken = take(&film("still.gif", &format!("{} -frames:v 1", pictures("160x96", (25, 1), 0.4))));
    assert_eq!(taken.report.pictures, 1);
}

#[test]
fn what_has_no_reader_here_is_refused_in_one_clear_line() {
    let moving = pictures("160x96", (25, 1), 0.4);
    let line = refused(&film("moves.png", &format!("{moving} -f apng")));
    assert!(line.ends_with("of an animated PNG only the first picture would be seen"), "{line}");
    let line = refused(&film("moves.webp", &moving));
    assert!(line.ends_with("its data make no sense to its reader"), "{line}");
    let rare = format!("{} -c:v utvideo -pix_fmt yuv420p -c:a aac", flashes(0.4));
    let line = refused(&film("rare.mkv", &rare));
    assert!(line.ends_with("there is no decoder for its pictures (video/x-unknown, ULY0)"), "{line}");
}

#[test]
fn all_values_from_0_to_255_are_carried_as_that() {
    let told = "-color_range pc -color_primaries bt709 -color_trc bt709 -colorspace bt709";
    for (name, coding) in [
        ("full.mp4", "-pix_fmt yuvj420p"),
        ("fulltold.mp4", &*format!("-pix_fmt yuvj420p {told}")),
        ("fulltold.ts", &*format!("-pix_fmt yuvj420p {told}")),
        ("full444.mp4", "-pix_fmt yuvj444p"),
    ] {
        let taken = take(&film(name, &format!("{} {coding} -c:v libx264 -c:a aac", flashes(1.2))));
        taken.shows_the_film().is_in_step(1);
        assert!(taken.title.manifest().color.full_range, "{name}");
    }
    let taken = take(&film("some.mp4", &format!("{} -c:v libx264 -c:a aac", flashes(1.2))));
    assert!(!taken.title.manifest().color.full_range);
}

#[test]
fn tracks_much_shorter_than_the_film_are_taken_for_what_they_are() {
    // Demuxers take what is shorter than a fifth of a film for a picture of it.
    let args = format!("{} {}", pictures("160x96", (25, 1), 7.2), beeps((25, 1), 1.2));
    let taken = take(&film("quiet.mp4", &format!("{args} -c:v libx264 -bf 2 -c:a aac")));
    taken.shows_the_film().warns("the sound ends 5.9");
    let heard = crate::watched::beeps(&crate::watched::heard(&taken.base()));
    assert!(heard.len() == 1 && (heard[0] - 0.4).abs() < 0.02, "{heard:?}");
    let args = format!("{} {}", pictures("160x96", (25, 1), 0.04), beeps((25, 1), 3.2));
    let taken =
        take(&film("slide.mp4", &format!("{args} -c:v libx264 -c:a aac -shortest -max_interleave_delta 0")));
    assert_eq!(taken.report.pictures, 1);
}

#[test]
fn channels_in_an_unusual_layout_are_heard() {
    let layout = "pan=2.1|c0=c0|c1=c0|c2=0*c0";
    for (name, coding) in [("lfe.mp4", "aac"), ("lfe.mov", "pcm_s16le")] {
        let args = format!("{} -af {layout} -c:v libx264 -bf 2 -c:a {coding}", flashes(2.2));
        let taken = take(&film(name, &args));
        taken.shows_the_film().is_in_step(2);
        assert!([3, 6].contains(&taken.title.manifest().audio.as_ref().unwrap().channels), "{name}");
    }
    let layout = "pan=7.1|c0=c0|c1=c0|c2=c0|c3=0*c0|c4=c0|c5=c0|c6=c0|c7=c0";
    let args = format!("{} -af {layout} -c:v libx264 -bf 2 -c:a flac", flashes(2.2));
    take(&film("eight.mkv", &args)).shows_the_film().is_in_step(2);
}

#[test]
fn speech_at_8_khz_and_masters_at_96() {
    for (name, rate, coding) in
        [("speech.mp4", 8_000, "aac"), ("master.mp4", 96_000, "aac"), ("law.mov", 8_000, "pcm_mulaw")]
    {
        let args = format!("{} {}", pictures("160x96", (25, 1), 2.2), tone(2.2, rate));
        let taken = take(&film(name, &format!("{args} -c:v libx264 -bf 2 -c:a {coding}")));
        taken.shows_the_film().is_unremarkable();
        assert_eq!(taken.title.manifest().audio.as_ref().unwrap().sample_rate, rate, "{name}");
    }
}

#[test]
fn mirrored_in_every_way() {
    let flat = film("flat.mp4", &format!("{} -c:v libx264 -c:a aac", flashes(1.2)));
    let folder = tempfile::tempdir().unwrap();
    // The matrices of ISO/IEC 14496-12, 6.2.2: a, b, c, d and where the corner goes.
    for (name, [a, b, c, d], (x, y), size) in [
        ("left.mp4", [-1, 0, 0, 1], (160, 0), (160, 96)),
        ("over.mp4", [1, 0, 0, -1], (0, 96), (160, 96)),
        ("diagonal.mp4", [0, 1, 1, 0], (0, 0), (96, 160)),
        ("other.mp4", [0, -1, -1, 0], (96, 160), (96, 160)),
    ] {
        let mut bytes = std::fs::read(&flat).unwrap();
        let tkhd = bytes.windows(4).position(|kind| kind == b"tkhd").unwrap() + 4;
        for (n, value) in [(0, a), (1, b), (3, c), (4, d), (6, x), (7, y)] {
            let at = tkhd + 40 + n * 4;
            bytes[at..at + 4].copy_from_slice(&(value * 65_536_i32).to_be_bytes());
        }
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let taken = take(&path);
        taken.shows_the_film().is_in_step(1).is_unremarkable();
        assert_eq!((taken.report.width, taken.report.height), size, "{name}");
    }
}

#[test]
fn clocks_that_start_late_run_over_or_begin_again() {
    let coding = "-c:v libx264 -bf 2 -c:a aac";
    // 33 bits of 90 kHz are over after 95443.7 s.
    for (name, start) in [("late.ts", 50_000.0), ("over.ts", 95_441.7), ("late.mkv", 95_443.0)] {
        let args = format!("{} {coding} -output_ts_offset {start}", flashes(2.2));
        let taken = take(&film(name, &args));
        taken.is_in_step(2).is_unremarkable();
        assert_eq!(taken.report.pictures, 55, "{name}");
    }
    // Two recordings in one file; the second one's clock begins anew, or jumps.
    let part =
        |name: &str, start: u32| film(name, &format!("{} {coding} -output_ts_offset {start}", flashes(2.0)));
    let folder = tempfile::tempdir().unwrap();
    for second in [part("again.ts", 0), part("jumps.ts", 500)] {
        let bytes = [std::fs::read(part("again.ts", 0)).unwrap(), std::fs::read(second).unwrap()].concat();
        let path = folder.path().join("both.ts");
        std::fs::write(&path, bytes).unwrap();
        let taken = take(&path);
        taken.is_in_step(4);
        assert_eq!(taken.report.pictures, 100);
    }
}

#[test]
fn windows_flash_and_old_cameras() {
    for (name, coding) in [
        ("old.wmv", "-c:v wmv2 -q:v 3 -c:a wmav2"),
        ("old.asf", "-c:v msmpeg4v3 -q:v 3 -c:a wmav2"),
        ("old.flv", "-c:v flv1 -q:v 3 -c:a libmp3lame -ar 44100"),
        ("old.mpg", "-c:v mpeg1video -q:v 3 -c:a mp2"),
        ("vbr.avi", "-c:v mjpeg -q:v 3 -pix_fmt yuvj420p -c:a libmp3lame -q:a 4"),
        ("cut.mov", "-c:v prores_ks -pix_fmt yuv422p10le -c:a pcm_s24le -timecode 00:00:10:00"),
    ] {
        take(&film(name, &format!("{} {coding}", flashes(2.2)))).shows_the_film().is_in_step(2);
    }
}

#[test]
fn rates_of_film_television_and_games() {
    for (name, rate) in
        [("film.mkv", (24_000, 1_001)), ("fields.ts", (60_000, 1_001)), ("game.mp4", (120, 1))]
    {
        let args = format!("{} {}", pictures("160x96", rate, 2.2), beeps(rate, 2.2));
        let taken = take(&film(name, &format!("{args} -c:v libx264 -bf 2 -c:a aac")));
        taken.shows_the_film().is_in_step(2).is_unremarkable();
        let told = taken.title.manifest().frame_rate;
        assert_eq!((told.num, told.den), rate, "{name}");
    }
}

#[test]
fn two_pixels_and_a_strip_of_four_thousand() {
    for (name, size) in [("two.mp4", (2, 2)), ("strip.mp4", (4_096, 16))] {
        let scaled = format!("{} -vf scale={}:{}", pictures("160x96", (25, 1), 0.4), size.0, size.1);
        let taken = take(&film(name, &format!("{scaled} -c:v libx264")));
        assert_eq!((taken.report.width, taken.report.height, taken.report.pictures), (size.0, size.1, 10));
        assert_eq!(Seen::of(&taken.base()).count(), 10);
    }
}

#[test]
fn oblong_pixels_chapters_and_words_in_other_formats() {
    let oblong = film("oblong.mp4", &format!("{} -vf setsar=4/3 -c:v libx264 -c:a aac", flashes(1.2)));
    let taken = take(&oblong);
    taken.shows_the_film().is_unremarkable();
    let told = taken.title.manifest().pixel_aspect;
    assert_eq!((told.num, told.den), (4, 3));
    let text = written("talk.srt", "1\n00:00:00,500 --> 00:00:01,000\nSomebody speaks.\n\n");
    for (name, coding) in [
        ("talk.mkv", "-c:v libx264 -bf 2 -c:a aac -c:s ass"),
        ("talk.webm", "-c:v libvpx -b:v 500k -c:a libopus -c:s webvtt"),
    ] {
        let maps = "-map 0 -map 1 -map 2";
        let args = format!("{} -i {} {maps} {coding}", flashes(1.2), text.display());
        take(&film(name, &args)).shows_the_film().is_in_step(1).warns("subtitles are not carried");
    }
}

#[test]
fn a_hole_that_the_reader_passes_over_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let args = format!("{} -c:v libx264 -bf 2 -g 12 -c:a aac", flashes(4.2));
    for name in ["whole.mkv", "whole.ts"] {
        let mut bytes = std::fs::read(film(name, &args)).unwrap();
        let (from, to) = (bytes.len() * 45 / 100, bytes.len() * 55 / 100);
        bytes[from..to].fill(0);
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        take(&path).warns("the sound is interrupted for");
    }
}

#[test]
fn a_film_without_its_last_tenth() {
    let folder = tempfile::tempdir().unwrap();
    let args = format!("{} -c:v libx264 -bf 2 -g 12 -c:a aac", flashes(4.2));
    for name in ["whole.mkv", "whole.ts"] {
        let bytes = std::fs::read(film(name, &args)).unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, &bytes[..bytes.len() * 9 / 10]).unwrap();
        let kept = take_with(&path, |options| options.keep_going = true).unwrap();
        assert!((80..105).contains(&kept.report.pictures), "{name}: {}", kept.report.pictures);
    }
}
