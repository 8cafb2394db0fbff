//! Giving an MP4 film other edit lists (ISO/IEC 14496-12, 8.6.6).

use std::path::{Path, PathBuf};

/// One edit: its length in seconds, and where in the track it starts, in units of
/// the track; none for an empty one.
pub type Edit = (f64, Option<i32>);

/// Where the box of this kind lies among the boxes of `range`, its header included.
fn find(bytes: &[u8], range: std::ops::Range<usize>, kind: &[u8]) -> Option<std::ops::Range<usize>> {
    let mut at = range.start;
    while at + 8 <= range.end {
        let size = u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        if &bytes[at + 4..at + 8] == kind {
            return Some(at..at + size);
        }
        at += size;
    }
    None
}

fn edit_list(edits: &[Edit], timescale: u32) -> Vec<u8> {
    let mut body = vec![0; 4];
    body.extend(u32::try_from(edits.len()).unwrap().to_be_bytes());
    for (seconds, start) in edits {
        body.extend(((seconds * f64::from(timescale)).round() as u32).to_be_bytes());
        body.extend(start.unwrap_or(-1).to_be_bytes());
        body.extend([0, 1, 0, 0]);
    }
    let boxed = |kind: &[u8], body: &[u8]| {
        let size = u32::try_from(body.len() + 8).unwrap().to_be_bytes();
        [&size, kind, body].concat()
    };
    boxed(b"edts", &boxed(b"elst", &body))
}

/// The film with these edits in its track `number` (from 0) instead of its own.
/// Its `moov` must come last, so that no offset of data changes.
pub fn edited(film: &Path, number: usize, edits: &[Edit], folder: &Path) -> PathBuf {
    let mut bytes = std::fs::read(film).unwrap();
    let moov = find(&bytes, 0..bytes.len(), b"moov").unwrap();
    assert_eq!(moov.end, bytes.len(), "moov comes last");
    let mvhd = find(&bytes, moov.start + 8..moov.end, b"mvhd").unwrap();
    let timescale = u32::from_be_bytes(bytes[mvhd.start + 20..mvhd.start + 24].try_into().unwrap());
    let length = edits.iter().map(|(seconds, _)| seconds * f64::from(timescale)).sum::<f64>().round() as u32;
    bytes[mvhd.start + 24..mvhd.start + 28].copy_from_slice(&length.to_be_bytes());
    let mut from = moov.start + 8;
    for _ in 0..number {
        from = find(&bytes, from..moov.end, b"trak").unwrap().end;
    }
    let trak = find(&bytes, from..moov.end, b"trak").unwrap();
    let old = find(&bytes, trak.start + 8..trak.end, b"edts");
    let tkhd = find(&bytes, trak.start + 8..trak.end, b"tkhd").unwrap();
    bytes[tkhd.start + 28..tkhd.start + 32].copy_from_slice(&length.to_be_bytes());
    let place = old.unwrap_or(tkhd.end..tkhd.end);
    let new = edit_list(edits, timescale);
    let grown = i64::try_from(new.len()).unwrap() - i64::try_from(place.len()).unwrap();
    bytes.splice(place, new);
    for at in [moov.start, trak.start] {
        let size = u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
        let size = u32::try_from(i64::from(size) + grown).unwrap();
        bytes[at..at + 4].copy_from_slice(&size.to_be_bytes());
    }
    let path = folder.join(film.file_name().unwrap());
    std::fs::write(&path, bytes).unwrap();
    path
}
