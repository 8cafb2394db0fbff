//! One node or proxy, asked every second; dialled anew when it is gone.

use super::view::Answer;
use crate::operator::{Keyring, Operator};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

const EVERY: Duration = Duration::from_secs(1);

/// Asks until nobody wants to know.
pub(super) async fn again_and_again(address: SocketAddr, keyring: Keyring, answers: mpsc::Sender<Answer>) {
    let mut tick = interval(EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut operator = None;
    loop {
        tick.tick().await;
        let asked = match operator.take() {
            Some(operator) => Ok(operator),
            None => Operator::dial(&address.to_string(), &keyring).await,
        };
        let status = match asked {
            Ok(mut asked) => {
                let status = asked.status().await;
                // Who did not answer is dialled anew.
                operator = status.is_ok().then_some(asked);
                status
            }
            Err(error) => Err(error),
        };
        let status = status.map_err(|error| error.to_string());
        if answers.send(Answer { address, status }).await.is_err() {
            return;
        }
    }
}
