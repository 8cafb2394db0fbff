//! Every number the player machine is run by.

use crate::message::BASE_GRACE;
use crate::quality::StepConfig;
use crate::service::Hedge;
use media::Span;

/// What a viewer does of its own accord when a source fails it. With none of it
/// it waits for what the network says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Own {
    /// A source found silent or lost is passed over for the next of its layer.
    pub failover: bool,
    /// A chunk whose source is quiet is asked of a second one.
    pub hedge: bool,
    /// Who has no source of Base left seeks service again.
    pub repull: bool,
}

impl Own {
    /// Everything: the default.
    pub const ALL: Self = Self { failover: true, hedge: true, repull: true };
    /// Nothing: Base moves only when the network says so.
    pub const NONE: Self = Self { failover: false, hedge: false, repull: false };
}

/// The bounds and patience of a player. Every field has a lawful default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlayerConfig {
    /// The most programme ahead of the position, held or asked for, wherever it
    /// lies (shelf, pipeline, decoders): 4 s. The next block is always allowed.
    pub buffer: Span,
    /// A source not heard for this long gets a probe, and then one each time
    /// this passes: 100 ms (Ts of the survival signal).
    pub probe_every: Span,
    /// A source that answered nothing for this long is silent: 400 ms (Td).
    pub silent_after: Span,
    /// From one dial of a lost or silent source to the next: 1 s.
    pub redial_every: Span,
    /// How many live sources of a layer are kept connected: 2, the one that
    /// serves and the one that would be next.
    pub connected_per_layer: usize,
    /// How long a first block waits for its enhancements once Base is held: 300 ms.
    pub start_patience: Span,
    /// A start that has not got its Base this long after asking looks at the
    /// rate and asks for what it carries: 500 ms.
    pub start_judgement: Span,
    /// Base that is held before play begins on a link found narrow by that
    /// judgement: 2 s. What was asked in vain still lies in the link's queues.
    pub narrow_start: Span,
    /// How long before its first picture a block goes to the pipeline at the
    /// latest; what has not come by then is late: 350 ms.
    pub feed_margin: Span,
    /// The most Base requests open at once: 4.
    pub base_window: usize,
    /// The most enhancement requests open at once: 4; on a link with little
    /// room it is 1, so that few bytes in flight stand in Base's way.
    pub enhancement_window: usize,
    /// Hundredths of the wanted quality's rate below which a link has little
    /// room: 150.
    pub roomy_percent: u64,
    /// An open request whose source was not heard for this long is also asked
    /// of the next source, if its chunk is due within `hedge_when_due`: 200 ms.
    pub hedge_after: Span,
    /// See `hedge_after`: 1 s.
    pub hedge_when_due: Span,
    /// What the viewer does of its own accord: everything.
    pub own: Own,
    /// Whether the backup keeps a slot ready for this viewer (1+1) and may be
    /// asked before it takes over: no.
    pub hot_standby: bool,
    /// From one report of the position to the Base node to the next: 1 s.
    pub report_every: Span,
    /// Who was heard this recently delivers for certain, whatever a backup
    /// thinks: 50 ms.
    pub heard_lately: Span,
    /// How long the old node has to answer a probe, at least, before a backup's
    /// word is taken for it: 100 ms.
    pub doubt: Span,
    /// The pause before a node that does not serve this viewer yet is asked
    /// again: 100 ms.
    pub ask_again: Span,
    /// How long Base may have no usable source before service is sought anew:
    /// 900 ms (Td and half a second, in which a backup takes over).
    pub repull_after: Span,
    /// How long one door has to find service: 3 s.
    pub seek_patience: Span,
    /// The pause once every door was tried in vain: 500 ms.
    pub seek_pause: Span,
    /// How often one chunk is asked for before an enhancement is given up, or
    /// Base goes on in steps of `retry_slowly`: 8.
    pub most_tries: u32,
    /// The pause before asking again when every source failed a chunk: 200 ms.
    pub retry_after: Span,
    /// The pause once `most_tries` are used up: 1 s.
    pub retry_slowly: Span,
    /// How long a Base chunk remains of use after its time: 10 s.
    pub base_grace: Span,
    /// Playing ends if the next block cannot be had for this long: 30 s.
    pub give_up_after: Span,
    /// Seeks that come faster than this are answered by the last of them: 100 ms.
    pub seek_gap: Span,
    /// The most pictures a second of trick play: 8. Blocks are skipped above, and
    /// so that no more are asked for than in normal play: at n times the speed
    /// each n-th.
    pub trick_pictures: u64,
    /// The fastest trick play: 16 times.
    pub fastest: i8,
    /// When quality steps down and up.
    pub step: StepConfig,
}

impl PlayerConfig {
    /// When a request is doubled.
    pub(super) fn hedging(&self) -> Hedge {
        Hedge { after: self.hedge_after, when_due: self.hedge_when_due }
    }
}

impl Default for PlayerConfig {
    fn default() -> Self {
        Self {
            buffer: Span::from_secs(4),
            probe_every: Span::from_millis(100),
            silent_after: Span::from_millis(400),
            redial_every: Span::from_secs(1),
            connected_per_layer: 2,
            start_patience: Span::from_millis(300),
            start_judgement: Span::from_millis(500),
            narrow_start: Span::from_secs(2),
            feed_margin: Span::from_millis(350),
            base_window: 4,
            enhancement_window: 4,
            roomy_percent: 150,
            hedge_after: Span::from_millis(200),
            hedge_when_due: Span::from_secs(1),
            own: Own::ALL,
            hot_standby: false,
            report_every: Span::from_secs(1),
            heard_lately: Span::from_millis(50),
            doubt: Span::from_millis(100),
            ask_again: Span::from_millis(100),
            repull_after: Span::from_millis(900),
            seek_patience: Span::from_secs(3),
            seek_pause: Span::from_millis(500),
            most_tries: 8,
            retry_after: Span::from_millis(200),
            retry_slowly: Span::from_secs(1),
            base_grace: BASE_GRACE,
            give_up_after: Span::from_secs(30),
            seek_gap: Span::from_millis(100),
            trick_pictures: 8,
            fastest: 16,
            step: StepConfig::default(),
        }
    }
}
