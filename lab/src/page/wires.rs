//! The links of the page's network: a relay in front of everybody who listens, and
//! a link of its own between any two, so that each can be changed by name.

use super::state::{Condition, link_name};
use crate::links::{DoorId, LinkId, LinkShape, Links, Way};
use crate::stage::{Stage, StageError};
use media::{BitRate, Span};
use protocol::PeerId;
use sim::PipeShape;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// The delay of a narrow link, one way.
const NARROW_DELAY: Span = Span::from_millis(20);
/// What waits in front of a narrow link.
const NARROW_QUEUE: Span = Span::from_millis(400);
/// The delay of a slow link, one way.
const FAR: Span = Span::from_millis(150);

/// All links.
#[derive(Debug)]
pub(crate) struct Wires {
    links: Links,
    doors: BTreeMap<PeerId, DoorId>,
    /// From where each dials.
    places: BTreeMap<PeerId, IpAddr>,
    between: BTreeMap<String, LinkId>,
    /// The rate of a narrow link.
    narrow: BitRate,
}

impl Wires {
    /// Puts a relay in front of everybody on a stage that is set up, not raised.
    /// `narrow` is the rate of a narrow link.
    pub(crate) fn new(stage: &mut Stage, narrow: BitRate) -> Result<Self, StageError> {
        stage.stand_apart()?;
        let links = Links::start(1).map_err(|why| StageError::Relay { why })?;
        let everybody: Vec<(PeerId, SocketAddr)> = stage.addresses().collect();
        let (doors, places, between) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let mut wires = Self { links, doors, places, between, narrow };
        for (peer, address) in everybody {
            let (door, relayed) = wires.links.door(address).map_err(|why| StageError::Relay { why })?;
            stage.advertise(peer, relayed)?;
            wires.doors.insert(peer, door);
            wires.connect(peer, address.ip());
        }
        Ok(wires)
    }

    /// Somebody dials from this address: each who listens gets a link to it.
    pub(crate) fn connect(&mut self, peer: PeerId, from: IpAddr) {
        let own = self.doors.get(&peer).copied();
        for (other, door) in self.doors.iter().filter(|(other, _)| **other != peer) {
            let name = link_name(peer.as_str(), other.as_str());
            let link = self.between.get(&name).copied().unwrap_or_else(|| self.links.link(LinkShape::OPEN));
            self.between.insert(name, link);
            self.links.route(*door, from, link, Way::Along);
            if let Some((own, place)) = own.zip(self.places.get(other)) {
                self.links.route(own, *place, link, Way::Against);
            }
        }
        self.places.insert(peer, from);
    }

    /// Changes the link between two; false if there is none.
    pub(crate) fn shape(&self, one: PeerId, other: PeerId, condition: Condition) -> bool {
        let link = self.between.get(&link_name(one.as_str(), other.as_str()));
        if let Some(link) = link {
            self.links.reshape(*link, LinkShape::both(shape(condition, self.narrow)));
        }
        link.is_some()
    }
}

/// How a link behaves in this condition, each way.
fn shape(condition: Condition, narrow: BitRate) -> PipeShape {
    match condition {
        Condition::Open => PipeShape::OPEN,
        Condition::Slow => PipeShape { delay: FAR, ..PipeShape::OPEN },
        Condition::Narrow => {
            PipeShape { rate: Some(narrow), delay: NARROW_DELAY, queue: NARROW_QUEUE, ..PipeShape::OPEN }
        }
        Condition::Cut => PipeShape { loss: 1.0, ..PipeShape::OPEN },
    }
}
