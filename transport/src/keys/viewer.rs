//! A viewer's key: one file with all that a player must be given.
//!
//! PEM (RFC 7468) with the authority's certificate and, in a block of its own,
//! the token. It is readable by its owner only, since whoever holds it is served
//! as was promised.

use super::token::{TokenError, token_from_text, token_to_text};
use super::{Authority, KeysError, files};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use protocol::token::{Claims, SignedToken};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use std::fmt::Write as _;
use std::path::Path;

const TOKEN_BEGINS: &str = "-----BEGIN LAMINA TOKEN-----";
const TOKEN_ENDS: &str = "-----END LAMINA TOKEN-----";
const CERTIFICATE_BEGINS: &str = "-----BEGIN CERTIFICATE-----";
const CERTIFICATE_ENDS: &str = "-----END CERTIFICATE-----";
/// Letters in a line of PEM.
const LINE: usize = 64;

/// Whom a viewer believes, and what it was promised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewerKey {
    /// Whose nodes are believed.
    pub authority: Authority,
    /// What is shown to them.
    pub token: SignedToken,
}

impl ViewerKey {
    /// Reads a file that [`ViewerKey::write`] wrote. Its token is signed by its
    /// own authority, but may have expired.
    pub fn load(path: &Path) -> Result<Self, KeysError> {
        let pem = files::read(path)?;
        Self::from_pem(&pem)
            .map_err(|error| KeysError::Malformed { path: path.to_owned(), why: error.to_string() })
    }

    /// Writes the key whole, for its owner's eyes only.
    ///
    /// # Errors
    /// [`KeysError::Exists`] if there is a file of this name: nothing is
    /// overwritten.
    pub fn write(&self, path: &Path) -> Result<(), KeysError> {
        let pem = self.to_pem().map_err(|error| KeysError::Make(error.to_string()))?;
        files::create(path, pem.as_bytes(), files::Reader::Owner)
    }

    /// What a node of this cluster will believe at `now`, in seconds of the Unix
    /// epoch.
    pub fn claims(&self, now: u64) -> Result<Claims, TokenError> {
        self.authority.claims(&self.token, now)
    }

    fn to_pem(&self) -> Result<String, ViewerKeyError> {
        self.authority.signed(&self.token)?;
        let certificate = STANDARD.encode(self.authority.certificate());
        let token = token_to_text(&self.token)?;
        let blocks = [(CERTIFICATE_BEGINS, certificate, CERTIFICATE_ENDS), (TOKEN_BEGINS, token, TOKEN_ENDS)];
        let mut pem = String::new();
        for (begins, text, ends) in blocks {
            // Writing to a `String` cannot fail.
            let _ = writeln!(pem, "{begins}");
            let mut rest = text.as_str();
            while !rest.is_empty() {
                let (line, after) = rest.split_at_checked(LINE).unwrap_or((rest, ""));
                let _ = writeln!(pem, "{line}");
                rest = after;
            }
            let _ = writeln!(pem, "{ends}");
        }
        Ok(pem)
    }

    fn from_pem(pem: &str) -> Result<Self, ViewerKeyError> {
        let certificates: Vec<_> = CertificateDer::pem_slice_iter(pem.as_bytes())
            .take(2)
            .collect::<Result<_, _>>()
            .map_err(|error| ViewerKeyError::Pem(error.to_string()))?;
        let [certificate] = certificates.as_slice() else {
            return Err(ViewerKeyError::Certificates);
        };
        let authority = Authority(certificate.clone());
        let token = token_from_text(&token_block(pem)?)?;
        authority.signed(&token)?;
        Ok(Self { authority, token })
    }
}

/// The base64 between the token's boundaries, which stand there exactly once.
fn token_block(pem: &str) -> Result<String, ViewerKeyError> {
    let mut lines = pem.lines().map(str::trim);
    lines.by_ref().find(|line| *line == TOKEN_BEGINS).ok_or(ViewerKeyError::NoToken)?;
    let mut text = String::new();
    for line in lines.by_ref() {
        if line == TOKEN_ENDS {
            return if lines.any(|line| line == TOKEN_BEGINS) {
                Err(ViewerKeyError::NoToken)
            } else {
                Ok(text)
            };
        }
        text.push_str(line);
    }
    Err(ViewerKeyError::NoToken)
}

/// Why a file is no viewer's key.
#[derive(Debug, thiserror::Error)]
enum ViewerKeyError {
    #[error("{0}")]
    Pem(String),
    #[error("it must hold one certificate, the authority's")]
    Certificates,
    #[error("it must hold one token")]
    NoToken,
    #[error(transparent)]
    Token(#[from] TokenError),
}

#[cfg(test)]
#[path = "viewer/tests.rs"]
mod tests;
