//! What an MP4 film that others made says of its tracks and demuxers overlook
//! (ISO/IEC 14496-12, 8.2, 8.3, 8.4, 12.1.5).

use super::edits::{Body, MAX_TRACKS, Reader};
use crate::units::Span;
use std::io::{self, Read, Seek, SeekFrom};

/// One track of a film.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilmTrack {
    /// Its number in the film.
    pub id: u32,
    /// What it holds: `vide` or `soun`, for instance.
    pub kind: [u8; 4],
    /// How long its data are, if it tells.
    pub length: Option<Span>,
    /// Whether its samples use all values from 0 to 255, as its `colr` box says.
    pub full_range: bool,
    /// Whether it is displayed mirrored at the diagonal from the upper right to
    /// the lower left.
    pub mirrored: bool,
}

/// The tracks of a film.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FilmTracks {
    /// How long the film is, if it tells.
    pub length: Option<Span>,
    /// Where in the file the length stands, in words of four bytes.
    pub length_places: Vec<u64>,
    /// In the order of the file.
    pub tracks: Vec<FilmTrack>,
}

/// Reads what stands in `moov`. Empty if it is no MP4, or a broken one, which is for
/// its reader to say.
///
/// # Errors
/// Those of `film`, whose position is anywhere afterwards.
pub fn read_tracks<F: Read + Seek>(film: &mut F) -> io::Result<FilmTracks> {
    let end = film.seek(SeekFrom::End(0))?;
    let mut reader = Reader { film };
    let mut found = FilmTracks::default();
    let Some(moov) = reader.find(0..end, *b"moov")? else { return Ok(found) };
    let Some(mvhd) = reader.find(moov.clone(), *b"mvhd")? else { return Ok(found) };
    found.length = reader.length(&mvhd)?;
    let wide = reader.wide(&mvhd)?;
    let place = mvhd.start.saturating_add(if wide { 24 } else { 16 });
    found.length_places = if wide { vec![place, place.saturating_add(4)] } else { vec![place] };
    for trak in reader.all(moov, *b"trak", MAX_TRACKS)? {
        found.tracks.extend(reader.told(trak)?);
    }
    Ok(found)
}

impl<F: Read + Seek> Reader<'_, F> {
    fn wide(&mut self, header: &Body) -> io::Result<bool> {
        Ok(self.number(header, 0)?.is_some_and(|version| version >> 24 == 1))
    }

    /// The length that an `mvhd` or `mdhd` box states.
    fn length(&mut self, header: &Body) -> io::Result<Option<Span>> {
        let Some(scale) = self.timescale(header)? else { return Ok(None) };
        let ticks = if self.wide(header)? {
            self.long(header, 24)?.filter(|ticks| *ticks != u64::MAX)
        } else {
            self.number(header, 16)?.filter(|ticks| *ticks != u32::MAX).map(u64::from)
        };
        Ok(ticks.filter(|ticks| *ticks > 0).map(|ticks| Span::from_ticks(ticks, scale)))
    }

    fn told(&mut self, trak: Body) -> io::Result<Option<FilmTrack>> {
        let Some(tkhd) = self.find(trak.clone(), *b"tkhd")? else { return Ok(None) };
        let later = if self.wide(&tkhd)? { 12 } else { 0 };
        let Some(id) = self.number(&tkhd, if later > 0 { 20 } else { 12 })? else { return Ok(None) };
        let Some(mdia) = self.find(trak, *b"mdia")? else { return Ok(None) };
        let hdlr = self.find(mdia.clone(), *b"hdlr")?;
        let kind = hdlr.map(|hdlr| self.number(&hdlr, 8)).transpose()?.flatten().unwrap_or(0).to_be_bytes();
        let mdhd = self.find(mdia.clone(), *b"mdhd")?;
        let length = mdhd.map(|mdhd| self.length(&mdhd)).transpose()?.flatten();
        let matrix = |n: u64| 40 + later + n * 4;
        // 16.16 bits of a, b, c and d.
        let turn = [0, 1, 3, 4].map(|n| self.number(&tkhd, matrix(n)));
        let turn = turn.into_iter().collect::<io::Result<Option<Vec<u32>>>>()?;
        let full_range = self.full_range(mdia)?;
        let mirrored = turn.is_some_and(|turn| turn == [0, MINUS_ONE, MINUS_ONE, 0]);
        Ok(Some(FilmTrack { id, kind, length, full_range, mirrored }))
    }

    /// Whether the first sample entry has a `colr` box of type `nclx` that says so.
    fn full_range(&mut self, mdia: Body) -> io::Result<bool> {
        let Some(stsd) = self.path(mdia, &[*b"minf", *b"stbl", *b"stsd"])? else { return Ok(false) };
        let size = u64::from(self.number(&stsd, 8)?.unwrap_or(0));
        let entry = stsd.start.saturating_add(8);
        // The boxes of a picture's sample entry follow 86 bytes of it.
        let boxes = entry.saturating_add(86)..entry.saturating_add(size).min(stsd.end);
        let Some(colr) = self.find(boxes, *b"colr")? else { return Ok(false) };
        let kind = self.number(&colr, 0)?.map(u32::to_be_bytes);
        // Its last byte, of 11, begins with the bit.
        let last = self.number(&colr, 7)?.unwrap_or(0).to_be_bytes();
        Ok(kind == Some(*b"nclx") && matches!(last, [.., flags] if flags & 0x80 != 0))
    }
}

/// -1 in 16.16 bits.
const MINUS_ONE: u32 = 0xffff_0000;

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::super::test_boxes::{boxed, numbers};
    use super::*;
    use std::io::Cursor;

    /// A film of 12 s with a track 3 of pictures of 2 s.
    fn film(matrix: [u32; 4], colr: &[u8]) -> Vec<u8> {
        let [a, b, c, d] = matrix;
        let tkhd = [vec![0; 12], numbers(&[3]), vec![0; 24], numbers(&[a, b, 0, c, d, 0, 0, 0, 0])].concat();
        let hdlr = [vec![0; 8], b"vide".to_vec()].concat();
        let entry = boxed(*b"avc1", &[vec![0; 78], boxed(*b"colr", colr)].concat());
        let stsd = boxed(*b"stsd", &[numbers(&[0, 1]), entry].concat());
        let minf = boxed(*b"minf", &boxed(*b"stbl", &stsd));
        let mdhd = boxed(*b"mdhd", &numbers(&[0, 0, 0, 12_800, 25_600]));
        let mdia = boxed(*b"mdia", &[mdhd, boxed(*b"hdlr", &hdlr), minf].concat());
        let trak = boxed(*b"trak", &[boxed(*b"tkhd", &tkhd), mdia].concat());
        let moov = boxed(*b"moov", &[boxed(*b"mvhd", &numbers(&[0, 0, 0, 1_000, 12_000])), trak].concat());
        [boxed(*b"ftyp", b"isom"), moov].concat()
    }

    const ONE: u32 = 1 << 16;

    #[test]
    fn lengths_ranges_and_mirrors_are_read() {
        let bytes = film([ONE, 0, 0, ONE], b"nclx\0\x01\0\x01\0\x01\x80");
        let found = read_tracks(&mut Cursor::new(&bytes)).unwrap();
        let length = Some(Span::from_secs(2));
        let track = FilmTrack { id: 3, kind: *b"vide", length, full_range: true, mirrored: false };
        assert_eq!((found.length, &found.tracks), (Some(Span::from_secs(12)), &vec![track]));
        let place = usize::try_from(*found.length_places.first().unwrap()).unwrap();
        assert_eq!(bytes.get(place..place + 4), Some(&12_000_u32.to_be_bytes()[..]));
        let track = |bytes: Vec<u8>| read_tracks(&mut Cursor::new(bytes)).unwrap().tracks.pop().unwrap();
        assert!(!track(film([ONE, 0, 0, ONE], b"nclx\0\x01\0\x01\0\x01\0")).full_range);
        assert!(!track(film([ONE, 0, 0, ONE], b"nclc\0\x01\0\x01\0\x01\x80")).full_range);
        assert!(track(film([0, MINUS_ONE, MINUS_ONE, 0], b"")).mirrored);
        assert!(!track(film([0, ONE, MINUS_ONE, 0], b"")).mirrored);
    }

    #[test]
    fn nonsense_has_no_tracks() {
        for bytes in [&b""[..], b"text", b"\0\0\0\x01moov\xff\xff\xff\xff\xff\xff\xff\xff", b"\0\0\0\0moov"] {
            assert_eq!(read_tracks(&mut Cursor::new(bytes)).unwrap(), FilmTracks::default());
        }
    }
}
