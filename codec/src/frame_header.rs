//! The gate in front of libvpx: which VP9 frames an enhancement layer may hold.
//!
//! libvpx follows a frame header wherever it leads: to a new picture size (and
//! its memory), to hidden frames, to references that were never filled. The
//! layers need none of that, so the uncompressed header (VP9 bitstream
//! specification, section 6.2) is read here first, and only two forms pass:
//! one shown key frame of the layer's size, and shown inter frames that keep
//! the size of their references and refresh nothing but LAST and ALTREF.

use crate::error::FrameError;

/// The shape a frame must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    /// The grey key frame at the start of a block.
    Key,
    /// Every other frame.
    Inter,
}

/// Reference slots that a frame may overwrite: LAST (0) and ALTREF (2). Slot 1,
/// GOLDEN, belongs to the injected pictures.
const REFRESHABLE: u8 = 0b101;

/// Most bytes of a frame of this coded size: twice the raw picture, and room
/// for headers. Lossless VP9 stays below the raw size but for a few bytes.
pub(crate) fn byte_bound((width, height): (u32, u32)) -> usize {
    let luma = u64::from(width) * u64::from(height);
    usize::try_from(luma * 3 + 4096).unwrap_or(usize::MAX)
}

/// Reads the uncompressed header and refuses what the encoder never writes.
pub(crate) fn check(data: &[u8], expected: Expected, size: (u32, u32)) -> Result<(), FrameError> {
    let bound = byte_bound(size);
    if data.len() > bound {
        return Err(FrameError::TooLarge { found: data.len(), bound });
    }
    // A superframe index ends in 110xxxxx; libvpx pads frames so that they never do.
    if data.last().is_some_and(|last| last & 0xe0 == 0xc0) {
        return Err(FrameError::Kind("a superframe"));
    }
    let mut bits = Bits { data, position: 0 };
    if bits.read(2)? != 2 {
        return Err(FrameError::NotVp9);
    }
    let profile = bits.read(1)? | bits.read(1)? << 1;
    if profile != 0 {
        return Err(FrameError::Profile(u8::try_from(profile).unwrap_or(u8::MAX)));
    }
    if bits.flag()? {
        return Err(FrameError::Kind("a repeated frame"));
    }
    let key = !bits.flag()?;
    let shown = bits.flag()?;
    let resilient = bits.flag()?;
    if !shown {
        return Err(FrameError::Kind("a hidden frame"));
    }
    match (expected, key) {
        (Expected::Key, true) => check_key(&mut bits, size),
        (Expected::Inter, false) => check_inter(&mut bits, resilient),
        (Expected::Key, false) => Err(FrameError::Kind("an inter frame instead of the key frame")),
        (Expected::Inter, true) => Err(FrameError::Kind("a key frame")),
    }
}

fn check_key(bits: &mut Bits<'_>, expected: (u32, u32)) -> Result<(), FrameError> {
    const SRGB: u32 = 7;
    if bits.read(24)? != 0x49_83_42 || bits.read(3)? == SRGB {
        return Err(FrameError::NotVp9);
    }
    let _range = bits.flag()?;
    let found = (bits.read(16)? + 1, bits.read(16)? + 1);
    if found != expected {
        return Err(FrameError::Size { expected, found });
    }
    Ok(())
}

fn check_inter(bits: &mut Bits<'_>, resilient: bool) -> Result<(), FrameError> {
    if !resilient {
        let _reset_context = bits.read(2)?;
    }
    let refresh = u8::try_from(bits.read(8)?).unwrap_or(u8::MAX);
    if refresh & !REFRESHABLE != 0 {
        return Err(FrameError::Refresh(refresh));
    }
    let _references = bits.read(12)?;
    for _ in 0..3 {
        if bits.flag()? {
            return Ok(()); // takes the size of a reference: all have the layer's
        }
    }
    Err(FrameError::Kind("a new picture size"))
}

struct Bits<'a> {
    data: &'a [u8],
    position: usize,
}

impl Bits<'_> {
    fn flag(&mut self) -> Result<bool, FrameError> {
        let byte = self.data.get(self.position / 8).ok_or(FrameError::Truncated)?;
        let bit = byte >> (7 - self.position % 8) & 1;
        self.position += 1;
        Ok(bit == 1)
    }

    fn read(&mut self, count: u32) -> Result<u32, FrameError> {
        (0..count).try_fold(0, |value, _| Ok(value << 1 | u32::from(self.flag()?)))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]
mod tests {
    use super::*;

    const SIZE: (u32, u32) = (64, 64);
    /// Shown key frame, 64x64, colour space 2.
    const KEY: [u8; 10] = [0x82, 0x49, 0x83, 0x42, 0x40, 0x03, 0xf0, 0x03, 0xf0, 0x00];
    /// Shown inter frame: refresh 1, references 0, 1, 2, size of the first.
    const INTER: [u8; 5] = [0x86, 0x00, 0x40, 0x92, 0x00];

    #[test]
    fn the_two_written_forms_pass() {
        assert_eq!(check(&KEY, Expected::Key, SIZE), Ok(()));
        assert_eq!(check(&INTER, Expected::Inter, SIZE), Ok(()));
    }

    #[test]
    fn a_size_that_would_make_libvpx_allocate_is_refused() {
        let mut key = KEY;
        key[5] = 0xff;
        let refused = FrameError::Size { expected: SIZE, found: (4096, 64) };
        assert_eq!(check(&key, Expected::Key, SIZE), Err(refused));
        let mut inter = INTER;
        inter[3] = 0x90; // takes the size of none of its references
        let refused = FrameError::Kind("a new picture size");
        assert_eq!(check(&inter, Expected::Inter, SIZE), Err(refused));
        assert_eq!(check(&inter[..4], Expected::Inter, SIZE), Err(FrameError::Truncated));
    }

    #[test]
    fn every_other_kind_is_named() {
        let kind = |data: &[u8]| check(data, Expected::Inter, SIZE).unwrap_err();
        assert_eq!(kind(&[0x88, 0]), FrameError::Kind("a repeated frame"));
        assert_eq!(kind(&[0x84, 0, 0]), FrameError::Kind("a hidden frame"));
        assert_eq!(kind(&KEY), FrameError::Kind("a key frame"));
        assert_eq!(kind(&[0xa6, 0]), FrameError::Profile(1));
        assert_eq!(kind(&[0x46, 0]), FrameError::NotVp9);
        assert_eq!(kind(&[]), FrameError::Truncated);
        assert_eq!(kind(&[0x86, 0, 0xc0]), FrameError::Kind("a superframe"));
        assert_eq!(kind(&[0x86, 0x00, 0xc0, 0x92, 0x00]), FrameError::Refresh(0b11));
        assert_eq!(kind(&vec![0; 16_385]), FrameError::TooLarge { found: 16_385, bound: 16_384 });
    }
}
