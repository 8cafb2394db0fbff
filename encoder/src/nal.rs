//! Units of an H.264 stream in `avc` form: each behind its length in 4 bytes.

/// Types of units that a sample does not need: filler, SEI (x264's lists its
/// settings in every block) and access unit delimiters; parameter sets stand in
/// the init segment.
const DROPPED: [u8; 5] = [6, 7, 8, 9, 12];

/// The units of an access unit, without lengths. None if a length lies.
fn units(sample: &[u8]) -> Option<Vec<&[u8]>> {
    let mut units = Vec::new();
    let mut rest = sample;
    while !rest.is_empty() {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let (unit, after) = after.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
        units.push(unit);
        rest = after;
    }
    Some(units)
}

/// The access unit with nothing but its slices. None if it is not well formed
/// or there are none.
pub(crate) fn slices_only(sample: &[u8]) -> Option<Vec<u8>> {
    let mut kept = Vec::with_capacity(sample.len());
    for unit in units(sample)? {
        let kind = unit.first()? & 0x1f;
        if !DROPPED.contains(&kind) {
            kept.extend_from_slice(&u32::try_from(unit.len()).ok()?.to_be_bytes());
            kept.extend_from_slice(unit);
        }
    }
    (!kept.is_empty()).then_some(kept)
}

/// Whether the access unit starts a sequence (an IDR picture).
pub(crate) fn is_idr(sample: &[u8]) -> bool {
    units(sample).is_some_and(|units| units.iter().any(|unit| unit.first().is_some_and(|b| b & 0x1f == 5)))
}

/// The first SPS and PPS of an `AVCDecoderConfigurationRecord`.
pub(crate) fn parameter_sets(config: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let (sps, rest) = one_set(config.get(5..)?)?;
    let (pps, _) = one_set(rest)?;
    Some((sps.to_vec(), pps.to_vec()))
}

fn one_set(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (count, rest) = bytes.split_first()?;
    if count & 0x1f != 1 {
        return None;
    }
    let (length, rest) = rest.split_first_chunk::<2>()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_slices_remain() {
        let sample = [0, 0, 0, 2, 9, 0x10, 0, 0, 0, 3, 6, 5, 1, 0, 0, 0, 2, 0x65, 0x88];
        assert_eq!(slices_only(&sample), Some(vec![0, 0, 0, 2, 0x65, 0x88]));
        assert!(is_idr(&sample));
        assert!(!is_idr(&[0, 0, 0, 1, 0x41]));
        assert_eq!(slices_only(&[0, 0, 0, 9, 1]), None);
        assert_eq!(slices_only(&[0, 0, 0, 1, 9]), None);
    }

    #[test]
    fn parameter_sets_are_found() {
        let config = [1, 0x64, 0, 0x1f, 0xff, 0xe1, 0, 2, 0x67, 0x64, 1, 0, 1, 0x68];
        assert_eq!(parameter_sets(&config), Some((vec![0x67, 0x64], vec![0x68])));
        assert_eq!(parameter_sets(&config[..9]), None);
    }
}
