//! What the pipeline tells its owner.

use media::{Quality, Span};
use std::time::Instant;
use tokio::sync::mpsc;

/// How many events may wait for the owner.
pub(crate) const EVENT_CAPACITY: usize = 1_024;
/// Room that is kept for events which must arrive when the owner is slow.
const KEPT_FOR_ESSENTIAL: usize = 256;

/// Something that happened at the player's GStreamer end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PipelineEvent {
    /// There is room for one more block: feed one.
    WantsBlock {
        /// The serial of the seek since which there is room.
        serial: u64,
    },
    /// The first picture since the start was shown.
    FirstPicture {
        /// When it was shown.
        at: Instant,
    },
    /// A picture was shown. Left out when the owner does not keep up.
    Shown {
        /// Its time in the title.
        pts: Span,
        /// What it was made of.
        quality: Quality,
        /// When it was shown.
        at: Instant,
        /// The block it belongs to.
        block: u32,
    },
    /// All pictures of a block were shown at one quality and compared with the
    /// manifest's hash.
    BlockChecked {
        /// The block.
        block: u32,
        /// The quality at which it was shown.
        quality: Quality,
        /// Whether it was what the encoder made, bit for bit.
        ok: bool,
    },
    /// A picture came so late that people see it stand still.
    Freeze {
        /// When the picture before was shown, counted from the first picture.
        start: Span,
        /// How long it stood.
        length: Span,
        /// Its time in the title.
        position: Span,
    },
    /// Playback stands still because it was asked to.
    Paused,
    /// The last picture was shown.
    EndOfStream {
        /// The serial of the blocks that came to their end.
        serial: u64,
    },
    /// A key was pressed in the window.
    Key(UserKey),
    /// There is no audio device: the film runs on the system clock, silently.
    NoAudioDevice,
    /// Playback cannot go on, and why.
    Error(String),
}

/// What a viewer asks for at the keyboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserKey {
    /// Space: pause, or play on.
    TogglePause,
    /// Right arrow.
    SeekForward,
    /// Left arrow.
    SeekBack,
    /// Up arrow: one quality better.
    Better,
    /// Down arrow: one quality less.
    Worse,
    /// `b`, `s`, `g`.
    Quality(Quality),
    /// `+`: forward faster, or back slower.
    Faster,
    /// `-`: the reverse of `+`.
    Slower,
    /// `q` or Escape.
    Quit,
}

impl UserKey {
    /// The meaning of a key by its X11 name, such as `space` or `Left`.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "space" => Self::TogglePause,
            "Right" => Self::SeekForward,
            "Left" => Self::SeekBack,
            "Up" => Self::Better,
            "Down" => Self::Worse,
            "b" => Self::Quality(Quality::BRONZE),
            "s" => Self::Quality(Quality::SILVER),
            "g" => Self::Quality(Quality::GOLD),
            "plus" | "equal" | "KP_Add" => Self::Faster,
            "minus" | "KP_Subtract" => Self::Slower,
            "q" | "Escape" => Self::Quit,
            _ => return None,
        })
    }
}

/// Where events go. Nothing here ever waits: GStreamer's threads call it.
#[derive(Clone, Debug)]
pub(crate) struct Events(mpsc::Sender<PipelineEvent>);

impl Events {
    pub(crate) fn new() -> (Self, mpsc::Receiver<PipelineEvent>) {
        let (sender, receiver) = mpsc::channel(EVENT_CAPACITY);
        (Self(sender), receiver)
    }

    /// Sends an event that the owner must get. False if the owner is gone or
    /// has left hundreds of events unread.
    pub(crate) fn send(&self, event: PipelineEvent) -> bool {
        self.0.try_send(event).is_ok()
    }

    /// Sends an event that is only for figures, unless the owner is slow.
    pub(crate) fn mention(&self, event: PipelineEvent) {
        if self.0.capacity() > KEPT_FOR_ESSENTIAL {
            // A closed channel means that the owner is gone; nobody misses it.
            let _ = self.0.try_send(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_owner_loses_figures_but_no_request_for_a_block() {
        let (events, mut receiver) = Events::new();
        let shown =
            PipelineEvent::Shown { pts: Span::ZERO, quality: Quality::GOLD, at: Instant::now(), block: 0 };
        (0..5_000).for_each(|_| events.mention(shown.clone()));
        assert!(events.send(PipelineEvent::WantsBlock { serial: 0 }));
        let mut received = Vec::new();
        while let Ok(event) = receiver.try_recv() {
            received.push(event);
        }
        assert_eq!(received.len(), EVENT_CAPACITY - KEPT_FOR_ESSENTIAL + 1);
        assert_eq!(received.last(), Some(&PipelineEvent::WantsBlock { serial: 0 }));
    }

    #[test]
    fn keys_mean_what_the_manual_says() {
        assert_eq!(UserKey::from_name("space"), Some(UserKey::TogglePause));
        assert_eq!(UserKey::from_name("g"), Some(UserKey::Quality(Quality::GOLD)));
        assert_eq!(UserKey::from_name("plus"), Some(UserKey::Faster));
        assert_eq!(UserKey::from_name("F1"), None);
    }
}
