//! A chunk in memory, whole or growing.

use bytes::Bytes;
use media::Hash;
use protocol::Refusal;
use tokio::sync::watch;

/// A chunk that is whole and was checked. Its bytes lie in one place: a piece
/// sent costs the same however long it is.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) bytes: Bytes,
    pub(crate) length: u64,
    pub(crate) hash: Hash,
}

/// How far a chunk has come.
#[derive(Debug, Default)]
struct Progress {
    pieces: Vec<Bytes>,
    bytes: usize,
    /// Counts how often everything had to be thrown away.
    generation: u32,
    end: Option<Result<(), Refusal>>,
}

/// A chunk that is being fetched: one writes, many follow. The writer never
/// waits for them.
#[derive(Debug)]
pub(crate) struct Growing {
    pub(crate) length: u64,
    pub(crate) hash: Hash,
    progress: watch::Sender<Progress>,
}

/// What one source delivers of a chunk.
#[derive(Debug, Default)]
pub(crate) struct Attempt {
    pieces: Vec<Bytes>,
    bytes: usize,
    ahead: bool,
}

impl Growing {
    pub(crate) fn new(length: u64, hash: Hash) -> Self {
        Self { length, hash, progress: watch::Sender::new(Progress::default()) }
    }

    /// Adds a piece of one source. What an earlier source delivered before it
    /// broke off is kept, if the two agree on it.
    pub(crate) fn append(&self, attempt: &mut Attempt, piece: Bytes) {
        attempt.bytes = attempt.bytes.saturating_add(piece.len());
        attempt.pieces.push(piece.clone());
        self.progress.send_if_modified(|progress| {
            if attempt.ahead {
                progress.bytes = attempt.bytes;
                progress.pieces.push(piece);
                return true;
            }
            if attempt.bytes <= progress.bytes {
                return false;
            }
            attempt.ahead = true;
            if let Some(rest) = behind(&attempt.pieces, &progress.pieces) {
                progress.pieces.extend(rest);
            } else {
                progress.pieces.clone_from(&attempt.pieces);
                progress.generation = progress.generation.saturating_add(1);
            }
            progress.bytes = attempt.bytes;
            true
        });
    }

    /// Throws away what is there: it was wrong.
    pub(crate) fn restart(&self) {
        self.progress.send_modify(|progress| {
            progress.pieces.clear();
            progress.bytes = 0;
            progress.generation = progress.generation.saturating_add(1);
        });
    }

    /// The chunk is whole and right.
    pub(crate) fn complete(&self) -> Block {
        let mut pieces = Vec::new();
        self.progress.send_modify(|progress| {
            progress.end = Some(Ok(()));
            pieces.clone_from(&progress.pieces);
        });
        // Copied once, after everybody who waits has heard of the last piece.
        Block { bytes: pieces.concat().into(), length: self.length, hash: self.hash }
    }

    /// Nobody delivers it.
    pub(crate) fn fail(&self, why: Refusal) {
        self.progress.send_modify(|progress| progress.end = Some(Err(why)));
    }

    pub(crate) fn follow(&self) -> Follower {
        Follower { progress: self.progress.subscribe(), next: 0, generation: 0 }
    }
}

/// What `longer` has behind the end of `shorter`; nothing if they differ.
fn behind(longer: &[Bytes], shorter: &[Bytes]) -> Option<Vec<Bytes>> {
    let mut rest = longer.to_vec();
    rest.reverse();
    for known in shorter {
        let mut known = known.clone();
        while !known.is_empty() {
            let mut piece = rest.pop()?;
            let both = piece.len().min(known.len());
            if piece.split_to(both) != known.split_to(both) {
                return None;
            }
            if !piece.is_empty() {
                rest.push(piece);
            }
        }
    }
    rest.reverse();
    Some(rest)
}

/// One who follows a growing chunk.
#[derive(Debug)]
pub(crate) struct Follower {
    progress: watch::Receiver<Progress>,
    next: usize,
    generation: u32,
}

/// What comes next to a follower.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// These bytes.
    Piece(Bytes),
    /// Nothing more: it had all of it, and it was right.
    Whole,
    /// Nothing more: nobody delivers it, or what came so far was wrong.
    Broken(Refusal),
}

impl Follower {
    /// Waits for the next step; the writer's deadlines bound the wait.
    pub(crate) async fn step(&mut self) -> Step {
        let (next, generation) = (self.next, self.generation);
        let news = |progress: &Progress| {
            progress.pieces.len() > next || progress.generation != generation || progress.end.is_some()
        };
        let Ok(progress) = self.progress.wait_for(news).await else {
            // The writer is gone without a word: the proxy stops.
            return Step::Broken(Refusal::Upstream);
        };
        if progress.generation != generation && next > 0 {
            return Step::Broken(Refusal::Upstream);
        }
        self.generation = progress.generation;
        match (progress.pieces.get(next), progress.end) {
            (Some(piece), _) => {
                self.next = next.saturating_add(1);
                Step::Piece(piece.clone())
            }
            (None, Some(Err(why))) => Step::Broken(why),
            (None, Some(Ok(()))) => Step::Whole,
            // A new generation without a piece yet: wait again.
            (None, None) => Step::Piece(Bytes::new()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn growing() -> Growing {
        Growing::new(6, Hash::of(b"abcdef"))
    }

    fn append(growing: &Growing, attempt: &mut Attempt, pieces: &[&'static str]) {
        for piece in pieces {
            growing.append(attempt, Bytes::from_static(piece.as_bytes()));
        }
    }

    async fn all(mut follower: Follower) -> (String, Step) {
        let mut text = String::new();
        loop {
            match follower.step().await {
                Step::Piece(piece) => text.push_str(&String::from_utf8_lossy(&piece)),
                end => return (text, end),
            }
        }
    }

    #[tokio::test]
    async fn who_comes_late_gets_everything_too() {
        let growing = growing();
        let early = growing.follow();
        append(&growing, &mut Attempt::default(), &["abc", "def"]);
        let late = growing.follow();
        let block = growing.complete();
        assert_eq!(block.bytes, "abcdef");
        assert_eq!(all(early).await, ("abcdef".into(), Step::Whole));
        assert_eq!(all(late).await, ("abcdef".into(), Step::Whole));
    }

    #[tokio::test]
    async fn a_second_source_goes_on_where_the_first_broke_off() {
        let growing = growing();
        append(&growing, &mut Attempt::default(), &["ab", "c"]);
        let mut half_way = growing.follow();
        assert_eq!(half_way.step().await, Step::Piece(Bytes::from_static(b"ab")));
        append(&growing, &mut Attempt::default(), &["a", "bcd", "ef"]);
        assert_eq!(growing.complete().bytes, "abcdef");
        assert_eq!(all(half_way).await, ("cdef".into(), Step::Whole));
    }

    #[tokio::test]
    async fn who_was_given_wrong_bytes_is_broken_off_and_the_others_are_not() {
        let growing = growing();
        append(&growing, &mut Attempt::default(), &["aXc"]);
        let (mut deceived, patient) = (growing.follow(), growing.follow());
        assert_eq!(deceived.step().await, Step::Piece(Bytes::from_static(b"aXc")));
        append(&growing, &mut Attempt::default(), &["abcd", "ef"]);
        growing.complete();
        assert_eq!(deceived.step().await, Step::Broken(Refusal::Upstream));
        assert_eq!(all(patient).await, ("abcdef".into(), Step::Whole));
    }

    #[tokio::test]
    async fn a_restart_forgets_what_was_there() {
        let growing = growing();
        append(&growing, &mut Attempt::default(), &["abcdeX"]);
        let (mut deceived, patient) = (growing.follow(), growing.follow());
        deceived.step().await;
        growing.restart();
        append(&growing, &mut Attempt::default(), &["abcdef"]);
        growing.complete();
        assert_eq!(deceived.step().await, Step::Broken(Refusal::Upstream));
        assert_eq!(all(patient).await, ("abcdef".into(), Step::Whole));
    }

    #[tokio::test]
    async fn a_chunk_nobody_delivers_is_refused_by_that_name() {
        let growing = growing();
        let follower = growing.follow();
        growing.fail(Refusal::Upstream);
        assert_eq!(all(follower).await, (String::new(), Step::Broken(Refusal::Upstream)));
    }
}
