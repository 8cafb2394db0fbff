//! What a viewer makes of a proxy that leaves layers out.

use super::rig::{A, D, E, LENGTHS, Millis as _, Rig, title};
use crate::message::Refusal;
use crate::player::*;
use crate::quality::Cause;
use media::{BitRate, Layer, Quality};

const GOLD: u64 = (LENGTHS[0] + LENGTHS[1] + LENGTHS[2]) * 8;
const LEFT_OUT: FetchFailure = FetchFailure::Refused(Refusal::Filtered);

#[test]
fn a_layer_that_is_left_out_is_no_failure_and_is_asked_of_nobody_else() {
    let mut rig = Rig::new(1);
    rig.put(Input::Filters { source: A });
    rig.node(D).failing = Some(LEFT_OUT);
    rig.run(10.s());
    assert!(rig.fed().iter().all(|layers| *layers == 2), "{:?}", rig.fed());
    assert_eq!(rig.count(|event| matches!(event, Event::FetchFailed { .. } | Event::FailedOver { .. })), 0);
    assert_eq!(rig.node(E).served, 0);
    let asked =
        rig.outputs.iter().filter(|(_, output)| matches!(output, Output::Request { layer: Layer::ENH2, .. }));
    // Once for each block in reach, and it goes on asking: the proxy decides.
    assert!((10..=15).contains(&asked.count()));
    // It is given again.
    rig.node(D).failing = None;
    rig.run(8.s());
    let [(_, from, to, cause)] = rig.transitions()[..] else { panic!("{:?}", rig.transitions()) };
    assert_eq!((from, to, cause), (Quality::SILVER, Quality::GOLD, Cause::Headroom));
    rig.node(D).failing = Some(LEFT_OUT);
    rig.run(8.s());
    let (_, from, to, cause) = rig.transitions()[1];
    assert_eq!((from, to, cause), (Quality::GOLD, Quality::SILVER, Cause::Rate));
}

#[test]
fn behind_a_proxy_the_player_does_not_step_by_itself() {
    // Half of what gold needs, and a proxy that does not care.
    let narrow = |filters| {
        let mut rig = Rig::with(1, title(60, &LENGTHS), BitRate(900_000), Quality::GOLD);
        if filters {
            rig.put(Input::Filters { source: A });
        }
        rig.run(20.s());
        (rig.player.target(), rig.pipe.frozen)
    };
    assert_eq!(narrow(true), (Quality::GOLD, 0.ms()), "Base comes first all the same");
    assert!(narrow(false).0 < Quality::GOLD);
}

#[test]
fn a_proxy_dies_and_gold_goes_on_at_another_since_the_buffer_is_deeper_than_the_search() {
    for (link, deepest) in [(50_000_000, 30), (GOLD * 13 / 10, 24)] {
        let all = |proxy| vec![vec![proxy]; 3];
        let wide = BitRate(link);
        let mut rig = Rig::sources(1, title(60, &LENGTHS), wide, Quality::GOLD, all(A));
        rig.put(Input::Filters { source: A });
        rig.run(20_150.ms());
        assert!(rig.fed()[4..].iter().all(|layers| *layers == 3), "{:?}", rig.fed());
        // Another proxy is found a moment after the verdict.
        rig.kill(A);
        rig.run(450.ms());
        let service = Service { home: Some(E), epoch: 2, ..Service::default() };
        rig.run(500.ms());
        rig.put(Input::Found(Found { sources: all(E), service }));
        rig.put(Input::Filters { source: E });
        rig.run(15.s());
        let (fed, facts) = (rig.fed(), format!("{link}: {:?}, {:?}", rig.fed(), rig.transitions()));
        assert_eq!((rig.source_of(Layer::BASE), rig.pipe.frozen), (Some(E), 0.ms()), "{facts}");
        assert!(fed.len() > deepest && fed[4..].iter().all(|layers| *layers == 3), "{facts}");
    }
}
