//! What players need from an init segment.

use super::boxes::{boxes, find_path};
use super::{ContainerError, KEY_BOX};

/// Where sample entries lie.
const ENTRIES: [&str; 6] = ["moov", "trak", "mdia", "minf", "stbl", "stsd"];
/// Version, flags and number of entries at the start of `stsd`.
const STSD_HEADER: usize = 8;
/// The fixed fields of a visual sample entry.
const VISUAL_FIELDS: usize = 78;

/// The body of `avcC` (`AVCDecoderConfigurationRecord`, ISO/IEC 14496-15) in
/// Base's init segment: the `codec_data` of H.264 in `avc` form.
pub fn avc_config(init: &[u8]) -> Result<&[u8], ContainerError> {
    let entries = find_path(init, &ENTRIES)?;
    let entry = find_path(entries.get(STSD_HEADER..).unwrap_or_default(), &["avc1"])?;
    find_path(entry.get(VISUAL_FIELDS..).unwrap_or_default(), &["avcC"])
}

/// The grey key frame in an enhancement's init segment.
pub fn enhancement_key(init: &[u8]) -> Result<&[u8], ContainerError> {
    for found in boxes(init) {
        let found = found?;
        if let Some(key) = found.body.strip_prefix(KEY_BOX.as_slice())
            && found.kind == *b"uuid"
        {
            return Ok(key);
        }
    }
    Err(ContainerError::Missing("uuid"))
}
