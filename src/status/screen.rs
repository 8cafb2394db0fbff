//! A terminal on which the same text is shown again and again (ECMA-48, and the
//! private modes of xterm): on a screen of its own, without flicker, whatever the
//! size of the window, and given back as it was however the showing ends.

use std::fmt::Write as _;

/// The other screen, no cursor, long lines cut off instead of continued.
const TAKE: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
/// All of it undone, in the other order.
const GIVE_BACK: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";

/// The terminal, until it is dropped.
#[derive(Debug)]
pub(super) struct Screen(());

impl Screen {
    /// Takes the terminal that is standard output.
    pub(super) fn take() -> Self {
        out!("{TAKE}");
        Self(())
    }

    /// Shows this in place of what stood there.
    #[allow(clippy::unused_self, reason = "only who has the terminal may draw on it")]
    pub(super) fn show(&self, text: &str) {
        out!("{}", drawn(text));
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        out!("{GIVE_BACK}");
    }
}

/// Each line is put where it belongs, and never by a line feed: a window that is
/// too low would scroll. What does not fit is drawn on its last line, and the last
/// of it stays. Between the marks at both ends the terminal shows nothing halfway.
fn drawn(text: &str) -> String {
    let mut drawn = String::from("\x1b[?2026h");
    for (number, line) in (1_usize..).zip(text.lines()) {
        // Writing to a `String` cannot fail.
        let _ = write!(drawn, "\x1b[{number};1H{line}\x1b[K");
    }
    drawn.push_str("\x1b[J\x1b[?2026l");
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_put_in_its_place_and_nothing_scrolls() {
        let expected = "\x1b[?2026h\x1b[1;1Hone\x1b[K\x1b[2;1Htwo\x1b[K\x1b[J\x1b[?2026l";
        assert_eq!(drawn("one\ntwo\n"), expected);
        assert!(!drawn("one\ntwo\n").contains('\n'));
    }
}
