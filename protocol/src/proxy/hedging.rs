//! A VIP's chunk of Base is asked of the standby, which keeps a slot ready for it, as
//! soon as its source goes quiet or lets it pass its own deadline. What came of it is
//! kept, so that the rest alone is asked for.

use super::fills::Urgent;
use super::io::{Event, Output};
use super::lines::NodeId;
use super::{Proxy, Upstream};
use crate::node::autonomy::{Sla, UserId};
use media::{ChunkId, Layer, Time};

impl Proxy {
    /// A client waits for a chunk whose picture is due then.
    pub(super) fn make_urgent(&mut self, chunk: &ChunkId, asker: Option<UserId>, due: Time) {
        let vip = asker.filter(|id| self.users.get(id).is_some_and(|user| user.sla() == Sla::Vip));
        if let Some(id) = vip.filter(|_| chunk.layer == Layer::BASE)
            && self.fills.make_urgent(chunk, id, due)
        {
            self.changed = true;
        }
    }

    /// Asks the standbys for what is late at its source.
    pub(super) fn hedge(&mut self, now: Time) {
        let is_late = |urgent: &Urgent<'_>| self.hedge_at(urgent).is_some_and(|when| when <= now);
        let hand_over = |urgent: Urgent<'_>| {
            let to = self.lines.at(self.standby(now, urgent.user)?)?;
            (to.address != urgent.from.address).then(|| (urgent.chunk.clone(), urgent.from, to))
        };
        let late: Vec<(ChunkId, Upstream, Upstream)> =
            self.fills.urgent().filter(is_late).filter_map(hand_over).collect();
        for (chunk, from, to) in late {
            self.fills.hand_over(now, &chunk, to);
            self.outputs.push_back(Output::Fill { chunk: chunk.clone(), from: to });
            self.event(Event::Hedged { chunk, from, to });
        }
    }

    /// When the standbys may have to be asked for something.
    pub(super) fn hedge_timeout(&self, now: Time) -> Option<Time> {
        // What nobody could be asked for by now waits for an input.
        let times = self.fills.urgent().filter_map(|urgent| self.hedge_at(&urgent));
        times.filter(|when| *when > now).min()
    }

    /// When a chunk is asked of the standby too.
    fn hedge_at(&self, urgent: &Urgent<'_>) -> Option<Time> {
        let Urgent { from, asked, begun, due, .. } = *urgent;
        let node = self.lines.find(from.address)?;
        // What comes of other chunks takes the line's time, and is no sign of ill will.
        let withheld = !begun && !self.fills.is_coming_from(from) && self.lines.withholds_since(node, asked);
        let overdue = withheld.then(|| self.config.hedge.overdue_at(asked, due));
        let quiet = self.lines.quiet_at(node, &self.config.hedge);
        [overdue, quiet].into_iter().flatten().min()
    }

    /// The standby of a VIP, if it can be asked and answers.
    fn standby(&self, now: Time, user: UserId) -> Option<NodeId> {
        let standby = self.users.get(&user)?.hot_standby().filter(|node| self.lines.is_usable(*node))?;
        let quiet = self.lines.quiet_at(standby, &self.config.hedge).is_some_and(|when| when <= now);
        (!quiet).then_some(standby)
    }
}
