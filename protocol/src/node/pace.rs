//! When a request that is granted may start: a viewer's within its slot, a copy at
//! once and behind everybody.

use super::slots::{Paced, Wish};
use super::{Drain, Event, Node, Output};
use crate::guests::{LinkId, StreamId};
use crate::message::{ChunkRequest, Refusal, StreamRequest};
use media::{Hash, Span, Time};

impl Node {
    /// A request is granted: it starts now, or when its slot allows.
    pub(super) fn pace(
        &mut self,
        now: Time,
        link: LinkId,
        stream: StreamId,
        request: StreamRequest,
        version: Hash,
    ) {
        let StreamRequest::Chunk(chunk) = &request else {
            // Nothing can be asked for without a manifest.
            return self.outputs.push_back(Output::Grant { stream, request, version, slot: true });
        };
        // Of all that a proxy speaks for, whose slot allows it soonest.
        let served = |user: &super::autonomy::UserId| self.autonomy.serves(*user, chunk.id.layer);
        let users = self.viewers.users(link, &chunk.id.title).filter(served);
        let user = self.slots.readiest(users, chunk.id.layer);
        let Some(wish) = user.and_then(|user| self.wish(now, (link, stream), user, chunk, version)) else {
            let slot = user.is_some();
            return self.outputs.push_back(Output::Grant { stream, request, version, slot });
        };
        let lengths = self.shelf.watched(&chunk.id.title, Some(version)).map(|held| &held.lengths);
        match lengths.map(|lengths| self.slots.ask(now, wish, &request, lengths)) {
            Ok(Some(true)) => self.outputs.push_back(Output::Grant { stream, request, version, slot: true }),
            Ok(Some(false)) => {
                self.outputs.push_back(Output::Hold { stream });
                self.event(Event::Paced { link, stream, request });
            }
            Ok(None) => self.refuse_granted(link, stream, request, Refusal::Full),
            Err(why) => self.refuse_granted(link, stream, request, why),
        }
    }

    /// What a request takes of a slot; nothing where nobody is paced.
    fn wish(
        &self,
        now: Time,
        (link, stream): (LinkId, StreamId),
        user: super::autonomy::UserId,
        chunk: &ChunkRequest,
        version: Hash,
    ) -> Option<Wish> {
        let held = self.shelf.watched(&chunk.id.title, Some(version)).ok().filter(|_| self.slots.pace())?;
        let layer = chunk.id.layer;
        let bytes = held.lengths.of(chunk.id.block, layer)?;
        let due = now + Span::from_millis(chunk.deadline_ms.into());
        Some(Wish { link, stream, user, version, layer, bytes, due })
    }

    fn refuse_granted(&mut self, link: LinkId, stream: StreamId, request: StreamRequest, why: Refusal) {
        self.guests.answered(stream);
        self.outputs.push_back(Output::Refuse { stream, why });
        self.event(Event::RequestRefused { link, request, why });
    }

    /// Requests whose slot allows them by now, if they still have one.
    pub(super) fn slots_due(&mut self, now: Time) {
        if self.drain == Drain::Done {
            return;
        }
        for paced in self.slots.due(now) {
            let Paced { link, stream, user, request, version, layer, .. } = paced;
            if self.autonomy.serves(user, layer) {
                self.outputs.push_back(Output::Grant { stream, request, version, slot: true });
            } else {
                self.refuse_granted(link, stream, request, Refusal::NotServing);
            }
        }
    }
}
