//! Keys of a device (`docs/l2-format.md`).
//!
//! The *master key* is the owner's. It opens the superblock, and in it the *keyring*, from which
//! everything else comes ([`HolderKeys`], [`Keyring`]). So a change of the master key changes the
//! superblock and nothing else.
//!
//! A segment's keys are derived when it is begun, or first met, and kept in the table of segments.

use super::locked_page::LockedPage;
use super::segment::{SegmentKey, derive};
use super::{Cipher, MasterKey, SecretError};
use crate::format::{KEYRING_BYTES, Superblock};
use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac;
use std::fmt;
use std::sync::Arc;
use zeroize::Zeroizing;

/// The keys of a segment, shared by all its readers.
pub(crate) type SharedKey = Arc<SegmentKey>;

/// The keys for the superblock, derived from the master key.
pub(crate) struct HolderKeys {
    check: [u8; 16],
    superblock: hmac::Key,
    keyring: LessSafeKey,
}

/// The two secrets of a device that outlive a change of its master key.
#[derive(Clone)]
pub(crate) struct Keyring(Arc<LockedPage<KEYRING_BYTES>>);

/// All keys of a device that is in use.
pub(crate) struct DeviceKeys {
    keyring: Keyring,
    device: [u8; 16],
    cipher: Cipher,
    names: Zeroizing<[u8; 32]>,
    /// The random bytes that a restored copy of a running machine would draw, one after the other.
    #[cfg(test)]
    pub(crate) restored: Option<std::sync::atomic::AtomicU8>,
}

impl fmt::Debug for DeviceKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DeviceKeys([redacted])")
    }
}

impl HolderKeys {
    /// The keys to the superblock of a device that has these parts.
    pub(crate) fn new(master: &MasterKey, device: &[u8; 16], salt: &[u8; 32]) -> Self {
        let derive = |purpose: &[u8]| derive(master.expose(), salt, &[purpose, device]);
        let keyring = derive(b"ogive l2 keyring v2");
        let keyring = UnboundKey::new(&AES_256_GCM_SIV, &*keyring).expect("the key has 32 bytes");
        Self {
            check: first_half(&*derive(b"ogive l2 check v2")),
            superblock: hmac::Key::new(hmac::HMAC_SHA256, &*derive(b"ogive l2 superblock v2")),
            keyring: LessSafeKey::new(keyring),
        }
    }

    /// Sixteen bytes that show whether a key is the device's.
    pub(crate) fn check(&self) -> [u8; 16] {
        self.check
    }

    /// Whether these are the keys of a device.
    pub(crate) fn are_right(&self, superblock: &Superblock) -> bool {
        verify_slices_are_equal(&self.check, &superblock.key_check).is_ok()
    }

    /// The message authentication code of a superblock.
    pub(crate) fn mac(&self, covered: &[u8]) -> [u8; 16] {
        first_half(hmac::sign(&self.superblock, covered).as_ref())
    }

    /// Whether the bytes of a superblock were written with the key.
    pub(crate) fn vouch_for(&self, bytes: &[u8]) -> bool {
        Superblock::mac_of(bytes)
            .is_some_and(|(covered, mac)| verify_slices_are_equal(&self.mac(covered), &mac).is_ok())
    }

    /// Seals a keyring into a superblock. AES-GCM-SIV (RFC 8452) because the nonce is the same
    /// each time: two keyrings under one key show that they differ, and nothing else.
    pub(crate) fn lock_up(&self, keyring: &Keyring, superblock: &mut Superblock) {
        superblock.keyring = **keyring.0;
        let nonce = Nonce::assume_unique_for_key([0; 12]);
        let covered = superblock.keyring_covers();
        let tag = self
            .keyring
            .seal_in_place_separate_tag(nonce, Aad::from(covered), &mut superblock.keyring)
            .expect("the message is short enough");
        superblock.keyring_tag.copy_from_slice(tag.as_ref());
    }

    /// Opens the keyring in a superblock, if its seal is right.
    pub(crate) fn unlock(&self, superblock: &Superblock) -> Option<Keyring> {
        let mut keyring = LockedPage::zeroed();
        let nonce = Nonce::assume_unique_for_key([0; 12]);
        let covered = Aad::from(superblock.keyring_covers());
        let (sealed, tag) = (&superblock.keyring, &superblock.keyring_tag);
        self.keyring
            .open_separate_gather(nonce, covered, sealed, tag, &mut *keyring)
            .is_ok()
            .then(|| Keyring(Arc::new(keyring)))
    }
}

impl Keyring {
    /// A new one.
    ///
    /// # Errors
    /// If the system has no random bytes.
    pub(crate) fn random() -> Result<Self, SecretError> {
        let mut keyring = LockedPage::zeroed();
        getrandom::fill(&mut *keyring).map_err(SecretError::Random)?;
        Ok(Self(Arc::new(keyring)))
    }

    /// One with these bytes.
    pub(crate) fn filled(fill: impl FnOnce(&mut [u8])) -> Self {
        let mut keyring = LockedPage::zeroed();
        fill(&mut *keyring);
        Self(Arc::new(keyring))
    }

    fn volume(&self) -> &[u8] {
        &self.0[..32]
    }

    /// The secret that makes versions of files unpredictable: the same on all devices of a tier.
    pub(crate) fn versions(&self) -> &[u8; 32] {
        self.0.last_chunk().expect("a keyring is longer")
    }

    /// The same with another secret of versions.
    pub(crate) fn with_versions(&self, secret: &[u8; 32]) -> Self {
        let mut keyring = LockedPage::zeroed();
        keyring[..32].copy_from_slice(self.volume());
        keyring[32..].copy_from_slice(secret);
        Self(Arc::new(keyring))
    }
}

impl DeviceKeys {
    /// Derives the keys of a device.
    pub(crate) fn new(keyring: Keyring, cipher: Cipher, device: [u8; 16]) -> Self {
        let names = derive(keyring.volume(), &[0; 32], &[b"ogive l2 name v2", &device]);
        Self {
            names,
            keyring,
            device,
            cipher,
            #[cfg(test)]
            restored: None,
        }
    }

    /// The keyed hash that names a record on the device.
    pub(crate) fn name(&self, name: &[u8]) -> [u8; 16] {
        first_half(blake3::keyed_hash(&self.names, name).as_bytes())
    }

    /// The secret of versions.
    pub(crate) fn versions(&self) -> &[u8; 32] {
        self.keyring.versions()
    }

    /// The keys of the segment with this salt.
    pub(crate) fn segment(&self, salt: &[u8; 32]) -> SharedKey {
        Arc::new(SegmentKey::derive(self.keyring.volume(), self.cipher, &self.device, salt))
    }

    /// The salt and the keys of a segment that is begun.
    ///
    /// # Errors
    /// If the system has no random bytes.
    pub(crate) fn begin_segment(&self) -> Result<([u8; 32], SharedKey), SecretError> {
        let mut salt = [0; 32];
        getrandom::fill(&mut salt).map_err(SecretError::Random)?;
        #[cfg(test)]
        if let Some(restored) = &self.restored {
            salt = [restored.fetch_add(1, std::sync::atomic::Ordering::Relaxed); 32];
        }
        Ok((salt, self.segment(&salt)))
    }
}

fn first_half(bytes: &[u8]) -> [u8; 16] {
    bytes[..16].try_into().expect("a hash has 32 bytes")
}
