//! Promises that are taken back before they expire: a list in the folder of keys,
//! signed like the promises themselves, which nodes read anew whenever it changes.
//!
//! A token is named by the BLAKE3 hash of what was signed, not of the signature: of
//! one promise ECDSA allows many. It leaves the list once it has expired anyway. As
//! a file the list is one line, the base64 of its postcard body.

use super::token::signed_bytes;
use super::{Authority, CA_KEY_FILE, Keys, KeysError, files, making};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use media::Hash;
use protocol::PeerId;
use protocol::token::{MAX_SIGNATURE_BYTES, SignedToken};
use rcgen::{KeyPair, SigningKey as _};
use serde::{Deserialize, Serialize};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

/// The list, in a folder of keys.
pub const REVOKED_FILE: &str = "revoked";
/// The most that is taken back at once; a list of so many fits into what is read.
pub const MAX_REVOKED: usize = 1000;
/// What every signature over a list begins with.
const DOMAIN: &[u8] = b"lamina revoked 1\0";

/// Something that was taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Revoked {
    /// One promise, until it would have expired.
    Token {
        /// BLAKE3 of what was signed.
        hash: Hash,
        /// The last second of the Unix epoch at which it would have held.
        until: u64,
    },
    /// Every promise to this viewer, for ever.
    Viewer(PeerId),
}

impl Revoked {
    /// One token, whoever signed it.
    pub fn token(token: &SignedToken) -> Result<Self, KeysError> {
        let bytes = signed_bytes(&token.promise).ok_or_else(|| KeysError::Make("no promise".to_owned()))?;
        Ok(Self::Token { hash: Hash::of(&bytes), until: token.promise.until })
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct SignedList {
    list: Vec<Revoked>,
    signature: Vec<u8>,
}

impl Keys {
    /// Takes something back, with what was taken back before and would still hold
    /// at `now`, in seconds of the Unix epoch. How much is on the list.
    ///
    /// # Errors
    /// The list is not this cluster's, or full; nothing is changed.
    pub fn revoke(&self, what: Revoked, now: u64) -> Result<usize, KeysError> {
        let path = self.folder.join(REVOKED_FILE);
        let mut list = read(&self.authority()?, &path)?;
        list.retain(|revoked| match revoked {
            Revoked::Token { until, .. } => *until >= now,
            Revoked::Viewer(_) => true,
        });
        list.push(what);
        list.sort_unstable();
        list.dedup();
        if list.len() > MAX_REVOKED {
            let why = format!("it would name more than {MAX_REVOKED} promises");
            return Err(KeysError::Malformed { path, why });
        }
        let ca_key = self.folder.join(CA_KEY_FILE);
        let key = KeyPair::from_pem(&files::read(&ca_key)?)
            .map_err(|error| KeysError::Malformed { path: ca_key, why: error.to_string() })?;
        let bytes = postcard::to_extend(&list, DOMAIN.to_vec());
        let bytes = bytes.map_err(|error| KeysError::Make(error.to_string()))?;
        let signed = SignedList { list, signature: key.sign(&bytes).map_err(making)? };
        let text = postcard::to_stdvec(&signed).map_err(|error| KeysError::Make(error.to_string()))?;
        files::replace(&path, format!("{}\n", STANDARD.encode(text)).as_bytes(), files::Reader::Everybody)?;
        Ok(signed.list.len())
    }
}

/// What is taken back; nothing where there is no list.
fn read(authority: &Authority, path: &Path) -> Result<Vec<Revoked>, KeysError> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let malformed = |why: &str| KeysError::Malformed { path: path.to_owned(), why: why.to_owned() };
    let text = files::read(path)?;
    let bytes = STANDARD.decode(text.trim()).map_err(|_| malformed("it is no list"))?;
    let signed: SignedList = postcard::from_bytes(&bytes).map_err(|_| malformed("it is no list"))?;
    if signed.list.len() > MAX_REVOKED || signed.signature.len() > MAX_SIGNATURE_BYTES {
        return Err(malformed("it is too long"));
    }
    let message =
        postcard::to_extend(&signed.list, DOMAIN.to_vec()).map_err(|_| malformed("it is no list"))?;
    authority
        .verifies(&message, &signed.signature)
        .map_err(|_| malformed("the cluster's authority did not sign it"))?;
    Ok(signed.list)
}

/// The list as a node keeps it.
#[derive(Debug)]
pub struct Revocations {
    authority: Authority,
    path: PathBuf,
    known: RwLock<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// Of the file that was read last, readable or not.
    stamp: Option<(u64, u64, i64, i64)>,
    /// Sorted.
    list: Vec<Revoked>,
}

impl Revocations {
    /// The list in a folder of keys, which may not be there yet. Blocks on the
    /// disk.
    ///
    /// # Errors
    /// It is damaged, or not signed by this authority: a node that would believe
    /// what was taken back does not start.
    pub fn load(authority: Authority, folder: &Path) -> Result<Self, KeysError> {
        let path = folder.join(REVOKED_FILE);
        let revocations = Self { authority, path, known: RwLock::default() };
        revocations.refresh()?;
        Ok(revocations)
    }

    /// Reads the list again if the file has changed. Blocks on the disk.
    ///
    /// # Errors
    /// It is damaged, or not signed by this authority; the list that was read
    /// before still counts, and the error is not told again for the same file.
    pub fn refresh(&self) -> Result<(), KeysError> {
        let stamp = self.path.metadata().ok();
        let stamp = stamp.map(|file| (file.ino(), file.len(), file.mtime(), file.mtime_nsec()));
        let changed = self.known.read().unwrap_or_else(PoisonError::into_inner).stamp != stamp;
        if !changed {
            return Ok(());
        }
        let list = read(&self.authority, &self.path);
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.stamp = stamp;
        known.list = list?;
        Ok(())
    }

    /// Whether a promise was taken back.
    pub fn revokes(&self, token: &SignedToken) -> bool {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let named = |revoked: &Revoked| known.list.binary_search(revoked).is_ok();
        // What cannot be named was signed by nobody.
        named(&Revoked::Viewer(token.promise.viewer)) || Revoked::token(token).map_or(true, |of| named(&of))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;
    use media::Quality;
    use protocol::node::autonomy::Sla;
    use protocol::token::Promise;
    use std::fs;

    struct Cluster {
        folder: tempfile::TempDir,
        keys: Keys,
    }

    impl Cluster {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let keys = Keys::init(folder.path()).unwrap();
            Self { folder, keys }
        }

        fn token(&self, name: &str, until: u64) -> SignedToken {
            let viewer = name.parse().unwrap();
            self.keys.sign(Promise { viewer, sla: Sla::Vip, top: Quality::GOLD, until }).unwrap()
        }

        fn node(&self) -> Revocations {
            Revocations::load(self.keys.authority().unwrap(), self.folder.path()).unwrap()
        }
    }

    #[test]
    fn what_is_taken_back_is_refused_as_soon_as_the_list_is_read_again() {
        let cluster = Cluster::new();
        let (node, anna, bert) = (cluster.node(), cluster.token("anna", 100), cluster.token("bert", 100));
        assert!(!node.revokes(&anna));
        assert_eq!(cluster.keys.revoke(Revoked::token(&anna).unwrap(), 0).unwrap(), 1);
        assert!(!node.revokes(&anna), "not read yet");
        node.refresh().unwrap();
        assert_eq!((node.revokes(&anna), node.revokes(&bert)), (true, false));
        // The same promise signed once more is the same promise.
        assert!(node.revokes(&cluster.token("anna", 100)) && !node.revokes(&cluster.token("anna", 101)));
        cluster.keys.revoke(Revoked::Viewer("anna".parse().unwrap()), 0).unwrap();
        node.refresh().unwrap();
        assert_eq!((node.revokes(&cluster.token("anna", 101)), node.revokes(&bert)), (true, false));
    }

    #[test]
    fn expiry_shortens_the_list_and_naming_something_twice_does_not_lengthen_it() {
        let cluster = Cluster::new();
        let revoke = |name, until, now| {
            cluster.keys.revoke(Revoked::token(&cluster.token(name, until)).unwrap(), now).unwrap()
        };
        assert_eq!([revoke("a", 100, 0), revoke("b", 200, 0), revoke("b", 200, 100)], [1, 2, 2]);
        assert_eq!(revoke("c", 300, 101), 2, "a has expired");
    }

    #[test]
    fn a_list_of_somebody_else_or_a_damaged_one_changes_nothing_and_is_told_once() {
        let (cluster, other) = (Cluster::new(), Cluster::new());
        let (node, anna) = (cluster.node(), cluster.token("anna", 100));
        cluster.keys.revoke(Revoked::token(&anna).unwrap(), 0).unwrap();
        node.refresh().unwrap();
        other.keys.revoke(Revoked::Viewer("bert".parse().unwrap()), 0).unwrap();
        let theirs = fs::read(other.folder.path().join(REVOKED_FILE)).unwrap();
        for bad in [theirs, b"what".to_vec(), Vec::new()] {
            fs::write(cluster.folder.path().join(REVOKED_FILE), &bad).unwrap();
            assert!(node.refresh().is_err() && node.refresh().is_ok());
            assert!(node.revokes(&anna) && !node.revokes(&cluster.token("bert", 100)));
            let again = Revocations::load(cluster.keys.authority().unwrap(), cluster.folder.path());
            assert!(again.is_err(), "a node does not begin without it");
            assert!(cluster.keys.revoke(Revoked::token(&anna).unwrap(), 0).is_err(), "nothing is forgotten");
        }
        fs::remove_file(cluster.folder.path().join(REVOKED_FILE)).unwrap();
        node.refresh().unwrap();
        assert!(!node.revokes(&anna));
    }
}
