//! Viewers and the network: who enters, who loses its node, who stops, and what is
//! counted of them.

use super::audience::LAYERS;
use super::measures::sum;
use super::model::{Happens, Model, client_id};
use super::seat::{AFTERMATH, BUFFER, Freeze};
use super::{Measures, Plan};
use media::{Layer, Time, TitleClass};
use protocol::node::autonomy::Sla;
use protocol::proxy::Insistence;
use protocol::proxy::cooperation::{Beta, Input};

impl Model {
    /// A viewer found a node, lost one, or was refused.
    pub(super) fn stirred(&mut self, now: Time, user: usize) {
        let (Some(viewer), Some(seat)) = (self.world.viewers().get(user), self.seats.get(user)) else {
            return;
        };
        let (proxy, title) = (seat.proxy, seat.title);
        let waits = !seat.inside && !viewer.gone && seat.is_starting();
        if waits && viewer.refused && viewer.outages.is_empty() {
            return self.turned_away(now, user);
        }
        if waits && viewer.gets(Layer::BASE) {
            self.enter(now, user);
        }
        self.insist(now, user);
        self.shake(now, user);
        self.look_at_parked(now, proxy, title);
    }

    fn turned_away(&mut self, now: Time, user: usize) {
        let came = self.world.viewers().get(user).map(|viewer| viewer.arrival.at);
        if came.is_some_and(|at| self.window.has(at))
            && let Some(count) = self.class_of(user).and_then(|class| self.measures.refused.get_mut(class))
        {
            *count += 1;
        }
        self.world.depart(user, now);
    }

    fn class_of(&self, user: usize) -> Option<usize> {
        let class = self.titles.get(self.seats.get(user)?.title)?.facts.class;
        TitleClass::ALL.into_iter().position(|other| other == class)
    }

    fn beta(&self, user: usize) -> Option<Beta> {
        let seat = self.seats.get(user)?;
        let sla = if seat.vip { Sla::Vip } else { Sla::Normal };
        Some(if seat.fails_over { Beta(0) } else { Insistence::default().of(sla, seat.quality) })
    }

    fn enter(&mut self, now: Time, user: usize) {
        let Some(seat) = self.seats.get_mut(user) else { return };
        seat.inside = true;
        let (proxy, title, (rate, delay)) = (seat.proxy, seat.title, self.wires.viewer);
        if let Some(front) = self.fronts.get_mut(proxy) {
            front.enter(title, user);
        }
        let (Some(beta), Some(title)) = (self.beta(user), self.titles.get(title)) else { return };
        let (client, title) = (client_id(user), title.facts.title.clone());
        self.tell(now, proxy, Input::Arrived { client, title, beta, delay, rate }, None);
        self.queue.plan(now + delay, Happens::Asks { user });
    }

    /// Whoever lacks a node for a layer that it had, or wants, takes what there is.
    fn insist(&mut self, now: Time, user: usize) {
        let Some(viewer) = self.world.viewers().get(user) else { return };
        let Some(seat) = self.seats.get_mut(user).filter(|seat| seat.inside) else { return };
        let mut layers = Layer::first(seat.quality.layers().min(LAYERS));
        let fails_over = !layers.all(|layer| viewer.gets(layer));
        if seat.fails_over != fails_over {
            seat.fails_over = fails_over;
            let (proxy, client) = (seat.proxy, client_id(user));
            if let Some(beta) = self.beta(user) {
                self.tell(now, proxy, Input::Insists { client, beta }, None);
            }
        }
    }

    /// Counts those who lose their node while they watch.
    fn shake(&mut self, now: Time, user: usize) {
        let outage = self.world.viewers().get(user).and_then(crate::world::Viewer::outage);
        let Some(lost_at) = outage.map(|outage| outage.lost_at) else { return };
        let Some(seat) = self.seats.get_mut(user).filter(|seat| seat.plays()) else { return };
        if lost_at == now && self.window.has(now) {
            seat.shake(now);
            self.lost.push((user, now));
            let count = if seat.vip { &mut self.measures.vips } else { &mut self.measures.normals };
            *count += 1;
        }
    }

    /// Playback waited, or still does.
    pub(super) fn froze(&mut self, user: usize, freeze: Freeze) {
        let seconds = self.window.overlap(freeze);
        self.measures.frozen += seconds;
        if seconds <= 0.0 {
            return;
        }
        let Some(seat) = self.seats.get_mut(user) else { return };
        if seat.shaken_until.is_some_and(|until| freeze.from < until) {
            seat.shaken_until = None;
            let stopped =
                if seat.vip { &mut self.measures.vips_stopped } else { &mut self.measures.normals_stopped };
            *stopped += 1;
        }
    }

    /// It has everything; what it has left of it, it plays without the proxy.
    pub(super) fn leave(&mut self, now: Time, user: usize) {
        let Some(seat) = self.seats.get_mut(user) else { return };
        seat.inside = false;
        let (proxy, title, due) = (seat.proxy, seat.title, seat.due().unwrap_or(now));
        if let Some(front) = self.fronts.get_mut(proxy) {
            front.leave(title, user);
        }
        self.tell(now, proxy, Input::Left { client: client_id(user) }, None);
        self.world.depart(user, due.max(now));
    }

    /// Messages, and bytes from nodes and from proxies, so far.
    pub(super) fn counts(&self) -> [u64; 3] {
        let of = |value: fn(&protocol::proxy::cooperation::Counts) -> u64| {
            self.fronts.iter().map(|front| value(&front.mind.counts())).sum()
        };
        let said: u64 = self.fronts.iter().map(|front| front.messages).sum();
        let messages = self.world.stats().without_signals() + said;
        [messages, of(|counts| counts.from_origin), of(|counts| counts.from_peers)]
    }

    pub(super) fn finish(mut self, plan: &Plan, before: [u64; 3]) -> Measures {
        for user in 0..self.seats.len() {
            self.close(user);
        }
        for (user, at) in std::mem::take(&mut self.lost) {
            self.settle(user, at);
        }
        let [messages, from_nodes, from_peers] = self.counts();
        let [messages_before, nodes_before, peers_before] = before;
        let whole = self.titles.iter().map(|title| title.layer_size().0 * u64::from(LAYERS)).sum::<u64>();
        let nodes = self.world.topology().len().saturating_sub(1);
        Measures {
            from_nodes: from_nodes - nodes_before,
            from_peers: from_peers - peers_before,
            messages: messages - messages_before,
            cached: sum(self.fronts.iter().map(|front| front.peak)),
            stored_whole: whole * u64::try_from(nodes).unwrap_or(0),
            minutes: plan.counted.as_secs_f64() / 60.0,
            happened: self.world.happened() + self.queue.taken(),
            ..self.measures
        }
    }

    /// What became of somebody who lost its node then.
    fn settle(&mut self, user: usize, at: Time) {
        let outages = self.world.viewers().get(user).map_or(&[][..], |viewer| &viewer.outages);
        let outage = outages.iter().find(|outage| outage.lost_at == at);
        let back = outage.and_then(|outage| outage.resumed).map(|(again, _)| again - at);
        let in_time = u64::from(back.is_some_and(|away| away <= BUFFER));
        if self.seats.get(user).is_some_and(|seat| seat.vip) {
            self.measures.vips_served += in_time;
        } else {
            self.measures.normals_served += in_time;
            self.measures.normals_away += back.unwrap_or(AFTERMATH).min(AFTERMATH).as_secs_f64();
        }
    }

    /// What is left to be counted of a viewer when the run is over.
    fn close(&mut self, user: usize) {
        let Some((at, class)) =
            self.world.viewers().get(user).map(|viewer| viewer.arrival.at).zip(self.class_of(user))
        else {
            return;
        };
        if self.window.has(at)
            && let Some(count) = self.measures.asked.get_mut(class)
        {
            *count += 1;
        }
        let Some(seat) = self.seats.get(user) else { return };
        let (Some(from), Some(due)) = (seat.shown_from(), seat.due()) else { return };
        let to = if seat.inside { self.window.to } else { due };
        self.measures.watched += self.window.overlap(Freeze { from, to });
        if seat.inside {
            // It still waits for what should be there.
            self.froze(user, Freeze { from: due, to: self.window.to });
        }
    }
}
