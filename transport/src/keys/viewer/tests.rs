#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]

use super::*;
use crate::keys::{CA_FILE, Keys};
use media::Quality;
use proptest::prelude::*;
use protocol::node::autonomy::Sla;
use protocol::token::Promise;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::LazyLock;

fn made() -> (tempfile::TempDir, Keys, ViewerKey) {
    let folder = tempfile::tempdir().unwrap();
    let keys = Keys::init(folder.path()).unwrap();
    let promise =
        Promise { viewer: "anna".parse().unwrap(), sla: Sla::Vip, top: Quality::SILVER, until: 1000 };
    let key = ViewerKey { authority: keys.authority().unwrap(), token: keys.sign(promise).unwrap() };
    (folder, keys, key)
}

static PEM: LazyLock<String> = LazyLock::new(|| made().2.to_pem().unwrap());

#[test]
fn one_private_file_holds_all_that_a_player_needs() {
    let (folder, _keys, key) = made();
    let path = folder.path().join("anna.lamina-key");
    key.write(&path).unwrap();
    assert_eq!(ViewerKey::load(&path).unwrap(), key);
    assert_eq!(key.claims(1000).unwrap().top, Quality::SILVER);
    assert!(matches!(key.claims(1001), Err(TokenError::Expired { until: 1000, .. })));
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    // Whoever only looks for certificates finds the authority's.
    assert_eq!(Authority::load(&path).unwrap(), key.authority);
}

#[test]
fn a_key_is_whole_or_absent_and_never_overwritten() {
    let (folder, _keys, key) = made();
    let path = folder.path().join("anna.lamina-key");
    fs::write(&path, "mine").unwrap();
    assert!(matches!(key.write(&path), Err(KeysError::Exists { .. })));
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    let nowhere = folder.path().join("nowhere/anna.lamina-key");
    assert!(matches!(key.write(&nowhere), Err(KeysError::Write { .. })));
    let mut left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["anna.lamina-key", "ca.key", CA_FILE, "peers"]);
}

#[test]
fn a_token_beside_another_authority_is_no_key() {
    let (folder, _keys, key) = made();
    let (_other, theirs, _) = made();
    let torn = ViewerKey { authority: theirs.authority().unwrap(), token: key.token };
    let path = folder.path().join("torn");
    assert!(matches!(torn.write(&path), Err(KeysError::Make(_))));
    assert!(!path.exists());
}

#[test]
fn damaged_files_say_what_is_wrong() {
    let (folder, keys, _key) = made();
    let ca = fs::read_to_string(keys.folder().join(CA_FILE)).unwrap();
    let token = PEM[PEM.find(TOKEN_BEGINS).unwrap()..].to_owned();
    let cases = [
        (String::new(), "one certificate"),
        (ca.clone(), "one token"),
        (token.clone(), "one certificate"),
        (format!("{ca}{token}"), "did not sign"),
        (format!("{}{token}", *PEM), "one token"),
        (format!("{ca}{}", *PEM), "one certificate"),
        (PEM.replace(TOKEN_ENDS, ""), "end marker"),
        (PEM.replace(TOKEN_BEGINS, &format!("{TOKEN_BEGINS}\nAAAA")), "no token of this version"),
        (format!("{}{}", " ".repeat(100_000), *PEM), "one certificate"),
    ];
    for (text, says) in cases {
        let path = folder.path().join("key");
        fs::write(&path, &text).unwrap();
        let error = ViewerKey::load(&path).unwrap_err();
        assert!(matches!(error, KeysError::Malformed { .. }), "{error:?}");
        assert!(error.to_string().contains(says), "{says:?} is not in {error}");
    }
    assert!(matches!(ViewerKey::load(&folder.path().join("none")), Err(KeysError::Read { .. })));
    fs::write(folder.path().join("key"), [0xff; 100]).unwrap();
    assert!(matches!(ViewerKey::load(&folder.path().join("key")), Err(KeysError::Read { .. })));
}

proptest! {
    #[test]
    fn a_bent_file_is_the_same_key_or_none(place in any::<prop::sample::Index>(), other in any::<u8>()) {
        // White space and what stands between the blocks may differ; a certificate may be bent
        // outside its key and then fails at the handshake, never here into another promise.
        let mut bent = PEM.clone().into_bytes();
        let place = place.index(bent.len());
        bent[place] = other;
        if let Ok(key) = ViewerKey::from_pem(&String::from_utf8_lossy(&bent)) {
            prop_assert_eq!(key.token, ViewerKey::from_pem(&PEM).unwrap().token);
        }
    }
}
