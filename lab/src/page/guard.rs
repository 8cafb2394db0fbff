//! Who may speak to the page's server: the page itself, from this machine.
//!
//! The server kills processes, so that no other site in the same browser may reach
//! it: not by a form or a script (the origin must be ours), and not under a name
//! that points here only since a moment ago (the host must be one of ours).

use axum::extract::Request;
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use std::net::SocketAddr;

/// What a page of ours may do: nothing but what comes from here.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; \
                      connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// Refuses who is not ours; says to browsers what our page may do.
pub(super) async fn check(own: SocketAddr, request: Request, next: Next) -> Response {
    let mut response = match admit(own, request.method(), request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(why) => (StatusCode::FORBIDDEN, why).into_response(),
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Whether a request may be answered: `GET` from whoever names us as the host, a
/// deed or a socket only from a page of ours.
fn admit(own: SocketAddr, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<(), &'static str> {
    let one = |name| {
        let mut all = headers.get_all(name).iter();
        all.next().filter(|_| all.next().is_none()).and_then(|value| value.to_str().ok())
    };
    let host = one(header::HOST).filter(|host| is_ours(own, host));
    let host = host.ok_or("this is not the host that was asked for\n")?;
    if method == Method::GET && uri.path() != super::server::LIVE {
        return Ok(());
    }
    let origin = one(header::ORIGIN).and_then(|origin| origin.strip_prefix("http://"));
    if origin == Some(host) { Ok(()) } else { Err("only the page itself may ask for this\n") }
}

/// Whether a host is this server, by number or as `localhost`.
fn is_ours(own: SocketAddr, host: &str) -> bool {
    let (name, port) = host.rsplit_once(':').unwrap_or((host, "80"));
    let named = name == "localhost" || name == own.ip().to_string() || name == format!("[{}]", own.ip());
    named && port == own.port().to_string()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;

    fn asked(method: &Method, path: &str, headers: &[(HeaderName, &'static str)]) -> bool {
        let own = "127.0.0.1:4480".parse().unwrap();
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(name, HeaderValue::from_static(value));
        }
        admit(own, method, &path.parse().unwrap(), &map).is_ok()
    }

    #[test]
    fn only_our_own_page_may_change_anything() {
        let host = (header::HOST, "127.0.0.1:4480");
        let ours = (header::ORIGIN, "http://127.0.0.1:4480");
        assert!(asked(&Method::POST, "/deed", &[host.clone(), ours.clone()]));
        for origin in ["http://evil.example", "null", "http://127.0.0.1:4481", "https://127.0.0.1:4480"] {
            let origin = (header::ORIGIN, origin);
            assert!(!asked(&Method::POST, "/deed", &[host.clone(), origin.clone()]));
            assert!(!asked(&Method::GET, "/live", &[host.clone(), origin]));
        }
        assert!(!asked(&Method::POST, "/deed", std::slice::from_ref(&host)), "no origin at all");
        assert!(!asked(&Method::POST, "/deed", &[host.clone(), ours.clone(), ours.clone()]), "two of them");
        assert!(asked(&Method::GET, "/live", &[host, ours]));
    }

    #[test]
    fn a_name_that_points_here_since_a_moment_ago_is_not_ours() {
        for host in ["evil.example:4480", "127.0.0.1", "127.0.0.1:4481", "127.0.0.1.evil:4480", ""] {
            assert!(!asked(&Method::GET, "/", &[(header::HOST, host)]), "{host}");
        }
        assert!(!asked(&Method::GET, "/", &[]));
        assert!(asked(&Method::GET, "/", &[(header::HOST, "localhost:4480")]));
    }
}
