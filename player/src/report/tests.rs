//! A viewing of forty seconds, told in every form.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]

use super::*;
use crate::pipeline::{Freeze, MeterReport};
use media::{Layer, Quality, Span};
use std::time::{Duration, Instant};

fn ms(millis: u64) -> Span {
    Span::from_millis(millis)
}

/// Gold, silver from 14 s to 22 s, a failover at 30 s, one freeze at 35 s.
pub(super) fn viewing() -> PlayReport {
    let pressed = Instant::now();
    let first = pressed + Duration::from_millis(412);
    let at = |millis| first + Duration::from_millis(millis);
    let mut recorder = Recorder::new(pressed, "bunny & friends".to_owned(), Quality::GOLD, ms(4_000));
    assert_eq!(recorder.at_ms(pressed), 0);
    assert_eq!(recorder.first_picture(first), 412);
    recorder.will_change(14, "failure".to_owned());
    recorder.will_change(22, "recovered".to_owned());
    for tenth in 0..400_u32 {
        let now = u64::from(tenth) * 100;
        let quality = if (140..220).contains(&tenth) { Quality::SILVER } else { Quality::GOLD };
        let change = recorder.picture(at(now), tenth / 10, quality, ms(now));
        assert_eq!(change.is_some(), tenth == 140 || tenth == 220, "{tenth}");
        recorder.sample(at(now), ms(now), ms(3_900 - now % 1_000));
    }
    recorder.fetched(Layer::BASE, 1_000);
    recorder.fetched(Layer::BASE, 500);
    recorder.base_first();
    recorder.failover(
        at(30_000),
        Failover {
            at_ms: 0,
            node: "base-1".to_owned(),
            layer: "base".to_owned(),
            to: "base-2".to_owned(),
            detected_ms: 405,
            recovered_ms: 440,
            reasked: 1,
            buffer_ms: 3_100,
            cause: "silence".to_owned(),
        },
    );
    let measured = MeterReport {
        freeze_count: 1,
        freeze_total: ms(250),
        freeze_longest: ms(250),
        freezes: vec![Freeze { start: ms(35_000), length: ms(250), position: ms(35_000) }],
        frames_shown: 1_199,
        frames_expected: 1_200,
        frames_dropped: 1,
        at_quality: vec![ms(0), ms(8_000), ms(32_000)],
        blocks_checked: 40,
        mismatches: vec![(35, Quality::GOLD)],
        ended: true,
        ..MeterReport::default()
    };
    let mut report = recorder.finish(at(40_000), "ended".to_owned(), Some(measured), Vec::new());
    report.kills.push(Kill { at_ms: 13_600, node: "enh2-2".to_owned(), buffer_s: 3.4 });
    report.kills.push(Kill { at_ms: 30_000, node: "base-1".to_owned(), buffer_s: 3.9 });
    report
}

#[test]
fn what_the_sink_saw_and_what_the_machine_meant_meet_in_the_report() {
    let report = viewing();
    assert_eq!((report.startup_ms, report.watched_ms), (Some(412), 40_000));
    let changes: Vec<_> = report.transitions.iter().map(|t| (t.at_ms, &*t.from, &*t.to, &*t.cause)).collect();
    assert_eq!(changes, [(14_000, "gold", "silver", "failure"), (22_000, "silver", "gold", "recovered")]);
    assert_eq!(report.freezes.list, [FreezeReport { at_ms: 35_000, length_ms: 250, position_ms: 35_000 }]);
    assert_eq!(report.seconds_at_quality["silver"].to_bits(), 8.0_f64.to_bits());
    assert_eq!(report.bytes_by_layer["base"], 1_500);
    assert_eq!(report.failovers[0].at_ms, 30_000);
    assert_eq!(report.hash_mismatches, [Mismatch { block: 35, quality: "gold".to_owned() }]);
    assert_eq!(report.samples.len(), 400);
    assert_eq!(report.buffer_ms_at(13_650), Some(3_300));
    assert_eq!(report.buffer_ms_at(0), Some(3_900));
}

#[test]
fn blocks_left_out_or_fed_again_are_counted_between_seeks() {
    let mut recorder = Recorder::new(Instant::now(), "t".to_owned(), Quality::GOLD, ms(4_000));
    for (serial, block) in [(0, 0), (0, 1), (0, 4), (0, 4), (0, 5), (1, 2), (1, 3)] {
        recorder.fed(serial, block, false);
    }
    recorder.fed(1, 9, true);
    recorder.fed(1, 10, false);
    let report = recorder.finish(Instant::now(), "ended".to_owned(), None, Vec::new());
    assert_eq!(report.sequence, Sequence { missing: 2, repeated: 1 });
}

#[test]
fn a_change_that_nobody_meant_is_the_decoders_and_a_jump_is_none() {
    let start = Instant::now();
    let mut recorder = Recorder::new(start, "t".to_owned(), Quality::GOLD, ms(4_000));
    recorder.first_picture(start);
    assert!(recorder.picture(start, 0, Quality::GOLD, ms(0)).is_none());
    let change = recorder.picture(start, 0, Quality::SILVER, ms(40)).unwrap();
    assert_eq!(change.cause, "decoder");
    recorder.jumped();
    assert!(recorder.picture(Instant::now(), 9, Quality::BRONZE, ms(9_000)).is_none());
    let later = Instant::now() + Duration::from_secs(1);
    assert!(recorder.picture(later, 9, Quality::BRONZE, ms(9_040)).is_none());
}

#[test]
fn files_appear_whole_and_are_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let report = viewing();
    report.write(&folder.path().join("a/b")).unwrap();
    assert_eq!(PlayReport::read(&folder.path().join("a/b/report.json")).unwrap(), report);
    let mut names: Vec<_> =
        std::fs::read_dir(folder.path().join("a/b")).unwrap().map(|f| f.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["buffer.csv", "chart.svg", "report.json", "timeline.csv"]);
    std::fs::write(folder.path().join("file"), b"").unwrap();
    assert!(report.write(&folder.path().join("file")).is_err());
}

#[test]
fn the_timeline_tells_everything_in_order() {
    let expected = "\
at_ms,what,which,how
13600,kill,enh2-2,buffer 3.40 s
14000,transition,gold to silver,\"failure, block 14\"
22000,transition,silver to gold,\"recovered, block 22\"
30000,failover,base from base-1 to base-2,\"detected 405 ms, recovered 440 ms, silence\"
30000,kill,base-1,buffer 3.90 s
35000,freeze,250 ms,
";
    assert_eq!(tables::timeline(&viewing()), expected);
    assert!(
        tables::buffer(&viewing()).starts_with("at_ms,position_ms,buffer_ms,quality\n0,0,3900,gold\n100,")
    );
}

#[test]
fn the_chart_shows_each_kill_and_change_where_it_was_and_is_sound_xml() {
    let svg = chart(&viewing());
    assert!(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\"") && svg.ends_with("</svg>\n"));
    assert!(svg.contains("bunny &amp; friends") && !svg.contains("bunny & friends"));
    for words in ["✕ enh2-2", "✕ base-1", ">failure<", ">recovered<", "start-up 412 ms", "39 of 40 blocks"]
    {
        assert!(svg.contains(words), "{words}");
    }
    // 14 s of 40 lie at 80 + 896 x 0.35.
    assert!(svg.contains("L393.6 113.0 L393.6 147.0 L572.8 147.0 L572.8 113.0"), "{svg}");
    let empty = chart(&PlayReport::default());
    assert!(empty.contains("no picture") && !empty.contains("NaN"));
    if let Some(folder) = std::env::var_os("LAMINA_CHART_DIR") {
        std::fs::write(Path::new(&folder).join("chart.svg"), svg).unwrap();
    }
}
