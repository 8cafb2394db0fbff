//! Quantities as people write them in a scenario: `"20 s"`, `"8 Mbit/s"`, `"1 %"`.

use media::{BitRate, Span};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use std::fmt;
use std::time::Duration;

/// A number and what follows it, without the blank between.
fn split(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: f64 = number.parse().ok()?;
    Some((number, unit.trim()))
}

/// A time: `"400 ms"`, `"20 s"`, `"2 min"`.
pub(super) fn span(text: &str) -> Result<Span, String> {
    let wrong = || format!("{text:?} is no time; write it as \"400 ms\", \"20 s\" or \"2 min\"");
    let (number, unit) = split(text.trim()).ok_or_else(wrong)?;
    let seconds = match unit {
        "ms" => number / 1_000.0,
        "s" => number,
        "min" => number * 60.0,
        _ => return Err(wrong()),
    };
    if seconds > 86_400.0 {
        return Err(format!("{text:?} is more than a day"));
    }
    Duration::try_from_secs_f64(seconds).map(Span::from).map_err(|_| wrong())
}

/// A rate: `"800 kbit/s"`, `"8 Mbit/s"`, `"1 Gbit/s"`.
pub(super) fn rate(text: &str) -> Result<BitRate, String> {
    let wrong = || format!("{text:?} is no rate; write it as \"800 kbit/s\" or \"8 Mbit/s\"");
    let (number, unit) = split(text.trim()).ok_or_else(wrong)?;
    let bits = match unit {
        "bit/s" => number,
        "kbit/s" => number * 1e3,
        "Mbit/s" => number * 1e6,
        "Gbit/s" => number * 1e9,
        _ => return Err(wrong()),
    };
    if !(1_000.0..=1e12).contains(&bits) {
        return Err(format!("{text:?} is not between 1 kbit/s and 1000 Gbit/s"));
    }
    Ok(BitRate(whole(bits)))
}

/// A share: `"1 %"`, or a number from 0 to 1.
pub(super) fn share(text: &str) -> Result<f64, String> {
    let wrong = || format!("{text:?} is no share; write it as \"1 %\"");
    let (number, unit) = split(text.trim()).ok_or_else(wrong)?;
    let share = match unit {
        "%" => number / 100.0,
        "" => number,
        _ => return Err(wrong()),
    };
    if (0.0..=1.0).contains(&share) { Ok(share) } else { Err(format!("{text:?} is not between 0 and 100 %")) }
}

#[allow(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the caller has checked the range"
)]
fn whole(value: f64) -> u64 {
    value.round() as u64
}

/// What a text becomes.
struct Text<T>(fn(&str) -> Result<T, String>);

impl<T> Visitor<'_> for Text<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a quantity with its unit, as a text")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.0)(text).map_err(E::custom)
    }
}

/// Declares a quantity that is read from a text.
macro_rules! quantity {
    ($(#[$about:meta])* $name:ident($of:ty), $read:ident) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $name(pub $of);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                from.deserialize_str(Text($read)).map(Self)
            }
        }
    };
}

quantity!(
    /// A time with its unit.
    Lasting(Span),
    span
);
quantity!(
    /// A rate with its unit.
    Rate(BitRate),
    rate
);
quantity!(
    /// A share, usually in per cent.
    Share(f64),
    share
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_as_people_write_them() {
        assert_eq!(span("400 ms"), Ok(Span::from_millis(400)));
        assert_eq!(span("1.5s"), Ok(Span::from_millis(1_500)));
        assert_eq!(span("2 min"), Ok(Span::from_secs(120)));
        assert_eq!(rate("2.5 Mbit/s"), Ok(BitRate(2_500_000)));
        assert_eq!((share("1 %"), share("0.25")), (Ok(0.01), Ok(0.25)));
        for wrong in ["", "s", "-1 s", "3", "3 h", "99999 min"] {
            assert!(span(wrong).is_err(), "{wrong:?}");
        }
        assert!(rate("8 MB/s").is_err() && rate("1 bit/s").is_err() && share("101 %").is_err());
    }
}
