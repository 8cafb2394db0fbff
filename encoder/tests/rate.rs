//! Rates that are asked for, steps between the qualities, and scenes that end
//! inside a block.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::float_cmp,
    reason = "tests state exact values"
)]

mod common;

use common::{Place, encode, pictures, verify};
use encoder::{Aims, FaultKind, Input, Metrics};
use media::container::parse_chunk;
use media::manifest::{MANIFEST_VERSION, WHOLE_MANIFEST};
use media::{BitRate, Hash, Layer, Quality, Span};
use std::os::unix::fs::FileExt as _;

#[test]
fn a_title_in_halves_has_five_steps_that_rise_in_rate_and_quality() {
    let place = Place::new();
    let film = place.film("film.mp4", &format!("{} -c:v libx264 -qp 4", pictures("320x180", "25", 1.6)));
    let mut options = place.options(&film);
    options.metrics = Metrics::Full;
    options.halves = true;
    let (report, title) = encode(&options).unwrap();

    let names: Vec<&str> = report.qualities.iter().map(|step| step.quality.as_str()).collect();
    assert_eq!(names, ["bronze", "silver/a", "silver", "gold/a", "gold"]);
    for pair in report.qualities.windows(2) {
        assert!(pair[1].kbit_s > pair[0].kbit_s && pair[1].psnr_y > pair[0].psnr_y, "{pair:?}");
    }
    // With a half alone the worst picture is still one of the quality below.
    let worst: Vec<f64> = report.qualities.iter().map(|step| step.worst_psnr_y).collect();
    assert!(worst[1] < report.qualities[1].psnr_y - 0.1 && worst.is_sorted(), "{worst:?}");

    // And so in each block, all of which are measured.
    assert_eq!(report.by_block.iter().map(|block| block.block).collect::<Vec<_>>(), [0, 1]);
    for block in &report.by_block {
        assert_eq!(block.steps.iter().map(|step| step.step.as_str()).collect::<Vec<_>>(), names);
        assert!(block.rises(), "{block:?}");
    }
    let kbits: f64 = report.by_block.iter().map(|block| block.steps[4].kbit_s * block.seconds).sum();
    assert!((kbits / report.seconds - report.qualities[4].kbit_s).abs() < 0.01, "the same bytes");

    let manifest = title.manifest();
    assert_eq!(manifest.version, MANIFEST_VERSION);
    let found = verify(&title);
    assert!(found.is_clean(), "{:?}", found.faults);
    assert_eq!(found.pictures, 5 * 40, "each step of each picture");
    for (index, block) in (0..).zip(&manifest.blocks) {
        for (layer, half) in [Layer::ENH1, Layer::ENH2].into_iter().zip(&block.halves) {
            let chunk = title.read_chunk(index, layer).unwrap();
            let half_chunk = chunk.slice(..usize::try_from(half.length).unwrap());
            assert_eq!(Hash::of(&half_chunk), half.hash);
            let (whole, half) = (parse_chunk(&chunk, 0).unwrap(), parse_chunk(&half_chunk, 0).unwrap());
            let even: Vec<_> = whole.video.iter().step_by(2).map(|sample| &sample.data).collect();
            assert_eq!(half.video.iter().map(|sample| &sample.data).collect::<Vec<_>>(), even);
        }
    }

    // Damage behind the first half is no damage to it.
    let chunk = manifest.blocks[0].chunks[2];
    let file = std::fs::OpenOptions::new().write(true).open(title.path().join("enh2.mp4")).unwrap();
    file.write_all_at(b"x", chunk.end() - 1).unwrap();
    let faults = verify(&title).faults;
    assert!(
        matches!(&faults[..], [fault] if matches!(fault.kind, FaultKind::Chunk { layer: Layer::ENH2, .. }))
    );

    // Repeated, the halves are the same again.
    let other = Place::new();
    let mut options = other.options(&film);
    options.halves = true;
    options.repeat_to = Some(Span::from_secs(3));
    let (_, twice) = encode(&options).unwrap();
    assert!(verify(&twice).is_clean());
    let shown = |block: usize| {
        twice.manifest().blocks[block].halves.iter().map(|half| half.pictures).collect::<Vec<_>>()
    };
    assert_eq!((shown(0), shown(0).len()), (shown(2), 2));
}

#[test]
fn rates_and_qualities_are_met_on_the_whole_film() {
    let place = Place::new();
    let film = place.film("film.mp4", &format!("{} -c:v libx264 -qp 4", pictures("320x180", "25", 1.2)));
    let mut options = place.options(&film);
    options.metrics = Metrics::Full;
    options.aims.rates = [150, 300, 700].map(|kbit| Some(BitRate(kbit * 1_000))).to_vec();
    let (report, title) = encode(&options).unwrap();
    assert!(report.warnings.is_empty(), "{:?}", report.warnings);
    assert_eq!(title.manifest().version, WHOLE_MANIFEST);
    for (quality, wanted) in report.qualities.iter().zip([150.0, 300.0, 700.0]) {
        let off = quality.kbit_s / wanted;
        assert!((0.8..1.25).contains(&off), "{} has {} kbit/s", quality.quality, quality.kbit_s);
    }

    options.replace = true;
    options.aims = Aims { top_psnr: Some(38.0), split: true, ..Aims::default() };
    let (report, _) = encode(&options).unwrap();
    let psnr: Vec<f64> = report.qualities.iter().map(|quality| quality.psnr_y).collect();
    assert!((psnr[2] - 38.0).abs() < 0.5, "{psnr:?}");
    let silver = (psnr[1] - psnr[0]) / (psnr[2] - psnr[0]);
    assert!((0.4..0.6).contains(&silver), "silver at {silver}");

    // What cannot be is said, and what is read once cannot be sampled.
    options.aims = Aims { rates: vec![Some(BitRate(1_000))], ..Aims::default() };
    let (report, _) = encode(&options).unwrap();
    assert!(report.warnings[0].starts_with(&format!("{} will have about ", Quality::BRONZE)));
    options.input = Input::Pipe;
    options.title = Some("pipe".parse().unwrap());
    let refused = encode(&options).unwrap_err().to_string();
    assert_eq!(refused, "a film from standard input is read once: aims need a file");
}
