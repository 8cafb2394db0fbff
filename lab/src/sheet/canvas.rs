//! A picture to draw on, and the PNG it becomes.

use super::SheetError;
use super::font;
use super::rgb::Rgb;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

/// The longest side of a sheet in samples.
const MAX_SIDE: usize = 16_384;

/// 8-bit RGB to be filled from a background.
#[derive(Debug)]
pub(crate) struct Canvas(Rgb);

impl Canvas {
    pub(crate) fn new(width: usize, height: usize, background: [u8; 3]) -> Result<Self, SheetError> {
        if width == 0 || height == 0 || width > MAX_SIDE || height > MAX_SIDE {
            return Err(SheetError::Size { width, height });
        }
        Ok(Self(Rgb { width, height, samples: vec![background; width * height] }))
    }

    /// Copies a picture in; what reaches beyond the edge is left out.
    pub(crate) fn place(&mut self, left: usize, top: usize, picture: &Rgb) {
        let rows = self.0.samples.chunks_exact_mut(self.0.width).skip(top);
        for (row, from) in rows.zip(picture.samples.chunks_exact(picture.width.max(1))) {
            row.iter_mut().skip(left).zip(from).for_each(|(to, from)| *to = *from);
        }
    }

    /// Fills a rectangle.
    pub(crate) fn fill(
        &mut self,
        (left, top): (usize, usize),
        (width, height): (usize, usize),
        ink: [u8; 3],
    ) {
        for row in self.0.samples.chunks_exact_mut(self.0.width).skip(top).take(height) {
            row.iter_mut().skip(left).take(width).for_each(|sample| *sample = ink);
        }
    }

    /// Writes a line of text, each dot of the font `dot` samples a side.
    pub(crate) fn write(&mut self, (left, top): (usize, usize), text: &str, dot: usize, ink: [u8; 3]) {
        for (place, character) in text.chars().enumerate() {
            for (column, row) in font::dots(character) {
                let corner = (left + (place * font::ADVANCE + column) * dot, top + row * dot);
                self.fill(corner, (dot, dot), ink);
            }
        }
    }

    /// Writes a PNG. It appears under its name when it is whole.
    pub(crate) fn save(&self, path: &Path) -> Result<(), SheetError> {
        let failed = |source| SheetError::Write { path: path.to_owned(), source };
        let folder = path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let file = tempfile::Builder::new().prefix(".sheet-").tempfile_in(folder).map_err(failed)?;
        self.encode(file.as_file()).map_err(|source| failed(source.into()))?;
        // A temporary file is for its owner's eyes; a sheet is to be looked at.
        let readable = std::os::unix::fs::PermissionsExt::from_mode(0o644);
        file.as_file().set_permissions(readable).map_err(failed)?;
        file.persist(path).map_err(|error| failed(error.error))?;
        Ok(())
    }

    fn encode(&self, file: &File) -> Result<(), png::EncodingError> {
        let side = |side: usize| u32::try_from(side).unwrap_or(u32::MAX);
        let mut output = BufWriter::new(file);
        let mut encoder = png::Encoder::new(&mut output, side(self.0.width), side(self.0.height));
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(self.0.samples.as_flattened())?;
        writer.finish()?;
        output.flush()?;
        Ok(())
    }

    #[cfg(test)]
    pub(crate) fn into_rgb(self) -> Rgb {
        self.0
    }
}
