//! Which server a block is fetched from, and at which quality: equations 1 to 7
//! of Wakamiya et al., 3.2 and 3.3. Nothing is remembered here.

use super::block_table::BlockTable;
use super::cooperation::{Rank, Relay};
use super::remote_table::ORIGIN;
use media::{BitRate, Quality, Span};
use std::cmp::Reverse;

/// What a server could do for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offer {
    /// Its place in the remote table.
    pub(super) place: usize,
    /// `q_k(i)`: what it has of the block.
    pub(super) quality: Quality,
    /// `d_k`, one way.
    pub(super) delay: Span,
    /// `r_k`.
    pub(super) rate: BitRate,
    /// `W_k / r_k`: what it serves before.
    pub(super) queue: Span,
}

/// A block that a client wants, or will.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wish<'a> {
    pub(super) table: &'a BlockTable,
    pub(super) block: u32,
    /// What is held and need not move: nothing if whole blocks move.
    pub(super) have: Quality,
    /// `Q_j(i)`.
    pub(super) wanted: Quality,
    /// `A_j(i)`.
    pub(super) acceptable: Quality,
    /// `Qmax(i)`: more than this is of use to nobody.
    pub(super) useful: Quality,
    /// `d_j` and `r_j`.
    pub(super) delay: Span,
    pub(super) rate: BitRate,
    /// `p_j tau - delta`, from now; nothing if that is below zero.
    pub(super) budget: Option<Span>,
    pub(super) relay: Relay,
    pub(super) rank: Rank,
}

/// What a server is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bid {
    pub(super) place: usize,
    pub(super) quality: Quality,
    /// When the client has all of it, from now.
    pub(super) time: Span,
    /// When this proxy has all of it, from now.
    pub(super) here: Span,
    pub(super) in_time: bool,
}

/// Where a bid stands among others: what it brings, whether it spares the origin, and
/// how soon; the highest wins.
type Place = (Quality, bool, Reverse<Span>);

impl Wish<'_> {
    /// Whether something that takes this long is in time.
    pub(super) fn is_in_time(&self, time: Span) -> bool {
        self.budget.is_some_and(|budget| time <= budget)
    }

    /// Equation 2: the best quality that reaches the client in time if it is
    /// held; nothing if none does.
    pub(super) fn cached(&self) -> Quality {
        self.best(self.wanted, |quality| self.delay + self.client_time(quality))
    }

    /// The transfer time t of equation 4: a round trip but for the way to the
    /// client, what is served before, and both transfers.
    pub(super) fn time(&self, offer: &Offer, quality: Quality) -> Span {
        let fetch = offer.rate.time_for(self.table.between(self.block, self.have, quality));
        let both = self.relayed(fetch, quality);
        offer.delay.saturating_mul(2) + offer.queue + both + self.delay
    }

    /// When what is on its way reaches the client, if this proxy has all of it
    /// after `here`.
    pub(super) fn forwarded(&self, here: Span, quality: Quality) -> Span {
        self.relayed(here, quality) + self.delay
    }

    /// Equation 3 (and 6): the best that a server has and can deliver in time
    /// (equation 4, and 7).
    pub(super) fn offered(&self, offer: &Offer) -> Quality {
        self.best(offer.quality, |quality| self.time(offer, quality))
    }

    /// Of all that are in time with enough, the first by [`Rank`]; if nobody is in time, the least that is accepted, from the
    /// soonest. None if nobody has enough.
    pub(super) fn choose(&self, offers: &[Offer]) -> Option<Bid> {
        let mut best: Option<(Place, Bid)> = None;
        for offer in offers.iter().filter(|offer| offer.quality >= self.acceptable) {
            let offered = self.offered(offer);
            if offered < self.acceptable {
                continue;
            }
            let asked = offered.min(self.useful.max(self.acceptable));
            let bid = self.bid(offer, asked, true);
            let (quality, spares_origin) = match self.rank {
                Rank::Offer => (offered, false),
                Rank::Useful => (asked, offer.place != ORIGIN),
            };
            let rank = (quality, spares_origin, Reverse(bid.time));
            if best.as_ref().is_none_or(|(other, _)| rank > *other) {
                best = Some((rank, bid));
            }
        }
        let enough = offers.iter().filter(|offer| offer.quality >= self.acceptable);
        let soonest =
            || enough.map(|offer| self.bid(offer, self.acceptable, false)).min_by_key(|bid| bid.time);
        best.map(|(_, bid)| bid).or_else(soonest)
    }

    fn bid(&self, offer: &Offer, quality: Quality, in_time: bool) -> Bid {
        let fetch = offer.rate.time_for(self.table.between(self.block, self.have, quality));
        let here = offer.delay.saturating_mul(2) + offer.queue + fetch;
        Bid { place: offer.place, quality, time: self.time(offer, quality), here, in_time }
    }

    fn client_time(self, quality: Quality) -> Span {
        self.rate.time_for(self.table.size(self.block, quality.min(self.wanted)))
    }

    fn relayed(&self, fetch: Span, quality: Quality) -> Span {
        let forward = self.client_time(quality);
        match self.relay {
            Relay::CutThrough => fetch.max(forward),
            Relay::StoreForward => fetch + forward,
        }
    }

    /// The highest quality up to `top` whose time is within the budget; times
    /// grow with quality.
    fn best(&self, top: Quality, time: impl Fn(Quality) -> Span) -> Quality {
        let top = top.min(self.table.top());
        if self.is_in_time(time(top)) {
            return top;
        }
        let (mut low, mut high) = (0, top.layers());
        while high.saturating_sub(low) > 1 {
            let middle = low.midpoint(high);
            if self.is_in_time(time(Quality(middle))) {
                low = middle;
            } else {
                high = middle;
            }
        }
        Quality(low)
    }
}

#[cfg(test)]
mod tests;
