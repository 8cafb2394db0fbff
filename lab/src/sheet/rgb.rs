//! 4:2:0 pictures as small RGB ones.

use codec::{Picture, PlaneRef};
use media::manifest::Color;

/// 8-bit RGB, rows after one another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rgb {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) samples: Vec<[u8; 3]>,
}

/// A part of a picture, in luma samples; sides and corner are even.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Area {
    pub(crate) left: usize,
    pub(crate) top: usize,
    pub(crate) width: usize,
    pub(crate) height: usize,
}

/// Weights of a conversion in 1/65536: luma; V in red; U and V taken from
/// green; U in blue.
type Weights = [i32; 5];

/// ITU-R BT.601, BT.709 and BT.2020 (Kr, Kb), limited and full range.
const BT601: [Weights; 2] =
    [[76_309, 104_597, 25_675, 53_279, 132_201], [65_536, 91_881, 22_553, 46_802, 116_130]];
const BT709: [Weights; 2] =
    [[76_309, 117_489, 13_975, 34_925, 138_438], [65_536, 103_206, 12_276, 30_679, 121_609]];
const BT2020: [Weights; 2] =
    [[76_309, 110_014, 12_277, 42_626, 140_363], [65_536, 96_639, 10_784, 37_444, 123_299]];

/// The weights that a colour description asks for. Unspecified matrices are
/// BT.709 from 720 rows up and BT.601 below, as players have it.
fn weights(color: Color, height: u32) -> Weights {
    let [limited, full] = match color.matrix {
        1 => BT709,
        5 | 6 => BT601,
        9 | 10 => BT2020,
        _ if height >= 720 => BT709,
        _ => BT601,
    };
    if color.full_range { full } else { limited }
}

/// A whole picture, `factor` (a power of two) times smaller a side: the mean of
/// each square. A last column or row that fills no square is left out.
pub(crate) fn reduced(picture: &Picture, color: Color, factor: usize) -> Rgb {
    let [luma, ..] = picture.planes();
    let area = Area { left: 0, top: 0, width: luma.width(), height: luma.height() };
    convert(picture, color, area, factor)
}

/// A part of a picture, sample by sample.
pub(crate) fn detail(picture: &Picture, color: Color, area: Area) -> Rgb {
    convert(picture, color, area, 1)
}

fn convert(picture: &Picture, color: Color, area: Area, factor: usize) -> Rgb {
    let factor = factor.max(1);
    let [luma, u, v] = picture.planes();
    let weights = weights(color, picture.height());
    let black = if color.full_range { 0 } else { 16 };
    let (width, height) = ((area.width / factor).max(1), (area.height / factor).max(1));
    let luma = boxes(luma, area, factor);
    let half = Area { left: area.left / 2, top: area.top / 2, width: area.width.div_ceil(2), ..area };
    let half = Area { height: area.height.div_ceil(2), ..half };
    let (u, v) = (boxes(u, half, (factor / 2).max(1)), boxes(v, half, (factor / 2).max(1)));
    // At factor 1 two columns and rows share a sample of chroma.
    let shared = if factor == 1 { 2 } else { 1 };
    let mut samples = Vec::with_capacity(width * height);
    for row in 0..height {
        for column in 0..width {
            let chroma = |plane: &Means| plane.at(column / shared, row / shared) - 128;
            samples.push(rgb(weights, luma.at(column, row) - black, chroma(&u), chroma(&v)));
        }
    }
    Rgb { width, height, samples }
}

fn rgb([luma, v_red, u_green, v_green, u_blue]: Weights, y: i32, u: i32, v: i32) -> [u8; 3] {
    let byte = |sum: i32| u8::try_from(((sum + 32_768) >> 16).clamp(0, 255)).unwrap_or(u8::MAX);
    let y = luma * y;
    [byte(y + v_red * v), byte(y - u_green * u - v_green * v), byte(y + u_blue * u)]
}

/// Means of squares of a plane.
struct Means {
    width: usize,
    samples: Vec<i32>,
}

impl Means {
    /// Beyond the edge the last sample of the row goes on.
    fn at(&self, column: usize, row: usize) -> i32 {
        self.samples.get(row * self.width + column.min(self.width - 1)).copied().unwrap_or(128)
    }
}

fn boxes(plane: PlaneRef<'_>, area: Area, side: usize) -> Means {
    let rows: Vec<&[u8]> = plane.rows().skip(area.top).take(area.height).collect();
    let width = (area.width / side).max(1);
    let mut samples = Vec::new();
    for rows in rows.chunks(side).filter(|rows| rows.len() == side || rows.len() == plane.height()) {
        for column in 0..width {
            let from = area.left + column * side;
            let inside = rows.iter().filter_map(|row| row.get(from..(from + side).min(row.len()))).flatten();
            let (sum, count) = inside.fold((0, 0), |(sum, count), &it| (sum + i32::from(it), count + 1));
            samples.push(if count == 0 { 128 } else { (sum + count / 2) / count });
        }
    }
    Means { width, samples }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;

    fn color(matrix: u8, full_range: bool) -> Color {
        Color { full_range, primaries: 2, transfer: 2, matrix }
    }

    fn flat(y: u8, u: u8, v: u8) -> Picture {
        let planes: [(&[u8], usize); 3] = [(&[y; 16], 4), (&[u; 4], 2), (&[v; 4], 2)];
        Picture::from_planes(4, 4, planes).unwrap()
    }

    /// Codes of pure colours as the standards give them.
    #[test]
    fn pure_colours_come_out_pure() {
        let show = |matrix, full, (y, u, v)| reduced(&flat(y, u, v), color(matrix, full), 2).samples;
        assert_eq!(show(6, false, (16, 128, 128)), [[0, 0, 0]; 4]);
        assert_eq!(show(6, false, (235, 128, 128)), [[255, 255, 255]; 4]);
        assert_eq!(show(6, false, (81, 90, 240)), [[254, 0, 0]; 4]);
        assert_eq!(show(1, false, (63, 102, 240)), [[255, 1, 0]; 4]);
        assert_eq!(show(6, true, (76, 85, 255)), [[254, 0, 0]; 4]);
        // Unknown matrix, few rows: BT.601.
        assert_eq!(show(2, false, (81, 90, 240)), [[254, 0, 0]; 4]);
    }

    #[test]
    fn a_smaller_picture_holds_means() {
        let mut picture = Picture::new(5, 4).unwrap();
        let [luma, ..] = picture.planes_mut();
        let rows = [[10, 20, 50, 60, 1], [30, 40, 70, 80, 1], [0, 0, 255, 255, 1], [0, 0, 255, 255, 1]];
        luma.data.copy_from_slice(rows.as_flattened());
        let small = reduced(&picture, color(6, true), 2);
        assert_eq!((small.width, small.height), (2, 2));
        assert_eq!(small.samples, [[25; 3], [65; 3], [0; 3], [255; 3]]);

        let area = Area { left: 2, top: 0, width: 2, height: 2 };
        assert_eq!(detail(&picture, color(6, true), area).samples, [[50; 3], [60; 3], [70; 3], [80; 3]]);
    }
}
