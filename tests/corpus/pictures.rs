//! Pictures in every order, shape, depth and coding.

use crate::films::{Taken, beeps, film, flashes, pictures, take};

fn whole(taken: &Taken, flashes: usize) {
    taken.shows_the_film().is_in_step(flashes).is_unremarkable();
}

#[test]
fn b_frames_with_a_negative_first_decoding_time() {
    whole(&take(&film("b.mp4", &format!("{} -c:v libx264 -bf 3 -c:a aac", flashes(3.2)))), 3);
}

#[test]
fn four_b_frames_in_a_pyramid() {
    let coding = "-c:v libx264 -bf 4 -x264-params b-adapt=0:b-pyramid=normal:ref=4 -c:a aac";
    whole(&take(&film("b4.mp4", &format!("{} {coding}", flashes(3.2)))), 3);
}

#[test]
fn an_open_group_of_pictures() {
    let coding = "-c:v libx264 -bf 3 -g 12 -keyint_min 12 -x264-params open-gop=1:scenecut=0 -c:a aac";
    whole(&take(&film("open.mp4", &format!("{} {coding}", flashes(3.2)))), 3);
}

#[test]
fn groups_of_eight_seconds_at_film_and_television_rates() {
    for (name, rate) in [("film.mp4", (24_000, 1_001)), ("pal.mp4", (25, 1)), ("ntsc.mp4", (30_000, 1_001))] {
        let source = format!("{} {}", pictures("160x96", rate, 4.2), beeps(rate, 4.2));
        let taken = take(&film(
            name,
            &format!("{source} -c:v libx264 -g 250 -keyint_min 250 -sc_threshold 0 -c:a aac"),
        ));
        whole(&taken, 4);
        let manifest = taken.title.manifest();
        assert_eq!((manifest.frame_rate.num, manifest.frame_rate.den), rate);
        assert!(
            manifest
                .blocks
                .iter()
                .rev()
                .skip(1)
                .all(|block| block.frames == (f64::from(rate.0) / f64::from(rate.1)).round() as u32)
        );
    }
}

#[test]
fn rotated_by_90_180_and_270_degrees() {
    let flat = film("flat.mp4", &format!("{} -c:v libx264 -c:a aac", flashes(2.2)));
    for (turn, size) in [(90, (96, 160)), (180, (160, 96)), (270, (96, 160))] {
        let args = format!("-i {} -c copy -metadata:s:v rotate={turn}", flat.display());
        let taken = take(&film(&format!("turned{turn}.mp4"), &args));
        assert_eq!((taken.report.width, taken.report.height), size);
        whole(&taken, 2);
    }
}

#[test]
fn parameter_sets_that_change_in_band() {
    let part =
        |name: &str, coding: &str| film(name, &format!("{} -c:v libx264 {coding} -c:a aac", flashes(2.0)));
    let (one, two) =
        (part("cabac.ts", "-bf 2"), part("cavlc.ts", "-bf 2 -coder 0 -x264-params weightp=0:8x8dct=0"));
    let list =
        crate::films::written("list.txt", &format!("file '{}'\nfile '{}'\n", one.display(), two.display()));
    let taken = take(&film("both.ts", &format!("-f concat -safe 0 -i {} -c copy", list.display())));
    taken.shows_the_film().is_in_step(4);
}

#[test]
fn ten_bits_are_converted_and_that_is_said() {
    let taken =
        take(&film("ten.mp4", &format!("{} -c:v libx264 -pix_fmt yuv420p10le -c:a aac", flashes(2.2))));
    taken.shows_the_film().is_in_step(2).warns("converted to 8-bit 4:2:0");
    assert_eq!(taken.report.warnings.len(), 1);
}

#[test]
fn more_colour_samples_are_converted_and_that_is_said() {
    for format in ["yuv422p", "yuv444p", "yuv422p10le"] {
        let name = format!("{format}.mp4");
        let taken = take(&film(&name, &format!("{} -c:v libx264 -pix_fmt {format} -c:a aac", flashes(2.2))));
        taken.shows_the_film().is_in_step(2).warns("converted to 8-bit 4:2:0");
    }
}

#[test]
fn odd_sizes_are_kept_exactly() {
    for (name, size, want) in [("odd.mkv", "321x241", (321, 241)), ("small.mkv", "97x63", (97, 63))] {
        let scaled = format!("{},scale={}", pictures("160x96", (25, 1), 2.2), size.replace('x', ":"));
        let source = format!("{scaled} {}", beeps((25, 1), 2.2));
        let taken = take(&film(name, &format!("{source} -pix_fmt yuv420p -c:v mpeg4 -q:v 2 -c:a aac")));
        assert_eq!((taken.report.width, taken.report.height), want);
        whole(&taken, 2);
    }
}

#[test]
fn hevc() {
    let taken = take(&film(
        "hevc.mp4",
        &format!("{} -c:v libx265 -x265-params log-level=error -c:a aac", flashes(2.2)),
    ));
    whole(&taken, 2);
}

#[test]
fn vp9_and_opus_in_webm() {
    let coding = "-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -crf 30 -b:v 0 -c:a libopus";
    whole(&take(&film("vp9.webm", &format!("{} -pix_fmt yuv420p {coding}", flashes(2.2)))), 2);
}

#[test]
fn av1() {
    let coding = "-c:v libaom-av1 -cpu-used 8 -usage realtime -crf 30 -b:v 0 -c:a aac";
    whole(&take(&film("av1.mp4", &format!("{} -pix_fmt yuv420p {coding}", flashes(2.2)))), 2);
}

#[test]
fn mpeg_4_part_2_with_b_frames() {
    whole(&take(&film("part2.mp4", &format!("{} -c:v mpeg4 -bf 2 -q:v 3 -c:a aac", flashes(2.2)))), 2);
}

#[test]
fn mpeg_2_in_a_transport_stream() {
    let taken = take(&film("two.ts", &format!("{} -c:v mpeg2video -bf 2 -q:v 3 -c:a mp2", flashes(3.2))));
    taken.shows_the_film().is_in_step(3);
}
