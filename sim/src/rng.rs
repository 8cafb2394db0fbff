//! Randomness by seed, and by nothing else.
//!
//! `SplitMix64` (Steele, Lea and Flood, 2014): 64 bits of state, every seed is
//! good, and it passes `BigCrush`. It is written here because a library may
//! change its streams with a version, and a seed must replay for ever.

/// A stream of random numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rng {
    state: u64,
}

/// The odd number nearest to 2^64 divided by the golden ratio.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

const fn mix(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

impl Rng {
    /// The stream of a seed.
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The stream of a seed for one purpose. Two purposes of one seed do not
    /// disturb each other, so that more draws for one leave the other as it was.
    pub const fn stream(seed: u64, purpose: u64) -> Self {
        Self { state: mix(seed ^ mix(purpose.wrapping_mul(STEP))) }
    }

    /// Sixty-four random bits.
    pub const fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        mix(self.state)
    }

    /// A number below `bound`, each equally likely; 0 if `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap_or(u64::MAX);
        usize::try_from(self.below_wide(bound)).unwrap_or(0)
    }

    /// A number below `bound`, each equally likely; 0 if `bound` is 0.
    pub fn below_wide(&mut self, bound: u64) -> u64 {
        if bound == 0 {
            return 0;
        }
        // Drawing again above the last whole multiple removes the bias.
        let whole = u64::MAX - u64::MAX % bound;
        loop {
            let drawn = self.bits();
            if drawn < whole {
                return drawn % bound;
            }
        }
    }

    /// True with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// A number in 0 inclusive to 1 exclusive.
    pub fn unit(&mut self) -> f64 {
        let word = u32::try_from(self.bits() >> 32).unwrap_or(0);
        f64::from(word) / 4_294_967_296.0
    }

    /// Puts `items` into a random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last + 1);
            items.swap(last, other);
        }
    }

    /// One of `items`, or nothing of none.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.below(items.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_the_published_one() {
        // The first numbers of SplitMix64 from the seed 1234567.
        let mut rng = Rng::new(1_234_567);
        let drawn: Vec<u64> = (0..3).map(|_| rng.bits()).collect();
        assert_eq!(drawn, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn every_number_below_the_bound_is_drawn_about_as_often() {
        let mut rng = Rng::new(1);
        let mut counts = [0_u32; 7];
        for _ in 0..70_000 {
            counts[rng.below(7)] += 1;
        }
        assert!(counts.iter().all(|count| (9_600..10_400).contains(count)), "{counts:?}");
        assert_eq!(rng.below(0), 0);
    }

    #[test]
    fn a_shuffle_loses_nothing_and_streams_do_not_disturb_each_other() {
        let mut cards: Vec<u32> = (0..100).collect();
        Rng::stream(3, 1).shuffle(&mut cards);
        assert_ne!(cards[..10], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        cards.sort_unstable();
        assert_eq!(cards, (0..100).collect::<Vec<_>>());
        assert_ne!(Rng::stream(3, 1).bits(), Rng::stream(3, 2).bits());
        assert_eq!(Rng::stream(3, 1), Rng::stream(3, 1));
    }
}
