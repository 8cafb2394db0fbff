//! What happens: inputs go in, outputs are carried out, viewers react.

use super::host::{Backlog, HostState, MAX_BACKLOG};
use super::{Happening, Line, World};
use crate::faults::Fault;
use crate::topology::SiteId;
use media::{Layer, Span};
use protocol::PeerId;
use protocol::node::autonomy::{
    AgentMessage, Autonomy, AutonomyInput, AutonomyOutput, EntryKind, Sla, UserId, UserRequest, ViewerNotice,
};

impl World {
    pub(super) fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Message { from, to, message, travel } => self.arrive(from, to, message, travel),
            Happening::Wake { site, life } => self.wake(site, life),
            Happening::Ask { user, site } => self.ask(user, site),
            Happening::Depart { user } => self.leave(user),
            Happening::Notice { from, user, notice } => self.notice(from, user, notice),
            Happening::Report { user } => self.report(user),
            Happening::Look { user } => self.look(user),
            Happening::Stored { site, life, title, layer } => {
                // What was dropped meanwhile, or fetched in another life, is not stored.
                if self.fetching.remove(&(site, life, title.clone(), layer)) {
                    let (size, version) = (self.size_of(&title, layer), super::FILM);
                    self.input(site, AutonomyInput::Stored { title, layer, size, version });
                }
            }
            Happening::Fault(fault) => self.fault(fault),
        }
    }

    /// Hands a machine an input, if its node works, and carries out what it says.
    pub(super) fn input(&mut self, site: SiteId, input: AutonomyInput) {
        let now = self.queue.now();
        let Some(host) = self.hosts.get_mut(site.index()).filter(|host| host.is_up()) else { return };
        let Some(machine) = host.machine.as_mut() else { return };
        machine.handle_input(now, input);
        while let Some(output) = self
            .hosts
            .get_mut(site.index())
            .and_then(|host| host.machine.as_mut())
            .and_then(Autonomy::poll_output)
        {
            self.carry_out(site, output);
        }
        self.plan_wake(site);
    }

    fn plan_wake(&mut self, site: SiteId) {
        let now = self.queue.now();
        let Some(host) = self.hosts.get_mut(site.index()) else { return };
        let Some(at) = host.machine.as_ref().and_then(Autonomy::poll_timeout) else { return };
        let at = at.max(now);
        // A wake that was planned sooner comes all the same and plans this one.
        if host.wake.is_none_or(|planned| at < planned) {
            host.wake = Some(at);
            self.queue.plan(at, Happening::Wake { site, life: host.life });
        }
    }

    fn wake(&mut self, site: SiteId, life: u32) {
        let now = self.queue.now();
        let Some(host) = self.hosts.get_mut(site.index()) else { return };
        if host.life != life || host.wake != Some(now) {
            return;
        }
        host.wake = None;
        self.input(site, AutonomyInput::Timeout);
    }

    fn arrive(&mut self, from: SiteId, to: SiteId, message: AgentMessage, travel: Span) {
        let Some(host) = self.hosts.get_mut(to.index()) else { return };
        match &mut host.state {
            HostState::Up => {
                if self.revived {
                    self.notice_restart(from, to);
                }
                let Some(from) = self.topology.peer(from) else { return };
                self.input(to, AutonomyInput::Heard { from, message, travel });
            }
            HostState::Hung(backlog) => {
                backlog.push_back((from, message, travel));
                if backlog.len() > MAX_BACKLOG {
                    backlog.pop_front();
                }
            }
            HostState::Down => self.stats.messages_lost += 1,
        }
    }

    /// A neighbour that began anew comes over a new connection, which says since
    /// when it is up.
    fn notice_restart(&mut self, from: SiteId, to: SiteId) {
        let life = |site: SiteId| self.hosts.get(site.index()).map_or(0, |host| host.life);
        let (own, now) = (life(to), life(from));
        if !self.topology.links(to).contains(&from) {
            return;
        }
        // A node in its first life has met all its neighbours in theirs.
        let before = self.heard.insert((to, own, from), now).or((own == 0).then_some(0));
        if let Some(peer) = self.topology.peer(from).filter(|_| before.is_some_and(|before| before < now)) {
            self.input(to, AutonomyInput::Restarted { peer });
        }
    }

    fn carry_out(&mut self, site: SiteId, output: AutonomyOutput) {
        match output {
            AutonomyOutput::Send { to, message } => self.send(site, to, message),
            AutonomyOutput::StartDelivery { user, layer, .. } => self.start(site, user, layer),
            AutonomyOutput::StopDelivery { user, layer, .. } => self.stop(site, user, layer),
            AutonomyOutput::TellViewer { user, notice } => self.tell(site, user, notice),
            AutonomyOutput::Fetch { title, layer, .. } => {
                // Bytes are not simulated: a layer is there after one message's time.
                let at = self.queue.now() + self.config.links.trans;
                let life = self.hosts.get(site.index()).map_or(0, |host| host.life);
                self.fetching.insert((site, life, title.clone(), layer));
                self.queue.plan(at, Happening::Stored { site, life, title, layer });
            }
            AutonomyOutput::Drop { title, layer } => {
                let life = self.hosts.get(site.index()).map_or(0, |host| host.life);
                self.fetching.remove(&(site, life, title, layer));
            }
            // No world has a store: its titles are placed.
            AutonomyOutput::Copy { .. } | AutonomyOutput::Evict { .. } => {}
            AutonomyOutput::Event(event) => {
                if self.config.keep_log {
                    self.log.push(Line { at: self.queue.now(), site, event });
                }
            }
        }
    }

    fn send(&mut self, from: SiteId, to: PeerId, message: AgentMessage) {
        if let AgentMessage::Discovery(agent) = &message
            && agent.wanted == EntryKind::NormalDual
            && !self.config.normals_search
            && self.is_normal(agent.id.user)
        {
            return;
        }
        if matches!(message, AgentMessage::Discovery(_)) && !self.config.backups {
            return;
        }
        self.stats.count(&message);
        let Some(to) = self.topology.site(to) else {
            self.stats.messages_lost += 1;
            return;
        };
        let agent = matches!(message, AgentMessage::Discovery(_) | AgentMessage::Search(_));
        if agent && self.config.agent_loss > 0.0 && self.rng.chance(self.config.agent_loss) {
            self.stats.agents_lost += 1;
            return;
        }
        let Some(travel) = self.links.passage(from, to, &mut self.rng) else {
            self.stats.messages_lost += 1;
            return;
        };
        let news = matches!(
            message,
            AgentMessage::FailureDetected(_) | AgentMessage::Returned(_) | AgentMessage::Standings(_)
        );
        let process = match message {
            AgentMessage::Signal | AgentMessage::Digest(_) => Span::ZERO,
            _ if news => self.config.process,
            _ => self.config.process_agents,
        };
        let at = self.queue.now() + travel + process;
        self.queue.plan(at, Happening::Message { from, to, message, travel });
    }

    fn start(&mut self, site: SiteId, user: UserId, layer: Layer) {
        let now = self.queue.now();
        let Some(viewer) = viewer_of(&mut self.viewers, user) else { return };
        if layer > Layer::BASE {
            viewer.enhanced.retain(|sent| *sent != (layer, site));
            viewer.enhanced.push((layer, site));
        } else if !viewer.senders.iter().any(|(sender, _)| *sender == site) {
            viewer.senders.push((site, now));
        }
        self.stir(user);
    }

    fn stop(&mut self, site: SiteId, user: UserId, layer: Layer) {
        let Some(viewer) = viewer_of(&mut self.viewers, user) else { return };
        if layer == Layer::BASE {
            viewer.senders.retain(|(sender, _)| *sender != site);
        } else {
            viewer.enhanced.retain(|sent| *sent != (layer, site));
        }
        self.stir(user);
    }

    fn stir(&mut self, user: UserId) {
        self.stirred.extend(usize::try_from(user.0));
    }

    fn tell(&mut self, site: SiteId, user: UserId, notice: ViewerNotice) {
        let Some(user) = usize::try_from(user.0).ok().filter(|user| *user < self.viewers.len()) else {
            return;
        };
        // Only the start of a delivery takes time: the paper has viewers at no
        // distance from their nodes, but counts T_process + T_trans for the first data.
        let wait = match notice {
            ViewerNotice::DeliveryStart { .. } | ViewerNotice::ServedBy { .. } => {
                self.config.process + self.config.links.trans
            }
            ViewerNotice::BackupIs { .. } | ViewerNotice::Refused { .. } => Span::ZERO,
        };
        self.queue.plan(self.queue.now() + wait, Happening::Notice { from: site, user, notice });
    }

    fn ask(&mut self, user: usize, site: SiteId) {
        let now = self.queue.now();
        let Some(viewer) = self.viewers.get_mut(user).filter(|viewer| !viewer.gone) else { return };
        let Some(title) = self.titles.get(viewer.wish.title).cloned() else { return };
        let started = viewer.come;
        if !viewer.come
            && let Some(every) = self.config.report_every
        {
            self.queue.plan(now + every, Happening::Report { user });
        }
        viewer.come = true;
        viewer.asked_at = now;
        viewer.refused = false;
        let request = UserRequest {
            user: Self::user_id(user),
            title,
            quality: viewer.wish.quality,
            sla: viewer.arrival.sla,
            started,
            epoch: viewer.epoch,
            position: now - viewer.arrival.at,
            remaining: viewer.arrival.ends_at - now,
            buffer: self.config.buffer,
        };
        self.input(site, AutonomyInput::Arrive { request });
    }

    fn leave(&mut self, user: usize) {
        let Some(viewer) = self.viewers.get_mut(user) else { return };
        viewer.gone = true;
        viewer.enhanced.clear();
        if let Some(site) = viewer.primary.take() {
            self.input(site, AutonomyInput::Depart { user: Self::user_id(user) });
        }
    }

    fn is_normal(&self, user: UserId) -> bool {
        let user = usize::try_from(user.0).unwrap_or(usize::MAX);
        self.viewers.get(user).is_some_and(|viewer| viewer.arrival.sla == Sla::Normal)
    }

    /// Whether this node really sends data to this viewer.
    fn delivers(&self, site: SiteId, user: usize) -> bool {
        let up = self.hosts.get(site.index()).is_some_and(super::Host::is_up);
        let sends = |viewer: &super::Viewer| viewer.senders.iter().any(|(sender, _)| *sender == site);
        up && self.viewers.get(user).is_some_and(sends)
    }

    fn notice(&mut self, from: SiteId, user: usize, notice: ViewerNotice) {
        let peer_site = |peer| self.topology.site(peer);
        match notice {
            ViewerNotice::BackupIs { node, .. } => {
                let site = peer_site(node);
                if let Some(viewer) = self.viewers.get_mut(user) {
                    viewer.backup = site;
                }
            }
            ViewerNotice::DeliveryStart { epoch, .. } => self.come_over(from, user, epoch),
            ViewerNotice::ServedBy { layer, node, epoch } => {
                if let Some(site) = peer_site(node).filter(|_| layer == Layer::BASE) {
                    self.served_by(user, site, epoch);
                }
            }
            ViewerNotice::Refused { layer, .. } => {
                if let Some(viewer) = self.viewers.get_mut(user).filter(|_| layer == Layer::BASE) {
                    viewer.refused = true;
                    self.stirred.insert(user);
                }
            }
        }
    }

    /// A node was found for the viewer. Nobody takes from two: it closes at the
    /// other one, as a player does.
    fn served_by(&mut self, user: usize, site: SiteId, epoch: u64) {
        let now = self.queue.now();
        let Some(viewer) = self.viewers.get_mut(user).filter(|viewer| !viewer.gone) else { return };
        let other = if epoch >= viewer.epoch {
            viewer.epoch = epoch;
            viewer.resume(now, site);
            self.stirred.insert(user);
            viewer.primary.replace(site)
        } else {
            Some(site)
        };
        if let Some(other) = other.filter(|other| {
            self.viewers.get(user).is_some_and(|viewer| viewer.primary != Some(*other))
                && self.delivers(*other, user)
        }) {
            self.input(other, AutonomyInput::Depart { user: Self::user_id(user) });
        }
    }

    /// A backup says that it serves the viewer from now on.
    fn come_over(&mut self, from: SiteId, user: usize, epoch: u64) {
        let now = self.queue.now();
        if !self.delivers(from, user) {
            return;
        }
        let Some(viewer) = self.viewers.get(user).filter(|viewer| !viewer.gone) else { return };
        let served = viewer.primary.filter(|primary| *primary != from && self.delivers(*primary, user));
        if served.is_some() {
            self.input(from, AutonomyInput::StillServed { user: Self::user_id(user) });
        } else if let Some(viewer) = self.viewers.get_mut(user).filter(|viewer| epoch >= viewer.epoch) {
            viewer.primary = Some(from);
            viewer.epoch = epoch;
            viewer.resume(now, from);
            self.stirred.insert(user);
        }
    }

    fn report(&mut self, user: usize) {
        let now = self.queue.now();
        let Some(every) = self.config.report_every else { return };
        let Some(viewer) = self.viewers.get(user).filter(|viewer| !viewer.gone) else { return };
        self.queue.plan(now + every, Happening::Report { user });
        if let Some(primary) = viewer.primary.filter(|primary| self.delivers(*primary, user)) {
            let position = now - viewer.arrival.at;
            let buffer = self.config.buffer;
            if let Some(viewer) = self.viewers.get_mut(user) {
                viewer.resume(now, primary);
            }
            let user = Self::user_id(user);
            self.input(primary, AutonomyInput::Position { user, position, buffer });
            return;
        }
        self.pull_if_patience_is_over(user);
    }

    /// A viewer without data looks whether it is time to pull again, and looks again
    /// later.
    fn look(&mut self, user: usize) {
        let lacks = |viewer: &&super::Viewer| !viewer.gone && viewer.outage().is_some();
        if self.viewers.get(user).as_ref().is_some_and(lacks) {
            self.pull_if_patience_is_over(user);
            self.plan_look(user);
        }
    }

    fn plan_look(&mut self, user: usize) {
        if let (None, Some(patience)) = (self.config.report_every, self.config.repull_after) {
            self.queue.plan(self.queue.now() + patience, Happening::Look { user });
        }
    }

    fn pull_if_patience_is_over(&mut self, user: usize) {
        let now = self.queue.now();
        let Some(patience) = self.config.repull_after else { return };
        let Some(viewer) = self.viewers.get(user) else { return };
        let since = viewer.outage().map_or(viewer.asked_at, |outage| outage.lost_at.max(viewer.asked_at));
        if now - since < patience {
            return;
        }
        let up = |site: &SiteId| self.hosts.get(site.index()).is_some_and(super::Host::is_up);
        let bases: Vec<SiteId> = self.topology.base().filter(up).collect();
        let Some(site) = self.rng.pick(&bases).copied() else { return };
        if let Some(viewer) = self.viewers.get_mut(user) {
            viewer.primary = None;
            viewer.asked_at = now;
            if let Some(outage) = viewer.outages.last_mut().filter(|outage| outage.resumed.is_none()) {
                outage.pulled = true;
            }
        }
        self.queue.plan(now, Happening::Ask { user, site });
    }

    fn fault(&mut self, fault: Fault) {
        match fault {
            Fault::Kill(site) => self.kill(site),
            Fault::Revive(site) => self.revive(site),
            Fault::Hang(site) => {
                if let Some(host) = self.hosts.get_mut(site.index()).filter(|host| host.is_up()) {
                    host.state = HostState::Hung(Backlog::new());
                    self.lose_viewers(site);
                }
            }
            Fault::Resume(site) => self.resume(site),
            Fault::Part(sites) => self.links.part(&sites),
            Fault::Slow(site, more) => self.links.slow_down(site, more),
            Fault::Deafen(from, to) => self.links.deafen(from, to),
            Fault::Heal => self.links.heal(),
        }
    }

    fn kill(&mut self, site: SiteId) {
        let Some(host) = self.hosts.get_mut(site.index()) else { return };
        host.state = HostState::Down;
        host.machine = None;
        self.lose_viewers(site);
        for (user, viewer) in self.viewers.iter_mut().enumerate() {
            let before = viewer.senders.len() + viewer.enhanced.len();
            viewer.senders.retain(|(sender, _)| *sender != site);
            viewer.enhanced.retain(|(_, sender)| *sender != site);
            if viewer.senders.len() + viewer.enhanced.len() < before {
                self.stirred.insert(user);
            }
        }
    }

    fn revive(&mut self, site: SiteId) {
        let life = self.hosts.get(site.index()).map_or(0, |host| host.life + 1);
        let machine = self.machine(site, life);
        let Some(host) = self.hosts.get_mut(site.index()) else { return };
        if !matches!(host.state, HostState::Down) {
            return;
        }
        *host = super::Host { machine, state: HostState::Up, wake: None, life };
        self.revived = true;
        self.introduce(site);
    }

    fn resume(&mut self, site: SiteId) {
        let Some(host) = self.hosts.get_mut(site.index()) else { return };
        let HostState::Hung(backlog) = &mut host.state else { return };
        let backlog = std::mem::take(backlog);
        host.state = HostState::Up;
        host.wake = None;
        for (from, message, travel) in backlog {
            self.arrive(from, site, message, travel);
        }
        self.input(site, AutonomyInput::Timeout);
    }

    /// Everybody who takes data from this node has lost it.
    fn lose_viewers(&mut self, site: SiteId) {
        let now = self.queue.now();
        let lost = |viewer: &super::Viewer| viewer.primary == Some(site) && !viewer.gone;
        let users = 0..self.viewers.len();
        for user in users.filter(|user| self.viewers.get(*user).is_some_and(lost)).collect::<Vec<_>>() {
            if let Some(viewer) = self.viewers.get_mut(user) {
                viewer.lose(now, site);
            }
            self.stirred.insert(user);
            self.plan_look(user);
        }
    }
}

fn viewer_of(viewers: &mut [super::Viewer], user: UserId) -> Option<&mut super::Viewer> {
    usize::try_from(user.0).ok().and_then(|user| viewers.get_mut(user))
}
