//! Every command in the documents, run as it stands there.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a witness states what it saw"
)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{LAMINA, Node, film, said};

/// Lines in `sh` blocks of a document, continued lines joined, comments left out.
fn commands(page: &str) -> Vec<String> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(page);
    let text = fs::read_to_string(path).unwrap();
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
    nodes: Vec<Node>,
    network: Option<Network>,
}

struct Network {
    child: std::process::Child,
    url: String,
    keys: String,
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
            ["./x", "demo" | "test" | "check" | "bench", ..] => (),
            ["./x", "run", "up", rest @ ..] => self.up(rest),
            ["./x", "run", rest @ ..] | ["lamina", rest @ ..] => self.lamina(rest),
            _ => panic!("no test runs this command: {line}"),
        }
    }

    fn lamina(&mut self, words: &[&str]) {
        let words = self.here(words);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            [command @ ("serve" | "proxy"), flags @ ..] => {
                // Addresses stand in the document; a free port is taken instead.
                let listen = flags.iter().position(|flag| *flag == "--listen").unwrap();
                let flags = [&flags[..listen], &flags[listen + 2..]].concat();
                if let Some(library) = flags.iter().position(|flag| *flag == "--library") {
                    self.fill(flags[library + 1]);
                }
                let node = Node::start_as(command, self.path(), &flags);
                self.nodes.push(node);
            }
            words => {
                let output = Command::new(LAMINA).args(words).current_dir(self.path()).output().unwrap();
                assert_eq!(output.status.code(), Some(0), "{words:?}: {}", said(&output));
            }
        }
    }

    /// The node of a document has its titles already.
    fn fill(&self, library: &str) {
        let to = self.path().join(library);
        if !to.exists() {
            let copied =
                Command::new("cp").args(["-r", "library"]).arg(&to).current_dir(self.path()).status();
            assert!(copied.unwrap().success());
        }
    }

    /// Puts what a reader would put: the address and keys that were printed.
    fn here(&self, words: &[&str]) -> Vec<String> {
        let mut words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let node = self.nodes.first().map(|node| node.address.clone());
        let (url, keys) = match &self.network {
            Some(network) => (network.url.clone(), network.keys.clone()),
            None => (
                node.map(|address| format!("lamina://{address}/film")).unwrap_or_default(),
                "keys".to_owned(),
            ),
        };
        let host = url.trim_start_matches("lamina://").trim_end_matches("/film").to_owned();
        for word in &mut words {
            match word.as_str() {
                "KEYS" => word.clone_from(&keys),
                "--window" => "--headless".clone_into(word),
                text if text.starts_with("lamina://") => word.clone_from(&url),
                _ => (),
            }
        }
        if words.first().is_some_and(|command| command == "titles") {
            words[1] = host;
        }
        words
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
        std::io::BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["lamina", "play", url, "--keys", keys] = words.as_slice() else { panic!("{line}") };
        self.network = Some(Network { child, url: (*url).to_owned(), keys: (*keys).to_owned() });
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
