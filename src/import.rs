//! `lamina import`: what was made for other players becomes a title.

use crate::door::{HintExt, Outcome};
use crate::encode::{self, Args as EncodeArgs};
use anyhow::Context as _;
use encoder::Input;
use std::path::{Path, PathBuf};

/// Playlists that a folder is looked through for, in this order.
const PLAYLISTS: [&str; 2] = ["m3u8", "mpd"];
/// Names of the playlist that lists all variants.
const MASTERS: [&str; 3] = ["master", "index", "main"];

/// Arguments of `lamina import`.
#[derive(Debug, clap::Args)]
#[group(skip)]
#[command(after_help = "\
Examples:
  lamina import https://example.org/film/master.m3u8 -o library --title film
  lamina import web -o library --title film      a folder with an HLS or DASH playlist
  lamina import https://example.org/film.mp4 -o library
Takes the options of `lamina encode`. Of several variants GStreamer chooses.")]
pub(crate) struct Args {
    #[command(flatten)]
    encode: EncodeArgs,
}

pub(crate) fn run(args: Args) -> Outcome {
    let input = find(&args.encode.film)?;
    encode::run_from(args.encode, input)
}

/// An address as it is, the playlist of a folder, or a file.
fn find(named: &Path) -> anyhow::Result<Input> {
    let text = named.to_string_lossy();
    if text.contains("://") {
        return Ok(Input::Address(text.into_owned()));
    }
    let path = if named.is_dir() { playlist(named)? } else { named.to_owned() };
    Ok(Input::File(path))
}

fn playlist(folder: &Path) -> anyhow::Result<PathBuf> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut found: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    found.sort();
    for ending in PLAYLISTS {
        let lists: Vec<&PathBuf> =
            found.iter().filter(|path| path.extension().is_some_and(|end| end == ending)).collect();
        let named =
            |path: &&&PathBuf| path.file_stem().is_some_and(|stem| MASTERS.iter().any(|name| stem == *name));
        match (lists.iter().find(named), lists.as_slice()) {
            (Some(list), _) => return Ok((**list).clone()),
            (None, [only]) => return Ok((*only).clone()),
            (None, []) => {}
            (None, [_, ..]) => {
                return Err(anyhow::anyhow!("{} holds several playlists", folder.display()))
                    .hint("name the one to import");
            }
        }
    }
    Err(anyhow::anyhow!("{} holds no HLS or DASH playlist", folder.display()))
        .hint("`lamina encode` takes a film in one file")
}
