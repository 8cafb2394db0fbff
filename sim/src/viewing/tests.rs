#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]

use super::*;
use media::{BitRate, Layer};
use protocol::player::BlockShape;

/// Half a minute in blocks of a second, of 0.2, 0.25 and 0.4 Mbit/s.
fn title() -> Title {
    let lengths = [25_000, 31_000, 50_000].map(ByteCount).to_vec();
    let block =
        |n| BlockShape { start: Span::from_secs(n), duration: Span::from_secs(1), lengths: lengths.clone() };
    let shape = TitleShape { layers: 3, blocks: (0..30).map(block).collect() };
    Title::new("film".parse().unwrap(), shape, 5_000)
}

fn plan(seed: u64) -> Plan {
    let guest =
        |sla, at: &str| Guest { sla, quality: Quality::GOLD, at: at.parse().unwrap(), comes: Span::ZERO };
    let line = |rate: Option<u64>, millis| PipeShape {
        rate: rate.map(BitRate),
        delay: Span::from_millis(millis),
        queue: if rate.is_some() { Span::from_millis(300) } else { Span::MAX },
        ..PipeShape::OPEN
    };
    Plan {
        title: title(),
        nodes: vec![3, 2, 2],
        origin_has_top: false,
        buffer: Span::from_secs(4),
        lasts: Span::from_secs(14),
        between: line(None, 5),
        last_mile: line(Some(8_000_000), 20),
        guests: vec![guest(Sla::Vip, "base-1"), guest(Sla::Normal, "base-2"), guest(Sla::Normal, "base-3")],
        deaths: vec![(Span::from_secs(7), Whom::Serving)],
        seed,
    }
}

#[test]
fn everybody_plays_on_when_a_base_node_dies() {
    let seen = run(&plan(1));
    assert_eq!(seen, run(&plan(1)), "the same plan, the same viewing");
    for one in &seen {
        assert_eq!((one.freezes, one.frozen), (0, Span::ZERO), "{one:?}");
        assert!(one.startup.is_some_and(|startup| startup < Span::from_secs(2)), "{one:?}");
        assert!(one.watched > Span::from_secs(12) && one.quality > 0.9, "{one:?}");
    }
    let struck: Vec<&Seen> = seen.iter().filter(|one| one.struck_with.is_some()).collect();
    assert!(!struck.is_empty(), "{seen:?}");
    for one in struck {
        assert!(one.struck_with.unwrap() > Span::from_secs(2), "{one:?}");
        let recovered = one.recoveries.first().unwrap();
        assert!((300..1_200).contains(&recovered.as_millis()), "{one:?}");
    }
}

#[test]
fn a_line_too_narrow_for_all_layers_shows_fewer_and_one_too_narrow_for_base_freezes() {
    let with = |rate| {
        let last_mile = PipeShape { rate: Some(BitRate(rate)), ..plan(1).last_mile };
        run(&Plan { last_mile, deaths: Vec::new(), lasts: Span::from_secs(30), ..plan(1) })
    };
    let narrow = with(400_000);
    assert!(narrow.iter().all(|one| one.quality < 0.8 && one.frozen < Span::from_secs(1)), "{narrow:?}");
    let hopeless = with(120_000);
    assert!(hopeless.iter().all(|one| one.frozen > Span::from_secs(2)), "{hopeless:?}");
}

#[test]
fn every_death_of_a_level_is_survived_but_the_last() {
    let deaths = ["enh2-1", "enh2-2"].map(|name| Whom::Named(name.parse().unwrap()));
    let at = |secs| Span::from_secs(secs);
    let seen = run(&Plan { deaths: vec![(at(4), deaths[0]), (at(7), deaths[1])], ..plan(2) });
    assert!(seen.iter().all(|one| one.freezes == 0 && one.quality < 0.95), "{seen:?}");
    assert_eq!(Layer::ENH2.0, 2);
}
