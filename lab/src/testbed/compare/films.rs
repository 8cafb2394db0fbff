//! The same film for browsers: H.264 at full and at half size, as one file and as
//! HLS with every stream named twice.

use super::CompareError;
use media::Hasher;
use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use tokio::process::Command;

/// hls.js as npm gives it, and the hash that it must have.
const HLS_JS: &str = "https://registry.npmjs.org/hls.js/-/hls.js-1.7.4.tgz";
/// BLAKE3 of the package.
const HLS_JS_HASH: &str = "0408160681e2de0da2ea896c99bf05349526c0d284a912f68e2bb8574a4e3651";
/// Its version.
pub(super) const HLS_JS_VERSION: &str = "1.7.4";
/// The most bytes that are taken for it.
const MAX_BYTES: &str = "20000000";

/// The film in a folder, ready to be served.
#[derive(Clone, Debug)]
pub(super) struct Films {
    pub(super) folder: PathBuf,
    /// Bits a second of the film at full size.
    pub(super) rate: u64,
    sizes: [(u32, u32); 2],
}

async fn program(name: &'static str, arguments: &[&std::ffi::OsStr]) -> Result<Vec<u8>, CompareError> {
    let failed = |why: String| CompareError::Program { program: name, why };
    let output = Command::new(name).args(arguments).kill_on_drop(true).output().await;
    let output = output.map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}

/// Encodes what browsers play, once.
pub(super) async fn make(
    source: &Path,
    (width, height): (u32, u32),
    secs: u64,
    cache: &Path,
    say: &mut (dyn FnMut(&str) + Send),
) -> Result<Films, CompareError> {
    let print = crate::demo::fingerprint(source);
    let folder = cache.join(format!("compare-{print}-{secs}"));
    let sizes = [(width, height), (width / 2, height / 2)];
    if !folder.join("whole").is_file() {
        say("making what browsers play, once");
        fs::create_dir_all(&folder).map_err(|error| CompareError::file(&folder, error))?;
        for ((width, height), name) in sizes.into_iter().zip(["full", "half"]) {
            let file = folder.join(format!("{name}.mp4"));
            encode(source, (width, height), secs, &file).await?;
            for seconds in [1, 6] {
                segment(&file, seconds, &folder.join(format!("{name}-{seconds}"))).await?;
            }
        }
        fs::write(folder.join("whole"), b"").map_err(|error| CompareError::file(&folder, error))?;
    }
    let full = folder.join("full.mp4");
    let bytes = fs::metadata(&full).map_err(|error| CompareError::file(&full, error))?.len();
    Ok(Films { folder, rate: bytes * 8 / secs.max(1), sizes })
}

async fn encode(
    source: &Path,
    (width, height): (u32, u32),
    secs: u64,
    to: &Path,
) -> Result<(), CompareError> {
    let (scale, secs) = (format!("scale={width}:{height}"), secs.to_string());
    let before = ["-v", "error", "-nostdin", "-y", "-stream_loop", "-1", "-i"].map(std::ffi::OsStr::new);
    let after = [
        "-t",
        &secs,
        "-vf",
        &scale,
        "-c:v",
        "libx264",
        "-preset",
        "veryfast",
        "-crf",
        "20",
        "-pix_fmt",
        "yuv420p",
        "-force_key_frames",
        "expr:gte(t,n_forced*1)",
        "-sc_threshold",
        "0",
        "-c:a",
        "aac",
        "-ac",
        "2",
        "-movflags",
        "+faststart",
    ]
    .map(std::ffi::OsStr::new);
    let all: Vec<&std::ffi::OsStr> =
        before.into_iter().chain([source.as_os_str()]).chain(after).chain([to.as_os_str()]).collect();
    program("ffmpeg", &all).await.map(drop)
}

async fn segment(file: &Path, seconds: u32, to: &Path) -> Result<(), CompareError> {
    fs::create_dir_all(to).map_err(|error| CompareError::file(to, error))?;
    let (seconds, list) = (seconds.to_string(), to.join("index.m3u8"));
    let all = ["-v", "error", "-nostdin", "-y", "-i"].map(std::ffi::OsStr::new);
    let rest = [
        "-c",
        "copy",
        "-f",
        "hls",
        "-hls_time",
        &seconds,
        "-hls_playlist_type",
        "vod",
        "-hls_segment_type",
        "fmp4",
    ]
    .map(std::ffi::OsStr::new);
    let all: Vec<&std::ffi::OsStr> =
        all.into_iter().chain([file.as_os_str()]).chain(rest).chain([list.as_os_str()]).collect();
    program("ffmpeg", &all).await.map(drop)
}

impl Films {
    /// The playlist that names every stream at both servers, so that a player may
    /// fail over (RFC 8216, section 6.2.4).
    pub(super) fn playlist(&self, seconds: u32, servers: [SocketAddr; 2]) -> String {
        let mut text = String::from("#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-INDEPENDENT-SEGMENTS\n");
        for ((width, height), name) in self.sizes.iter().zip(["full", "half"]) {
            let rate = if name == "full" { self.rate } else { self.rate / 3 };
            for server in servers {
                // Writing into a string cannot fail.
                let _ = write!(
                    text,
                    "#EXT-X-STREAM-INF:BANDWIDTH={},AVERAGE-BANDWIDTH={rate},RESOLUTION={width}x{height}\n\
                     http://{server}/{name}-{seconds}/index.m3u8\n",
                    rate * 3 / 2
                );
            }
        }
        text
    }
}

/// hls.js, from the cache or from its registry; its hash is checked each time.
pub(super) async fn hls_js(cache: &Path) -> Result<PathBuf, CompareError> {
    let package = cache.join(format!("hls.js-{HLS_JS_VERSION}.tgz"));
    if !package.is_file() {
        let half = package.with_extension("part");
        let words =
            ["-fsSL", "--max-time", "120", "--max-filesize", MAX_BYTES, "-o"].map(std::ffi::OsStr::new);
        let all: Vec<&std::ffi::OsStr> =
            words.into_iter().chain([half.as_os_str(), HLS_JS.as_ref()]).collect();
        program("curl", &all).await?;
        fs::rename(&half, &package).map_err(|error| CompareError::file(&package, error))?;
    }
    let bytes = fs::read(&package).map_err(|error| CompareError::file(&package, error))?;
    let mut hasher = Hasher::new();
    hasher.update(&bytes);
    if hasher.finish().to_string() != HLS_JS_HASH {
        // What is wrong must not lie there for the next time.
        let _ = fs::remove_file(&package);
        return Err(CompareError::WrongPackage { found: hasher.finish().to_string() });
    }
    let words = ["-xzOf".as_ref(), package.as_os_str(), "package/dist/hls.min.js".as_ref()];
    let script = program("tar", &words).await?;
    let path = cache.join(format!("hls-{HLS_JS_VERSION}.min.js"));
    fs::write(&path, script).map_err(|error| CompareError::file(&path, error))?;
    Ok(path)
}
