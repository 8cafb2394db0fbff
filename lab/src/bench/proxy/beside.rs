//! A proxy over QUIC and nginx over HTTPS, with the same objects: what a second of
//! processor time of the server's process alone delivers. What the clients cost
//! is not counted, nor how fast they are.

use super::program::{Plan, Program};
use super::{Options, node};
use crate::bench::serve::film::chunk_bytes;
use crate::bench::serve::load::{Ours, Setup, failed, gigabytes, processor_seconds_of};
use crate::bench::stats::Median;
use crate::bench::{BenchError, Say};
use protocol::NodeAddress;
use serde::Serialize;
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};
use transport::Identity;

/// How long nginx may take to listen, and the client for a turn.
const PATIENCE: Duration = Duration::from_mins(1);
/// Times that each object is asked for in a turn.
const REPEATS: u32 = 40;
/// Where Debian puts it; not on everybody's path.
const NGINX: &str = "/usr/sbin/nginx";

/// Gigabytes for a second of processor time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Beside {
    /// What nginx says it is.
    pub version: String,
    /// nginx, files in the system's cache.
    pub nginx: Median,
    /// The proxy, from memory.
    pub memory: Median,
    /// The proxy, from its disk; files in the system's cache.
    pub disk: Median,
}

pub(super) async fn run(
    setup: &Setup,
    folder: &Path,
    program: &Path,
    options: &Options,
    say: Say<'_>,
) -> Result<Beside, BenchError> {
    say("a proxy beside nginx");
    let nginx = Nginx::start(setup, folder, options).await?;
    let node = node(setup).await?;
    let upstream = NodeAddress { peer: node.peer(), address: node.address() };
    let mut proxies = Vec::new();
    for cache in [None, Some(folder.join("beside"))] {
        let plan = Plan { program, keys: &setup.keys, folder, upstream, cache_bytes: 1_000_000_000, cache };
        let proxy = Program::start(plan).await?;
        let clients = Ours::viewing(setup, &options.load, proxy.at, Vec::new()).await?;
        clients.warm().await?;
        proxies.push((proxy, clients));
    }
    let (mut of_nginx, mut of_proxies) = (Vec::new(), vec![Vec::new(), Vec::new()]);
    for round in 0..=options.load.rounds {
        let ours = nginx.turn(options).await?;
        let mut figures = vec![format!("{ours:.2}")];
        for ((proxy, clients), figure) in proxies.iter().zip(&mut of_proxies) {
            let before = processor_seconds_of(&proxy.id());
            let turn = clients.turn(&options.load).await?;
            let rate = gigabytes(turn.bytes) / (processor_seconds_of(&proxy.id()) - before).max(0.01);
            figures.push(format!("{rate:.2}"));
            if round > 0 {
                figure.push(rate);
            }
        }
        if round > 0 {
            of_nginx.push(ours);
            let (rounds, figures) = (options.load.rounds, figures.join(" "));
            say(&format!("round {round} of {rounds}: {figures} GB for a second of the processor"));
        }
    }
    let mut proxies = of_proxies.into_iter().map(super::median);
    let mut next =
        || proxies.next().ok_or_else(|| BenchError::Setting("no proxy was measured".to_owned()))?;
    Ok(Beside { version: nginx.version, nginx: super::median(of_nginx)?, memory: next()?, disk: next()? })
}

/// nginx in one process; ends when dropped.
struct Nginx {
    child: Child,
    port: u16,
    version: String,
}

impl Nginx {
    async fn start(setup: &Setup, folder: &Path, options: &Options) -> Result<Self, BenchError> {
        let missing = |source| BenchError::Missing { program: "nginx", source };
        let folder = folder.join("nginx");
        let files = folder.join("files");
        let unwritten = |path: &Path| {
            let path = path.to_owned();
            move |error| BenchError::file("writing", path, error)
        };
        std::fs::create_dir_all(&files).map_err(unwritten(&files))?;
        for number in 0..options.load.chunks {
            let file = files.join(number.to_string());
            std::fs::write(&file, chunk_bytes(number, options.load.chunk_bytes)).map_err(unwritten(&file))?;
        }
        // One file with certificate and key, from the authority that this bench made.
        let name = "nginx".parse().map_err(failed("a name"))?;
        Identity::obtain(&setup.keys, name).map_err(failed("keys"))?;
        let key = setup.keys.join("peers/nginx.pem");
        let port = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
        let port = port.map_err(failed("a port"))?.port();
        let settings = folder.join("nginx.conf");
        std::fs::write(&settings, configuration(&folder, &key, port)).map_err(unwritten(&settings))?;
        let version = Command::new(NGINX).arg("-v").output().await.map_err(missing)?;
        let version = String::from_utf8_lossy(&version.stderr).trim().replace("nginx version: ", "");
        let child = Command::new(NGINX)
            .args(["-p".as_ref(), folder.as_os_str(), "-c".as_ref(), settings.as_os_str()])
            .args(["-e".as_ref(), folder.join("error.log").as_os_str()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(missing)?;
        let started = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            if started.elapsed() > Duration::from_secs(5) {
                let why = std::fs::read_to_string(folder.join("error.log")).unwrap_or_default();
                return Err(BenchError::Program { program: "nginx", why });
            }
            sleep(Duration::from_millis(20)).await;
        }
        Ok(Self { child, port, version })
    }

    /// Asks for every object a number of times, from as many connections as the
    /// proxy's clients have requests open.
    async fn turn(&self, options: &Options) -> Result<f64, BenchError> {
        let id = self.child.id().map_or_else(String::new, |id| id.to_string());
        let before = processor_seconds_of(&id);
        let last = options.load.chunks.saturating_sub(1);
        let objects = format!("https://127.0.0.1:{}/[0-{last}]?[1-{REPEATS}]", self.port);
        let connections = options.load.connections.saturating_mul(options.load.open).min(300).to_string();
        let client = Command::new("curl")
            .args(["-s", "-k", "--http1.1", "-Z", "--parallel-max", &connections])
            .args(["-o", "/dev/null", "-w", "%{size_download}\\n", &objects])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .output();
        let output = timeout(PATIENCE, client).await.map_err(failed("curl"))?;
        let output = output.map_err(|source| BenchError::Missing { program: "curl", source })?;
        let sizes = String::from_utf8_lossy(&output.stdout);
        let bytes: u64 = sizes.lines().filter_map(|line| line.trim().parse::<u64>().ok()).sum();
        if !output.status.success() || bytes == 0 {
            let why = "it did not get every object from nginx".to_owned();
            return Err(BenchError::Program { program: "curl", why });
        }
        Ok(gigabytes(bytes) / (processor_seconds_of(&id) - before).max(0.01))
    }
}

/// One process, no log, files kept open: what its documentation says for speed.
fn configuration(folder: &Path, key: &Path, port: u16) -> String {
    let (folder, key) = (folder.display(), key.display());
    format!(
        "daemon off; master_process off; pid {folder}/pid;
events {{ worker_connections 1024; }}
http {{
  access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000; open_file_cache max=10000;
  client_body_temp_path {folder}/1; proxy_temp_path {folder}/2; fastcgi_temp_path {folder}/3;
  uwsgi_temp_path {folder}/4; scgi_temp_path {folder}/5;
  server {{
    listen 127.0.0.1:{port} ssl; ssl_protocols TLSv1.3;
    ssl_certificate {key}; ssl_certificate_key {key}; root {folder}/files;
  }}
}}
"
    )
}
