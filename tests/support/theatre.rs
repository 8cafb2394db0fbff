//! A network of fifteen nodes, each a process, and a viewer in it.

use super::{Dice, Viewer, peer, plan};
use lab::stage::{NodeEvent, Size, Stage};
use media::library::TitleFolder;
use media::{Quality, Span};
use player::{PlayOptions, PlayReport, PlayerEvent};
use protocol::player::Own;
use protocol::{Promise, Sla};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, broadcast};
use tokio::time::{sleep, timeout};
use transport::Keys;

/// Long enough for anything that happens at all.
pub const PATIENCE: Duration = Duration::from_secs(15);
/// Sixteen processes and a player are enough for one machine.
pub static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

/// A network, and a viewer in it.
pub struct Theatre {
    /// The network.
    pub stage: Stage,
    /// Who serves Base.
    pub base: String,
    /// Who stands behind.
    pub backup: Option<String>,
    heard: broadcast::Receiver<NodeEvent>,
    viewer: Viewer,
    dice: Dice,
}

/// What came of one death.
#[derive(Debug)]
pub struct Death {
    /// From the kill to the first verdict.
    pub detected: Duration,
    /// From the node's last word to the first chunk of the next one.
    pub recovered_ms: u64,
    /// Why the viewer moved.
    pub cause: String,
    /// What was in the buffer.
    pub buffer_ms: u64,
}

fn options(stage: &Stage, title: &TitleFolder, sla: Sla, own: Own, buffer: Span) -> PlayOptions {
    let keys = Keys::open(stage.keys()).unwrap();
    let door = peer("base-1");
    let address = stage.address(door).unwrap();
    let title = title.manifest().title.clone();
    let mut options = PlayOptions::new(address, title, keys.authority().unwrap(), peer("viewer"));
    options.addresses = vec![(Some(door), address)];
    options.quality = Quality::GOLD;
    options.buffer = buffer;
    options.own = own;
    let promise = Promise { viewer: peer("viewer"), sla, top: Quality::GOLD, until: u64::MAX };
    options.token = Some(keys.sign(promise).unwrap());
    options
}

impl Theatre {
    /// Starts a network of the demonstration's size, and a viewer who wants gold.
    pub async fn open(folder: &Path, title: &TitleFolder, sla: Sla, own: Own, buffer: Span) -> Self {
        let stage = Stage::start(&plan(folder, title, Size::DEMO, false)).await.expect("the network starts");
        Self::in_front_of(stage, title, sla, own, buffer).await
    }

    /// A viewer who wants gold, in a network that stands.
    pub async fn in_front_of(stage: Stage, title: &TitleFolder, sla: Sla, own: Own, buffer: Span) -> Self {
        let heard = stage.events();
        let viewer = Viewer::with(options(&stage, title, sla, own, buffer));
        let (base, backup, dice) = (String::new(), None, Dice::by_lot("--test takeover"));
        let mut theatre = Self { stage, base, backup, heard, viewer, dice };
        theatre.until(|event| matches!(event, PlayerEvent::FirstPicture { .. })).await;
        theatre
    }

    /// The next event that `wanted` accepts; what those before it say is noted.
    pub async fn until(&mut self, mut wanted: impl FnMut(&PlayerEvent) -> bool) -> PlayerEvent {
        let mut seen = Vec::new();
        let wait = async {
            loop {
                let event = self.viewer.events.recv().await.expect("the viewer goes on");
                seen.push(event.clone());
                match &event {
                    PlayerEvent::Opened { node } => self.base.clone_from(node),
                    PlayerEvent::Backup { node, .. } => self.backup = Some(node.clone()),
                    PlayerEvent::FailedOver { layer, to, .. } if layer == "base" => {
                        self.base.clone_from(to);
                        // Whoever stood behind stands in front now.
                        self.backup = self.backup.take().filter(|backup| backup != to);
                    }
                    _ => {}
                }
                if wanted(&event) {
                    return event;
                }
            }
        };
        let Ok(event) = timeout(PATIENCE, wait).await else {
            panic!("it does not happen in time, but this: {seen:#?}");
        };
        event
    }

    /// Waits until somebody stands behind and the buffer is at least this deep.
    pub async fn until_safe(&mut self, deep_ms: u64) -> u64 {
        loop {
            let event = self.until(|event| matches!(event, PlayerEvent::Status { .. })).await;
            let PlayerEvent::Status { buffer_ms, .. } = event else { unreachable!() };
            if self.backup.is_some() && buffer_ms >= deep_ms {
                return buffer_ms;
            }
        }
    }

    /// The time from `since` until a node told this about `node`.
    pub async fn told(&mut self, since: Instant, name: &str, node: &str) -> Duration {
        let wait = async {
            loop {
                match self.heard.recv().await {
                    Ok(event) if event.is(name) && event.text("node") == node && event.at >= since => {
                        return event.at - since;
                    }
                    Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        };
        timeout(PATIENCE, wait).await.expect("the network says so")
    }

    /// Kills the node that serves Base, waits for what comes of it, and starts
    /// the node again.
    pub async fn death(&mut self, deep_ms: u64) -> Death {
        sleep(Duration::from_millis(200 + self.dice.below(1_000))).await;
        let buffer_ms = self.until_safe(deep_ms).await;
        let victim = self.base.clone();
        let killed = Instant::now();
        self.stage.process(peer(&victim)).unwrap().kill().await.unwrap();
        let moved = self
            .until(|event| matches!(event, PlayerEvent::FailedOver { layer, from, .. } if layer == "base" && *from == victim))
            .await;
        let PlayerEvent::FailedOver { recovered_ms, cause, .. } = moved else { unreachable!() };
        let detected = self.told(killed, "detected", &victim).await;
        // A new backup afterwards.
        if self.backup.is_none() {
            self.until(|event| matches!(event, PlayerEvent::Backup { .. })).await;
        }
        self.stage.process(peer(&victim)).unwrap().start().await.unwrap();
        self.told(killed, "believed_alive", &victim).await;
        Death { detected, recovered_ms, cause, buffer_ms }
    }

    /// Ends the viewing; every block was shown once, and was right.
    pub async fn close(self) -> PlayReport {
        let report = self.viewer.stop().await;
        assert_eq!(report.hash_mismatches, []);
        assert_eq!((report.sequence.missing, report.sequence.repeated), (0, 0), "{:?}", report.sequence);
        report
    }

    /// Sends a signal to a node's process.
    pub fn signal(&mut self, node: &str, signal: &str) {
        let id = self.stage.process(peer(node)).unwrap().process_id().unwrap();
        let kill = format!("kill -{signal} {id}");
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }

    /// Whether a node that serves nobody in front of the viewer serves it now.
    pub async fn serves(&self, node: &str) -> bool {
        let status = self.stage.inquiry(peer(node)).await.unwrap().status().await.unwrap();
        status.slots.normal + status.slots.vip > 0
    }
}
