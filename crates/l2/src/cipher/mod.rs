//! Seals: what makes stolen bytes unreadable and changed bytes unusable.
//!
//! A seal takes a nonce, additional data and bytes. The caller (`store`) makes sure that no nonce
//! is used twice under a key. This module makes sure that a wrong tag never lets a byte out. A
//! failed opening wipes its destination before it returns.

mod checksum;
mod keys;
mod locked_page;
mod secret;
mod segment;

pub(crate) use keys::{DeviceKeys, HolderKeys, Keyring, SharedKey};
pub use secret::{MasterKey, Passphrase, SecretError, derive_from_passphrase};
pub use segment::{Purpose, SegmentKey};

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use std::fmt;

/// How records are sealed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Cipher {
    /// Not at all: a checksum finds damage, nothing is secret.
    Off,
    /// AES-256-GCM (NIST SP 800-38D).
    #[default]
    Gcm,
}

impl Cipher {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Off, Self::Gcm];

    /// Its number on a device. Number 2 was AES-256-CCM, and is not given out again.
    pub fn number(self) -> u32 {
        self as u32
    }

    /// The cipher of a number.
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|cipher| cipher.number() == number)
    }

    /// Its name, as on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Gcm => "aes-256-gcm",
        }
    }
}

impl fmt::Display for Cipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A cipher with its key.
pub struct Seal(Kind);

enum Kind {
    Off,
    Gcm(Box<LessSafeKey>),
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal([redacted])")
    }
}

impl Seal {
    /// A cipher under a key.
    pub fn new(cipher: Cipher, key: &[u8; 32]) -> Self {
        Self(match cipher {
            Cipher::Off => Kind::Off,
            Cipher::Gcm => {
                let key = UnboundKey::new(&AES_256_GCM, key).expect("the key has 32 bytes");
                Kind::Gcm(Box::new(LessSafeKey::new(key)))
            }
        })
    }

    /// Seals bytes in place and returns the tag.
    ///
    /// # Panics
    /// If `bytes` are more than a message may have; records and summaries are bounded far below.
    pub fn seal(&self, nonce: [u8; 12], additional: &[u8], bytes: &mut [u8]) -> [u8; 16] {
        match &self.0 {
            Kind::Off => checksum::of(nonce, additional, bytes),
            Kind::Gcm(key) => {
                let nonce = Nonce::assume_unique_for_key(nonce);
                let tag = key
                    .seal_in_place_separate_tag(nonce, Aad::from(additional), bytes)
                    .expect("the message is short enough");
                tag.as_ref().try_into().expect("the tag has 16 bytes")
            }
        }
    }

    /// Opens sealed bytes into `plain`, which has their length. If it returns false, `plain`
    /// holds zeroes.
    #[must_use]
    pub fn open(
        &self,
        nonce: [u8; 12],
        additional: &[u8],
        tag: [u8; 16],
        sealed: &[u8],
        plain: &mut [u8],
    ) -> bool {
        if sealed.len() != plain.len() {
            plain.fill(0);
            return false;
        }
        let opened = match &self.0 {
            Kind::Off => {
                let right = checksum::of(nonce, additional, sealed) == tag;
                if right {
                    plain.copy_from_slice(sealed);
                }
                right
            }
            Kind::Gcm(key) => {
                let nonce = Nonce::assume_unique_for_key(nonce);
                let aad = Aad::from(additional);
                key.open_separate_gather(nonce, aad, sealed, &tag, plain).is_ok()
            }
        };
        if !opened {
            plain.fill(0);
        }
        opened
    }

    /// Whether opening copies the bytes as they are: the time it takes is a copy's then.
    pub fn is_checksum(&self) -> bool {
        matches!(self.0, Kind::Off)
    }
}

/// The nonce of a message: what depends on the message, and its number in the segment.
pub fn nonce(salt: [u8; 8], number: u32) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[..8].copy_from_slice(&salt);
    nonce[8..].copy_from_slice(&number.to_be_bytes());
    nonce
}
