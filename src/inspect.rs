//! `lamina inspect`: what is in a title.

use crate::door::{DONE, HintExt, Outcome};
use anyhow::Context as _;
use encoder::Inspection;
use media::Layer;
use media::library::TitleFolder;
use std::path::{Path, PathBuf};

/// Arguments of `lamina inspect`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  lamina inspect library/film\n  lamina inspect library/film --blocks --json"
)]
pub(crate) struct Args {
    /// The title's folder
    title: PathBuf,
    /// List every block
    #[arg(long)]
    blocks: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Opens a title's folder, with a hint when that is not what was named.
pub(crate) fn open(path: &Path) -> anyhow::Result<TitleFolder> {
    TitleFolder::open(path)
        .with_context(|| format!("cannot open the title {}", path.display()))
        .hint("name the folder of a title, such as library/film")
}

pub(crate) fn run(args: &Args) -> Outcome {
    let folder = open(&args.title)?;
    let facts = encoder::inspect(&folder);
    if args.json {
        let mut value = serde_json::to_value(&facts)?;
        if let (true, Some(object)) = (args.blocks, value.as_object_mut()) {
            object.insert("blocks".into(), serde_json::to_value(&folder.manifest().blocks)?);
        }
        outln!("{}", serde_json::to_string_pretty(&value)?);
        return Ok(DONE);
    }
    describe(&facts);
    if args.blocks {
        list_blocks(&folder);
    }
    Ok(DONE)
}

fn describe(facts: &Inspection) {
    let (rate, made) = (facts.frame_rate, &facts.made);
    let (width, height) = (facts.width, facts.height);
    outln!("{}  {width}x{height}  {:.2} s  {}", facts.title, facts.seconds, facts.class);
    outln!(
        "  {} pictures ({}/{} a second) in {} blocks of {:.3} to {:.3} s",
        facts.pictures,
        rate.num,
        rate.den,
        facts.blocks,
        facts.block_seconds.0,
        facts.block_seconds.1
    );
    match &facts.audio {
        Some(audio) => {
            outln!("  sound: {} at {} Hz, {} channels", audio.codec, audio.sample_rate, audio.channels);
        }
        None => outln!("  no sound"),
    }
    outln!(
        "  made by {} (preset {}, CRF {}.{:02}, quantizers {:?})",
        made.by,
        made.preset,
        made.crf_centi / 100,
        made.crf_centi % 100,
        made.quantizers
    );
    outln!("\n  layer    codec        size          kbit/s   peak kbit/s");
    for layer in &facts.layers {
        let size = format!("{}x{}", layer.width, layer.height);
        let kept = if layer.kept { "" } else { "  (not kept here)" };
        let half = layer.half_kbit_s.map_or_else(String::new, |half| format!("  {half:.0} in halves a"));
        outln!(
            "  {:<8} {:<12} {:<11} {:>8.0}  {:>12.0}{half}{kept}",
            layer.layer,
            layer.codec,
            size,
            layer.kbit_s,
            layer.peak_kbit_s
        );
    }
    outln!("  all                              {:>8.0}", facts.total_kbit_s);
}

fn list_blocks(folder: &TitleFolder) {
    let manifest = folder.manifest();
    outln!("\n  block      start   pictures  bytes by layer");
    for (index, block) in manifest.blocks.iter().enumerate() {
        let start = manifest.at(block.start).as_secs_f64();
        out!("  {index:>5}  {start:>7.3} s  {:>9} ", block.frames);
        for (layer, chunk) in Layer::first(manifest.top_quality().layers()).zip(&block.chunks) {
            out!(" {layer} {}", chunk.length);
        }
        outln!();
    }
}
