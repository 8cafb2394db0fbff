//! The manifest as it travels: deflated, since its text takes three to four times
//! as many bytes, and nobody can begin to watch without it.

use super::MAX_MANIFEST_BYTES;
use crate::hash::Hash;
use bytes::Bytes;
use flate2::Compression;
use flate2::read::{ZlibDecoder, ZlibEncoder};
use std::io::Read as _;

/// What is allocated ahead for a manifest of which only the sender knows the
/// length, in bytes.
const TRUSTED_AHEAD: u64 = 256 * 1024;

/// A manifest, deflated (RFC 1950).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedManifest {
    /// What travels.
    pub bytes: Bytes,
    /// Length of what was deflated.
    pub length: u64,
    /// BLAKE3 of what was deflated.
    pub hash: Hash,
}

/// What came is no deflated manifest of the length and hash announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it does not unfold to what was announced")]
pub struct UnpackError;

impl PackedManifest {
    /// Deflates a manifest as it lies on disk. Takes 15 ms for each MB, so do it once.
    pub fn new(manifest: &[u8]) -> Self {
        let mut packed = Vec::new();
        let read = ZlibEncoder::new(manifest, Compression::default()).read_to_end(&mut packed);
        // Reading from memory into memory cannot fail.
        debug_assert!(read.is_ok());
        let length = u64::try_from(manifest.len()).unwrap_or(u64::MAX);
        Self { bytes: packed.into(), length, hash: Hash::of(manifest) }
    }

    /// The most bytes that a manifest of `length` bytes may have when packed:
    /// what does not shrink grows by five bytes for each 16 KiB.
    pub const fn most(length: u64) -> u64 {
        length.saturating_add(length / 1024).saturating_add(64)
    }

    /// The manifest, exactly as it was. Never more than the announced length and
    /// one byte are unfolded.
    ///
    /// # Errors
    /// It is another one, or none.
    pub fn unpack(&self) -> Result<Bytes, UnpackError> {
        if self.length > MAX_MANIFEST_BYTES {
            return Err(UnpackError);
        }
        let ahead = usize::try_from(self.length.min(TRUSTED_AHEAD)).map_err(|_| UnpackError)?;
        let mut manifest = Vec::with_capacity(ahead);
        let mut unfolding = ZlibDecoder::new(self.bytes.as_ref()).take(self.length.saturating_add(1));
        unfolding.read_to_end(&mut manifest).map_err(|_| UnpackError)?;
        let right = u64::try_from(manifest.len()) == Ok(self.length) && Hash::of(&manifest) == self.hash;
        if right { Ok(manifest.into()) } else { Err(UnpackError) }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;
    use crate::manifest::tests_support::small;

    #[test]
    fn a_manifest_is_the_same_after_its_travel_and_travels_lighter() {
        let bytes = small().to_bytes().unwrap();
        let packed = PackedManifest::new(&bytes);
        assert_eq!(packed.unpack().unwrap(), bytes);
        assert!(packed.bytes.len() < bytes.len() * 2 / 3, "{} of {}", packed.bytes.len(), bytes.len());
        for odd in [Vec::new(), (0..=255).cycle().take(40_000).collect(), blake(40_000)] {
            let packed = PackedManifest::new(&odd);
            assert_eq!(packed.unpack().unwrap(), odd);
            let most = PackedManifest::most(packed.length);
            assert!(u64::try_from(packed.bytes.len()).unwrap() <= most);
        }
    }

    /// Bytes that nothing makes shorter.
    fn blake(length: usize) -> Vec<u8> {
        (0_u32..).flat_map(|n| *Hash::of(&n.to_be_bytes()).as_bytes()).take(length).collect()
    }

    #[test]
    fn what_unfolds_to_something_else_is_refused() {
        let packed = PackedManifest::new(&vec![7; 1 << 20]);
        let longer = PackedManifest { length: packed.length - 1, ..packed.clone() };
        assert_eq!(longer.unpack(), Err(UnpackError), "no more than announced is unfolded");
        let shorter = PackedManifest { length: packed.length + 1, ..packed.clone() };
        assert_eq!(shorter.unpack(), Err(UnpackError));
        let other = PackedManifest { hash: Hash::of(b"other"), ..packed.clone() };
        assert_eq!(other.unpack(), Err(UnpackError));
        let cut = PackedManifest { bytes: packed.bytes.slice(..packed.bytes.len() / 2), ..packed.clone() };
        assert_eq!(cut.unpack(), Err(UnpackError));
        let noise = PackedManifest { bytes: Bytes::from_static(b"no zlib"), ..packed.clone() };
        assert_eq!(noise.unpack(), Err(UnpackError));
        let huge = PackedManifest { length: MAX_MANIFEST_BYTES + 1, ..packed };
        assert_eq!(huge.unpack(), Err(UnpackError));
    }
}
