#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]

use super::*;
use media::Quality;
use proptest::prelude::*;
use protocol::node::autonomy::Sla;
use std::sync::LazyLock;

const UNTIL: u64 = 2_000_000_000;

struct Cluster {
    _folder: tempfile::TempDir,
    keys: Keys,
    authority: Authority,
}

fn cluster() -> Cluster {
    let folder = tempfile::tempdir().unwrap();
    let keys = Keys::init(folder.path()).unwrap();
    let authority = keys.authority().unwrap();
    Cluster { _folder: folder, keys, authority }
}

static OURS: LazyLock<Cluster> = LazyLock::new(cluster);
static TOKEN: LazyLock<SignedToken> = LazyLock::new(|| OURS.keys.sign(promise()).unwrap());

fn promise() -> Promise {
    Promise { viewer: "anna".parse().unwrap(), sla: Sla::Vip, top: Quality::GOLD, until: UNTIL }
}

#[test]
fn what_was_signed_is_claimed_until_its_last_second() {
    let claims = Claims { sla: Sla::Vip, top: Quality::GOLD };
    assert_eq!(OURS.authority.claims(&TOKEN, 0), Ok(claims));
    assert_eq!(OURS.authority.claims(&TOKEN, UNTIL), Ok(claims));
    let expired = TokenError::Expired { viewer: "anna".parse().unwrap(), until: UNTIL };
    assert_eq!(OURS.authority.claims(&TOKEN, UNTIL + 1), Err(expired));
}

#[test]
fn another_clusters_promise_is_worth_nothing_here() {
    let theirs = cluster();
    let token = theirs.keys.sign(promise()).unwrap();
    assert_eq!(OURS.authority.claims(&token, 0), Err(TokenError::NotSigned));
    assert_eq!(theirs.authority.claims(&TOKEN, 0), Err(TokenError::NotSigned));
}

#[test]
fn a_promise_cannot_be_made_bigger() {
    let bigger = [
        Promise { sla: Sla::Normal, ..promise() },
        Promise { top: Quality(4), ..promise() },
        Promise { until: u64::MAX, ..promise() },
        Promise { viewer: "bert".parse().unwrap(), ..promise() },
    ];
    for promise in bigger {
        let token = SignedToken { promise, signature: TOKEN.signature.clone() };
        assert_eq!(OURS.authority.claims(&token, 0), Err(TokenError::NotSigned), "{promise:?}");
    }
}

#[test]
fn the_authoritys_signature_over_anything_else_is_no_token() {
    // The promise without the words in front of it, signed by the right key.
    let key = KeyPair::from_pem(&files::read(&OURS.keys.folder.join(CA_KEY_FILE)).unwrap()).unwrap();
    let signature = key.sign(&postcard::to_stdvec(&promise()).unwrap()).unwrap();
    let token = SignedToken { promise: promise(), signature };
    assert_eq!(OURS.authority.claims(&token, 0), Err(TokenError::NotSigned));
}

#[test]
fn a_signature_beyond_its_bound_is_not_even_looked_at() {
    let token = SignedToken { promise: promise(), signature: vec![0; MAX_SIGNATURE_BYTES + 1] };
    assert_eq!(OURS.authority.claims(&token, 0), Err(TokenError::NotSigned));
    assert_eq!(token_to_text(&token), Err(TokenError::NotSigned));
    let text = STANDARD.encode(postcard::to_stdvec(&token).unwrap());
    assert_eq!(token_from_text(&text), Err(TokenError::Malformed));
}

#[test]
fn text_is_one_line_and_read_back() {
    let text = token_to_text(&TOKEN).unwrap();
    assert!(text.len() < 200 && !text.contains(char::is_whitespace), "{text}");
    assert_eq!(token_from_text(&format!(" {text}\n")).as_ref(), Ok(&*TOKEN));
    for bad in ["", "lamina", &text[..text.len() - 4], &format!("{text}AAAA"), &"A".repeat(100_000)] {
        assert_eq!(token_from_text(bad), Err(TokenError::Malformed));
    }
}

#[test]
fn every_bent_bit_of_a_token_is_noticed() {
    let bytes = postcard::to_stdvec(&*TOKEN).unwrap();
    for place in 0..bytes.len() {
        for bit in 0..8 {
            let mut bent = bytes.clone();
            bent[place] ^= 1 << bit;
            let believed =
                token_from_text(&STANDARD.encode(bent)).and_then(|token| OURS.authority.claims(&token, 0));
            assert!(believed.is_err(), "bit {bit} of byte {place}: {believed:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn every_bent_byte_is_an_error(place in any::<prop::sample::Index>(), other in any::<u8>()) {
        let text = token_to_text(&TOKEN).unwrap();
        let mut bent = text.clone().into_bytes();
        let place = place.index(bent.len());
        prop_assume!(bent[place] != other);
        bent[place] = other;
        let bent = String::from_utf8_lossy(&bent).into_owned();
        // At an end a letter can become white space, which is left out: the rest is too short.
        let believed = token_from_text(&bent).and_then(|token| OURS.authority.claims(&token, 0));
        prop_assert!(believed.is_err(), "{:?}", believed);
    }

    #[test]
    fn hostile_text_is_an_error(text in "\\PC{0,200}", bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for text in [text, STANDARD.encode(bytes)] {
            let believed = token_from_text(&text).and_then(|token| OURS.authority.claims(&token, 0));
            prop_assert!(believed.is_err(), "{:?}", believed);
        }
    }
}
