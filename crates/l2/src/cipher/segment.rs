//! The keys of one segment, and the nonces under them.
//!
//! Each segment has a key of its own, which 32 random bytes name. That is not enough. A machine may
//! be saved while it runs, and restored twice. Then two copies have the segment open, and may draw
//! the same random bytes. So a nonce depends on the message. It is a number that is used once in a
//! segment, and a keyed hash of the message (a synthetic IV, as in RFC 8452). Two messages under
//! one number have two nonces, and one message twice is sealed to the same bytes.
//!
//! Lengths that a recovery follows have a code of their own, which is cheap to check.

use super::{Cipher, Seal, nonce};
use aws_lc_rs::hkdf;
use std::fmt;
use zeroize::Zeroizing;

/// Memory that AWS-LC allocates for an AES key, in bytes.
const CONTEXT_BYTES: usize = 584;

/// The purpose of a keyed hash; the first byte of its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Purpose {
    /// A segment's header.
    Header = b'h',
    /// A segment's trailer.
    Trailer = b't',
    /// A record's header.
    Record = b'r',
    /// A nonce.
    Nonce = b'n',
}

/// The keys of a segment. Wiped when dropped.
pub struct SegmentKey {
    seal: Seal,
    codes: Zeroizing<[u8; 32]>,
}

impl fmt::Debug for SegmentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SegmentKey([redacted])")
    }
}

impl SegmentKey {
    /// The keys of the segment with this salt.
    pub fn derive(volume: &[u8], cipher: Cipher, device: &[u8; 16], salt: &[u8; 32]) -> Self {
        let number = cipher.number().to_le_bytes();
        let derive = |purpose: &[u8]| derive(volume, salt, &[purpose, device, &number]);
        let seal = Seal::new(cipher, &derive(b"ogive l2 seal v2"));
        Self { seal, codes: derive(b"ogive l2 code v2") }
    }

    fn hash(&self, purpose: Purpose, parts: [&[u8]; 2]) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_keyed(&self.codes);
        hasher.update(&[purpose as u8]);
        parts.iter().for_each(|part| _ = hasher.update(part));
        *hasher.finalize().as_bytes()
    }

    /// The code of bytes that are in clear.
    pub fn code<const LENGTH: usize>(&self, purpose: Purpose, covered: &[u8]) -> [u8; LENGTH] {
        let hash = self.hash(purpose, [covered, &[]]);
        *hash.first_chunk().expect("a code is shorter than a hash")
    }

    /// Whether a code is right.
    pub fn is_code<const LENGTH: usize>(
        &self,
        purpose: Purpose,
        covered: &[u8],
        code: &[u8; LENGTH],
    ) -> bool {
        let right = self.code::<LENGTH>(purpose, covered);
        aws_lc_rs::constant_time::verify_slices_are_equal(&right, code).is_ok()
    }

    /// The part of a message's nonce that depends on the message. Without a seal there is no nonce.
    pub fn salt_of(&self, about: &[u8], message: &[u8]) -> [u8; 8] {
        if self.seal.is_checksum() {
            return [0; 8];
        }
        let hash = self.hash(Purpose::Nonce, [about, message]);
        *hash.first_chunk().expect("a salt is shorter than a hash")
    }

    /// Seals bytes in place and returns the tag.
    pub fn seal(
        &self,
        salt: [u8; 8],
        number: u32,
        additional: &[u8],
        bytes: &mut [u8],
    ) -> [u8; 16] {
        self.seal.seal(nonce(salt, number), additional, bytes)
    }

    /// Opens sealed bytes: see [`Seal::open`].
    #[must_use]
    pub fn open(
        &self,
        (salt, number): ([u8; 8], u32),
        additional: &[u8],
        tag: [u8; 16],
        sealed: &[u8],
        plain: &mut [u8],
    ) -> bool {
        self.seal.open(nonce(salt, number), additional, tag, sealed, plain)
    }

    /// Whether opening copies the bytes as they are.
    pub(crate) fn is_checksum(&self) -> bool {
        self.seal.is_checksum()
    }

    /// Memory that a key takes.
    pub(crate) const fn size_bytes() -> usize {
        // Two counts before it, and what the boxes of its parts lead to.
        size_of::<Self>() + 2 * size_of::<usize>() + CONTEXT_BYTES
    }
}

/// Length of derived keys, in the words of the library.
struct KeyLength;

impl hkdf::KeyType for KeyLength {
    fn len(&self) -> usize {
        32
    }
}

/// 32 bytes by HKDF-SHA256 (RFC 5869).
pub(super) fn derive(secret: &[u8], salt: &[u8; 32], info: &[&[u8]]) -> Zeroizing<[u8; 32]> {
    let mut key = Zeroizing::new([0; 32]);
    hkdf::Salt::new(hkdf::HKDF_SHA256, salt)
        .extract(secret)
        .expand(info, KeyLength)
        .and_then(|output| output.fill(&mut *key))
        .expect("32 bytes are a length that HKDF-SHA256 gives");
    key
}
