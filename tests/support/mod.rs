//! What the witnesses share: films, titles, networks and viewers.
#![allow(dead_code, unreachable_pub, reason = "each witness uses its own part")]
#![allow(
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test that meets the unexpected should say so loudly"
)]

pub mod browser;
pub mod relay;
pub mod site;
pub mod theatre;
pub mod wire;

use encoder::{EncodeOptions, Metrics, Preset};
use lab::stage::{Size, StagePlan};
use media::library::{Library, TitleFolder};
use media::{Quality, Span, TitleName};
use player::{Command as Order, PlayError, PlayOptions, PlayReport, PlayerEvent};
use protocol::PeerId;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::AtomicBool;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use transport::{Authority, Keys};

/// The program under test.
pub const LAMINA: &str = env!("CARGO_BIN_EXE_lamina");

/// Runs `lamina` to its end.
pub fn lamina(arguments: &[&str], folder: &Path) -> Output {
    Command::new(LAMINA).args(arguments).current_dir(folder).output().expect("lamina can be started")
}

/// What a program said on stderr.
pub fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A film of moving test pictures with a tone, made by ffmpeg.
pub fn film(path: &Path, size: &str, rate: &str, seconds: u32, codec: &[&str]) {
    let video = format!("testsrc2=size={size}:rate={rate}:duration={seconds}");
    let tone = format!("sine=frequency=440:sample_rate=48000:duration={seconds}");
    let made = Command::new("ffmpeg")
        .args(["-v", "error", "-y", "-f", "lavfi", "-i", &video, "-f", "lavfi", "-i", &tone])
        .args(codec)
        .args(["-c:a", "aac", "-shortest"])
        .arg(path)
        .status()
        .expect("ffmpeg is installed by ./x");
    assert!(made.success(), "ffmpeg makes {}", path.display());
}

/// A small title of at least `seconds`, in a library of its own.
pub fn small_title(folder: &Path, seconds: u64) -> TitleFolder {
    let source = folder.join("small.mp4");
    film(&source, "320x180", "25", 5, &["-c:v", "libx264", "-pix_fmt", "yuv420p"]);
    let mut options = EncodeOptions::new(&source, folder.join("library"));
    options.preset = Preset::Fast;
    options.metrics = Metrics::Off;
    options.repeat_to = Some(Span::from_secs(seconds));
    encoder::encode(&options, &mut |_| (), &AtomicBool::new(false)).expect("the film is encoded");
    let library = Library::open(folder.join("library")).unwrap();
    library.title(&"small".parse().unwrap()).unwrap()
}

/// A small generator, so that a run can be repeated by its seed.
pub struct Dice(u64);

impl Dice {
    /// One that is always the same.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// One that begins anywhere, and says how to begin there again: by
    /// `LAMINA_SEED` and the name of the test.
    pub fn by_lot(test: &str) -> Self {
        let named = std::env::var("LAMINA_SEED").ok().and_then(|seed| seed.parse().ok());
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let seed = named.unwrap_or(u64::from(now.subsec_nanos()));
        println!("LAMINA_SEED={seed} ./x test {test}");
        Self(seed)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        // SplitMix64: Steele, Lea and Flood, OOPSLA 2014.
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % bound
    }
}

/// A network of this size for one title.
pub fn plan(folder: &Path, title: &TitleFolder, size: Size, origin_has_top: bool) -> StagePlan {
    StagePlan {
        program: LAMINA.into(),
        folder: folder.join("stage"),
        library: title.path().parent().unwrap().to_owned(),
        titles: vec![title.manifest().title.clone()],
        layers: title.manifest().top_quality().layers(),
        size,
        origin_has_top,
        arguments: Vec::new(),
    }
}

/// A peer's name.
pub fn peer(name: &str) -> PeerId {
    name.parse().unwrap()
}

/// A headless viewer in this process.
pub struct Viewer {
    /// What it can be told.
    pub orders: mpsc::Sender<Order>,
    /// What it tells.
    pub events: mpsc::Receiver<PlayerEvent>,
    playing: JoinHandle<Result<PlayReport, PlayError>>,
}

impl Viewer {
    /// Starts to play `title` from the node at `address`.
    pub fn start(
        address: (Option<PeerId>, SocketAddr),
        title: &TitleName,
        keys: &Path,
        quality: Quality,
    ) -> Self {
        let authority = Keys::open(keys).unwrap().authority().unwrap();
        let mut options = PlayOptions::new(address.1, title.clone(), authority, peer("viewer"));
        options.addresses = vec![address];
        options.quality = quality;
        Self::with(options)
    }

    /// Starts with these options.
    pub fn with(options: PlayOptions) -> Self {
        player::init().expect("GStreamer starts");
        let (orders, asked) = mpsc::channel(16);
        let (tell, events) = mpsc::channel(4096);
        Self { orders, events, playing: tokio::spawn(player::play(options, asked, tell)) }
    }

    /// Waits for an event that `wanted` accepts; nothing if the viewing ends first.
    pub async fn wait(&mut self, mut wanted: impl FnMut(&PlayerEvent) -> bool) -> Option<PlayerEvent> {
        while let Some(event) = self.events.recv().await {
            if wanted(&event) {
                return Some(event);
            }
        }
        None
    }

    /// Waits for the end of the film, or of the viewing.
    pub async fn report(mut self) -> PlayReport {
        while self.events.recv().await.is_some() {}
        self.playing.await.expect("the player does not panic").expect("the film is played")
    }

    /// Ends the viewing.
    pub async fn stop(self) -> PlayReport {
        self.orders.send(Order::Stop).await.ok();
        self.report().await
    }
}

/// The authority in a folder of keys.
pub fn authority(keys: &Path) -> Authority {
    Authority::load(keys).unwrap()
}

/// A folder that the build keeps, for what is dear to make.
pub fn kept_folder() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// A node as a process; killed when dropped.
pub struct Node {
    /// Where it listens.
    pub address: String,
    child: std::process::Child,
}

impl Node {
    /// Starts `lamina serve` with these flags, on a free port, and waits until it is ready.
    pub fn start(folder: &Path, flags: &[&str]) -> Self {
        Self::start_as("serve", folder, flags)
    }

    /// The same for `lamina proxy`.
    pub fn start_as(command: &str, folder: &Path, flags: &[&str]) -> Self {
        use std::io::BufRead as _;
        let mut child = Command::new(LAMINA)
            .arg(command)
            .args(["--listen", "127.0.0.1:0", "--exit-with-parent"])
            .args(flags)
            .current_dir(folder)
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("lamina can be started");
        let mut line = String::new();
        std::io::BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready: serde_json::Value = serde_json::from_str(&line).expect("a line of JSON when it is ready");
        Self { address: ready["address"].as_str().unwrap().to_owned(), child }
    }

    /// The identifier of the process.
    pub fn process_id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
