//! What goes wrong, and when: faults become a list of deeds, and each deed finds whom
//! it is about at its moment.

use super::TestbedError;
use super::audience::Board;
use super::city::City;
use super::report::{FaultSeen, Struck};
use super::scenario::{Fault, Scenario};
use super::whom::Whom;
use crate::links::{LinkId, LinkShape, Way};
use media::{Layer, Span};
use protocol::PeerId;
use sim::{PipeShape, Rng};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// What is done.
#[derive(Clone, Debug)]
enum What {
    Kill(Whom),
    Start(Whom),
    Stop(Whom),
    Continue(Whom),
    Part(Vec<Whom>),
    /// The lines of these become like this fault says.
    Slow(Whom, Box<Fault>),
    /// What this deed, by its number, did to lines is undone.
    Heal(usize),
    /// Whom this deed killed or stopped runs again.
    Revive(usize),
}

/// Something to be done at a time.
#[derive(Clone, Debug)]
pub(super) struct Deed {
    pub(super) at: Span,
    number: usize,
    what: What,
}

impl Deed {
    /// Whom it kills, if that is what it does.
    pub(super) const fn kills(&self) -> Option<&Whom> {
        match &self.what {
            What::Kill(whom) => Some(whom),
            _ => None,
        }
    }
}

/// All deeds of a scenario, in order.
pub(super) fn plan(scenario: &Scenario, levels: &dyn Fn(Layer) -> Vec<PeerId>, seed: u64) -> Vec<Deed> {
    let mut deeds = Vec::new();
    for (number, fault) in scenario.faults.iter().enumerate() {
        let fault = fault.get_ref();
        let mut rng = Rng::stream(seed, 2_000 + u64::try_from(number).unwrap_or(0));
        let at = match (fault.at, fault.between) {
            (Some(at), _) => at.0,
            (None, Some((from, until))) => {
                from.0 + Span::from_nanos(rng.below_wide(until.0.saturating_sub(from.0).as_nanos()))
            }
            (None, None) => Span::ZERO,
        };
        let over = fault.over.map_or(Span::ZERO, |over| over.0);
        for (what, after) in steps(fault, over, levels, &mut rng) {
            let of = deeds.len();
            let undone = undoing(&what, of);
            deeds.push(Deed { at: at + after, number: of, what });
            if let Some((undone, lasting)) = undone.zip(fault.lasting) {
                deeds.push(Deed { at: at + after + lasting.0, number: of + 1, what: undone });
            }
        }
    }
    deeds.sort_by_key(|deed| deed.at);
    deeds
}

fn undoing(what: &What, of: usize) -> Option<What> {
    match what {
        What::Kill(_) | What::Stop(_) => Some(What::Revive(of)),
        What::Part(_) | What::Slow(..) => Some(What::Heal(of)),
        What::Start(_) | What::Continue(_) | What::Heal(_) | What::Revive(_) => None,
    }
}

/// What makes a deed of whom it is about.
type Verb = fn(Whom) -> What;

/// A fault about several becomes one for each, spread over a time.
fn steps(
    fault: &Fault,
    over: Span,
    levels: &dyn Fn(Layer) -> Vec<PeerId>,
    rng: &mut Rng,
) -> Vec<(What, Span)> {
    let verbs: [(&Option<Whom>, Verb); 4] = [
        (&fault.kill, What::Kill),
        (&fault.start, What::Start),
        (&fault.stop, What::Stop),
        (&fault.go_on, What::Continue),
    ];
    if let Some(group) = &fault.part {
        return vec![(What::Part(group.clone()), Span::ZERO)];
    }
    if let Some(whom) = &fault.slow {
        return vec![(What::Slow(whom.clone(), Box::new(fault.clone())), Span::ZERO)];
    }
    let Some((whom, verb)) = verbs.into_iter().find_map(|(whom, verb)| Some((whom.as_ref()?, verb))) else {
        return Vec::new();
    };
    let several = match whom {
        Whom::Part(parts, layer) => {
            let mut all = levels(*layer);
            rng.shuffle(&mut all);
            all.truncate(all.len().div_ceil(usize::from((*parts).max(1))));
            all
        }
        Whom::All(layer) if over > Span::ZERO => levels(*layer),
        other => return vec![(verb(other.clone()), Span::ZERO)],
    };
    let gaps = u64::try_from(several.len().saturating_sub(1)).unwrap_or(0).max(1);
    let step = Span::from_nanos(over.as_nanos() / gaps);
    (0..).zip(several).map(|(n, peer)| (verb(Whom::Named(peer)), step.saturating_mul(n))).collect()
}

/// What was changed on lines, so that it can be undone.
#[derive(Debug, Default)]
struct Changed {
    shapes: Vec<(LinkId, LinkShape)>,
    routes: Vec<(PeerId, IpAddr, LinkId)>,
}

/// Does the deeds of one run.
pub(super) struct Hand {
    rng: Rng,
    down: BTreeSet<PeerId>,
    hung: BTreeSet<PeerId>,
    did: BTreeMap<usize, Vec<PeerId>>,
    changed: BTreeMap<usize, Changed>,
}

impl Hand {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            rng: Rng::stream(seed, 3_000),
            down: BTreeSet::new(),
            hung: BTreeSet::new(),
            did: BTreeMap::new(),
            changed: BTreeMap::new(),
        }
    }

    /// Does it, and says what was done to whom, and who was served by them.
    pub(super) async fn act(
        &mut self,
        deed: &Deed,
        city: &mut City,
        board: &Board,
        at_ms: u64,
    ) -> Result<FaultSeen, TestbedError> {
        let whom = self.whom(deed, city, board).await?;
        let struck = struck(&whom, board);
        let says = match &deed.what {
            What::Kill(_) => {
                for peer in &whom {
                    city.process(*peer)?.kill().await?;
                    self.down.insert(*peer);
                }
                "killed"
            }
            What::Stop(_) => {
                for peer in &whom {
                    city.process(*peer)?.hang().await?;
                    self.hung.insert(*peer);
                }
                "hung"
            }
            What::Start(_) | What::Continue(_) | What::Revive(_) => {
                for peer in &whom {
                    if self.hung.remove(peer) {
                        city.process(*peer)?.go_on().await?;
                    } else if self.down.remove(peer) {
                        city.process(*peer)?.start().await?;
                    }
                }
                "runs again"
            }
            What::Part(_) => {
                let lost = PipeShape { loss: 1.0, ..PipeShape::OPEN };
                self.detour(deed.number, city, &whom, &|_| LinkShape::both(lost), true)?;
                "cut off"
            }
            What::Slow(to, fault) => {
                let shape = |was: LinkShape| LinkShape {
                    there: slowed(was.there, fault),
                    back: slowed(was.back, fault),
                };
                if *to == Whom::Viewers {
                    self.slow_viewers(deed.number, city, &shape);
                } else {
                    self.detour(deed.number, city, &whom, &shape, false)?;
                }
                "slow lines"
            }
            What::Heal(of) => {
                self.heal(*of, city)?;
                "lines are well again"
            }
        };
        self.did.insert(deed.number, whom.clone());
        let nodes: Vec<String> = whom.iter().map(ToString::to_string).collect();
        Ok(FaultSeen { at_ms, did: says.into(), nodes, struck })
    }

    /// Whom a deed is about now.
    async fn whom(&mut self, deed: &Deed, city: &City, board: &Board) -> Result<Vec<PeerId>, TestbedError> {
        Ok(match &deed.what {
            What::Kill(whom) | What::Start(whom) | What::Stop(whom) | What::Continue(whom) => {
                self.find(whom, city, board).await?
            }
            What::Slow(Whom::Viewers, _) => Vec::new(),
            What::Slow(whom, _) => self.find(whom, city, board).await?,
            What::Part(group) => {
                let mut all = Vec::new();
                for whom in group {
                    all.extend(self.find(whom, city, board).await?);
                }
                all
            }
            What::Heal(of) | What::Revive(of) => self.did.get(of).cloned().unwrap_or_default(),
        })
    }

    async fn find(&mut self, whom: &Whom, city: &City, board: &Board) -> Result<Vec<PeerId>, TestbedError> {
        let running = |layer: Layer| -> Vec<PeerId> {
            let all = city.level(layer).into_iter();
            all.filter(|peer| !self.down.contains(peer) && !self.hung.contains(peer)).collect()
        };
        Ok(match whom {
            Whom::Named(peer) => vec![*peer],
            Whom::All(layer) | Whom::Part(_, layer) => running(*layer),
            Whom::Dead => self.down.union(&self.hung).copied().collect(),
            Whom::Viewers => Vec::new(),
            Whom::Any(layer) => {
                let all = running(*layer);
                self.rng.pick(&all).copied().into_iter().collect()
            }
            Whom::Serving(Layer::BASE) => {
                let live = board.now();
                let serves = |peer: &PeerId| {
                    live.iter()
                        .filter(|live| !live.ended && live.base.as_deref() == Some(peer.as_str()))
                        .count()
                };
                most(running(Layer::BASE), serves)
            }
            Whom::Serving(layer) => {
                let mut counts = BTreeMap::new();
                for peer in running(*layer) {
                    let status = city.stage.inquiry(peer).await?.status().await?;
                    counts.insert(peer, status.slots.enhancements);
                }
                most(counts.keys().copied().collect(), |peer| {
                    counts.get(peer).and_then(|count| usize::try_from(*count).ok()).unwrap_or(0)
                })
            }
        })
    }

    /// All lines of these nodes, or only those that leave their circle, get another
    /// shape: links with other members change theirs, viewers and proxies take
    /// another way.
    fn detour(
        &mut self,
        number: usize,
        city: &City,
        whom: &[PeerId],
        shape: &dyn Fn(LinkShape) -> LinkShape,
        leaving: bool,
    ) -> Result<(), TestbedError> {
        if city.real_lines {
            let names: Vec<String> = whom.iter().map(ToString::to_string).collect();
            return Err(TestbedError::RealLines(names.join(", ")));
        }
        let changed = self.changed.entry(number).or_default();
        for ((one, other), (link, was)) in &city.pairs {
            let inside = [one, other].map(|peer| whom.contains(peer));
            if inside == [true, false] || inside == [false, true] || (inside == [true, true] && !leaving) {
                city.links.reshape(*link, shape(*was));
                changed.shapes.push((*link, *was));
            }
        }
        let viewers = city.viewer_lines.iter().enumerate();
        let viewers = viewers.map(|(n, (link, was))| (super::city::home(true, n), *link, *was, None));
        let proxies = city.proxy_lines.iter().filter_map(|(peer, (link, was))| {
            city.member(*peer).ok().map(|member| (member.home, *link, *was, Some(*peer)))
        });
        let outside: Vec<_> = viewers.chain(proxies).collect();
        for member in &city.members {
            for (home, link, was, peer) in &outside {
                let far_ends =
                    [Some(member.peer), *peer].map(|end| end.is_some_and(|end| whom.contains(&end)));
                let crosses = far_ends[0] != far_ends[1] || (far_ends[0] && !leaving);
                let to_node = peer.is_none() || !member.proxy;
                let Some(door) = member.door.filter(|_| crosses && to_node) else { continue };
                let other = city.links.link(shape(*was));
                city.links.route(door, *home, other, Way::Along);
                changed.routes.push((member.peer, *home, *link));
            }
        }
        Ok(())
    }

    fn slow_viewers(&mut self, number: usize, city: &City, shape: &dyn Fn(LinkShape) -> LinkShape) {
        let changed = self.changed.entry(number).or_default();
        for (link, was) in &city.viewer_lines {
            city.links.reshape(*link, shape(*was));
            changed.shapes.push((*link, *was));
        }
    }

    fn heal(&mut self, of: usize, city: &City) -> Result<(), TestbedError> {
        let changed = self.changed.remove(&of).unwrap_or_default();
        for (link, was) in changed.shapes {
            city.links.reshape(link, was);
        }
        for (peer, home, link) in changed.routes {
            if let Some(door) = city.member(peer)?.door {
                city.links.route(door, home, link, Way::Along);
            }
        }
        Ok(())
    }

    /// Lets everybody go on that hangs, so that it can end.
    pub(super) async fn release(&mut self, city: &mut City) {
        for peer in std::mem::take(&mut self.hung) {
            if let Ok(process) = city.process(peer) {
                // If it is gone there is nothing to release.
                let _ = process.go_on().await;
            }
        }
    }
}

/// The first of those with the highest count, if it is not zero; else the first.
fn most(all: Vec<PeerId>, count: impl Fn(&PeerId) -> usize) -> Vec<PeerId> {
    let best = all.iter().map(&count).max().unwrap_or(0);
    all.into_iter().find(|peer| count(peer) == best).into_iter().collect()
}

fn slowed(was: PipeShape, fault: &Fault) -> PipeShape {
    let queue =
        if fault.rate.is_some() && was.queue == Span::MAX { Span::from_millis(300) } else { was.queue };
    PipeShape {
        rate: fault.rate.map(|rate| rate.0).or(was.rate),
        delay: fault.delay.map_or(was.delay, |delay| delay.0),
        loss: fault.loss.map_or(was.loss, |loss| loss.0),
        queue,
        ..was
    }
}

/// Those whom these nodes served Base to, with what lay in their buffers.
fn struck(whom: &[PeerId], board: &Board) -> Vec<Struck> {
    let all = board.now();
    let served = (1..).zip(&all).filter(|(_, live)| {
        let base = live.base.as_deref().unwrap_or_default();
        !live.ended && live.first.is_some() && whom.iter().any(|peer| peer.as_str() == base)
    });
    served
        .map(|(number, live): (usize, _)| Struck {
            viewer: format!("viewer-{number}"),
            buffer_ms: live.buffer_ms,
        })
        .collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]
mod tests {
    use super::super::read::parse;
    use super::*;
    use std::path::Path;

    fn deeds(faults: &str, seed: u64) -> Vec<Deed> {
        let text =
            format!("about = \"x\"\nlasts = \"60 s\"\n[nodes]\nbase = 9\n[[viewers]]\ncount = 1\n{faults}");
        let scenario = parse("x", &text, Path::new(".")).unwrap().scenario;
        let level = |layer: Layer| {
            let many = if layer == Layer::BASE { 9 } else { 2 };
            (1..=many).map(|n| format!("{layer}-{n}").parse().unwrap()).collect()
        };
        plan(&scenario, &level, seed)
    }

    #[test]
    fn a_third_of_nine_dies_one_after_the_other() {
        let text = "[[fault]]\nat = \"8 s\"\nover = \"50 s\"\nkill = \"a third of base\"\n";
        let of = |seed| deeds(text, seed);
        assert_eq!(of(1).iter().map(|deed| deed.at.as_millis()).collect::<Vec<_>>(), [8_000, 33_000, 58_000]);
        let names = |seed| of(seed).iter().map(|deed| format!("{:?}", deed.what)).collect::<BTreeSet<_>>();
        assert_eq!(names(1).len(), 3, "three different ones");
        assert_eq!(names(1), names(1));
        assert!((2..9).any(|seed| names(seed) != names(1)));
    }

    #[test]
    fn what_lasts_is_undone_and_times_by_lot_are_within_their_bounds() {
        let text = "[[fault]]\nbetween = [\"5 s\", \"9 s\"]\nstop = \"any base\"\nfor = \"3 s\"\n\
                    [[fault]]\nat = \"1 s\"\nslow = \"viewers\"\nloss = \"5 %\"\nfor = \"2 s\"\n";
        for seed in 0..50 {
            let deeds = deeds(text, seed);
            assert_eq!(deeds.len(), 4);
            assert!(
                matches!((&deeds[0].what, &deeds[1].what), (What::Slow(..), What::Heal(of)) if *of == deeds[0].number)
            );
            let at = deeds[2].at;
            assert!(at >= Span::from_secs(5) && at < Span::from_secs(9));
            assert_eq!(deeds[3].at, at + Span::from_secs(3));
            assert!(matches!(&deeds[3].what, What::Revive(of) if *of == deeds[2].number));
        }
    }
}
