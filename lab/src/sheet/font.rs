//! A 5x7 bitmap font for ASCII 32..=126, drawn in `font.txt`: sixteen
//! characters side by side, seven lines each, `#` is ink. The letters g, p, q
//! and y stand a dot lower than they are drawn.

const DRAWN: &str = include_str!("font.txt");
/// Width and height of a character in dots.
pub(crate) const SIZE: (usize, usize) = (5, 7);
/// Dots from one character to the next.
pub(crate) const ADVANCE: usize = 6;
const A_LINE: usize = 16;

/// The dots of a character, as (column, row). What the font does not have is
/// shown as `?`.
pub(crate) fn dots(character: char) -> impl Iterator<Item = (usize, usize)> {
    let drawn = Some(character).filter(|it| matches!(it, ' '..='~')).unwrap_or('?');
    let index = usize::try_from(u32::from(drawn) - u32::from(' ')).unwrap_or(0);
    let lower = usize::from(matches!(drawn, 'g' | 'p' | 'q' | 'y'));
    let (line, place) = (index / A_LINE, index % A_LINE);
    DRAWN.lines().skip(line * (SIZE.1 + 1)).take(SIZE.1).enumerate().flat_map(move |(row, text)| {
        let ink = text.chars().skip(place * ADVANCE).take(SIZE.0).enumerate();
        ink.filter(|(_, dot)| *dot == '#').map(move |(column, _)| (column, row + lower))
    })
}

/// Width of a text in dots.
pub(crate) fn width(text: &str) -> usize {
    (text.chars().count() * ADVANCE).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_printable_character_has_a_shape_of_its_own() {
        let shapes: std::collections::BTreeSet<Vec<_>> = (' '..='~').map(|c| dots(c).collect()).collect();
        assert_eq!(shapes.len(), 95);
        assert_eq!(dots('-').collect::<Vec<_>>(), [(0, 3), (1, 3), (2, 3), (3, 3), (4, 3)]);
        assert!(dots('é').eq(dots('?')));
        assert_eq!((width(""), width("a"), width("gold")), (0, 5, 23));
    }
}
