//! Nodes, three proxies and the links between them, as processes and a relay.

use super::audience::Seen;
use super::links::{PAIRS, PROXIES, Rates};
use super::report::{Bytes, RunReport};
use super::{CooperationError, Options, Say, Scheme};
use crate::links::{DoorId, LinkId, Links, Way};
use crate::stage::{Inquiry, Process, Size, Stage, StagePlan};
use media::library::TitleFolder;
use media::{BitRate, ByteCount, Span};
use protocol::proxy::cooperation::{CooperationConfig, Server};
use protocol::status::ProxyStatus;
use protocol::{NodeAddress, PeerId};
use serde::Serialize;
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use tokio::process::Command;
use tokio::sync::broadcast;

/// One to serve each enhancement, and two for Base, so that each has a backup.
const SIZE: Size = Size { base: 2, middle: 1, top: 1 };
/// Half of the shortest link: a relay later than that measures itself.
const LATE_MS: f64 = 10.0;

/// Everything but the audience.
pub(super) struct Town {
    // Ended before the relay, so that nothing speaks into the void.
    _proxies: Vec<Process>,
    stage: Stage,
    links: Links,
    doors: Vec<(DoorId, NodeAddress)>,
    to_nodes: Vec<LinkId>,
    between: Vec<LinkId>,
    /// Where the proxies listen.
    places: Vec<(PeerId, SocketAddr)>,
    rates: Rates,
    folder: PathBuf,
}

/// What a proxy thought of a link in the end, and what the link was.
#[derive(Clone, Debug, Serialize)]
pub struct Estimated {
    /// The proxy, from 1.
    pub proxy: usize,
    /// At the other end.
    pub server: Server,
    /// One-way delay as estimated.
    pub delay: Span,
    /// Half of a round trip over the empty link.
    pub set_delay: Span,
    /// Whether anything came over it; its rate is assumed otherwise.
    pub measured: bool,
    /// Rate as estimated.
    pub rate: BitRate,
    /// What the link carries.
    pub set_rate: BitRate,
}

/// Whether this program's proxies can be told to cooperate.
pub(super) async fn can_cooperate(program: &Path) -> Result<bool, CooperationError> {
    let help = Command::new(program).args(["proxy", "--help"]).kill_on_drop(true).output().await?;
    Ok(String::from_utf8_lossy(&help.stdout).contains("--cooperate"))
}

/// From where a proxy dials.
fn home(proxy: usize) -> IpAddr {
    let last = u8::try_from(proxy).unwrap_or(u8::MAX - 101);
    Ipv4Addr::new(127, 0, 0, 101 + last).into()
}

impl Town {
    /// Starts it all, and waits until the title has spread; the scheme comes with
    /// whether the program's proxies can be told about it.
    pub(super) async fn raise(
        options: &Options,
        film: &TitleFolder,
        rates: Rates,
        scheme: (Scheme, bool),
        seed: u64,
        folder: &Path,
        say: Say<'_>,
    ) -> Result<Self, CooperationError> {
        let links = Links::start(seed)?;
        if !links.hurry() {
            say("hint: as root the links keep their times on a busy machine too (chrt -r 10)");
        }
        let plan = StagePlan {
            program: options.program.clone(),
            folder: folder.to_owned(),
            library: film.path().parent().unwrap_or(folder).to_owned(),
            titles: vec![film.manifest().title.clone()],
            layers: film.manifest().top_quality().layers(),
            size: SIZE,
            origin_has_top: false,
            arguments: Vec::new(),
        };
        std::fs::create_dir_all(folder)?;
        let mut stage = Stage::set_up(&plan)?;
        let to_nodes: Vec<LinkId> = (0..PROXIES).map(|proxy| links.link(rates.to_nodes(proxy))).collect();
        let nodes: Vec<(PeerId, SocketAddr)> =
            stage.addresses().filter(|(peer, _)| !is_proxy(*peer)).collect();
        for (peer, listens) in &nodes {
            let (door, address) = links.door(*listens)?;
            stage.advertise(*peer, address)?;
            for (proxy, link) in to_nodes.iter().enumerate() {
                links.route(door, home(proxy), *link, Way::Along);
            }
        }
        stage.raise_nodes().await?;
        let places = places()?;
        let mut doors = Vec::new();
        for (peer, listens) in &places {
            let (door, address) = links.door(*listens)?;
            links.others(door, rates.to_client());
            doors.push((door, NodeAddress { peer: *peer, address }));
        }
        let mut between = Vec::new();
        for (one, other, delay_ms) in PAIRS {
            let link = links.link(rates.between(delay_ms));
            for (to, from, way) in [(other, one, Way::Along), (one, other, Way::Against)] {
                if let Some((door, _)) = doors.get(to) {
                    links.route(*door, home(from), link, way);
                }
            }
            between.push(link);
        }
        let mut proxies = Vec::new();
        for (number, place) in places.iter().enumerate() {
            let arguments = arguments(number, *place, &doors, &stage, scheme);
            let log = folder.join("logs").join(format!("{}.log", place.0));
            let (events, _) = broadcast::channel(1);
            let mut proxy = Process::new(place.0, &options.program, arguments, log, events);
            proxy.start().await?;
            proxies.push(proxy);
        }
        let folder = folder.to_owned();
        Ok(Self { _proxies: proxies, stage, links, doors, to_nodes, between, places, rates, folder })
    }

    /// Where clients find a proxy.
    pub(super) fn door(&self, proxy: usize) -> Option<SocketAddr> {
        self.doors.get(proxy).map(|(_, at)| at.address)
    }

    /// The network's keys.
    pub(super) fn keys(&self) -> &Path {
        self.stage.keys()
    }

    /// A folder for what the audience leaves.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// How a proxy stands; asked where it listens, past the links.
    async fn status(&self, proxy: usize) -> Result<ProxyStatus, CooperationError> {
        let place = self.places.get(proxy).copied();
        let (peer, at) = place.ok_or_else(|| std::io::Error::other("there is no such proxy"))?;
        Ok(Inquiry::of(self.stage.keys(), peer, at).await?.proxy_status().await?)
    }

    fn estimated(&self, proxy: usize, status: &ProxyStatus) -> Vec<Estimated> {
        let shape = |server: Server| match server {
            Server::Origin => self.rates.origin().get(proxy).copied(),
            Server::Peer(peer) => {
                let other = self.places.iter().position(|(place, _)| *place == peer)?;
                let pair = PAIRS.iter().position(|(one, two, _)| {
                    (*one, *two) == (proxy, other) || (*one, *two) == (other, proxy)
                })?;
                self.rates.pairs().get(pair).copied()
            }
        };
        let of = |line: &protocol::status::ServerLine| {
            let (set_rate, set_delay) = shape(line.server)?;
            let (server, delay, rate) = (line.server, line.delay, line.rate);
            let measured = rate != CooperationConfig::production(ByteCount(0)).first_rate;
            Some(Estimated { proxy: proxy + 1, server, delay, set_delay, measured, rate, set_rate })
        };
        status.servers.iter().filter_map(of).collect()
    }

    /// What a proxy got by its links, and what its clients got.
    fn bytes(&self, proxy: usize, status: &ProxyStatus) -> Bytes {
        let nodes = self.to_nodes.get(proxy).map_or(0, |link| self.links.counts(*link).back.bytes);
        let from_peers = PAIRS.iter().zip(&self.between).map(|((one, other, _), link)| {
            let counts = self.links.counts(*link);
            match proxy {
                proxy if proxy == *one => counts.back.bytes,
                proxy if proxy == *other => counts.there.bytes,
                _ => 0,
            }
        });
        let clients =
            self.doors.get(proxy).map_or(0, |(door, _)| self.links.counts_of_others(*door).back.bytes);
        let (origin, given) = (status.proxy.bytes_from_nodes, status.proxy.bytes_from_peers);
        Bytes { origin, given, nodes, peers: from_peers.sum(), clients }
    }

    /// What came of a run. Ends everything.
    pub(super) async fn told(
        self,
        scheme: Scheme,
        seed: u64,
        seen: &Seen,
    ) -> Result<RunReport, CooperationError> {
        let late_ms = self.links.lateness().permille(990).as_secs_f64() * 1_000.0;
        if late_ms > LATE_MS || self.links.turned_away() > 0 {
            return Err(CooperationError::CannotKeepUp { late_ms });
        }
        let (mut bytes, mut estimates) = (Vec::new(), Vec::new());
        for proxy in 0..PROXIES {
            let status = self.status(proxy).await?;
            bytes.push(self.bytes(proxy, &status));
            estimates.extend(self.estimated(proxy, &status));
        }
        Ok(RunReport { estimates, ..RunReport::of(scheme, seed, late_ms, bytes, seen) })
    }
}

fn is_proxy(peer: PeerId) -> bool {
    peer.as_str().starts_with("proxy")
}

/// Names and free addresses for the proxies.
fn places() -> Result<Vec<(PeerId, SocketAddr)>, CooperationError> {
    let mut held = Vec::new();
    for number in 1..=PROXIES {
        let peer = format!("proxy-{number}").parse::<PeerId>().map_err(std::io::Error::other)?;
        held.push((peer, UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?));
    }
    held.iter().map(|(peer, socket)| Ok((*peer, socket.local_addr()?))).collect()
}

fn arguments(
    number: usize,
    (peer, listens): (PeerId, SocketAddr),
    doors: &[(DoorId, NodeAddress)],
    stage: &Stage,
    (scheme, told): (Scheme, bool),
) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = vec!["proxy".into(), "--peer".into(), peer.as_str().into()];
    let mut say = |flag: &str, value: String| arguments.extend([flag.into(), value.into()]);
    say("--listen", listens.to_string());
    say("--dial-from", home(number).to_string());
    say("--keys", stage.keys().display().to_string());
    for (node, address) in stage.addresses().filter(|(node, _)| node.as_str().starts_with("base")) {
        say("--upstream", format!("{node}@{address}"));
    }
    for (other, (_, at)) in doors.iter().enumerate() {
        if other == number {
            say("--advertise", at.address.to_string());
        } else {
            say("--peers", at.to_string());
        }
    }
    if told {
        say("--cooperate", scheme.to_string());
        say("--prefetch", scheme.to_string());
    }
    arguments.push("--exit-with-parent".into());
    arguments
}
