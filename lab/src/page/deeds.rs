//! What may be done to the network from the page, and the words in which it is
//! asked for.

use super::state::Condition;
use media::Quality;
use protocol::PeerId;
use serde::Deserialize;
use tokio::sync::{mpsc, oneshot};

/// Deeds that wait for their turn.
const QUEUE: usize = 16;

/// One deed. Names are peers' names, and so short.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "deed", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Deed {
    /// SIGKILL.
    Kill { node: PeerId },
    /// SIGSTOP.
    Hang { node: PeerId },
    /// SIGCONT, or a new start.
    Revive { node: PeerId },
    /// Kill, take away what is on disk, and start.
    #[serde(skip)]
    Empty { node: PeerId },
    /// Change the link between two.
    Link { one: PeerId, other: PeerId, condition: Condition },
    /// Somebody comes to watch; the network chooses the name.
    AddViewer { quality: Wish, vip: bool, proxy: bool },
    /// Somebody comes whose name and line are chosen.
    #[serde(skip)]
    Invite { name: PeerId, quality: Quality, vip: bool, proxy: bool, condition: Condition },
    /// Another quality, or another promise. The same as before: begin anew.
    ChangeViewer { viewer: PeerId, quality: Option<Wish>, vip: Option<bool> },
    /// Somebody leaves.
    RemoveViewer { viewer: PeerId },
    /// Whatever is dead or hangs runs again, and every link is open.
    Mend,
    /// A step of the guided tour, from 1.
    Tour { step: u8 },
}

/// A quality by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Wish {
    Bronze,
    Silver,
    Gold,
}

impl From<Wish> for Quality {
    fn from(wish: Wish) -> Self {
        match wish {
            Wish::Bronze => Self::BRONZE,
            Wish::Silver => Self::SILVER,
            Wish::Gold => Self::GOLD,
        }
    }
}

/// Why a deed was not done. Nothing was changed, unless it says so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DeedError {
    #[error("there is nobody called {0}")]
    Nobody(PeerId),
    #[error("{0} does not run")]
    NotRunning(PeerId),
    #[error("no more than {0} can watch at once")]
    Full(usize),
    #[error("there is no link between {0} and {1}")]
    NoLink(PeerId, PeerId),
    #[error("the tour has no step {0}")]
    NoStep(u8),
    #[error("the network is not ready")]
    NotReady,
    #[error("the tour is under way")]
    Touring,
    #[error("too much is asked for at once")]
    Busy,
    #[error("{0}")]
    Failed(String),
}

/// A deed, and where the answer goes.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) deed: Deed,
    pub(crate) done: oneshot::Sender<Result<(), DeedError>>,
}

/// Where deeds are asked for.
#[derive(Clone, Debug)]
pub(crate) struct Orders(mpsc::Sender<Order>);

impl Orders {
    pub(crate) fn new() -> (Self, mpsc::Receiver<Order>) {
        let (sender, receiver) = mpsc::channel(QUEUE);
        (Self(sender), receiver)
    }

    /// Asks for a deed and waits until it is done.
    pub(crate) async fn ask(&self, deed: Deed) -> Result<(), DeedError> {
        let (done, answer) = oneshot::channel();
        self.0.try_send(Order { deed, done }).map_err(|_| DeedError::Busy)?;
        answer.await.unwrap_or(Err(DeedError::NotReady))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Deed> {
        serde_json::from_str(text).ok()
    }

    #[test]
    fn deeds_are_read_as_the_page_writes_them_and_nothing_else_is() {
        let node = "base-3".parse().unwrap();
        assert_eq!(read(r#"{"deed":"kill","node":"base-3"}"#), Some(Deed::Kill { node }));
        let add = r#"{"deed":"add_viewer","quality":"gold","vip":true,"proxy":false}"#;
        assert_eq!(read(add), Some(Deed::AddViewer { quality: Wish::Gold, vip: true, proxy: false }));
        let condition = Condition::Narrow;
        let link = r#"{"deed":"link","one":"anna","other":"base-3","condition":"narrow"}"#;
        let one = "anna".parse().unwrap();
        assert_eq!(read(link), Some(Deed::Link { one, other: node, condition }));
        for bad in [
            r#"{"deed":"kill","node":"../../etc"}"#,
            r#"{"deed":"kill","node":"base-3","also":1}"#,
            r#"{"deed":"empty","node":"base-3"}"#,
            r#"{"deed":"invite","name":"eve","quality":"gold","proxy":false,"condition":"open"}"#,
            r#"{"deed":"add_viewer","quality":"platinum","vip":true,"proxy":false}"#,
            "{}",
            "",
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[tokio::test]
    async fn who_asks_for_too_much_is_told_so() {
        let (orders, queue) = Orders::new();
        let waiting: Vec<_> = (0..QUEUE)
            .map(|_| {
                let orders = orders.clone();
                tokio::spawn(async move { orders.ask(Deed::Mend).await })
            })
            .collect();
        while orders.0.capacity() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(orders.ask(Deed::Mend).await, Err(DeedError::Busy));
        drop(queue);
        for one in waiting {
            assert_eq!(one.await.unwrap(), Err(DeedError::NotReady));
        }
    }
}
