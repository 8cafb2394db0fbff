//! Reading a chunk. Nothing in it is believed: each size is checked against the
//! bytes that are there, and what is allocated is bounded by their number.

use super::boxes::{BoxAt, boxes, find};
use super::fragment::NON_SYNC_BIT;
use super::{
    AAC_FRAME, AUDIO_TRACK, AudioSample, BlockSamples, ContainerError, MAX_SAMPLES, VIDEO_TRACK, VideoSample,
};
use bytes::Bytes;
use mp4_atom::{Decode, Tfdt, Tfhd, Trun, TrunEntry, TrunSamples};

/// Reads the samples of a chunk; their data are slices of `chunk`. `delay` is
/// the layer's (`LayerInfo::delay`) and is taken off the display times. Of a
/// chunk in halves both are read, or its `a` alone if that is all there is.
///
/// # Errors
/// Anything that is not one `moof` and one `mdat`, or two such pairs, of the form
/// that [`write_chunk`](super::write_chunk) and [`write_halves`](super::write_halves)
/// give, with every sample inside `mdat`.
pub fn parse_chunk(chunk: &Bytes, delay: u32) -> Result<BlockSamples, ContainerError> {
    let (mut block, end) = parse_pair(chunk, delay)?;
    if end == chunk.len() {
        return Ok(block);
    }
    let rest = chunk.slice(end..);
    let (odd, end) = parse_pair(&rest, delay)?;
    if end != rest.len() {
        return Err(ContainerError::Inconsistent("bytes after the chunk's `mdat`"));
    }
    let alone = block.audio.is_empty() && odd.audio.is_empty() && delay == 0;
    if !alone || odd.end != block.end || odd.start <= block.start {
        return Err(ContainerError::Inconsistent("two halves that do not fit together"));
    }
    if block.video.len() + odd.video.len() > MAX_SAMPLES {
        return Err(ContainerError::Inconsistent("no samples, or too many"));
    }
    block.video.extend(odd.video);
    block.video.sort_by_key(|sample| sample.pts);
    give_durations(&mut block)?;
    Ok(block)
}

/// Reads one `moof` and `mdat`; with where they end.
fn parse_pair(chunk: &Bytes, delay: u32) -> Result<(BlockSamples, usize), ContainerError> {
    let mut top = boxes(chunk);
    let moof = next(&mut top, "moof")?;
    let mdat = next(&mut top, "mdat")?;
    let end = mdat.body_start + mdat.body.len();
    let data = mdat.body_start..end;
    let mut block = BlockSamples::default();
    let (mut pictures, mut sound) = (false, false);
    for found in boxes(moof.body) {
        let found = found?;
        match &found.kind {
            b"mfhd" => {}
            b"traf" => {
                let run = Run::read(found.body)?;
                match run.track {
                    VIDEO_TRACK if !pictures => {
                        pictures = true;
                        run.pictures(chunk, &data, delay, &mut block)?;
                    }
                    AUDIO_TRACK if !sound => {
                        sound = true;
                        block.audio = run.sound(chunk, &data)?;
                    }
                    _ => return Err(ContainerError::Inconsistent("a track that is unknown or comes twice")),
                }
            }
            _ => return Err(ContainerError::Unexpected(found.name())),
        }
    }
    if block.video.is_empty() {
        return Err(ContainerError::Inconsistent("a chunk without pictures"));
    }
    Ok((block, end))
}

fn next<'a>(
    top: &mut impl Iterator<Item = Result<BoxAt<'a>, ContainerError>>,
    kind: &'static str,
) -> Result<BoxAt<'a>, ContainerError> {
    match top.next() {
        Some(Ok(found)) if found.kind == kind.as_bytes() => Ok(found),
        Some(Ok(found)) => Err(ContainerError::Unexpected(found.name())),
        Some(Err(error)) => Err(error),
        None => Err(ContainerError::Missing(kind)),
    }
}

fn decode<T: Decode>(traf: &[u8], kind: &'static str) -> Result<T, ContainerError> {
    let mut whole = find(traf, kind)?.whole;
    T::decode(&mut whole).map_err(ContainerError::in_box(kind))
}

/// One track's run of samples as it stands in `traf`.
struct Run {
    track: u32,
    decode_time: u64,
    /// From the start of `moof`, which is the start of the chunk.
    data_offset: usize,
    entries: Vec<TrunEntry>,
}

impl Run {
    fn read(traf: &[u8]) -> Result<Self, ContainerError> {
        for found in boxes(traf) {
            let found = found?;
            if ![b"tfhd", b"tfdt", b"trun"].contains(&&found.kind) {
                return Err(ContainerError::Unexpected(found.name()));
            }
        }
        let tfhd: Tfhd = decode(traf, "tfhd")?;
        let tfdt: Tfdt = decode(traf, "tfdt")?;
        let trun: Trun = decode(traf, "trun")?;
        if !tfhd.default_base_is_moof || tfhd.base_data_offset.is_some() {
            return Err(ContainerError::Inconsistent("data offsets that do not start at `moof`"));
        }
        let TrunSamples::Explicit(entries) = trun.samples else {
            return Err(ContainerError::Inconsistent("samples without sizes"));
        };
        if entries.is_empty() || entries.len() > MAX_SAMPLES {
            return Err(ContainerError::Inconsistent("no samples, or too many"));
        }
        let data_offset = trun.data_offset.and_then(|offset| usize::try_from(offset).ok());
        Ok(Self {
            track: tfhd.track_id,
            decode_time: tfdt.base_media_decode_time,
            data_offset: data_offset.ok_or(ContainerError::Inconsistent("samples without a place"))?,
            entries,
        })
    }

    /// Each entry with its decoding time, duration and bytes.
    fn samples<'a>(
        &'a self,
        chunk: &'a Bytes,
        data: &'a std::ops::Range<usize>,
    ) -> impl Iterator<Item = Result<(&'a TrunEntry, u64, u64, Bytes), ContainerError>> {
        let (mut time, mut at) = (self.decode_time, self.data_offset);
        self.entries.iter().map(move |entry| {
            let size = entry.size.ok_or(ContainerError::Inconsistent("samples without sizes"))?;
            let end = usize::try_from(size)
                .ok()
                .and_then(|size| at.checked_add(size))
                .filter(|end| at >= data.start && *end <= data.end)
                .ok_or(ContainerError::OutOfBounds("a sample"))?;
            let bytes = chunk.slice(at..end);
            let start = time;
            let duration = u64::from(entry.duration.unwrap_or(0));
            time = time.checked_add(duration).ok_or(ContainerError::Inconsistent("times beyond 64 bits"))?;
            at = end;
            Ok((entry, start, duration, bytes))
        })
    }

    fn pictures(
        &self,
        chunk: &Bytes,
        data: &std::ops::Range<usize>,
        delay: u32,
        block: &mut BlockSamples,
    ) -> Result<(), ContainerError> {
        block.start = self.decode_time;
        for sample in self.samples(chunk, data) {
            let (entry, time, duration, data) = sample?;
            let pts = u64::try_from(entry.cts.unwrap_or(0))
                .ok()
                .and_then(|offset| time.checked_add(offset)?.checked_sub(u64::from(delay)))
                .ok_or(ContainerError::Inconsistent("a picture displayed before its title starts"))?;
            let sync = entry.flags.is_some_and(|flags| flags & NON_SYNC_BIT == 0);
            block.end = time.saturating_add(duration);
            block.video.push(VideoSample { pts, duration: 0, sync, data });
        }
        give_durations(block)
    }

    fn sound(
        &self,
        chunk: &Bytes,
        data: &std::ops::Range<usize>,
    ) -> Result<Vec<AudioSample>, ContainerError> {
        let frame = |sample| {
            let (_, pts, duration, data) = sample?;
            Ok(AudioSample { pts, duration, data })
        };
        let mut frames: Vec<_> =
            self.samples(chunk, data).map(frame).collect::<Result<_, ContainerError>>()?;
        // A gap in the sound stretches the frame before it; what it holds stays a frame.
        for frame in &mut frames {
            frame.duration = frame.duration.min(AAC_FRAME);
        }
        Ok(frames)
    }
}

/// A picture is displayed until the next one in display order, the last one
/// until the block's end.
fn give_durations(block: &mut BlockSamples) -> Result<(), ContainerError> {
    let mut order: Vec<(u64, usize)> =
        block.video.iter().enumerate().map(|(index, sample)| (sample.pts, index)).collect();
    order.sort_unstable();
    if order.first().map(|first| first.0) != Some(block.start) {
        return Err(ContainerError::Inconsistent("pictures outside their block"));
    }
    let ends = order.iter().skip(1).map(|next| next.0).chain(std::iter::once(block.end));
    for (&(pts, index), end) in order.iter().zip(ends) {
        let duration = end.checked_sub(pts).filter(|duration| *duration > 0);
        if let Some(sample) = block.video.get_mut(index) {
            sample.duration =
                duration.ok_or(ContainerError::Inconsistent("two pictures displayed at the same time"))?;
        }
    }
    Ok(())
}
