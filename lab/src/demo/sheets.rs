//! The contact sheet: the same picture at each quality, then the pictures on
//! both sides of each quality step, as they were on screen.

use super::DemoError;
use crate::sheet::{Cell, Sheet, busiest};
use crate::stored::{Tiers, picture_at};
use codec::Picture;
use media::Quality;
use media::library::TitleFolder;
use player::PlayReport;
use std::path::Path;

/// Steps shown on the sheet; the report lists all.
const STEPS: usize = 6;

/// Draws the sheet for what a viewer saw of a title.
pub(super) fn draw(title: &TitleFolder, seen: &PlayReport, path: &Path) -> Result<(), DemoError> {
    let manifest = title.manifest();
    let mut sheet = Sheet::new(format!("{} - {}", manifest.title, seen.player));
    sheet.color(manifest.color);
    let middle = picture_at(title, manifest.duration / 2)?;
    let centre = middle.qualities.last().map(busiest);
    sheet.row("the same picture at every quality", tiers(&middle, Cell::new));
    if let Some(centre) = centre {
        sheet.row(
            "the same detail, sample for sample",
            tiers(&middle, |caption, picture| Cell::detail(caption, picture, centre)),
        );
    }
    for step in seen.transitions.iter().take(STEPS) {
        let Some(block) = manifest.block(step.block) else { continue };
        let last = block.start.saturating_sub(1);
        let cells = [(last, &step.from), (block.start, &step.to)].into_iter().map(|(ticks, quality)| {
            let seconds = manifest.at(ticks).as_secs_f64();
            let caption = format!("{quality} at {seconds:.2} s");
            Ok(Cell::new(caption, at_quality(picture_at(title, ticks)?, quality)?))
        });
        let cells = cells.collect::<Result<Vec<_>, DemoError>>()?;
        let label = format!(
            "{} to {} ({}) {:.1} s after the first picture",
            step.from,
            step.to,
            step.cause,
            seconds(step.at_ms)
        );
        sheet.row(label, cells);
    }
    Ok(sheet.write(path)?)
}

fn seconds(millis: u64) -> f64 {
    std::time::Duration::from_millis(millis).as_secs_f64()
}

/// A cell for each quality, captioned with its name.
fn tiers(picture: &Tiers, cell: impl Fn(String, Picture) -> Cell) -> Vec<Cell> {
    let qualities = (1..=u8::MAX).map(Quality).zip(&picture.qualities);
    qualities.map(|(quality, picture)| cell(quality.to_string(), picture.clone())).collect()
}

/// The picture as it was shown at a quality named in a report.
fn at_quality(tiers: Tiers, quality: &str) -> Result<Picture, DemoError> {
    let index = quality.parse::<Quality>().ok().and_then(Quality::top).map(media::Layer::index);
    let picture = index.and_then(|index| tiers.qualities.into_iter().nth(index));
    picture.ok_or_else(|| DemoError::Broken(format!("the title has no {quality} picture")))
}
