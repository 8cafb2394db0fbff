//! Writing a chunk: one `moof` and one `mdat`.

use super::boxes::boxes;
use super::{AUDIO_TRACK, BlockSamples, ContainerError, MAX_SAMPLES, VIDEO_TRACK};
use crate::chunk::MAX_CHUNK_BYTES;
use bytes::Bytes;
use mp4_atom::{Encode as _, Mfhd, Moof, Tfdt, Tfhd, Traf, Trun, TrunEntry, TrunSamples};

/// Flags of a sample that depends on no other one.
pub(super) const SYNC: u32 = 0x0200_0000;
/// Flags of a sample that depends on others and is no sync sample.
pub(super) const NOT_SYNC: u32 = 0x0101_0000;
/// The flag that tells the two apart (`sample_is_non_sync_sample`).
pub(super) const NON_SYNC_BIT: u32 = 0x0001_0000;

/// One run of samples, ready to be written.
struct Run {
    track: u32,
    decode_time: u64,
    entries: Vec<TrunEntry>,
}

/// The bytes of one chunk. `sequence` is the block's index; `delay` is what the
/// layer's init segment says. The same samples always give the same bytes.
///
/// # Errors
/// No pictures, too many, or times or sizes that the container cannot tell.
pub fn write_chunk(sequence: u32, delay: u32, block: &BlockSamples) -> Result<Vec<u8>, ContainerError> {
    if block.video.is_empty() {
        return Err(ContainerError::Inconsistent("a block without pictures"));
    }
    if block.video.len() > MAX_SAMPLES || block.audio.len() > MAX_SAMPLES {
        return Err(ContainerError::Inconsistent("too many samples for one block"));
    }
    let mut runs = vec![video_run(delay, block)?];
    if !block.audio.is_empty() {
        runs.push(audio_run(block)?);
    }
    let video = block.video.iter().map(|sample| &sample.data);
    let payload: Vec<&Bytes> = video.chain(block.audio.iter().map(|sample| &sample.data)).collect();
    assemble(sequence, &runs, &payload)
}

/// The bytes of a chunk in halves, and how many of them are its `a`: one chunk
/// of the even pictures and, if there are any, one of the odd ones.
///
/// # Errors
/// As [`write_chunk`].
pub fn write_halves(
    sequence: u32,
    delay: u32,
    block: &BlockSamples,
) -> Result<(Vec<u8>, usize), ContainerError> {
    let every_second = |first: usize| block.video.iter().skip(first).step_by(2).cloned().collect::<Vec<_>>();
    let a = BlockSamples { video: every_second(0), ..block.clone() };
    let mut bytes = write_chunk(sequence, delay, &a)?;
    let length = bytes.len();
    let video = every_second(1);
    if let Some(first) = video.first() {
        let b = BlockSamples { start: first.pts, end: block.end, video, audio: Vec::new() };
        bytes.extend_from_slice(&write_chunk(sequence, delay, &b)?);
    }
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > MAX_CHUNK_BYTES {
        return Err(ContainerError::Inconsistent("a chunk larger than 64 MiB"));
    }
    Ok((bytes, length))
}

/// Decoding times follow the sorted display times, held back where a picture
/// would otherwise be displayed before it is decoded even with the delay, so
/// that composition offsets are never negative.
fn video_run(delay: u32, block: &BlockSamples) -> Result<Run, ContainerError> {
    let mut times: Vec<u64> = block.video.iter().map(|sample| sample.pts).collect();
    times.sort_unstable();
    if times.first() != Some(&block.start) || times.last() >= Some(&block.end) {
        return Err(ContainerError::Inconsistent("pictures outside their block"));
    }
    let mut next = block.end;
    for (time, sample) in times.iter_mut().zip(&block.video).rev() {
        *time = (*time).min(sample.pts.saturating_add(u64::from(delay))).min(next);
        next = *time;
    }
    let ends = times.iter().skip(1).chain(std::iter::once(&block.end));
    let entries = block.video.iter().zip(&times).zip(ends).map(|((sample, &time), &end)| {
        let shown = sample.pts.saturating_add(u64::from(delay));
        Ok(TrunEntry {
            duration: Some(narrow(end - time)?),
            size: Some(narrow(sample.data.len())?),
            flags: Some(if sample.sync { SYNC } else { NOT_SYNC }),
            cts: if delay == 0 { None } else { Some(i64::from(narrow(shown - time)?)) },
        })
    });
    Ok(Run {
        track: VIDEO_TRACK,
        decode_time: block.start,
        entries: entries.collect::<Result<_, ContainerError>>()?,
    })
}

fn audio_run(block: &BlockSamples) -> Result<Run, ContainerError> {
    let starts: Vec<u64> = block.audio.iter().map(|sample| sample.pts).collect();
    let ends = starts.iter().skip(1).copied().map(Some).chain(std::iter::once(None));
    let entries = block.audio.iter().zip(ends).map(|(sample, end)| {
        let duration = match end {
            Some(end) => end
                .checked_sub(sample.pts)
                .ok_or(ContainerError::Inconsistent("sound that runs backwards"))?,
            None => sample.duration,
        };
        let (duration, size) = (narrow(duration)?, narrow(sample.data.len())?);
        Ok(TrunEntry { duration: Some(duration), size: Some(size), flags: None, cts: None })
    });
    Ok(Run {
        track: AUDIO_TRACK,
        decode_time: starts.first().copied().unwrap_or(0),
        entries: entries.collect::<Result<_, ContainerError>>()?,
    })
}

fn assemble(sequence: u32, runs: &[Run], payload: &[&Bytes]) -> Result<Vec<u8>, ContainerError> {
    // Offsets of data depend on the length of `moof`, which does not depend on
    // their values: write it once to measure, once to keep.
    let draft = encode_moof(&moof(sequence, runs, 0)?)?;
    let head = encode_moof(&moof(sequence, runs, narrow(draft.len() + 8)?)?)?;
    let data: usize = payload.iter().map(|data| data.len()).sum();
    let total = head.len() + 8 + data;
    if u64::try_from(total).unwrap_or(u64::MAX) > MAX_CHUNK_BYTES {
        return Err(ContainerError::Inconsistent("a chunk larger than 64 MiB"));
    }
    let mut bytes = Vec::with_capacity(total);
    bytes.extend_from_slice(&head);
    bytes.extend_from_slice(&narrow(data + 8)?.to_be_bytes());
    bytes.extend_from_slice(b"mdat");
    for data in payload {
        bytes.extend_from_slice(data);
    }
    debug_assert_eq!(boxes(&bytes).count(), 2, "one moof and one mdat");
    Ok(bytes)
}

fn encode_moof(moof: &Moof) -> Result<Vec<u8>, ContainerError> {
    let mut bytes = Vec::new();
    moof.encode(&mut bytes).map_err(ContainerError::in_box("moof"))?;
    Ok(bytes)
}

fn moof(sequence: u32, runs: &[Run], first_data: u32) -> Result<Moof, ContainerError> {
    let mut offset = first_data;
    let mut traf = Vec::with_capacity(runs.len());
    for run in runs {
        let data_offset =
            i32::try_from(offset).map_err(|_| ContainerError::Inconsistent("a chunk larger than 2 GiB"))?;
        traf.push(Traf {
            tfhd: Tfhd { track_id: run.track, default_base_is_moof: true, ..Tfhd::default() },
            tfdt: Some(Tfdt { base_media_decode_time: run.decode_time }),
            trun: vec![Trun {
                data_offset: Some(data_offset),
                samples: TrunSamples::Explicit(run.entries.clone()),
            }],
            ..Traf::default()
        });
        let mut sizes = run.entries.iter().filter_map(|entry| entry.size);
        offset = sizes
            .try_fold(offset, u32::checked_add)
            .ok_or(ContainerError::Inconsistent("a chunk larger than 4 GiB"))?;
    }
    Ok(Moof { mfhd: Mfhd { sequence_number: sequence.saturating_add(1) }, traf })
}

fn narrow(value: impl TryInto<u32>) -> Result<u32, ContainerError> {
    value.try_into().map_err(|_| ContainerError::Inconsistent("a time or size beyond 32 bits"))
}
