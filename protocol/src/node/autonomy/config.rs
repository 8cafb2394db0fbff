//! What may be set, with meaning, unit, range, default and source of each.
//! "ADVODS" is the paper, "evaluation" its second evaluation.

use crate::node::classes::{ClassLimits, Hold};
use media::{BitRate, ByClass, ByteCount, Span};

/// The settings of one [`Autonomy`](super::Autonomy).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each one is a rule of the paper that can be switched")]
pub struct AutonomyConfig {
    /// Ts: between two survival signals. More than 0. Paper: 1 s (no value is
    /// published); production: 100 ms.
    pub signal_every: Span,
    /// Td: a neighbour that says nothing for so long is dead. More than Ts.
    /// Paper: 3 s; production: 400 ms. Smaller finds deaths sooner and costs
    /// more signals (ADVODS 4.2.1).
    pub dead_after: Span,
    /// Every how many signals one carries a digest of what is known of the life
    /// and death of other nodes, so that news lost on the way is asked for.
    /// 0: never. Default 10.
    pub digest_every: u32,
    /// From where the orders about titles are counted: the time of the start, in
    /// milliseconds, above those of all earlier starts. Default 0, for networks
    /// whose nodes live once.
    pub since: u64,
    /// C: deliveries of a node at once. Paper: 30 (Table 1); production: 200.
    pub capacity: u32,
    /// Deliveries of the origin at once. Default: no bound, since the service
    /// provider serves whatever nobody else can (ADVODS 2.2).
    pub origin_capacity: u32,
    /// b: with so many free slots or fewer, a Base node begins to move its
    /// lowest entries. 0 to C, default 10 % of the capacity (no value is
    /// published).
    pub bottom_line: u32,
    /// `T_process`: what a node takes to handle a message, for estimates only.
    /// Paper: 0.4 s (Table 1); production: 1 ms.
    pub process: Span,
    /// `T_trans`: what a message takes over one link, for estimates only.
    /// Paper: 0.1 s (Table 1); production: 20 ms.
    pub trans: Span,
    /// `T_buffer`: the largest buffer that a search may span, and the one of
    /// users who name none. Paper: 15 s (Table 1); production: 4 s.
    pub buffer: Span,
    /// Searches for a backup until giving up. 1 or more, default 3 (ADVODS 3.1).
    pub tries: u32,
    /// Whether a search whose agents all came back with nothing is repeated
    /// like one whose timer ran out. Paper: no (nothing has changed in
    /// between); production: yes, after `retry_wait`.
    pub retry_empty: bool,
    /// Before such a repetition. Default 1 s.
    pub retry_wait: Span,
    /// After giving up, how long until the next search all the same. Paper:
    /// never, only at the next trigger (ADVODS 3.2.2); production: 10 s.
    pub retry_given_up: Option<Span>,
    /// How long a node asked to make a reservation official may take to answer.
    /// Paper: 2 s; production: 1 s.
    pub confirm_wait: Span,
    /// Which of several candidates is best.
    pub policy: Policy,
    /// Ablation: a `normaldual` only where `free >= 1`, and an activated normal
    /// displaces nobody. Default off: the published continuity at full load is
    /// reachable only without it.
    pub strict: bool,
    /// Whether a user who has not begun may displace backups. Default on:
    /// moving a backup interrupts nobody.
    pub new_may_displace_backups: bool,
    /// Whether the bottom line can refuse users (admission table, second row).
    /// Default on (ADVODS 3.2.1); off for comparisons with loss systems.
    pub bottom_line_for_primaries: bool,
    /// Whether the admission table is applied to backups too, beside the test
    /// of candidates. Default off: the table's last row would make the
    /// published continuity at full load impossible.
    pub bottom_line_for_backups: bool,
    /// What the bottom line moves.
    pub bottom_line_moves: Moves,
    /// Whether rows of one primary that could no longer all be honoured are
    /// moved when a slot is claimed on a full node. Paper: off, as in the
    /// evaluation's procedure; production: on.
    pub trim_rows: bool,
    /// Whether a VIP without a `vipdual` gets a `normaldual`. Default on: a VIP
    /// would be worse off than a normal otherwise.
    pub vip_fallback: bool,
    /// Whether agents spare themselves ways whose result is on a board already.
    /// Default on; off where a search must see every node.
    pub board_stop: bool,
    /// Whether a user whose activation finds no room is sent on as a Pull-MA.
    /// Paper: off; production: on.
    pub repull: bool,
    /// How long after nobody could serve a layer to a user it is looked for
    /// again. Paper: only when a node returns; production: 1 s, since a node that
    /// returns is linked with the others a moment later.
    pub layer_retry: Option<Span>,
    /// Whether the newer of two nodes that serve one user is told from the
    /// older. Default on; off only to show what it is good for.
    pub epochs: bool,
    /// For how long a user is served who says nothing. Paper: for ever;
    /// production: 10 s. Also for how long enhancements are served whose Base
    /// node died without a successor.
    pub lease: Option<Span>,
    /// The shortest time between two position reports to a `normaldual`; a
    /// `vipdual` hears each one. Default 1 s.
    pub lazy_position: Span,
    /// The shortest time after which a Base node asks again the nodes that serve
    /// enhancements to its users whether they do. Paper: never; production: 5 s.
    pub layer_check: Option<Span>,
    /// Whether every node is taken to store its level's layer of every title.
    /// Paper: yes, the evaluation places nothing; production: no.
    pub assume_stored: bool,
    /// Storage of a node. Default 100 GB.
    pub storage: ByteCount,
    /// Popularity in thousandths, weighed by the layer's importance, below
    /// which a node does not store a title. Default 0: everything.
    pub popularity_floor: u32,
    /// Between two looks of the origin at what is placed; it pushes again what
    /// is short of copies. Default 10 s.
    pub placement_check: Span,
    /// `T_k`: viewings of a class of titles at once, backups not counted.
    /// `u64::MAX`: no threshold, the default (Simon et al., section 3).
    pub thresholds: ByClass<u64>,
    /// Whether the thresholds do not hold for VIPs. Default off: a threshold is
    /// policy.
    pub vip_exempt: bool,
    /// What all deliveries of the node may take of its link to the viewers, at
    /// the mean rates of their layers. `u64::MAX`: no bound, the default.
    pub link_rate: BitRate,
    /// Bytes of titles that a Base node keeps which were not placed there and are
    /// copied from the origin while they are watched (Simon et al., section 2.1).
    /// Default 0: none.
    pub store_limit: ByteCount,
    /// What such copies may take of the link to the origin together. Default: no
    /// bound.
    pub origin_rate: BitRate,
    /// For how long each takes its part of that link.
    pub origin_hold: Hold,
    /// To how many further nodes a viewer is sent who was refused at a Base node,
    /// the origin included; who has begun to watch is sent on as long as there is
    /// one. Paper: no bound (ADVODS 2.2); production: 2. 0: blocked is lost
    /// (Simon et al.).
    pub redirects: Option<u8>,
    /// The most links on the way of a search agent. 1 to 63, default 48.
    pub max_hops: usize,
    /// The most notes an agent brings back. 1 to 64, default 8.
    pub max_route: usize,
    /// The most nodes asked for one layer by a Pull-MA. Default 200.
    pub max_asked: usize,
    /// The most searches of others remembered. Default 4096.
    pub max_searches: usize,
    /// The most rows, tentative ones included. Default 4096.
    pub max_rows: usize,
    /// The most users served, whatever the capacity. Default 4096.
    pub max_users: usize,
    /// The most titles and pushes remembered. Default 1000.
    pub max_titles: usize,
    /// The most neighbours. Default 64.
    pub max_neighbours: usize,
    /// The most nodes whose standing is remembered. Default 4096.
    pub max_nodes: usize,
}

/// Which candidate is best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The fewest steps, then the most headroom, then the lowest name (Lu and
    /// Mori: "within the fewest steps"). The default.
    Nearest,
    /// The most headroom, then the fewest steps, then the lowest name.
    MostHeadroom,
}

/// What the bottom line moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moves {
    /// The lowest backup, with or without a slot: the admission table as it is
    /// printed. The production profile.
    LowestBackup,
    /// Rows without a slot only, as in the evaluation's procedure. The paper
    /// profile.
    RowsOnly,
}

impl AutonomyConfig {
    /// The values of the paper's second evaluation.
    pub const fn paper() -> Self {
        Self {
            signal_every: Span::from_secs(1),
            dead_after: Span::from_secs(3),
            digest_every: 10,
            since: 0,
            capacity: 30,
            origin_capacity: u32::MAX,
            bottom_line: 3,
            process: Span::from_millis(400),
            trans: Span::from_millis(100),
            buffer: Span::from_secs(15),
            tries: 3,
            retry_empty: false,
            retry_wait: Span::from_secs(1),
            retry_given_up: None,
            confirm_wait: Span::from_secs(2),
            policy: Policy::Nearest,
            strict: false,
            new_may_displace_backups: true,
            bottom_line_for_primaries: true,
            bottom_line_for_backups: false,
            bottom_line_moves: Moves::RowsOnly,
            trim_rows: false,
            vip_fallback: true,
            board_stop: true,
            repull: false,
            layer_retry: None,
            layer_check: None,
            epochs: true,
            lease: None,
            lazy_position: Span::from_secs(1),
            assume_stored: true,
            storage: ByteCount(100_000_000_000),
            popularity_floor: 0,
            placement_check: Span::from_secs(10),
            thresholds: ByClass { archived: u64::MAX, first_time: u64::MAX, ad_hoc: u64::MAX },
            vip_exempt: false,
            link_rate: BitRate(u64::MAX),
            store_limit: ByteCount(0),
            origin_rate: BitRate(u64::MAX),
            origin_hold: Hold::Download,
            redirects: None,
            max_hops: 48,
            max_route: 8,
            max_asked: 200,
            max_searches: 4096,
            max_rows: 4096,
            max_users: 4096,
            max_titles: 1000,
            max_neighbours: 64,
            max_nodes: 4096,
        }
    }

    /// The values for real films.
    pub const fn production() -> Self {
        Self {
            signal_every: Span::from_millis(100),
            dead_after: Span::from_millis(400),
            capacity: 200,
            bottom_line: 20,
            process: Span::from_millis(1),
            trans: Span::from_millis(20),
            buffer: Span::from_secs(4),
            retry_empty: true,
            retry_given_up: Some(Span::from_secs(10)),
            confirm_wait: Span::from_secs(1),
            bottom_line_moves: Moves::LowestBackup,
            trim_rows: true,
            repull: true,
            layer_retry: Some(Span::from_secs(1)),
            layer_check: Some(Span::from_secs(5)),
            lease: Some(Span::from_secs(10)),
            assume_stored: false,
            redirects: Some(2),
            ..Self::paper()
        }
    }

    /// What admission by class has to give away. Slots are counted by the node
    /// itself, since backups take some of them.
    pub fn class_limits(&self) -> ClassLimits {
        let (thresholds, to_viewers) = (self.thresholds, self.link_rate);
        let (to_origin, storage) = (self.origin_rate, self.store_limit);
        ClassLimits {
            thresholds,
            to_viewers,
            to_origin,
            storage,
            max_grants: usize::MAX,
            ..ClassLimits::default()
        }
    }

    /// The longest that a recovery takes: `T_detect + h (T_trans + T_process) +
    /// T_process + T_trans` with `T_detect = Td`, where `hops` is how far the
    /// news of the death has to go.
    pub fn recovery_bound(&self, hops: u32) -> Span {
        let hop = self.process + self.trans;
        self.dead_after + hop.saturating_mul(u64::from(hops)) + hop
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paper_profile_is_the_table_of_the_paper() {
        let paper = AutonomyConfig::paper();
        assert_eq!(paper.capacity, 30);
        assert_eq!(paper.process, Span::from_millis(400));
        assert_eq!(paper.trans, Span::from_millis(100));
        assert_eq!(paper.buffer, Span::from_secs(15));
        assert_eq!(paper.recovery_bound(8), Span::from_millis(7_500));
    }
}
