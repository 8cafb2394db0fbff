//! A folder served over HTTP, as far as a reader of films needs it: whole files,
//! and parts of them from a byte on.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// The server; it ends when dropped.
pub struct Site {
    address: SocketAddr,
    closed: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Site {
    /// Serves what lies in a folder.
    pub fn of(folder: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it has an address");
        let (closed, folder) = (Arc::new(AtomicBool::new(false)), folder.to_owned());
        let told = Arc::clone(&closed);
        let serve = move || {
            for stream in listener.incoming().flatten() {
                if told.load(Ordering::Relaxed) {
                    return;
                }
                let folder = folder.clone();
                // A reader that leaves early is no fault.
                std::thread::spawn(move || answer(&stream, &folder).ok());
            }
        };
        Self { address, closed, thread: Some(std::thread::spawn(serve)) }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Relaxed);
        // The listener waits for a caller.
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// One request of one connection.
fn answer(mut stream: &TcpStream, folder: &Path) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next().unwrap_or_else(|| Ok(String::new()))?;
    let mut from = None;
    for line in lines {
        let line = line?.to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(range) = line.strip_prefix("range: bytes=") {
            from = range.split('-').next().and_then(|from| from.parse::<usize>().ok());
        }
    }
    let target = first.split(' ').nth(1).unwrap_or_default();
    let path = target.split('?').next().unwrap_or_default().trim_start_matches('/');
    let found: Option<PathBuf> = Some(folder.join(path)).filter(|path| path.is_file());
    let Some(bytes) = found.and_then(|path| fs::read(path).ok()) else {
        return stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    };
    let start = from.unwrap_or(0).min(bytes.len());
    let (status, range) = match from {
        Some(_) => (
            "206 Partial Content",
            format!("Content-Range: bytes {start}-{}/{1}\r\n", bytes.len().saturating_sub(1), bytes.len()),
        ),
        None => ("200 OK", String::new()),
    };
    let length = bytes.len() - start;
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\n{range}Accept-Ranges: bytes\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    if first.starts_with("HEAD") { Ok(()) } else { stream.write_all(&bytes[start..]) }
}
