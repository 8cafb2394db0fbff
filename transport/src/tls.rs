//! TLS 1.3 as both sides of a connection speak it.
//!
//! No session is resumed: a certificate is checked at every handshake, so that
//! a name is never believed on the strength of an older one.

use crate::error::EndpointError;
use crate::keys::{Authority, Identity, dns_name};
use protocol::PeerId;
use protocol::message::ALPN;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::client::{Resumption, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::any::Any;
use std::fmt::Display;
use std::sync::Arc;

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn roots(authority: &Authority) -> Result<RootCertStore, EndpointError> {
    let mut roots = RootCertStore::empty();
    roots.add(authority.certificate().clone()).map_err(unusable)?;
    Ok(roots)
}

fn unusable(error: impl Display) -> EndpointError {
    EndpointError::Tls(error.to_string())
}

/// The side that dials: checks the other's certificate, shows its own if any.
pub(crate) fn client(
    authority: &Authority,
    identity: Option<&Identity>,
) -> Result<Arc<QuicClientConfig>, EndpointError> {
    let builder = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .map_err(unusable)?
        .with_root_certificates(roots(authority)?);
    let mut config = match identity {
        Some(identity) => {
            builder.with_client_auth_cert(identity.chain(), identity.key()).map_err(unusable)?
        }
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.resumption = Resumption::disabled();
    Ok(Arc::new(QuicClientConfig::try_from(config).map_err(unusable)?))
}

/// The side that accepts: shows its certificate, and believes one that is shown
/// only if it is from the authority. Viewers show none.
pub(crate) fn server(
    authority: &Authority,
    identity: &Identity,
) -> Result<Arc<QuicServerConfig>, EndpointError> {
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots(authority)?), provider())
        .allow_unauthenticated()
        .build()
        .map_err(unusable)?;
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .map_err(unusable)?
        .with_client_cert_verifier(verifier)
        .with_single_cert(identity.chain(), identity.key())
        .map_err(unusable)?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.send_tls13_tickets = 0;
    Ok(Arc::new(QuicServerConfig::try_from(config).map_err(unusable)?))
}

/// Whether the first certificate of `chain` carries the name of `peer`.
pub(crate) fn names(chain: &[CertificateDer<'_>], peer: PeerId) -> bool {
    let Some(certificate) = chain.first() else { return false };
    let Ok(parsed) = ParsedCertificate::try_from(certificate) else { return false };
    let Ok(name) = ServerName::try_from(dns_name(peer)) else { return false };
    verify_server_name(&parsed, &name).is_ok()
}

/// Whether what a connection's peer showed at the handshake names `peer`.
pub(crate) fn proves(shown: Option<Box<dyn Any>>, peer: PeerId) -> bool {
    let chain = shown.and_then(|shown| shown.downcast::<Vec<CertificateDer<'static>>>().ok());
    chain.is_some_and(|chain| names(&chain, peer))
}
