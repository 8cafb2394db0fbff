//! What a slot lets through, whoever asks for what and when.

use super::*;
use crate::message::ChunkRequest;
use media::{ChunkId, Hash};
use proptest::prelude::*;

const USER: UserId = UserId(7);
const LINK: LinkId = LinkId(1);

fn ms(millis: u64) -> Span {
    Span::from_millis(millis)
}

fn at(millis: u64) -> Time {
    Time::ZERO + ms(millis)
}

/// Blocks of a second with so many bytes each.
fn film(bytes: &[u64]) -> ChunkLengths {
    let chunks = bytes.iter().map(|bytes| ByteCount(*bytes)).collect();
    ChunkLengths::new(vec![ms(1000); bytes.len()], vec![chunks])
}

fn slots() -> Slots {
    Slots::new(150, ms(4000), 2)
}

/// Asks for a block on the stream of its number.
fn ask(slots: &mut Slots, film: &ChunkLengths, now: u64, block: u32, due: u64) -> Option<bool> {
    ask_as(slots, film, now, (USER, block), due)
}

fn ask_as(
    slots: &mut Slots,
    film: &ChunkLengths,
    now: u64,
    (user, block): (UserId, u32),
    due: u64,
) -> Option<bool> {
    let id = ChunkId { title: "film".parse().unwrap(), block, layer: Layer::BASE };
    let request = StreamRequest::Chunk(ChunkRequest::whole(id, 0));
    let bytes = film.of(block, Layer::BASE).unwrap();
    let stream = StreamId(block.into());
    let wish =
        Wish { link: LINK, stream, user, version: Hash::of(b""), layer: Layer::BASE, bytes, due: at(due) };
    slots.ask(at(now), wish, &request, film)
}

fn released(slots: &mut Slots, now: u64) -> Vec<u64> {
    slots.due(at(now)).into_iter().map(|paced| paced.stream.0).collect()
}

#[test]
fn a_buffer_comes_at_once_and_then_one_and_a_half_seconds_a_second() {
    let (mut slots, film) = (slots(), film(&[1000; 60]));
    for block in 0..4 {
        assert_eq!(ask(&mut slots, &film, 0, block, 10_000), Some(true));
    }
    for block in 4..8 {
        assert_eq!(ask(&mut slots, &film, 0, block, 10_000), Some(false));
    }
    // A block every two thirds of a second, to the nanosecond.
    assert_eq!(slots.next(), Some(Time::from_nanos(666_666_667)));
    assert_eq!(released(&mut slots, 666), [0_u64; 0]);
    assert_eq!(released(&mut slots, 667), [4]);
    assert_eq!(released(&mut slots, 2000), [5, 6]);
    assert_eq!(released(&mut slots, 2667), [7]);
    assert_eq!((slots.next(), slots.waiting()), (None, 0));
    // After less than three seconds of quiet the whole buffer may come again.
    for block in 8..12 {
        assert_eq!(ask(&mut slots, &film, 2667 + 2667, block, 10_000), Some(true));
    }
    assert_eq!(ask(&mut slots, &film, 5334, 12, 10_000), Some(false));
}

#[test]
fn what_is_due_first_goes_first_and_what_nobody_waits_for_holds_nobody_up() {
    let (mut slots, film) = (slots(), film(&[1000; 60]));
    for block in 0..8 {
        ask(&mut slots, &film, 0, block, 10_000);
    }
    // A seek: one block is due now, and two that waited are not wanted any more.
    assert_eq!(ask(&mut slots, &film, 100, 40, 500), Some(false));
    slots.forget(StreamId(4));
    slots.forget(StreamId(5));
    assert_eq!(released(&mut slots, 667), [40]);
    assert_eq!(released(&mut slots, 2000), [6, 7]);
    ask(&mut slots, &film, 2000, 41, 3000);
    slots.gone(LINK);
    assert_eq!((slots.next(), slots.waiting()), (None, 0));
}

#[test]
fn a_chunk_longer_than_the_bucket_waits_until_it_is_full_and_not_for_ever() {
    let (mut slots, film) = (slots(), film(&[1000; 60]));
    ask(&mut slots, &film, 0, 0, 0);
    // The title was replaced by one of longer chunks meanwhile.
    let longer = self::film(&[9000; 60]);
    assert_eq!(ask(&mut slots, &longer, 0, 1, 0), Some(false));
    assert_eq!(released(&mut slots, 666), [0_u64; 0]);
    assert_eq!(released(&mut slots, 667), [1]);
}

#[test]
fn a_full_slot_is_forgotten_and_a_viewer_taken_over_has_one() {
    let (mut slots, film) = (slots(), film(&[1000; 60]));
    for block in 0..4 {
        ask(&mut slots, &film, 0, block, 0);
        ask_as(&mut slots, &film, 0, (UserId(8), block), 0);
    }
    assert_eq!(ask_as(&mut slots, &film, 2666, (UserId(9), 0), 0), None, "no room for a third");
    slots.refill(USER);
    assert_eq!(ask(&mut slots, &film, 2666, 4, 0), Some(true), "a whole buffer again");
    assert_eq!(ask_as(&mut slots, &film, 2667, (UserId(9), 0), 0), Some(true), "the second is full");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// In no stretch of time does more than the burst and one and a half times
    /// the busiest rate pass; and who only plays has every block in time.
    #[test]
    fn never_more_than_burst_and_rate(
        blocks in proptest::collection::vec(1_u64..100_000, 8..60),
        asked in proptest::collection::vec((0_u64..400, 0_usize..60), 1..200),
    ) {
        let film = film(&blocks);
        let (most, lasts) = film.busiest(Layer::BASE, ms(4000));
        let (mut slots, mut now, mut passed) = (slots(), 0, Vec::new());
        for (wait, block) in asked {
            now += wait;
            let freed = released(&mut slots, now);
            passed.extend(freed.iter().map(|block| (now, blocks[usize::try_from(*block).unwrap()])));
            let block = block % blocks.len();
            if ask(&mut slots, &film, now, u32::try_from(block).unwrap(), now + 1000) == Some(true) {
                passed.push((now, blocks[block]));
            }
        }
        for (first, (from, _)) in passed.iter().enumerate() {
            let mut sum = 0;
            for (until, bytes) in &passed[first..] {
                sum += bytes;
                let rate = u128::from(most.0) * 3 * u128::from(until - from) / (2 * u128::from(lasts.as_millis()));
                // The rate is rounded up by less than a byte a second.
                let more = u128::from(until - from) / 1000 + 1;
                prop_assert!(u128::from(sum) <= u128::from(most.0) + rate + more);
            }
        }
    }

    #[test]
    fn who_only_plays_has_every_block_before_it_is_due(
        blocks in proptest::collection::vec(1_u64..100_000, 8..60),
    ) {
        let (film, mut slots) = (film(&blocks), slots());
        let mut started = vec![None; blocks.len()];
        // Each block is asked for as soon as the buffer has room for it.
        for tick in 0..u64::try_from(blocks.len()).unwrap() * 20 {
            let now = tick * 50;
            for block in released(&mut slots, now) {
                started[usize::try_from(block).unwrap()] = Some(now);
            }
            for block in (0..blocks.len()).filter(|_| now % 1000 == 0) {
                let due = u64::try_from(block).unwrap() * 1000;
                let enters = if now == 0 { due + 1000 <= 4000 } else { due + 1000 == now + 4000 };
                let asks = enters.then(|| ask(&mut slots, &film, now, u32::try_from(block).unwrap(), due));
                if asks == Some(Some(true)) {
                    started[block] = Some(now);
                }
            }
        }
        for (block, start) in started.iter().enumerate() {
            let due = u64::try_from(block).unwrap() * 1000;
            prop_assert!(start.is_some_and(|start| start <= due), "{block} at {start:?}");
        }
    }
}
