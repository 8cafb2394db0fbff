//! Every command in the documents, run as it stands there.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a witness states what it saw"
)]

mod support;

use server::ServeConfig;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{LAMINA, Node, film, said};

/// Where a node or proxy listens if nothing else is said.
const DEFAULTS: [(&str, &str); 2] = [("serve", "127.0.0.1:4460"), ("proxy", "127.0.0.1:4470")];

fn text(page: &str) -> String {
    fs::read_to_string(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(page)).unwrap()
}

/// Lines in `sh` blocks of a document, continued lines joined, comments left out.
fn commands(page: &str) -> Vec<String> {
    let text = text(page);
    let mut lines = Vec::new();
    let mut inside = false;
    let mut open = String::new();
    for line in text.lines() {
        if line.starts_with("```") {
            inside = line == "```sh";
        } else if inside {
            let line = line.split(" #").next().unwrap().trim();
            open.push_str(line.trim_end_matches('\\'));
            if !line.ends_with('\\') && !open.is_empty() {
                lines.push(std::mem::take(&mut open));
            }
        }
    }
    lines
}

/// What a document's commands run in: a folder with a film, and the nodes and
/// networks that earlier commands started.
struct Reader {
    folder: tempfile::TempDir,
    /// With the address that stands in the document.
    nodes: Vec<(String, Node)>,
    network: Option<Network>,
}

struct Network {
    child: std::process::Child,
    /// The first address that it printed.
    host: String,
    keys: String,
    /// Whoever prints to nobody ends.
    _said: std::io::BufReader<std::process::ChildStdout>,
}

impl Drop for Network {
    fn drop(&mut self) {
        // Closing its standard input ends it, and with it everything it started.
        drop(self.child.stdin.take());
        self.child.wait().ok();
    }
}

impl Reader {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        film(&folder.path().join("film.mp4"), "160x90", "25", 3, &["-c:v", "libx264", "-pix_fmt", "yuv420p"]);
        let example = "docs/examples/school-district.toml";
        fs::create_dir_all(folder.path().join("docs/examples")).unwrap();
        fs::write(folder.path().join(example), text(example)).unwrap();
        Self { folder, nodes: Vec::new(), network: None }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Runs one command and expects it to succeed.
    fn run(&mut self, line: &str) {
        println!("$ {line}");
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            // These have witnesses of their own, or are what runs this test.
            ["./x", "demo" | "test" | "check" | "bench" | "testbed", ..] => (),
            ["./x", "run", "up", rest @ ..] => self.up(rest),
            ["./x", "run", rest @ ..] | ["lamina", rest @ ..] => self.lamina(rest),
            _ => panic!("no test runs this command: {line}"),
        }
    }

    fn lamina(&mut self, words: &[&str]) {
        match words {
            [command @ ("serve" | "proxy"), flags @ ..] => self.start(command, flags),
            words => {
                let words = self.here(words);
                let output = Command::new(LAMINA).args(&words).current_dir(self.path()).output().unwrap();
                assert_eq!(output.status.code(), Some(0), "{words:?}: {}", said(&output));
            }
        }
    }

    /// Addresses stand in the document; a free port is taken instead.
    fn start(&mut self, command: &str, flags: &[&str]) {
        let (written, flags) = match flags.iter().position(|flag| *flag == "--listen") {
            Some(at) => (flags[at + 1], [&flags[..at], &flags[at + 2..]].concat()),
            None => (DEFAULTS.iter().find(|(of, _)| *of == command).unwrap().1, flags.to_vec()),
        };
        let flags = self.here(&flags);
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let node = Node::start_as(command, self.path(), &flags);
        self.nodes.push((written.to_owned(), node));
    }

    /// Puts what a reader would put: the address and keys that were printed.
    fn here(&self, words: &[&str]) -> Vec<String> {
        let put = |word: &&str| match (*word, &self.network) {
            ("KEYS", Some(network)) => network.keys.clone(),
            ("--window", _) => "--headless".to_owned(),
            (word, _) => self.with_address(word),
        };
        words.iter().map(put).collect()
    }

    /// The word with the address in it, if there is one, replaced by that of the
    /// node which was to listen there, or of the network that chose its own.
    fn with_address(&self, word: &str) -> String {
        if word.contains(',') {
            let all: Vec<String> = word.split(',').map(|one| self.with_address(one)).collect();
            return all.join(",");
        }
        let Some(at) = word.find("127.0.0.1:") else { return word.to_owned() };
        let (before, rest) = word.split_at(at);
        let ends = rest.find(['/', ',']).unwrap_or(rest.len());
        let (written, after) = rest.split_at(ends);
        let node = self.nodes.iter().rev().find(|(of, _)| of == written).map(|(_, node)| &node.address);
        let network = self.network.as_ref().map(|network| &network.host);
        if node.is_none() && network.is_none() && before.ends_with('@') {
            // A peer that is started later.
            return word.to_owned();
        }
        let real = node.or(network).unwrap_or_else(|| panic!("nobody listens at {written}"));
        format!("{before}{real}{after}")
    }

    fn up(&mut self, words: &[&str]) {
        use std::io::BufRead as _;
        let mut child = Command::new(LAMINA)
            .args(["up", "--exit-with-parent"])
            .args(words)
            .current_dir(self.path())
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut said = std::io::BufReader::new(child.stdout.take().unwrap());
        said.read_line(&mut line).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["lamina", "play", url, "--keys", keys] = words.as_slice() else { panic!("{line}") };
        let host = url.trim_start_matches("lamina://").trim_end_matches("/film").to_owned();
        self.network = Some(Network { child, host, keys: (*keys).to_owned(), _said: said });
    }
}

fn read(page: &str) {
    let commands = commands(page);
    assert!(!commands.is_empty(), "{page} holds no commands");
    let mut reader = Reader::new();
    for line in commands {
        reader.run(&line);
    }
}

#[test]
fn the_readme_is_true() {
    read("README.md");
}

#[test]
fn the_operating_guide_is_true() {
    read("docs/operating.md");
}

#[test]
fn the_settings_in_the_operating_guide_are_those_of_a_node() {
    let text = text("docs/operating.md");
    let files: Vec<&str> =
        text.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(!files.is_empty(), "the guide shows no file of settings");
    for file in files {
        let config: ServeConfig = toml::from_str(file).unwrap_or_else(|error| panic!("{error}\n{file}"));
        config.check().unwrap();
    }
    let nodes = text.split("## Proxies").next().unwrap();
    let settings = serde_json::to_value(ServeConfig::default()).unwrap();
    for setting in settings.as_object().unwrap().keys() {
        assert!(nodes.contains(&format!("| `{setting}` |")), "the guide says nothing of `{setting}`");
    }
}

#[test]
fn the_settings_in_the_operating_guide_are_those_of_a_proxy() {
    let text = text("docs/operating.md");
    let table = text.split("| setting of a proxy |").nth(1).unwrap().split("\n\n").next().unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let mut told: Vec<&str> = rows.collect();
    told.sort_unstable();
    let settings = serde_json::to_value(proxy::ProxyConfig::default()).unwrap();
    let mut all: Vec<&str> = settings.as_object().unwrap().keys().map(String::as_str).collect();
    all.sort_unstable();
    assert_eq!(told, all);
}
