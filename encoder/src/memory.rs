//! What blocks at work take in memory.

use codec::Ladder;

/// The most a block may take, in bytes, to be made beside others by one thread each:
/// two stay under a gigabyte with all that is around them.
const BLOCK_BYTES: u64 = 350_000_000;
/// Bytes that a VP9 encoder of libvpx takes for each pixel, nearly half of it for tokens.
const ENCODER_BYTES: u64 = 92;

/// Whether a block of so many pictures may be made beside others.
pub(crate) fn fits_beside_others(ladder: &Ladder, pictures: u64) -> bool {
    block_bytes(ladder, pictures) <= BLOCK_BYTES
}

/// What a block takes: `pictures` of it at display size, some of them twice while the
/// next one is read, and an encoder for each enhancement.
fn block_bytes(ladder: &Ladder, pictures: u64) -> u64 {
    let pixels = |(width, height): (u32, u32)| u64::from(width) * u64::from(height);
    let coded: u64 = (1..ladder.layers()).map(|layer| pixels(ladder.size(layer))).sum();
    let film = pixels(ladder.display()).saturating_mul(pictures).saturating_mul(3);
    coded.saturating_mul(ENCODER_BYTES).saturating_add(film)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_720p_fit_beside_one_another_and_those_of_1080p_do_not() {
        let ladder = |width, height| Ladder::new(width, height, &[2, 1, 1]).unwrap();
        assert_eq!(block_bytes(&ladder(1280, 720), 30), 252_518_400);
        let fits = |width, height, pictures| fits_beside_others(&ladder(width, height), pictures);
        assert!(fits(1280, 720, 60) && !fits(1920, 1080, 24) && !fits(1280, 720, 120));
    }
}
