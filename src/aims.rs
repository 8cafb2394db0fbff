//! What the tiers of a title shall be, on the command line of `lamina encode`.

use encoder::Aims;
use media::BitRate;

/// Rates and qualities instead of the knob.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Aims (each reads the film twice: a sample of its blocks is encoded first)")]
pub(crate) struct AimArgs {
    /// Rate that bronze shall have with the sound, such as 500k or 1.5M
    #[arg(long, value_parser = rate, value_name = "RATE")]
    bronze: Option<BitRate>,
    /// The same for silver, with bronze in it
    #[arg(long, value_parser = rate, value_name = "RATE")]
    silver: Option<BitRate>,
    /// The same for gold, with all below it
    #[arg(long, value_parser = rate, value_name = "RATE")]
    gold: Option<BitRate>,
    /// PSNR of luma that gold shall have, in dB
    #[arg(long, value_parser = decibels, value_name = "DB", conflicts_with = "gold")]
    gold_psnr: Option<f64>,
    /// Put silver in the middle of bronze and gold in dB
    #[arg(long, conflicts_with = "silver")]
    tune_split: bool,
}

impl AimArgs {
    pub(crate) fn aims(&self) -> Aims {
        let mut rates = vec![self.bronze, self.silver, self.gold];
        while rates.last() == Some(&None) {
            rates.pop();
        }
        Aims { rates, top_psnr: self.gold_psnr, split: self.tune_split }
    }
}

/// Reads bits a second, with `k` or `M` for thousands and millions.
fn rate(text: &str) -> Result<BitRate, String> {
    let shape = || format!("{text:?} is no rate: give bits a second, such as 500k or 1.5M");
    let (number, unit) = match text.strip_suffix(['k', 'K']) {
        Some(number) => (number, 1e3),
        None => text.strip_suffix('M').map_or((text, 1.0), |number| (number, 1e6)),
    };
    let value = number.parse::<f64>().map_err(|_| shape())? * unit;
    // Slower than speech or faster than a disk is a slip of the pen.
    if !(1e3..=1e10).contains(&value) {
        return Err(shape());
    }
    #[allow(
        clippy::as_conversions,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked"
    )]
    Ok(BitRate(value.round() as u64))
}

fn decibels(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "a number is needed".to_owned())?;
    if (20.0..=60.0).contains(&value) { Ok(value) } else { Err("20 (coarse) to 60 (fine)".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_as_people_write_them() {
        assert_eq!(rate("500k"), Ok(BitRate(500_000)));
        assert_eq!(rate("1.5M"), Ok(BitRate(1_500_000)));
        assert_eq!(rate("64000"), Ok(BitRate(64_000)));
        for bad in ["", "k", "-1M", "500", "1T", "NaN", "infk", "1e30"] {
            assert!(rate(bad).is_err(), "{bad:?}");
        }
    }
}
