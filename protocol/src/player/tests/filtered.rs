//! What a viewer makes of a proxy that leaves layers out.

use super::rig::{A, D, E, LENGTHS, Millis as _, Rig, title};
use crate::message::Refusal;
use crate::player::*;
use crate::quality::Cause;
use media::{BitRate, Layer, Quality};

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
