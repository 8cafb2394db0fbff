//! What a store keeps, over its lives.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]

#[path = "../../tests/loopback/film.rs"]
mod film;

use super::*;
use film::{BLOCKS, LENGTH, chunk_bytes};
use media::Layer;
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

const CHUNK: u64 = 300_000;
const PLENTY: u64 = 1 << 30;

fn name() -> TitleName {
    "film".parse().unwrap()
}

fn title() -> Arc<Title> {
    let bytes = Bytes::from(film::manifest().to_bytes().unwrap());
    Arc::new(Title::new(film::manifest().clone(), bytes))
}

/// The same film with another first chunk.
fn other_title() -> Arc<Title> {
    let mut manifest = film::manifest().clone();
    manifest.blocks[0].chunks[0].hash = Hash::of(b"other");
    let bytes = Bytes::from(manifest.to_bytes().unwrap());
    Arc::new(Title::new(manifest, bytes))
}

fn id(block: u32) -> ChunkId {
    ChunkId { title: name(), block, layer: Layer::BASE }
}

fn block(id: &ChunkId) -> Block {
    let bytes = chunk_bytes(id.block, id.layer);
    Block { length: CHUNK, hash: Hash::of(&bytes), bytes }
}

/// A folder and the store in it.
struct Life {
    folder: TempDir,
    store: Store,
    writes: Writes,
}

impl Life {
    fn begin() -> Self {
        Self::again(tempfile::tempdir().unwrap(), PLENTY)
    }

    fn again(folder: TempDir, memory: u64) -> Self {
        let (store, writes) = Store::open(folder.path(), 3 * CHUNK, memory).unwrap();
        Self { folder, store, writes }
    }

    /// A life in which the first `blocks` chunks of Base were written.
    async fn with(blocks: u32) -> Self {
        let mut life = Self::begin();
        life.store.learn(&name(), title());
        for block_number in 0..blocks {
            life.store.insert(&id(block_number), block(&id(block_number))).unwrap();
        }
        for _ in 0..blocks {
            assert_eq!(life.write().await, None);
        }
        life
    }

    async fn write(&mut self) -> Option<ChunkId> {
        let written = self.writes.next().await.unwrap();
        self.store.written(written)
    }

    /// The end, and a next life that has nothing in memory.
    fn restart(self) -> Self {
        Self::again(self.end(), 0)
    }

    fn end(self) -> TempDir {
        self.store.close();
        self.folder
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join("lamina-chunks").join(name)
    }

    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.file("film")).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn read(&self, id: &ChunkId) -> Result<Bytes, String> {
        match self.store.get(id) {
            Some(Held::OnDisk(reading)) => reading.read().map(|block| block.bytes).map_err(|e| e.to_string()),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_restart_finds_everything_as_it_was() {
    let life = Life::with(3).await.restart();
    assert_eq!(life.store.title(&name()).unwrap().hash(), title().hash());
    let found: Vec<_> = life.store.iter().collect();
    assert_eq!(found, [(id(0), CHUNK), (id(1), CHUNK), (id(2), CHUNK)]);
    assert_eq!(life.store.used(), 3 * CHUNK);
    for number in 0..3 {
        assert_eq!(life.read(&id(number)), Ok(chunk_bytes(number, Layer::BASE)));
    }
    let fullness = Fullness { chunks: 3, bytes: 3 * CHUNK, capacity: 3 * CHUNK, memory: 0, unwritten: 0 };
    assert_eq!(life.store.fullness(), fullness);
}

#[tokio::test]
async fn what_is_half_written_cut_short_or_foreign_is_removed_at_the_start() {
    let life = Life::with(3).await;
    fs::write(life.file("film/.new"), b"half").unwrap();
    fs::write(life.file("film/1.0"), b"short").unwrap();
    fs::write(life.file("film/02.0"), chunk_bytes(2, Layer::BASE)).unwrap();
    fs::write(life.file("film/99.0"), chunk_bytes(2, Layer::BASE)).unwrap();
    fs::write(life.file("film/holiday.jpg"), b"foreign").unwrap();
    fs::create_dir(life.file("film/3.0")).unwrap();
    fs::write(life.file("notes"), b"foreign").unwrap();
    fs::create_dir(life.file("no-manifest")).unwrap();
    fs::create_dir(life.file("bad-manifest")).unwrap();
    fs::write(life.file("bad-manifest/title.json"), b"{").unwrap();
    // A title under another's name.
    fs::create_dir(life.file("other")).unwrap();
    fs::copy(life.file("film/title.json"), life.file("other/title.json")).unwrap();
    // A link is removed, and what it points to is not touched.
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("precious"), b"kept").unwrap();
    std::os::unix::fs::symlink(outside.path(), life.file("link")).unwrap();
    let beside = life.folder.path().join("beside");
    fs::write(&beside, b"kept").unwrap();

    let life = life.restart();
    assert_eq!(life.files(), ["0.0", "2.0", "title.json"]);
    assert_eq!(fs::read_dir(life.file("")).unwrap().count(), 1);
    assert_eq!(life.store.iter().map(|(id, _)| id.block).collect::<Vec<_>>(), [0, 2]);
    assert_eq!(life.store.used(), 2 * CHUNK);
    assert_eq!(fs::read(beside).unwrap(), b"kept");
    assert_eq!(fs::read(outside.path().join("precious")).unwrap(), b"kept");
}

#[tokio::test]
async fn a_flipped_bit_is_noticed_when_it_is_read_and_the_chunk_is_dropped() {
    let life = Life::with(2).await;
    let mut bytes = fs::read(life.file("film/1.0")).unwrap();
    bytes[LENGTH / 2] ^= 1;
    fs::write(life.file("film/1.0"), bytes).unwrap();
    let mut life = life.restart();
    assert_eq!(life.read(&id(0)), Ok(chunk_bytes(0, Layer::BASE)));
    assert_eq!(life.read(&id(1)), Err("it does not match its hash".to_owned()));
    let Some(Held::OnDisk(reading)) = life.store.get(&id(1)) else { panic!() };
    assert!(life.store.was_bad(&id(1), reading.serial));
    assert!(!life.store.was_bad(&id(1), reading.serial), "it is gone already");
    assert_eq!(life.store.used(), CHUNK);
    // A fetch brings it back, and a late verdict over the old one does it no harm.
    life.store.insert(&id(1), block(&id(1))).unwrap();
    assert!(!life.store.was_bad(&id(1), reading.serial));
    assert!(life.store.holds(&id(1)));
}

#[tokio::test]
async fn another_manifest_drops_what_was_kept_of_the_title() {
    let mut life = Life::with(2).await.restart();
    assert_eq!(life.store.learn(&name(), title()), [], "nothing changed");
    assert_eq!(life.store.learn(&name(), other_title()), [id(0), id(1)]);
    assert_eq!((life.store.used(), life.store.get(&id(1)).is_some()), (0, false));
    assert_eq!(life.store.insert(&id(0), block(&id(0))), Err(NotKept::Unknown), "the old first chunk");
    life.store.insert(&id(1), block(&id(1))).unwrap();
    let life = life.restart();
    assert_eq!(life.files(), ["1.0", "title.json"]);
    assert_eq!(life.store.title(&name()).unwrap().hash(), other_title().hash());
}

#[tokio::test]
async fn what_is_removed_is_gone_and_its_room_is_free() {
    let mut life = Life::with(3).await;
    assert_eq!(life.store.insert(&id(3), block(&id(3))), Err(NotKept::NoRoom));
    assert!(life.store.remove(&id(1)));
    assert!(!life.store.remove(&id(1)));
    life.store.insert(&id(3), block(&id(3))).unwrap();
    // Removed before it was written, and written again: the order is kept.
    life.store.remove(&id(3));
    life.store.insert(&id(3), block(&id(3))).unwrap();
    let mut life = life.restart();
    assert_eq!(life.files(), ["0.0", "2.0", "3.0", "title.json"]);
    assert_eq!(life.store.forget(&name()), [id(0), id(2), id(3)]);
    let folder = life.end();
    assert_eq!(fs::read_dir(folder.path().join("lamina-chunks")).unwrap().count(), 0);
}

#[tokio::test]
async fn a_disk_that_takes_nothing_costs_the_chunk_its_place_and_nothing_else() {
    let mut life = Life::with(1).await;
    // Where the title's folder was is a file now: every write fails.
    fs::remove_dir_all(life.file("film")).unwrap();
    fs::write(life.file("film"), b"").unwrap();
    life.store.insert(&id(1), block(&id(1))).unwrap();
    assert!(matches!(life.store.get(&id(1)), Some(Held::Here(_))), "until it is written it is in memory");
    assert_eq!(life.write().await, Some(id(1)));
    assert_eq!((life.store.holds(&id(1)), life.store.used()), (false, CHUNK));
}

#[tokio::test]
async fn a_full_disk_costs_one_chunk_and_the_next_is_kept_when_there_is_room() {
    let mut life = Life::with(1).await;
    // Whatever is written there meets a full disk (full(4)), once.
    std::os::unix::fs::symlink("/dev/full", life.file("film/.new")).unwrap();
    life.store.insert(&id(1), block(&id(1))).unwrap();
    assert_eq!(life.write().await, Some(id(1)));
    life.store.insert(&id(2), block(&id(2))).unwrap();
    assert_eq!(life.write().await, None);
    assert_eq!(life.files(), ["0.0", "2.0", "title.json"]);
    assert_eq!(life.store.used(), 2 * CHUNK);
}

#[test]
fn what_waits_to_be_written_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let (mut store, writes) = Store::open(folder.path(), u64::MAX, 0).unwrap();
    // Nobody hears that a write is over, so that all of them count as waiting.
    let (most, mut kept) = (64 * 1024 * 1024, 0);
    let long = |number: u32| Bytes::from(vec![u8::try_from(number).unwrap(); 1 << 20]);
    let mut manifest = film::manifest().clone();
    let first = manifest.blocks[0].clone();
    manifest.blocks = (0..100)
        .map(|number| {
            let mut block = first.clone();
            block.start = u64::from(number) * 1000;
            block.chunks[0].length = 1 << 20;
            block.chunks[0].hash = Hash::of(&long(number));
            block
        })
        .collect();
    store.learn(&name(), Arc::new(Title::new(manifest, Bytes::new())));
    for number in 0..100 {
        let bytes = long(number);
        match store.insert(&id(number), Block { length: 1 << 20, hash: Hash::of(&bytes), bytes }) {
            Ok(()) => kept += 1 << 20,
            Err(why) => assert_eq!((why, kept), (NotKept::Busy, most)),
        }
    }
    assert_eq!((kept, store.used(), store.fullness().unwritten), (most, most, most));
    drop(writes);
    store.close();
}

#[test]
fn a_folder_belongs_to_one_store_at_a_time() {
    let life = Life::begin();
    let other = Store::open(life.folder.path(), PLENTY, PLENTY);
    assert!(matches!(other, Err(StoreError::InUse { .. })), "{other:?}");
    Life::again(life.end(), PLENTY);
}

#[test]
fn without_a_folder_everything_is_in_memory() {
    let (mut store, _) = Store::in_memory(2 * CHUNK);
    store.learn(&name(), title());
    for number in 0..2 {
        store.insert(&id(number), block(&id(number))).unwrap();
    }
    assert_eq!(store.insert(&id(2), block(&id(2))), Err(NotKept::NoRoom));
    assert!(
        matches!(store.get(&id(1)), Some(Held::Here(block)) if block.bytes == chunk_bytes(1, Layer::BASE))
    );
    assert_eq!(store.fullness().memory, 2 * CHUNK);
    assert!(store.info(&id(BLOCKS)).is_none());
}
