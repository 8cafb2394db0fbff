//! A proxy as a process of its own, and what the system says of a process.

use crate::bench::BenchError;
use crate::bench::serve::load::failed;
use crate::stage::Process;
use protocol::{NodeAddress, PeerId};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use tokio::sync::broadcast;

/// A proxy that runs until this is dropped.
pub(super) struct Program {
    process: Process,
    pub(super) at: NodeAddress,
}

/// How a proxy is started.
pub(super) struct Plan<'a> {
    pub(super) program: &'a Path,
    pub(super) keys: &'a Path,
    /// For its log.
    pub(super) folder: &'a Path,
    pub(super) upstream: NodeAddress,
    /// Bytes that it keeps.
    pub(super) cache_bytes: u64,
    /// Where, if not in memory, and nothing of it in memory then.
    pub(super) cache: Option<PathBuf>,
}

impl Program {
    pub(super) async fn start(plan: Plan<'_>) -> Result<Self, BenchError> {
        let peer: PeerId = "proxy".parse().map_err(failed("a name"))?;
        let mut arguments: Vec<OsString> =
            ["proxy", "--exit-with-parent", "--listen", "127.0.0.1:0", "--upstream"].map(Into::into).into();
        arguments.push(plan.upstream.to_string().into());
        arguments.extend(["--cache-size".into(), plan.cache_bytes.to_string().into()]);
        arguments.extend(["--keys".into(), plan.keys.into()]);
        if let Some(cache) = plan.cache {
            arguments.extend(["--cache".into(), cache.into(), "--memory".into(), "0".into()]);
        }
        let (events, _) = broadcast::channel(1);
        let log = plan.folder.join("proxy.log");
        let mut process = Process::new(peer, plan.program, arguments, log, events);
        let address = process.start().await.map_err(failed("a proxy"))?;
        Ok(Self { process, at: NodeAddress { peer, address } })
    }

    /// Its identifier.
    pub(super) fn id(&self) -> String {
        self.process.process_id().map_or_else(String::new, |id| id.to_string())
    }
}

/// What a process holds in memory (`VmRSS` of proc(5)'s status), in megabytes.
pub(super) fn resident_megabytes(process: &str) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u32 = line.split_whitespace().next()?.parse().ok()?;
    Some(f64::from(kib) * 1024.0 / 1e6)
}
