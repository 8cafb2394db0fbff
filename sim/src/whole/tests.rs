#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]

use super::*;

#[test]
fn smoke() {
    let seconds: u64 = std::env::var("SECS").ok().and_then(|s| s.parse().ok()).unwrap_or(120);
    for without in Without::ALL {
        let plan = Plan { warm: Span::from_secs(seconds), counted: Span::from_secs(seconds * 2), ..Plan::new(Size::Third, without, 100, 1) };
        let before = std::time::Instant::now();
        let m = run(&plan).unwrap();
        eprintln!("{} {:?} {m:?} freeze {} ratio {} origin {}", without.name(), before.elapsed(), m.freeze(), m.ratio(), m.origin_rate());
    }
}
