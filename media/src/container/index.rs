//! The index at the end of a layer's file, for players that seek.

use super::{ContainerError, VIDEO_TRACK};
use mp4_atom::{Encode as _, FragmentInfo, Mfra, Mfro, Tfra};

/// The bytes of `mfra`: for each block the presentation time of its first
/// picture in the track (in ticks, with the layer's delay: the edit list is
/// applied afterwards) and the offset of its `moof` in the file.
pub fn random_access_index(
    delay: u32,
    blocks: impl IntoIterator<Item = (u64, u64)>,
) -> Result<Vec<u8>, ContainerError> {
    let entries = blocks.into_iter().map(|(start, moof_offset)| FragmentInfo {
        time: start.saturating_add(u64::from(delay)),
        moof_offset,
        traf_number: 1,
        trun_number: 1,
        sample_delta: 1,
    });
    let mut mfra = Mfra {
        tfra: vec![Tfra { track_id: VIDEO_TRACK, entries: entries.collect() }],
        mfro: Mfro::default(),
    };
    let draft = encode(&mfra)?;
    mfra.mfro.parent_size =
        u32::try_from(draft.len()).map_err(|_| ContainerError::Inconsistent("an index beyond 32 bits"))?;
    encode(&mfra)
}

fn encode(mfra: &Mfra) -> Result<Vec<u8>, ContainerError> {
    let mut bytes = Vec::new();
    mfra.encode(&mut bytes).map_err(ContainerError::in_box("mfra"))?;
    Ok(bytes)
}
