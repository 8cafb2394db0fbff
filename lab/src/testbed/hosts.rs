//! Which machines there are for nodes, as a file of TOML.

use crate::stage::Host;
use protocol::PeerId;
use serde::Deserialize;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// The most machines.
const MAX_HOSTS: usize = 60;

/// Machines, with how each is reached.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hosts {
    /// What goes before each command on another machine; the machine's name follows.
    #[serde(default = "ssh")]
    pub reach: Vec<String>,
    /// The address of this machine that the others can reach.
    pub here: IpAddr,
    /// The machines; nodes are placed on them in turn.
    #[serde(rename = "host")]
    pub machines: Vec<Machine>,
}

fn ssh() -> Vec<String> {
    ["ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"].map(str::to_owned).to_vec()
}

/// One machine.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// As the command that reaches it calls it.
    pub name: String,
    /// Where nodes on it are found by all others.
    pub address: IpAddr,
    /// The first UDP port for its nodes; each takes one.
    #[serde(default = "first_port")]
    pub first_port: u16,
    /// The `lamina` program there.
    #[serde(default = "program")]
    pub program: String,
    /// A folder there.
    #[serde(default = "folder")]
    pub folder: PathBuf,
    /// Nodes that are to be here; if no machine names any, all are placed in turn.
    #[serde(default)]
    pub nodes: Vec<PeerId>,
}

const fn first_port() -> u16 {
    4_460
}

fn program() -> String {
    "lamina".into()
}

fn folder() -> PathBuf {
    "/tmp/lamina-testbed".into()
}

/// What is wrong with a file of machines.
#[derive(Debug, thiserror::Error)]
pub enum HostsError {
    /// It cannot be read.
    #[error("cannot read {path}")]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is not understood.
    #[error("the machines in {path} are not understood")]
    Wrong {
        /// Which.
        path: PathBuf,
        /// Where and why.
        source: toml::de::Error,
    },
    /// Too many, too few, or folders that are no good.
    #[error("{path}: {what}")]
    Senseless {
        /// Which.
        path: PathBuf,
        /// Why.
        what: &'static str,
    },
}

impl Hosts {
    /// Reads a file of machines.
    ///
    /// # Errors
    /// See [`HostsError`].
    pub fn read(path: &Path) -> Result<Self, HostsError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| HostsError::Read { path: path.to_owned(), source })?;
        let hosts: Self =
            toml::from_str(&text).map_err(|source| HostsError::Wrong { path: path.to_owned(), source })?;
        let senseless = |what| Err(HostsError::Senseless { path: path.to_owned(), what });
        if hosts.machines.is_empty() || hosts.machines.len() > MAX_HOSTS {
            return senseless("give 1 to 60 machines as [[host]]");
        }
        if hosts.reach.is_empty() {
            return senseless("`reach` names the command that reaches a machine");
        }
        // Libraries below it are removed before each run.
        if hosts
            .machines
            .iter()
            .any(|machine| !machine.folder.is_absolute() || machine.folder.parent().is_none())
        {
            return senseless("`folder` is an absolute path below the root");
        }
        Ok(hosts)
    }

    /// On which machine each of these nodes is, and at which port.
    pub(super) fn place(&self, nodes: &[PeerId]) -> Vec<(PeerId, Host, std::net::SocketAddr)> {
        let chosen = self.machines.iter().any(|machine| !machine.nodes.is_empty());
        let mut taken = vec![0_u16; self.machines.len()];
        let mut turn = (0..self.machines.len()).cycle();
        let mut placed = Vec::new();
        for node in nodes {
            let at = if chosen {
                self.machines.iter().position(|machine| machine.nodes.contains(node))
            } else {
                turn.next()
            };
            let Some((number, machine)) = at.and_then(|at| Some((at, self.machines.get(at)?))) else {
                continue;
            };
            let Some(taken) = taken.get_mut(number) else { continue };
            let port = machine.first_port.saturating_add(*taken);
            *taken += 1;
            let reach = self.reach.iter().cloned().chain([machine.name.clone()]).collect();
            let host = Host { reach, program: machine.program.clone(), folder: machine.folder.clone() };
            placed.push((*node, host, (machine.address, port).into()));
        }
        placed
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;

    fn hosts(text: &str) -> Result<Hosts, HostsError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hosts.toml");
        std::fs::write(&path, text).unwrap();
        Hosts::read(&path)
    }

    fn peers(names: &[&str]) -> Vec<PeerId> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    const TWO: &str = "here = \"192.0.2.1\"\n[[host]]\nname = \"one\"\naddress = \"192.0.2.11\"\n\
                       [[host]]\nname = \"two\"\naddress = \"192.0.2.12\"\nfirst_port = 5000\n";

    #[test]
    fn nodes_are_placed_in_turn_or_where_it_is_said() {
        let placed = hosts(TWO).unwrap().place(&peers(&["base-1", "base-2", "base-3"]));
        let at: Vec<String> = placed.iter().map(|(peer, _, at)| format!("{peer} {at}")).collect();
        assert_eq!(at, ["base-1 192.0.2.11:4460", "base-2 192.0.2.12:5000", "base-3 192.0.2.11:4461"]);
        assert_eq!(placed[1].1.reach.last().unwrap(), "two");
        let chosen = hosts(&format!("{TWO}nodes = [\"base-3\"]\n")).unwrap();
        let placed = chosen.place(&peers(&["base-1", "base-3"]));
        assert_eq!(placed.len(), 1, "the others stay here");
        assert_eq!(placed[0].2.to_string(), "192.0.2.12:5000");
    }

    #[test]
    fn the_example_in_the_guide_is_right() {
        let guide = include_str!("../../../docs/operating.md");
        let example = guide.split("```text\n").find(|block| block.starts_with("here = "));
        let read = hosts(example.unwrap().split("```").next().unwrap()).unwrap();
        assert_eq!(
            (read.machines.len(), read.machines[1].nodes.len(), read.reach[0].as_str()),
            (2, 2, "ssh")
        );
    }

    #[test]
    fn a_file_that_makes_no_sense_is_refused() {
        assert!(matches!(hosts("here = \"192.0.2.1\"\nhost = []"), Err(HostsError::Senseless { .. })));
        assert!(matches!(hosts(&format!("{TWO}folder = \"/\"")), Err(HostsError::Senseless { .. })));
        assert!(matches!(hosts(&format!("{TWO}colour = 1")), Err(HostsError::Wrong { .. })));
    }
}
