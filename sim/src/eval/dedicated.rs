//! The paper's "without": a dedicated standby slot for **every** user, chosen
//! once at arrival.
//!
//! The paper does not describe its baseline. That it is safe up to 800 users
//! with no share of VIPs attached fits 1+1 for everybody, which is used up where
//! twice the users are 1800 slots; a network that only reacts to failures would
//! find vacancies at loads where the published curve is below 40 %, and one
//! without backups would be at nothing everywhere. The rules:
//!
//! - A primary goes before any standby, a VIP's standby before a normal one.
//! - No slot is shared, and what was displaced is not searched again.
//!
//! It is not a setting of the machines of `protocol`, since nothing of them
//! would be left but the counting of slots. It is a small policy of its own,
//! node by node and message by message: the user's node asks every Base node
//! for its free slots, takes the nearest, and is told yes or no.

use super::continuity::{Outcome, Plan};
use super::tally::{Continuity, FailureTally};
use crate::link::{LinkModel, Links};
use crate::queue::Queue;
use crate::rng::Rng;
use crate::topology::{SiteId, Topology, TopologyError};
use crate::workload::{Arrival, Sla};
use crate::world::WorldConfig;
use media::{Span, Time};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A user, as standbys know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ward {
    primary: usize,
    sla: Sla,
    ends_at: Time,
}

/// A Base node.
#[derive(Clone, Debug, Default)]
struct Node {
    served: BTreeMap<u32, Arrival>,
    wards: BTreeMap<u32, Ward>,
    /// Offers that came for the user whose standby is being looked for.
    offers: BTreeMap<u32, Vec<Offer>>,
}

/// What a node could do for a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Offer {
    node: usize,
    free: usize,
    normals: usize,
}

#[derive(Clone, Copy, Debug)]
enum Word {
    /// "Serve this user", with the first node asked and how many were.
    Serve(Arrival, usize),
    /// "What could you do?"
    Ask(u32),
    Offered(u32, Offer),
    /// "Stand by for this user", in a normal user's place if need be.
    Take(u32, Ward),
    Denied(u32),
    /// A node is dead.
    Dead(usize),
}

#[derive(Clone, Debug)]
struct Network {
    capacity: usize,
    steps: Vec<Vec<u32>>,
    nodes: Vec<Node>,
    links: Links,
    queue: Queue<(usize, usize, Word)>,
    /// Who plays on after a failure, and when data came.
    resumed: Vec<(u32, Time)>,
    unserved: usize,
    messages: u64,
}

/// Runs the baseline of a plan.
pub fn run(plan: &Plan) -> Result<Outcome, TopologyError> {
    let (topology, _, arrivals) = plan.draw()?;
    let config = WorldConfig::paper();
    let mut network = Network::new(&topology, &config);
    for arrival in &arrivals {
        let target = arrival.target.index();
        network.queue.plan(arrival.at, (target, target, Word::Serve(*arrival, 0)));
    }
    network.settle();
    Ok(network.fail_each(plan.seed, &config))
}

impl Network {
    fn new(topology: &Topology, config: &WorldConfig) -> Self {
        let steps = topology.base().map(|site| {
            topology.base_steps(site).into_iter().map(|steps| steps.unwrap_or(u32::MAX)).collect()
        });
        Self {
            capacity: usize::try_from(config.autonomy.capacity).unwrap_or(usize::MAX),
            steps: steps.collect(),
            nodes: vec![Node::default(); topology.base_count()],
            links: Links::new(topology, LinkModel { loss: 0.0, ..config.links }),
            queue: Queue::default(),
            resumed: Vec::new(),
            unserved: 0,
            messages: 0,
        }
    }

    fn settle(&mut self) {
        while let Some((from, to, word)) = self.queue.take_until(Time::from_nanos(u64::MAX)) {
            self.hear(from, to, word);
        }
    }

    fn say(&mut self, from: usize, to: usize, word: Word) {
        self.messages += 1;
        let at = self.queue.now() + self.links.delay(SiteId::at(from), SiteId::at(to));
        self.queue.plan(at, (from, to, word));
    }

    fn steps(&self, from: usize, to: usize) -> u32 {
        self.steps.get(from).and_then(|steps| steps.get(to)).copied().unwrap_or(u32::MAX)
    }

    fn hear(&mut self, from: usize, at: usize, word: Word) {
        match word {
            Word::Serve(arrival, asked) => self.serve(at, arrival, asked),
            Word::Ask(user) => {
                let Some(node) = self.nodes.get(at) else { return };
                let normals = node.wards.values().filter(|ward| ward.sla == Sla::Normal).count();
                let free = self.capacity.saturating_sub(node.served.len() + node.wards.len());
                self.say(at, from, Word::Offered(user, Offer { node: at, free, normals }));
            }
            Word::Offered(user, offer) => {
                let others = self.nodes.len() - 1;
                let Some(node) = self.nodes.get_mut(at) else { return };
                let offers = node.offers.entry(user).or_default();
                offers.push(offer);
                if offers.len() >= others {
                    self.choose(at, user);
                }
            }
            Word::Take(user, ward) => self.stand_by(at, user, ward),
            Word::Denied(user) => self.choose(at, user),
            Word::Dead(dead) => self.take_over(at, dead),
        }
    }

    /// A user comes; a full node sends it on to the next nearest one.
    fn serve(&mut self, at: usize, arrival: Arrival, asked: usize) {
        let Some(node) = self.nodes.get_mut(at) else { return };
        if node.served.len() >= self.capacity {
            let first = arrival.target.index();
            let mut order: Vec<usize> = (0..self.nodes.len()).collect();
            order.sort_by_key(|other| (self.steps(first, *other), *other));
            match order.get(asked + 1) {
                Some(next) => self.say(at, *next, Word::Serve(arrival, asked + 1)),
                None => self.unserved += 1,
            }
            return;
        }
        if node.served.len() + node.wards.len() >= self.capacity {
            // A primary goes before any standby; nobody searches again for it.
            let first = node.wards.iter().min_by_key(|(_, ward)| (ward.sla, ward.ends_at));
            if let Some(user) = first.map(|(user, _)| *user) {
                node.wards.remove(&user);
            }
        }
        node.served.insert(arrival.user, arrival);
        for other in (0..self.nodes.len()).filter(|other| *other != at) {
            self.say(at, other, Word::Ask(arrival.user));
        }
    }

    /// Takes the nearest of the nodes that still may be asked.
    fn choose(&mut self, at: usize, user: u32) {
        let Some(node) = self.nodes.get(at) else { return };
        let (Some(arrival), Some(offers)) = (node.served.get(&user), node.offers.get(&user)) else { return };
        let key = |offer: &&Offer| (self.steps(at, offer.node), Reverse(offer.free), offer.node);
        let free = offers.iter().filter(|offer| offer.free >= 1).min_by_key(key);
        let instead = || offers.iter().filter(|offer| offer.normals >= 1).min_by_key(key);
        let best = free.or_else(|| if arrival.sla == Sla::Vip { instead() } else { None }).copied();
        let ward = Ward { primary: at, sla: arrival.sla, ends_at: arrival.ends_at };
        if let Some(best) = best {
            if let Some(offers) = self.nodes.get_mut(at).and_then(|node| node.offers.get_mut(&user)) {
                offers.retain(|offer| offer.node != best.node);
            }
            self.say(at, best.node, Word::Take(user, ward));
        }
    }

    fn stand_by(&mut self, at: usize, user: u32, ward: Ward) {
        let capacity = self.capacity;
        let Some(node) = self.nodes.get_mut(at) else { return };
        if node.served.len() + node.wards.len() >= capacity && ward.sla == Sla::Vip {
            let normals = node.wards.iter().filter(|(_, ward)| ward.sla == Sla::Normal);
            if let Some(leaves) = normals.min_by_key(|(_, ward)| ward.ends_at).map(|(user, _)| *user) {
                node.wards.remove(&leaves);
            }
        }
        if node.served.len() + node.wards.len() < capacity {
            node.wards.insert(user, ward);
        } else {
            self.say(at, ward.primary, Word::Denied(user));
        }
    }

    fn take_over(&mut self, at: usize, dead: usize) {
        let now = self.queue.now();
        let Some(node) = self.nodes.get(at) else { return };
        let wards = node.wards.iter().filter(|(_, ward)| ward.primary == dead);
        self.resumed.extend(wards.map(|(user, _)| (*user, now)));
    }

    fn fail_each(mut self, seed: u64, config: &WorldConfig) -> Outcome {
        let served = |sla| {
            let users = self.nodes.iter().flat_map(|node| node.served.values());
            users.filter(|arrival| arrival.sla == sla).count()
        };
        let mut outcome = Outcome {
            continuity: Continuity {
                failures: Vec::new(),
                normals: served(Sla::Normal),
                vips: served(Sla::Vip),
                unserved: self.unserved,
            },
            ..Outcome::default()
        };
        let backed = self.nodes.iter().flat_map(|node| node.wards.values());
        let backed = backed.filter(|ward| ward.sla == Sla::Vip).count();
        outcome.vip_backups = [backed, 0, outcome.continuity.vips.saturating_sub(backed)];
        outcome.stats.words = self.messages;
        let mut rng = Rng::stream(seed, 3);
        for dead in 0..self.nodes.len() {
            let silent = rng.below_wide(config.autonomy.signal_every.as_nanos());
            let tally = self.fail(dead, Span::from_nanos(silent), config, &mut outcome.recoveries);
            outcome.continuity.failures.push(tally);
        }
        outcome.happened = self.queue.taken();
        outcome
    }

    /// The news of a death goes from link to link, as with the machines.
    fn fail(
        &mut self,
        dead: usize,
        silent: Span,
        config: &WorldConfig,
        recoveries: &mut Vec<Span>,
    ) -> FailureTally {
        let died = self.queue.now();
        let known = died + config.autonomy.dead_after.saturating_sub(silent);
        let (trans, process) = (config.links.trans.as_nanos().max(1), config.process);
        for other in (0..self.nodes.len()).filter(|other| *other != dead) {
            let travel = self.links.delay(SiteId::at(dead), SiteId::at(other));
            // The first link is that of the neighbour who noticed.
            let hops = (travel.as_nanos() / trans).saturating_sub(1);
            let news = travel.saturating_sub(config.links.trans) + process.saturating_mul(hops);
            self.queue.plan(known + news + process + config.links.trans, (dead, other, Word::Dead(dead)));
        }
        self.resumed.clear();
        self.settle();
        let mut tally = FailureTally::default();
        let lost = self.nodes.get(dead).map(|node| node.served.clone()).unwrap_or_default();
        for (user, arrival) in lost {
            let resumed = self.resumed.iter().find(|(other, _)| *other == user);
            let took = resumed.map(|(_, at)| *at - died).filter(|took| *took <= config.buffer);
            recoveries.extend(took);
            let (all, played_on) = match arrival.sla {
                Sla::Normal => (&mut tally.normals, &mut tally.normals_nonstop),
                Sla::Vip => (&mut tally.vips, &mut tally.vips_nonstop),
            };
            *all += 1;
            *played_on += usize::from(took.is_some());
        }
        tally
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::state_level::{Scheme, Sizes, State};

    #[test]
    fn node_by_node_and_state_by_state_agree() {
        for (users, vips, seed) in [(700, 200, 1), (900, 200, 2), (1400, 200, 3), (1300, 600, 4)] {
            let plan = Plan::paper(users, vips, seed);
            let (topology, _, arrivals) = plan.draw().unwrap();
            let state = State::build(&topology, Sizes::PAPER, Scheme::BASELINE, &arrivals).continuity();
            let ours = run(&plan).unwrap();
            assert_eq!(ours.continuity, state, "{users} users, {vips} per mille");
            assert!(ours.recoveries.iter().all(|took| *took <= Span::from_secs(15)));
        }
    }
}
