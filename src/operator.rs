//! How whoever runs the network speaks to a node: with a certificate named
//! `operator`, one question at a time, and a deadline on every answer.

use crate::door::{HintExt, refuse};
use crate::{address, keys, titles};
use anyhow::Context as _;
use protocol::message::OPERATOR;
use protocol::status::{NodeStatus, ProxyStatus};
use protocol::{Message, PeerId, Refusal};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::timeout;
use transport::{Authority, Connection, DialWhy, Endpoint, EndpointConfig, Identity, Inbox};

/// How long a node may take to answer.
const DEADLINE: Duration = Duration::from_secs(5);
/// The number of the only order on a connection.
const ORDER: u32 = 1;
const MEMBERS: &str = "an operator needs the cluster's keys: --keys DIR names the folder that holds ca.pem \
                       and either ca.key or peers/operator.pem";

/// Which node is spoken to, and as whom.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Keyring {
    /// The folder of keys [default: `$XDG_DATA_HOME/lamina/keys`]
    #[arg(long, value_name = "DIR")]
    keys: Option<PathBuf>,
}

/// How a node or a proxy stands.
#[derive(Debug, serde::Serialize)]
#[serde(untagged)]
pub(crate) enum Status {
    Node(Box<NodeStatus>),
    Proxy(Box<ProxyStatus>),
}

/// A conversation with one node.
#[derive(Debug)]
pub(crate) struct Operator {
    endpoint: Endpoint,
    connection: Connection,
    inbox: Inbox,
    address: SocketAddr,
}

impl Operator {
    /// Finds the node and introduces itself.
    pub(crate) async fn dial(host: &str, keyring: &Keyring) -> anyhow::Result<Self> {
        let address = address::resolve(host)?;
        let folder = keys::folder(keyring.keys.clone())?;
        let authority =
            Authority::load(&folder).context("no certificate authority to believe").hint(MEMBERS)?;
        let name: PeerId = OPERATOR.parse()?;
        let identity = Identity::obtain(&folder, name)
            .context("there is no certificate for an operator")
            .hint(MEMBERS)?;
        let endpoint = Endpoint::open(&EndpointConfig::operator(&identity, authority))?;
        match endpoint.dial(address, None, DEADLINE).await {
            Ok((connection, inbox)) => Ok(Self { endpoint, connection, inbox, address }),
            Err(error) => {
                let hint = match &error.why {
                    DialWhy::Refused(why) => refusal_hint(*why),
                    _ => titles::dial_hint(&error),
                };
                Err(error).hint(hint)
            }
        }
    }

    /// The node's address.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Gives the one order of this conversation and waits until it is accepted.
    pub(crate) async fn order(&mut self, order: impl FnOnce(u32) -> Message) -> anyhow::Result<()> {
        self.ask(order(ORDER), |message| matches!(message, Message::Done { request: ORDER }).then_some(()))
            .await
    }

    /// Asks how the node or the proxy stands.
    pub(crate) async fn status(&mut self) -> anyhow::Result<Status> {
        self.ask(Message::AskStatus, |message| match message {
            Message::Status(status) => Some(Status::Node(status)),
            Message::ProxyStatus(status) => Some(Status::Proxy(status)),
            _ => None,
        })
        .await
    }

    async fn ask<T>(
        &mut self,
        question: Message,
        answer: impl Fn(Message) -> Option<T>,
    ) -> anyhow::Result<T> {
        let gone = || format!("the node at {} is gone", self.address);
        self.connection.send(question).with_context(gone)?;
        let heard = async {
            loop {
                let message = self.inbox.recv().await.with_context(gone)?;
                if let Message::Refused { why, .. } = message {
                    let says = format!("the node at {} says: {why}", self.address);
                    return refuse(says, refusal_hint(why));
                }
                // News for nodes may come in between.
                if let Some(answer) = answer(message) {
                    return Ok(answer);
                }
            }
        };
        match timeout(DEADLINE, heard).await {
            Ok(heard) => heard,
            Err(_) => refuse(
                format!("the node at {} does not answer", self.address),
                "it may hang, or be of another version",
            ),
        }
    }

    /// Says goodbye.
    pub(crate) async fn close(self) {
        self.endpoint.close().await;
    }
}

fn refusal_hint(why: Refusal) -> &'static str {
    match why {
        Refusal::NotAllowed | Refusal::Identity => MEMBERS,
        Refusal::NotOrigin => "--to HOST:PORT names the origin",
        Refusal::NoSuchTitle => "`lamina titles HOST` lists what the origin has",
        Refusal::Draining => "start it again, or ask another node",
        Refusal::Version => "use the same version of lamina on both sides",
        _ => "`lamina status HOST` shows how the node stands",
    }
}
