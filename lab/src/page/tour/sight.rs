//! What the steps of the tour look for in a snapshot. Pure.

use crate::page::state::{NodeLife, NodeState, Snapshot, ViewerState, Viewing};

/// The viewer that the tour follows: a VIP who wants gold and is behind no proxy.
pub(super) const GUEST: &str = "anna";

/// Who sends this viewer a layer.
pub(super) fn source<'a>(page: &'a Snapshot, viewer: &str, layer: &str) -> Option<&'a str> {
    page.viewers.get(viewer)?.sources.get(layer).map(|source| source.node.as_str())
}

/// A viewer, if pictures are shown to it.
pub(super) fn playing<'a>(page: &'a Snapshot, viewer: &str) -> Option<&'a ViewerState> {
    page.viewers.get(viewer).filter(|viewer| viewer.viewing == Viewing::Playing)
}

/// Whether a viewer has everything: its quality, depth, and somebody behind it.
pub(super) fn is_safe(page: &Snapshot, viewer: &str, deep_ms: u64) -> bool {
    playing(page, viewer).is_some_and(|viewer| {
        let top = page.film.layers.last();
        let direct = viewer.proxy.is_none();
        let served = top.is_none_or(|top| viewer.wants != "gold" || viewer.sources.contains_key(top));
        viewer.buffer_ms >= deep_ms && served && (!direct || viewer.backup.is_some())
    })
}

/// Nodes of a level that run, by name.
pub(super) fn running<'a>(page: &'a Snapshot, level: &str) -> Vec<&'a str> {
    let runs = |node: &NodeState| node.level == level && node.life == NodeLife::Up && !node.thought_dead;
    page.nodes.iter().filter(|(_, node)| runs(node)).map(|(name, _)| name.as_str()).collect()
}

/// Whether everybody runs, and everybody knows.
pub(super) fn is_whole(page: &Snapshot) -> bool {
    page.nodes.values().all(|node| node.life == NodeLife::Up && !node.thought_dead)
}

/// A Base node that nobody needs now: the last by name.
pub(super) fn spare(page: &Snapshot) -> Option<&str> {
    let viewers = page.viewers.values().map(|viewer| (&viewer.sources, &viewer.backup));
    let proxies = page.nodes.values().map(|node| (&node.sources, &node.backup));
    let needed: Vec<&str> = viewers
        .chain(proxies)
        .flat_map(|(sources, backup)| sources.values().map(|source| &source.node).chain(backup))
        .map(String::as_str)
        .collect();
    running(page, "base").into_iter().rev().find(|name| !needed.contains(name))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]
mod tests {
    use super::*;
    use crate::page::state::Source;

    fn page() -> Snapshot {
        let mut page = Snapshot::default();
        page.film.layers = ["base", "enh1", "enh2"].map(String::from).into();
        for number in 1..=4 {
            let node = NodeState { level: "base".into(), life: NodeLife::Up, ..NodeState::default() };
            page.nodes.insert(format!("base-{number}"), node);
        }
        let mut anna = ViewerState {
            wants: "gold".into(),
            viewing: Viewing::Playing,
            buffer_ms: 3_000,
            backup: Some("base-4".into()),
            ..ViewerState::default()
        };
        anna.sources.insert("base".into(), Source { node: "base-3".into(), at_ms: 0 });
        page.viewers.insert(GUEST.into(), anna);
        page
    }

    #[test]
    fn a_spare_node_neither_serves_nor_stands_behind() {
        let mut page = page();
        assert_eq!(spare(&page), Some("base-2"));
        page.nodes.get_mut("base-2").unwrap().life = NodeLife::Dead;
        assert_eq!(spare(&page), Some("base-1"));
        page.nodes.get_mut("base-1").unwrap().thought_dead = true;
        assert_eq!((spare(&page), is_whole(&page)), (None, false));
    }

    #[test]
    fn who_wants_gold_is_safe_with_every_layer_a_backup_and_a_buffer() {
        let mut page = page();
        assert_eq!(source(&page, GUEST, "base"), Some("base-3"));
        assert!(!is_safe(&page, GUEST, 2_500), "no gold yet");
        let top = Source { node: "enh2-1".into(), at_ms: 0 };
        page.viewers.get_mut(GUEST).unwrap().sources.insert("enh2".into(), top);
        assert!(is_safe(&page, GUEST, 2_500) && !is_safe(&page, GUEST, 3_001));
        page.viewers.get_mut(GUEST).unwrap().backup = None;
        assert!(!is_safe(&page, GUEST, 2_500));
    }
}
