#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::float_cmp,
    reason = "tests state exact values"
)]

use super::*;
use crate::eval::{Piece, Study};

/// A tenth of the paper's film and gaps: the same shape in a tenth of the time.
fn short(seed: u64, scheme: Scheme, ladder: Ladder) -> Setting {
    Setting { blocks: 540, gap: Span::from_secs(360), ..Setting::paper(seed, scheme, ladder) }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.collect();
    values.iter().sum::<f64>() / f64::from(u32::try_from(values.len()).unwrap())
}

fn freeze(outcome: &Outcome) -> f64 {
    mean(outcome.proxies.iter().flat_map(|proxy| proxy.freeze.iter().copied()))
}

#[test]
fn starts_and_walks_are_the_same_in_every_scheme() {
    let audience = |scheme, ladder| Audience::of(&Setting::paper(7, scheme, ladder));
    let first = audience(Scheme::Independent, Ladder::TenWhole);
    for scheme in Scheme::ALL {
        for ladder in Ladder::ALL {
            assert_eq!(audience(scheme, ladder), first);
        }
    }
    assert_ne!(Audience::of(&Setting::paper(8, Scheme::Independent, Ladder::Ten)), first);
    let watchers: Vec<&Watcher> = first.proxies.iter().flatten().collect();
    assert_eq!(watchers.len(), 30);
    let steps = watchers.iter().flat_map(|watcher| watcher.levels.windows(2));
    assert!(steps.clone().all(|pair| pair[0].abs_diff(pair[1]) <= 1 && (1..=LEVELS).contains(&pair[1])));
    let moved = mean(steps.map(|pair| f64::from(pair[0].abs_diff(pair[1]))));
    assert!((0.16..0.2).contains(&moved), "{moved}: a fifth, but for the ends");
    assert!(watchers.iter().all(|watcher| watcher.levels[..4] == [1; 4]));
}

#[test]
fn nothing_travels_twice_on_a_session_and_no_session_carries_more_than_its_rate() {
    for scheme in Scheme::ALL {
        for ladder in Ladder::ALL {
            let outcome = run(&short(3, scheme, ladder));
            assert_eq!((outcome.twice, outcome.overdrawn), (0, Span::ZERO), "{scheme:?} {ladder:?}");
            assert_eq!(run(&short(3, scheme, ladder)), outcome, "the same seed, the same run");
        }
    }
}

#[test]
fn who_insists_gets_all_and_waits_most() {
    let at =
        |beta| run(&Setting { beta: Beta(beta), ..short(1, Scheme::CooperativeAhead, Ladder::TenWhole) });
    let insists = at(1000);
    assert!(
        insists.proxies.iter().all(|proxy| proxy.least_ratio == 1.0 && proxy.ratio.iter().all(|r| *r == 1.0))
    );
    let mut before = f64::INFINITY;
    for beta in [1000, 800, 600, 400, 100] {
        let outcome = at(beta);
        let least = f64::from(beta) / 1000.0;
        assert!(outcome.proxies.iter().all(|proxy| proxy.least_ratio >= least - 1e-9), "{beta}");
        assert!(freeze(&outcome) <= before, "{beta}: {} after {before}", freeze(&outcome));
        before = freeze(&outcome);
    }
}

#[test]
fn a_single_client_with_a_wide_origin_never_freezes_when_blocks_are_fetched_ahead() {
    let wide = |scheme| {
        let origin = vec![(BitRate(8_000_000), Span::from_millis(200)); 3];
        run(&Setting { clients: 1, origin, ..short(1, scheme, Ladder::TenWhole) })
    };
    assert_eq!(freeze(&wide(Scheme::CooperativeAhead)), 0.0);
    assert_eq!(freeze(&wide(Scheme::IndependentAhead)), 0.0);
}

#[test]
fn the_four_schemes_stand_as_published() {
    let mut study = Study::default();
    for piece in Piece::schemes(&[Ladder::TenWhole], &[1, 2, 3, 4]) {
        study.add(piece.run());
    }
    let verdicts = study.freeze_verdicts(Ladder::TenWhole).into_iter();
    for verdict in verdicts.chain(study.quality_verdicts(Ladder::TenWhole)) {
        // Four seeds leave the near equality of the independent schemes to chance.
        assert!(verdict.holds || verdict.claim.contains("coincide"), "{verdict}");
    }
}

#[test]
fn smaller_caches_freeze_more_and_four_fifths_are_enough() {
    let mut study = Study::default();
    for seed in 1..=3 {
        study.add(Piece::Sizes(seed).run());
    }
    for verdict in study.size_verdicts().iter().skip(1) {
        assert!(verdict.holds, "{verdict}");
    }
}

#[test]
fn levels_become_layers_that_are_no_less() {
    let wanted = |ladder: Ladder| (1..=10).map(|level| ladder.wanted(level).0).collect::<Vec<_>>();
    assert_eq!(wanted(Ladder::TenWhole), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    assert_eq!(wanted(Ladder::Three), [1, 1, 1, 2, 2, 2, 3, 3, 3, 3]);
    assert_eq!(wanted(Ladder::Halves), [1, 2, 2, 3, 3, 4, 5, 5, 6, 6]);
    for ladder in Ladder::ALL {
        let table = ladder.table(3, Span::from_secs(1));
        assert_eq!(table.size(2, table.top()), ByteCount(10 * LEVEL_BYTES));
        assert_eq!(ladder.ratio(Quality(ladder.layers()), 10), 1.0);
    }
    assert_eq!(Ladder::Three.ratio(Quality(1), 1), 1.0);
}
