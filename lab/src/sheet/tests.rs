#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]

use super::*;

fn grey(width: u32, height: u32, luma: u8) -> Picture {
    let mut picture = Picture::new(width, height).unwrap();
    picture.planes_mut().into_iter().take(1).for_each(|plane| plane.data.fill(luma));
    picture
}

fn tiny() -> Sheet {
    let mut sheet = Sheet::new("-");
    sheet.row("i", vec![Cell::new("a", grey(4, 2, 16)), Cell::new("b", grey(4, 2, 235))]);
    sheet
}

#[test]
fn every_sample_of_a_tiny_sheet_is_where_it_belongs() {
    let rgb = tiny().draw().unwrap().into_rgb();
    // Two cells as wide as their captions (10), a gap (14), two margins (28).
    assert_eq!((rgb.width, rgb.height), (90, 28 + 21 + 28 + 14 + 14 + 2 + 10 + 14 + 28));
    let at = |column: usize, row: usize| rgb.samples[row * rgb.width + column];
    assert_eq!(at(0, 0), BACKGROUND);
    // The title's dash: row 3 of the font, dots of 3 samples.
    assert_eq!(
        [at(28, 36), at(28, 37), at(28, 39), at(42, 39), at(43, 39), at(28, 40)],
        [BACKGROUND, TITLE_INK, TITLE_INK, TITLE_INK, BACKGROUND, BACKGROUND]
    );
    // The label's dot of the i: column 2, row 0, dots of 2 samples, from row 77.
    assert_eq!(
        [at(32, 77), at(33, 78), at(34, 78), at(31, 78)],
        [LABEL_INK, LABEL_INK, BACKGROUND, BACKGROUND]
    );
    // Pictures from row 105: black, then white 24 samples on, framed.
    assert_eq!([at(28, 105), at(31, 106)], [[0, 0, 0]; 2]);
    assert_eq!([at(52, 105), at(55, 106)], [[255, 255, 255]; 2]);
    for (column, row) in [(27, 104), (32, 104), (32, 107), (51, 105), (56, 105)] {
        assert_eq!(at(column, row), FRAME, "at {column}, {row}");
    }
    // The b's stem in the caption, from row 117.
    assert_eq!([at(52, 117), at(53, 130), at(54, 118)], [CAPTION_INK, CAPTION_INK, BACKGROUND]);
}

#[test]
fn the_file_appears_whole_and_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sheet.png");
    tiny().write(&path).unwrap();
    let file = std::io::BufReader::new(std::fs::File::open(&path).unwrap());
    let mut reader = png::Decoder::new(file).read_info().unwrap();
    let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut bytes).unwrap();
    assert_eq!((info.width, info.height), (90, 159));
    assert_eq!(bytes, tiny().draw().unwrap().into_rgb().samples.as_flattened());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);

    let nowhere = folder.path().join("no/sheet.png");
    assert!(matches!(tiny().write(&nowhere), Err(SheetError::Write { path, .. }) if path == nowhere));
}

#[test]
fn a_sheet_without_end_is_refused() {
    let mut sheet = Sheet::new("");
    sheet.row("", (0..600).map(|_| Cell::new("", grey(64, 2, 0))).collect());
    assert!(matches!(sheet.draw(), Err(SheetError::Size { width: 46_842, .. })));
}

#[test]
fn a_detail_is_taken_where_the_picture_is_busiest() {
    let mut picture = grey(1280, 720, 100);
    let [luma, ..] = picture.planes_mut();
    for row in luma.data.chunks_exact_mut(1280).skip(400).take(160) {
        row.iter_mut().skip(640).take(300).step_by(2).for_each(|sample| *sample = 200);
    }
    let centre = busiest(&picture);
    let area = around(&picture, centre);
    assert!(area.left <= 640 && area.left + area.width >= 940, "{area:?}");
    assert!(area.top <= 400 && area.top + area.height >= 560, "{area:?}");
    assert_eq!(around(&picture, (0, 719)), Area { left: 0, top: 540, width: 320, height: 180 });
    let small = grey(100, 50, 0);
    assert_eq!(around(&small, busiest(&small)), Area { left: 0, top: 0, width: 100, height: 50 });
}
