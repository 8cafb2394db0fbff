//! Settings by aims instead of by the knob: rates or a quality that the tiers
//! shall have, found on a sample of the film's blocks before it is encoded.

mod sample;
mod search;

use crate::error::EncodeError;
use crate::options::{EncodeOptions, Progress};
use codec::Settings;
use media::BitRate;
use sample::{Sample, Tier};
use search::nearest;
use std::sync::atomic::AtomicBool;

/// What the tiers of a title shall be. What is not aimed at follows the knob.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Aims {
    /// Rate of each quality with its sound, bronze first; none is free. As many as
    /// there are layers, or fewer.
    pub rates: Vec<Option<BitRate>>,
    /// PSNR of luma of the best quality in dB.
    pub top_psnr: Option<f64>,
    /// Whether the second quality shall lie in the middle of the first and the
    /// best in dB. A rate for it goes before.
    pub split: bool,
}

/// One aim of one tier.
#[derive(Debug, Clone, Copy)]
enum Aim {
    /// kbit/s, this tier and all below and the sound.
    Rate(f64),
    /// dB.
    Psnr(f64),
}

impl Aims {
    /// Whether anything is aimed at.
    pub fn any(&self) -> bool {
        self.split || self.top_psnr.is_some() || self.rates.iter().any(Option::is_some)
    }

    /// The aim of each of `layers` tiers.
    fn tiers(&self, layers: usize) -> Vec<Option<Aim>> {
        let kbit = |rate: &BitRate| Aim::Rate(crate::report::to_f64(rate.0) / 1_000.0);
        let rates = self.rates.iter().map(|rate| rate.as_ref().map(kbit));
        let mut tiers: Vec<_> = rates.chain(std::iter::repeat(None)).take(layers).collect();
        if let (Some(top), Some(psnr)) = (tiers.last_mut(), self.top_psnr) {
            *top = Some(Aim::Psnr(psnr));
        }
        tiers
    }

    /// Aims that contradict each other or the number of layers.
    ///
    /// # Errors
    /// [`EncodeError::Option`].
    pub(crate) fn check(&self, layers: usize) -> Result<(), EncodeError> {
        let wrong = |why: &str| Err(EncodeError::Option(why.into()));
        if self.rates.len() > layers {
            return wrong("rates for more qualities than there are layers");
        }
        let rates: Vec<u64> = self.rates.iter().flatten().map(|rate| rate.0).collect();
        if rates.first() == Some(&0) || !rates.is_sorted_by(|below, above| below < above) {
            return wrong("each quality needs a larger rate than the one below it");
        }
        if self.top_psnr.is_some() && self.rates.get(layers - 1).copied().flatten().is_some() {
            return wrong("a rate and a PSNR for the same quality");
        }
        if self.split && layers < 3 {
            return wrong("there is no quality between the first and the best");
        }
        Ok(())
    }
}

/// The settings as they stand while they are being found.
#[derive(Debug, Clone, PartialEq)]
struct Found {
    crf: u32,
    quantizers: Vec<u8>,
}

/// Finds what the aims need: the same options with a rate factor and quantizers,
/// and what cannot be reached.
///
/// # Errors
/// What reading or encoding the sample says; [`EncodeError::Option`] for a film
/// that can be read only once.
pub(crate) fn aimed(
    options: &EncodeOptions,
    progress: &mut dyn FnMut(Progress),
    cancel: &AtomicBool,
) -> Result<(EncodeOptions, Vec<String>), EncodeError> {
    let mut sample = Sample::read(options, cancel)?;
    let layers = options.factors.len();
    let tiers = options.aims.tiers(layers);
    let mut found = knob(options.quality, layers);
    found.crf = options.crf.unwrap_or(found.crf);
    found.quantizers = options.quantizers.clone().unwrap_or(found.quantizers);
    if let Some((tier, aim)) = tiers.iter().enumerate().rev().find_map(|(tier, aim)| Some((tier, (*aim)?))) {
        // First all together, so that what is free stays in proportion.
        let halves = (20, 90);
        let at = nearest(halves, aim.goal(), |half| {
            let found = knob(from_half(half), layers);
            Ok(aim.of(&sample.tiers(found.crf, upto(&found.quantizers, tier), cancel)?, tier))
        })?;
        found = knob(from_half(at), layers);
    }
    for (tier, aim) in tiers.iter().enumerate().filter_map(|(tier, aim)| Some((tier, (*aim)?))) {
        single(&mut sample, &mut found, tier, aim, cancel)?;
    }
    if options.aims.split && tiers.get(1).copied().flatten().is_none() {
        let mut trial = found.clone();
        let at = nearest((0, 63), 0.5, |quantizer| {
            set(&mut trial, 1, quantizer);
            Ok(place(&sample.tiers(trial.crf, &trial.quantizers, cancel)?))
        })?;
        set(&mut found, 1, at);
        if let Some(aim) = tiers.last().copied().flatten() {
            single(&mut sample, &mut found, layers - 1, aim, cancel)?;
        }
    }
    let reached = sample.tiers(found.crf, &found.quantizers, cancel)?;
    let missed = tiers.iter().enumerate().filter_map(|(tier, aim)| (*aim)?.missed(&reached, tier));
    let missed = missed.collect();
    progress(Progress::Tuned { crf: found.crf, quantizers: found.quantizers.clone() });
    let (crf, quantizers) = (Some(found.crf), Some(found.quantizers));
    Ok((EncodeOptions { crf, quantizers, ..options.clone() }, missed))
}

/// Moves the setting of one layer until its tier has what is aimed at.
fn single(
    sample: &mut Sample,
    found: &mut Found,
    tier: usize,
    aim: Aim,
    cancel: &AtomicBool,
) -> Result<(), EncodeError> {
    let mut trial = found.clone();
    let range = if tier == 0 { (1, 50) } else { (0, 63) };
    let at = nearest(range, aim.goal(), |value| {
        set(&mut trial, tier, value);
        Ok(aim.of(&sample.tiers(trial.crf, upto(&trial.quantizers, tier), cancel)?, tier))
    })?;
    set(found, tier, at);
    Ok(())
}

/// Base's rate factor (layer 0) or an enhancement's quantizer.
fn set(found: &mut Found, layer: usize, value: u32) {
    match layer.checked_sub(1) {
        None => found.crf = value,
        Some(enhancement) => {
            if let Some(quantizer) = found.quantizers.get_mut(enhancement) {
                *quantizer = u8::try_from(value).unwrap_or(u8::MAX);
            }
        }
    }
}

fn upto(quantizers: &[u8], tier: usize) -> &[u8] {
    quantizers.get(..tier).unwrap_or(quantizers)
}

/// What the knob gives.
fn knob(quality: f32, layers: usize) -> Found {
    let settings = Settings::for_quality(quality, layers);
    Found { crf: settings.whole_crf(), quantizers: settings.quantizers }
}

/// The knob is searched in halves of a step.
fn from_half(half: u32) -> f32 {
    f32::from(u16::try_from(half).unwrap_or(u16::MAX)) / 2.0
}

/// Where the second tier lies between the first (0) and the last (1) in dB.
fn place(tiers: &[Tier]) -> f64 {
    match tiers {
        [first, second, .., last] if last.psnr > first.psnr => {
            (second.psnr - first.psnr) / (last.psnr - first.psnr)
        }
        _ => 0.5,
    }
}

impl Aim {
    /// What is searched for falls as the setting rises.
    fn goal(self) -> f64 {
        match self {
            Self::Rate(kbit) => kbit.ln(),
            Self::Psnr(db) => db,
        }
    }

    fn of(self, tiers: &[Tier], tier: usize) -> f64 {
        let tier = tiers.get(tier);
        match self {
            Self::Rate(_) => tier.map_or(0.0, |tier| tier.kbit.max(1e-3).ln()),
            Self::Psnr(_) => tier.map_or(0.0, |tier| tier.psnr),
        }
    }

    /// In words, if the sample is further away than settings are apart.
    fn missed(self, tiers: &[Tier], tier: usize) -> Option<String> {
        let got = tiers.get(tier)?;
        let quality = media::Quality(u8::try_from(tier + 1).ok()?);
        match self {
            Self::Rate(kbit) if (got.kbit / kbit).ln().abs() > 0.15 => {
                Some(format!("{quality} will have about {:.0} kbit/s instead of {kbit:.0}", got.kbit))
            }
            Self::Psnr(db) if (got.psnr - db).abs() > 0.5 => {
                Some(format!("{quality} will have about {:.1} dB instead of {db:.1}", got.psnr))
            }
            Self::Rate(_) | Self::Psnr(_) => None,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;

    fn rates(kbit: &[u64]) -> Aims {
        let rates = kbit.iter().map(|&kbit| (kbit > 0).then_some(BitRate(kbit * 1_000))).collect();
        Aims { rates, ..Aims::default() }
    }

    #[test]
    fn aims_that_contradict_each_other_are_refused() {
        assert!(!Aims::default().any() && rates(&[0, 500]).any());
        assert!(rates(&[500, 1_500, 4_000]).check(3).is_ok());
        assert!(rates(&[500, 0, 4_000]).check(3).is_ok());
        let refused = |aims: Aims, layers| aims.check(layers).unwrap_err().to_string();
        assert_eq!(refused(rates(&[1, 2, 3]), 2), "rates for more qualities than there are layers");
        let larger = "each quality needs a larger rate than the one below it";
        assert_eq!(refused(rates(&[500, 0, 400]), 3), larger);
        assert_eq!(refused(rates(&[500, 500]), 3), larger);
        let both = Aims { top_psnr: Some(40.0), ..rates(&[0, 0, 4_000]) };
        assert_eq!(refused(both, 3), "a rate and a PSNR for the same quality");
        let split = Aims { split: true, ..Aims::default() };
        assert_eq!(refused(split, 2), "there is no quality between the first and the best");
    }

    #[test]
    fn the_place_of_silver_is_between_bronze_and_gold() {
        let tiers = [30.0, 33.0, 36.0].map(|psnr| Tier { kbit: 1.0, psnr });
        assert!((place(&tiers) - 0.5).abs() < 1e-9);
    }
}
