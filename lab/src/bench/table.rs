//! Tables for people: a head, rows, columns lined up.

use std::fmt;

/// A table of text. The first column is flush left, the others flush right.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    rows: Vec<Row>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Row {
    Cells(Vec<String>),
    Rule,
}

impl Table {
    /// A table with a head over a rule.
    pub fn new(head: &[&str]) -> Self {
        let mut table = Self::default();
        table.row(head.iter().map(ToString::to_string).collect());
        table.rule();
        table
    }

    /// Adds a row; missing cells at its end stay empty.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(Row::Cells(cells));
    }

    /// Adds a line across.
    pub fn rule(&mut self) {
        self.rows.push(Row::Rule);
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths = Vec::new();
        for row in &self.rows {
            let Row::Cells(cells) = row else { continue };
            widths.resize(widths.len().max(cells.len()), 0);
            for (width, cell) in widths.iter_mut().zip(cells) {
                *width = cell.chars().count().max(*width);
            }
        }
        widths
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        for row in &self.rows {
            let line = match row {
                Row::Rule => {
                    let length = widths.iter().map(|width| width + 2).sum::<usize>().saturating_sub(2);
                    "-".repeat(length)
                }
                Row::Cells(cells) => {
                    let padded = widths.iter().zip(cells).enumerate().map(|(column, (&width, cell))| {
                        if column == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
                    });
                    padded.collect::<Vec<_>>().join("  ")
                }
            };
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_nothing_trails() {
        let mut table = Table::new(&["clip", "kbit/s", "dB"]);
        table.row(vec!["dog".to_owned(), "1304.5".to_owned(), "42.1".to_owned()]);
        table.row(vec!["a title".to_owned(), "7".to_owned()]);
        let expected = "\
clip     kbit/s    dB
---------------------
dog      1304.5  42.1
a title       7
";
        assert_eq!(table.to_string(), expected);
    }
}
