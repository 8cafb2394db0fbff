//! Base for players in browsers: HLS with byte ranges of one fragmented MP4
//! (RFC 8216; ranges and `EXT-X-MAP` in fragmented MP4 need version 7).

use super::{Draft, ExportReport, copy_base, refuse_existing, refused, report};
use crate::error::EncodeError;
use media::library::TitleFolder;
use media::manifest::Manifest;
use media::{Layer, Quality};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// The names of the two files.
const PLAYLIST: &str = "index.m3u8";
const MEDIA: &str = "base.mp4";

/// Writes Base and a playlist of its blocks into a folder, which is made if it is
/// not there.
///
/// # Errors
/// There is such a playlist already, Base is missing or damaged, or the disk refuses.
pub fn export_hls(title: &TitleFolder, folder: &Path, replace: bool) -> Result<ExportReport, EncodeError> {
    let (list, media) = (folder.join(PLAYLIST), folder.join(MEDIA));
    refuse_existing(&list, replace)?;
    refuse_existing(&media, replace)?;
    std::fs::create_dir_all(folder).map_err(refused("make", folder))?;
    let mut draft = Draft::create(&media)?;
    copy_base(title, &mut draft, &|_| {}, &AtomicBool::new(false))?;
    let bytes = draft.finish(replace)?;
    let mut draft = Draft::create(&list)?;
    draft.append(playlist(title.manifest()).as_bytes())?;
    draft.finish(replace)?;
    Ok(report(title, Quality::BRONZE, &list, true, bytes))
}

/// Blocks follow the init segment without a gap, as `copy_base` writes them.
fn playlist(manifest: &Manifest) -> String {
    let seconds = |ticks: u64| manifest.at(ticks).as_secs_f64();
    let longest = manifest.blocks.iter().map(|block| block.duration).max().unwrap_or(0);
    // Rounded up, which is never less than the rounding that the RFC asks for.
    let target = manifest.at(longest).as_nanos().div_ceil(1_000_000_000);
    let init = manifest.layers.first().map_or(0, |base| base.init.len());
    let mut text = format!(
        "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:{target}\n#EXT-X-PLAYLIST-TYPE:VOD\n\
         #EXT-X-INDEPENDENT-SEGMENTS\n#EXT-X-MAP:URI=\"{MEDIA}\",BYTERANGE=\"{init}@0\"\n"
    );
    let mut offset = u64::try_from(init).unwrap_or(0);
    for block in &manifest.blocks {
        let length = block.chunks.get(Layer::BASE.index()).map_or(0, |chunk| chunk.length);
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "#EXTINF:{:.6},\n#EXT-X-BYTERANGE:{length}@{offset}\n{MEDIA}\n",
            seconds(block.duration)
        );
        offset += length;
    }
    text.push_str("#EXT-X-ENDLIST\n");
    text
}
