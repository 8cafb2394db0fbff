//! The nodes upstream: one connection to each, dialled when first needed.

use crate::line::{Line, Word};
use crate::store::Title;
use media::{Manifest, TitleName, TitleSummary};
use protocol::proxy::{Pace, Shape, Upstream};
use protocol::{Refusal, StreamRequest};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tracing::{debug, warn};
use transport::{DialError, DialWhy, Endpoint, Expect, RequestError};

/// How long a node may take to be reached.
const DIAL: Duration = Duration::from_secs(1);
/// How long nobody else dials a node that could not be reached.
const REDIAL: Duration = Duration::from_millis(500);
/// How long a manifest may take to arrive.
const MANIFEST: Duration = Duration::from_secs(20);
/// The most nodes that connections are kept to.
const MAX_LINES: usize = 64;
/// Words of nodes that wait to be heard.
const WORDS: usize = 1024;

/// Connections to nodes.
#[derive(Debug)]
pub(crate) struct Pool {
    endpoint: Endpoint,
    /// How long a node may take to grant, and then to send another byte.
    pub(crate) progress: Duration,
    lines: Mutex<BTreeMap<SocketAddr, Arc<Slot>>>,
    /// Hears what comes by the lines and is not for whoever asked.
    said: mpsc::Sender<Word>,
    next: AtomicU64,
    /// When a piece of any chunk last came from anybody.
    delivered: Mutex<Option<Instant>>,
}

/// One node: held while it is dialled, so that it is dialled once.
type Slot = tokio::sync::Mutex<Dialled>;

#[derive(Debug, Default)]
enum Dialled {
    #[default]
    Never,
    Line(Arc<Line>),
    Failed(Instant, DialError),
}

/// What a title is, from upstream.
#[derive(Debug)]
pub(crate) struct Learnt {
    pub(crate) shape: Shape,
    pub(crate) title: Arc<Title>,
}

impl Learnt {
    /// What an earlier life left of a title, while nobody upstream says anything:
    /// any of them may have what is missing.
    pub(crate) fn kept(title: Arc<Title>, upstream: &[Upstream]) -> Self {
        let shape = Shape {
            manifest_length: u64::try_from(title.bytes.len()).unwrap_or(u64::MAX),
            manifest_hash: title.hash,
            blocks: title.manifest.block_count(),
            sources: vec![upstream.to_vec(); title.manifest.top_quality().layers().into()],
            paces: Pace::of(&title.manifest),
        };
        Self { shape, title }
    }
}

/// A node upstream that did not do what it was asked to.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum UpstreamError {
    #[error(transparent)]
    Dial(#[from] DialError),
    #[error("refused: {0}")]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error("no answer in time")]
    Silent,
}

impl Pool {
    pub(crate) fn new(endpoint: Endpoint, progress: Duration) -> (Self, mpsc::Receiver<Word>) {
        let (said, words) = mpsc::channel(WORDS);
        let (lines, next, delivered) = (Mutex::default(), AtomicU64::default(), Mutex::default());
        (Self { endpoint, progress, lines, said, next, delivered }, words)
    }

    /// A piece of a chunk came from somebody.
    pub(crate) fn delivers(&self) {
        *self.delivered.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// When the last one did.
    pub(crate) fn delivered(&self) -> Option<Instant> {
        *self.delivered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection to a node, dialled if need be.
    pub(crate) async fn line(&self, to: Upstream) -> Result<Arc<Line>, UpstreamError> {
        let slot = self.slot(to);
        let mut dialled = slot.lock().await;
        match &*dialled {
            Dialled::Line(line) if line.is_open() => return Ok(Arc::clone(line)),
            Dialled::Failed(when, error) if when.elapsed() < REDIAL => return Err(error.clone().into()),
            Dialled::Never | Dialled::Line(_) | Dialled::Failed(..) => {}
        }
        self.dial(to, &mut dialled).await
    }

    /// A new connection to a node, in the place of one that may stand.
    pub(crate) async fn renew(&self, to: Upstream) -> Result<Arc<Line>, UpstreamError> {
        let slot = self.slot(to);
        let mut dialled = slot.lock().await;
        self.dial(to, &mut dialled).await
    }

    async fn dial(&self, to: Upstream, dialled: &mut Dialled) -> Result<Arc<Line>, UpstreamError> {
        match self.endpoint.dial(to.address, to.peer, DIAL).await {
            Ok(both) => {
                let number = self.next.fetch_add(1, Ordering::Relaxed);
                let line = Arc::new(Line::new(number, to.address, both, self.said.clone()));
                *dialled = Dialled::Line(Arc::clone(&line));
                Ok(line)
            }
            Err(error) => {
                if matches!(error.why, DialWhy::Certificate(_) | DialWhy::Claim(_)) {
                    warn!(address = %to.address, why = %error.why, "a source is not who it should be");
                }
                *dialled = Dialled::Failed(Instant::now(), error.clone());
                Err(error.into())
            }
        }
    }

    fn slot(&self, to: Upstream) -> Arc<Slot> {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() >= MAX_LINES && !lines.contains_key(&to.address) {
            // Whoever uses one right now holds on to it.
            lines.retain(|_, slot| Arc::strong_count(slot) > 1);
        }
        Arc::clone(lines.entry(to.address).or_default())
    }

    /// Asks one node after another for a title until one knows it.
    pub(crate) async fn learn(&self, title: &TitleName, upstream: &[Upstream]) -> Result<Learnt, Refusal> {
        let mut refusal = Refusal::Upstream;
        for from in upstream {
            match self.learn_from(title, *from).await {
                Ok(learnt) => return Ok(learnt),
                Err(error) => {
                    debug!(%title, address = %from.address, %error, "a title cannot be learnt here");
                    // Somebody who answers knows better than nobody.
                    if let UpstreamError::Refused(why @ Refusal::NoSuchTitle) = error {
                        refusal = why;
                    }
                }
            }
        }
        Err(refusal)
    }

    async fn learn_from(&self, title: &TitleName, from: Upstream) -> Result<Learnt, UpstreamError> {
        let line = self.line(from).await?;
        let opened = line.open(title).await?;
        if opened.manifest_length > media::manifest::MAX_MANIFEST_BYTES {
            let max = media::manifest::MAX_MANIFEST_BYTES;
            return Err(RequestError::TooLong { length: opened.manifest_length, max }.into());
        }
        let expect = Expect::Exactly { length: opened.manifest_length, hash: opened.manifest_hash };
        let request = StreamRequest::Manifest(title.clone());
        let payload = line.connection().request(&request, expect, MANIFEST).await;
        // What follows is asked for as somebody who watches.
        line.close(opened.session);
        let payload = payload?;
        let manifest = match Manifest::parse(&payload.bytes) {
            Ok(manifest) if manifest.title == *title => manifest,
            Ok(_) => return Err(Refusal::Damaged.into()),
            Err(error) => {
                warn!(%title, %error, "a manifest from upstream cannot be believed");
                return Err(Refusal::Damaged.into());
            }
        };
        let shape = Shape::new(&opened, &manifest, from);
        let title = Title { manifest, bytes: payload.bytes, hash: payload.hash };
        Ok(Learnt { shape, title: Arc::new(title) })
    }

    /// Asks one node after another what can be watched until one answers.
    pub(crate) async fn titles(&self, upstream: &[Upstream]) -> Result<Vec<TitleSummary>, Refusal> {
        for from in upstream {
            let told = async { self.line(*from).await?.titles().await };
            match told.await {
                Ok(titles) => return Ok(titles),
                Err(error) => debug!(address = %from.address, %error, "no list of titles from here"),
            }
        }
        Err(Refusal::Upstream)
    }
}
