//! nginx: two that have the film, and one in front of them.

use super::CompareError;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

/// Where Debian puts it; not on everybody's path.
const NGINX: &str = "/usr/sbin/nginx";
/// How long it may take to listen.
const PATIENCE: Duration = Duration::from_secs(10);

/// One nginx; ends when dropped.
#[derive(Debug)]
pub(super) struct Nginx {
    pub(super) address: SocketAddr,
    child: Child,
}

/// What an nginx does.
#[derive(Clone, Copy, Debug)]
pub(super) enum Task<'a> {
    /// Gives the files of a folder.
    Files(&'a Path),
    /// The same, after so many bytes at so many bytes a second on each connection.
    Paced(&'a Path, u64, u64),
    /// Asks the first of these, and the second if that one fails.
    Before([SocketAddr; 2]),
}

impl Nginx {
    /// Starts one with a folder of its own.
    pub(super) async fn start(task: Task<'_>, folder: &Path) -> Result<Self, CompareError> {
        let failed =
            |error: std::io::Error| CompareError::Program { program: "nginx", why: error.to_string() };
        std::fs::create_dir_all(folder).map_err(failed)?;
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|socket| socket.local_addr());
        let address = address.map_err(failed)?;
        let settings = folder.join("nginx.conf");
        std::fs::write(&settings, configuration(task, address, folder)).map_err(failed)?;
        let child = Command::new(NGINX)
            .args(["-p".as_ref(), folder.as_os_str(), "-c".as_ref(), settings.as_os_str()])
            .args(["-e".as_ref(), folder.join("error.log").as_os_str()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        let late = Instant::now() + PATIENCE;
        while TcpStream::connect(address).await.is_err() {
            if Instant::now() > late {
                let said = std::fs::read_to_string(folder.join("error.log")).unwrap_or_default();
                let why = said.lines().last().unwrap_or("it does not listen").to_owned();
                return Err(CompareError::Program { program: "nginx", why });
            }
            sleep(Duration::from_millis(20)).await;
        }
        Ok(Self { address, child })
    }

    /// Kills it as a power cut would, as far as a process can be.
    pub(super) async fn kill(&mut self) -> Result<(), CompareError> {
        let killed = self.child.kill().await;
        killed.map_err(|error| CompareError::Program { program: "nginx", why: error.to_string() })
    }
}

fn configuration(task: Task<'_>, listen: SocketAddr, folder: &Path) -> String {
    let place = match task {
        Task::Files(files) => format!("root {};", files.display()),
        Task::Paced(files, after, rate) => {
            format!("root {}; limit_rate_after {after}; limit_rate {rate};", files.display())
        }
        Task::Before(_) => {
            "proxy_pass http://film; proxy_http_version 1.1; proxy_set_header Connection \"\";".into()
        }
    };
    let upstream = match task {
        Task::Before([first, second]) => {
            format!("upstream film {{ server {first}; server {second} backup; }}")
        }
        Task::Files(_) | Task::Paced(..) => String::new(),
    };
    let folder = folder.display();
    // One process, so that killing it kills all of it.
    format!(
        "daemon off; master_process off; pid {folder}/pid; events {{ worker_connections 256; }}\n\
         http {{ access_log off; sendfile on; tcp_nodelay on; include /etc/nginx/mime.types;\n\
         types {{ application/vnd.apple.mpegurl m3u8; video/iso.segment m4s; }}\n\
         client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;\n\
         uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;\n{upstream}\n\
         server {{ listen {listen}; add_header Access-Control-Allow-Origin *; location / {{ {place} }} }} }}\n"
    )
}
