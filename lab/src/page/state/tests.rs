#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]

use super::*;
use proptest::prelude::*;

fn some() -> Snapshot {
    let node = |level: &str| NodeState { level: level.into(), ..NodeState::default() };
    let nodes = [("base-1", "base"), ("enh1-1", "enh1")].map(|(name, level)| (name.into(), node(level)));
    Snapshot { run: "one".into(), nodes: nodes.into(), ..Snapshot::default() }
}

#[test]
fn a_change_names_only_what_changed_and_what_is_gone() {
    let mut now = some();
    let before = now.clone();
    now.nodes.get_mut("base-1").unwrap().life = NodeLife::Dead;
    now.nodes.remove("enh1-1");
    now.say(Tone::Deed, "base-1 was killed");
    let delta = now.since(&before);
    assert_eq!(delta.nodes.keys().collect::<Vec<_>>(), ["base-1", "enh1-1"]);
    assert_eq!(delta.nodes["enh1-1"], None);
    assert_eq!((delta.log.len(), delta.viewers.len(), delta.tour), (1, 0, None));
}

#[test]
fn another_run_is_told_whole() {
    let other = Snapshot { run: "two".into(), ..some() };
    assert_eq!(other.since(&some()).whole.as_deref(), Some(&other));
    assert_eq!(other.since(&Snapshot::default()).whole.as_deref(), Some(&other));
}

#[test]
fn the_log_and_the_strip_are_bounded() {
    let mut now = some();
    (0..500).for_each(|n| now.say(Tone::Plain, n.to_string()));
    (0..500).for_each(|_| now.fly("a", "b", "search"));
    assert_eq!((now.log.len(), now.flights.len()), (MAX_LINES, MAX_FLIGHTS));
    assert_eq!(now.log.back().unwrap().number, 500);
    let mut viewer = ViewerState::default();
    (0..500).for_each(|n| viewer.step(n, "gold", u8::try_from(n % 3).unwrap()));
    viewer.step(600, "bronze", 1);
    viewer.step(601, "bronze", 1);
    assert_eq!((viewer.steps.len(), viewer.steps.back().unwrap().0), (MAX_STEPS, 499));
}

#[test]
fn a_link_has_one_name_from_both_ends() {
    assert_eq!(link_name("base-1", "anna"), link_name("anna", "base-1"));
}

proptest! {
    /// Whoever applies every change, or some of them taken together, has the whole.
    #[test]
    fn changes_lead_from_one_snapshot_to_the_next(
        deeds in prop::collection::vec((0_u8..6, 0_u8..5), 0..60),
        looks in prop::collection::vec(any::<bool>(), 60),
    ) {
        let mut now = some();
        let mut page = Snapshot::default();
        for ((what, which), looks) in deeds.into_iter().zip(looks) {
            now.at_ms += 7;
            let name = format!("n{which}");
            match what {
                0 => { now.nodes.entry(name).or_default().holds ^= true; }
                1 => { now.viewers.remove(&name); }
                2 => { now.viewers.entry(name).or_default().stood(now.at_ms, 3); }
                3 => now.fly(&name, "origin", "search"),
                4 => now.say(Tone::Plain, name),
                _ => { now.tour.step = which; now.links.remove(&name); }
            }
            if looks {
                page.apply(now.since(&page));
                prop_assert_eq!(&page, &now);
            }
        }
    }
}
