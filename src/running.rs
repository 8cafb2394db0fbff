//! Running asynchronous work to its end, and ending it early when asked.

use anyhow::Context as _;
use std::future::Future;
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

/// How long left-over blocking work may delay the end of the process.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Runs `work` on all cores until it is done.
pub(crate) fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = Builder::new_multi_thread().enable_all().build().context("no runtime can be started")?;
    let outcome = runtime.block_on(work);
    runtime.shutdown_timeout(LAST_WORDS);
    outcome
}

/// Ends when the process is asked to stop: Ctrl-C or SIGTERM.
pub(crate) async fn asked_to_stop() {
    let (interrupt, terminate) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
    match (interrupt, terminate) {
        (Ok(mut interrupt), Ok(mut terminate)) => {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        }
        _ => std::future::pending().await,
    }
}

/// Ends when standard input closes, if `wanted`: the parent is gone then.
pub(crate) async fn parent_gone(wanted: bool) {
    use tokio::io::AsyncReadExt as _;
    if !wanted {
        return std::future::pending().await;
    }
    let mut input = tokio::io::stdin();
    let mut ignored = [0; 64];
    while matches!(input.read(&mut ignored).await, Ok(1..)) {}
}

/// Ends when the process is asked to stop or, if `with_parent`, its parent is gone.
pub(crate) async fn told_to_end(with_parent: bool) {
    tokio::select! {
        () = asked_to_stop() => {}
        () = parent_gone(with_parent) => {}
    }
}
