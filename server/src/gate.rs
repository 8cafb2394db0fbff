//! Of two things done to a layer on disk, the later order is right.
//!
//! A copy ends on one thread while its title is withdrawn on another. Each order
//! has a number; what is done to the disk is done one at a time, and not at all
//! once something with a higher number was done to the same layer.

use media::{Layer, TitleName};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The most layers that are remembered; the oldest orders are forgotten first.
const MAX: usize = 8192;

/// Orders about layers on disk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gate {
    done: Arc<Mutex<BTreeMap<(TitleName, Layer), u64>>>,
}

impl Gate {
    /// Does something on disk, unless a later order about the layer was carried
    /// out already; nothing else is done meanwhile. Blocks.
    pub(crate) fn pass<T>(
        &self,
        number: u64,
        layer: &(TitleName, Layer),
        action: impl FnOnce() -> T,
    ) -> Option<T> {
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        if done.get(layer).is_some_and(|last| *last > number) {
            return None;
        }
        done.insert(layer.clone(), number);
        if done.len() > MAX {
            let oldest = done.iter().min_by_key(|(_, number)| **number).map(|(layer, _)| layer.clone());
            oldest.map(|oldest| done.remove(&oldest));
        }
        Some(action())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;

    #[test]
    fn the_later_order_is_right_whichever_is_carried_out_first() {
        let (gate, base) = (Gate::default(), ("film".parse::<TitleName>().unwrap(), Layer::BASE));
        let enh1 = (base.0.clone(), Layer::ENH1);
        assert_eq!(gate.pass(2, &base, || "withdrawn"), Some("withdrawn"));
        assert_eq!(gate.pass(1, &base, || "copied"), None, "it ended too late");
        assert_eq!(gate.pass(1, &enh1, || "copied"), Some("copied"));
        assert_eq!(gate.pass(3, &base, || "copied again"), Some("copied again"));
        assert_eq!(gate.pass(2, &base, || "withdrawn"), None);
    }
}
