//! A connection to a node upstream, shared by everything that is fetched there.

use crate::upstream::UpstreamError;
use media::{Quality, TitleName, TitleSummary};
use protocol::{Message, Open, Opened, Refusal, SessionId, UserId, Visit};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;
use transport::{Connection, Inbox};

/// How long a node may take to answer on its control stream.
const ANSWER: Duration = Duration::from_secs(1);
/// The most sessions kept on one connection; the oldest makes room.
const MAX_SESSIONS: usize = 32;
/// The most questions that wait for an answer.
const MAX_QUESTIONS: usize = 64;

/// A connection with the sessions that are open on it.
#[derive(Debug)]
pub(crate) struct Line {
    connection: Connection,
    questions: Arc<Mutex<Questions>>,
    sessions: tokio::sync::Mutex<VecDeque<(TitleName, SessionId)>>,
}

/// Who waits for which answer.
#[derive(Debug, Default)]
struct Questions {
    next: u32,
    opens: BTreeMap<u32, oneshot::Sender<Result<Opened, Refusal>>>,
    lists: VecDeque<oneshot::Sender<Vec<TitleSummary>>>,
}

impl Line {
    pub(crate) fn new(connection: Connection, inbox: Inbox) -> Self {
        let questions = Arc::<Mutex<Questions>>::default();
        // It ends with the connection, and the connection with the line.
        tokio::spawn(listen(inbox, Arc::clone(&questions)));
        Self { connection, questions, sessions: tokio::sync::Mutex::default() }
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(crate) fn is_open(&self) -> bool {
        self.connection.close_reason().is_none()
    }

    /// Makes sure that there is a session for `title`.
    pub(crate) async fn session(&self, title: &TitleName) -> Result<(), UpstreamError> {
        let known =
            |sessions: &VecDeque<(TitleName, SessionId)>| sessions.iter().any(|(name, _)| name == title);
        if known(&*self.sessions.lock().await) {
            return Ok(());
        }
        self.open(title).await.map(|_| ())
    }

    /// Opens a session, or hears again what an open one is about.
    pub(crate) async fn open(&self, title: &TitleName) -> Result<Opened, UpstreamError> {
        // Held over the answer: who wants the same session waits for this one.
        let mut sessions = self.sessions.lock().await;
        let (answer, answered) = oneshot::channel();
        let request = {
            let mut questions = lock(&self.questions);
            if questions.opens.len() >= MAX_QUESTIONS {
                return Err(UpstreamError::Silent);
            }
            questions.next = questions.next.wrapping_add(1);
            let request = questions.next;
            questions.opens.insert(request, answer);
            request
        };
        let open = Open::new(request, title.clone(), Quality(u8::MAX), UserId(0), Visit::Copy);
        let sent = self.connection.send(Message::Open(open));
        let opened = match sent {
            Ok(()) => timeout(ANSWER, answered).await,
            Err(_) => return Err(UpstreamError::Silent),
        };
        lock(&self.questions).opens.remove(&request);
        let opened = opened.ok().and_then(Result::ok).ok_or(UpstreamError::Silent)??;
        sessions.retain(|(name, _)| name != title);
        if sessions.len() >= MAX_SESSIONS
            && let Some((_, oldest)) = sessions.pop_front()
        {
            // Requests that were granted go on without it.
            let _ = self.connection.send(Message::Close(oldest));
        }
        sessions.push_back((title.clone(), opened.session));
        Ok(opened)
    }

    /// What can be watched there.
    pub(crate) async fn titles(&self) -> Result<Vec<TitleSummary>, UpstreamError> {
        let (answer, answered) = oneshot::channel();
        {
            let mut questions = lock(&self.questions);
            if questions.lists.len() >= MAX_QUESTIONS {
                return Err(UpstreamError::Silent);
            }
            questions.lists.push_back(answer);
        }
        self.connection.send(Message::ListTitles).map_err(|_| UpstreamError::Silent)?;
        timeout(ANSWER, answered).await.ok().and_then(Result::ok).ok_or(UpstreamError::Silent)
    }
}

fn lock(questions: &Mutex<Questions>) -> MutexGuard<'_, Questions> {
    questions.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Brings answers to those who wait; whoever is left when the node is gone
/// learns it by the end of their channel.
async fn listen(mut inbox: Inbox, questions: Arc<Mutex<Questions>>) {
    while let Ok(message) = inbox.recv().await {
        let mut questions = lock(&questions);
        match message {
            // Nobody may wait any more: then the answer is lost, and nothing else.
            Message::Opened(opened) => {
                if let Some(waiting) = questions.opens.remove(&opened.request) {
                    let _ = waiting.send(Ok(opened));
                }
            }
            Message::Refused { request, why } => {
                if let Some(waiting) = questions.opens.remove(&request) {
                    let _ = waiting.send(Err(why));
                }
            }
            Message::Titles(titles) => {
                if let Some(waiting) = questions.lists.pop_front() {
                    let _ = waiting.send(titles);
                }
            }
            // A node that drains refuses by name; a probe is for nodes.
            Message::Hello(_)
            | Message::ListTitles
            | Message::Open(_)
            | Message::Close(_)
            | Message::Probe(_)
            | Message::Alive(_)
            | Message::Draining
            | Message::Agent(_)
            | Message::BackupIs { .. }
            | Message::DeliveryStart { .. }
            | Message::StillServed { .. }
            | Message::Contacts(_)
            | Message::Elsewhere { .. }
            | Message::LayerAt { .. }
            | Message::Position { .. }
            | Message::Publish { .. }
            | Message::Unpublish { .. }
            | Message::Done { .. }
            | Message::AskStatus
            | Message::Status(_)
            | Message::Neighbour(_) => {}
        }
    }
    let mut questions = lock(&questions);
    questions.opens.clear();
    questions.lists.clear();
}
