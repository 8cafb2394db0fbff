#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]

use super::audience::{Audience, LAYERS, titles};
use super::seat::Seat;
use super::*;
use crate::rng::Rng;
use crate::topology::Topology;
use media::{Layer, Quality, Time, TitleClass};

/// Four minutes of a third of the network, in the second half of which two nodes die.
fn short(without: Without) -> Plan {
    let half = Span::from_secs(120);
    Plan {
        warm: half,
        counted: half,
        failure_every: Span::from_secs(60),
        ..Plan::new(Size::Third, without, 100, 1)
    }
}

fn audience(plan: &Plan) -> Audience {
    let topology = Topology::generate(plan.size.shape(), &mut Rng::stream(plan.seed, 1)).unwrap();
    Audience::of(plan, &topology)
}

#[test]
fn each_part_leaves_its_trace_and_what_is_left_out_leaves_none() {
    let all = run(&short(Without::Nothing)).unwrap();
    assert_eq!(all, run(&short(Without::Nothing)).unwrap(), "the same plan, the same measures");
    let placement = all.placement();
    assert!(
        (placement - 1.0 / 3.0).abs() < 1e-12,
        "each node holds its level's layer of each title: {placement}"
    );
    assert!(all.from_peers > 0 && all.from_nodes > 0 && all.normals > 0 && all.vips > 0, "{all:?}");
    assert!(all.received <= all.wanted && all.received * 10 > all.wanted * 9, "{all:?}");
    let alone = run(&short(Without::Cooperation)).unwrap();
    assert_eq!(alone.from_peers, 0);
    assert!(alone.from_nodes > all.from_nodes, "{alone:?}");
    let bare = run(&short(Without::Allocation)).unwrap();
    assert!(bare.messages < all.messages, "no agent looks for a backup: {bare:?}");
    // The same people lose their nodes, whatever is left out, as far as they are served.
    assert!(bare.normals + bare.vips > 0 && bare.asked == all.asked, "{bare:?}");
    let open = run(&short(Without::Thresholds)).unwrap();
    assert!(open.refused[2] <= all.refused[2], "{open:?}");
}

#[test]
fn the_audience_is_the_same_whatever_is_left_out_and_as_large_as_the_load() {
    let plan = |without| Plan::new(Size::Whole, without, 100, 3);
    let (one, other) = (audience(&plan(Without::Nothing)), audience(&plan(Without::Prefetch)));
    assert_eq!((&one.guests, &one.faults), (&other.guests, &other.faults));
    let present = one.guests.iter().filter(|guest| guest.from > 0).count();
    assert!((1_750..=1_800).contains(&present), "{present} are in the middle when it begins");
    let fresh: Vec<_> = one.guests.iter().filter(|guest| guest.from == 0).collect();
    let titles = titles();
    assert_eq!(titles.len(), 30);
    let share = |test: &dyn Fn(&super::audience::Guest) -> bool| {
        fresh.iter().filter(|guest| test(guest)).count() * 100 / fresh.len()
    };
    let class = |class| share(&|guest| titles[guest.wish.title].facts.class == class);
    let classes = TitleClass::ALL.map(class);
    assert!((42..=48).contains(&classes[0]) && (17..=23).contains(&classes[2]), "{classes:?}");
    assert!((17..=23).contains(&share(&|guest| guest.arrival.sla == crate::workload::Sla::Vip)));
    assert!((57..=63).contains(&share(&|guest| guest.wish.quality == Quality::BRONZE)));
    // Three deaths in half an hour, each put right.
    assert_eq!(one.faults.len(), 6);
    assert!(one.faults.iter().all(|(at, _)| *at >= Time::ZERO + plan(Without::Nothing).warm));
}

#[test]
fn a_slot_gives_a_buffer_at_once_and_then_half_as_much_again_as_is_shown() {
    let guest = audience(&short(Without::Nothing)).guests[0];
    let mut seat = Seat::new(&guest, 0, u32::MAX);
    let (now, block) = (Time::ZERO + Span::from_secs(100), super::audience::block_size());
    let slot = seat.slot_mut(Layer::BASE).unwrap();
    let mut ready = Vec::new();
    for _ in 0..19 {
        ready.push((slot.ready(now) - now).as_secs_f64());
        slot.take(now, block);
    }
    assert_eq!(ready[..16], [0.0; 16]);
    for (wait, blocks) in ready[16..].iter().zip(1..) {
        let expected = f64::from(blocks) / 1.5;
        assert!((wait - expected).abs() < 1e-6, "one and a half blocks a second: {ready:?}");
    }
    assert_eq!(usize::from(LAYERS), seat.slots.len());
}
