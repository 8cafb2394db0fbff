//! Boxes for tests, as others write them.

/// A box of this kind.
pub(super) fn boxed(kind: [u8; 4], body: &[u8]) -> Vec<u8> {
    [&u32::try_from(body.len() + 8).unwrap().to_be_bytes()[..], &kind, body].concat()
}

/// Words of four bytes.
pub(super) fn numbers(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
}
