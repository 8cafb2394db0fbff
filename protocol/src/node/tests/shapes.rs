//! Networks of other shapes: fewer copies than nodes, and levels without a node.

use super::rig::{Rig, ms};
use crate::node::autonomy::{Level, UserId};
use crate::node::*;

const VIEWER: UserId = UserId(1);

#[test]
fn only_who_has_the_title_stands_behind_its_viewer() {
    let mut rig = Rig::new();
    rig.start("origin", Level::Origin, |config| config.publish = Some(2));
    rig.join("enh2-1", Level::ENH2);
    rig.join("enh1-1", Level::ENH1);
    rig.run(ms(2_000));
    for number in 1..=8 {
        rig.join(&format!("base-{number}"), Level::BASE);
        rig.run(ms(100));
    }
    rig.run(ms(20_000));
    let holders: Vec<String> = (1..=8)
        .map(|number| format!("base-{number}"))
        .filter(|name| rig.node(name).autonomy.stores(&"film".parse().unwrap(), Layer::BASE))
        .collect();
    assert_eq!(holders.len(), 2, "{holders:?}");
    rig.seek(VIEWER, "base-8");
    rig.run(ms(3_000));
    let (base, backup) = (rig.base_of(VIEWER).to_owned(), rig.backup_of(VIEWER).to_owned());
    assert_ne!(base, backup);
    assert!(holders.contains(&base) && holders.contains(&backup), "{base} {backup} of {holders:?}");
}

#[test]
fn without_a_level_titles_reach_the_next_one_and_viewers_have_a_backup_all_the_same() {
    let mut rig = Rig::new();
    rig.start("origin", Level::Origin, |config| config.publish = Some(0));
    rig.join("enh2-1", Level::ENH2);
    for name in ["base-1", "base-2", "base-3"] {
        rig.join(name, Level::BASE);
    }
    rig.run(ms(15_000));
    for name in ["base-1", "base-2", "base-3"] {
        assert!(rig.node(name).autonomy.stores(&"film".parse().unwrap(), Layer::BASE), "{name}");
    }
    rig.seek(VIEWER, "base-1");
    rig.run(ms(3_000));
    assert_eq!(rig.base_of(VIEWER), "base-1");
    assert!(rig.backup_of(VIEWER).starts_with("base-"), "{}", rig.backup_of(VIEWER));
    let backup = rig.backup_of(VIEWER).to_owned();
    rig.kill("base-1");
    rig.run(ms(2_000));
    assert_eq!(rig.base_of(VIEWER), backup);
}
