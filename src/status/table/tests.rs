#![allow(clippy::unwrap_used, reason = "tests state exact values")]

use super::*;
use media::{BitRate, Layer, TitleClass};
use protocol::node::autonomy::Level;
use protocol::node::classes::Reason;
use protocol::status::{
    ClassLine, EventLine, NeighbourLine, PlacementLine, RefusedLine, Slots, StoredLine, TitleLine,
};

#[test]
fn a_node_is_shown_whole() {
    let neighbour = |node: &str, level, silent, dead| NeighbourLine {
        node: node.parse().unwrap(),
        level,
        silent: Span::from_millis(silent),
        dead,
    };
    let status = NodeStatus {
        peer: "base-1".parse().unwrap(),
        level: Level::BASE,
        up: Span::from_secs(3725),
        draining: true,
        titles: vec![TitleLine {
            title: "film".parse().unwrap(),
            layers: vec![Layer::BASE, Layer::ENH1],
            size: ByteCount(12_300_000),
        }],
        slots: Slots {
            capacity: 30,
            used: 5,
            headroom: 20,
            vip: 1,
            normal: 2,
            vip_dual: 2,
            normal_dual: 4,
            enhancements: 0,
            searching: 1,
        },
        admission: Admission {
            classes: vec![
                ClassLine { class: TitleClass::Archived, viewings: 2, threshold: None },
                ClassLine { class: TitleClass::AdHoc, viewings: 1, threshold: Some(4) },
            ],
            to_viewers: BitRate(1_500_000),
            link_rate: Some(BitRate(20_000_000)),
            refused: vec![RefusedLine { class: TitleClass::AdHoc, reason: Reason::Threshold, count: 7 }],
            to_origin: BitRate(500_000),
            origin_rate: Some(BitRate(5_000_000)),
            store: (ByteCount(2_000_000), ByteCount(10_000_000)),
            stored: vec![StoredLine {
                title: "lesson".parse().unwrap(),
                class: TitleClass::AdHoc,
                size: ByteCount(2_000_000),
                viewings: 1,
                whole: false,
            }],
        },
        sessions: 3,
        neighbours: vec![
            neighbour("base-2@127.0.0.1:4462", Level::BASE, 120, false),
            neighbour("enh1-1@127.0.0.1:4463", Level::ENH1, 9000, true),
        ],
        dead: vec!["enh1-1".parse().unwrap()],
        placements: vec![PlacementLine {
            title: "film".parse().unwrap(),
            layers: vec![(Layer::BASE, 2, 0), (Layer::ENH1, 1, 1)],
            wanted: 2,
        }],
        traffic: Traffic { media: 1_000_000, signals: 4_000, agents: 1_000, archive: 0 },
        events: vec![EventLine { ago: Span::from_secs(9), event: "{\"dead\":\"enh1-1\"}\x1b[2J".to_owned() }],
    };
    let shown = "\
base-1  base, up 1 h 2 min, about to stop
slots       5 of 30, 20 to spare
            vip 1, normal 2, vipdual 2, normaldual 4, enhancements 0, searching 1
watched     archived 2, ad-hoc 1 of 4
link        1500 kbit/s of 20.0 Mbit/s to viewers
archive     2.0 MB of 10.0 MB, link to it 500 kbit/s of 5000 kbit/s
            lesson                   ad-hoc     2.0 MB, watched by 1, coming
refused     threshold          ad-hoc     7
sessions    3
titles      film                     base enh1 (12.3 MB)
neighbours  base-2           base   127.0.0.1:4462        heard 120 ms ago
            enh1-1           enh1   127.0.0.1:4463        heard 9 s ago  DEAD
thought dead  enh1-1
published   film                     base 2 of 2, enh1 1 of 2 (+1 on the way)
sent        media 1.0 MB, signals 4.0 kB, agents 1.0 kB (0.50 % of media)
events      9 s ago      {\"dead\":\"enh1-1\"}?[2J
";
    assert_eq!(of(&status), shown);
}

#[test]
fn a_share_of_nothing_is_not_shown() {
    assert_eq!(share(5, 0), "-");
    assert_eq!(share(u64::MAX, u64::MAX), "100.00 %");
}
