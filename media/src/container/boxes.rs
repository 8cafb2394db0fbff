//! Walking boxes: sizes are checked against the bytes that are there, and
//! nothing is copied or allocated.

use super::ContainerError;

/// A four-character code.
pub(crate) type Kind = [u8; 4];

/// One box: its kind, its bytes, and where its body lies in what was walked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BoxAt<'a> {
    /// The four-character code.
    pub(crate) kind: Kind,
    /// Offset of the body.
    pub(crate) body_start: usize,
    /// The whole box, header included.
    pub(crate) whole: &'a [u8],
    /// What follows the header.
    pub(crate) body: &'a [u8],
}

impl BoxAt<'_> {
    /// The code as text, for people.
    pub(crate) fn name(&self) -> String {
        String::from_utf8_lossy(&self.kind).escape_default().to_string()
    }
}

/// The boxes that fill `bytes` exactly, in order.
pub(crate) fn boxes(bytes: &[u8]) -> Boxes<'_> {
    Boxes { bytes, at: 0 }
}

/// See [`boxes`]. After an error there is nothing more.
#[derive(Debug)]
pub(crate) struct Boxes<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Boxes<'a> {
    fn read(&self) -> Option<BoxAt<'a>> {
        let rest = self.bytes.get(self.at..)?;
        let (size, after) = rest.split_first_chunk::<4>()?;
        let (kind, after) = after.split_first_chunk::<4>()?;
        let (size, header) = match u32::from_be_bytes(*size) {
            1 => (u64::from_be_bytes(*after.first_chunk::<8>()?), 16),
            size => (u64::from(size), 8),
        };
        let whole = rest.get(..usize::try_from(size).ok()?)?;
        let body = whole.get(header..)?;
        Some(BoxAt { kind: *kind, body_start: self.at + header, whole, body })
    }
}

impl<'a> Iterator for Boxes<'a> {
    type Item = Result<BoxAt<'a>, ContainerError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.bytes.len() {
            return None;
        }
        if let Some(found) = self.read() {
            self.at += found.whole.len();
            Some(Ok(found))
        } else {
            self.at = self.bytes.len();
            Some(Err(ContainerError::OutOfBounds("a box")))
        }
    }
}

/// The first box of this kind among those that fill `bytes`.
pub(crate) fn find<'a>(bytes: &'a [u8], kind: &'static str) -> Result<BoxAt<'a>, ContainerError> {
    for found in boxes(bytes) {
        let found = found?;
        if found.kind == kind.as_bytes() {
            return Ok(found);
        }
    }
    Err(ContainerError::Missing(kind))
}

/// The box at the end of a path of kinds.
pub(crate) fn find_path<'a>(bytes: &'a [u8], path: &[&'static str]) -> Result<&'a [u8], ContainerError> {
    path.iter().try_fold(bytes, |bytes, kind| Ok(find(bytes, kind)?.body))
}
