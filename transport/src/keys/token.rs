//! Tokens: what a viewer was promised, signed with the authority's key.
//!
//! The signature is ECDSA over P-256 with SHA-256 (FIPS 186-5), as the key of a
//! cluster was made, over a prefix of its own and the postcard body of the promise: what
//! is signed here can be taken for nothing else, certificates least of all. As
//! text a token is one line, the base64 (RFC 4648, section 4) of its postcard
//! body.

use super::{Authority, CA_KEY_FILE, Keys, KeysError, files, making};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use protocol::PeerId;
use protocol::token::{Claims, MAX_SIGNATURE_BYTES, Promise, SignedToken};
use rcgen::{KeyPair, SigningKey as _};
use webpki::EndEntityCert;
use webpki::ring::ECDSA_P256_SHA256;

/// What every signature over a promise begins with.
const DOMAIN: &[u8] = b"lamina token 1\0";
/// The longest token as text, in bytes. A real one has about 150.
pub const MAX_TOKEN_TEXT: usize = 512;

impl Keys {
    /// Signs what a viewer is promised.
    pub fn sign(&self, promise: Promise) -> Result<SignedToken, KeysError> {
        let path = self.folder.join(CA_KEY_FILE);
        let key = KeyPair::from_pem(&files::read(&path)?)
            .map_err(|error| KeysError::Malformed { path, why: error.to_string() })?;
        let message = signed_bytes(&promise).ok_or_else(|| KeysError::Make("no promise".to_owned()))?;
        let signature = key.sign(&message).map_err(making)?;
        Ok(SignedToken { promise, signature })
    }
}

impl Authority {
    /// What a token says, if this authority signed it and it holds at `now`, in
    /// seconds of the Unix epoch.
    pub fn claims(&self, token: &SignedToken, now: u64) -> Result<Claims, TokenError> {
        self.signed(token)?;
        let Promise { viewer, until, .. } = token.promise;
        if now > until { Err(TokenError::Expired { viewer, until }) } else { Ok(token.promise.into()) }
    }

    /// Whether this authority signed a token, however long ago.
    pub(super) fn signed(&self, token: &SignedToken) -> Result<(), TokenError> {
        if token.signature.len() > MAX_SIGNATURE_BYTES {
            return Err(TokenError::NotSigned);
        }
        let message = signed_bytes(&token.promise).ok_or(TokenError::Malformed)?;
        self.verifies(&message, &token.signature)
    }

    /// Whether this authority signed a message, prefix included.
    pub(super) fn verifies(&self, message: &[u8], signature: &[u8]) -> Result<(), TokenError> {
        let certificate = EndEntityCert::try_from(self.certificate())
            .map_err(|error| TokenError::Authority(error.to_string()))?;
        certificate.verify_signature(ECDSA_P256_SHA256, message, signature).map_err(|_| TokenError::NotSigned)
    }
}

pub(super) fn signed_bytes(promise: &Promise) -> Option<Vec<u8>> {
    postcard::to_extend(promise, DOMAIN.to_vec()).ok()
}

/// A token as one line of text.
pub fn token_to_text(token: &SignedToken) -> Result<String, TokenError> {
    if token.signature.len() > MAX_SIGNATURE_BYTES {
        return Err(TokenError::NotSigned);
    }
    postcard::to_stdvec(token).map(|bytes| STANDARD.encode(bytes)).map_err(|_| TokenError::Malformed)
}

/// Reads what [`token_to_text`] wrote, white space around it left out. Nothing
/// is believed yet: that is for [`Authority::claims`].
pub fn token_from_text(text: &str) -> Result<SignedToken, TokenError> {
    let text = text.trim();
    if text.len() > MAX_TOKEN_TEXT {
        return Err(TokenError::Malformed);
    }
    let bytes = STANDARD.decode(text).map_err(|_| TokenError::Malformed)?;
    let token: SignedToken = postcard::from_bytes(&bytes).map_err(|_| TokenError::Malformed)?;
    // One token has one text: left-over bytes and long ways of writing a number
    // do not survive the way back.
    let again = postcard::to_stdvec(&token).map_err(|_| TokenError::Malformed)?;
    if again == bytes && token.signature.len() <= MAX_SIGNATURE_BYTES {
        Ok(token)
    } else {
        Err(TokenError::Malformed)
    }
}

/// Why a token is not believed. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// It is no token at all, or one that was cut or bent.
    #[error("it is no token of this version, or a damaged one")]
    Malformed,
    /// The authority did not sign it, or not these words.
    #[error("the cluster's authority did not sign it")]
    NotSigned,
    /// It was right once.
    #[error("the token of {viewer} held until second {until} of the Unix epoch")]
    Expired {
        /// Whose it was.
        viewer: PeerId,
        /// The last second at which it held.
        until: u64,
    },
    /// The authority's certificate holds no key that can check.
    #[error("the authority's certificate cannot check tokens: {0}")]
    Authority(String),
}

#[cfg(test)]
#[path = "token/tests.rs"]
mod tests;
