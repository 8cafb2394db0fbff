//! Chunks on their way here: one fetch for each, from one source after another.

use super::config::{ProxyConfig, Upstream};
use super::io::FillFailure;
use crate::message::Refusal;
use media::{ChunkId, Span, Time};
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
    from: Upstream,
    tried: Vec<Upstream>,
}

impl Fills {
    pub(super) fn is_under_way(&self, chunk: &ChunkId) -> bool {
        self.under_way.contains_key(chunk)
    }

    /// Starts to fetch a chunk; from whom.
    ///
    /// # Errors
    /// Too much is under way, or nobody has it.
    pub(super) fn start(
        &mut self,
        now: Time,
        chunk: &ChunkId,
        length: u64,
        sources: &[Upstream],
        config: &ProxyConfig,
    ) -> Result<Upstream, Refusal> {
        let bytes = self.bytes.saturating_add(length);
        let room = self.under_way.is_empty() || bytes <= config.max_fill_bytes;
        if self.under_way.len() >= config.max_fills || !room {
            return Err(Refusal::TooManyRequests);
        }
        let from = self.choose(now, sources, &[]).ok_or(Refusal::Upstream)?;
        self.bytes = bytes;
        self.under_way.insert(chunk.clone(), Fill { length, from, tried: vec![from] });
        Ok(from)
    }

    /// A chunk is here; whether it was on its way.
    pub(super) fn done(&mut self, chunk: &ChunkId) -> bool {
        let done = self.under_way.remove(chunk);
        self.bytes = self.bytes.saturating_sub(done.as_ref().map_or(0, |fill| fill.length));
        done.is_some()
    }

    /// A source did not deliver: which one it was, and who is next. With nobody
    /// left the chunk is not on its way any more.
    pub(super) fn failed(
        &mut self,
        now: Time,
        chunk: &ChunkId,
        why: FillFailure,
        sources: &[Upstream],
        config: &ProxyConfig,
    ) -> Option<(Upstream, Option<Upstream>)> {
        let fill = self.under_way.get(chunk)?;
        let (failed, tried) = (fill.from, fill.tried.clone());
        match why {
            FillFailure::Lie => self.avoid(now, failed, config.avoid_liar),
            FillFailure::Silent | FillFailure::Refused(Refusal::Draining | Refusal::Full) => {
                self.avoid(now, failed, config.avoid_silent);
            }
            // It lives and is honest; it has not got this one.
            FillFailure::Refused(_) => {}
        }
        let next = self.choose(now, sources, &tried);
        match (next, self.under_way.get_mut(chunk)) {
            (Some(from), Some(fill)) => {
                fill.from = from;
                fill.tried.push(from);
            }
            (_, _) => {
                self.done(chunk);
            }
        }
        Some((failed, next))
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
