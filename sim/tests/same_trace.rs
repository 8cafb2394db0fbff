//! Same seed, same trace, byte for byte: every event and every message count of
//! whole chaotic runs.
#![allow(clippy::unwrap_used, reason = "tests state exact values")]

use media::{Span, Time};
use sim::chaos;

/// FNV-1a over all that was told and sent, looked at a hundred times on the way.
fn trace(seed: u64) -> (u64, u64) {
    let (mut world, faults) = chaos::prepare(seed, true).unwrap();
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut take = |text: String| {
        for byte in text.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    take(format!("{faults:?}"));
    while world.now() < Time::ZERO + Span::from_secs(85) {
        world.run(Span::from_millis(850));
        for line in world.log() {
            take(format!("{} {} {:?}\n", line.at.as_nanos(), line.site.0, line.event));
        }
        world.clear_log();
        take(format!("{:?} {}", world.stats(), world.in_flight()));
    }
    take(format!("{:?}", world.viewers()));
    (hash, world.happened())
}

#[test]
fn a_seed_decides_every_event_and_every_message() {
    for seed in 0..20 {
        let (one, other) = (trace(seed), trace(seed));
        assert_eq!(one, other, "seed {seed}");
        assert!(one.1 > 10_000, "seed {seed} is a whole run: {} things", one.1);
    }
    assert_ne!(trace(0).0, trace(1).0);
}
