//! The edit lists of an MP4 film that others made (ISO/IEC 14496-12, 8.6.5 and
//! 8.6.6): which parts of a track's data are displayed, and when.

use crate::units::Span;
use std::io::{self, Read, Seek, SeekFrom};

/// Boxes that are looked at on one level; more are nonsense.
const MAX_BOXES: usize = 10_000;
/// Tracks whose edits are read.
pub(super) const MAX_TRACKS: usize = 64;
/// Edits of a track that are read.
const MAX_EDITS: u32 = 10_000;
/// Composition offsets that are looked through for the least one.
const MAX_OFFSETS: u32 = 10_000_000;

/// A part of a track's data, and when it is displayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edit {
    /// When it is displayed, from the start of the film.
    pub at: Span,
    /// Where it begins in the data, from composition time 0; where composition
    /// offsets are negative, from the time that the least of them makes 0.
    pub from: Span,
    /// How long it is; up to the end of the data if none.
    pub length: Option<Span>,
}

/// The edits of one track, empty ones left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditedTrack {
    /// Its number in the film.
    pub id: u32,
    /// Its parts in the order in which they are displayed.
    pub edits: Vec<Edit>,
    /// Whether composition offsets are negative.
    pub shifted: bool,
}

/// The edits of a film.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EditedFilm {
    /// Its tracks that have some.
    pub tracks: Vec<EditedTrack>,
    /// Where other bytes must stand in the file for a demuxer to deliver all data
    /// as they are: edit lists become free space, lengths very long.
    pub overwrites: Vec<(u64, [u8; 4])>,
}

/// A length that no film has, in ticks of any clock.
const ENDLESS: [u8; 4] = i32::MAX.to_be_bytes();

/// Why edits cannot be followed. They are lawful, but no film has them but by design.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// Still or at another speed.
    #[error("an edit of track {0} is not played at its own speed")]
    Speed(u32),
    /// Something is displayed twice, or what is later before what is earlier.
    #[error("the edits of track {0} go back in its data")]
    Backwards(u32),
}

/// The tracks of an MP4 film that have edit lists. None also if it is no MP4, or
/// a broken one, which is for its reader to say.
///
/// # Errors
/// Those of `film`, whose position is anywhere afterwards, and [`EditError`]
/// within the result.
pub fn read_edits<F: Read + Seek>(film: &mut F) -> io::Result<Result<EditedFilm, EditError>> {
    let end = film.seek(SeekFrom::End(0))?;
    let mut reader = Reader { film };
    let Some(moov) = reader.find(0..end, *b"moov")? else { return Ok(Ok(EditedFilm::default())) };
    let Some(header) = reader.find(moov.clone(), *b"mvhd")? else { return Ok(Ok(EditedFilm::default())) };
    let Some(clock) = reader.timescale(&header)? else { return Ok(Ok(EditedFilm::default())) };
    let mut found = EditedFilm::default();
    for trak in reader.all(moov, *b"trak", MAX_TRACKS)? {
        match reader.track(trak, clock, &mut found.overwrites)? {
            Some(Ok(track)) => found.tracks.push(track),
            Some(Err(error)) => return Ok(Err(error)),
            None => {}
        }
    }
    if !found.tracks.is_empty() {
        found.overwrites.push((reader.length_place(&header, 16)?, ENDLESS));
    }
    Ok(Ok(found))
}

/// Where the body of a box lies in the file.
pub(super) type Body = std::ops::Range<u64>;

/// Finds boxes and numbers in a film that need not be sound.
pub(super) struct Reader<'a, F> {
    pub(super) film: &'a mut F,
}

impl<F: Read + Seek> Reader<'_, F> {
    /// Up to `N` bytes; fewer only at the end of the file.
    pub(super) fn bytes<const N: usize>(&mut self, at: u64) -> io::Result<Option<[u8; N]>> {
        self.film.seek(SeekFrom::Start(at))?;
        let mut bytes = [0; N];
        match self.film.read_exact(&mut bytes) {
            Ok(()) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) fn number(&mut self, body: &Body, at: u64) -> io::Result<Option<u32>> {
        let at = body.start.saturating_add(at);
        if at.saturating_add(4) > body.end {
            return Ok(None);
        }
        Ok(self.bytes::<4>(at)?.map(u32::from_be_bytes))
    }

    pub(super) fn long(&mut self, body: &Body, at: u64) -> io::Result<Option<u64>> {
        let (high, low) = (self.number(body, at)?, self.number(body, at.saturating_add(4))?);
        Ok(high.zip(low).map(|(high, low)| (u64::from(high) << 32) | u64::from(low)))
    }

    /// The bodies of the first boxes of this kind in a range.
    pub(super) fn all(&mut self, within: Body, kind: [u8; 4], most: usize) -> io::Result<Vec<Body>> {
        let (mut at, mut found) = (within.start, Vec::new());
        for _ in 0..MAX_BOXES {
            let inside = at.saturating_add(8) <= within.end;
            let Some(header) = (if inside { self.bytes::<8>(at)? } else { None }) else { break };
            let [a, b, c, d, name @ ..] = header;
            let (size, start) = match u32::from_be_bytes([a, b, c, d]) {
                0 => (within.end - at, at + 8),
                1 => match self.bytes::<8>(at + 8)? {
                    Some(size) => (u64::from_be_bytes(size), at.saturating_add(16)),
                    None => break,
                },
                size => (u64::from(size), at + 8),
            };
            let end = at.saturating_add(size);
            if end < start || end > within.end {
                break;
            }
            if name == kind {
                found.push(start..end);
                if found.len() >= most {
                    break;
                }
            }
            at = end;
        }
        Ok(found)
    }

    pub(super) fn find(&mut self, within: Body, kind: [u8; 4]) -> io::Result<Option<Body>> {
        Ok(self.all(within, kind, 1)?.pop())
    }

    pub(super) fn path(&mut self, within: Body, kinds: &[[u8; 4]]) -> io::Result<Option<Body>> {
        let mut body = within;
        for kind in kinds {
            let Some(inner) = self.find(body, *kind)? else { return Ok(None) };
            body = inner;
        }
        Ok(Some(body))
    }

    /// Ticks a second, from an `mvhd` or `mdhd` box.
    pub(super) fn timescale(&mut self, header: &Body) -> io::Result<Option<u32>> {
        let wide = self.number(header, 0)?.is_some_and(|version| version >> 24 == 1);
        Ok(self.number(header, if wide { 20 } else { 12 })?.filter(|scale| *scale > 0))
    }

    /// Where the last four bytes of the length stand, which begins at `at` where
    /// times take four bytes.
    fn length_place(&mut self, header: &Body, at: u64) -> io::Result<u64> {
        let wide = self.number(header, 0)?.is_some_and(|version| version >> 24 == 1);
        // Two times of eight bytes instead of four come before it, and four more of itself.
        Ok(header.start.saturating_add(if wide { at + 12 } else { at }))
    }

    fn track(
        &mut self,
        trak: Body,
        clock: u32,
        overwrites: &mut Vec<(u64, [u8; 4])>,
    ) -> io::Result<Option<Result<EditedTrack, EditError>>> {
        let Some(edts) = self.find(trak.clone(), *b"edts")? else { return Ok(None) };
        let Some(elst) = self.find(edts.clone(), *b"elst")? else { return Ok(None) };
        let Some(tkhd) = self.find(trak.clone(), *b"tkhd")? else { return Ok(None) };
        let wide = self.number(&tkhd, 0)?.is_some_and(|version| version >> 24 == 1);
        let Some(id) = self.number(&tkhd, if wide { 20 } else { 12 })? else { return Ok(None) };
        let Some(mdhd) = self.path(trak.clone(), &[*b"mdia", *b"mdhd"])? else { return Ok(None) };
        let Some(scale) = self.timescale(&mdhd)? else { return Ok(None) };
        let shift = self.shift(trak)?;
        let entries = self.entries(&elst)?;
        // The body follows its header of 8 bytes, whose second half is the type.
        overwrites.push((edts.start.saturating_sub(4), *b"free"));
        overwrites.push((self.length_place(&mdhd, 16)?, ENDLESS));
        overwrites.push((self.length_place(&tkhd, 20)?, ENDLESS));
        Ok(Some(edits(id, &entries, shift, (clock, scale)).map(|edits| EditedTrack {
            id,
            edits,
            shifted: shift > 0,
        })))
    }

    fn entries(&mut self, elst: &Body) -> io::Result<Vec<Entry>> {
        let wide = self.number(elst, 0)?.is_some_and(|version| version >> 24 == 1);
        let count = self.number(elst, 4)?.unwrap_or(0).min(MAX_EDITS);
        let size = if wide { 20 } else { 12 };
        let mut entries = Vec::new();
        for n in 0..u64::from(count) {
            let at = 8 + n * size;
            let (length, start) = if wide {
                (self.long(elst, at)?, self.long(elst, at + 8)?.map(u64::cast_signed))
            } else {
                let start = self.number(elst, at + 4)?.map(|start| i64::from(start.cast_signed()));
                (self.number(elst, at)?.map(u64::from), start)
            };
            let rate = self.number(elst, at + size - 4)?;
            let Some(((length, start), rate)) = length.zip(start).zip(rate) else { break };
            entries.push(Entry { length, start, rate });
        }
        Ok(entries)
    }

    /// By how much composition times are later for being never negative, in ticks.
    fn shift(&mut self, trak: Body) -> io::Result<u64> {
        let Some(stbl) = self.path(trak, &[*b"mdia", *b"minf", *b"stbl"])? else { return Ok(0) };
        let Some(ctts) = self.find(stbl.clone(), *b"ctts")? else { return Ok(0) };
        if let Some(cslg) = self.find(stbl, *b"cslg")? {
            let shift = self.number(&cslg, 4)?.map_or(0, |shift| shift.cast_signed().max(0));
            return Ok(u64::from(shift.unsigned_abs()));
        }
        let count = self.number(&ctts, 4)?.unwrap_or(0).min(MAX_OFFSETS);
        self.film.seek(SeekFrom::Start(ctts.start.saturating_add(8)))?;
        let mut table = io::BufReader::new(self.film.by_ref().take(ctts.end.saturating_sub(ctts.start + 8)));
        let (mut least, mut entry) = (0_i32, [0; 8]);
        for _ in 0..count {
            match table.read_exact(&mut entry) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
                Err(error) => return Err(error),
            }
            let [.., a, b, c, d] = entry;
            least = least.min(i32::from_be_bytes([a, b, c, d]));
        }
        Ok(u64::from(least.unsigned_abs()))
    }
}

/// One line of an edit list: its length in ticks of the film, its start in ticks
/// of the track or -1, its speed.
struct Entry {
    length: u64,
    start: i64,
    rate: u32,
}

/// A speed of one, in 16.16 bits.
const ITS_OWN: u32 = 1 << 16;

fn edits(id: u32, entries: &[Entry], shift: u64, (clock, scale): (u32, u32)) -> Result<Vec<Edit>, EditError> {
    let mut found: Vec<Edit> = Vec::new();
    let mut at = 0_u64;
    for (number, entry) in (1..).zip(entries) {
        let shown = Span::from_ticks(at, clock);
        at = at.saturating_add(entry.length);
        let Ok(start) = u64::try_from(entry.start) else { continue };
        if entry.rate != ITS_OWN {
            return Err(EditError::Speed(id));
        }
        let from = Span::from_ticks(start.saturating_add(shift), scale);
        // Films in fragments do not know their end when they begin.
        let open = entry.length == 0 && number == entries.len();
        let length = (!open).then(|| Span::from_ticks(at, clock).saturating_sub(shown));
        let Some(last) = found.last_mut() else {
            found.push(Edit { at: shown, from, length });
            continue;
        };
        let before = last.length.unwrap_or(Span::MAX);
        let end = Span::from_nanos(last.from.as_nanos().saturating_add(before.as_nanos()));
        // Lengths are told by a coarser clock.
        let tick = Span::from_ticks(1, clock);
        if Span::from_nanos(from.as_nanos().saturating_add(tick.as_nanos())) < end {
            return Err(EditError::Backwards(id));
        }
        found.push(Edit { at: shown, from, length });
    }
    Ok(found)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::super::test_boxes::{boxed, numbers};
    use super::*;
    use std::io::Cursor;

    /// A film whose clock ticks 1000 times a second, with a track 7 of 25 pictures
    /// a second at 12800, offsets and edits.
    fn film(offsets: &[i32], edits: &[(u32, i32, u32)]) -> Vec<u8> {
        let mut elst = numbers(&[0, u32::try_from(edits.len()).unwrap()]);
        for (length, start, rate) in edits {
            elst.extend(numbers(&[*length, start.cast_unsigned(), *rate]));
        }
        let mut ctts = numbers(&[0, u32::try_from(offsets.len()).unwrap()]);
        for offset in offsets {
            ctts.extend(numbers(&[1, offset.cast_unsigned()]));
        }
        let stbl = boxed(*b"minf", &boxed(*b"stbl", &boxed(*b"ctts", &ctts)));
        let mdia = boxed(*b"mdia", &[boxed(*b"mdhd", &numbers(&[0, 0, 0, 12_800, 0])), stbl].concat());
        let edts = boxed(*b"edts", &boxed(*b"elst", &elst));
        let trak = boxed(*b"trak", &[boxed(*b"tkhd", &numbers(&[0, 0, 0, 7, 0, 0])), edts, mdia].concat());
        let moov = boxed(*b"moov", &[boxed(*b"mvhd", &numbers(&[0, 0, 0, 1_000, 0])), trak].concat());
        [boxed(*b"ftyp", b"isom"), moov].concat()
    }

    fn read(bytes: &[u8]) -> Result<Vec<EditedTrack>, EditError> {
        read_edits(&mut Cursor::new(bytes)).unwrap().map(|film| film.tracks)
    }

    #[test]
    fn parts_and_their_times_are_read_and_empty_edits_delay_them() {
        let bytes = film(&[512, -512], &[(500, -1, 1 << 16), (1_000, 5_120, 1 << 16), (0, 25_600, 1 << 16)]);
        let tracks = read(&bytes).unwrap();
        let millis = Span::from_millis;
        let first = Edit { at: millis(500), from: millis(440), length: Some(millis(1_000)) };
        let second = Edit { at: millis(1_500), from: millis(2_040), length: None };
        assert_eq!(tracks.iter().map(|track| track.id).collect::<Vec<_>>(), [7]);
        assert_eq!(tracks.first().unwrap().edits, [first, second]);
        let film = read_edits(&mut Cursor::new(&bytes)).unwrap().unwrap();
        let old = |(place, _): &(u64, [u8; 4])| {
            let place = usize::try_from(*place).unwrap();
            bytes.get(place..place + 4).map(<[u8]>::to_vec)
        };
        let old: Vec<_> = film.overwrites.iter().filter_map(old).collect();
        assert_eq!(old, [b"edts".to_vec(), vec![0; 4], vec![0; 4], vec![0; 4]]);
    }

    #[test]
    fn what_goes_back_or_at_another_speed_is_refused_by_name() {
        let back = [(1_000, 12_800, 1 << 16), (1_000, 0, 1 << 16)];
        assert_eq!(read(&film(&[], &back)), Err(EditError::Backwards(7)));
        assert_eq!(read(&film(&[], &[(1_000, 0, 1 << 15)])), Err(EditError::Speed(7)));
        // One that goes on where the other ends, told by a coarser clock.
        let on = [(417, 0, 1 << 16), (417, 5_335, 1 << 16)];
        assert_eq!(read(&film(&[], &on)).unwrap().first().unwrap().edits.len(), 2);
    }

    #[test]
    fn nonsense_has_no_edits() {
        for bytes in [&b""[..], b"text", b"\0\0\0\x01moov\xff\xff\xff\xff\xff\xff\xff\xff", b"\0\0\0\0moov"] {
            assert_eq!(read(bytes), Ok(Vec::new()));
        }
    }
}
