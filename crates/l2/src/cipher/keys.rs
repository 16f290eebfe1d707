//! Keys of a device and of its epochs, derived from the master key (`docs/l2-format.md`).
//!
//! An epoch's key belongs to one opening of a device: 32 random bytes name it. Keys of earlier
//! epochs are derived when a segment of theirs is first met, and kept.

use super::{Cipher, MasterKey, Seal, SecretError};
use crate::format::Superblock;
use aws_lc_rs::{hkdf, hmac};
use parking_lot::RwLock;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use zeroize::Zeroizing;

/// The key of one epoch.
pub(crate) type EpochKey = Arc<Seal>;

/// Epochs whose keys are kept; a device with more is asked to derive again.
const EPOCHS_MAX: usize = 4096;

/// All keys of a device.
pub(crate) struct DeviceKeys {
    master: MasterKey,
    device: [u8; 16],
    cipher: Cipher,
    names: hmac::Key,
    superblock: hmac::Key,
    /// A leaf lock, held for a probe.
    epochs: RwLock<HashMap<[u8; 32], EpochKey>>,
}

impl fmt::Debug for DeviceKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DeviceKeys([redacted])")
    }
}

/// Length of derived keys, in the words of the library.
struct KeyLength;

impl hkdf::KeyType for KeyLength {
    fn len(&self) -> usize {
        32
    }
}

impl DeviceKeys {
    /// Derives the keys of a device that is named by these parts of its superblock.
    pub(crate) fn new(
        master: &MasterKey,
        cipher: Cipher,
        device: [u8; 16],
        salt: &[u8; 32],
    ) -> Self {
        let names = derive(master, salt, &[b"ogive l2 name v1", &device]);
        let superblock = derive(master, salt, &[b"ogive l2 superblock v1", &device]);
        Self {
            names: hmac::Key::new(hmac::HMAC_SHA256, &*names),
            superblock: hmac::Key::new(hmac::HMAC_SHA256, &*superblock),
            master: master.clone(),
            device,
            cipher,
            epochs: RwLock::default(),
        }
    }

    /// Sixteen bytes that tell whether a key is the device's.
    pub(crate) fn check(master: &MasterKey, device: &[u8; 16], salt: &[u8; 32]) -> [u8; 16] {
        let check = derive(master, salt, &[b"ogive l2 check v1", device]);
        first_half(&*check)
    }

    /// Whether `master` is the key of a device.
    pub(crate) fn is_right(master: &MasterKey, superblock: &Superblock) -> bool {
        let check = Self::check(master, &superblock.device, &superblock.salt);
        aws_lc_rs::constant_time::verify_slices_are_equal(&check, &superblock.key_check).is_ok()
    }

    /// The message authentication code of a superblock.
    pub(crate) fn superblock_mac(&self, covered: &[u8]) -> [u8; 16] {
        first_half(hmac::sign(&self.superblock, covered).as_ref())
    }

    /// The keyed hash by which a record is known on the device.
    pub(crate) fn name(&self, name: &[u8]) -> [u8; 16] {
        first_half(hmac::sign(&self.names, name).as_ref())
    }

    /// The key of an epoch.
    pub(crate) fn epoch(&self, salt: &[u8; 32]) -> EpochKey {
        if let Some(key) = self.epochs.read().get(salt) {
            return key.clone();
        }
        let cipher = self.cipher.number().to_le_bytes();
        let key = derive(&self.master, salt, &[b"ogive l2 seal v1", &self.device, &cipher]);
        let seal = Arc::new(Seal::new(self.cipher, &key));
        let mut epochs = self.epochs.write();
        if epochs.len() >= EPOCHS_MAX {
            epochs.clear();
        }
        epochs.entry(*salt).or_insert(seal).clone()
    }

    /// Begins an epoch of this process: a key that nobody has sealed with before.
    ///
    /// # Errors
    /// If the system has no random bytes.
    pub(crate) fn begin_epoch(&self) -> Result<([u8; 32], EpochKey), SecretError> {
        let salt = *MasterKey::random()?.expose();
        Ok((salt, self.epoch(&salt)))
    }
}

fn derive(master: &MasterKey, salt: &[u8; 32], info: &[&[u8]]) -> Zeroizing<[u8; 32]> {
    let mut key = Zeroizing::new([0; 32]);
    hkdf::Salt::new(hkdf::HKDF_SHA256, salt)
        .extract(master.expose())
        .expand(info, KeyLength)
        .and_then(|output| output.fill(&mut *key))
        .expect("32 bytes are a length that HKDF-SHA256 gives");
    key
}

fn first_half(bytes: &[u8]) -> [u8; 16] {
    bytes[..16].try_into().expect("an output of SHA-256 is longer")
}
