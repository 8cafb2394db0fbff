//! The log in plain words: one function for each thing that is said.

use super::state::{Condition, ViewerState};

/// Nodes that run do not hear each other in time.
pub(crate) const BUSY: &str =
    "nodes that run miss each other's signals: this machine has no time for all of them";

/// What a layer is called in a sentence.
fn layer(name: &str) -> String {
    let mut letters = name.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

pub(crate) fn killed(node: &str) -> String {
    format!("{node} was killed, as by a power cut")
}

pub(crate) fn hung(node: &str) -> String {
    format!("{node} was stopped where it stood: it hangs, and says nothing")
}

pub(crate) fn revived(node: &str) -> String {
    format!("{node} runs again")
}

pub(crate) fn emptied(node: &str) -> String {
    format!("{node} was started again with an empty disk")
}

pub(crate) fn detected(by: &str, node: &str, silent_ms: u64) -> String {
    format!("{by} has heard nothing from {node} for {silent_ms} ms: it is thought dead")
}

pub(crate) fn returned(node: &str) -> String {
    format!("the others hear {node} again")
}

pub(crate) fn copying(node: &str, what: &str, from: &str) -> String {
    format!("{node} copies {} from {from}", layer(what))
}

pub(crate) fn steps_in(node: &str, from: &str) -> String {
    format!("{node} steps in for {from}")
}

pub(crate) fn filters(proxy: &str, before: &str, now: &str) -> String {
    format!("{proxy} now gives one of its viewers {now} instead of {before}: the line carries no more")
}

pub(crate) fn opened(name: &str, viewer: &ViewerState, node: &str) -> String {
    let class = if viewer.vip { "a VIP" } else { "a normal viewer" };
    format!("{name}, {class}, wants {} and is served by {node}", viewer.wants)
}

pub(crate) fn first_picture(name: &str, startup_ms: u64) -> String {
    format!("{name} sees the first picture after {startup_ms} ms")
}

pub(crate) fn stepped(name: &str, from: &str, to: &str, cause: &str) -> String {
    let why = match cause {
        "failure" => "no node that runs has the layer",
        "rate" => "the line carries no more",
        "user" => "as asked for",
        "recovered" => "the layer is back",
        "headroom" => "the line carries more",
        "decoder" => "a layer came too late to be combined",
        other => other,
    };
    format!("{name}'s picture goes from {from} to {to}: {why}")
}

pub(crate) fn moved(
    name: &str,
    what: &str,
    (from, to): (&str, &str),
    recovered_ms: u64,
    unseen: bool,
) -> String {
    let seen = if unseen { "no freeze" } else { "with little in the buffer" };
    format!(
        "{name}'s {} now comes from {to}, {recovered_ms} ms after {from}'s last word; {seen}",
        layer(what)
    )
}

pub(crate) fn backup(name: &str, viewer: &ViewerState, node: &str) -> String {
    let how = if viewer.vip { ", with a slot kept free for this viewer alone" } else { "" };
    format!("{node} stands behind {name}'s Base node{how}")
}

pub(crate) fn not_needed(name: &str, node: &str) -> String {
    format!("{node} would take over {name}, but is not needed: the old node still delivers")
}

pub(crate) fn seeks_anew(name: &str, door: &str) -> String {
    format!("nobody serves {name} any more: service is sought at {door}")
}

pub(crate) fn froze(name: &str, length_ms: u64) -> String {
    format!("{name}'s picture stood still for {length_ms} ms")
}

pub(crate) fn over(name: &str, why: &str) -> String {
    format!("{name} cannot go on: {why}")
}

pub(crate) fn left(name: &str) -> String {
    format!("{name} has left")
}

pub(crate) fn promised(name: &str, vip: bool) -> String {
    let class = if vip { "a VIP" } else { "a normal viewer" };
    format!("{name} shows a new token and is {class} from now on")
}

pub(crate) fn link(one: &str, other: &str, condition: Condition) -> String {
    let how = match condition {
        Condition::Open => "is as it was",
        Condition::Slow => "is long now: everything on it comes 150 ms later",
        Condition::Narrow => "is narrow now: too narrow for every layer",
        Condition::Cut => "is cut",
    };
    format!("the link between {one} and {other} {how}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_names_in_a_sentence() {
        assert_eq!(copying("base-8", "base", "origin"), "base-8 copies Base from origin");
        assert_eq!(
            stepped("anna", "gold", "silver", "failure"),
            "anna's picture goes from gold to silver: no node that runs has the layer"
        );
    }
}
