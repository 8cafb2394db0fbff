//! Where a user stands in the network, as whoever speaks for it sees it: who
//! serves it, who stands behind, in which epoch, and whose word counts. One part,
//! used by the player for itself and by the proxy for its clients.
//!
//! A node may speak only as what it is: the Base node of backups and layers, a
//! backup that was named of its taking over. What belongs to an older epoch is
//! not heard. A backup's word is taken at once if the old node is gone, not at
//! all if that one was heard a moment ago, and otherwise once the old node has
//! left a question unanswered.

mod doors;
mod hedge;
mod vigil;

pub use doors::{Doors, Patience};
pub use hedge::Hedge;
pub use vigil::Vigil;

use media::{Layer, Span, Time};

/// The most backups whose delivery start is still believed.
const MOST_NAMED: usize = 16;
/// The most words kept of a backup that may be about to serve.
const MOST_WORDS: usize = 8;

/// Who serves, who stands behind, and since which take-over. `S` names a node.
#[derive(Clone, Debug)]
pub struct Standing<S> {
    home: Option<S>,
    backup: Option<S>,
    epoch: u64,
    /// Everybody who was named as backup: they may start to deliver.
    named: Vec<S>,
    doubt: Option<Doubt<S>>,
}

/// A backup wants to take over, and the old node may still be there.
#[derive(Clone, Debug)]
struct Doubt<S> {
    source: S,
    epoch: u64,
    since: Time,
    until: Time,
    /// What it said meanwhile.
    words: Vec<Word<S>>,
}

/// What a node says of the user's service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word<S> {
    /// Who takes over if it dies, in which epoch.
    Backup(S, u64),
    /// Who serves a layer, in which epoch.
    Layer(Layer, Option<S>, u64),
}

/// How the node that serves looks when another one calls.
#[derive(Clone, Copy, Debug)]
pub struct Home {
    /// Whether it can be asked at all.
    pub usable: bool,
    /// When it was last heard.
    pub heard: Time,
    /// Heard this recently it delivers for certain.
    pub lately: Span,
    /// How long it has to answer a question.
    pub patience: Span,
}

/// What is to be made of a delivery start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivery<S> {
    /// Nothing.
    Ignored,
    /// It serves from now on; then take what it said meanwhile.
    Accepted {
        /// Who.
        source: S,
        /// In which epoch.
        epoch: u64,
        /// What it said.
        words: Vec<Word<S>>,
    },
    /// The old node still delivers: tell it so.
    Refused {
        /// Who.
        source: S,
        /// The epoch that it had begun.
        epoch: u64,
    },
    /// The old node is to be asked whether it is there.
    Doubted {
        /// The old node.
        home: S,
    },
}

/// Who is no longer what it was after a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved<S> {
    /// Who served before, if it was somebody else.
    pub former: Option<S>,
    /// Who stood behind that one, if it is not who serves now.
    pub backup: Option<S>,
}

impl<S> Default for Standing<S> {
    fn default() -> Self {
        Self { home: None, backup: None, epoch: 0, named: Vec::new(), doubt: None }
    }
}

impl<S: Copy + PartialEq> Standing<S> {
    /// Served by `home`, if anybody, in this epoch.
    pub fn new(home: Option<S>, epoch: u64) -> Self {
        Self { home, epoch, ..Self::default() }
    }

    /// Who serves Base and keeps the user's record.
    pub fn home(&self) -> Option<S> {
        self.home
    }

    /// Who takes over if that node dies, as far as it is known.
    pub fn backup(&self) -> Option<S> {
        self.backup
    }

    /// Who was named last as the one that stands behind, whatever became of it.
    pub fn last_named(&self) -> Option<S> {
        self.named.last().copied()
    }

    /// The highest epoch heard of that was taken.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// When a doubt ends if nothing is heard.
    pub fn doubt_until(&self) -> Option<Time> {
        self.doubt.as_ref().map(|doubt| doubt.until)
    }

    /// Whether these are words of the Base node that hold; a higher epoch holds
    /// from now on.
    pub fn is_from_home(&mut self, from: S, epoch: u64) -> bool {
        if self.home != Some(from) || epoch < self.epoch {
            return false;
        }
        self.epoch = epoch;
        true
    }

    /// Keeps what a backup says that may be about to serve, until that is known.
    pub fn postpone(&mut self, from: S, word: Word<S>) -> bool {
        let Some(doubt) = self.doubt.as_mut().filter(|doubt| doubt.source == from) else {
            return false;
        };
        if doubt.words.len() < MOST_WORDS {
            doubt.words.push(word);
        }
        true
    }

    /// Another node takes over if the Base node dies, or none. Who did until now,
    /// if that is news.
    pub fn set_backup(&mut self, backup: Option<S>) -> Option<Option<S>> {
        let backup = backup.filter(|backup| Some(*backup) != self.home);
        if self.backup == backup {
            return None;
        }
        if let Some(backup) = backup.filter(|backup| !self.named.contains(backup)) {
            if self.named.len() >= MOST_NAMED {
                self.named.remove(0);
            }
            self.named.push(backup);
        }
        Some(std::mem::replace(&mut self.backup, backup))
    }

    /// A backup says that it serves from now on.
    pub fn hear_delivery(
        &mut self,
        now: Time,
        source: S,
        epoch: u64,
        state: impl FnOnce(S) -> Home,
    ) -> Delivery<S> {
        if !self.named.contains(&source) || epoch < self.epoch {
            return Delivery::Ignored;
        }
        let Some(home) = self.home.filter(|home| *home != source) else {
            // It serves already: only its epoch can be news.
            self.epoch = self.epoch.max(epoch);
            return Delivery::Ignored;
        };
        if self.doubt.as_ref().is_some_and(|doubt| doubt.epoch >= epoch) {
            return Delivery::Ignored;
        }
        self.doubt = None;
        let state = state(home);
        if !state.usable {
            return Delivery::Accepted { source, epoch, words: Vec::new() };
        }
        if now - state.heard <= state.lately {
            return Delivery::Refused { source, epoch };
        }
        let until = now + state.patience;
        self.doubt = Some(Doubt { source, epoch, since: now, until, words: Vec::new() });
        Delivery::Doubted { home }
    }

    /// Ends a doubt: the old node spoke, is gone, or said nothing in time.
    pub fn settle(&mut self, now: Time, state: impl FnOnce(S) -> Home) -> Delivery<S> {
        let Some(doubt) = self.doubt.take() else { return Delivery::Ignored };
        let home = self.home.map(state).filter(|home| home.usable);
        if home.is_some_and(|home| home.heard > doubt.since) {
            Delivery::Refused { source: doubt.source, epoch: doubt.epoch }
        } else if home.is_none() || now >= doubt.until {
            Delivery::Accepted { source: doubt.source, epoch: doubt.epoch, words: doubt.words }
        } else {
            self.doubt = Some(doubt);
            Delivery::Ignored
        }
    }

    /// Service that was sought is taken if its epoch is the highest heard of, or
    /// if nobody else serves.
    pub fn takes(&self, epoch: u64, served: bool) -> bool {
        epoch > self.epoch || (epoch == self.epoch && !served)
    }

    /// Another node serves Base and keeps the record from now on.
    pub fn move_to(&mut self, to: S, epoch: u64) -> Moved<S> {
        let former = self.home.replace(to).filter(|former| *former != to);
        self.epoch = epoch;
        self.doubt = None;
        // It stood behind the old node.
        let backup = self.backup.take().filter(|backup| *backup != to);
        Moved { former, backup }
    }

    /// Nobody serves any more, as far as is known.
    pub fn lose_home(&mut self) -> Option<S> {
        self.doubt = None;
        self.home.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: u8 = 1;
    const B: u8 = 2;
    const C: u8 = 3;

    fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    fn state(usable: bool, heard: u64) -> impl Fn(u8) -> Home {
        let (lately, patience) = (Span::from_millis(50), Span::from_millis(100));
        move |_| Home { usable, heard: at(heard), lately, patience }
    }

    /// Served by A in the first epoch, with B behind it.
    fn standing() -> Standing<u8> {
        let mut standing = Standing::new(Some(A), 1);
        assert_eq!(standing.set_backup(Some(B)), Some(None));
        assert_eq!(standing.set_backup(Some(B)), None, "that is no news");
        standing
    }

    #[test]
    fn who_was_never_named_takes_nothing_over_and_neither_does_an_old_epoch() {
        let mut standing = standing();
        assert_eq!(standing.hear_delivery(at(0), C, 2, state(false, 0)), Delivery::Ignored);
        assert_eq!(standing.hear_delivery(at(0), B, 0, state(false, 0)), Delivery::Ignored);
        let accepted = Delivery::Accepted { source: B, epoch: 2, words: vec![] };
        assert_eq!(standing.hear_delivery(at(0), B, 2, state(false, 0)), accepted);
        assert_eq!(standing.move_to(B, 2), Moved { former: Some(A), backup: None });
        assert!(!standing.is_from_home(A, 3), "it serves no more");
        assert!(standing.is_from_home(B, 3));
        assert_eq!(standing.epoch(), 3);
    }

    #[test]
    fn who_may_still_be_there_is_asked_first() {
        let mut standing = standing();
        let refused = Delivery::Refused { source: B, epoch: 2 };
        assert_eq!(standing.hear_delivery(at(1_000), B, 2, state(true, 960)), refused);
        let doubted = Delivery::Doubted { home: A };
        assert_eq!(standing.hear_delivery(at(1_000), B, 2, state(true, 900)), doubted);
        // What it says meanwhile waits.
        assert!(standing.postpone(B, Word::Backup(C, 2)));
        assert!(!standing.postpone(A, Word::Backup(C, 2)));
        assert_eq!(standing.settle(at(1_050), state(true, 900)), Delivery::Ignored);
        assert_eq!(standing.doubt_until(), Some(at(1_100)));
        let words = vec![Word::Backup(C, 2)];
        assert_eq!(
            standing.settle(at(1_100), state(true, 900)),
            Delivery::Accepted { source: B, epoch: 2, words }
        );
        assert_eq!(standing.doubt_until(), None);
    }

    #[test]
    fn the_old_nodes_answer_ends_the_doubt() {
        let mut standing = standing();
        standing.hear_delivery(at(1_000), B, 2, state(true, 900));
        let refused = Delivery::Refused { source: B, epoch: 2 };
        assert_eq!(standing.settle(at(1_020), state(true, 1_010)), refused);
        assert_eq!((standing.home(), standing.epoch()), (Some(A), 1));
    }

    #[test]
    fn what_was_sought_is_taken_if_it_is_later_or_there_is_nothing_else() {
        let standing = standing();
        assert!(standing.takes(2, true) && standing.takes(1, false));
        assert!(!standing.takes(1, true) && !standing.takes(0, false));
    }
}
