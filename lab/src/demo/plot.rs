//! The story as data: what is done to the network, and when. Nobody knows
//! beforehand which node will serve; the scenes name nodes by their part.

use media::Layer;

/// One thing that is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deed {
    /// SIGKILL for the node that serves this layer to the gold viewer.
    KillServing(Layer),
    /// SIGKILL for every node of this layer's level that still runs.
    KillRest(Layer),
    /// Start the first node again that was killed.
    RestartFirst,
}

/// One scene.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scene {
    /// Seconds after the first picture.
    pub(super) at_secs: u64,
    /// What is done.
    pub(super) deed: Deed,
    /// What people are told, after the names of the nodes.
    pub(super) says: &'static str,
}

/// The story for a title of three layers.
pub(super) const SCENES: [Scene; 4] = [
    Scene {
        at_secs: 8,
        deed: Deed::KillServing(Layer::ENH2),
        says: "killed, which served Enh2: another one should take over unnoticed",
    },
    Scene {
        at_secs: 14,
        deed: Deed::KillRest(Layer::ENH2),
        says: "killed, the last with Enh2: expect a step to silver, and no freeze",
    },
    Scene {
        at_secs: 22,
        deed: Deed::RestartFirst,
        says: "started again: expect gold from the next block that is not on its way yet",
    },
    Scene {
        at_secs: 30,
        deed: Deed::KillServing(Layer::BASE),
        says: "killed, which served Base: the hot standby should take over unnoticed",
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
