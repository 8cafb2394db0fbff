//! What a proxy with a folder keeps, and what becomes of it.

use crate::film;
use crate::rig::Rig;
use media::{Layer, Quality};
use protocol::proxy::{Event, NotKept};
use proxy::{ProxyConfig, StartError, StoreError};
use std::fs;
use std::path::{Path, PathBuf};

/// A proxy that keeps nothing in memory but what is being written.
fn on_disk(rig: &Rig, folder: &Path, upstream: &[protocol::NodeAddress]) -> ProxyConfig {
    ProxyConfig { cache: Some(folder.to_owned()), memory_bytes: 0, ..rig.config(upstream) }
}

fn file(folder: &Path, name: &str) -> PathBuf {
    folder.join("lamina-chunks/film").join(name)
}

/// What was not kept, and why.
fn not_kept(rig: &Rig) -> Vec<(u32, NotKept)> {
    let events = rig.events.lock().unwrap();
    let not_kept = events.iter().filter_map(|event| match event {
        Event::NotKept { chunk, why } => Some((chunk.block, *why)),
        _ => None,
    });
    not_kept.collect()
}

#[tokio::test]
async fn after_a_restart_what_was_kept_is_served_though_every_node_is_dead() {
    let (rig, folder) = (Rig::new(), tempfile::tempdir().unwrap());
    let node = rig.node("base-1", &[]);
    let proxy = rig.start(on_disk(&rig, folder.path(), &[node.at])).await;
    let viewer = rig.watching(&proxy, Quality::BRONZE).await;
    for block in 0..film::BLOCKS {
        viewer.chunk(block, Layer::BASE).await.unwrap();
    }
    drop(viewer);
    proxy.drain().await;
    node.kill();

    let proxy = rig.start(on_disk(&rig, folder.path(), &[node.at])).await;
    let viewer = rig.watching(&proxy, Quality::GOLD).await;
    for block in 0..film::BLOCKS {
        viewer.chunk(block, Layer::BASE).await.unwrap();
    }
    assert!(viewer.chunk(0, Layer::ENH1).await.is_err(), "nobody ever asked for it");
    assert_eq!(node.times_asked(), 4);
}

#[tokio::test]
async fn a_chunk_that_rotted_on_the_disk_is_fetched_again_and_nobody_sees_it() {
    let (rig, folder) = (Rig::new(), tempfile::tempdir().unwrap());
    let node = rig.node("base-1", &[]);
    let proxy = rig.start(on_disk(&rig, folder.path(), &[node.at])).await;
    rig.watching(&proxy, Quality::BRONZE).await.chunk(1, Layer::BASE).await.unwrap();
    proxy.drain().await;
    let path = file(folder.path(), "1.0");
    let mut bytes = fs::read(&path).unwrap();
    bytes[1000] ^= 1;
    fs::write(&path, bytes).unwrap();

    let proxy = rig.start(on_disk(&rig, folder.path(), &[node.at])).await;
    let viewer = rig.watching(&proxy, Quality::BRONZE).await;
    viewer.chunk(1, Layer::BASE).await.unwrap();
    assert_eq!((node.times_asked(), not_kept(&rig)), (2, vec![(1, NotKept::Damaged)]));
    proxy.drain().await;
    assert_eq!(fs::read(&path).unwrap(), film::chunk_bytes(1, Layer::BASE), "and it was written anew");
}

#[tokio::test]
async fn a_disk_that_takes_nothing_does_not_stop_the_proxy() {
    let (rig, folder) = (Rig::new(), tempfile::tempdir().unwrap());
    let node = rig.node("base-1", &[]);
    let proxy = rig.start(on_disk(&rig, folder.path(), &[node.at])).await;
    rig.watching(&proxy, Quality::BRONZE).await;
    proxy.drain().await;
    let proxy = rig.start(on_disk(&rig, folder.path(), &[node.at])).await;
    let viewer = rig.watching(&proxy, Quality::BRONZE).await;
    // Where the title's folder belongs is a file: every write fails.
    fs::remove_dir_all(folder.path().join("lamina-chunks")).unwrap();
    fs::write(folder.path().join("lamina-chunks"), b"").unwrap();
    for block in 0..film::BLOCKS {
        viewer.chunk(block, Layer::BASE).await.unwrap();
    }
    // Until the disk has said no, the first one is in memory.
    while not_kept(&rig).is_empty() {
        viewer.chunk(0, Layer::BASE).await.unwrap();
    }
    assert_eq!(not_kept(&rig)[0], (0, NotKept::Disk));
    viewer.chunk(0, Layer::BASE).await.unwrap();
    assert!(node.times_asked() > 4, "what was not kept is fetched again");
}

#[tokio::test]
async fn a_cache_of_two_chunks_never_holds_three() {
    let (rig, folder) = (Rig::new(), tempfile::tempdir().unwrap());
    let node = rig.node("base-1", &[]);
    let cache_bytes = Some(2 * u64::try_from(film::LENGTH).unwrap());
    let config = ProxyConfig { cache_bytes, ..on_disk(&rig, folder.path(), &[node.at]) };
    let proxy = rig.start(config.clone()).await;
    let viewer = rig.watching(&proxy, Quality::BRONZE).await;
    for block in 0..film::BLOCKS {
        viewer.chunk(block, Layer::BASE).await.unwrap();
    }
    proxy.drain().await;
    let chunks = || fs::read_dir(file(folder.path(), "")).unwrap().count() - 1;
    assert_eq!((chunks(), not_kept(&rig)), (2, vec![]));
    // A smaller one makes room at its start.
    rig.start(ProxyConfig { cache_bytes: Some(1), ..config }).await.drain().await;
    assert_eq!(chunks(), 0);
}

#[tokio::test]
async fn two_proxies_do_not_share_a_folder() {
    let (rig, folder) = (Rig::new(), tempfile::tempdir().unwrap());
    let node = rig.node("base-1", &[]);
    let _first = rig.start(on_disk(&rig, folder.path(), &[node.at])).await;
    let second = proxy::start(on_disk(&rig, folder.path(), &[node.at]), |_| {}).await;
    assert!(matches!(second, Err(StartError::Store(StoreError::InUse { .. }))));
}
