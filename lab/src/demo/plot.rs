//! The story as data: what is done to the network, and when.

/// One thing that is done to a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deed {
    /// SIGKILL.
    Kill,
    /// Start it again.
    Restart,
}

/// One scene.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scene {
    /// Seconds after the first picture.
    pub(super) at_secs: u64,
    /// The node.
    pub(super) node: &'static str,
    /// What is done to it.
    pub(super) deed: Deed,
    /// What people are told.
    pub(super) says: &'static str,
}

/// The story for a title of three layers.
pub(super) const SCENES: [Scene; 4] = [
    Scene {
        at_secs: 8,
        node: "enh2-1",
        deed: Deed::Kill,
        says: "killing enh2-1, which serves Enh2: enh2-2 should take over unnoticed",
    },
    Scene {
        at_secs: 14,
        node: "enh2-2",
        deed: Deed::Kill,
        says: "killing enh2-2, the last one with Enh2: expect a step to silver, and no freeze",
    },
    Scene {
        at_secs: 22,
        node: "enh2-1",
        deed: Deed::Restart,
        says: "starting enh2-1 again: expect gold from the next block that is not on its way yet",
    },
    Scene {
        at_secs: 30,
        node: "base-1",
        deed: Deed::Kill,
        says: "killing base-1, which serves Base to both viewers: base-2 should take over unnoticed",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenes_come_in_order_and_end_before_the_programme_does() {
        assert!(SCENES.is_sorted_by_key(|scene| scene.at_secs));
        assert!(
            SCENES.iter().all(|scene| scene.at_secs + 10 < super::super::film::PROGRAMME.as_millis() / 1_000)
        );
    }
}
