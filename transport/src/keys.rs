//! Who is who: one authority for a cluster, one certificate for each node and
//! proxy, and nothing for viewers but the authority's certificate.
//!
//! A folder of keys holds `ca.pem` (public: viewers need it), `ca.key`, and
//! `peers/NAME.pem` with certificate and key of each peer in one file, so that
//! the pair can never be torn. Certificates carry the DNS names `lamina` and
//! `NAME.lamina`. `revoked` lists promises that were taken back. Everything but this
//! list and `ca.pem` is readable by its owner only. A viewer
//! who was promised something holds one more file, its [`ViewerKey`].

use protocol::PeerId;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

mod files;
pub mod revoked;
pub mod token;
mod viewer;

pub use viewer::ViewerKey;

/// The authority's certificate, in a folder of keys.
pub const CA_FILE: &str = "ca.pem";
const CA_KEY_FILE: &str = "ca.key";
const PEERS_FOLDER: &str = "peers";
/// The DNS name in the certificate of every node and proxy.
pub(crate) const ANYBODY: &str = "lamina";
/// The longest PEM file that is read, in bytes.
const MAX_PEM: u64 = 64 * 1024;

/// The DNS name that stands for `peer` in its certificate.
pub(crate) fn dns_name(peer: PeerId) -> String {
    format!("{peer}.{ANYBODY}")
}

/// A folder with the authority's key, able to issue certificates.
#[derive(Clone, Debug)]
pub struct Keys {
    folder: PathBuf,
}

/// The certificate by which others are believed.
#[derive(Clone, PartialEq, Eq)]
pub struct Authority(CertificateDer<'static>);

/// A peer's certificate and private key.
#[derive(Clone)]
pub struct Identity {
    peer: PeerId,
    chain: Vec<CertificateDer<'static>>,
    key: Arc<PrivatePkcs8KeyDer<'static>>,
}

impl Keys {
    /// `$XDG_DATA_HOME/lamina/keys`, or `~/.local/share/lamina/keys`.
    pub fn default_folder() -> Result<PathBuf, KeysError> {
        let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        absolute("XDG_DATA_HOME")
            .or_else(|| absolute("HOME").map(|home| home.join(".local/share")))
            .map(|data| data.join("lamina/keys"))
            .ok_or(KeysError::NoHome)
    }

    /// Makes a new authority in `folder`, which may exist.
    ///
    /// # Errors
    /// [`KeysError::Exists`] if there is one already: nothing is overwritten.
    pub fn init(folder: &Path) -> Result<Self, KeysError> {
        let key = KeyPair::generate().map_err(making)?;
        let certificate = authority_params()?.self_signed(&key).map_err(making)?;
        files::make_folder(&folder.join(PEERS_FOLDER))?;
        // The key first: whoever sees a certificate can issue.
        files::create(&folder.join(CA_KEY_FILE), key.serialize_pem().as_bytes(), files::Reader::Owner)?;
        files::create(&folder.join(CA_FILE), certificate.pem().as_bytes(), files::Reader::Everybody)?;
        Ok(Self { folder: folder.to_owned() })
    }

    /// Opens a folder made by [`Keys::init`].
    pub fn open(folder: &Path) -> Result<Self, KeysError> {
        let here = |name| folder.join(name).is_file();
        if here(CA_FILE) && here(CA_KEY_FILE) {
            Ok(Self { folder: folder.to_owned() })
        } else {
            Err(KeysError::NoKeys { folder: folder.to_owned() })
        }
    }

    /// Opens `folder`, or makes a new authority there if there is none.
    pub fn open_or_init(folder: &Path) -> Result<Self, KeysError> {
        match Self::open(folder) {
            Err(KeysError::NoKeys { .. }) => match Self::init(folder) {
                // Somebody else was faster.
                Err(KeysError::Exists { .. }) => Self::open(folder),
                made => made,
            },
            opened => opened,
        }
    }

    /// Where the keys lie.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The authority's certificate.
    pub fn authority(&self) -> Result<Authority, KeysError> {
        Authority::load(&self.folder)
    }

    /// The certificate of `peer`, made now if there is none yet.
    pub fn identity(&self, peer: PeerId) -> Result<Identity, KeysError> {
        Identity::obtain(&self.folder, peer)
    }

    /// Makes a certificate for `peer` and keeps it, replacing an older one.
    pub fn issue(&self, peer: PeerId) -> Result<Identity, KeysError> {
        if peer.as_str().starts_with('-') || peer.as_str().ends_with('-') {
            return Err(KeysError::Name(peer));
        }
        let path = self.folder.join(CA_KEY_FILE);
        let malformed =
            |error: rcgen::Error| KeysError::Malformed { path: path.clone(), why: error.to_string() };
        let ca_key = KeyPair::from_pem(&files::read(&path)?).map_err(malformed)?;
        let issuer = Issuer::new(authority_params()?, ca_key);
        let key = KeyPair::generate().map_err(making)?;
        let mut params = CertificateParams::new(vec![ANYBODY.to_owned(), dns_name(peer)]).map_err(making)?;
        params.distinguished_name.push(DnType::CommonName, peer.as_str());
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = params.signed_by(&key, &issuer).map_err(making)?;
        let pem = format!("{}{}", certificate.pem(), key.serialize_pem());
        files::make_folder(&self.folder.join(PEERS_FOLDER))?;
        files::replace(&identity_path(&self.folder, peer), pem.as_bytes(), files::Reader::Owner)?;
        Ok(Identity {
            peer,
            chain: vec![certificate.der().clone()],
            key: Arc::new(PrivatePkcs8KeyDer::from(key.serialize_der())),
        })
    }
}

/// What every authority made here says of itself, so that its key alone is
/// enough to issue in its name.
fn authority_params() -> Result<CertificateParams, KeysError> {
    let mut params = CertificateParams::new(Vec::new()).map_err(making)?;
    params.distinguished_name.push(DnType::CommonName, "Lamina cluster authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages =
        vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
    Ok(params)
}

fn identity_path(folder: &Path, peer: PeerId) -> PathBuf {
    folder.join(PEERS_FOLDER).join(format!("{peer}.pem"))
}

#[allow(clippy::needless_pass_by_value, reason = "used as a function of map_err")]
fn making(error: rcgen::Error) -> KeysError {
    KeysError::Make(error.to_string())
}

impl Authority {
    /// Reads a `ca.pem`, or the one in a folder of keys.
    pub fn load(path: &Path) -> Result<Self, KeysError> {
        let in_folder = path.join(CA_FILE);
        if path.is_dir() && !in_folder.exists() {
            return Err(KeysError::NoKeys { folder: path.to_owned() });
        }
        let path = if path.is_dir() { in_folder } else { path.to_owned() };
        let pem = files::read(&path)?;
        CertificateDer::from_pem_slice(pem.as_bytes())
            .map(Self)
            .map_err(|error| KeysError::Malformed { path, why: error.to_string() })
    }

    pub(crate) fn certificate(&self) -> &CertificateDer<'static> {
        &self.0
    }
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Authority({:?})", media::Hash::of(&self.0))
    }
}

impl Identity {
    /// Reads the certificate of `peer` from a folder of keys; the authority's
    /// key is not needed, so that a machine can be given just this.
    pub fn load(folder: &Path, peer: PeerId) -> Result<Self, KeysError> {
        let path = identity_path(folder, peer);
        if !path.exists() {
            return Err(KeysError::NoIdentity { peer, folder: folder.to_owned() });
        }
        let pem = files::read(&path)?;
        let malformed = |error: rustls::pki_types::pem::Error| KeysError::Malformed {
            path: path.clone(),
            why: error.to_string(),
        };
        let chain: Vec<_> =
            CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<_, _>>().map_err(malformed)?;
        let key = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes()).map_err(malformed)?;
        if !crate::tls::names(&chain, peer) {
            let why = format!("it is not the certificate of {peer}");
            return Err(KeysError::Malformed { path, why });
        }
        Ok(Self { peer, chain, key: Arc::new(key) })
    }

    /// The certificate of `peer` in a folder of keys, made now if there is none
    /// and the authority's key is there.
    pub fn obtain(folder: &Path, peer: PeerId) -> Result<Self, KeysError> {
        match (Self::load(folder, peer), Keys::open(folder)) {
            (Err(KeysError::NoIdentity { .. }), opened) => opened?.issue(peer),
            (loaded, _) => loaded,
        }
    }

    /// The peer that the certificate names.
    pub fn peer(&self) -> PeerId {
        self.peer
    }

    pub(crate) fn chain(&self) -> Vec<CertificateDer<'static>> {
        self.chain.clone()
    }

    pub(crate) fn key(&self) -> PrivateKeyDer<'static> {
        self.key.clone_key().into()
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({})", self.peer)
    }
}

/// Why keys cannot be made or read. Nothing half-written is visible.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// Neither `XDG_DATA_HOME` nor `HOME` says where keys belong.
    #[error("neither XDG_DATA_HOME nor HOME is set, so there is no place for keys")]
    NoHome,
    /// There is no authority in the folder. `lamina keys init` makes one.
    #[error("there are no keys in {}", folder.display())]
    NoKeys {
        /// The folder.
        folder: PathBuf,
    },
    /// There is no certificate of this peer in the folder.
    #[error("there is no certificate of {peer} in {}", folder.display())]
    NoIdentity {
        /// The peer.
        peer: PeerId,
        /// The folder.
        folder: PathBuf,
    },
    /// There is an authority already.
    #[error("{} exists and is not replaced", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file or folder cannot be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file does not hold what its name says.
    #[error("{} is damaged: {why}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A name that cannot stand in a certificate.
    #[error("{0} cannot stand in a certificate: it starts or ends with a hyphen")]
    Name(PeerId),
    /// A certificate cannot be made.
    #[error("a certificate cannot be made: {0}")]
    Make(String),
}
