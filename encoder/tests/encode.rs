//! Films go in, titles come out that every program can play and everybody can check.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::float_cmp,
    reason = "tests state exact values"
)]

mod common;

use common::{Place, aac_frames, encode, output, pictures, samples, tone, verify};
use encoder::{Metrics, inspect};
use media::container::parse_chunk;
use media::{Hash, Layer, Span};

#[test]
fn a_film_with_b_frames_and_sound_becomes_a_title_that_ffmpeg_plays_bit_for_bit() {
    let place = Place::new();
    let args = format!("{} {} -c:v libx264 -bf 3 -c:a aac", pictures("320x180", "25", 2.4), tone(2.4));
    let film = place.film("film.mp4", &args);
    let mut options = place.options(&film);
    options.metrics = Metrics::Full;
    let (report, title) = encode(&options).unwrap();

    assert_eq!((report.blocks, report.pictures, report.seconds), (3, 60, 2.4));
    assert!(report.warnings.is_empty(), "{:?}", report.warnings);
    let frames: Vec<u32> = title.manifest().blocks.iter().map(|block| block.frames).collect();
    assert_eq!(frames, [25, 25, 10]);
    let found = verify(&title);
    assert!(found.is_clean(), "{:?}", found.faults);
    assert_eq!((found.blocks, found.chunks, found.pictures), (3, 9, 180));

    // Better layer by layer, and the rates add up.
    let psnr: Vec<f64> = report.qualities.iter().map(|quality| quality.psnr_y).collect();
    assert!(psnr.windows(2).all(|pair| pair[1] > pair[0] + 0.5), "{psnr:?}");
    assert_eq!(report.measured_pictures, 60);
    let sum: f64 = report.layers.iter().map(|layer| layer.share).sum();
    assert!((sum - 1.0).abs() < 1e-9);

    let base = title.path().join("base.mp4");
    let decoded = output("ffmpeg", &["-v", "error", "-i", "FILE", "-f", "rawvideo", "-"], &base);
    let picture = 160 * 90 * 3 / 2;
    assert_eq!(decoded.len(), 60 * picture);
    let mut rest = &decoded[..];
    for block in &title.manifest().blocks {
        let (these, after) = rest.split_at(picture * usize::try_from(block.frames).unwrap());
        assert_eq!(Hash::of(these), block.base_hash);
        rest = after;
    }

    let entries = "stream=codec_name,start_time,width,height:format=duration";
    let args = ["-v", "error", "-show_entries", entries, "-of", "compact=nk=1:p=0", "FILE"];
    let text = String::from_utf8(output("ffprobe", &args, &base)).unwrap();
    assert!(text.contains("h264|160|90|0.000000"), "{text}");
    assert!(text.contains("aac|0.000000"), "{text}");
}

#[test]
fn sound_in_aac_passes_through_untouched() {
    let place = Place::new();
    let args = format!("{} {} -c:v libx264 -c:a aac", pictures("160x120", "25", 2.2), tone(2.2));
    let film = place.film("film.mp4", &args);
    let (_, title) = encode(&place.options(&film)).unwrap();
    let before = aac_frames(&film);
    let after = aac_frames(&title.path().join("base.mp4"));
    // The encoder's priming lies before the first picture and is cut.
    assert_eq!(before[0].0, -1_024);
    let checksums = |frames: &[(i64, String)]| frames.iter().map(|frame| frame.1.clone()).collect::<Vec<_>>();
    let passed = checksums(&before[1..]);
    // qtdemux leaves out the last frame, which is not whole.
    assert!(after.len() + 1 >= passed.len() && passed.starts_with(&checksums(&after)));
    assert!(
        after.iter().zip(0..).all(|(frame, n)| frame.0 == n * 1_024),
        "frames follow each other, also across blocks"
    );
    for (index, block) in (0..).zip(&title.manifest().blocks) {
        let delay = title.manifest().layers[0].delay;
        let samples = parse_chunk(&title.read_chunk(index, Layer::BASE).unwrap(), delay).unwrap();
        let (start, end) = (block.start * 48_000 / 12_000, (block.start + block.duration) * 48_000 / 12_000);
        assert!(samples.audio.iter().all(|frame| (start..end).contains(&frame.pts)));
    }
}

#[test]
fn sound_that_is_made_stays_with_its_pictures() {
    let place = Place::new();
    // Silence with a click at exactly one second, in PCM.
    let click = "aevalsrc=if(eq(n\\,48000)\\,1\\,0):s=48000:d=2";
    let args = format!("{} -f lavfi -i {click} -c:v libx264 -c:a pcm_s16le", pictures("160x120", "25", 2.0));
    let film = place.film("film.mkv", &args);
    let (report, title) = encode(&place.options(&film)).unwrap();
    assert!(report.audio_kbit_s > 0.0);
    let base = title.path().join("base.mp4");
    let start = aac_frames(&base)[0].0;
    let samples = samples(&base);
    let loudest = samples.iter().enumerate().max_by_key(|(_, sample)| sample.unsigned_abs()).unwrap().0;
    let at = i64::try_from(loudest).unwrap() + start;
    assert!((at - 48_000).abs() < 960, "the click is at sample {at}, more than 20 ms away");
}

#[test]
fn the_number_of_jobs_changes_nothing() {
    let place = Place::new();
    let args = format!("{} {} -c:v libx264 -c:a aac", pictures("192x108", "30", 3.2), tone(3.2));
    let film = place.film("film.mp4", &args);
    for halves in [false, true] {
        let mut files = Vec::new();
        for jobs in [1, 2, 5] {
            let mut options = place.options(&film);
            options.jobs = Some(jobs);
            options.halves = halves;
            options.metrics = Metrics::Full;
            options.replace = true;
            let (report, title) = encode(&options).unwrap();
            let measured: Vec<_> = report.qualities.iter().map(|step| (step.psnr_y, step.ssim_y)).collect();
            let read = |name: &str| std::fs::read(title.path().join(name)).unwrap();
            files.push((["title.json", "base.mp4", "enh1.mp4", "enh2.mp4"].map(read), measured));
        }
        assert!(files[0] == files[1] && files[1] == files[2], "halves: {halves}");
    }
}

#[test]
fn an_odd_mpeg_4_part_2_film_at_a_television_rate() {
    let place = Place::new();
    let source = "-f lavfi -i testsrc=s=321x241:r=30000/1001:d=2";
    let args = format!("{source} {} -pix_fmt yuv420p -c:v mpeg4 -c:a aac", tone(2.0));
    let film = place.film("odd.mp4", &args);
    let (report, title) = encode(&place.options(&film)).unwrap();
    assert_eq!((report.width, report.height), (321, 241));
    let manifest = title.manifest();
    assert_eq!(
        (manifest.timescale, manifest.blocks[0].duration, manifest.blocks[0].frames),
        (30_000, 30_030, 30)
    );
    assert_eq!((manifest.layers[0].width, manifest.layers[1].height), (162, 242));
    assert!(verify(&title).is_clean());
}

#[test]
fn other_ladders_are_data() {
    let place = Place::new();
    let film = place.film("film.mp4", &format!("{} -c:v libx264", pictures("320x180", "25", 1.0)));
    for factors in [vec![4, 2, 1], vec![1], vec![2, 1], vec![4, 4, 2, 1]] {
        let mut options = place.options(&film);
        options.factors.clone_from(&factors);
        options.title = Some(format!("film {}", factors.len()).parse().unwrap());
        options.replace = true;
        let (report, title) = encode(&options).unwrap();
        assert_eq!(report.layers.len(), factors.len());
        let found = verify(&title);
        assert!(found.is_clean(), "{factors:?}: {:?}", found.faults);
        assert_eq!(found.qualities.len(), factors.len());
    }
}

#[test]
fn a_silent_film_upside_down_in_ten_bits_is_understood() {
    let place = Place::new();
    let flat = place
        .film("flat.mp4", &format!("{} -c:v libx264 -pix_fmt yuv420p10le", pictures("160x96", "25", 1.0)));
    let film = place.film("film.mp4", &format!("-i {} -c copy -metadata:s:v rotate=90", flat.display()));
    let (report, title) = encode(&place.options(&film)).unwrap();
    assert_eq!((report.width, report.height), (96, 160), "the rotation was applied");
    assert_eq!(report.warnings, ["the pictures are I420_10LE and were converted to 8-bit 4:2:0"]);
    assert_eq!(inspect(&title).audio, None);
    assert!(verify(&title).is_clean());
}

#[test]
fn colours_and_the_shape_of_pixels_are_carried() {
    let place = Place::new();
    let colours = "-color_range pc -colorspace smpte170m -color_primaries smpte170m -color_trc smpte170m";
    let args =
        format!("{} -vf setsar=4/3,format=yuvj420p -c:v libx264 {colours}", pictures("160x96", "25", 0.6));
    // Raw, since qtdemux forgets the range.
    let film = place.film("film.264", &args);
    let (_, title) = encode(&place.options(&film)).unwrap();
    let manifest = title.manifest();
    assert_eq!((manifest.pixel_aspect.num, manifest.pixel_aspect.den), (4, 3));
    assert_eq!((manifest.color.full_range, manifest.color.primaries, manifest.color.matrix), (true, 6, 6));
    let entries = "stream=color_range,color_space,sample_aspect_ratio";
    let args = ["-v", "error", "-show_entries", entries, "-of", "compact=nk=1:p=0", "FILE"];
    let text = String::from_utf8(output("ffprobe", &args, &title.path().join("base.mp4"))).unwrap();
    assert_eq!(text.trim(), "4:3|pc|smpte170m");
}

#[test]
fn a_variable_rate_keeps_its_times() {
    let place = Place::new();
    let select = "select='if(lt(t,1),1,not(mod(n,6)))'";
    let args = format!("{} -vf {select} -vsync vfr -c:v libx264 -bf 3", pictures("160x96", "60", 3.0));
    let film = place.film("film.mp4", &args);
    let (report, title) = encode(&place.options(&film)).unwrap();
    assert_eq!(report.pictures, 80);
    let manifest = title.manifest();
    let mut times = Vec::new();
    for index in 0..manifest.block_count() {
        let chunk = title.read_chunk(index, Layer::ENH2).unwrap();
        times.extend(
            parse_chunk(&chunk, 0).unwrap().video.iter().map(|sample| manifest.at(sample.pts).as_millis()),
        );
    }
    let want = (0..60).map(|n| n * 1_000 / 60).chain((0..20).map(|n| 1_000 + n * 100));
    assert!(times.iter().zip(want).all(|(&got, want)| got.abs_diff(want) <= 1), "{times:?}");
    assert!(verify(&title).is_clean());
    // The raw muxer has but one rate, and would complain about two pictures in one of its ticks.
    let args = ["-v", "fatal", "-i", "FILE", "-vsync", "passthrough", "-f", "rawvideo", "-"];
    assert_eq!(output("ffmpeg", &args, &title.path().join("base.mp4")).len(), 80 * 80 * 48 * 3 / 2);
}

#[test]
fn a_part_of_a_film_starts_at_nothing() {
    let place = Place::new();
    let args = format!("{} {} -c:v libx264 -c:a aac", pictures("160x96", "25", 4.0), tone(4.0));
    let film = place.film("film.mp4", &args);
    let mut options = place.options(&film);
    options.from = Some(Span::from_millis(1_000));
    options.to = Some(Span::from_millis(2_480));
    options.block = Span::from_millis(500);
    let (report, title) = encode(&options).unwrap();
    assert_eq!((report.pictures, report.blocks), (37, 3));
    assert_eq!(title.manifest().blocks[0].start, 0);
    assert_eq!(title.manifest().span(), Span::from_millis(1_480));
    let sound = aac_frames(&title.path().join("base.mp4"));
    let whole = aac_frames(&film);
    assert!(sound[0].0 < 1_024);
    assert!(whole.iter().any(|frame| frame.1 == sound[0].1 && (frame.0 - 48_000 - sound[0].0).abs() <= 1));
    assert!(verify(&title).is_clean());
}
