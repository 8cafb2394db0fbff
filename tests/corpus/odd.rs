//! What one does not think of: fields, single pixels, dense pictures, strange
//! colours, names and things that are no files.

use crate::films::{beeps, film, flashes, pictures, refused, take, take_with};
use crate::watched::Seen;
use std::process::Command;

#[test]
fn fields_are_coded_as_they_are_and_that_is_said() {
    let source = format!("{},interlace {}", pictures("160x96", (50, 1), 3.2), beeps((50, 1), 3.2));
    for (name, coding) in [("fields.mp4", "libx264"), ("fields.ts", "mpeg2video -q:v 3")] {
        let args = format!("{source} -c:v {coding} -flags +ildct+ilme -c:a aac");
        let taken = take(&film(name, &args));
        taken.warns("interlaced");
        assert_eq!(taken.report.pictures, 80);
    }
}

#[test]
fn one_pixel_and_fifteen() {
    for (size, want) in [("1:1", (1, 1)), ("3:5", (3, 5))] {
        let args = format!("{},scale={size} -c:v ffv1 -pix_fmt yuv420p", pictures("160x96", (25, 1), 1.0));
        let taken = take(&film(&format!("{}.mkv", size.replace(':', "by")), &args));
        assert_eq!((taken.report.width, taken.report.height, taken.report.pictures), (want.0, want.1, 25));
    }
}

#[test]
fn a_hundred_pictures_a_second_and_a_thousand() {
    let source = format!("{} {}", pictures("160x96", (100, 1), 2.2), beeps((100, 1), 2.2));
    take(&film("hundred.mp4", &format!("{source} -c:v libx264 -bf 2 -c:a aac")))
        .shows_the_film()
        .is_in_step(2);
    // Matroska counts milliseconds and does not tell this rate.
    let thousand = film("thousand.mkv", &format!("{} -c:v libx264", pictures("64x48", (1_000, 1), 0.5)));
    let taken = take(&thousand);
    let times = Seen::of(&taken.base()).times();
    assert_eq!((taken.report.pictures, times.len()), (500, 500));
    assert!((times[499] - 0.499).abs() < 0.002, "{}", times[499]);
}

#[test]
fn sound_that_goes_on_for_long_is_left_out_and_that_is_said() {
    let source = format!("{} {}", pictures("160x96", (25, 1), 3.2), beeps((25, 1), 13.2));
    for (name, coding) in [("longer.mp4", "aac"), ("longer.mkv", "libopus")] {
        let taken = take(&film(name, &format!("{source} -c:v libx264 -bf 2 -c:a {coding}")));
        taken.shows_the_film().is_in_step(3).warns("the sound goes on for 10");
    }
}

#[test]
fn alpha_grey_rgb_and_hdr() {
    let hdr = "libx265 -pix_fmt yuv420p10le -x265-params \
               log-level=error:hdr10=1:colorprim=bt2020:transfer=smpte2084:colormatrix=bt2020nc:max-cll=1000,400";
    for (name, coding, said) in [
        ("alpha.mov", "png -pix_fmt rgba", true),
        ("grey.mp4", "libx264 -pix_fmt gray", false),
        ("rgb.mp4", "libx264rgb -pix_fmt rgb24", true),
        ("gbr.mkv", "ffv1 -pix_fmt gbrp", true),
        ("hdr.mp4", hdr, true),
    ] {
        let taken = take(&film(name, &format!("{} -c:v {coding} -c:a aac", flashes(2.2))));
        taken.shows_the_film().is_in_step(2);
        if said {
            taken.warns("converted to 8-bit 4:2:0");
        }
    }
    // Perceptual quantisation is still said to be that.
    let taken = take(&film("hdr.mp4", &format!("{} -c:v {hdr} -c:a aac", flashes(2.2))));
    assert_eq!((taken.title.manifest().color.primaries, taken.title.manifest().color.transfer), (9, 16));
}

#[test]
fn names_with_spaces_quotes_signs_and_line_breaks() {
    let plain = film("plain.mp4", &format!("{} -c:v libx264 -bf 2 -c:a aac", flashes(2.2)));
    let folder = tempfile::tempdir().unwrap();
    for name in ["it's a \"film\" ü 漢 %20 #1?.mp4", "two\nlines.mp4", "-o.mp4"] {
        let path = folder.path().join(name);
        std::fs::copy(&plain, &path).unwrap();
        let taken = take_with(&path, |options| options.title = Some("named".parse().unwrap())).unwrap();
        assert_eq!((taken.report.pictures, taken.report.warnings.len()), (55, 0), "{name:?}");
    }
}

#[test]
fn what_is_no_file_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe.mkv");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // Nobody ever writes into it: to open it would be to wait for ever.
    assert!(refused(&pipe).ends_with("`lamina encode -` reads standard input"));
    assert!(refused(std::path::Path::new("/dev/null")).contains("a pipe or a device"));
    let inner = folder.path().join("folder");
    std::fs::create_dir(&inner).unwrap();
    assert!(refused(&inner).ends_with("is a directory"));
}
