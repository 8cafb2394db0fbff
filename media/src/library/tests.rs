#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]

use super::*;
use crate::container::random_access_index;
use crate::layer::Layer;
use crate::manifest::tests_support::small;
use crate::manifest::{ChunkInfo, Manifest};
use crate::{ChunkError, Hash};
use std::fs;

fn chunk_bytes(block: usize, layer: usize) -> Vec<u8> {
    vec![u8::try_from(block * 10 + layer).unwrap(); 100 + block * 10 + layer]
}

/// Writes the small title with chunks of known bytes; true to its manifest.
fn write(library: &Library, replace: bool) -> Result<TitleFolder, LibraryError> {
    let mut manifest: Manifest = small();
    let files: Vec<String> = manifest.layers.iter().map(|layer| layer.file.clone()).collect();
    let mut writer = TitleWriter::create(library, manifest.title.clone(), replace, &files)?;
    for layer in Layer::first(3) {
        writer.append(layer, b"init")?;
        for block in 0..3 {
            let bytes = chunk_bytes(block, layer.index());
            let offset = writer.append(layer, &bytes)?;
            manifest.blocks[block].chunks[layer.index()] =
                ChunkInfo { offset, length: u64::try_from(bytes.len()).unwrap(), hash: Hash::of(&bytes) };
        }
        let index = random_access_index(0, [(0, 4)])?;
        writer.append(layer, &index)?;
    }
    writer.finish(&manifest)
}

#[test]
fn a_title_is_read_back_chunk_by_chunk() {
    let place = tempfile::tempdir().unwrap();
    let library = Library::create(place.path().join("films")).unwrap();
    write(&library, false).unwrap();

    let listing = library.titles().unwrap();
    assert_eq!(listing.titles.len(), 1);
    assert_eq!(listing.titles[0].title.as_str(), "small");
    assert!(listing.unreadable.is_empty());

    let title = library.title(&"small".parse().unwrap()).unwrap();
    assert_eq!(title.layers().collect::<Vec<_>>(), [Layer(0), Layer(1), Layer(2)]);
    assert_eq!(Manifest::parse(title.manifest_bytes()).unwrap(), **title.manifest());
    let bytes = title.read_chunk(2, Layer::ENH1).unwrap();
    assert_eq!(bytes, chunk_bytes(2, 1));
    assert!(title.verified(2, Layer::ENH1, bytes.clone()).is_ok());
    assert!(matches!(title.verified(1, Layer::ENH1, bytes), Err(ChunkError::Length { .. })));
    assert!(matches!(title.read_chunk(3, Layer::BASE), Err(LibraryError::NoSuchChunk(_))));
}

#[test]
fn an_existing_title_is_kept_unless_it_shall_be_replaced() {
    let place = tempfile::tempdir().unwrap();
    let library = Library::open(place.path()).unwrap();
    write(&library, false).unwrap();
    let error = write(&library, false).unwrap_err();
    assert!(matches!(error, LibraryError::Exists { .. }), "{error}");
    fs::write(library.path().join("small/remains"), "of the old one").unwrap();
    write(&library, true).unwrap();
    assert!(!library.path().join("small/remains").exists());
    assert_eq!(fs::read_dir(library.path()).unwrap().count(), 1, "nothing is left beside the title");
}

#[test]
fn a_title_that_is_not_finished_is_never_seen() {
    let place = tempfile::tempdir().unwrap();
    let library = Library::open(place.path()).unwrap();
    let files = ["base.mp4".to_owned()];
    let mut writer = TitleWriter::create(&library, "film".parse().unwrap(), false, &files).unwrap();
    writer.append(Layer::BASE, b"half").unwrap();
    assert!(library.titles().unwrap().titles.is_empty());
    assert!(library.titles().unwrap().unreadable.is_empty());
    drop(writer);
    assert_eq!(fs::read_dir(library.path()).unwrap().count(), 0);
}

#[test]
fn a_node_keeps_only_its_layer() {
    let place = tempfile::tempdir().unwrap();
    let library = Library::open(place.path()).unwrap();
    let whole = write(&library, false).unwrap();
    let node = Library::create(place.path().join("node")).unwrap();
    let part = copy_layers(&whole, &[Layer::ENH2], &node, false).unwrap();
    assert_eq!(part.layers().collect::<Vec<_>>(), [Layer::ENH2]);
    assert_eq!(part.manifest_bytes(), whole.manifest_bytes());
    assert_eq!(part.read_chunk(0, Layer::ENH2).unwrap(), chunk_bytes(0, 2));
    assert!(matches!(part.read_chunk(0, Layer::BASE), Err(LibraryError::NotKept(_))));
    assert!(matches!(copy_layers(&part, &[Layer::BASE], &node, true), Err(LibraryError::NotKept(_))));
}

#[test]
fn what_is_unreadable_is_reported_and_hides_nothing() {
    let place = tempfile::tempdir().unwrap();
    let library = Library::open(place.path()).unwrap();
    write(&library, false).unwrap();
    for (folder, manifest) in [("empty", None), ("garbage", Some("no json"))] {
        fs::create_dir(library.path().join(folder)).unwrap();
        if let Some(manifest) = manifest {
            fs::write(library.path().join(folder).join("title.json"), manifest).unwrap();
        }
    }
    // A folder under another name than its title's would be served under both.
    copy_dir(&library.path().join("small"), &library.path().join("other"));
    let listing = library.titles().unwrap();
    assert_eq!(listing.titles.len(), 1);
    let why: Vec<_> = listing.unreadable.iter().map(|(_, error)| error.to_string()).collect();
    assert_eq!(why.len(), 3);
    assert!(why[0].starts_with("cannot open ") && why[0].ends_with("empty/title.json"), "{}", why[0]);
    assert!(why[1].ends_with("garbage is of no use"), "{}", why[1]);
    assert!(why[2].ends_with("other holds the title small"), "{}", why[2]);
}

fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

#[test]
fn a_file_cut_short_is_an_error_and_no_chunk() {
    let place = tempfile::tempdir().unwrap();
    let library = Library::open(place.path()).unwrap();
    let title = write(&library, false).unwrap();
    let file = fs::OpenOptions::new().write(true).open(title.path().join("base.mp4")).unwrap();
    file.set_len(300).unwrap();
    assert!(title.read_chunk(0, Layer::BASE).is_ok());
    assert!(matches!(title.read_chunk(2, Layer::BASE), Err(LibraryError::CutShort(_))));
}
