//! Traces of our own making, and the formulas that make them. They are nobody's
//! network; they are what one would want to see a player do.

use std::f64::consts::TAU;
use std::fmt::Write as _;

/// The text of the trace of this name, as it lies in `docs/examples/traces`.
pub(super) fn made(name: &str) -> Option<String> {
    match name {
        "made-steps" => Some(steps()),
        "made-tunnels" => Some(tunnels()),
        "made-wifi" => Some(wifi()),
        _ => None,
    }
}

/// Ten seconds each: 4 Mbit/s, 900 kbit/s, 520 kbit/s, 1.5 Mbit/s, 4 Mbit/s.
fn steps() -> String {
    let mut text = String::from("# made by a formula: ten seconds each, down and up again\nseconds,bit/s\n");
    for (at, rate) in [(0, 4_000_000), (10, 900_000), (20, 520_000), (30, 1_500_000), (40, 4_000_000)] {
        let _ = writeln!(text, "{at},{rate}");
    }
    text
}

/// 6 Mbit/s, and every fifteen seconds nothing for a second and a half.
fn tunnels() -> String {
    let mut text = String::from(
        "# made by a formula: 6 Mbit/s; nothing from 12 s to 13.5 s; a round takes 15 s\nseconds,bit/s\n",
    );
    for (at, rate) in [("0", 6_000_000), ("12", 0), ("13.5", 6_000_000)] {
        let _ = writeln!(text, "{at},{rate}");
    }
    text
}

/// Mahimahi's format, 20 s: 3 + 2 sin(2 pi t / 5 s) Mbit/s at second t, as moments
/// at which packets of 1500 bytes leave, and nothing in the last 60 ms of each
/// second.
fn wifi() -> String {
    let mut text = String::from(
        "# made by a formula: 3 + 2 sin(2 pi t / 5 s) Mbit/s, and nothing in the last 60 ms of each second\n",
    );
    let mut owed = 0.0;
    for milli in 1..=20_000_u32 {
        let seconds = f64::from(milli) / 1_000.0;
        owed += (3e6 + 2e6 * (TAU * seconds / 5.0).sin()) / 1_000.0;
        if milli % 1_000 >= 940 {
            owed = 0.0;
        }
        while owed >= 12_000.0 {
            let _ = writeln!(text, "{milli}");
            owed -= 12_000.0;
        }
    }
    // The end of the round.
    let _ = writeln!(text, "20000");
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;
    use media::Span;
    use sim::Trace;
    use std::fs;
    use std::path::Path;

    #[test]
    fn the_files_are_what_the_formulas_make() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/examples/traces");
        for (name, ending) in [("made-steps", "csv"), ("made-tunnels", "csv"), ("made-wifi", "mahimahi")] {
            let path = folder.join(format!("{name}.{ending}"));
            if std::env::var_os("LAMINA_MAKE_TRACES").is_some() {
                fs::write(&path, made(name).unwrap()).unwrap();
            }
            assert!(fs::read_to_string(&path).unwrap() == made(name).unwrap(), "{}", path.display());
        }
    }

    #[test]
    fn they_last_and_carry_what_is_said_of_them() {
        let of = |name| Trace::read(&made(name).unwrap()).unwrap();
        let kbit = |name| of(name).mean_rate().0 / 1_000;
        assert_eq!(
            ["made-steps", "made-tunnels", "made-wifi"].map(|name| of(name).period()),
            [50, 15, 20].map(Span::from_secs)
        );
        assert_eq!([kbit("made-steps"), kbit("made-tunnels")], [2_184, 5_400]);
        assert!((2_700..2_900).contains(&kbit("made-wifi")), "{}", kbit("made-wifi"));
    }
}
