#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]

use super::*;
use crate::proxy::cooperation::{Beta, ClientId};
use crate::proxy::talk::BlockRange;
use media::{BitRate, ByteCount, Span};
use proptest::prelude::*;

/// Four layers of ten bytes; I = 4 and P = 2.
struct Case {
    table: BlockTable,
    cache: CacheTable,
    clients: Clients,
    config: CooperationConfig,
}

impl Case {
    /// Blocks 0..20 held at quality 3.
    fn new(clients: &[(u32, u8)]) -> Self {
        let table = BlockTable::uniform(40, Span::from_secs(1), &[10; 4]);
        let mut cache = CacheTable::new(40);
        for block in 0..20 {
            cache.set(&table, block, Quality(3));
        }
        let mut rows = Clients::default();
        for (id, (position, wanted)) in (0..).zip(clients) {
            let mut row = ClientRow::new(ClientId(id), Beta(500), Span::ZERO, BitRate(1));
            (row.position, row.wanted) = (Some(*position), Quality(*wanted));
            rows.add(row);
        }
        let config = CooperationConfig { inquiry: 4, ahead: 2, ..CooperationConfig::paper(ByteCount(0)) };
        Self { table, cache, clients: rows, config }
    }

    fn shelf(&self, title: usize) -> Shelf<'_> {
        Shelf { title, table: &self.table, cache: &self.cache, clients: &self.clients }
    }

    fn plan(&self, short: u64) -> Option<Vec<(u32, u8)>> {
        let plan = plan(short, &[self.shelf(0)], &self.config, |_, _| false)?;
        Some(plan.iter().map(|victim| (victim.block, victim.quality.layers())).collect())
    }
}

#[test]
fn victims_come_from_the_end_and_are_lowered_before_they_are_discarded() {
    let case = Case::new(&[(6, 2)]);
    assert_eq!(case.plan(10), Some(vec![(19, 2)]), "lowered to what the client behind wants");
    assert_eq!(case.plan(11), Some(vec![(19, 0)]), "that was not enough");
    assert_eq!(case.plan(40), Some(vec![(19, 0), (18, 2)]));
    assert_eq!(case.plan(0), Some(vec![]));
}

#[test]
fn a_block_is_worth_what_those_behind_it_want_or_accept() {
    let case = Case::new(&[(6, 4)]);
    assert_eq!(case.plan(5), Some(vec![(19, 0)]), "lowering frees nothing");
    let mut case = Case::new(&[(6, 3)]);
    case.config.floor = Floor::Acceptable;
    assert_eq!(case.plan(10), Some(vec![(19, 2)]));
    let ahead = Case::new(&[(30, 2)]);
    assert_eq!(ahead.plan(5), Some(vec![(19, 0)]), "nobody is behind it");
}

#[test]
fn windows_markers_and_the_head_are_passed_over() {
    let mut case = Case::new(&[(16, 1), (10, 1)]);
    case.cache.mark(3, vec![BlockRange { first: 5, count: 3 }, BlockRange { first: 14, count: 1 }]);
    // Windows 16..20 and 10..14, markers 14 and 5..8, head 0..4.
    let free = [15, 9, 8, 4];
    assert_eq!(case.plan(120), Some(free.map(|block| (block, 0)).into()));
}

#[test]
fn the_far_ends_of_the_windows_go_next_and_then_nothing_does() {
    let mut case = Case::new(&[(16, 1), (10, 1), (13, 1)]);
    case.cache.mark(3, vec![BlockRange { first: 5, count: 3 }]);
    let outside = [9, 8, 4];
    // Ends of windows: 18, 19 and 12; 13 is near the third client, and of its own
    // end 15 and 16 the latter is near the first.
    let ends = [19, 18, 15, 12];
    let all: Vec<(u32, u8)> = outside.into_iter().chain(ends).map(|block| (block, 0)).collect();
    assert_eq!(case.plan(7 * 30), Some(all));
    assert_eq!(case.plan(7 * 30 + 1), None, "the new block is not kept, and nothing is lost for it");
}

#[test]
fn titles_that_nobody_watches_go_first_with_their_heads_last() {
    let (watched, idle) = (Case::new(&[(0, 3)]), Case::new(&[]));
    let shelves = [watched.shelf(0), idle.shelf(1)];
    let victims = |short| plan(short, &shelves, &watched.config, |_, _| false).unwrap();
    assert!(victims(16 * 30).iter().all(|victim| victim.title == 1 && victim.block >= 4));
    let more = victims(16 * 30 + 1);
    assert_eq!(more.last(), Some(&Victim { title: 0, block: 19, quality: Quality(0) }));
    let all = victims(36 * 30);
    assert_eq!(all.iter().filter(|victim| victim.block < 4).map(|victim| victim.title).min(), Some(1));
    assert_eq!(plan(40 * 30, &shelves, &watched.config, |_, _| false), None);
}

proptest! {
    #[test]
    fn a_plan_frees_enough_raises_nothing_and_spares_what_is_protected(
        held in proptest::collection::vec(0_u8..5, 40),
        clients in proptest::collection::vec((0_u32..40, 1_u8..5), 0..5),
        marked in (0_u32..40, 0_u32..6),
        short in 1_u64..900,
    ) {
        let mut case = Case::new(&clients);
        for (block, quality) in (0..).zip(&held) {
            case.cache.set(&case.table, block, Quality(*quality));
        }
        case.cache.mark(1, vec![BlockRange { first: marked.0, count: marked.1 }]);
        let before = case.cache.bytes();
        if let Some(victims) = case.plan(short) {
            let mut seen = Vec::new();
            for (block, quality) in victims {
                prop_assert!(quality < held[usize::try_from(block).unwrap()]);
                prop_assert!(!case.cache.is_marked(block), "marked");
                let near = |(position, _): &(u32, u8)| (*position..position + 2).contains(&block);
                prop_assert!(!clients.iter().any(near), "near part of a window");
                prop_assert!(clients.is_empty() || block >= 4, "head of a watched title");
                prop_assert!(!seen.contains(&block));
                seen.push(block);
                case.cache.set(&case.table, block, Quality(quality));
            }
            prop_assert!(before - case.cache.bytes() >= short);
        }
    }
}
