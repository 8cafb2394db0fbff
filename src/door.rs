//! How the door speaks when something is wrong: one `error:` line, its causes,
//! a `hint:` where there is one, and an exit code that scripts can trust.

use std::fmt::{self, Write as _};
use std::process::ExitCode;

/// Everything asked for was done.
pub(crate) const DONE: u8 = 0;
/// It ran, and a check did not hold.
pub(crate) const CHECK_FAILED: u8 = 1;
/// It could not run.
pub(crate) const COULD_NOT_RUN: u8 = 2;

/// What a subcommand ends with.
pub(crate) type Outcome = anyhow::Result<u8>;

/// An error with a way out for the person who reads it.
#[derive(Debug)]
struct Hinted {
    source: anyhow::Error,
    hint: String,
}

impl fmt::Display for Hinted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.source, f)
    }
}

impl std::error::Error for Hinted {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.source()
    }
}

/// Adds a hint to an error.
pub(crate) trait HintExt<T> {
    /// Keeps the error and its causes and says what might help.
    fn hint(self, hint: impl Into<String>) -> anyhow::Result<T>;
}

impl<T, E: Into<anyhow::Error>> HintExt<T> for Result<T, E> {
    fn hint(self, hint: impl Into<String>) -> anyhow::Result<T> {
        self.map_err(|error| anyhow::Error::new(Hinted { source: error.into(), hint: hint.into() }))
    }
}

/// An error of the door's own, with a hint.
pub(crate) fn refuse<T>(what: impl Into<String>, hint: impl Into<String>) -> anyhow::Result<T> {
    Err(anyhow::anyhow!(what.into())).hint(hint)
}

/// Tells the person and gives the exit code.
pub(crate) fn close(outcome: Outcome) -> ExitCode {
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprint!("{}", told(&error));
            ExitCode::from(COULD_NOT_RUN)
        }
    }
}

/// The lines an error is told in. A cause that only repeats what was said
/// before it is left out.
fn told(error: &anyhow::Error) -> String {
    let mut text = format!("error: {error}\n");
    let mut said = error.to_string();
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        if !said.contains(&cause) {
            let _ = writeln!(text, "caused by: {cause}");
        }
        said = cause;
    }
    if let Some(hinted) = error.chain().find_map(|link| link.downcast_ref::<Hinted>()) {
        let _ = writeln!(text, "hint: {}", hinted.hint);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_told_with_its_causes_and_its_hint() {
        let io = std::io::Error::other("no space left on device");
        let error = Err::<(), _>(anyhow::Error::new(io).context("cannot write the title"))
            .hint("free some room")
            .unwrap_err();
        assert_eq!(
            told(&error),
            "error: cannot write the title\ncaused by: no space left on device\nhint: free some room\n"
        );
    }
}
