//! The nodes to which the machine wants to be connected: which line to each stands,
//! when something was last heard by it, and what is being fetched.

use crate::line::Line;
use crate::upstream::Pool;
use media::{ChunkId, Span};
use protocol::Message;
use protocol::proxy::{Input, Upstream};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::AbortHandle;
use tokio::time::sleep;
use tracing::debug;

/// How long a connection outlives the one that replaced it.
const FAREWELL: Duration = Duration::from_secs(2);

/// Lines by where they lead.
#[derive(Debug, Default)]
pub(crate) struct Nodes {
    standing: BTreeMap<SocketAddr, Standing>,
    fetching: BTreeMap<ChunkId, AbortHandle>,
}

#[derive(Debug)]
struct Standing {
    line: Arc<Line>,
    heard: Instant,
}

/// What became of a dial.
#[derive(Debug)]
pub(crate) struct Dialled {
    to: Upstream,
    line: Option<Arc<Line>>,
}

impl Nodes {
    /// Connects to a node: anew if a connection stands, since that one is silent.
    pub(crate) fn dial(&self, pool: Arc<Pool>, to: Upstream) -> impl Future<Output = Dialled> + use<> {
        let anew = self.standing.contains_key(&to.address);
        async move {
            let line = if anew { pool.renew(to).await } else { pool.line(to).await };
            let line =
                line.inspect_err(|error| debug!(address = %to.address, %error, "a node is not reached"));
            Dialled { to, line: line.ok() }
        }
    }

    /// A dial is over; what the machine is told.
    pub(crate) fn dialled(&mut self, dialled: Dialled) -> Option<Input> {
        let address = dialled.to.address;
        let Some(line) = dialled.line.filter(|line| line.is_open()) else {
            // An older connection stands, though silent: its end will be told.
            let silent = self.standing.contains_key(&address);
            return (!silent).then_some(Input::Unreached { address });
        };
        let (peer, round_trip) = (line.connection().peer().peer, Span::from(line.connection().rtt()));
        let heard = line.connection().last_heard();
        if let Some(old) = self.standing.insert(address, Standing { line, heard }) {
            // A node that hears of its end before we are announced anew would take
            // it for the end of all whom we speak for.
            tokio::spawn(async move {
                sleep(FAREWELL).await;
                drop(old);
            });
        }
        Some(Input::Reached { address, peer, round_trip })
    }

    /// The line that stands.
    pub(crate) fn line(&self, to: Upstream) -> Option<Arc<Line>> {
        self.standing.get(&to.address).map(|standing| Arc::clone(&standing.line))
    }

    /// Whether the line of this number is the one that stands.
    pub(crate) fn stands(&self, address: SocketAddr, number: u64) -> bool {
        self.standing.get(&address).is_some_and(|standing| standing.line.number == number)
    }

    /// A line is over.
    pub(crate) fn ended(&mut self, address: SocketAddr) {
        self.standing.remove(&address);
    }

    /// Says something to a node; who does not take it will be missed.
    pub(crate) fn tell(&self, to: Upstream, message: Message) {
        if let Some(standing) = self.standing.get(&to.address)
            && let Err(error) = standing.line.connection().send(message)
        {
            debug!(address = %to.address, %error, "a message was not sent");
        }
    }

    /// From whom something came since this was last asked.
    pub(crate) fn heard(&mut self) -> Vec<SocketAddr> {
        let mut heard = Vec::new();
        for (address, standing) in &mut self.standing {
            let last = standing.line.connection().last_heard();
            if last > standing.heard {
                standing.heard = last;
                heard.push(*address);
            }
        }
        heard
    }

    /// A chunk is being fetched by this task; an older one is ended.
    pub(crate) fn fetches(&mut self, chunk: ChunkId, task: AbortHandle) {
        if let Some(before) = self.fetching.insert(chunk, task) {
            before.abort();
        }
    }

    /// A chunk is not being fetched any more.
    pub(crate) fn fetched(&mut self, chunk: &ChunkId) {
        if let Some(task) = self.fetching.remove(chunk) {
            task.abort();
        }
    }
}
