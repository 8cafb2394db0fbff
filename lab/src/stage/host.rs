//! Another machine that nodes run on, reached by a command such as `ssh`.

use super::StageError;
use protocol::PeerId;
use rustix::process::Signal;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::time::timeout;

/// How long a short errand on another machine may take.
const ERRAND: Duration = Duration::from_secs(20);

/// How to run something there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// What goes before each command: `ssh`, its options, and the machine.
    pub reach: Vec<String>,
    /// The `lamina` program there.
    pub program: String,
    /// A folder there, for libraries and keys.
    pub folder: PathBuf,
}

impl Host {
    /// Where its keys are.
    pub fn keys(&self) -> PathBuf {
        self.folder.join("keys")
    }

    /// A command line that a shell there runs.
    fn shell(&self, line: &str) -> Command {
        let mut words = self.reach.iter();
        let mut command = Command::new(words.next().map_or("ssh", String::as_str));
        // One word: what reaches the machine hands it to a shell.
        command.args(words).arg(line).kill_on_drop(true);
        command
    }

    /// The program with these arguments; it says its number first.
    pub(super) fn command(&self, arguments: &[OsString]) -> Command {
        let words =
            arguments.iter().map(|word| quoted(&word.to_string_lossy())).collect::<Vec<_>>().join(" ");
        self.shell(&format!("echo '{{\"number\":'$$'}}'; exec {} {words}", quoted(&self.program)))
    }

    /// Sends a signal to what runs there under this number.
    ///
    /// # Errors
    /// The machine is not reached in time or refuses.
    pub(super) async fn signal(&self, peer: PeerId, number: u32, signal: Signal) -> Result<(), StageError> {
        let line = format!("kill -{} {number}", signal.as_raw());
        self.errand(peer, &line, None).await
    }

    /// Brings a node's certificate there, and whom to believe; the folder of its
    /// library is emptied first.
    ///
    /// # Errors
    /// The keys cannot be read, or the machine does not take them.
    pub async fn give_keys(&self, peer: PeerId, keys: &Path) -> Result<(), StageError> {
        let failed = |why: &dyn std::fmt::Display| StageError::Start {
            peer,
            why: std::io::Error::other(why.to_string()),
        };
        let opened = transport::Keys::open(keys).map_err(|why| failed(&why))?;
        opened.issue(peer).map_err(|why| failed(&why))?;
        let (to, library) = (self.keys(), self.folder.join(peer.as_str()));
        let at = quoted(&to.to_string_lossy());
        let clean =
            format!("rm -rf {} && mkdir -p {at}/peers && umask 077", quoted(&library.to_string_lossy()));
        for (number, file) in ["ca.pem".to_owned(), format!("peers/{peer}.pem")].iter().enumerate() {
            let bytes = std::fs::read(keys.join(file)).map_err(|why| failed(&why))?;
            let before = if number == 0 { clean.as_str() } else { "umask 077" };
            self.errand(peer, &format!("{before} && cat > {at}/{}", quoted(file)), Some(bytes)).await?;
        }
        Ok(())
    }

    /// Runs something short there, perhaps with something to read.
    async fn errand(&self, peer: PeerId, line: &str, input: Option<Vec<u8>>) -> Result<(), StageError> {
        let failed = |why: String| StageError::Start { peer, why: std::io::Error::other(why) };
        let mut command = self.shell(line);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|why| failed(why.to_string()))?;
        let (stdin, bytes) = (child.stdin.take(), input.unwrap_or_default());
        let whole = async move {
            if let Some(mut stdin) = stdin {
                stdin.write_all(&bytes).await?;
            }
            child.wait_with_output().await
        };
        match timeout(ERRAND, whole).await {
            Ok(Ok(output)) if output.status.success() => Ok(()),
            Ok(Ok(output)) => Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
            Ok(Err(why)) => Err(failed(why.to_string())),
            Err(_) => Err(failed("it does not answer".into())),
        }
    }
}

/// A word as a POSIX shell reads it unchanged.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_command_arrives_as_it_was_and_its_number_is_told() {
        let host = Host {
            reach: vec!["sh".into(), "-c".into()],
            program: "printf".into(),
            folder: "/nowhere".into(),
        };
        let arguments = ["%s|", "it's", "$HOME `x`"].map(OsString::from);
        let output = host.command(&arguments).output().await.unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let (first, rest) = said.split_once('\n').unwrap();
        assert!(first.starts_with("{\"number\":"), "{first}");
        assert_eq!(rest, "it's|$HOME `x`|");
    }
}
