//! One node or proxy as a process of its own, started, watched and ended.

use super::{Host, StageError};
use protocol::PeerId;
use rustix::process::{Pid, Signal};
use serde::Deserialize;
use std::ffi::OsString;
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::broadcast;
use tokio::time::timeout;

/// How long a process may take to say that it is ready.
const READY_DEADLINE: Duration = Duration::from_secs(20);
/// How long a killed process may take to be gone.
const GONE_DEADLINE: Duration = Duration::from_secs(5);
/// The longest line a process may say.
const MAX_LINE_BYTES: u64 = 64 * 1024;

/// What a process prints when it can be asked.
#[derive(Debug, Deserialize)]
struct Ready {
    address: SocketAddr,
}

/// What is printed before it by whoever starts it on another machine.
#[derive(Debug, Deserialize)]
struct Numbered {
    number: u32,
}

/// A node or proxy that can be started, killed and started again. Dropping it
/// kills it, and it ends by itself when its standard input closes, so that it
/// cannot outlive whoever started it, however that one ends.
#[derive(Debug)]
pub struct Process {
    peer: PeerId,
    program: PathBuf,
    arguments: Vec<OsString>,
    log: PathBuf,
    events: broadcast::Sender<NodeEvent>,
    child: Option<Child>,
    /// The machine it runs on, if that is another one.
    host: Option<Host>,
    /// Its number there.
    remote: Option<u32>,
}

/// Something that a node told on its standard output.
#[derive(Debug, Clone)]
pub struct NodeEvent {
    /// Which node.
    pub peer: PeerId,
    /// When it was heard.
    pub at: Instant,
    /// What, as `lamina serve --events` prints it.
    pub event: serde_json::Value,
}

impl NodeEvent {
    /// Whether it is an event of this name.
    pub fn is(&self, name: &str) -> bool {
        self.text("event") == name
    }

    /// The text in one of its fields, or nothing.
    pub fn text(&self, field: &str) -> &str {
        self.event.get(field).and_then(serde_json::Value::as_str).unwrap_or_default()
    }
}

impl Process {
    /// A process that is not running yet; what it says goes to `log`.
    pub(crate) fn new(
        peer: PeerId,
        program: &Path,
        arguments: Vec<OsString>,
        log: PathBuf,
        events: broadcast::Sender<NodeEvent>,
    ) -> Self {
        Self {
            peer,
            program: program.to_owned(),
            arguments,
            log,
            events,
            child: None,
            host: None,
            remote: None,
        }
    }

    /// It runs on another machine.
    pub(crate) fn on(&mut self, host: Host) {
        self.host = Some(host);
    }

    /// The name of the node or proxy.
    pub fn peer(&self) -> PeerId {
        self.peer
    }

    /// Whether it was started and not killed since.
    pub fn is_running(&self) -> bool {
        self.child.is_some()
    }

    /// The identifier of the process, while it runs.
    pub fn process_id(&self) -> Option<u32> {
        self.child.as_ref()?.id()
    }

    /// Starts the process and waits until it is ready; the address it listens on.
    ///
    /// # Errors
    /// It cannot be started, ends at once, or does not become ready in time.
    pub async fn start(&mut self) -> Result<SocketAddr, StageError> {
        let peer = self.peer;
        let failed = |why: std::io::Error| StageError::Start { peer, why };
        let log = File::options().create(true).append(true).open(&self.log).map_err(failed)?;
        let mut command = match &self.host {
            None => Command::new(&self.program),
            Some(host) => host.command(&self.arguments),
        };
        if self.host.is_none() {
            command.args(&self.arguments);
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        let stdout = child.stdout.take();
        let ready =
            timeout(READY_DEADLINE, ready_line(stdout, peer, self.events.clone())).await.ok().flatten();
        match ready {
            Some((ready, number)) => {
                self.child = Some(child);
                self.remote = number;
                Ok(ready.address)
            }
            None => Err(StageError::NotReady { peer, said: last_line(&self.log) }),
        }
    }

    /// Sends it a signal, wherever it runs.
    ///
    /// # Errors
    /// It does not run, or may not be signalled.
    pub async fn signal(&self, signal: Signal) -> Result<(), StageError> {
        let peer = self.peer;
        let failed = |why: &dyn std::fmt::Display| StageError::Kill { peer, why: why.to_string() };
        if let Some((host, number)) = self.host.as_ref().zip(self.remote) {
            return host.signal(peer, number, signal).await;
        }
        let number = self.process_id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let number = number.ok_or_else(|| failed(&"it does not run"))?;
        rustix::process::kill_process(number, signal).map_err(|why| failed(&why))
    }

    /// Kills the process as a power cut would (SIGKILL) and waits until it is gone.
    ///
    /// # Errors
    /// It does not go within five seconds.
    pub async fn kill(&mut self) -> Result<(), StageError> {
        if self.host.is_some() && self.child.is_some() {
            self.signal(Signal::KILL).await?;
        }
        let Some(mut child) = self.child.take() else { return Ok(()) };
        let gone = timeout(GONE_DEADLINE, child.kill()).await;
        match gone {
            Ok(Ok(())) => Ok(()),
            Ok(Err(why)) => Err(StageError::Kill { peer: self.peer, why: why.to_string() }),
            Err(_) => Err(StageError::Kill { peer: self.peer, why: "it does not end".into() }),
        }
    }
}

/// Reads the one line of JSON that a ready process prints, then passes on what
/// it says.
async fn ready_line(
    stdout: Option<ChildStdout>,
    peer: PeerId,
    events: broadcast::Sender<NodeEvent>,
) -> Option<(Ready, Option<u32>)> {
    let mut lines = BufReader::new(stdout?);
    let pass_on = move |line: &str| {
        let at = Instant::now();
        if let Ok(event) = serde_json::from_str(line) {
            // If nobody listens nobody misses it.
            let _ = events.send(NodeEvent { peer, at, event });
        }
    };
    // What happens at the start may be told before the node is ready.
    let mut number = None;
    let ready = loop {
        let line = next_line(&mut lines).await?;
        if let Ok(Numbered { number: told }) = serde_json::from_str(&line) {
            number = Some(told);
            continue;
        }
        match serde_json::from_str::<Ready>(&line) {
            Ok(ready) => break (ready, number),
            Err(_) => pass_on(&line),
        }
    };
    tokio::spawn(async move {
        while let Some(line) = next_line(&mut lines).await {
            pass_on(&line);
        }
    });
    Some(ready)
}

/// One line of bounded length; a longer one comes in pieces that mean nothing.
async fn next_line(lines: &mut BufReader<ChildStdout>) -> Option<String> {
    let mut line = String::new();
    let read = lines.take(MAX_LINE_BYTES).read_line(&mut line).await.ok()?;
    (read > 0).then_some(line)
}

/// The last thing a process said before it gave up.
fn last_line(log: &Path) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().rev().find(|line| !line.trim().is_empty());
    line.unwrap_or("nothing").to_owned()
}
