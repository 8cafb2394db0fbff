//! Chunks on their way here: one fetch for each, from one source after another.
//! What nobody serves right now is parked and asked for again, in order, Base of
//! all blocks first.

use super::config::{ProxyConfig, Upstream};
use super::io::FillFailure;
use crate::message::Refusal;
use crate::node::autonomy::UserId;
use media::{ChunkId, Layer, Span, Time};
use std::collections::BTreeMap;

/// The most sources that are remembered as failing.
const MAX_AVOIDED: usize = 256;

/// Everything that is being fetched, and which sources are to be asked last.
#[derive(Clone, Debug, Default)]
pub(super) struct Fills {
    under_way: BTreeMap<ChunkId, Fill>,
    bytes: u64,
    avoided: BTreeMap<Upstream, Time>,
}

#[derive(Clone, Debug)]
struct Fill {
    length: u64,
    /// None while it is parked.
    from: Option<Upstream>,
    tried: Vec<Upstream>,
    since: Time,
    /// When its picture is due at a client that waits for it, or waited: of Base at
    /// the first, of an enhancement at the last.
    due: Option<Time>,
    /// Whether its source was asked; until then it waits for its turn.
    sent: bool,
    /// When its source was asked, or chosen.
    asked: Time,
    /// How much of it came from there.
    came: u64,
    begun: bool,
    /// A VIP that waits for it, and when its picture is due; none once it was doubled.
    urgent: Option<(UserId, Time)>,
}

impl Fill {
    /// Its source was chosen, or is asked, and nothing has come from there.
    fn begin(&mut self, now: Time, sent: bool) {
        (self.sent, self.asked, self.came, self.begun) = (sent, now, 0, false);
    }
}

/// A chunk that is asked of a source, or will be in its turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asking<'a> {
    pub(super) chunk: &'a ChunkId,
    pub(super) from: Upstream,
    /// Whether the source was asked.
    pub(super) sent: bool,
    /// When.
    pub(super) asked: Time,
    /// What has not come yet, in bytes.
    pub(super) left: u64,
    /// When it is due, if a client waits for it.
    pub(super) due: Option<Time>,
}

/// A chunk for which a VIP waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Urgent<'a> {
    pub(super) chunk: &'a ChunkId,
    pub(super) from: Upstream,
    /// When its source was asked.
    pub(super) asked: Time,
    /// Whether anything came.
    pub(super) begun: bool,
    pub(super) user: UserId,
    /// When its picture is due.
    pub(super) due: Time,
}

/// How a fetch goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// From this source.
    From(Upstream),
    /// It waits until somebody serves again.
    Parked,
    /// Nobody delivers it.
    GiveUp,
}

/// Who can be asked, and whether more may come.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    /// In the order to be tried.
    pub(super) sources: Vec<Upstream>,
    /// Whether the network may find somebody else.
    pub(super) hope: bool,
}

impl Fills {
    pub(super) fn is_under_way(&self, chunk: &ChunkId) -> bool {
        self.under_way.contains_key(chunk)
    }

    /// Starts to fetch a chunk.
    ///
    /// # Errors
    /// Too much is under way, or nobody has it.
    pub(super) fn start(
        &mut self,
        now: Time,
        chunk: &ChunkId,
        length: u64,
        choice: &Choice,
        config: &ProxyConfig,
    ) -> Result<Next, Refusal> {
        let bytes = self.bytes.saturating_add(length);
        let room = self.under_way.is_empty() || bytes <= config.max_fill_bytes;
        if self.under_way.len() >= config.max_fills || !room {
            return Err(Refusal::TooManyRequests);
        }
        let from = self.choose(now, &choice.sources, &[]);
        if from.is_none() && !choice.hope {
            return Err(Refusal::Upstream);
        }
        self.bytes = bytes;
        let tried = from.into_iter().collect();
        let fill = Fill {
            length,
            from,
            tried,
            since: now,
            due: None,
            sent: false,
            asked: now,
            came: 0,
            begun: false,
            urgent: None,
        };
        self.under_way.insert(chunk.clone(), fill);
        Ok(from.map_or(Next::Parked, Next::From))
    }

    /// A chunk is here; whether it was on its way.
    pub(super) fn done(&mut self, chunk: &ChunkId) -> bool {
        let done = self.under_way.remove(chunk);
        self.bytes = self.bytes.saturating_sub(done.as_ref().map_or(0, |fill| fill.length));
        done.is_some()
    }

    /// A client waits for a chunk whose picture is due then.
    pub(super) fn want(&mut self, chunk: &ChunkId, due: Time) {
        if let Some(fill) = self.under_way.get_mut(chunk) {
            let is_base = chunk.layer == Layer::BASE;
            let both = |other: Time| if is_base { other.min(due) } else { other.max(due) };
            fill.due = Some(fill.due.map_or(due, both));
        }
    }

    pub(super) fn is_wanted(&self, chunk: &ChunkId) -> bool {
        self.under_way.get(chunk).is_some_and(|fill| fill.due.is_some())
    }

    /// Everything that is asked of somebody, or will be in its turn.
    pub(super) fn asking(&self) -> impl Iterator<Item = Asking<'_>> {
        self.under_way.iter().filter_map(|(chunk, fill)| {
            let left = fill.length.saturating_sub(fill.came);
            Some(Asking { chunk, from: fill.from?, sent: fill.sent, asked: fill.asked, left, due: fill.due })
        })
    }

    /// Whether anything waits for its turn.
    pub(super) fn is_any_waiting(&self) -> bool {
        self.under_way.values().any(|fill| fill.from.is_some() && !fill.sent)
    }

    /// The source of a chunk is asked now.
    pub(super) fn sent(&mut self, now: Time, chunk: &ChunkId) {
        if let Some(fill) = self.under_way.get_mut(chunk) {
            fill.begin(now, true);
        }
    }

    /// Whether the source of a chunk was asked.
    pub(super) fn is_sent(&self, chunk: &ChunkId) -> bool {
        self.under_way.get(chunk).is_some_and(|fill| fill.sent)
    }

    /// Nobody is asked for a chunk at present.
    pub(super) fn park(&mut self, chunk: &ChunkId) {
        if let Some(fill) = self.under_way.get_mut(chunk) {
            (fill.from, fill.sent) = (None, false);
            fill.tried.clear();
        }
    }

    /// Who is being asked for a chunk.
    pub(super) fn source(&self, chunk: &ChunkId) -> Option<Upstream> {
        self.under_way.get(chunk)?.from
    }

    /// The source that was asked did not deliver: how it goes on. With nobody left
    /// the chunk is not on its way any more.
    pub(super) fn failed(
        &mut self,
        now: Time,
        chunk: &ChunkId,
        why: FillFailure,
        choice: &Choice,
        config: &ProxyConfig,
    ) -> Option<Next> {
        let fill = self.under_way.get(chunk)?;
        let (failed, mut tried, since) = (fill.from?, fill.tried.clone(), fill.since);
        match why {
            FillFailure::Lie => self.avoid(now, failed, config.avoid_liar),
            FillFailure::Silent | FillFailure::Refused(Refusal::Draining | Refusal::Full) => {
                self.avoid(now, failed, config.avoid_silent);
            }
            // It lives and is honest; it has not got this one, or not yet.
            FillFailure::Refused(_) => {}
        }
        if why == FillFailure::Refused(Refusal::Coming) {
            // From an archive, so with nobody else: the client waits, and asks again.
            self.done(chunk);
            return Some(Next::GiveUp);
        }
        let from = self.choose(now, &choice.sources, &tried);
        let passing = matches!(
            why,
            FillFailure::Silent
                | FillFailure::Refused(Refusal::NotServing | Refusal::NoSession | Refusal::Draining)
        );
        let patient = choice.hope && passing && now < since + patience(chunk, config);
        let next = match from {
            Some(from) => Next::From(from),
            None if patient => Next::Parked,
            None => Next::GiveUp,
        };
        match next {
            Next::GiveUp => drop(self.done(chunk)),
            Next::From(_) | Next::Parked => {
                if let Some(fill) = self.under_way.get_mut(chunk) {
                    // Whoever could not before may be able to by then.
                    match from {
                        Some(from) => tried.push(from),
                        None => tried.clear(),
                    }
                    (fill.from, fill.tried) = (from, tried);
                    fill.begin(now, false);
                }
            }
        }
        Some(next)
    }

    /// Somebody may serve a parked chunk by now.
    pub(super) fn retry(
        &mut self,
        now: Time,
        chunk: &ChunkId,
        choice: &Choice,
        config: &ProxyConfig,
    ) -> Next {
        let from = self.choose(now, &choice.sources, &[]);
        let Some(fill) = self.under_way.get_mut(chunk) else { return Next::GiveUp };
        match from {
            Some(from) => {
                (fill.from, fill.tried) = (Some(from), vec![from]);
                fill.begin(now, false);
                Next::From(from)
            }
            None if choice.hope && now < fill.since + patience(chunk, config) => Next::Parked,
            None => {
                self.done(chunk);
                Next::GiveUp
            }
        }
    }

    /// So much more of a chunk is here.
    pub(super) fn came(&mut self, chunk: &ChunkId, bytes: u64) {
        if let Some(fill) = self.under_way.get_mut(chunk) {
            (fill.begun, fill.came) = (true, fill.came.saturating_add(bytes).min(fill.length));
        }
    }

    /// What of a chunk has not come yet, in bytes.
    pub(super) fn left(&self, chunk: &ChunkId) -> u64 {
        self.under_way.get(chunk).map_or(0, |fill| fill.length.saturating_sub(fill.came))
    }

    /// A VIP waits for a chunk whose picture is due then; whether that is news.
    pub(super) fn make_urgent(&mut self, chunk: &ChunkId, user: UserId, due: Time) -> bool {
        let Some(fill) = self.under_way.get_mut(chunk).filter(|fill| fill.urgent.is_none()) else {
            return false;
        };
        fill.urgent = Some((user, due));
        true
    }

    /// Chunks for which a VIP waits, and which were not doubled yet.
    pub(super) fn urgent(&self) -> impl Iterator<Item = Urgent<'_>> {
        self.under_way.iter().filter_map(|(chunk, fill)| {
            let ((user, due), from) = fill.urgent.zip(fill.from)?;
            Some(Urgent { chunk, from, asked: fill.asked, begun: fill.begun, user, due })
        })
    }

    /// Whether anything else is coming from a source.
    pub(super) fn is_coming_from(&self, source: Upstream) -> bool {
        self.under_way.values().any(|fill| fill.begun && fill.from == Some(source))
    }

    /// A chunk is asked of this source instead, once.
    pub(super) fn hand_over(&mut self, now: Time, chunk: &ChunkId, to: Upstream) {
        if let Some(fill) = self.under_way.get_mut(chunk) {
            fill.from = Some(to);
            fill.tried.push(to);
            fill.begin(now, true);
            fill.urgent = None;
        }
    }

    /// What waits for somebody to serve again.
    pub(super) fn parked(&self) -> impl Iterator<Item = &ChunkId> {
        self.under_way.iter().filter(|(_, fill)| fill.from.is_none()).map(|(chunk, _)| chunk)
    }

    /// What is being fetched from a source.
    pub(super) fn at(&self, source: Upstream) -> impl Iterator<Item = &ChunkId> {
        let from = move |fill: &Fill| fill.from.is_some_and(|from| from.address == source.address);
        self.under_way.iter().filter(move |(_, fill)| from(fill)).map(|(chunk, _)| chunk)
    }

    fn avoid(&mut self, now: Time, source: Upstream, how_long: Span) {
        self.avoided.retain(|_, until| *until > now);
        if self.avoided.len() < MAX_AVOIDED {
            self.avoided.insert(source, now + how_long);
        }
    }

    /// The first source that was not tried and is in good standing, or else the
    /// first that was not tried.
    fn choose(&self, now: Time, sources: &[Upstream], tried: &[Upstream]) -> Option<Upstream> {
        let good = |source: &Upstream| self.avoided.get(source).is_none_or(|until| *until <= now);
        let mut untried = sources.iter().filter(|source| !tried.contains(source)).copied();
        untried.clone().find(good).or_else(|| untried.next())
    }
}

/// How long a chunk may wait for somebody to serve it: without Base nothing can
/// be shown at all, while the picture goes on without an enhancement.
fn patience(chunk: &ChunkId, config: &ProxyConfig) -> Span {
    if chunk.layer == Layer::BASE { config.base_patience } else { config.enhancement_patience }
}

/// Sorts chunks as they are asked for again: Base first, in the order of blocks.
pub(super) fn in_order<'a>(chunks: impl Iterator<Item = &'a ChunkId>) -> Vec<ChunkId> {
    let mut chunks: Vec<ChunkId> = chunks.cloned().collect();
    chunks.sort_by_key(|chunk| (chunk.layer > Layer::BASE, chunk.block, chunk.layer));
    chunks
}
