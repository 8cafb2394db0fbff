//! Who asks what there is gets an answer that is true now.
//!
//! Messages that name titles pass through here on their way to the machine: the
//! library is looked through first, once for all that wait. There is one
//! librarian and a bounded queue, so that a flood of questions costs one
//! reading at a time. The list of promises that were taken back is read along with
//! it, so that it is true as well.

use crate::store::Store;
use protocol::node::Held;
use protocol::{LinkId, Message};
use std::sync::Arc;
use tokio::sync::mpsc;
use tracing::error;
use transport::keys::revoked::Revocations;

/// Questions that wait, and that are answered by one reading.
const QUEUE: usize = 256;

/// What the library holds now, and the questions that wanted to know.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) held: Vec<Held>,
    pub(crate) questions: Vec<(LinkId, Message)>,
}

/// Starts the librarian; questions go in one end and come back with what there is.
pub(crate) fn start(
    store: Arc<Store>,
    revocations: Arc<Revocations>,
) -> (mpsc::Sender<(LinkId, Message)>, mpsc::Receiver<Found>) {
    let (ask, mut questions) = mpsc::channel(QUEUE);
    let (tell, answers) = mpsc::channel(1);
    tokio::spawn(async move {
        loop {
            let mut waiting = Vec::new();
            if questions.recv_many(&mut waiting, QUEUE).await == 0 {
                return;
            }
            let (store, revocations) = (Arc::clone(&store), Arc::clone(&revocations));
            let look = move || {
                if let Err(error) = revocations.refresh() {
                    error!(%error, "what was taken back is not known: the last list still counts");
                }
                if let Err(error) = store.refresh() {
                    // What was found before is still open and can be served.
                    error!(%error, "the library cannot be looked through");
                }
                store.held()
            };
            let Ok(held) = tokio::task::spawn_blocking(look).await else { return };
            if tell.send(Found { held, questions: waiting }).await.is_err() {
                return;
            }
        }
    });
    (ask, answers)
}
