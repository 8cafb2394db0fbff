use super::*;
use crate::topology::Shape;
use crate::workload::Workload;

/// A small network in which some users are served and backed up.
fn world(config: WorldConfig, users: u32, seed: u64) -> World {
    let topology = Arc::new(Topology::generate(Shape::DEMO, &mut Rng::stream(seed, 1)).unwrap());
    let workload = Workload { spacing: Span::from_secs(2), ..Workload::new(users, 300) };
    let arrivals = workload.arrivals(&topology, &mut Rng::stream(seed, 2));
    let mut world = World::new(topology, config, seed);
    world.expect(&arrivals);
    world.run_until(workload.full_at());
    world.run(Span::from_secs(10));
    world
}

fn paper() -> WorldConfig {
    WorldConfig { keep_log: true, ..WorldConfig::paper() }
}

fn trace(world: &World) -> Vec<u8> {
    let lines =
        world.log().iter().map(|line| format!("{} {} {:?}\n", line.at.as_nanos(), line.site.0, line.event));
    lines.collect::<String>().into_bytes()
}

#[test]
fn the_same_seed_gives_the_same_trace_byte_for_byte() {
    let run = |seed| {
        let mut config = WorldConfig { keep_log: true, ..WorldConfig::production() };
        config.agent_loss = 0.1;
        config.links.loss = 0.01;
        let mut world = world(config, 30, seed);
        world.strike(Fault::Kill(SiteId(2)));
        world.run(Span::from_secs(20));
        (trace(&world), *world.stats(), world.happened())
    };
    let (one, other) = (run(5), run(5));
    assert!(one.0.len() > 5_000, "the trace is that of a run");
    assert_eq!(one, other);
    assert_ne!(one.0, run(6).0);
}

#[test]
fn a_fork_goes_its_own_way_and_leaves_the_original_as_it_was() {
    let original = world(paper(), 30, 1);
    let mut fork = original.clone();
    fork.strike(Fault::Kill(SiteId(0)));
    fork.run(Span::from_secs(8));
    assert!(fork.machine_of(SiteId(0)).is_none() && original.machine_of(SiteId(0)).is_some());
    let mut untouched = original.clone();
    untouched.run(Span::from_secs(8));
    assert!(untouched.viewers().iter().all(|viewer| viewer.outages.is_empty()));
    assert!(fork.viewers().iter().any(|viewer| !viewer.outages.is_empty()));
}

#[test]
fn whoever_loses_its_node_gets_data_from_its_backup_and_a_new_backup() {
    let mut world = world(paper(), 30, 1);
    let dead = world.viewers()[0].primary.unwrap();
    let lost: Vec<(usize, Option<SiteId>)> = (0..30)
        .filter(|user| world.viewers()[*user].primary == Some(dead))
        .map(|user| (user, world.viewers()[user].backup))
        .collect();
    world.strike(Fault::Kill(dead));
    let killed = world.now();
    world.run(Span::from_secs(40));
    for (user, backup) in lost {
        let viewer = &world.viewers()[user];
        let (at, from) = viewer.outages[0].resumed.unwrap();
        assert_eq!(Some(from), backup, "user {user} goes where it was told to");
        assert!(at - killed <= world.config().autonomy.recovery_bound(8));
        assert!(viewer.backup.is_some_and(|new| new != from && new != dead));
    }
}

#[test]
fn a_node_that_stood_still_gives_up_who_was_taken_over() {
    let mut config = WorldConfig { keep_log: true, ..WorldConfig::production() };
    config.autonomy.assume_stored = true;
    let mut world = world(config, 30, 3);
    let still = world.viewers()[0].primary.unwrap();
    world.strike(Fault::Hang(still));
    world.run(Span::from_secs(5));
    assert_ne!(world.viewers()[0].primary, Some(still));
    world.strike(Fault::Resume(still));
    world.run(Span::from_secs(12));
    let senders: Vec<SiteId> = world.viewers()[0].senders.iter().map(|(site, _)| *site).collect();
    assert_eq!(senders, [world.viewers()[0].primary.unwrap()]);
}

#[test]
fn nobody_with_nothing_behind_it_survives_its_node() {
    // Without reservations and without pulling again the user's information dies with its node.
    let config = WorldConfig { normals_search: false, ..paper() };
    let mut world = world(config, 30, 1);
    let normal = |viewer: &&Viewer| viewer.arrival.sla == crate::workload::Sla::Normal;
    let dead = world.viewers().iter().find(normal).unwrap().primary.unwrap();
    world.strike(Fault::Kill(dead));
    world.run(Span::from_secs(60));
    for viewer in world.viewers().iter().filter(|viewer| viewer.outages.iter().any(|o| o.lost == dead)) {
        assert_eq!(viewer.outages[0].resumed.is_some(), viewer.arrival.sla == crate::workload::Sla::Vip);
    }
}
