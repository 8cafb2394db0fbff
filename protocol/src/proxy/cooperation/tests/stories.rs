//! One thing after the other, each decision stated.

use super::*;

#[test]
fn queries_go_out_at_the_start_and_every_i_less_p_blocks_with_all_ranges_united() {
    let mut rig = Rig::new(400, |config| config.prefetch = false);
    rig.arrive(1);
    let asked: Vec<(u32, Vec<(u32, u32)>)> = (0..35)
        .flat_map(|block| {
            queries(&rig.ask(1, block, 1, 9_000)).into_iter().map(move |ranges| (block, ranges))
        })
        .collect();
    let united =
        [(0, vec![(0, 20)]), (10, vec![(0, 30)]), (20, vec![(0, 40)]), (30, vec![(0, 20), (30, 50)])];
    assert_eq!(asked, united);
    rig.arrive(2);
    let second = queries(&rig.ask(2, 90, 1, 9_000));
    assert_eq!(second, [[(0, 20), (34, 54), (90, 100)]], "the first client's window is in it");
    let left = queries(&rig.tell(Input::Left { client: ClientId(1) }));
    assert_eq!(left, [[(0, 20), (90, 100)]]);
    let empty = queries(&rig.tell(Input::Left { client: ClientId(2) }));
    assert_eq!(empty, [Vec::new()], "nobody wants anything any more");
}

#[test]
fn whoever_asks_is_answered_and_its_marks_last_until_it_asks_for_something_else() {
    let mut rig = Rig::new(4, |config| config.prefetch = false);
    rig.arrive(1);
    rig.ask(1, 50, 2, 9_000);
    rig.fetched(0, 2);
    let run =
        |first, count, quality| QualityRun { blocks: BlockRange { first, count }, quality: Quality(quality) };
    assert_eq!(rig.query(&[(49, 3)]), [run(49, 1, 0), run(50, 1, 2), run(51, 1, 0)]);
    assert_eq!(rig.query(&[(98, 9)]), [run(98, 2, 0)], "the title has a hundred blocks");
    rig.query(&[(50, 1)]);
    rig.tell(Input::Left { client: ClientId(1) });
    rig.arrive(2);
    rig.ask(2, 70, 4, 9_000);
    let kept = rig.fetched(1, 4);
    assert!(kept.iter().any(|output| matches!(output, Output::Event(Event::NotKept { block: 70, .. }))));
    assert_eq!((rig.held(50), rig.held(70)), (2, 0), "the peer wants block 50");
    // 2 (I - P) tau = 20 s later it has said nothing more.
    assert_eq!(rig.mind.poll_timeout(), Some(Time::ZERO + Span::from_secs(20)));
    rig.pass(20_000);
    let lapsed = rig.tell(Input::Timeout);
    assert_eq!(lapsed, [Output::Event(Event::MarkersLapsed { peer: peer("p2"), title: film() })]);
    rig.ask(2, 70, 4, 9_000);
    rig.fetched(2, 4);
    assert_eq!((rig.held(50), rig.held(70)), (0, 4));
    assert_eq!(rig.mind.poll_timeout(), None);
}

#[test]
fn whoever_marked_a_block_is_told_when_it_is_kept_and_nobody_else() {
    for news in [true, false] {
        let mut rig = Rig::new(400, |config| (config.prefetch, config.news) = (false, news));
        rig.arrive(1);
        rig.query(&[(0, 20), (40, 20)]);
        let told = |outputs: Vec<Output>| {
            let replies = outputs.into_iter().filter_map(|output| match output {
                Output::Reply { to, reply } => Some((to, reply)),
                _ => None,
            });
            replies.collect::<Vec<_>>()
        };
        let mut fetched = |fetch, block| {
            rig.ask(1, block, 3, 9_000);
            told(rig.fetched(fetch, 3))
        };
        let runs = vec![QualityRun { blocks: BlockRange { first: 45, count: 1 }, quality: Quality(3) }];
        let reply = (peer("p2"), Reply { title: film(), runs });
        assert_eq!(fetched(0, 45), if news { vec![reply] } else { vec![] });
        assert_eq!(fetched(1, 30), [], "it did not ask about this one");
    }
}

#[test]
fn what_a_peer_tells_unasked_counts_from_the_next_request_on() {
    let mut rig = Rig::new(400, |config| config.rank = Rank::Useful);
    rig.arrive(1);
    assert_eq!(fetches(&rig.ask(1, 0, 4, 4_000))[1], (1, true, 1, 0, 4, false), "nobody else has it");
    rig.fetched(0, 4);
    rig.reply(2, 1, 4);
    let ahead = rig.ask(1, 1, 4, 9_000);
    assert_eq!(fetches(&ahead), [(2, false, 2, 0, 4, false)], "from the peer, without a new query");
    assert_eq!(queries(&ahead), Vec::<Vec<(u32, u32)>>::new());
}

#[test]
fn a_hit_gives_what_is_in_time_and_at_least_what_is_accepted() {
    let mut rig = Rig::new(400, |config| config.prefetch = false);
    rig.tell(Input::Restored { title: film(), block: 5, quality: Quality(4) });
    rig.arrive(1);
    // Each layer takes 125 ms to the client, which is 10 ms away; A = ceil(0.6 x 4) = 3.
    for (buffered, quality) in [(510, 4), (509, 3), (385, 3), (100, 3), (0, 3)] {
        assert_eq!(served(&rig.ask(1, 5, 4, buffered)), [(1, 5, quality)], "{buffered} ms");
    }
    assert_eq!(served(&rig.ask(1, 5, 2, 9_000)), [(1, 5, 2)], "no more than is asked for");
    let (client, block, quality) = (ClientId(1), 5, Quality(4));
    let input = Input::Asked { client, block, quality, buffered: Span::ZERO, starting: true };
    assert_eq!(served(&rig.tell(input)), [(1, 5, 4)], "at the start 4 s count as buffered");
    assert_eq!(rig.mind.counts().hits, 7);
}

#[test]
fn a_block_on_its_way_is_not_fetched_twice() {
    let mut rig = Rig::new(400, |config| config.prefetch = false);
    rig.arrive(1);
    rig.arrive(2);
    let first = rig.ask(1, 0, 4, 3_000);
    assert_eq!(fetches(&first), [(0, true, 0, 0, 4, true)]);
    // 200 ms round trip, 2 s at 2 Mbit/s, 10 ms to the client.
    assert_eq!(waits(&first), [(1, 0, 4, 0, 0)]);
    rig.pass(500);
    let second = rig.ask(2, 0, 3, 3_000);
    assert_eq!((fetches(&second), waits(&second)), (vec![], vec![(2, 0, 3, 0, 0)]));
    let again = rig.ask(1, 0, 4, 2_500);
    assert_eq!((fetches(&again), waits(&again)), (vec![], vec![(1, 0, 4, 0, 0)]), "asked again");
    let late = rig.ask(2, 0, 3, 0);
    assert_eq!((fetches(&late), waits(&late)), (vec![], vec![(2, 0, 3, 0, 1_710)]), "nobody is sooner");
    assert_eq!(served(&rig.fetched(0, 4)), [(1, 0, 4), (2, 0, 3)]);
    assert_eq!(rig.held(0), 4);
}

#[test]
fn a_miss_goes_to_the_best_server_in_time_and_else_to_the_soonest() {
    let mut rig = Rig::new(400, |config| config.prefetch = false);
    rig.arrive(1);
    rig.ask(1, 0, 4, 9_000);
    rig.reply(0, 20, 3);
    // The peer has 3 of 4: in 40 + 750 + 10 ms. The origin's 4 take 2 s for what
    // is before it, and 2.2 s.
    assert_eq!(fetches(&rig.ask(1, 1, 4, 5_000)), [(1, true, 1, 0, 4, true)]);
    assert_eq!(fetches(&rig.ask(1, 2, 4, 5_000)), [(2, false, 2, 0, 3, true)]);
    // A second later both are busy; the peer would have 3 layers sooner.
    let nobody = rig.ask(1, 3, 4, 100);
    assert_eq!(fetches(&nobody), [(3, false, 3, 0, 3, true)]);
    assert_eq!(waits(&nobody), [(1, 3, 3, 3, 40 + 750 + 750 + 10 - 100)]);
    let counts = rig.mind.counts();
    assert_eq!((counts.misses, counts.late), (3, 1));
}

#[test]
fn what_a_peer_no_longer_has_is_asked_elsewhere_and_not_expected_there_again() {
    let mut rig = Rig::new(400, |config| config.prefetch = false);
    rig.arrive(1);
    rig.reply(0, 20, 4);
    assert_eq!(fetches(&rig.ask(1, 0, 4, 1_500)), [(0, false, 0, 0, 4, true)]);
    rig.pass(40);
    let absent = rig.tell(Input::FetchFailed { fetch: FetchId(0), why: FetchFailure::Absent });
    assert_eq!(fetches(&absent), [(1, true, 0, 0, 3, true)], "late, so the least: ceil(0.6 x 4)");
    assert_eq!(fetches(&rig.ask(1, 0, 4, 1_500)), [], "it is on its way");
    let lost = rig.tell(Input::Lost { server: Server::Origin });
    let refused = Output::Refuse { client: ClientId(1), block: 0, why: Reason::Nobody };
    assert_eq!(lost, [refused]);
    rig.tell(Input::OriginFound);
    assert_eq!(fetches(&rig.ask(1, 0, 4, 9_000)), [(2, true, 0, 0, 4, true)]);
}

#[test]
fn the_nearest_block_that_lacks_is_fetched_ahead_and_counts_as_on_its_way() {
    let mut rig = Rig::new(400, |_| ());
    rig.arrive(1);
    let first = rig.ask(1, 0, 2, 4_000);
    // Behind the miss of 1 s: block 1 is due a second later.
    assert_eq!(fetches(&first), [(0, true, 0, 0, 2, true), (1, true, 1, 0, 2, false)]);
    rig.fetched(0, 2);
    rig.pass(1_000);
    let second = rig.ask(1, 1, 2, 4_000);
    assert_eq!(fetches(&second), [(2, true, 2, 0, 2, false)], "only what comes after it");
    assert_eq!(waits(&second), [(1, 1, 2, 1, 0)]);
    rig.tell(Input::FetchFailed { fetch: FetchId(1), why: FetchFailure::Overwritten });
    assert_eq!(rig.mind.counts().prefetches, 2);
    assert_eq!(rig.mind.open_fetches(), 2, "the overwritten one is now a miss");
}

#[test]
fn only_missing_layers_move_and_a_block_that_grew_keeps_its_name() {
    let mut rig = Rig::new(400, |config| {
        config.transfer = Transfer::Delta;
        config.prefetch = false;
    });
    rig.arrive(1);
    rig.ask(1, 0, 2, 9_000);
    rig.fetched(0, 2);
    let more = rig.ask(1, 0, 4, 9_000);
    assert_eq!(fetches(&more), [(1, true, 0, 2, 4, true)]);
    assert!(more.iter().any(|output| matches!(output, Output::Fetch(fetch) if fetch.bytes.0 == 2 * LAYER)));
    let (title, block, quality) = (film(), 0, Quality(4));
    let kept = rig.fetched(1, 4);
    assert!(kept.contains(&Output::Keep { title, block, quality }));
    assert_eq!((rig.held(0), rig.mind.used()), (4, ByteCount(4 * LAYER)));
    let (title, quality) = (film(), Quality(1));
    rig.tell(Input::Damaged { title, block: 0, quality });
    assert_eq!((rig.held(0), rig.mind.used()), (1, ByteCount(LAYER)));
}

#[test]
fn nonsense_is_rejected_by_name() {
    let mut rig = Rig::new(400, |_| ());
    let stranger = peer("stranger");
    let query = Query { title: film(), ranges: vec![] };
    let rejected = [Output::Event(Event::Rejected { peer: stranger })];
    assert_eq!(rig.tell(Input::Queried { from: stranger, query }), rejected);
    let ranges = vec![BlockRange { first: 9, count: 4 }, BlockRange { first: 3, count: 1 }];
    let disorder = Query { title: film(), ranges };
    let out = rig.tell(Input::Queried { from: peer("p2"), query: disorder });
    assert_eq!(out, [Output::Event(Event::Rejected { peer: peer("p2") })]);
    let unknown = Output::Refuse { client: ClientId(9), block: 0, why: Reason::Unknown };
    assert_eq!(rig.ask(9, 0, 1, 0), [unknown]);
    rig.arrive(1);
    let beyond = Output::Refuse { client: ClientId(1), block: 100, why: Reason::Unknown };
    assert_eq!(rig.ask(1, 100, 1, 0), [beyond]);
    assert_eq!(rig.fetched(77, 3), [], "nobody asked for it");
}
