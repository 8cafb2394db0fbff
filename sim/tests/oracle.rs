//! Agent by agent and state by state: where searches do not overlap, both give
//! the same network, user by user.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]

use protocol::node::autonomy::{EntryKind, UserId};
use sim::eval::continuity::{self, Plan, Variant};
use sim::eval::state_level::{Backup, Placed, Scheme, Sizes, State};
use sim::{Shape, SiteId, World};

/// Where every user ended up, as the machines see it.
fn placed(world: &World) -> Vec<(Option<usize>, Option<Backup>)> {
    let site = |peer| world.topology().site(peer).map(SiteId::index).unwrap();
    let of = |user: usize| {
        let viewer = &world.viewers()[user];
        let machine = world.machine_of(viewer.primary?)?;
        let record = machine.record(UserId(u64::try_from(user).unwrap()))?;
        record.backup.map(|backup| match backup.kind {
            EntryKind::VipDual => Backup::Slot(site(backup.node)),
            _ => Backup::Row(site(backup.node)),
        })
    };
    let users = 0..world.viewers().len();
    users.map(|user| (world.viewers()[user].primary.map(SiteId::index), of(user))).collect()
}

fn by_state(plan: &Plan) -> State {
    let (topology, _, arrivals) = plan.draw().unwrap();
    State::build(&topology, Sizes::PAPER, Scheme::PAPER, &arrivals)
}

fn compare(plan: &Plan) {
    let world = continuity::stable(plan, Variant::With.config()).unwrap();
    let state = by_state(plan);
    let agents = placed(&world);
    let states: Vec<_> =
        state.users().iter().map(|Placed { primary, backup, .. }| (*primary, *backup)).collect();
    let differ: Vec<usize> = (0..states.len()).filter(|user| agents[*user] != states[*user]).collect();
    assert!(
        differ.is_empty(),
        "{} of {} users differ, the first is {}: agents {:?}, state {:?}",
        differ.len(),
        states.len(),
        differ[0],
        agents[differ[0]],
        states[differ[0]]
    );
    let outcome = continuity::fail_each(world, Variant::With, plan.seed);
    assert_eq!(outcome.continuity, state.continuity());
}

#[test]
fn both_give_the_same_network_while_nobody_has_to_leave() {
    for seed in 1..=2 {
        compare(&Plan::paper(400, 200, seed));
    }
}

#[test]
fn both_give_the_same_small_network() {
    for seed in 1..=20 {
        let shape = Shape { base: 10, enh1: 5, enh2: 2, base_links: 2, enh1_links: 1 };
        compare(&Plan { shape, users: 100, vip_permille: 300, seed });
    }
}
