//! The contact sheet: pictures of a film side by side with words, as one PNG.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use lab::sheet::{Cell, Sheet};
//! let picture = codec::Picture::new(1280, 720)?;
//! let mut sheet = Sheet::new("big buck bunny");
//! sheet.row("the same picture", vec![Cell::new("bronze", picture.clone()), Cell::new("gold", picture)]);
//! sheet.write("sheet.png")?;
//! # Ok(())
//! # }
//! ```

mod canvas;
mod font;
mod rgb;

use canvas::Canvas;
use codec::Picture;
use media::manifest::Color;
use rgb::{Area, Rgb};
use std::path::{Path, PathBuf};

const BACKGROUND: [u8; 3] = [24, 25, 28];
const TITLE_INK: [u8; 3] = [236, 238, 242];
const LABEL_INK: [u8; 3] = [122, 174, 232];
const CAPTION_INK: [u8; 3] = [178, 182, 190];
const FRAME: [u8; 3] = [58, 60, 66];
const MARGIN: usize = 28;
const GAP: usize = 14;
/// Samples a side of a dot of the title and of all other text.
const TITLE_DOT: usize = 3;
const TEXT_DOT: usize = 2;
/// The widest thumbnail in samples.
const MAX_THUMB: u32 = 480;
/// Width and height of a detail in samples.
const DETAIL: (usize, usize) = (320, 180);

/// A contact sheet in the making: a title over labelled rows of pictures.
#[derive(Debug, Clone)]
pub struct Sheet {
    title: String,
    color: Color,
    rows: Vec<(String, Vec<Drawn>)>,
}

/// One picture of a row.
#[derive(Debug, Clone)]
pub struct Cell {
    caption: String,
    picture: Picture,
    detail: Option<(usize, usize)>,
}

/// A cell made small; the picture is not kept.
#[derive(Debug, Clone)]
struct Drawn {
    caption: String,
    rgb: Rgb,
}

/// A sheet was not written. A file that was there before is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum SheetError {
    /// More rows or cells than a picture can hold.
    #[error("a contact sheet of {width}x{height} samples is too large")]
    Size {
        /// Width it would have.
        width: usize,
        /// Height it would have.
        height: usize,
    },
    /// The file cannot be written.
    #[error("the contact sheet {path:?} cannot be written")]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

impl Cell {
    /// A whole picture, made small, over a caption.
    pub fn new(caption: impl Into<String>, picture: Picture) -> Self {
        Self { caption: caption.into(), picture, detail: None }
    }

    /// A part of a picture at its own size, around `centre` (column and row in
    /// luma samples; [`busiest`] finds one that tells qualities apart).
    pub fn detail(caption: impl Into<String>, picture: Picture, centre: (usize, usize)) -> Self {
        Self { caption: caption.into(), picture, detail: Some(centre) }
    }

    fn draw(&self, color: Color) -> Rgb {
        if let Some(centre) = self.detail {
            return rgb::detail(&self.picture, color, around(&self.picture, centre));
        }
        let mut factor = 1;
        while self.picture.width().div_ceil(factor) > MAX_THUMB {
            factor *= 2;
        }
        rgb::reduced(&self.picture, color, usize::try_from(factor).unwrap_or(1))
    }
}

impl Sheet {
    /// An empty sheet for pictures of unspecified colour.
    pub fn new(title: impl Into<String>) -> Self {
        let color = Color { full_range: false, primaries: 2, transfer: 2, matrix: 2 };
        Self { title: title.into(), color, rows: Vec::new() }
    }

    /// Says what the samples of the following pictures mean.
    pub fn color(&mut self, color: Color) -> &mut Self {
        self.color = color;
        self
    }

    /// Adds a row of pictures under a label.
    pub fn row(&mut self, label: impl Into<String>, cells: Vec<Cell>) -> &mut Self {
        let draw = |cell: Cell| Drawn { rgb: cell.draw(self.color), caption: cell.caption };
        self.rows.push((label.into(), cells.into_iter().map(draw).collect()));
        self
    }

    /// Writes the sheet as a PNG. It appears under its name when it is whole.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), SheetError> {
        self.draw()?.save(path.as_ref())
    }

    fn draw(&self) -> Result<Canvas, SheetError> {
        let text = |dot: usize| font::SIZE.1 * dot;
        let title = font::width(&self.title) * TITLE_DOT;
        let widths = self.rows.iter().map(|(label, cells)| row_width(label, cells));
        let width = widths.chain([title]).max().unwrap_or(0) + 2 * MARGIN;
        let heights = self.rows.iter().map(|(_, cells)| row_height(cells));
        let height = MARGIN + text(TITLE_DOT) + heights.sum::<usize>() + MARGIN;
        let mut canvas = Canvas::new(width, height, BACKGROUND)?;
        canvas.write((MARGIN, MARGIN), &self.title, TITLE_DOT, TITLE_INK);
        let mut top = MARGIN + text(TITLE_DOT);
        for (label, cells) in &self.rows {
            canvas.write((MARGIN, top + 2 * GAP), label, TEXT_DOT, LABEL_INK);
            let pictures = top + 2 * GAP + text(TEXT_DOT) + GAP;
            let tallest = cells.iter().map(|cell| cell.rgb.height).max().unwrap_or(0);
            let mut left = MARGIN;
            for cell in cells {
                let (width, height) = (cell.rgb.width, cell.rgb.height);
                canvas.fill((left - 1, pictures - 1), (width + 2, height + 2), FRAME);
                canvas.place(left, pictures, &cell.rgb);
                let under = (left, pictures + tallest + GAP - 4);
                canvas.write(under, &cell.caption, TEXT_DOT, CAPTION_INK);
                left += cell_width(cell) + GAP;
            }
            top += row_height(cells);
        }
        Ok(canvas)
    }
}

/// Where a picture of this size is busiest: the centre of the part with the
/// steepest luma, which is where qualities differ most.
pub fn busiest(picture: &Picture) -> (usize, usize) {
    const STEP: usize = 16;
    let [luma, ..] = picture.planes();
    let rows: Vec<&[u8]> = luma.rows().collect();
    let tiles: Vec<Vec<u64>> = rows.chunks(STEP).map(|rows| steepness(rows, STEP)).collect();
    let (wide, high) = (DETAIL.0 / STEP, DETAIL.1.div_ceil(STEP));
    let last = |length: usize, part: usize| length.saturating_sub(part);
    let columns = tiles.first().map_or(0, Vec::len);
    let places = (0..=last(tiles.len(), high))
        .flat_map(|row| (0..=last(columns, wide)).map(move |column| (column, row)));
    let sum = |&(column, row): &(usize, usize)| -> u64 {
        let rows = tiles.iter().skip(row).take(high);
        rows.map(|tiles| tiles.iter().skip(column).take(wide).sum::<u64>()).sum()
    };
    let (column, row) = places.max_by_key(sum).unwrap_or((0, 0));
    (column * STEP + DETAIL.0 / 2, row * STEP + DETAIL.1 / 2)
}

/// The sum of steps from sample to sample along rows, per tile.
fn steepness(rows: &[&[u8]], side: usize) -> Vec<u64> {
    let tiles = rows.first().map_or(0, |row| row.len().div_ceil(side));
    let mut sums = vec![0; tiles];
    for row in rows {
        for (sum, tile) in sums.iter_mut().zip(row.chunks(side)) {
            let steps = tile.iter().zip(tile.iter().skip(1)).map(|(a, b)| u64::from(a.abs_diff(*b)));
            *sum += steps.sum::<u64>();
        }
    }
    sums
}

/// The part of a picture around a centre, moved to lie inside, corner even.
fn around(picture: &Picture, centre: (usize, usize)) -> Area {
    let [luma, ..] = picture.planes();
    let place = |centre: usize, part: usize, whole: usize| {
        let start = centre.saturating_sub(part / 2).min(whole.saturating_sub(part));
        (start & !1, part.min(whole))
    };
    let (left, width) = place(centre.0, DETAIL.0, luma.width());
    let (top, height) = place(centre.1, DETAIL.1, luma.height());
    Area { left, top, width, height }
}

fn cell_width(cell: &Drawn) -> usize {
    cell.rgb.width.max(font::width(&cell.caption) * TEXT_DOT)
}

fn row_width(label: &str, cells: &[Drawn]) -> usize {
    let pictures = cells.iter().map(|cell| cell_width(cell) + GAP).sum::<usize>().saturating_sub(GAP);
    pictures.max(font::width(label) * TEXT_DOT)
}

fn row_height(cells: &[Drawn]) -> usize {
    let tallest = cells.iter().map(|cell| cell.rgb.height).max().unwrap_or(0);
    2 * GAP + font::SIZE.1 * TEXT_DOT + GAP + tallest + GAP - 4 + font::SIZE.1 * TEXT_DOT
}

#[cfg(test)]
mod tests;
