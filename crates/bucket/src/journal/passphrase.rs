//! The key of a journal with a passphrase: argon2id, with a salt and parameters in a file of the
//! journal. They are not secret. Without them the passphrase cannot open the journal.

use super::directory::{
    PASSPHRASE as NAMES, has_identity, lock, make_directory, refuse_what_is_no_journal,
};
use super::error::JournalError;
use ogive_l2::{KdfParameters, KeySource, MasterKey};
use std::fs::File;

use std::io::{self, Write as _};
use std::path::Path;

const FIRST_LINE: &str = "ogive stage, argon2id, 1";

/// The key that seals a journal's logs. For a passphrase in a new journal this creates the salt.
/// `work_max_kib` limits the memory that is filled, over all passes.
///
/// # Errors
/// [`JournalError::WrongKind`] if a key is given instead of a passphrase, or the other way round;
/// [`JournalError::Costly`]; those of [`Journal::open`](super::Journal::open).
pub fn master_key(
    path: &Path,
    key: &KeySource,
    work_max_kib: u64,
) -> Result<MasterKey, JournalError> {
    let wrong = |was| JournalError::WrongKind { path: path.to_owned(), was };
    let (name, kept) = (path.join(NAMES[0]), read(path)?);
    let (phrase, parameters) = match (key, &kept) {
        (KeySource::Master(master), None) => return Ok(master.clone()),
        (KeySource::Master(_), Some(_)) => return Err(wrong("a passphrase: give that one")),
        (KeySource::Passphrase(phrase, parameters), _) => (phrase, *parameters),
        (KeySource::None, _) => return Err(wrong("a key: give that one")),
    };
    let (salt, parameters) = match kept {
        Some(kept) => kept,
        None if has_identity(path)? => return Err(wrong("a key, not a passphrase: give that key")),
        None => (make(path, parameters)?, parameters),
    };
    let KdfParameters { memory_kib, passes, .. } = parameters;
    if u64::from(memory_kib) * u64::from(passes) > work_max_kib {
        return Err(JournalError::Costly { path: name, memory_kib, passes });
    }
    phrase.derive(&salt, parameters).map_err(JournalError::Secret)
}

fn read(path: &Path) -> Result<Option<([u8; 32], KdfParameters)>, JournalError> {
    let name = path.join(NAMES[0]);
    let text = match std::fs::read_to_string(&name) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(JournalError::io("cannot read", &name, error)),
    };
    let why = "its contents are not those of a passphrase file";
    parse(&text).map(Some).ok_or(JournalError::Damaged { path: name, at: 0, why })
}

fn parse(text: &str) -> Option<([u8; 32], KdfParameters)> {
    let mut lines = text.lines();
    if lines.next()? != FIRST_LINE {
        return None;
    }
    let mut number = || lines.next()?.parse().ok();
    let parameters = KdfParameters { memory_kib: number()?, passes: number()?, lanes: number()? };
    // Two halves, each with the digits of a u128.
    let digits = lines.next().filter(|digits| digits.len() == 64 && digits.is_ascii())?;
    let half = |digits| u128::from_str_radix(digits, 16).ok().map(u128::to_be_bytes);
    let mut salt = [0; 32];
    salt[..16].copy_from_slice(&half(&digits[..32])?);
    salt[16..].copy_from_slice(&half(&digits[32..])?);
    lines.next().is_none().then_some((salt, parameters))
}

/// Creates a salt and stores it durably.
fn make(path: &Path, parameters: KdfParameters) -> Result<[u8; 32], JournalError> {
    make_directory(path)?;
    refuse_what_is_no_journal(path)?;
    let _lock = lock(path)?;
    let [name, draft] = NAMES.map(|name| path.join(name));
    let error = |error| JournalError::io("cannot write", &name, error);
    let mut salt = [0; 32];
    getrandom::fill(&mut salt).map_err(JournalError::Random)?;
    let KdfParameters { memory_kib, passes, lanes } = parameters;
    let digits: String = salt.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut file = ogive_private::create(&draft).map_err(error)?;
    writeln!(file, "{FIRST_LINE}\n{memory_kib}\n{passes}\n{lanes}\n{digits}").map_err(error)?;
    file.sync_all().map_err(error)?;
    std::fs::rename(&draft, &name).map_err(error)?;
    File::open(path).and_then(|directory| directory.sync_all()).map_err(error)?;
    Ok(salt)
}

#[cfg(test)]
mod tests {
    use super::*;
    use zeroize::Zeroizing;

    const QUICK: KdfParameters = KdfParameters { memory_kib: 64, passes: 1, lanes: 1 };

    fn typed(text: &str) -> KeySource {
        KeySource::Passphrase(Zeroizing::new(text.as_bytes().to_vec()).into(), QUICK)
    }

    #[test]
    fn a_passphrase_always_gives_its_own_key() {
        let directory = tempfile::tempdir().unwrap();
        let key = |text: &str| master_key(directory.path(), &typed(text), 1 << 20).unwrap();
        let first = key("a");
        assert_eq!(key("a").expose(), first.expose());
        assert_ne!(key("b").expose(), first.expose());
        let elsewhere = tempfile::tempdir().unwrap();
        let other = master_key(elsewhere.path(), &typed("a"), 1 << 20).unwrap();
        assert_ne!(other.expose(), first.expose(), "each directory has its own salt");
    }

    #[test]
    fn a_key_does_not_replace_a_passphrase_nor_a_passphrase_a_key() {
        let directory = tempfile::tempdir().unwrap();
        let key = KeySource::Master(MasterKey::from_material(&[1; 32]).unwrap());
        master_key(directory.path(), &typed("a"), 1 << 20).unwrap();
        let error = master_key(directory.path(), &key, 1 << 20).unwrap_err().to_string();
        assert!(error.contains("created with a passphrase"), "{error}");
        let other = tempfile::tempdir().unwrap();
        let master = master_key(other.path(), &key, 1 << 20).unwrap();
        let _claimed =
            super::super::Journal::open(other.path(), "s", &master, Default::default()).unwrap();
        let error = master_key(other.path(), &typed("a"), 1 << 20).unwrap_err().to_string();
        assert!(error.contains("a key, not a passphrase"), "{error}");
        assert!(!other.path().join(NAMES[0]).exists());
    }

    #[test]
    fn parameters_that_are_too_large_or_damaged_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        master_key(directory.path(), &typed("a"), 1 << 20).unwrap();
        let error = master_key(directory.path(), &typed("a"), 63).unwrap_err();
        assert!(matches!(error, JournalError::Costly { .. }), "{error}");
        std::fs::write(directory.path().join(NAMES[0]), "x").unwrap();
        let error = master_key(directory.path(), &typed("a"), 1 << 20).unwrap_err();
        assert!(matches!(error, JournalError::Damaged { .. }), "{error}");
        std::fs::write(directory.path().join("own"), "x").unwrap();
        std::fs::remove_file(directory.path().join(NAMES[0])).unwrap();
        let error = master_key(directory.path(), &typed("a"), 1 << 20).unwrap_err();
        assert!(matches!(error, JournalError::NotAJournal(_)), "{error}");
    }
}
