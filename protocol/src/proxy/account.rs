//! How the proxy stands, for whoever runs it.

use super::{Drain, Output, Proxy};
use crate::guests::LinkId;
use crate::message::{Message, Refusal, Role};
use crate::status::ProxyStatus;
use media::Time;

impl Proxy {
    /// Members hear how the proxy stands.
    pub(super) fn tell_status(&mut self, now: Time, link: LinkId) {
        if self.guests.link(link).is_none_or(|guest| guest.hello.role == Role::Viewer) {
            return self.send(link, Message::Refused { request: 0, why: Refusal::NotAllowed });
        }
        let status = Box::new(self.status(now));
        self.outputs.push_back(Output::TellStatus { link, status });
    }

    fn status(&self, now: Time) -> ProxyStatus {
        let mind = &self.advisor.mind;
        ProxyStatus {
            peer: self.id,
            up: now - self.born,
            draining: self.drain != Drain::No,
            sessions: u32::try_from(self.guests.session_count()).unwrap_or(u32::MAX),
            capacity: mind.config().capacity,
            used: mind.used(),
            proxy: self.advisor.counts,
            counts: mind.counts(),
            servers: mind.server_lines(),
            titles: mind.title_lines(),
            clients: mind.client_lines(),
            events: Vec::new(),
        }
    }
}
