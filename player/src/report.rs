//! What was seen: `report.json`, two tables and a chart.
//!
//! All times named `at_ms` count from the first picture shown, on the clock of
//! the wall. Freezes, pictures and qualities are measured at the sink.

mod chart;
mod record;
mod tables;

pub use chart::chart;
pub(crate) use record::Recorder;

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::Path;

/// The version of `report.json`.
pub const REPORT_VERSION: u32 = 1;

/// One viewing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlayReport {
    /// [`REPORT_VERSION`].
    pub version: u32,
    /// Program and version that played.
    pub player: String,
    /// Whether nothing was decoded: pictures are measured by their times alone.
    #[serde(default)]
    pub light: bool,
    /// The title.
    pub title: String,
    /// The best quality wanted.
    pub wanted: String,
    /// The buffer's bound.
    pub buffer_limit_ms: u64,
    /// How it ended: `ended`, `stopped`, or why it could not go on.
    pub outcome: String,
    /// From the order to play to the first picture; none if there was none.
    pub startup_ms: Option<u64>,
    /// From the first picture to the end.
    pub watched_ms: u64,
    /// When the picture stood still.
    pub freezes: Freezes,
    /// Pictures shown.
    pub frames_shown: u64,
    /// Pictures that should have been shown.
    pub frames_expected: u64,
    /// Pictures left out.
    pub frames_dropped: u64,
    /// Programme seconds shown at each quality.
    pub seconds_at_quality: BTreeMap<String, f64>,
    /// Of these, seconds without the second half of the topmost layer: every other
    /// picture was that of the quality below.
    #[serde(default)]
    pub seconds_in_halves: f64,
    /// Changes of quality on screen.
    pub transitions: Vec<Transition>,
    /// Layers that came from somebody else after a failure.
    pub failovers: Vec<Failover>,
    /// Nodes that kept the viewer's record, one after the other.
    #[serde(default)]
    pub epochs: Vec<EpochReport>,
    /// Whether blocks went to the pipeline one after the other.
    #[serde(default)]
    pub sequence: Sequence,
    /// Nodes that somebody killed meanwhile; filled in by who did it.
    #[serde(default)]
    pub kills: Vec<Kill>,
    /// Chunk bytes received, by layer.
    pub bytes_by_layer: BTreeMap<String, u64>,
    /// What each source did.
    pub sources: Vec<SourceReport>,
    /// Blocks compared with the manifest's hashes.
    pub blocks_checked: u64,
    /// Blocks that could not be compared: left early, or entered in the middle.
    pub blocks_unchecked: u64,
    /// Blocks that were not what the encoder made.
    pub hash_mismatches: Vec<Mismatch>,
    /// How often enhancements were stopped so that Base did not wait.
    pub base_first: u64,
    /// How it stood, ten times a second.
    pub samples: Vec<Sample>,
}

/// All freezes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Freezes {
    /// How many.
    pub count: u64,
    /// All together.
    pub total_ms: u64,
    /// The longest.
    pub longest_ms: u64,
    /// One by one, at most the first thousand.
    pub list: Vec<FreezeReport>,
}

/// One freeze.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FreezeReport {
    /// When the picture that stood was shown.
    pub at_ms: u64,
    /// How long it stood.
    pub length_ms: u64,
    /// Its time in the programme.
    pub position_ms: u64,
}

/// One change of quality on screen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transition {
    /// When.
    pub at_ms: u64,
    /// The first block of the new quality.
    pub block: u32,
    /// The position in the programme.
    pub position_ms: u64,
    /// The quality before.
    pub from: String,
    /// The quality from then on.
    pub to: String,
    /// `rate`, `failure`, `user`, `recovered`, `headroom`, or `decoder` if the
    /// pipeline could not use what it was given.
    pub cause: String,
}

/// A layer that came from somebody else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failover {
    /// When the old source was last heard.
    pub at_ms: u64,
    /// The old source.
    pub node: String,
    /// The layer.
    pub layer: String,
    /// The new source.
    pub to: String,
    /// From the old one's last word to the verdict.
    pub detected_ms: u64,
    /// From the old one's last word to the first chunk of the new one.
    pub recovered_ms: u64,
    /// Requests that were open at the old one.
    pub reasked: u32,
    /// The buffer at the verdict.
    pub buffer_ms: u64,
    /// `delivery start`, `silence`, `lost`, `hedge`, `moved` or `repull`.
    #[serde(default)]
    pub cause: String,
}

/// A node that kept the viewer's record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpochReport {
    /// Since when.
    pub at_ms: u64,
    /// In which epoch.
    pub epoch: u64,
    /// Its name.
    pub node: String,
}

/// The blocks as they were fed, between two seeks; winding does not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sequence {
    /// Blocks that were left out.
    pub missing: u64,
    /// Blocks that came again.
    pub repeated: u64,
}

/// A node that was killed on purpose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kill {
    /// When.
    pub at_ms: u64,
    /// Which.
    pub node: String,
    /// What was ready beyond the picture on screen.
    pub buffer_s: f64,
}

/// What one source did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceReport {
    /// Its name, or its address if it has none.
    pub node: String,
    /// Its address.
    pub address: String,
    /// Whole chunks that came from it.
    pub chunks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Requests that it failed.
    pub failed: u64,
}

/// A block that was not what the encoder made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mismatch {
    /// The block.
    pub block: u32,
    /// The quality at which it was shown.
    pub quality: String,
}

/// How it stood at a moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// When.
    pub at_ms: u64,
    /// The position on screen.
    pub position_ms: u64,
    /// What was ready beyond it.
    pub buffer_ms: u64,
    /// The quality on screen.
    pub quality: String,
}

impl PlayReport {
    /// What was ready beyond the picture on screen at a moment.
    pub fn buffer_ms_at(&self, at_ms: u64) -> Option<u64> {
        let after = self.samples.partition_point(|sample| sample.at_ms <= at_ms);
        self.samples.get(after.checked_sub(1)?).map(|sample| sample.buffer_ms)
    }

    /// Writes `report.json`, `buffer.csv`, `timeline.csv` and `chart.svg` into
    /// `folder`, which is made if need be. Each file appears whole or not at all.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        std::fs::create_dir_all(folder)?;
        let mut json = serde_json::to_vec_pretty(self).map_err(io::Error::other)?;
        json.push(b'\n');
        put(folder, "report.json", &json)?;
        put(folder, "buffer.csv", tables::buffer(self).as_bytes())?;
        put(folder, "timeline.csv", tables::timeline(self).as_bytes())?;
        put(folder, "chart.svg", chart(self).as_bytes())
    }

    /// Reads a `report.json`.
    pub fn read(path: &Path) -> io::Result<Self> {
        serde_json::from_slice(&std::fs::read(path)?).map_err(io::Error::other)
    }
}

fn put(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let hidden = folder.join(format!(".{name}.part"));
    let written = std::fs::File::create(&hidden).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&hidden, folder.join(name))
    });
    if written.is_err() {
        // The first error is the one to tell; a leftover is hidden anyway.
        let _ = std::fs::remove_file(&hidden);
    }
    written
}

#[cfg(test)]
mod tests;
