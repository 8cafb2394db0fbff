//! Reading a scenario, and what may be wrong with it: the line, and what would help.

use super::scenario::{Fault, Group, Knock, Scenario};
use super::shipped;
use super::whom::Whom;
use crate::stage::Size;
use media::{Layer, Span};
use std::path::{Path, PathBuf};
use toml::Spanned;

/// The longest file.
const MAX_BYTES: u64 = 256 * 1024;
/// The most viewers.
const MAX_VIEWERS: usize = 200;
/// The most nodes and proxies.
const MAX_NODES: usize = 60;

/// Why there is no scenario.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file cannot be read.
    #[error("cannot read {path}")]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// There is no file and no shipped scenario of this name.
    #[error("there is no scenario {0}")]
    Unknown(String),
    /// It is not understood.
    #[error("{name}, line {line}: {what}")]
    Line {
        /// The scenario.
        name: String,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong there.
        what: String,
        /// What would help.
        hint: &'static str,
    },
}

impl ScenarioError {
    /// What would help.
    pub fn hint(&self) -> String {
        match self {
            Self::Read { .. } => "name a file of TOML, or a shipped scenario".into(),
            Self::Unknown(_) => {
                let names: Vec<&str> = shipped::names().collect();
                format!("name a file, or one of: {}", names.join(", "))
            }
            Self::Line { hint, .. } => (*hint).into(),
        }
    }
}

/// A scenario with its name and its text.
#[derive(Clone, Debug)]
pub struct Read {
    /// The shipped name, or the file's without its ending.
    pub name: String,
    /// As it stands in the file.
    pub text: String,
    /// Where paths in it begin.
    pub folder: PathBuf,
    /// What it says.
    pub scenario: Scenario,
}

/// Reads the file, or the shipped scenario, of this name.
///
/// # Errors
/// See [`ScenarioError`].
pub fn read(name: &str) -> Result<Read, ScenarioError> {
    let path = Path::new(name);
    if let Some(text) = shipped::scenario(name)
        && !path.is_file()
    {
        return parse(name, text, Path::new("."));
    }
    let failed = |source| ScenarioError::Read { path: path.to_owned(), source };
    let length = match std::fs::metadata(path) {
        Ok(file) => file.len(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(ScenarioError::Unknown(name.to_owned()));
        }
        Err(error) => return Err(failed(error)),
    };
    if length > MAX_BYTES {
        return Err(failed(std::io::Error::other("it is longer than 256 KiB")));
    }
    let text = std::fs::read_to_string(path).map_err(failed)?;
    let stem = path.file_stem().map_or_else(|| name.to_owned(), |stem| stem.to_string_lossy().into_owned());
    parse(&stem, &text, path.parent().unwrap_or(Path::new(".")))
}

/// Reads a scenario from its text.
///
/// # Errors
/// See [`ScenarioError`].
pub fn parse(name: &str, text: &str, folder: &Path) -> Result<Read, ScenarioError> {
    let at = |from: usize, what: String, hint| ScenarioError::Line {
        name: name.to_owned(),
        line: text.get(..from).map_or(1, |before| before.matches('\n').count() + 1),
        what,
        hint,
    };
    let scenario: Scenario = toml::from_str(text).map_err(|error| {
        let from = error.span().map_or(0, |span| span.start);
        at(from, error.message().to_owned(), "`lamina testbed show base-death` prints one that is right")
    })?;
    if let Err((from, what, hint)) = check(&scenario) {
        return Err(at(from, what, hint));
    }
    Ok(Read { name: name.to_owned(), text: text.to_owned(), folder: folder.to_owned(), scenario })
}

type Checked = Result<(), (usize, String, &'static str)>;

fn wrong(of: usize, what: impl Into<String>, hint: &'static str) -> Checked {
    Err((of, what.into(), hint))
}

fn check(scenario: &Scenario) -> Checked {
    let nodes = scenario.nodes;
    if nodes.base == 0 || nodes.enh1 == 0 || nodes.enh2 == 0 {
        return wrong(0, "a level has no node", "give each of base, enh1 and enh2 one at least");
    }
    let many = [nodes.base, nodes.enh1, nodes.enh2, nodes.proxies].map(usize::from).iter().sum::<usize>();
    if many > MAX_NODES {
        return wrong(0, format!("{many} nodes are too many for one machine"), "60 are the most");
    }
    let lasts = scenario.lasts.0;
    if lasts < Span::from_secs(3) || lasts > Span::from_secs(3_600) {
        return wrong(0, "it lasts less than 3 s or more than an hour", "change `lasts`");
    }
    if scenario.buffer.0 < Span::from_millis(500) || scenario.buffer.0 > Span::from_secs(60) {
        return wrong(0, "the buffer is less than 500 ms or more than a minute", "change `buffer`");
    }
    let viewers: usize = scenario.viewers.iter().map(|group| usize::from(group.get_ref().count)).sum();
    if viewers == 0 || viewers > MAX_VIEWERS {
        return wrong(0, format!("{viewers} viewers"), "give 1 to 200 in all [[viewers]] together");
    }
    for group in &scenario.viewers {
        check_group(group, scenario)?;
    }
    for fault in &scenario.faults {
        check_fault(fault, scenario)?;
    }
    Ok(())
}

fn check_group(group: &Spanned<Group>, scenario: &Scenario) -> Checked {
    let (line, group) = (group.span().start, group.get_ref());
    if group.within.is_some() && group.every.is_some() {
        return wrong(line, "both `within` and `every`", "give one of them, or none: all come at once");
    }
    let begin = group.from.map_or(Span::ZERO, |from| from.0);
    let last = begin + group.within.map_or(Span::ZERO, |within| within.0);
    if last + Span::from_secs(2) > scenario.lasts.0 {
        return wrong(line, "these viewers come when it is nearly over", "let `lasts` be longer");
    }
    match group.at {
        Knock::Proxies if scenario.nodes.proxies == 0 => {
            wrong(line, "there is no proxy to knock at", "say `proxies = 1` in [nodes]")
        }
        Knock::Named(peer) if !exists(peer.as_str(), scenario) => wrong(
            line,
            format!("there is no {peer}"),
            "nodes are called base-1, enh1-1, enh2-1, proxy-1 and so on",
        ),
        Knock::Nodes | Knock::Proxies | Knock::Named(_) => Ok(()),
    }
}

fn check_fault(fault: &Spanned<Fault>, scenario: &Scenario) -> Checked {
    let (line, fault) = (fault.span().start, fault.get_ref());
    let single = [&fault.kill, &fault.start, &fault.stop, &fault.go_on, &fault.slow];
    let verbs = single.iter().filter(|verb| verb.is_some()).count() + usize::from(fault.part.is_some());
    if verbs != 1 {
        return wrong(
            line,
            "a fault does exactly one thing",
            "give one of kill, start, stop, continue, part or slow",
        );
    }
    let time = match (fault.at, fault.between) {
        (Some(at), None) => at.0,
        (None, Some((from, until))) if from.0 < until.0 => until.0,
        _ => {
            return wrong(
                line,
                "it is not clear when",
                "give `at = \"10 s\"` or `between = [\"8 s\", \"12 s\"]`",
            );
        }
    };
    if time + fault.over.map_or(Span::ZERO, |over| over.0) >= scenario.lasts.0 {
        return wrong(line, "this happens when all is over", "let `lasts` be longer");
    }
    let shaped = fault.rate.is_some() || fault.delay.is_some() || fault.loss.is_some();
    if fault.slow.is_some() != shaped {
        return wrong(line, "`slow` and what it does belong together", "give it `rate`, `delay` or `loss`");
    }
    let all = single.into_iter().flatten().chain(fault.part.iter().flatten());
    for whom in all {
        match whom {
            Whom::Named(peer) if !exists(peer.as_str(), scenario) => {
                return wrong(
                    line,
                    format!("there is no {peer}"),
                    "nodes are called base-1, enh1-1, proxy-1 …",
                );
            }
            Whom::Viewers if fault.slow.is_none() => {
                return wrong(line, "viewers can only be slowed", "write `slow = \"viewers\"`");
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether a network of this scenario has somebody of this name.
fn exists(name: &str, scenario: &Scenario) -> bool {
    let Size { base, middle, top } = scenario.nodes.size();
    let levels =
        [(Layer::BASE.to_string(), base), (Layer::ENH1.to_string(), middle), (Layer::ENH2.to_string(), top)];
    let proxies = [("proxy".to_owned(), scenario.nodes.proxies)];
    name == "origin"
        || levels
            .iter()
            .chain(&proxies)
            .any(|(level, many)| (1..=*many).any(|n| name == format!("{level}-{n}")))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;

    const RIGHT: &str = "about = \"x\"\nlasts = \"20 s\"\n[[viewers]]\ncount = 2\n";

    fn fails(text: &str) -> String {
        let error = parse("x", text, Path::new(".")).unwrap_err();
        assert!(!error.hint().is_empty());
        error.to_string()
    }

    #[test]
    fn every_shipped_scenario_is_right() {
        assert!(shipped::names().count() >= 10);
        for name in shipped::names() {
            let read = read(name).unwrap_or_else(|error| panic!("{error}"));
            assert!(!read.scenario.about.is_empty(), "{name}");
        }
    }

    #[test]
    fn the_example_in_the_readme_is_right() {
        let readme = include_str!("../../../README.md");
        let example = readme.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
        let scenario = parse("readme", example, Path::new(".")).unwrap().scenario;
        assert_eq!((scenario.film.is.as_str(), scenario.faults.len()), ("film.mp4", 1));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        assert!(parse("x", RIGHT, Path::new(".")).is_ok());
        assert_eq!(
            fails(&format!("{RIGHT}colour = \"red\"\n")).split(", expected").next().unwrap(),
            "x, line 5: unknown field `colour`"
        );
        let with = |fault: &str| fails(&format!("{RIGHT}\n[[fault]]\n{fault}\n"));
        assert!(with("at = \"soon\"\nkill = \"base-1\"").starts_with("x, line 7: \"soon\" is no time"));
        assert!(with("at = \"3 s\"\nkill = \"the node\"").starts_with("x, line 8: nobody is called"));
        assert_eq!(with("at = \"3 s\"\nkill = \"base-9\""), "x, line 6: there is no base-9");
        assert_eq!(with("at = \"30 s\"\nkill = \"base-1\""), "x, line 6: this happens when all is over");
        assert_eq!(with("kill = \"base-1\""), "x, line 6: it is not clear when");
        assert_eq!(with("at = \"3 s\""), "x, line 6: a fault does exactly one thing");
        assert_eq!(with("at = \"3 s\"\nkill = \"viewers\""), "x, line 6: viewers can only be slowed");
        assert!(fails("about = \"x\"\nlasts = \"20 s\"\nviewers = []\n").contains("0 viewers"));
        assert!(read("no-such-thing").unwrap_err().hint().contains("base-death"));
    }

    #[test]
    fn the_simulator_can_be_given_the_same_network() {
        let read = parse("x", &format!("[nodes]\nbase = 8\nenh1 = 4\n{}", ""), Path::new("."));
        assert!(read.is_err(), "a scenario without viewers shows nothing");
        let scenario = parse("x", RIGHT, Path::new(".")).unwrap().scenario;
        let shape = scenario.nodes.shape();
        assert_eq!((shape.base, shape.enh1, shape.enh2, shape.base_links), (3, 2, 2, 2));
    }
}
