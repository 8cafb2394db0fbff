//! The testbed as people use it: a scenario of their own, what it leaves behind, and
//! what it says of a file that is wrong.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a witness states what it saw"
)]

mod support;

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use support::{LAMINA, film, lamina, said};

/// A small network and three people: a VIP, a light viewer behind a proxy, and one who
/// comes later. The node that serves the VIP dies, and returns.
const SCENARIO: &str = "\
about = \"somebody dies and nobody sees it\"
lasts = \"11 s\"
film = { is = \"film.mp4\" }

[nodes]
base = 2
enh1 = 1
enh2 = 1
proxies = 1

[links]
nodes = { delay = \"2 ms\" }
viewers = { delay = \"10 ms\", trace = \"line.csv\" }

[[viewers]]
count = 1
class = \"vip\"

[[viewers]]
count = 1
light = true
at = \"proxies\"

[[viewers]]
count = 1
from = \"2 s\"
within = \"1 s\"

[[fault]]
at = \"6 s\"
kill = \"serving base\"
for = \"2 s\"

[expect]
frozen = \"10 %\"
";

/// One network is enough for one machine.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Processes that still run: their command line names a folder that only they have.
fn left_running(marker: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(marker)).collect()
}

/// A folder with a film, a trace and this scenario.
fn desk(scenario: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    film(&folder.path().join("film.mp4"), "160x90", "25", 3, &["-c:v", "libx264", "-pix_fmt", "yuv420p"]);
    std::fs::write(folder.path().join("line.csv"), "seconds,bit/s\n0,8000000\n4,3000000\n").unwrap();
    std::fs::write(folder.path().join("mine.toml"), scenario).unwrap();
    std::fs::create_dir(folder.path().join("tmp")).unwrap();
    folder
}

fn testbed(folder: &Path) -> Command {
    let mut command = Command::new(LAMINA);
    command.args(["testbed", "run", "mine.toml", "--seed", "7"]).current_dir(folder);
    // The nodes' folders are made here, which tells this testbed from others.
    command.env("TMPDIR", folder.join("tmp")).env("XDG_CACHE_HOME", folder.join("cache"));
    command
}

fn json(output: &Output) -> Value {
    println!("{}", said(output));
    serde_json::from_slice(&output.stdout).expect("the report is JSON")
}

#[test]
fn a_scenario_is_played_and_its_folder_tells_what_happened() {
    let _alone = alone();
    let folder = desk(SCENARIO);
    let output = testbed(folder.path()).args(["--json", "-o", "out"]).output().unwrap();
    let report = json(&output);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!(left_running(&folder.path().display().to_string()), Vec::<String>::new());
    let run = &report["runs"][0];
    assert_eq!(
        (&report["holds"], &run["seed"], run["missed"].as_array().unwrap().len()),
        (&true.into(), &7.into(), 0)
    );

    // Who served the VIP was struck, with the buffer it had, and ran again.
    let faults = run["faults"].as_array().unwrap();
    let did: Vec<&str> = faults.iter().map(|fault| fault["did"].as_str().unwrap()).collect();
    assert_eq!(did, ["killed", "runs again"]);
    let victim = faults[0]["nodes"][0].as_str().unwrap();
    assert!(victim.starts_with("base-"), "{victim}");
    let struck = faults[0]["struck"].as_array().unwrap();
    assert!(!struck.is_empty(), "{faults:?}");
    for one in struck {
        let buffer = one["buffer_ms"].as_u64().unwrap();
        assert!(buffer > 500 && buffer <= 4_000, "{one}");
    }
    let viewers = run["viewers"].as_array().unwrap();
    let (vip, light, late) = (&viewers[0], &viewers[1], &viewers[2]);
    assert_eq!((&vip["class"], &vip["light"]), (&"vip".into(), &false.into()));
    // A busy machine may hold a picture back; a dead node may not.
    assert!(vip["freezes"]["longest_ms"].as_u64().unwrap() < 1_000, "{vip}");
    let moved = viewers.iter().flat_map(|seen| seen["failovers"].as_array().unwrap());
    assert!(
        moved.clone().any(|over| over["node"] == victim && over["layer"] == "base"),
        "nobody moved: {viewers:?}"
    );
    // A light player goes through the same motions and says what it is.
    assert_eq!(
        (&light["light"], &light["at"], &light["outcome"]),
        (&true.into(), &"proxy-1".into(), &"stopped".into())
    );
    assert!(light["watched_ms"].as_u64().unwrap() > 8_000, "{light}");
    assert!(light["seconds_at_quality"]["gold"].as_f64().unwrap() > 5.0, "{light}");
    assert!((2_000..4_500).contains(&late["first_ms"].as_u64().unwrap()), "{late}");
    assert!(
        run["bytes"]["nodes"].as_u64().unwrap() > 10_000
            && run["bytes"]["proxies"].as_u64().unwrap() > 10_000
    );

    let out = folder.path().join("out");
    let page = std::fs::read_to_string(out.join("index.html")).unwrap();
    for part in ["<svg", "Layers shown", "Recovery of Base", "seed 7", "somebody dies"] {
        assert!(page.contains(part), "{part}");
    }
    let lines = |name: &str| std::fs::read_to_string(out.join(name)).unwrap().lines().count();
    assert_eq!((lines("viewers.csv"), lines("faults.csv") >= 3), (4, true));
    assert!(lines("samples.csv") > 30 && lines("recoveries.csv") >= 2);
    let written: Value = serde_json::from_slice(&std::fs::read(out.join("report.json")).unwrap()).unwrap();
    assert_eq!(written["runs"], report["runs"]);
}

#[test]
fn nodes_run_on_other_machines_and_die_there() {
    let scenario =
        SCENARIO.replace("11 s", "8 s").replace("at = \"6 s\"", "at = \"4 s\"").replace("for = \"2 s\"", "");
    let folder = desk(&scenario);
    // What stands in for ssh runs the command here; a real one runs it there.
    let stand_in = folder.path().join("ssh");
    std::fs::write(&stand_in, "#!/bin/sh\nshift\nexec sh -c \"$*\"\n").unwrap();
    assert!(Command::new("chmod").arg("+x").arg(&stand_in).status().unwrap().success());
    let ports = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().min(60_000);
    let there = folder.path().join("there").display().to_string();
    let hosts = format!(
        "reach = [\"{}\"]\nhere = \"127.0.0.1\"\n[[host]]\nname = \"far\"\naddress = \"127.0.0.1\"\n\
         first_port = {ports}\nprogram = \"{LAMINA}\"\nfolder = \"{there}\"\nnodes = [\"base-1\", \"base-2\", \"enh1-1\"]\n",
        stand_in.display()
    );
    std::fs::write(folder.path().join("hosts.toml"), hosts).unwrap();
    let output =
        testbed(folder.path()).args(["--json", "-o", "out", "--hosts", "hosts.toml"]).output().unwrap();
    let report = json(&output);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!(left_running(&there), Vec::<String>::new());
    assert!(Path::new(&there).join("keys/ca.pem").exists() && Path::new(&there).join("base-1").exists());
    assert!(!Path::new(&there).join("keys/ca.key").exists(), "the cluster's own key stays at home");
    let run = &report["runs"][0];
    assert_eq!(run["faults"][0]["did"], "killed");
    assert!(!run["faults"][0]["struck"].as_array().unwrap().is_empty(), "{run}");
    assert!(run["viewers"][0]["freezes"]["longest_ms"].as_u64().unwrap() < 1_000, "{run}");

    // Lines between machines are what they are.
    let cut = scenario.replace("kill = \"serving base\"", "part = [\"base-1\"]");
    std::fs::write(folder.path().join("mine.toml"), cut).unwrap();
    let output = testbed(folder.path()).args(["--hosts", "hosts.toml"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("real ones"), "{}", said(&output));
    assert_eq!(left_running(&there), Vec::<String>::new());
}

#[test]
fn what_is_wrong_with_a_scenario_is_said_with_its_line_before_anything_runs() {
    let folder = desk(&SCENARIO.replace("kill =", "kil ="));
    let output = testbed(folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = said(&output);
    assert!(said.starts_with("error: mine, line 31: unknown field `kil`"), "{said}");
    assert!(said.contains("hint: `lamina testbed show base-death`"), "{said}");
    assert!(!folder.path().join("cache/lamina/testbed").exists());
    let listed = lamina(&["testbed", "list"], folder.path());
    assert_eq!(String::from_utf8_lossy(&listed.stdout).lines().count(), 10);
    let shown = lamina(&["testbed", "show", "base-death"], folder.path());
    assert!(String::from_utf8_lossy(&shown.stdout).contains("kill = \"serving base\""));
}

#[test]
fn ctrl_c_leaves_nothing_running() {
    let _alone = alone();
    let folder = desk(&SCENARIO.replace("11 s", "60 s"));
    let marker = folder.path().display().to_string();
    let mut running = testbed(folder.path()).args(["-o", "out"]).stderr(Stdio::null()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_mins(2);
    // Five nodes, a proxy and two viewers.
    while left_running(&marker).iter().filter(|line| line.contains("--exit-with-parent")).count() < 8 {
        assert!(Instant::now() < deadline, "the network does not start");
        std::thread::sleep(Duration::from_millis(50));
    }
    let interrupt = format!("kill -INT {}", running.id());
    assert!(Command::new("sh").args(["-c", &interrupt]).status().unwrap().success());
    assert_eq!(running.wait().unwrap().code(), Some(2));
    let deadline = Instant::now() + Duration::from_secs(5);
    while !left_running(&marker).is_empty() {
        assert!(Instant::now() < deadline, "still running: {:?}", left_running(&marker));
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(!folder.path().join("out").exists(), "nothing half-written");
}
