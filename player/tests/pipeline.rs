//! Whole titles through the whole pipeline, in real time, bit for bit.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    unreachable_pub,
    missing_docs,
    reason = "tests state exact values on small numbers"
)]

mod support;

use media::Span;
use player::pipeline::{PipelineEvent, SinkKind};
use std::time::Duration;
use support::title::{Recipe, Title};
use support::{GOLD, KEYS, TITLE, Viewer};

#[tokio::test(flavor = "multi_thread")]
async fn a_title_plays_in_gold_bit_for_bit_to_its_end() {
    let mut viewer = Viewer::new(&TITLE, GOLD);
    viewer.pipeline.play();
    viewer.play_out().await;
    let checked: Vec<_> = (0..10).map(|block| (block, 3, true)).collect();
    assert_eq!(viewer.checked(), checked);
    let numbers: Vec<u64> = viewer.pictures().iter().map(|picture| picture.0).collect();
    assert_eq!(numbers, (0..100).collect::<Vec<u64>>());
    let report = viewer.stop();
    assert_eq!((report.frames_shown, report.frames_expected, report.frames_dropped), (100, 100, 0));
    assert_eq!(report.at_quality, [Span::ZERO, Span::ZERO, Span::from_secs(4)]);
    assert_eq!((report.blocks_checked, report.blocks_unchecked), (10, 0));
    assert_eq!(report.mismatches, []);
    assert_eq!(report.freezes, []);
    assert!(report.ended);
    let sound = report.sound.as_millis();
    assert!((3_950..=4_050).contains(&sound), "{sound} ms of sound");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_layer_absent_for_three_blocks_gives_exactly_silver_and_then_gold() {
    let mut viewer = Viewer::new(&TITLE, |block| if (5..=7).contains(&block) { 2 } else { 3 });
    viewer.pipeline.play();
    viewer.play_out().await;
    let quality = |block| if (5..=7).contains(&block) { 2 } else { 3 };
    let checked: Vec<_> = (0..10).map(|block| (block, quality(block), true)).collect();
    assert_eq!(viewer.checked(), checked);
    let report = viewer.stop();
    assert_eq!(report.at_quality, [Span::ZERO, Span::from_millis(1_200), Span::from_millis(2_800)]);
    assert_eq!((report.frames_dropped, report.freeze_count), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_by_half_of_the_topmost_layer_is_exact_and_one_step_on_screen() {
    let recipe =
        Recipe { size: (160, 96), factors: &[2, 1, 1], blocks: 6, frames: 10, sound: 0..0, halves: true };
    let title = Title::make(&recipe);
    // Gold, gold by half, silver by half, and gold again.
    let quality = |block| if block == 4 { 2 } else { 3 };
    let mut viewer = Viewer::new(&title, quality);
    viewer.half = |block| (2..=4).contains(&block);
    viewer.pipeline.play();
    viewer.play_out().await;
    let checked: Vec<_> = (0..6).map(|block| (block, quality(block), true)).collect();
    assert_eq!(viewer.checked(), checked);
    let report = viewer.stop();
    assert_eq!(report.at_quality, [Span::ZERO, Span::from_millis(400), Span::from_millis(2_000)]);
    assert_eq!(report.in_halves, Span::from_millis(1_200));
    assert_eq!((report.blocks_unchecked, report.frames_dropped, report.mismatches), (0, 0, Vec::new()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ladder_of_three_sizes_without_sound_is_as_exact() {
    let recipe =
        Recipe { size: (161, 97), factors: &[4, 2, 1], blocks: 3, frames: 8, sound: 0..0, halves: false };
    let title = Title::make(&recipe);
    for quality in 1..=3 {
        let pick: [fn(u32) -> u8; 3] = [|_| 1, |_| 2, |_| 3];
        let mut viewer = Viewer::new(&title, pick[quality - 1]);
        viewer.pipeline.play();
        viewer.play_out().await;
        let checked: Vec<_> = (0..3).map(|block| (block, quality as u8, true)).collect();
        assert_eq!(viewer.checked(), checked);
        drop(viewer.stop());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_light_player_measures_the_same_story_without_a_decoder() {
    let mut viewer = Viewer::with(&TITLE, |block| if block < 5 { 3 } else { 1 }, SinkKind::Light);
    // Blocks from the sixth on come late.
    viewer.until = 5;
    viewer.pipeline.play();
    viewer.shown(25).await;
    viewer.pipeline.pause();
    viewer.until(|event| *event == PipelineEvent::Paused).await;
    viewer.during(Duration::from_millis(400)).await;
    viewer.pipeline.play();
    viewer.until(|event| matches!(event, PipelineEvent::Shown { block: 4, .. })).await;
    // Nine more pictures of this block are shown, and then nothing.
    viewer.during(Duration::from_secs(1)).await;
    viewer.release();
    viewer.play_out().await;
    let pictures = viewer.pictures();
    assert_eq!(
        pictures.iter().map(|picture| picture.0).collect::<Vec<u64>>(),
        (0..100).collect::<Vec<u64>>()
    );
    // The film runs on from the late picture at its own pace.
    let ran = pictures[99].2.duration_since(pictures[50].2);
    assert!(ran >= Duration::from_millis(49 * 40 - 5), "{ran:?}");
    // A seek, to the picture asked for.
    viewer.seek(Span::from_millis(2_100), 1.0);
    viewer.until(|event| matches!(event, PipelineEvent::Shown { block: 5, .. })).await;
    assert_eq!(viewer.pictures().last().unwrap().0, 52);
    viewer.play_out().await;
    let report = viewer.stop();
    assert_eq!(
        (report.freeze_count, report.blocks_checked, report.mismatches.len()),
        (1, 0, 0),
        "{report:?}"
    );
    assert!(report.freeze_longest >= Span::from_millis(640), "{report:?}");
    assert_eq!(report.at_quality, [Span::from_millis(2_000 + 1_920), Span::ZERO, Span::from_secs(2)]);
    assert!(report.ended);
}

/// When the picture with this number was shown, first occurrence.
fn shown_at(viewer: &Viewer<'_>, number: u64) -> std::time::Instant {
    viewer.pictures().iter().find(|picture| picture.0 == number).expect("never shown").2
}

#[tokio::test(flavor = "multi_thread")]
async fn pictures_come_at_their_time() {
    let mut viewer = Viewer::new(&TITLE, GOLD);
    viewer.pipeline.play();
    viewer.play_out().await;
    let pictures = viewer.pictures();
    let start = pictures[0].2;
    // A busy machine may hold one back; most are on time, or nothing is.
    let late = |(number, _, at): &(u64, u8, std::time::Instant)| {
        at.duration_since(start).abs_diff(Duration::from_millis(number * 40)) > Duration::from_millis(25)
    };
    let late: Vec<u64> = pictures.iter().filter(|picture| late(picture)).map(|picture| picture.0).collect();
    assert!(late.len() < 10, "pictures at the wrong time: {late:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_loses_no_picture_and_counts_as_no_freeze() {
    let mut viewer = Viewer::new(&TITLE, GOLD);
    viewer.pipeline.play();
    viewer.shown(25).await;
    viewer.pipeline.pause();
    viewer.until(|event| *event == PipelineEvent::Paused).await;
    viewer.during(Duration::from_millis(100)).await;
    let before = viewer.pictures().len();
    viewer.during(Duration::from_millis(700)).await;
    assert_eq!(viewer.pictures().len(), before, "pictures ran on while paused");
    viewer.pipeline.play();
    viewer.play_out().await;
    let numbers: Vec<u64> = viewer.pictures().iter().map(|picture| picture.0).collect();
    assert_eq!(numbers, (0..100).collect::<Vec<u64>>());
    let report = viewer.stop();
    assert_eq!((report.freeze_count, report.frames_dropped, report.blocks_checked), (0, 0, 10));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seek_shows_the_picture_asked_for_first() {
    let mut viewer = Viewer::new(&TITLE, GOLD);
    viewer.pipeline.play();
    viewer.shown(12).await;
    // 2.1 s is in the middle of picture 52, the third one of block 5.
    viewer.seek(Span::from_millis(2_100), 1.0);
    assert_eq!(viewer.pipeline.position(), Some(Span::from_millis(2_100)));
    viewer.until(|event| matches!(event, PipelineEvent::Shown { block: 5, .. })).await;
    assert_eq!(viewer.pictures().last().unwrap().0, 52);
    viewer.until(|event| matches!(event, PipelineEvent::Shown { block: 7, .. })).await;
    viewer.seek(Span::ZERO, 1.0);
    viewer.until(|event| matches!(event, PipelineEvent::Shown { block: 0, .. })).await;
    viewer.play_out().await;
    // Whole blocks around the seeks are exact; 5 was entered in its middle.
    let checked: Vec<_> = [0, 6].into_iter().chain(0..10).map(|block| (block, 3, true)).collect();
    assert_eq!(viewer.checked(), checked);
    let report = viewer.stop();
    assert_eq!((report.freeze_count, report.frames_dropped), (0, 0));
    assert_eq!(report.frames_shown, report.frames_expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_storm_of_seeks_ends_where_the_last_one_led() {
    let mut viewer = Viewer::new(&TITLE, GOLD);
    viewer.pipeline.play();
    viewer.shown(5).await;
    for number in 0..80_u64 {
        viewer.seek(Span::from_millis(number * 1_733 % 3_900), 1.0);
        viewer.during(Duration::from_millis(50)).await;
    }
    viewer.seek(Span::from_millis(2_000), 1.0);
    let before = viewer.checked().len();
    viewer.play_out().await;
    let checked: Vec<_> = (5..10).map(|block| (block, 3, true)).collect();
    assert_eq!(viewer.checked()[before..], checked);
    assert_eq!(viewer.stop().mismatches, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn film_and_clock_stand_while_there_is_nothing_to_show() {
    let mut viewer = Viewer::new(&TITLE, GOLD);
    viewer.until = 5;
    viewer.pipeline.play();
    viewer.until(|event| matches!(event, PipelineEvent::Shown { block: 4, .. })).await;
    viewer.during(Duration::from_millis(1_400)).await;
    assert_eq!(viewer.pictures().last().unwrap().0, 49, "all that was fed is shown");
    viewer.release();
    viewer.play_out().await;
    let rest = shown_at(&viewer, 99).duration_since(shown_at(&viewer, 50));
    assert!(rest > Duration::from_millis(49 * 40 - 60), "pictures rushed by: {rest:?}");
    let report = viewer.stop();
    assert_eq!((report.freeze_count, report.frames_dropped, report.blocks_checked), (1, 0, 10));
    let length = report.freezes[0].length;
    assert!((Span::from_millis(1_000)..Span::from_millis(1_300)).contains(&length), "{length}");
    assert_eq!(report.freezes[0].position, Span::from_millis(49 * 40));
}

#[tokio::test(flavor = "multi_thread")]
async fn trick_play_shows_key_pictures_at_their_pace_both_ways() {
    for (rate, to, numbers) in [
        (4.0, 0, (0..10).map(|block| block * 10).collect::<Vec<u64>>()),
        (-4.0, 3_700, (0..10).rev().map(|block| block * 10).collect()),
    ] {
        let mut viewer = Viewer::new(&TITLE, KEYS);
        viewer.seek(Span::from_millis(to), rate);
        viewer.pipeline.play();
        viewer.play_out().await;
        let pictures = viewer.pictures();
        assert_eq!(pictures.iter().map(|picture| picture.0).collect::<Vec<u64>>(), numbers);
        let took = pictures[9].2.duration_since(pictures[0].2);
        assert!(took.abs_diff(Duration::from_millis(900)) < Duration::from_millis(60), "{took:?}");
        assert_eq!(viewer.stop().freeze_count, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_picture_of_trick_play_stands_for_the_blocks_that_are_skipped() {
    let mut viewer = Viewer::new(&TITLE, KEYS);
    viewer.seek(Span::ZERO, 4.0);
    viewer.step = 3;
    viewer.pipeline.play();
    viewer.play_out().await;
    let pictures = viewer.pictures();
    assert_eq!(pictures.iter().map(|picture| picture.0).collect::<Vec<u64>>(), [0, 30, 60, 90]);
    let took = pictures[3].2.duration_since(pictures[0].2);
    assert!(took.abs_diff(Duration::from_millis(900)) < Duration::from_millis(60), "{took:?}");
    assert_eq!(viewer.stop().freeze_count, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn normal_play_goes_on_after_trick_play() {
    let mut viewer = Viewer::new(&TITLE, KEYS);
    viewer.seek(Span::ZERO, 8.0);
    viewer.pipeline.play();
    viewer.shown(4).await;
    viewer.quality = GOLD;
    viewer.seek(Span::from_millis(2_400), 1.0);
    viewer.play_out().await;
    assert_eq!(viewer.checked(), [(6, 3, true), (7, 3, true), (8, 3, true), (9, 3, true)]);
    drop(viewer.stop());
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_never_hangs_whatever_goes_on() {
    // Before anything was fed, playing, paused, starved, in a seek, at the end.
    let moments: [(bool, u32, u64); 5] =
        [(false, 10, 0), (true, 10, 0), (true, 10, 600), (false, 10, 300), (true, 1, 900)];
    for (play, until, millis) in moments {
        for seek in [false, true] {
            let mut viewer = Viewer::new(&TITLE, GOLD);
            viewer.until = until;
            if play {
                viewer.pipeline.play();
            }
            viewer.during(Duration::from_millis(millis)).await;
            if seek {
                viewer.seek(Span::from_millis(1_000), 1.0);
            }
            let before = std::time::Instant::now();
            let report = viewer.stop();
            assert!(before.elapsed() < Duration::from_secs(1), "{play} {until} {millis}");
            assert_eq!(report.mismatches, []);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_enhancement_costs_that_layer_until_the_next_block() {
    let mut viewer = Viewer::new(&TITLE, GOLD);
    let mut damaged = Title { manifest: TITLE.manifest.clone(), chunks: TITLE.chunks.clone() };
    // The last frame of the first enhancement of block 3: its frame marker.
    let mut bytes = damaged.chunks[3][1].to_vec();
    let samples = media::container::parse_chunk(&damaged.chunks[3][1], 0).unwrap();
    let last = &samples.video[9].data;
    let at = bytes.windows(last.len()).position(|window| window == &last[..]).unwrap();
    bytes[at] = 0;
    damaged.chunks[3][1] = bytes.into();
    viewer.title = &damaged;
    viewer.pipeline.play();
    viewer.play_out().await;
    let qualities: Vec<u8> = viewer.pictures().iter().map(|picture| picture.1).collect();
    let expected: Vec<u8> = (0..100).map(|number| if number == 39 { 1 } else { 3 }).collect();
    assert_eq!(qualities, expected);
    let report = viewer.stop();
    assert_eq!((report.blocks_checked, report.blocks_unchecked), (9, 1));
    assert_eq!(report.mismatches, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn snapshots_show_what_was_on_screen() {
    use player::pipeline::{SinkKind, SnapshotReason, Snapshots};
    let snapshots = Snapshots::new(vec![Span::from_millis(830)], true);
    let quality = |block| if block == 4 { 1 } else { 3 };
    let mut viewer = Viewer::start(&TITLE, quality, SinkKind::Headless, Some(snapshots.clone()));
    viewer.pipeline.play();
    viewer.play_out().await;
    drop(viewer.stop());
    let taken = snapshots.taken();
    let kept: Vec<_> =
        taken.iter().map(|it| (it.pts.as_millis(), it.quality.layers(), it.block, it.reason)).collect();
    assert_eq!(
        kept,
        [
            (800, 3, 2, SnapshotReason::Asked),
            (1_560, 3, 3, SnapshotReason::BeforeChange),
            (1_600, 1, 4, SnapshotReason::AfterChange),
            (1_960, 1, 4, SnapshotReason::BeforeChange),
            (2_000, 3, 5, SnapshotReason::AfterChange),
        ]
    );
    assert!(taken.iter().all(|it| it.picture.size() == (160, 96)));
}

#[tokio::test(flavor = "multi_thread")]
async fn sound_may_begin_late_and_end_early() {
    let recipe =
        Recipe { size: (64, 48), factors: &[2, 1], blocks: 5, frames: 6, sound: 1..3, halves: false };
    let title = Title::make(&recipe);
    for start in [0, 500, 1_000] {
        let mut viewer = Viewer::new(&title, |_| 2);
        viewer.seek(Span::from_millis(start), 1.0);
        viewer.pipeline.play();
        viewer.play_out().await;
        let first = u64::from(title.manifest.block_at(Span::from_millis(start))) * 6;
        assert_eq!(viewer.pictures().last().unwrap().0, 29);
        assert!(viewer.pictures()[0].0 >= first);
        let report = viewer.stop();
        assert_eq!(report.freeze_count, 0, "from {start} ms");
        assert_eq!(report.sound > Span::ZERO, start < 720, "sound from {start} ms");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_enhancement_with_too_few_frames_costs_quality_not_time() {
    let mut short = Title { manifest: TITLE.manifest.clone(), chunks: TITLE.chunks.clone() };
    let mut samples = media::container::parse_chunk(&short.chunks[2][2], 0).unwrap();
    samples.video.truncate(1);
    short.chunks[2][2] = media::container::write_chunk(2, 0, &samples).unwrap().into();
    let mut viewer = Viewer::new(&short, GOLD);
    viewer.pipeline.play();
    viewer.play_out().await;
    let qualities: Vec<u8> = viewer.pictures().iter().map(|picture| picture.1).collect();
    let expected: Vec<u8> = (0..100).map(|n| if (21..30).contains(&n) { 2 } else { 3 }).collect();
    assert_eq!(qualities, expected);
    assert_eq!(viewer.stop().freeze_count, 0);
}
