//! The master key, and how it comes from what a person can remember.

use super::locked_page::LockedPage;
use crate::format::KdfParameters;
use argon2::{Algorithm, Argon2, Params, Version};
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;
use zeroize::Zeroizing;

/// Length of the master key in bytes.
const MASTER_KEY_BYTES: usize = 32;

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    /// The system gave no random bytes.
    #[error("the system gave no random bytes: {0}")]
    Random(getrandom::Error),
    /// Key material of the wrong length.
    #[error("a key is 32 bytes, raw or as 64 hexadecimal digits; this has {0} bytes")]
    Length(usize),
    /// argon2id refused.
    #[error("the passphrase gives no key: {0}")]
    Kdf(argon2::Error),
    /// Nothing was typed.
    #[error("the passphrase is empty")]
    Empty,
}

/// 32 bytes that open a device. There is one copy, locked in memory, left out of core dumps and
/// wiped when the last clone is dropped; it is never shown.
#[derive(Clone)]
pub struct MasterKey(Arc<LockedPage<MASTER_KEY_BYTES>>);

/// A passphrase that a person typed, until all devices have been opened with it. Clones share it,
/// so one of them can wipe it for all. Never shown.
#[derive(Clone)]
pub struct Passphrase(Arc<Mutex<Zeroizing<Vec<u8>>>>);

impl fmt::Debug for Passphrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Passphrase([redacted])")
    }
}

impl From<Zeroizing<Vec<u8>>> for Passphrase {
    fn from(typed: Zeroizing<Vec<u8>>) -> Self {
        Self(Arc::new(Mutex::new(typed)))
    }
}

impl Passphrase {
    /// Wipes it, in all clones. From then on it is empty, and gives no key.
    pub fn forget(&self) {
        *self.0.lock() = Zeroizing::default();
    }

    /// The key that argon2id derives from it: see [`derive_from_passphrase`].
    ///
    /// # Errors
    /// The same.
    pub fn derive(
        &self,
        salt: &[u8; 32],
        parameters: KdfParameters,
    ) -> Result<MasterKey, SecretError> {
        derive_from_passphrase(&self.0.lock(), salt, parameters)
    }
}

impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MasterKey([redacted])")
    }
}

impl MasterKey {
    /// A key of random bytes.
    ///
    /// # Errors
    /// If the system has none.
    pub fn random() -> Result<Self, SecretError> {
        let mut key = LockedPage::zeroed();
        getrandom::fill(&mut *key).map_err(SecretError::Random)?;
        Ok(Self(Arc::new(key)))
    }

    /// The key in a key file: 32 raw bytes, or 64 hexadecimal digits with white space around.
    ///
    /// # Errors
    /// [`SecretError::Length`].
    pub fn from_material(material: &[u8]) -> Result<Self, SecretError> {
        let mut key = LockedPage::<MASTER_KEY_BYTES>::zeroed();
        if material.len() == MASTER_KEY_BYTES {
            key.copy_from_slice(material);
            return Ok(Self(Arc::new(key)));
        }
        let digits = material.trim_ascii();
        let wrong = SecretError::Length(material.len());
        let (pairs, []) = digits.as_chunks::<2>() else {
            return Err(wrong);
        };
        if pairs.len() != MASTER_KEY_BYTES {
            return Err(wrong);
        }
        for (byte, pair) in key.iter_mut().zip(pairs) {
            let digit = |digit: u8| char::from(digit).to_digit(16);
            match (digit(pair[0]), digit(pair[1])) {
                (Some(high), Some(low)) => *byte = (high << 4 | low) as u8,
                _ => return Err(wrong),
            }
        }
        Ok(Self(Arc::new(key)))
    }

    /// The bytes, to be kept in a file.
    pub fn expose(&self) -> &[u8; MASTER_KEY_BYTES] {
        &self.0
    }
}

/// The key that argon2id (RFC 9106) makes of a passphrase.
///
/// # Errors
/// For an empty passphrase, and if there is not the memory it takes.
pub fn derive_from_passphrase(
    passphrase: &[u8],
    salt: &[u8; 32],
    parameters: KdfParameters,
) -> Result<MasterKey, SecretError> {
    if passphrase.is_empty() {
        return Err(SecretError::Empty);
    }
    let KdfParameters { memory_kib, passes, lanes } = parameters;
    let params = Params::new(memory_kib, passes, lanes, Some(MASTER_KEY_BYTES));
    let argon2 =
        Argon2::new(Algorithm::Argon2id, Version::V0x13, params.map_err(SecretError::Kdf)?);
    let mut key = LockedPage::<MASTER_KEY_BYTES>::zeroed();
    argon2.hash_password_into(passphrase, salt, &mut *key).map_err(SecretError::Kdf)?;
    Ok(MasterKey(Arc::new(key)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_raw_or_hexadecimal_and_nothing_else() {
        let raw = [0xab; 32];
        assert_eq!(MasterKey::from_material(&raw).unwrap().expose(), &raw);
        let digits = format!("{}\n", "aB".repeat(32));
        assert_eq!(MasterKey::from_material(digits.as_bytes()).unwrap().expose(), &raw);
        for wrong in [&b""[..], &[1; 31], &[1; 33], "g".repeat(64).as_bytes(), &[b'1'; 63]] {
            assert!(MasterKey::from_material(wrong).is_err(), "{} bytes", wrong.len());
        }
    }

    #[test]
    fn a_key_does_not_show_itself() {
        let key = MasterKey::from_material(&[0x41; 32]).unwrap();
        let shown = format!("{key:?}");
        assert!(shown.contains("redacted") && !shown.contains("65") && !shown.contains("41"));
        assert_ne!(MasterKey::random().unwrap().expose(), MasterKey::random().unwrap().expose());
    }

    #[test]
    fn a_passphrase_is_forgotten_in_all_its_copies() {
        let quick = KdfParameters { memory_kib: 64, passes: 1, lanes: 1 };
        let typed = Passphrase::from(Zeroizing::new(b"correct horse".to_vec()));
        let copy = typed.clone();
        assert!(copy.derive(&[1; 32], quick).is_ok());
        assert!(!format!("{copy:?}").contains("horse"));
        typed.forget();
        assert!(matches!(copy.derive(&[1; 32], quick), Err(SecretError::Empty)));
    }

    #[test]
    fn a_passphrase_gives_one_key_a_salt() {
        let quick = KdfParameters { memory_kib: 64, passes: 1, lanes: 1 };
        let key = |phrase: &[u8], salt| derive_from_passphrase(phrase, &[salt; 32], quick).unwrap();
        assert_eq!(key(b"correct horse", 1).expose(), key(b"correct horse", 1).expose());
        assert_ne!(key(b"correct horse", 1).expose(), key(b"correct horse", 2).expose());
        assert_ne!(key(b"correct horse", 1).expose(), key(b"wrong horse", 1).expose());
        assert!(matches!(derive_from_passphrase(b"", &[1; 32], quick), Err(SecretError::Empty)));
    }
}
