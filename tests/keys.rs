//! What viewers are promised, and what operators may order: the commands of
//! whoever runs a network, against a node that answers what it was given.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a witness states what it saw"
)]

mod support;

use media::{Layer, Quality, Span};
use protocol::node::autonomy::{Level, Sla};
use protocol::status::{NodeStatus, PlacementLine, Slots, Traffic};
use protocol::{Message, Refusal, Role};
use std::collections::VecDeque;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Output;
use std::sync::{Arc, Mutex};
use support::{lamina, peer, said};
use transport::keys::revoked::Revocations;
use transport::keys::token::token_from_text;
use transport::{Authority, Endpoint, EndpointConfig, Happening, Host, Keys, ViewerKey};

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs `lamina`, expects this exit code, and gives what it said on both streams.
fn run(arguments: &[&str], folder: &Path, code: i32) -> (String, String) {
    let output = lamina(arguments, folder);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", said(&output));
    (stdout(&output), said(&output))
}

fn cluster() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    Keys::init(&folder.path().join("keys")).unwrap();
    folder
}

#[test]
fn a_token_is_one_line_that_the_cluster_believes() {
    let folder = cluster();
    let command = [
        "keys", "token", "--sla", "vip", "--top", "silver", "--name", "anna", "--days", "1", "--keys", "keys",
    ];
    let (line, _) = run(&command, folder.path(), 0);
    assert_eq!(line.lines().count(), 1);
    let token = token_from_text(&line).unwrap();
    assert_eq!(token.promise.viewer, peer("anna"));
    let authority = Authority::load(&folder.path().join("keys")).unwrap();
    let until = token.promise.until;
    let claims = authority.claims(&token, until).unwrap();
    assert_eq!((claims.sla, claims.top), (Sla::Vip, Quality::SILVER));
    assert!(authority.claims(&token, until + 1).is_err());
    let today = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
    assert!((today + 86_000..=today + 86_400).contains(&until), "a day from now, not {until}");
}

#[test]
fn a_viewers_key_is_one_file_that_is_never_overwritten() {
    let folder = cluster();
    let command = ["keys", "viewer", "anna", "--sla", "vip", "--top", "gold", "--keys", "keys"];
    let (path, _) = run(&command, folder.path(), 0);
    assert_eq!(path, "anna.lamina-key\n");
    let key = ViewerKey::load(&folder.path().join("anna.lamina-key")).unwrap();
    assert_eq!(key.authority, Authority::load(&folder.path().join("keys")).unwrap());
    assert_eq!((key.token.promise.sla, key.token.promise.viewer), (Sla::Vip, peer("anna")));
    let (_, refused) = run(&command, folder.path(), 2);
    assert!(refused.contains("anna.lamina-key exists") && refused.contains("hint: -o FILE"), "{refused}");
    assert_eq!(ViewerKey::load(&folder.path().join("anna.lamina-key")).unwrap(), key);
}

#[test]
fn a_token_made_elsewhere_becomes_a_key_without_the_private_key() {
    let folder = cluster();
    let (token, _) = run(&["keys", "token", "--name", "bert", "--keys", "keys"], folder.path(), 0);
    let public = folder.path().join("public");
    fs::create_dir(&public).unwrap();
    fs::copy(folder.path().join("keys/ca.pem"), public.join("ca.pem")).unwrap();
    let command = ["keys", "viewer", "--token", token.trim(), "--keys", "public", "-o", "mine"];
    assert_eq!(run(&command, folder.path(), 0).0, "mine\n");
    assert_eq!(ViewerKey::load(&folder.path().join("mine")).unwrap().token.promise.viewer, peer("bert"));
    let bent = ["keys", "viewer", "--token", &token.trim()[4..], "--keys", "public"];
    assert!(run(&bent, folder.path(), 2).1.contains("the whole line"));
    Keys::init(&folder.path().join("other")).unwrap();
    let strange = ["keys", "viewer", "--token", token.trim(), "--keys", "other"];
    assert!(run(&strange, folder.path(), 2).1.contains("did not sign"));
}

#[test]
fn a_damaged_key_does_not_play() {
    let folder = cluster();
    fs::write(folder.path().join("key"), "nothing").unwrap();
    let (_, told) = run(&["play", "lamina://127.0.0.1:1/film", "--key", "key"], folder.path(), 2);
    assert!(
        told.contains("error: key cannot be used") && told.contains("hint: `lamina keys viewer"),
        "{told}"
    );
    assert!(!told.contains("without --key"), "{told}");
}

#[test]
fn a_viewer_without_a_key_is_told_of_it_unless_a_program_listens() {
    let folder = cluster();
    run(&["keys", "viewer", "anna", "--keys", "keys"], folder.path(), 0);
    let cases: [(&[&str], bool); 3] = [
        (&["--keys", "keys"], true),
        (&["--keys", "keys", "--json"], false),
        (&["--key", "anna.lamina-key"], false),
    ];
    std::thread::scope(|scope| {
        for (flags, told) in cases {
            let folder = folder.path();
            scope.spawn(move || {
                // Nobody is there, which is found out after the hint.
                let play = ["play", "lamina://127.0.0.1:1/film", "--headless"];
                let (_, err) = run(&[&play[..], flags].concat(), folder, 2);
                assert_eq!(err.contains("hint: without --key this viewer is a normal one"), told, "{err}");
                assert!(err.contains("cannot reach 127.0.0.1:1"), "{err}");
            });
        }
    });
}

/// A node that answers operators with what it was given, and keeps what it heard.
struct FakeNode {
    address: SocketAddr,
    heard: Arc<Mutex<Vec<Message>>>,
    endpoint: Endpoint,
    runtime: tokio::runtime::Runtime,
}

impl Drop for FakeNode {
    fn drop(&mut self) {
        self.runtime.block_on(self.endpoint.close());
    }
}

impl FakeNode {
    /// `order` answers publish and unpublish; the last status is given again and again.
    fn start(folder: &Path, order: Result<(), Refusal>, statuses: Vec<NodeStatus>) -> Self {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let keys = Keys::open(&folder.join("keys")).unwrap();
        let identity = keys.identity(peer("origin")).unwrap();
        let config = EndpointConfig::member(Role::Node, &identity, keys.authority().unwrap());
        let heard = Arc::new(Mutex::new(Vec::new()));
        let entered = runtime.enter();
        let endpoint = Endpoint::open(&config).unwrap();
        let address = endpoint.local_address().unwrap();
        let mut host = Host::start(endpoint.clone(), address);
        drop(entered);
        let (kept, own) = (Arc::clone(&heard), endpoint.clone());
        let mut statuses = VecDeque::from(statuses);
        runtime.spawn(async move {
            let mut guest = None;
            while let Some(happening) = host.next().await {
                match happening {
                    Happening::Linked { connection, .. } => {
                        assert_eq!(connection.peer().role, Role::Operator);
                        assert_eq!(connection.peer().peer, peer("operator"));
                        connection.send(Message::Hello(own.hello())).unwrap();
                        guest = Some(connection);
                    }
                    Happening::Heard { message, .. } => {
                        let answer = match &message {
                            Message::Publish { request, .. } | Message::Unpublish { request, .. } => {
                                let request = *request;
                                match order {
                                    Ok(()) => Message::Done { request },
                                    Err(why) => Message::Refused { request, why },
                                }
                            }
                            _ if statuses.len() > 1 => {
                                Message::Status(Box::new(statuses.pop_front().unwrap()))
                            }
                            _ => Message::Status(Box::new(statuses[0].clone())),
                        };
                        kept.lock().unwrap().push(message);
                        guest.as_ref().unwrap().send(answer).unwrap();
                    }
                    _ => (),
                }
            }
        });
        Self { address, heard, endpoint, runtime }
    }

    fn first_heard(&self) -> Message {
        self.heard.lock().unwrap()[0].clone()
    }
}

/// An origin that has placed so many copies of each layer, and so many on the way.
fn status(wanted: u16, layers: &[(u8, u16, u16)]) -> NodeStatus {
    let layers = layers.iter().map(|(layer, copies, coming)| (Layer(*layer), *copies, *coming)).collect();
    NodeStatus {
        peer: peer("origin"),
        level: Level::Origin,
        up: Span::from_secs(5),
        draining: false,
        titles: Vec::new(),
        slots: Slots { capacity: 30, used: 4, ..Slots::default() },
        admission: protocol::status::Admission::default(),
        sessions: 0,
        neighbours: Vec::new(),
        dead: Vec::new(),
        placements: vec![PlacementLine { title: "film".parse().unwrap(), layers, wanted }],
        traffic: Traffic::default(),
        events: Vec::new(),
    }
}

#[test]
fn a_title_is_published_once_every_layer_has_its_copies() {
    let folder = cluster();
    let answers = vec![status(2, &[(0, 0, 2), (1, 1, 1)]), status(2, &[(0, 2, 0), (1, 2, 0)])];
    let node = FakeNode::start(folder.path(), Ok(()), answers);
    let to = node.address.to_string();
    let command = ["publish", "film", "--to", &to, "--copies", "2", "--popularity", "700", "--keys", "keys"];
    let (out, err) = run(&command, folder.path(), 0);
    assert_eq!(out, "film is published: base 2 copies, enh1 2 copies\n");
    assert_eq!(
        err,
        "base  0 of 2 copies, 2 on the way\nenh1  1 of 2 copies, 1 on the way\n\
         base  2 of 2 copies\nenh1  2 of 2 copies\n"
    );
    let wanted = Message::Publish { request: 1, title: "film".parse().unwrap(), copies: 2, popularity: 700 };
    assert_eq!(node.first_heard(), wanted);
}

#[test]
fn what_is_missing_when_the_time_is_over_is_told() {
    let folder = cluster();
    let node = FakeNode::start(folder.path(), Ok(()), vec![status(2, &[(0, 2, 0), (1, 1, 0)])]);
    let to = node.address.to_string();
    let command = ["publish", "film", "--to", &to, "--copies", "2", "--wait", "0.6", "--keys", "keys"];
    let (out, err) = run(&command, folder.path(), 1);
    assert_eq!(out, "film: enh1 has 1 of 2 copies after 600 ms\n");
    assert!(err.contains("hint: `lamina status"), "{err}");
    let json = [&command[..], &["--json"]].concat();
    let told: serde_json::Value = serde_json::from_str(&run(&json, folder.path(), 1).0).unwrap();
    assert_eq!((&told["complete"], &told["layers"][1]["copies"]), (&false.into(), &1.into()));
}

#[test]
fn refusals_say_what_helps() {
    let folder = cluster();
    let node = FakeNode::start(folder.path(), Err(Refusal::NotOrigin), vec![status(0, &[])]);
    let to = node.address.to_string();
    for command in ["publish", "unpublish"] {
        let (_, err) = run(&[command, "film", "--to", &to, "--keys", "keys"], folder.path(), 2);
        assert!(err.contains("only an origin publishes titles"), "{err}");
        assert!(err.contains("hint: --to HOST:PORT names the origin"), "{err}");
    }
    // Whoever is no operator: public keys only, or those of another cluster.
    fs::create_dir(folder.path().join("public")).unwrap();
    fs::copy(folder.path().join("keys/ca.pem"), folder.path().join("public/ca.pem")).unwrap();
    Keys::init(&folder.path().join("other")).unwrap();
    for keys in ["public", "other"] {
        let (_, err) = run(&["status", &to, "--keys", keys], folder.path(), 2);
        assert!(err.contains("hint: ") && err.contains("--keys DIR"), "{err}");
    }
}

#[test]
fn a_title_is_taken_back() {
    let folder = cluster();
    let node = FakeNode::start(folder.path(), Ok(()), vec![status(0, &[])]);
    let to = node.address.to_string();
    let (out, _) = run(&["unpublish", "film", "--to", &to, "--keys", "keys"], folder.path(), 0);
    assert_eq!(out, format!("film is being deleted everywhere but at {to}\n"));
    assert_eq!(node.first_heard(), Message::Unpublish { request: 1, title: "film".parse().unwrap() });
}

#[test]
fn a_node_is_looked_at_by_people_and_programs() {
    let folder = cluster();
    let mut shown = status(2, &[(0, 2, 0)]);
    shown.events = vec![protocol::status::EventLine {
        ago: Span::from_secs(1),
        event: "{\"event\":\"placed\"}".to_owned(),
    }];
    let node = FakeNode::start(folder.path(), Ok(()), vec![shown]);
    let to = node.address.to_string();
    let (out, err) = run(&["status", &to, "--keys", "keys"], folder.path(), 0);
    assert!(out.starts_with("origin  origin, up 5 s\nslots       4 of 30"), "{out}");
    assert!(out.contains("published   film                     base 2 of 2"), "{out}");
    assert_eq!(err, "");
    let (out, _) = run(&["status", &to, "--keys", "keys", "--json"], folder.path(), 0);
    assert_eq!(out.lines().count(), 1);
    let told: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&told["slots"]["used"], &told["events"][0]["event"]["event"]), (&4.into(), &"placed".into()));
}

#[test]
fn a_watched_node_is_shown_again_and_again_until_it_is_gone() {
    let folder = cluster();
    let answers = vec![status(2, &[(0, 1, 0)]), status(2, &[(0, 2, 0)])];
    let node = FakeNode::start(folder.path(), Ok(()), answers);
    let to = node.address.to_string();
    let watched = std::thread::spawn({
        let folder = folder.path().to_owned();
        move || lamina(&["status", &to, "--keys", "keys", "--watch", "--json"], &folder)
    });
    while node.heard.lock().unwrap().len() < 2 && !watched.is_finished() {
        std::thread::yield_now();
    }
    drop(node);
    let output = watched.join().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    let lines: Vec<serde_json::Value> =
        stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(!lines.is_empty());
    assert_eq!(lines[0]["placements"][0]["layers"][0][1], 1);
    assert!(said(&output).contains("is gone"), "{}", said(&output));
}

#[test]
fn on_a_terminal_a_watched_node_is_shown_in_place_and_ctrl_c_gives_the_terminal_back() {
    use std::io::Write as _;
    use std::process::{Command, Stdio};
    let folder = cluster();
    let node = FakeNode::start(folder.path(), Ok(()), vec![status(2, &[(0, 2, 0)])]);
    // `exec`: a shell that waits for it would die of the same Ctrl-C and say so (dash does).
    let command = format!("exec {} status {} --keys keys --watch", support::LAMINA, node.address);
    // util-linux: runs it on a terminal of its own, and ends with its exit code.
    let mut script = Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .env("SHELL", "/bin/sh")
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("script is part of every system");
    while node.heard.lock().unwrap().len() < 2 && script.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    script.stdin.as_mut().unwrap().write_all(b"\x03").unwrap();
    let output = script.wait_with_output().unwrap();
    let shown = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{shown}");
    let screen = shown.split_once("\x1b[?1049h\x1b[?25l\x1b[?7l").expect("a screen of its own").1;
    assert!(screen.contains("\x1b[1;1Horigin  origin, up 5 s\x1b[K"), "{screen:?}");
    let (screen, after) = screen.split_once("\x1b[?7h\x1b[?25h\x1b[?1049l").expect("it is given back");
    assert!(!screen.contains('\n'), "nothing scrolls: {screen:?}");
    assert!(!after.contains('\x1b'), "{after:?}");
}

#[test]
fn top_draws_on_a_terminal_and_gives_it_back_and_prints_one_picture_anywhere() {
    use std::io::Write as _;
    use std::process::{Command, Stdio};
    let folder = cluster();
    let answers = vec![status(2, &[(0, 2, 0)])];
    let node = FakeNode::start(folder.path(), Ok(()), answers.clone());
    let to = node.address.to_string();
    let (once, _) = run(&["top", &to, "--keys", "keys", "--once"], folder.path(), 0);
    assert!(once.starts_with("lamina top   1 answer   watching: 0 vip, 0 normal, 0 by proxy"), "{once}");
    assert!(once.contains("origin            origin  5 s       4 of 30"), "{once}");
    assert!(!once.contains('\x1b'));
    let (_, why) = run(&["top", &to, "--keys", "keys"], folder.path(), 2);
    assert!(why.contains("hint: --once"), "{why}");
    for end in [&b"q"[..], b"\x03"] {
        let heard = node.heard.lock().unwrap().len();
        // A terminal that is made by `script` has no size of its own.
        let command = format!("stty rows 30 cols 100 && exec {} top {to} --keys keys", support::LAMINA);
        let mut script = Command::new("script")
            .args(["-qec", &command, "/dev/null"])
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("script is part of every system");
        while node.heard.lock().unwrap().len() < heard + 3 && script.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        script.stdin.as_mut().unwrap().write_all(end).unwrap();
        let output = script.wait_with_output().unwrap();
        let shown = stdout(&output);
        assert_eq!(output.status.code(), Some(0), "{shown}");
        let screen = shown.split_once("\x1b[?1049h").expect("a screen of its own").1;
        // Only what changed is written, so that blanks may be missing.
        assert!(screen.contains("lamina top") && screen.contains("origin"), "{screen:?}");
        let (_, after) = screen.split_once("\x1b[?1049l").expect("it is given back");
        assert!(after.contains("\x1b[?25h") || screen.contains("\x1b[?25h"), "the cursor is back: {after:?}");
    }
}

#[test]
fn a_promise_is_taken_back_by_file_token_or_name() {
    let folder = cluster();
    let keys = folder.path().join("keys");
    let nodes = Revocations::load(Authority::load(&keys).unwrap(), &keys).unwrap();
    run(&["keys", "viewer", "anna", "--sla", "vip", "--keys", "keys"], folder.path(), 0);
    let anna = ViewerKey::load(&folder.path().join("anna.lamina-key")).unwrap().token;
    let (line, _) = run(&["keys", "token", "--name", "bert", "--keys", "keys"], folder.path(), 0);
    let bert = token_from_text(&line).unwrap();
    let (path, told) = run(&["keys", "revoke", "anna.lamina-key", "--keys", "keys"], folder.path(), 0);
    assert_eq!(path, "keys/revoked\n");
    assert!(told.contains("took the promise to anna back; the list names 1"), "{told}");
    nodes.refresh().unwrap();
    assert_eq!((nodes.revokes(&anna), nodes.revokes(&bert)), (true, false));
    run(&["keys", "revoke", line.trim(), "--keys", "keys"], folder.path(), 0);
    let (_, told) = run(&["keys", "revoke", "carl", "--keys", "keys"], folder.path(), 0);
    assert!(told.contains("took every promise to carl back; the list names 3"), "{told}");
    nodes.refresh().unwrap();
    assert!(nodes.revokes(&bert));
    let (_, told) = run(&["keys", "revoke", "No Such Thing", "--keys", "keys"], folder.path(), 2);
    assert!(
        told.contains("neither a viewer's key nor a token nor a name") && told.contains("hint: "),
        "{told}"
    );
}
