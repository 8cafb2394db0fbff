#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]

use super::*;
use crate::bench::ours::{self, Film};
use codec::{Preset, metrics};
use media::Hasher;

/// Two seconds that move, with an odd size.
fn film(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("film.mp4");
    let made = std::process::Command::new("ffmpeg")
        .args([
            "-nostdin",
            "-v",
            "error",
            "-f",
            "lavfi",
            "-i",
            "testsrc2=size=176x144:rate=12:duration=2",
            "-vf",
            "scale=161:121",
        ])
        .args(["-c:v", "mpeg4", "-q:v", "2", "-pix_fmt", "yuv420p"])
        .arg(&path)
        .status()
        .unwrap();
    assert!(made.success());
    path
}

#[test]
fn a_stored_title_comes_back_as_the_manifest_says() {
    let folder = tempfile::tempdir().unwrap();
    let path = film(folder.path());
    let film = Film { path: &path, seconds: None, preset: Preset::Fast, quality: 30.0 };
    let title = ours::encode(&film, folder.path(), "film", None).unwrap().title;

    let manifest = title.manifest();
    assert_eq!((manifest.block_count(), manifest.blocks[1].frames), (2, 12));
    let mut base = Hasher::new();
    let mut shown = [Hasher::new(), Hasher::new(), Hasher::new()];
    decode_block(&title, 1, |tiers| {
        tiers.base.hash_into(&mut base);
        tiers.qualities.iter().zip(&mut shown).for_each(|(picture, hasher)| picture.hash_into(hasher));
        Ok::<(), StoredError>(())
    })
    .unwrap();
    assert_eq!(base.finish(), manifest.blocks[1].base_hash);
    assert_eq!(shown.map(|hasher| hasher.finish()).as_slice(), manifest.blocks[1].quality_hashes);
}

#[test]
fn the_same_picture_is_found_at_every_quality() {
    let folder = tempfile::tempdir().unwrap();
    let path = film(folder.path());
    let film = Film { path: &path, seconds: None, preset: Preset::Fast, quality: 30.0 };
    let title = ours::encode(&film, folder.path(), "film", None).unwrap().title;

    let start = title.manifest().blocks[1].start;
    let tiers = picture_at(&title, start + 1).unwrap();
    assert_eq!((tiers.pts, tiers.qualities.len()), (start, 3));
    let mut source = crate::bench::yuv::Film::open(&path).unwrap();
    let pictures: Vec<_> = std::iter::from_fn(|| source.picture().unwrap()).collect();
    let psnr: Vec<f64> =
        tiers.qualities.iter().map(|shown| metrics::psnr_y(&pictures[12], shown).unwrap()).collect();
    assert!(psnr[0] < psnr[1] && psnr[1] < psnr[2], "{psnr:?}");
    assert_eq!(picture_at(&title, u64::MAX).unwrap().pts, start + 11 * (start / 12));
}
