//! Standard output is data, and whoever reads it may have seen enough: `lamina
//! titles HOST | head -1` ends quietly instead of failing.

use std::fmt;
use std::io::{ErrorKind, Write as _, stdout};
use std::process;

/// Writes to standard output. A closed pipe ends the process as it would end any
/// other tool; every other failure is told and ends it with exit code 2.
pub(crate) fn write(what: fmt::Arguments<'_>) {
    let written = stdout().write_fmt(what).and_then(|()| stdout().flush());
    match written {
        Ok(()) => (),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => process::exit(0),
        Err(error) => {
            eprintln!("error: standard output cannot be written\ncaused by: {error}");
            process::exit(i32::from(crate::door::COULD_NOT_RUN));
        }
    }
}

/// Writes formatted text.
macro_rules! out {
    ($($text:tt)*) => { $crate::out::write(format_args!($($text)*)) };
}

/// Writes a formatted line.
macro_rules! outln {
    () => { $crate::out::write(format_args!("\n")) };
    ($($text:tt)*) => { $crate::out::write(format_args!("{}\n", format_args!($($text)*))) };
}
