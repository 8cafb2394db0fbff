//! What nodes, proxies and players tell, put into the snapshot. Pure: whoever
//! calls has set the snapshot's time.

use super::state::{NodeLife, NodeState, Snapshot, Source, Tone, Viewing};
use super::words;
use media::{Layer, Quality};
use player::PlayerEvent;
use serde_json::Value;

/// A source that sent nothing for so long serves no more: three blocks and a bit.
const STALE_MS: u64 = 3_500;
/// How often one is told that the machine is busy, at most.
const SELDOM_MS: u64 = 15_000;
/// A buffer this deep bridges a change of nodes unseen.
const BRIDGE_MS: u64 = 400;

/// A node or a proxy told something, as `--events` prints it.
pub(crate) fn node_event(page: &mut Snapshot, from: &str, event: &Value) {
    let text = |field: &str| event.get(field).and_then(Value::as_str).unwrap_or_default();
    match text("event") {
        "went" => page.fly(from, text("to"), text("agent")),
        "sent_on" => page.fly(from, text("to"), "search"),
        "detected" => detected(page, from, text("node"), event.get("silent").and_then(Value::as_u64)),
        "believed_alive" => returned(page, text("node")),
        "copying" => {
            let layer = layer_name(event.get("layer"));
            page.fly(text("from"), from, &layer);
            page.say(Tone::Plain, words::copying(from, &layer, text("from")));
        }
        "taken_over" => page.say(Tone::Good, words::steps_in(from, text("from"))),
        "filling" | "filled" => fill(page, from, event),
        "served_by" => {
            let node = upstream(event.get("node")).to_owned();
            with_node(page, from, |proxy| {
                // Who stood behind stands in front now.
                proxy.backup = proxy.backup.take().filter(|backup| *backup != node);
            });
        }
        "backup_known" => {
            let node = upstream(event.get("node")).to_owned();
            with_node(page, from, |proxy| proxy.backup = Some(node));
        }
        "stepped" => {
            let layers = |field| event.get(field).and_then(Value::as_u64).unwrap_or(0);
            let quality = |layers: u64| Quality(u8::try_from(layers).unwrap_or(0)).to_string();
            let (before, now) = (layers("from"), layers("to"));
            if now < before {
                page.say(Tone::Plain, words::filters(from, &quality(before), &quality(now)));
            }
        }
        _ => {}
    }
}

fn with_node(page: &mut Snapshot, name: &str, change: impl FnOnce(&mut NodeState)) {
    if let Some(node) = page.nodes.get_mut(name) {
        change(node);
    }
}

/// A neighbour heard nothing any more. The first to say so is believed; of a node
/// that runs it means that the machine has no time for it.
fn detected(page: &mut Snapshot, by: &str, node: &str, silent_nanos: Option<u64>) {
    let Some(state) = page.nodes.get_mut(node) else { return };
    if std::mem::replace(&mut state.thought_dead, true) {
        return;
    }
    state.mourned = matches!(state.life, NodeLife::Dead | NodeLife::Hung);
    if state.mourned {
        return page.say(Tone::Plain, words::detected(by, node, silent_nanos.unwrap_or(0) / 1_000_000));
    }
    let since = page.at_ms.saturating_sub(SELDOM_MS);
    let said =
        page.log.iter().rev().take_while(|line| line.at_ms > since).any(|line| line.text == words::BUSY);
    if !said {
        page.say(Tone::Plain, words::BUSY);
    }
}

fn returned(page: &mut Snapshot, node: &str) {
    let Some(state) = page.nodes.get_mut(node) else { return };
    state.thought_dead = false;
    if std::mem::take(&mut state.mourned) {
        page.say(Tone::Good, words::returned(node));
    }
}

/// A proxy fetches a chunk, or has fetched it.
fn fill(page: &mut Snapshot, proxy: &str, event: &Value) {
    let layer = layer_name(event.get("chunk").and_then(|chunk| chunk.get("layer")));
    let at_ms = page.at_ms;
    let Some(state) = page.nodes.get_mut(proxy) else { return };
    if let Some(from) = event.get("from") {
        let node = upstream(Some(from)).to_owned();
        if !node.is_empty() {
            state.sources.insert(layer, Source { node, at_ms });
        }
    } else if let Some(source) = state.sources.get(&layer).cloned() {
        page.fly(&source.node, proxy, &layer);
    }
}

/// The name of a proxy's source.
fn upstream(value: Option<&Value>) -> &str {
    value.and_then(|node| node.get("peer")).and_then(Value::as_str).unwrap_or_default()
}

fn layer_name(value: Option<&Value>) -> String {
    let number = value.and_then(Value::as_u64).and_then(|number| u8::try_from(number).ok());
    Layer(number.unwrap_or(0)).to_string()
}

/// A player told something.
pub(crate) fn player_event(page: &mut Snapshot, name: &str, event: &PlayerEvent) {
    let at_ms = page.at_ms;
    let Some(viewer) = page.viewers.get_mut(name) else { return };
    match event {
        PlayerEvent::Opened { node } => {
            let line = words::opened(name, viewer, node);
            page.say(Tone::Plain, line);
        }
        PlayerEvent::FirstPicture { startup_ms } => {
            viewer.viewing = Viewing::Playing;
            viewer.startup_ms = *startup_ms;
            page.say(Tone::Plain, words::first_picture(name, *startup_ms));
        }
        PlayerEvent::Transition { from, to, cause, .. } => {
            viewer.step(at_ms, to, layers(to));
            let better = layers(to) > layers(from);
            page.say(if better { Tone::Good } else { Tone::Bad }, words::stepped(name, from, to, cause));
        }
        PlayerEvent::Status { position_ms, buffer_ms, quality, .. } => {
            (viewer.position_ms, viewer.buffer_ms) = (*position_ms, *buffer_ms);
            if viewer.viewing == Viewing::Playing && viewer.shows != *quality {
                viewer.step(at_ms, quality, layers(quality));
            }
        }
        PlayerEvent::Arrived { layer, node, .. } => {
            let source = Source { node: node.clone(), at_ms };
            viewer.sources.insert(layer.clone(), source);
            page.fly(node, name, layer);
        }
        PlayerEvent::FailedOver { layer, from, to, recovered_ms, .. } => {
            viewer.sources.insert(layer.clone(), Source { node: to.clone(), at_ms });
            if *layer == Layer::BASE.to_string() {
                viewer.recovered_ms = *recovered_ms;
                viewer.backup = viewer.backup.take().filter(|backup| backup != to);
            }
            let unseen = viewer.buffer_ms > BRIDGE_MS;
            page.say(Tone::Good, words::moved(name, layer, (from, to), *recovered_ms, unseen));
        }
        PlayerEvent::Backup { node, .. } => {
            let new = viewer.backup.as_ref() != Some(node);
            viewer.backup = Some(node.clone());
            if new {
                let line = words::backup(name, viewer, node);
                page.say(Tone::Plain, line);
            }
        }
        PlayerEvent::StillServed { node, .. } => page.say(Tone::Plain, words::not_needed(name, node)),
        PlayerEvent::Repull { door, .. } => page.say(Tone::Bad, words::seeks_anew(name, door)),
        PlayerEvent::Freeze { length_ms, .. } => {
            viewer.stood(at_ms, *length_ms);
            page.say(Tone::Bad, words::froze(name, *length_ms));
        }
        PlayerEvent::SourceSilent { .. }
        | PlayerEvent::SourceLost { .. }
        | PlayerEvent::SourceUp { .. }
        | PlayerEvent::FetchFailed { .. }
        | PlayerEvent::Coming { .. }
        | PlayerEvent::NoAudioDevice
        | PlayerEvent::Ended => {}
    }
}

/// Forgets who has not sent for a while.
pub(crate) fn forget_stale(page: &mut Snapshot) {
    let fresh = |source: &Source| page.at_ms.saturating_sub(source.at_ms) < STALE_MS;
    for viewer in page.viewers.values_mut() {
        viewer.sources.retain(|_, source| fresh(source));
    }
    for node in page.nodes.values_mut() {
        node.sources.retain(|_, source| fresh(source));
    }
}

/// How many layers a quality has; 0 if there is none of this name.
pub(crate) fn layers(quality: &str) -> u8 {
    quality.parse::<Quality>().map_or(0, Quality::layers)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]
mod tests {
    use super::*;
    use crate::page::state::ViewerState;
    use serde_json::json;

    fn page() -> Snapshot {
        let mut page = Snapshot { at_ms: 10_000, ..Snapshot::default() };
        for name in ["base-3", "base-5", "enh2-1", "proxy-1"] {
            page.nodes.insert(name.into(), NodeState::default());
        }
        page.viewers
            .insert("anna".into(), ViewerState { vip: true, wants: "gold".into(), ..ViewerState::default() });
        page
    }

    fn told(page: &Snapshot) -> Vec<&str> {
        page.log.iter().map(|line| line.text.as_str()).collect()
    }

    #[test]
    fn a_death_is_told_once_and_so_is_what_comes_of_it() {
        let mut page = page();
        page.nodes.get_mut("base-3").unwrap().life = NodeLife::Dead;
        let dead = json!({"event": "detected", "node": "base-3", "silent": 412_000_000_u64});
        node_event(&mut page, "enh2-1", &dead);
        node_event(&mut page, "base-5", &dead);
        player_event(&mut page, "anna", &PlayerEvent::Backup { at_ms: 0, node: "base-5".into() });
        page.viewers.get_mut("anna").unwrap().buffer_ms = 3_100;
        let (layer, from, to) = ("base".into(), "base-3".into(), "base-5".into());
        let cause = "delivery start".into();
        player_event(
            &mut page,
            "anna",
            &PlayerEvent::FailedOver { at_ms: 9, layer, from, to, recovered_ms: 640, cause },
        );
        assert_eq!(
            told(&page),
            [
                "enh2-1 has heard nothing from base-3 for 412 ms: it is thought dead",
                "base-5 stands behind anna's Base node, with a slot kept free for this viewer alone",
                "anna's Base now comes from base-5, 640 ms after base-3's last word; no freeze",
            ]
        );
        let anna = &page.viewers["anna"];
        assert_eq!((anna.sources["base"].node.as_str(), &anna.backup), ("base-5", &None));
        assert!(page.nodes["base-3"].thought_dead);
        node_event(&mut page, "base-5", &json!({"event": "believed_alive", "node": "base-3"}));
        assert!(!page.nodes["base-3"].thought_dead);
    }

    #[test]
    fn that_nodes_which_run_miss_each_other_is_told_seldom() {
        let mut page = page();
        for (at_ms, node) in [(10_000, "base-3"), (10_100, "base-5"), (26_000, "enh2-1")] {
            page.at_ms = at_ms;
            node_event(&mut page, "proxy-1", &json!({"event": "detected", "node": node}));
            node_event(&mut page, "proxy-1", &json!({"event": "believed_alive", "node": node}));
        }
        assert_eq!(told(&page), [words::BUSY, words::BUSY]);
    }

    #[test]
    fn chunks_say_who_serves_until_they_stay_away() {
        let mut page = page();
        let came = PlayerEvent::Arrived { at_ms: 1, layer: "enh2".into(), node: "enh2-1".into(), bytes: 9 };
        player_event(&mut page, "anna", &came);
        let chunk = json!({"title": "film", "block": 3, "layer": 1});
        let from = json!({"peer": "base-5", "address": "127.0.0.1:1"});
        node_event(&mut page, "proxy-1", &json!({"event": "filling", "chunk": chunk, "from": from}));
        node_event(&mut page, "proxy-1", &json!({"event": "filled", "chunk": chunk}));
        let flew: Vec<_> = page.flights.iter().map(|f| [&*f.from, &*f.to, &*f.what]).collect();
        assert_eq!(flew, [["enh2-1", "anna", "enh2"], ["base-5", "proxy-1", "enh1"]]);
        page.at_ms += STALE_MS - 1;
        forget_stale(&mut page);
        assert_eq!(page.viewers["anna"].sources["enh2"].node, "enh2-1");
        page.at_ms += 1;
        forget_stale(&mut page);
        assert!(page.viewers["anna"].sources.is_empty() && page.nodes["proxy-1"].sources.is_empty());
    }

    #[test]
    fn the_strip_holds_each_step_and_each_freeze() {
        let mut page = page();
        let status = |quality: &str| PlayerEvent::Status {
            at_ms: 0,
            position_ms: 5,
            buffer_ms: 4_000,
            quality: quality.into(),
        };
        player_event(&mut page, "anna", &PlayerEvent::FirstPicture { startup_ms: 300 });
        player_event(&mut page, "anna", &status("gold"));
        player_event(&mut page, "anna", &status("gold"));
        let (from, to, cause) = ("gold".into(), "silver".into(), "failure".into());
        page.at_ms = 12_000;
        player_event(&mut page, "anna", &PlayerEvent::Transition { at_ms: 1, from, to, cause });
        player_event(&mut page, "anna", &PlayerEvent::Freeze { at_ms: 2, length_ms: 120 });
        let anna = &page.viewers["anna"];
        assert_eq!(anna.steps, [(10_000, 3), (12_000, 2)]);
        assert_eq!((anna.freezes, anna.frozen_ms, anna.stops[0]), (1, 120, (12_000, 120)));
    }

    #[test]
    fn nonsense_changes_nothing() {
        let mut page = page();
        let before = page.clone();
        for event in [json!(7), json!({}), json!({"event": 3}), json!({"event": "filled"})] {
            node_event(&mut page, "base-3", &event);
        }
        player_event(&mut page, "nobody", &PlayerEvent::FirstPicture { startup_ms: 1 });
        assert_eq!(page, before);
    }
}
