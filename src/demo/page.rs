//! `lamina demo --web`: the network as a page, until Ctrl-C.

use super::{explain, prepared};
use crate::door::{DONE, HintExt, Outcome, refuse};
use crate::running;
use anyhow::Context as _;
use lab::demo::DemoOptions;
use lab::page::PageOptions;
use lab::stage::Size;
use std::net::SocketAddr;
use tokio::net::TcpListener;

/// Serves the page.
pub(super) fn run(options: &DemoOptions, listen: SocketAddr) -> Outcome {
    if !listen.ip().is_loopback() {
        // Whoever reaches the page may kill its nodes.
        return refuse(
            format!("{} is not this machine's own address", listen.ip()),
            "127.0.0.1:PORT; an ssh tunnel brings it elsewhere",
        );
    }
    running::block_on(async {
        tokio::select! {
            outcome = show(options, listen) => outcome,
            () = running::asked_to_stop() => Ok(DONE),
        }
    })
}

async fn show(options: &DemoOptions, listen: SocketAddr) -> Outcome {
    // Before anything else, so that a port in use is no news after a minute.
    let listener = TcpListener::bind(listen)
        .await
        .with_context(|| format!("cannot listen on {listen}"))
        .hint("--listen 127.0.0.1:0 takes a free port")?;
    let film = prepared(options).await?;
    if let Some(attribution) = film.attribution {
        eprintln!("        {attribution}");
    }
    outln!("http://{}/", listener.local_addr()?);
    eprintln!("        open it in a browser; Ctrl-C ends the network");
    let page = PageOptions { program: options.program.clone(), size: Size::DEMO };
    match lab::page::serve(&page, &film, listener).await {
        Ok(()) => Ok(DONE),
        Err(error) => explain(error.into()),
    }
}
