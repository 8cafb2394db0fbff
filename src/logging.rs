//! Logs go to stderr; how much depends on `-v` and `RUST_LOG`.

use tracing_subscriber::EnvFilter;

/// Starts logging once for the whole process.
pub(crate) fn start(verbose: u8) {
    let default = match verbose {
        0 => "warn",
        1 => "info,quinn=warn",
        2 => "debug,quinn=info,quinn_proto=info",
        _ => "trace",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default));
    let started = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_target(false)
        .try_init();
    if let Err(error) = started {
        eprintln!("warning: no logs: {error}");
    }
}
