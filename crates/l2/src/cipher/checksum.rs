//! The tag of records that are not sealed: XXH3-128 over all that a seal would bind.

use twox_hash::xxhash3_128::Hasher;

/// The checksum of a message.
pub(super) fn of(nonce: [u8; 12], additional: &[u8], bytes: &[u8]) -> [u8; 16] {
    // The message is hashed in one go and its sum bound to the rest: streaming would be slower.
    let message = Hasher::oneshot(bytes);
    let mut rest = Vec::with_capacity(12 + 16 + additional.len());
    rest.extend_from_slice(&nonce);
    rest.extend_from_slice(&message.to_le_bytes());
    rest.extend_from_slice(additional);
    Hasher::oneshot(&rest).to_le_bytes()
}
