#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]

use super::*;

fn ms(millis: u64) -> Span {
    Span::from_millis(millis)
}

/// Ten layers of 125 kB: at 1 Mbit/s each takes a second.
fn table() -> BlockTable {
    BlockTable::uniform(100, Span::from_secs(1), &[125_000; 10])
}

/// A client 10 ms away at 8 Mbit/s that wants quality 5 and takes 3.
fn wish(table: &BlockTable, budget: Option<u64>) -> Wish<'_> {
    Wish {
        table,
        block: 7,
        have: Quality(0),
        wanted: Quality(5),
        acceptable: Quality(3),
        useful: Quality(5),
        delay: ms(10),
        rate: BitRate(8_000_000),
        budget: budget.map(ms),
        relay: Relay::CutThrough,
        rank: Rank::Offer,
    }
}

fn offer(place: usize, quality: u8, delay: u64, mbits: u64, queue: u64) -> Offer {
    let rate = BitRate(mbits * 1_000_000);
    Offer { place, quality: Quality(quality), delay: ms(delay), rate, queue: ms(queue) }
}

#[test]
fn what_the_cache_can_deliver_in_time_is_bounded_by_the_clients_link() {
    let table = table();
    // Each layer takes 125 ms over the client's link, after 10 ms of way.
    let cases = [(None, 0), (Some(0), 0), (Some(134), 0), (Some(135), 1), (Some(384), 2), (Some(385), 3)];
    for (budget, quality) in cases.into_iter().chain([(Some(634), 4), (Some(635), 5), (Some(9_000), 5)]) {
        assert_eq!(wish(&table, budget).cached(), Quality(quality), "{budget:?}");
    }
}

#[test]
fn a_transfer_takes_a_round_trip_the_queue_and_the_longer_of_both_links() {
    let table = table();
    let far = offer(0, 10, 100, 2, 700);
    let wish = wish(&table, Some(4_000));
    // 2 d_k + W_k/r_k + max(a/r_k, a/r_j) + d_j, in milliseconds.
    assert_eq!(wish.time(&far, Quality(4)), ms(200 + 700 + 2_000 + 10));
    let stored = Wish { relay: Relay::StoreForward, ..wish };
    assert_eq!(stored.time(&far, Quality(4)), ms(200 + 700 + 2_000 + 500 + 10));
    let near = offer(1, 10, 1, 100, 0);
    assert_eq!(wish.time(&near, Quality(10)), ms(2 + 5 * 125 + 10), "no more goes on than is wanted");
    let delta = Wish { have: Quality(3), ..wish };
    assert_eq!(delta.time(&far, Quality(4)), ms(200 + 700 + 500 + 10), "only what is missing moves");
    assert_eq!(wish.offered(&far), Quality(6), "200 + 700 + 3000 + 10 of 4000");
    assert_eq!(wish.offered(&offer(0, 2, 100, 2, 0)), Quality(2), "it has no more");
}

#[test]
fn the_best_quality_in_time_wins_then_the_soonest_and_nobody_asks_for_more_than_is_wanted() {
    let table = table();
    let wish = wish(&table, Some(3_000));
    let (slow, quick) = (offer(0, 10, 100, 2, 0), offer(1, 4, 20, 5, 0));
    // The origin could deliver 5 in 2710 ms, the peer its 4 in 850 ms.
    let bid = wish.choose(&[slow, quick]).unwrap();
    assert_eq!((bid.place, bid.quality, bid.in_time, bid.time), (0, Quality(5), true, ms(2_710)));
    assert_eq!(bid.here, ms(2_700));
    let (one, other) = (offer(1, 4, 50, 5, 0), offer(2, 4, 20, 5, 0));
    assert_eq!(wish.choose(&[one, other]).unwrap().place, 2, "the soonest of equals");
    let (far, near) = (offer(0, 10, 100, 20, 0), offer(1, 6, 20, 20, 0));
    let bid = wish.choose(&[far, near]).unwrap();
    assert_eq!((bid.place, bid.quality), (0, Quality(5)), "ten is more than six, but five is wanted");
    let useful = Wish { rank: Rank::Useful, ..wish };
    assert_eq!(useful.choose(&[far, near]).unwrap().place, 1, "both can deliver what is wanted");
    let quick = offer(0, 10, 1, 50, 0);
    assert!(useful.bid(&quick, Quality(5), true).time < useful.bid(&near, Quality(5), true).time);
    assert_eq!(useful.choose(&[quick, near]).unwrap().place, 1, "a peer in time spares the origin");
    let busy = offer(1, 6, 20, 20, 2_500);
    assert_eq!(useful.choose(&[quick, busy]).unwrap().place, 0, "but not at the price of quality");
    let others = Wish { useful: Quality(6), ..wish };
    assert_eq!(others.choose(&[near]).unwrap().quality, Quality(6), "another client wants six");
}

#[test]
fn with_nobody_in_time_the_least_that_is_accepted_comes_from_the_soonest() {
    let table = table();
    for budget in [None, Some(0), Some(900)] {
        let bid = wish(&table, budget).choose(&[offer(0, 10, 100, 2, 0), offer(1, 4, 20, 3, 800)]).unwrap();
        assert_eq!((bid.place, bid.quality, bid.in_time), (0, Quality(3), false));
        assert_eq!(bid.time, ms(200 + 1_500 + 10));
    }
    let wish = wish(&table, Some(9_000));
    assert_eq!(wish.choose(&[offer(1, 2, 20, 3, 0)]), None, "nobody has enough");
    assert_eq!(wish.choose(&[]), None);
}

#[test]
fn a_block_further_ahead_may_take_so_much_longer() {
    let table = table();
    let far = offer(0, 10, 100, 2, 0);
    // Equation 7 with p = 1 s and delta = 0: each block ahead adds its second.
    let offered = |ahead: u64| wish(&table, Some(1_000 + 1_000 * ahead)).offered(&far).layers();
    assert_eq!([0, 1, 2, 3, 4].map(offered), [1, 3, 5, 7, 9]);
}
