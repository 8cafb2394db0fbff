//! A connection to a node upstream, shared by everything that is asked there: by
//! the driver, which waits for its answers here, and by the machine, which hears
//! all the rest.

use crate::upstream::UpstreamError;
use media::{Quality, TitleName, TitleSummary};
use protocol::proxy::OWN_REQUESTS;
use protocol::{Message, Open, Opened, Refusal, SessionId, UserId, Visit};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use transport::{Connection, Inbox};

/// How long a node may take to answer on its control stream.
const ANSWER: Duration = Duration::from_secs(1);
/// The most questions that wait for an answer.
const MAX_QUESTIONS: usize = 64;

/// What comes by a line and is not for whoever asked by it.
#[derive(Debug)]
pub(crate) enum Said {
    /// A message for the machine.
    Message(Message),
    /// The line is over.
    Ended,
}

/// A line's number, where it leads, and what came by it.
pub(crate) type Word = (u64, SocketAddr, Said);

/// A connection with the questions that are open on it.
#[derive(Debug)]
pub(crate) struct Line {
    /// Tells it from others to the same node.
    pub(crate) number: u64,
    connection: Connection,
    questions: Arc<Mutex<Questions>>,
    /// When a piece of any chunk last came.
    delivered: Mutex<Option<Instant>>,
}

/// Who waits for which answer.
#[derive(Debug, Default)]
struct Questions {
    next: u32,
    opens: BTreeMap<u32, oneshot::Sender<Result<Opened, Refusal>>>,
    lists: VecDeque<oneshot::Sender<Vec<TitleSummary>>>,
}

impl Line {
    pub(crate) fn new(
        number: u64,
        address: SocketAddr,
        (connection, inbox): (Connection, Inbox),
        said: mpsc::Sender<Word>,
    ) -> Self {
        let questions = Arc::<Mutex<Questions>>::default();
        // It ends with the connection, and the connection with the line.
        tokio::spawn(listen(inbox, Arc::clone(&questions), (number, address), said));
        Self { number, connection, questions, delivered: Mutex::default() }
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// A piece of a chunk came.
    pub(crate) fn delivers(&self) {
        *self.delivered.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// When the last one did.
    pub(crate) fn delivered(&self) -> Option<Instant> {
        *self.delivered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_open(&self) -> bool {
        self.connection.close_reason().is_none()
    }

    /// Opens a session as a member that copies: what is told of the title.
    pub(crate) async fn open(&self, title: &TitleName) -> Result<Opened, UpstreamError> {
        let (answer, answered) = oneshot::channel();
        let request = {
            let mut questions = lock(&self.questions);
            if questions.opens.len() >= MAX_QUESTIONS {
                return Err(UpstreamError::Silent);
            }
            questions.next = questions.next.wrapping_add(1) % OWN_REQUESTS;
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
        Ok(opened.ok().and_then(Result::ok).ok_or(UpstreamError::Silent)??)
    }

    /// A session is of no use any more.
    pub(crate) fn close(&self, session: SessionId) {
        // If it cannot be said, the connection is over, and the session with it.
        let _ = self.connection.send(Message::Close(session));
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

/// Brings answers to those who wait, and all else to the machine; whoever is left
/// when the node is gone learns it by the end of their channel.
async fn listen(
    mut inbox: Inbox,
    questions: Arc<Mutex<Questions>>,
    (number, address): (u64, SocketAddr),
    said: mpsc::Sender<Word>,
) {
    while let Ok(message) = inbox.recv().await {
        let rest = lock(&questions).answer(message);
        if let Some(message) = rest
            && said.send((number, address, Said::Message(message))).await.is_err()
        {
            // The proxy has stopped.
            break;
        }
    }
    {
        let mut questions = lock(&questions);
        questions.opens.clear();
        questions.lists.clear();
    }
    // As above.
    let _ = said.send((number, address, Said::Ended)).await;
}

impl Questions {
    /// Brings an answer to who waits for it; a message that is none comes back.
    fn answer(&mut self, message: Message) -> Option<Message> {
        match message {
            // Nobody may wait any more: then the answer is lost, and nothing else.
            Message::Opened(opened) if opened.request < OWN_REQUESTS => {
                if let Some(waiting) = self.opens.remove(&opened.request) {
                    let _ = waiting.send(Ok(opened));
                }
                None
            }
            Message::Refused { request, why } if request < OWN_REQUESTS => {
                if let Some(waiting) = self.opens.remove(&request) {
                    let _ = waiting.send(Err(why));
                }
                None
            }
            Message::Titles(titles) => {
                if let Some(waiting) = self.lists.pop_front() {
                    let _ = waiting.send(titles);
                }
                None
            }
            other => Some(other),
        }
    }
}
