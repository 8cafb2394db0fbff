//! `lamina://HOST:PORT/TITLE`: where a title is watched.

use crate::door::{HintExt, refuse};
use anyhow::Context as _;
use media::TitleName;
use std::fmt::Write as _;
use std::net::{SocketAddr, ToSocketAddrs as _};

/// The UDP port when an address names none.
pub(crate) const DEFAULT_PORT: u16 = 4460;

/// Splits `lamina://HOST[:PORT]/TITLE` into where to dial and what to watch.
pub(crate) fn parse_title_url(text: &str) -> anyhow::Result<(SocketAddr, TitleName)> {
    let shape = "an address looks like lamina://127.0.0.1:4460/TITLE; `lamina titles HOST` lists titles";
    let Some(rest) = text.strip_prefix("lamina://") else {
        return refuse(format!("{text:?} is no lamina:// address"), shape);
    };
    let Some((host, title)) = rest.split_once('/') else {
        return refuse(format!("{text:?} names no title"), shape);
    };
    let title = percent_decoded(title).context("the title's name cannot be read").hint(shape)?;
    let title = title.parse().with_context(|| format!("{title:?} cannot be a title")).hint(shape)?;
    Ok((resolve(host)?, title))
}

/// Finds the socket address of `HOST` or `HOST:PORT`.
pub(crate) fn resolve(host: &str) -> anyhow::Result<SocketAddr> {
    let host = host.strip_prefix("lamina://").unwrap_or(host).trim_end_matches('/');
    let named_port = host.rsplit_once(':').is_some_and(|(name, port)| {
        (!name.contains(':') || name.ends_with(']')) && port.parse::<u16>().is_ok()
    });
    let with_port = if named_port { host.to_owned() } else { format!("{host}:{DEFAULT_PORT}") };
    let mut found = with_port
        .to_socket_addrs()
        .with_context(|| format!("the host {host:?} cannot be found"))
        .hint("give HOST or HOST:PORT, as printed by `lamina up` or `lamina serve`")?;
    match found.next() {
        Some(address) => Ok(address),
        None => refuse(format!("the host {host:?} has no address"), "give an address such as 127.0.0.1:4460"),
    }
}

/// The address of a title, as people paste it.
pub(crate) fn title_url(address: SocketAddr, title: &TitleName) -> String {
    let mut name = String::new();
    for byte in title.as_str().bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            name.push(char::from(byte));
        } else {
            // Writing to a `String` cannot fail.
            let _ = write!(name, "%{byte:02X}");
        }
    }
    format!("lamina://{address}/{name}")
}

fn percent_decoded(text: &str) -> anyhow::Result<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        let mut byte = *first;
        if let (b'%', [high, low, after @ ..]) = (first, after) {
            let digits = [*high, *low];
            byte = u8::from_str_radix(std::str::from_utf8(&digits)?, 16)?;
            rest = after;
        }
        bytes.push(byte);
    }
    Ok(String::from_utf8(bytes)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_it_was_written() {
        let (address, title) = parse_title_url("lamina://127.0.0.1:4500/big%20buck").unwrap();
        assert_eq!((address.to_string().as_str(), title.as_str()), ("127.0.0.1:4500", "big buck"));
        assert_eq!(title_url(address, &title), "lamina://127.0.0.1:4500/big%20buck");
        assert_eq!(parse_title_url("lamina://127.0.0.1/x").unwrap().0.port(), DEFAULT_PORT);
        assert_eq!(resolve("[::1]:7").unwrap().to_string(), "[::1]:7");
        assert_eq!(resolve("[::1]").unwrap().port(), DEFAULT_PORT);
    }

    #[test]
    fn nonsense_is_refused_with_a_hint() {
        for bad in [
            "http://h/x",
            "lamina://127.0.0.1:1",
            "lamina://127.0.0.1/",
            "lamina://127.0.0.1/..",
            "lamina:///x",
        ] {
            assert!(parse_title_url(bad).is_err(), "{bad}");
        }
    }
}
