//! The house itself under test: who may lean on whom, how long a file may get,
//! and whether the glossary and the map still tell the truth.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that cannot read the house should say so loudly"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The longest a source file may be, in lines: beyond it, it holds two ideas.
const MAX_LINES: usize = 500;

/// Which room may lean on which. A room that is absent is not needed yet.
const ARROWS: [(&str, &[&str]); 11] = [
    ("media", &[]),
    ("codec", &["media"]),
    ("protocol", &["media"]),
    ("transport", &["protocol", "media"]),
    ("encoder", &["codec", "media"]),
    ("server", &["protocol", "transport", "media"]),
    ("proxy", &["protocol", "transport", "media"]),
    ("player", &["protocol", "transport", "codec", "media"]),
    ("sim", &["protocol", "media"]),
    ("lab", &["sim", "encoder", "server", "proxy", "player", "transport", "protocol", "codec", "media"]),
    (".", &["lab", "sim", "encoder", "server", "proxy", "player", "transport", "protocol", "codec", "media"]),
];

/// What the pure rooms must never touch, directly.
const IMPURE: [&str; 8] =
    ["tokio", "quinn", "gstreamer", "gstreamer-app", "gstreamer-base", "gstreamer-video", "rustls", "rand"];
const PURE: [&str; 3] = ["media", "protocol", "sim"];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The names of everything a room's manifest depends on, tests included.
fn dependencies(room: &str) -> Option<BTreeSet<String>> {
    let text = fs::read_to_string(root().join(room).join("Cargo.toml")).ok()?;
    let manifest: toml::Table = toml::from_str(&text).expect("a manifest is TOML");
    let tables = ["dependencies", "dev-dependencies", "build-dependencies"];
    let tables = tables.iter().filter_map(|table| manifest.get(*table)?.as_table());
    Some(tables.flat_map(|table| table.keys().cloned()).collect())
}

/// Every file below `folder` whose name ends in one of `endings`.
fn files(folder: &Path, endings: &[&str], found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') || name == "target" {
            continue;
        }
        if path.is_dir() {
            files(&path, endings, found);
        } else if endings.iter().any(|ending| name.ends_with(ending)) {
            found.push(path);
        }
    }
}

fn sources() -> Vec<PathBuf> {
    let mut found = Vec::new();
    files(&root(), &[".rs"], &mut found);
    found
}

#[test]
fn arrows_point_only_where_the_table_says() {
    let rooms: BTreeSet<&str> = ARROWS.iter().map(|(room, _)| *room).collect();
    for (room, allowed) in ARROWS {
        let Some(dependencies) = dependencies(room) else { continue };
        for dependency in &dependencies {
            let is_room = rooms.contains(dependency.as_str());
            assert!(
                !is_room || allowed.contains(&dependency.as_str()),
                "{room}/Cargo.toml leans on {dependency}, which the table of arrows does not allow"
            );
        }
    }
}

#[test]
fn every_member_of_the_workspace_is_in_the_table() {
    let text = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let manifest: toml::Table = toml::from_str(&text).unwrap();
    let members = manifest["workspace"]["members"].as_array().unwrap();
    for member in members {
        let member = member.as_str().unwrap();
        assert!(ARROWS.iter().any(|(room, _)| *room == member), "{member} is a room without arrows");
        let inherits = fs::read_to_string(root().join(member).join("Cargo.toml")).unwrap();
        assert!(inherits.contains("[lints]\nworkspace = true"), "{member} does not keep the house's lints");
    }
}

#[test]
fn the_pure_rooms_know_no_clock_no_thread_and_no_network() {
    let forbidden =
        ["Instant::now", "SystemTime", "thread::spawn", "HashMap", "HashSet", "std::net::UdpSocket"];
    for room in PURE {
        let Some(dependencies) = dependencies(room) else { continue };
        for impure in IMPURE {
            assert!(!dependencies.contains(impure), "{room} is pure and must not lean on {impure}");
        }
        let mut found = Vec::new();
        files(&root().join(room).join("src"), &[".rs"], &mut found);
        for file in found {
            let text = fs::read_to_string(&file).unwrap();
            for word in forbidden {
                assert!(!text.contains(word), "{} is in a pure room and says {word}", file.display());
            }
        }
    }
}

#[test]
fn no_file_holds_more_than_one_idea() {
    let long: Vec<String> = sources()
        .iter()
        .map(|file| (file, fs::read_to_string(file).unwrap().lines().count()))
        .filter(|(_, lines)| *lines > MAX_LINES)
        .map(|(file, lines)| format!("{}: {lines} lines", file.display()))
        .collect();
    assert!(long.is_empty(), "longer than {MAX_LINES} lines:\n{}", long.join("\n"));
}

#[test]
fn unsafe_code_stands_in_one_module_and_gives_its_reasons() {
    for file in sources() {
        let text = fs::read_to_string(&file).unwrap();
        let shown = file.strip_prefix(root()).unwrap().display().to_string();
        if shown == "tests/house.rs" {
            continue;
        }
        let blocks = text.lines().filter(|line| line.contains("unsafe {") || line.contains("unsafe impl"));
        let (blocks, reasons) = (blocks.count(), text.matches("SAFETY:").count());
        if shown.starts_with("codec/src/vpx") {
            assert!(reasons >= blocks, "{shown}: {blocks} unsafe blocks and {reasons} reasons");
        } else {
            assert_eq!(blocks, 0, "{shown} holds unsafe code");
        }
    }
}

#[test]
fn every_file_opens_by_saying_what_it_is() {
    // Unit tests in a file of their own are introduced by the file they test.
    for file in sources().into_iter().filter(|file| !file.ends_with("tests.rs")) {
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.starts_with("//!"), "{} does not open with a doc comment", file.display());
    }
}

/// Rows of GLOSSARY.md: the second column holds names in backticks.
fn glossary_names() -> BTreeMap<String, String> {
    let text = fs::read_to_string(root().join("GLOSSARY.md")).unwrap();
    let rows = text.lines().filter(|line| line.starts_with("| ") && line.contains('`'));
    let cells = rows.filter_map(|row| {
        let mut cells = row.trim_matches('|').split(" | ");
        Some((cells.next()?.trim().to_owned(), cells.next()?.to_owned()))
    });
    cells
        .flat_map(|(term, names)| {
            let names: Vec<String> = names.split('`').skip(1).step_by(2).map(str::to_owned).collect();
            names.into_iter().map(move |name| (name, term.clone()))
        })
        .collect()
}

#[test]
fn each_name_in_the_glossary_exists() {
    let code: String = sources()
        .iter()
        .filter(|file| !file.ends_with("tests/house.rs"))
        .map(|file| fs::read_to_string(file).unwrap())
        .collect();
    let names = glossary_names();
    assert!(names.len() >= 20, "the glossary's table was not understood");
    for (name, term) in names {
        let last = name.rsplit("::").next().unwrap();
        let kinds = ["struct ", "enum ", "trait ", "fn ", "const ", "mod ", "type "];
        let defined = kinds.iter().any(|kind| code.contains(&format!("{kind}{last}")))
            || code.contains(&format!("    {last},\n"))
            || code.contains(&format!("    {last} {{"))
            || code.contains(&format!("    {last}("))
            || code.contains(&format!("{last}: "));
        assert!(defined, "GLOSSARY.md says {term:?} is `{name}`, but there is no such name");
    }
}

#[test]
fn the_map_names_only_files_that_exist() {
    let pages = ["ARCHITECTURE.md", "README.md", "CONTRIBUTING.md", "docs/protocol.md", "docs/operating.md"];
    for page in pages {
        let text = fs::read_to_string(root().join(page)).unwrap();
        for name in text.split('`').skip(1).step_by(2) {
            let is_file = [".rs", ".md", ".toml"].iter().any(|ending| name.ends_with(ending));
            if is_file && name.contains('/') && !name.contains(['*', ' ', '$', '~', '<']) {
                assert!(root().join(name).exists(), "{page} speaks of {name}, which is not there");
            }
        }
    }
}

/// The variants of an enum, as its file lists them.
fn variants(file: &str, name: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join(file)).unwrap();
    let body = text.split(&format!("pub enum {name} {{\n")).nth(1).expect(name);
    let body = body.split("\n}").next().unwrap();
    let lines = body.lines().filter_map(|line| line.strip_prefix("    "));
    let named = lines.filter(|line| line.starts_with(|first: char| first.is_ascii_uppercase()));
    named.map(|line| line.split([',', '(', ' ']).next().unwrap().to_owned()).collect()
}

#[test]
fn the_page_about_the_wire_names_all_that_travels() {
    let page = fs::read_to_string(root().join("docs/protocol.md")).unwrap();
    let message = "protocol/src/message.rs";
    let talk = "protocol/src/node/autonomy/talk.rs";
    let wire = [(message, "Message"), (message, "Visit"), (message, "Role"), (message, "Refusal")];
    for (file, name) in wire.into_iter().chain([(talk, "AgentMessage")]) {
        let variants = variants(file, name);
        assert!(variants.len() >= 3, "{name} was not understood");
        for variant in variants {
            let told = [format!("`{variant}`"), format!("`{variant}(")];
            assert!(
                told.iter().any(|told| page.contains(told)),
                "the page says nothing of {name}::{variant}"
            );
        }
    }
}

#[test]
fn the_stated_rust_version_is_the_one_the_script_checks() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    assert_eq!(manifest.matches("\nrust-version = \"").count(), 1);
    assert!(fs::read_to_string(root().join("x")).unwrap().contains("rust-version"));
    assert!(!root().join("rust-toolchain.toml").exists());
}

/// `./x test` runs test programs by name, in two groups: one name in both would make a
/// test that watches films wait for those that compute.
#[test]
fn each_name_of_a_test_program_stands_for_one_group() {
    let script = fs::read_to_string(root().join("x")).unwrap();
    let words = |list: &str| -> BTreeSet<String> {
        let line = script.lines().find_map(|line| line.strip_prefix(list)?.strip_suffix(')')).unwrap();
        line.split(' ').map(str::to_owned).collect()
    };
    let (rooms, tests) = (words("COMPUTING=("), words("COMPUTING_TESTS=("));
    let mut groups: BTreeMap<String, BTreeSet<bool>> = BTreeMap::new();
    for (room, _) in ARROWS {
        for entry in fs::read_dir(root().join(room).join("tests")).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|end| end == "rs") || path.join("main.rs").exists() {
                let name = path.file_stem().unwrap().to_string_lossy().into_owned();
                let computes = rooms.contains(room) || (room == "." && tests.contains(&name));
                groups.entry(name).or_default().insert(computes);
            }
        }
    }
    assert!(groups.len() > 20, "{groups:?}");
    let both: Vec<_> = groups.iter().filter(|(_, of)| of.len() > 1).collect();
    assert!(both.is_empty(), "{both:?}");
}
