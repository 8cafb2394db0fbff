//! What has to go when a block is to be kept and space is short
//! (Wakamiya et al., 3.4). First a plan; it is carried out only if it frees
//! enough, so that nothing is lost for a block that is not kept after all.
//!
//! Order: titles that nobody watches before all others; within a title from the
//! end backwards, past the windows of local clients, what peers have marked, and
//! the head. A victim is first lowered to what those behind it want, then
//! discarded. If that is not enough the far ends of the windows go too, then the
//! heads of titles that nobody watches; and then the new block is not kept.

use super::block_table::BlockTable;
use super::cache_table::CacheTable;
use super::clients::{ClientRow, Clients};
use super::cooperation::{CooperationConfig, Floor};
use media::Quality;

/// A title as replacement sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shelf<'a> {
    /// The title by its place.
    pub(super) title: usize,
    pub(super) table: &'a BlockTable,
    pub(super) cache: &'a CacheTable,
    pub(super) clients: &'a Clients,
}

/// What is done to a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Victim {
    pub(super) title: usize,
    pub(super) block: u32,
    /// What stays of it.
    pub(super) quality: Quality,
}

/// Who may become a victim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Round {
    /// Blocks outside of everything that is protected.
    Outside,
    /// The last P blocks of the clients' inquiry windows.
    WindowEnds,
    /// The heads of titles.
    Heads,
}

/// Frees `short` bytes: what is to be lowered or discarded, in this order; or
/// nothing if that cannot be done. `spared` blocks are in use by something else,
/// the new block among them.
pub(super) fn plan(
    short: u64,
    shelves: &[Shelf<'_>],
    config: &CooperationConfig,
    spared: impl Fn(usize, u32) -> bool,
) -> Option<Vec<Victim>> {
    let (idle, watched): (Vec<_>, Vec<_>) = shelves.iter().partition(|shelf| shelf.clients.is_empty());
    let rounds = [
        (&idle, Round::Outside),
        (&watched, Round::Outside),
        (&watched, Round::WindowEnds),
        (&idle, Round::Heads),
    ];
    let mut plan = Plan { short, freed: 0, victims: Vec::new() };
    for (shelves, round) in rounds {
        let mut cursors: Vec<(&Shelf<'_>, u32)> = shelves.iter().map(|shelf| (*shelf, u32::MAX)).collect();
        // One victim of each title in turn.
        while !plan.is_enough() && !cursors.is_empty() {
            cursors.retain_mut(|(shelf, cursor)| {
                if plan.is_enough() {
                    return true;
                }
                let victim = next(shelf, *cursor, round, config, &spared);
                let Some(block) = victim else { return false };
                *cursor = block;
                plan.take(shelf, block, config.floor);
                true
            });
        }
        if plan.is_enough() {
            return Some(plan.victims);
        }
    }
    None
}

struct Plan {
    short: u64,
    freed: u64,
    victims: Vec<Victim>,
}

impl Plan {
    const fn is_enough(&self) -> bool {
        self.freed >= self.short
    }

    /// Lowers a block as far as those behind it allow, or discards it if that is
    /// not enough.
    fn take(&mut self, shelf: &Shelf<'_>, block: u32, floor: Floor) {
        let held = shelf.cache.quality(block);
        let lowest = shelf.clients.floor(block, |client| match floor {
            Floor::Requested => client.wanted,
            Floor::Acceptable => client.acceptable(),
        });
        let lowered = lowest.min(held);
        let frees = shelf.table.between(block, lowered, held).0;
        let (quality, frees) = if lowered > Quality::NONE && self.freed.saturating_add(frees) >= self.short {
            (lowered, frees)
        } else {
            (Quality::NONE, shelf.table.size(block, held).0)
        };
        self.freed = self.freed.saturating_add(frees);
        self.victims.push(Victim { title: shelf.title, block, quality });
    }
}

fn next(
    shelf: &Shelf<'_>,
    before: u32,
    round: Round,
    config: &CooperationConfig,
    spared: impl Fn(usize, u32) -> bool,
) -> Option<u32> {
    let mut end = before;
    loop {
        let block = shelf.cache.last_held_before(end)?;
        let is_free = match round {
            Round::Outside => match protected_from(shelf, block, config) {
                // All from there to here is protected by the same.
                Some(first) => {
                    end = first;
                    continue;
                }
                None => true,
            },
            Round::WindowEnds => is_window_end(shelf, block, config),
            Round::Heads => block < config.inquiry && !shelf.cache.is_marked(block),
        };
        if is_free && !spared(shelf.title, block) {
            return Some(block);
        }
        end = block;
    }
}

/// Whether a block is in the head, in a local client's window (the prefetch window is
/// part of the inquiry window), or marked by a peer; and from which block on
/// everything up to it is so too.
fn protected_from(shelf: &Shelf<'_>, block: u32, config: &CooperationConfig) -> Option<u32> {
    if block < config.inquiry {
        return Some(0);
    }
    let windows = shelf.clients.iter().filter(|client| is_in_window(client, block, 0, config.inquiry));
    let first = windows.map(|client| client.position.unwrap_or(0)).min();
    first.or_else(|| shelf.cache.marked_from(block))
}

/// Whether a block is among the last P of some window, and protected by nothing
/// but such ends.
fn is_window_end(shelf: &Shelf<'_>, block: u32, config: &CooperationConfig) -> bool {
    let near = config.inquiry.saturating_sub(config.ahead);
    let mut ends = false;
    for client in shelf.clients.iter() {
        if is_in_window(client, block, 0, near) {
            return false;
        }
        ends |= is_in_window(client, block, near, config.inquiry);
    }
    ends && block >= config.inquiry && !shelf.cache.is_marked(block)
}

fn is_in_window(client: &ClientRow, block: u32, from: u32, to: u32) -> bool {
    let position = client.position.unwrap_or(0);
    block.checked_sub(position).is_some_and(|ahead| (from..to).contains(&ahead))
}

#[cfg(test)]
mod tests;
