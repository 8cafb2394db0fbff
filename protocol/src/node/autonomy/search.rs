//! The search for service (ADVODS 2.2: Pull-MA): a user's agent goes from node to
//! node, nearest first, until one of the layer's level lets the user in; then one
//! level up for the next layer. Where a whole level refuses, the origin serves.
//!
//! The agent keeps a map of the nodes it has heard of. Where several are equally
//! near, the lowest name is first.

use super::Autonomy;
use super::agent::{EntryKind, Known, Level, MAX_KNOWN, SearchAgent, UserId, UserInfo};
use super::io::{AutonomyEvent, AutonomyOutput, Bound, RejectedWhy, UserRequest, ViewerNotice};
use super::talk::{AdmissionRefusal, AgentMessage};
use crate::node::classes::Reason;
use crate::peer::PeerId;
use media::layer::MAX_LAYERS;
use media::{Layer, Quality, Span, Time};

/// By how much a seek raises an epoch that there was: by more than the take-overs
/// that the viewer may not have noticed, each of which raises it by 1. What the
/// viewer does last is right.
const SEEK_RAISES: u64 = 16;

impl Autonomy {
    /// A viewer came to this node.
    pub(super) fn viewer_arrives(&mut self, now: Time, request: UserRequest) {
        if let Some(record) = self.records.get(request.user) {
            // It is served here already, and asks again.
            let (node, epoch) = (self.id, record.info.epoch);
            let notice = ViewerNotice::ServedBy { layer: Layer::BASE, node, epoch };
            return self.output(AutonomyOutput::TellViewer { user: request.user, notice });
        }
        let layers = request.quality.layers().clamp(1, u8::try_from(MAX_LAYERS).unwrap_or(1));
        let info = UserInfo {
            user: request.user,
            title: request.title,
            quality: Quality(layers),
            sla: request.sla,
            started: request.started,
            epoch: request.epoch.saturating_add(if request.epoch == 0 { 1 } else { SEEK_RAISES }),
            position: request.position,
            remaining: request.remaining,
            buffer: if request.buffer == Span::ZERO { self.config.buffer } else { request.buffer },
            level: Span::ZERO,
            layers: [].into(),
        };
        self.pull(now, info, self.id);
    }

    /// A viewer has come over to the node that serves it: what is found for it
    /// is told here from now on.
    pub(super) fn viewer_attached(&mut self, now: Time, user: UserId) {
        let id = self.id;
        if let Some(record) = self.records.get_mut(user) {
            (record.entry, record.heard) = (id, now);
        }
    }

    /// Sends a user's agent off from this node.
    pub(super) fn pull(&mut self, now: Time, info: UserInfo, entry: PeerId) {
        let known = [Known { hops: 0, node: self.id, visited: false }].into();
        let agent = SearchAgent {
            info,
            entry,
            base: None,
            layer: Layer::BASE,
            ascending: false,
            refusals: 0,
            first: None,
            known,
        };
        self.search_here(now, agent);
    }

    /// A user's agent comes from another node.
    pub(super) fn hear_search(&mut self, now: Time, from: PeerId, agent: SearchAgent) {
        let expected = agent.ascending || agent.known.iter().any(|k| k.node == self.id && !k.visited);
        if !expected || agent.known.len() > MAX_KNOWN {
            return self.event(AutonomyEvent::Rejected { from, why: RejectedWhy::BadPath });
        }
        if !agent.info.quality.includes(agent.layer) || (agent.layer > Layer::BASE) != agent.base.is_some() {
            return self.event(AutonomyEvent::Rejected { from, why: RejectedWhy::NotTheirs });
        }
        self.search_here(now, agent);
    }

    /// The agent asks this node for each layer it may have, then goes on.
    fn search_here(&mut self, now: Time, mut agent: SearchAgent) {
        let mut known: Vec<Known> = agent.known.to_vec();
        for place in known.iter_mut().filter(|place| place.node == self.id) {
            place.visited = true;
        }
        let mut why = AdmissionRefusal::NotStored;
        while self.may_have(&agent) {
            if let Err(refusal) = self.grant(now, &agent) {
                why = refusal;
                if agent.base.is_none() && refusal != AdmissionRefusal::NotStored {
                    agent.refusals = agent.refusals.saturating_add(1);
                    agent.first.get_or_insert(refusal);
                }
                break;
            }
            if agent.layer == Layer::BASE {
                agent.base = Some(self.id);
            }
            agent.layer = Layer(agent.layer.0.saturating_add(1));
            agent.ascending = false;
            if !agent.info.quality.includes(agent.layer) {
                return;
            }
            // The next layer is looked for from here.
            known = vec![Known { hops: 0, node: self.id, visited: true }];
        }
        self.move_on(agent, known, why);
    }

    /// Whether the layer may come from here: of a title in the store every one may
    /// whose Base does.
    fn may_have(&self, agent: &SearchAgent) -> bool {
        let of_level = self.level == Level::Origin || self.level == Level::Layer(agent.layer);
        of_level || (agent.base == Some(self.id) && self.archives(&agent.info.title))
    }

    fn grant(&mut self, now: Time, agent: &SearchAgent) -> Result<(), AdmissionRefusal> {
        let (user, layer) = (agent.info.user, agent.layer);
        let outcome = match agent.base {
            None => self.admit_user(now, &agent.info, agent.entry),
            Some(base) => self.admit_layer(agent, base),
        };
        match outcome {
            Ok(()) => {
                let granted = AgentMessage::Granted { user, layer, node: self.id, epoch: agent.info.epoch };
                let to = agent.base.unwrap_or(agent.entry);
                self.send_or_hear(to, granted);
                if agent.base.is_none() {
                    self.backup_needed(now, user);
                }
            }
            Err(why) => {
                let kind = EntryKind::serving(agent.info.sla);
                self.event(AutonomyEvent::Refused { user, kind, why });
            }
        }
        outcome
    }

    /// As soon as a user is served, a backup is searched.
    fn backup_needed(&mut self, now: Time, user: UserId) {
        let kind = super::DiscoveryKind::Fresh;
        self.start_search(now, user, kind, super::SearchWhy::Admitted);
    }

    fn admit_layer(&mut self, agent: &SearchAgent, base: PeerId) -> Result<(), AdmissionRefusal> {
        let (user, layer, info) = (agent.info.user, agent.layer, &agent.info);
        if !self.stores(&info.title, layer) {
            return Err(AdmissionRefusal::NotStored);
        }
        let room = self.free() > 0 || self.streams.contains(user, layer);
        let standing = if room { Ok(()) } else { Err(Reason::Slots) };
        let moved = self.grants.admit((user, layer), &info.title, (info.sla, info.epoch), standing)?;
        self.moved(&info.title, moved);
        self.streams.start(user, layer, base, info.epoch);
        self.output(AutonomyOutput::StartDelivery {
            user,
            title: info.title.clone(),
            layer,
            position: info.position,
            epoch: info.epoch,
        });
        self.event(AutonomyEvent::LayerAdmitted { user, layer });
        Ok(())
    }

    /// To the nearest node not asked yet; when there is none, up to the origin.
    /// Where there is no way on, the user is told `why` this node refused.
    fn move_on(&mut self, mut agent: SearchAgent, mut known: Vec<Known>, why: AdmissionRefusal) {
        let most = self.config.redirects.filter(|_| agent.base.is_none() && !agent.info.started);
        if most.is_some_and(|most| agent.refusals > most) {
            return self.not_granted(&agent, why);
        }
        if !agent.ascending {
            self.draw_map(&agent, &mut known);
            let next = known.iter().find(|place| !place.visited && !self.survival.is_dead(place.node));
            if let Some(next) = next.map(|place| place.node) {
                agent.known = known.into();
                return self.send(next, AgentMessage::Search(Box::new(agent)));
            }
            agent.ascending = true;
        }
        agent.known = known.into();
        match self.inward() {
            Some(next) => self.send(next, AgentMessage::Search(Box::new(agent))),
            None => self.not_granted(&agent, why),
        }
    }

    /// Adds the neighbours that matter for the layer: nodes of its level, and of
    /// the level through which these are connected.
    fn draw_map(&mut self, agent: &SearchAgent, known: &mut Vec<Known>) {
        let here = known.iter().find(|place| place.node == self.id).map_or(0, |place| place.hops);
        let hops = here.saturating_add(1);
        let through = match agent.layer {
            Layer::BASE => Level::ENH1,
            Layer(above) => Level::Layer(Layer(above.saturating_sub(1))),
        };
        let mut full = false;
        for (node, neighbour) in self.survival.alive() {
            let matters = neighbour.level == through || neighbour.level == Level::Layer(agent.layer);
            if matters && !known.iter().any(|place| place.node == node) {
                full |= known.len() >= self.config.max_asked.min(MAX_KNOWN);
                if !full {
                    known.push(Known { hops, node, visited: false });
                }
            }
        }
        known.sort_unstable();
        if full {
            self.event(AutonomyEvent::BoundReached { what: Bound::Asked });
        }
    }

    /// The nearest neighbour one level further in.
    fn inward(&self) -> Option<PeerId> {
        let further = self.survival.alive().filter(|(_, n)| n.level > self.level);
        further.min_by_key(|(peer, n)| (n.level, n.travel, *peer)).map(|(peer, _)| peer)
    }

    fn not_granted(&mut self, agent: &SearchAgent, why: AdmissionRefusal) {
        let (user, layer) = (agent.info.user, agent.layer);
        // What the nearest node said is what concerns the user.
        let why = agent.first.unwrap_or(why);
        self.event(AutonomyEvent::NotServed { user, layer });
        let to = agent.base.unwrap_or(agent.entry);
        let message = AgentMessage::NotGranted { user, layer, why };
        self.send_or_hear(to, message);
    }

    /// A node serves a layer: at the user's Base node, or at the node the user
    /// came to.
    pub(super) fn hear_granted(
        &mut self,
        now: Time,
        from: PeerId,
        (user, layer): (UserId, Layer),
        node: PeerId,
        epoch: u64,
    ) {
        let Some(record) = self.records.get_mut(user) else {
            // The user has left in between, or this is the node it came to.
            if layer > Layer::BASE && from == node {
                self.send_or_hear(node, AgentMessage::ReleaseLayer { user, layer, epoch });
            } else {
                self.tell_served(user, layer, node, epoch);
            }
            return;
        };
        if epoch != record.info.epoch {
            return self.event(AutonomyEvent::Rejected { from, why: RejectedWhy::OldEpoch });
        }
        let entry = record.entry;
        if layer > Layer::BASE {
            let before = record.layer_node(layer).filter(|before| *before != node);
            if before.is_some_and(|before| !self.survival.is_dead(before)) {
                // Several agents were under way: the first one counts.
                return self.send_or_hear(node, AgentMessage::ReleaseLayer { user, layer, epoch });
            }
            record.set_layer(layer, Some(node));
            self.tell_backup(now, user);
            self.event(AutonomyEvent::LayerFound { user, layer, node });
        }
        if entry == self.id {
            self.tell_served(user, layer, node, epoch);
        } else if layer > Layer::BASE {
            self.send(entry, AgentMessage::Granted { user, layer, node, epoch });
        }
    }

    fn tell_served(&mut self, user: UserId, layer: Layer, node: PeerId, epoch: u64) {
        let notice = ViewerNotice::ServedBy { layer, node, epoch };
        self.output(AutonomyOutput::TellViewer { user, notice });
    }

    /// Nobody can serve a layer: as `hear_granted`.
    pub(super) fn hear_not_granted(&mut self, now: Time, user: UserId, layer: Layer, why: AdmissionRefusal) {
        if layer > Layer::BASE && self.records.get(user).is_some() {
            self.look_again(now);
        }
        let entry = self.records.get(user).map(|record| record.entry);
        if let Some(entry) = entry.filter(|entry| *entry != self.id) {
            self.send(entry, AgentMessage::NotGranted { user, layer, why });
        } else {
            let notice = ViewerNotice::Refused { layer, why };
            self.output(AutonomyOutput::TellViewer { user, notice });
        }
    }

    /// The node that served an enhancement died: another one of its level, or the
    /// origin, is asked to go on. Playback does not stop for it.
    pub(super) fn layer_lost(&mut self, now: Time, user: UserId, layer: Layer, node: PeerId) {
        let Some(record) = self.records.get_mut(user) else { return };
        record.set_layer(layer, None);
        self.event(AutonomyEvent::LayerLost { user, layer, node });
        self.look_for_layer(now, user, layer);
    }

    fn look_for_layer(&mut self, now: Time, user: UserId, layer: Layer) {
        let Some(record) = self.records.get(user) else { return };
        let info = UserInfo { quality: layer.quality(), ..record.info_at(now) };
        let (entry, base) = (record.entry, Some(self.id));
        let known = vec![Known { hops: 0, node: self.id, visited: true }];
        let agent = SearchAgent {
            info,
            entry,
            base,
            layer,
            ascending: false,
            refusals: 0,
            first: None,
            known: [].into(),
        };
        self.move_on(agent, known, AdmissionRefusal::NotStored);
    }

    /// Layers that nobody serves are looked for again in a while, for as long as
    /// there are any: a node that comes or returns is linked with the others only
    /// then, and agents and what they found may be lost with one that dies, or at
    /// one that does not know everybody yet.
    pub(super) fn look_again(&mut self, now: Time) {
        if let Some(wait) = self.config.layer_retry {
            self.layers_again.get_or_insert(now + wait);
        }
    }

    /// It is time to look again for layers that nobody could serve.
    pub(super) fn layers_due(&mut self, now: Time) {
        if self.layers_again.is_some_and(|again| again <= now) {
            self.layers_again = None;
            if self.missing_layers_again(now) {
                self.look_again(now);
            }
        }
    }

    /// A node has joined or returned: layers that nobody could serve are looked
    /// for again. Whether there are any.
    pub(super) fn missing_layers_again(&mut self, now: Time) -> bool {
        let mut missing: Vec<(UserId, Layer)> = Vec::new();
        for record in self.records.iter().filter(|record| record.info.quality > Quality::BRONZE) {
            let above = Layer::first(record.info.quality.layers()).skip(1);
            missing.extend(
                above
                    .filter(|layer| record.layer_node(*layer).is_none())
                    .map(|layer| (record.info.user, layer)),
            );
        }
        for (user, layer) in &missing {
            self.look_for_layer(now, *user, *layer);
        }
        !missing.is_empty()
    }

    /// Deliveries of enhancements that nobody has adopted.
    pub(super) fn streams_due(&mut self, now: Time) {
        for (user, layer) in self.streams.lapse(now) {
            let why = super::StopWhy::Orphaned;
            self.output(AutonomyOutput::StopDelivery { user, layer, why });
        }
    }
}
