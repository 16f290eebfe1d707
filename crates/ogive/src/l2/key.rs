//! The key of a second level: from options, the environment, systemd, or a file of our own.
//!
//! The command line never carries the key itself, because every user can read it in `ps`.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::{Args, ValueHint};
use log::warn;
use ogive_l2::{Cipher, KDF_WORK_MAX_KIB, KdfParameters, KeySource, MasterKey};
use zeroize::Zeroizing;

use crate::exit::{self, Refusal};
use crate::state_directory;
use crate::value::Size;

const HEADING: &str = "Second level options";
/// A key in 64 hexadecimal digits.
const KEY_VARIABLE: &str = "OGIVE_L2_KEY";
/// Name of systemd's credential with the key, raw or in digits.
const CREDENTIAL: &str = "ogive.l2-key";
/// Bytes of a key or a passphrase at most.
const SECRET_BYTES_MAX: u64 = 4096;

/// Where the key of a second level comes from.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct KeyArgs {
    /// File with the key that seals --l2 and --stage: 32 bytes, or 64 hexadecimal digits
    ///
    /// The file must belong to this user or root, and no other user may be able to read it. Without
    /// a key option, the key comes from the variable OGIVE_L2_KEY (digits) or from the systemd
    /// credential ogive.l2-key. Otherwise ogive creates a random key at the first use, in its state
    /// directory, readable only by this user.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = HEADING,
        conflicts_with_all = ["passphrase", "passphrase_fd"], value_parser = absolute())]
    pub(crate) key_file: Option<PathBuf>,

    /// Ask for a passphrase; argon2id derives the key from it
    #[arg(long, help_heading = HEADING)]
    pub(crate) passphrase: bool,

    /// Read the passphrase from this open file descriptor, up to the end of the first line
    #[arg(long, value_name = "NUMBER", help_heading = HEADING,
        value_parser = clap::value_parser!(i32).range(0..))]
    pub(crate) passphrase_fd: Option<i32>,

    /// Most memory that deriving a key from a passphrase may fill, over all passes (default: 1G)
    ///
    /// The device itself states how much memory the derivation takes, so a forged device could ask
    /// for more than a machine has. `ogive l2 format` asks for 192M.
    #[arg(long, value_name = "SIZE", help_heading = HEADING)]
    pub(crate) l2_kdf_max: Option<Size>,
}

/// Where the next key of a device comes from.
#[derive(Debug, Clone, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct NewKeyArgs {
    /// File with the new key: 32 bytes, or 64 hexadecimal digits
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    new_key_file: Option<PathBuf>,

    /// Ask for the new passphrase, twice
    #[arg(long)]
    new_passphrase: bool,

    /// Read the new passphrase from this open file descriptor, up to the end of the first line
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(i32).range(0..))]
    new_passphrase_fd: Option<i32>,
}

impl NewKeyArgs {
    /// Fetches the key.
    pub(crate) fn fetch(&self) -> Result<KeySource> {
        let passphrase = match (self.new_passphrase_fd, &self.new_key_file) {
            (Some(descriptor), _) => read_descriptor(descriptor)?,
            (None, Some(path)) => return from_file(path).map(KeySource::Master),
            (None, None) => {
                let typed = ask("New passphrase of the second level: ")?;
                if *ask("Repeat the new passphrase: ")? != *typed {
                    let differ = "the two passphrases differ; nothing was changed";
                    return Err(Refusal::new(exit::FAILURE, differ).into());
                }
                typed
            }
        };
        Ok(KeySource::Passphrase(passphrase.into(), KdfParameters::default()))
    }
}

/// Absolute paths, because the serving process works in another directory.
pub(crate) fn absolute() -> impl clap::builder::TypedValueParser<Value = PathBuf> {
    use clap::builder::{PathBufValueParser, TypedValueParser as _};
    PathBufValueParser::new().try_map(std::path::absolute)
}

impl KeyArgs {
    /// Asks for the passphrase on the terminal, which the background process cannot do.
    pub(crate) fn ask_first(&self) -> Result<Option<Zeroizing<Vec<u8>>>> {
        (self.passphrase && self.passphrase_fd.is_none())
            .then(|| ask("Passphrase of the second level or the stage: "))
            .transpose()
    }

    /// Most KiB that a derivation may fill.
    pub(crate) fn kdf_work_max_kib(&self) -> u64 {
        self.l2_kdf_max.map_or(KDF_WORK_MAX_KIB, |size| size.0 >> 10)
    }

    /// Fetches the key. `--cipher off` has none, and refuses one.
    pub(crate) fn fetch(&self, cipher: Option<Cipher>) -> Result<KeySource> {
        if cipher == Some(Cipher::Off) {
            if self.passphrase || self.passphrase_fd.is_some() || self.key_file.is_some() {
                let contradiction = "--cipher off seals nothing, but a key was given";
                return Err(Refusal::new(exit::USAGE, contradiction)
                    .hint("leave out --cipher off, or the key")
                    .into());
            }
            return Ok(KeySource::None);
        }
        let passphrase = match self.passphrase_fd {
            Some(descriptor) => Some(read_descriptor(descriptor)?),
            None => self.ask_first()?,
        };
        if let Some(passphrase) = passphrase {
            return Ok(KeySource::Passphrase(passphrase.into(), KdfParameters::default()));
        }
        if let Some(path) = &self.key_file {
            return from_file(path).map(KeySource::Master);
        }
        if let Some(digits) = std::env::var_os(KEY_VARIABLE) {
            warn!("the key comes from {KEY_VARIABLE}, which other processes of this user can read");
            let key = MasterKey::from_material(digits.as_encoded_bytes())
                .with_context(|| format!("cannot use the key in {KEY_VARIABLE}"))?;
            return Ok(KeySource::Master(key));
        }
        if let Some(directory) = std::env::var_os("CREDENTIALS_DIRECTORY") {
            let path = Path::new(&directory).join(CREDENTIAL);
            if path.exists() {
                return from_file(&path).map(KeySource::Master);
            }
        }
        own_key(&state_directory::path("the key of the second level", "--key-file")?)
            .map(KeySource::Master)
    }
}

fn ask(prompt: &str) -> Result<Zeroizing<Vec<u8>>> {
    let typed = rpassword::prompt_password(prompt);
    let typed = typed.context("cannot ask for the passphrase; give --passphrase-fd")?;
    Ok(Zeroizing::new(typed.into_bytes()))
}

/// The first line of a descriptor that the parent process has opened.
fn read_descriptor(number: i32) -> Result<Zeroizing<Vec<u8>>> {
    let context = || format!("cannot read the passphrase from file descriptor {number}");
    // Its name in /proc opens the file again; the original descriptor stays open.
    let mut secret = Zeroizing::new(Vec::with_capacity(SECRET_BYTES_MAX as usize));
    let file = File::open(format!("/proc/self/fd/{number}")).with_context(context)?;
    file.take(SECRET_BYTES_MAX).read_to_end(&mut secret).with_context(context)?;
    if let Some(end) = secret.iter().position(|byte| *byte == b'\n') {
        secret.truncate(end);
    }
    Ok(secret)
}

fn from_file(path: &Path) -> Result<MasterKey> {
    let refuse = |reason: String| {
        Refusal::new(exit::FAILURE, format!("cannot use the key file {}: {reason}", path.display()))
    };
    let file = File::open(path).map_err(|error| refuse(error.to_string()))?;
    let metadata = file.metadata().map_err(|error| refuse(error.to_string()))?;
    let (owner, me) = (metadata.uid(), rustix::process::geteuid().as_raw());
    if owner != 0 && owner != me {
        let reason = format!("it belongs to user {owner}, who could change it");
        return Err(refuse(reason).hint("make it your own with chown, or copy it").into());
    }
    if metadata.mode() & 0o077 != 0 {
        let reason = format!("others may read it (mode {:o})", metadata.mode() & 0o777);
        return Err(refuse(reason).hint("run chmod 600 on it").into());
    }
    let mut material = Zeroizing::new(Vec::with_capacity(SECRET_BYTES_MAX as usize));
    file.take(SECRET_BYTES_MAX)
        .read_to_end(&mut material)
        .map_err(|error| refuse(error.to_string()))?;
    Ok(MasterKey::from_material(&material).map_err(|error| refuse(error.to_string()))?)
}

/// The key in the state directory, made at the first use.
fn own_key(directory: &Path) -> Result<MasterKey> {
    let path = directory.join("l2.key");
    if path.exists() {
        return from_file(&path);
    }
    let context = || format!("cannot keep a key in {}; give --key-file", directory.display());
    ogive_private::create_directories(directory).with_context(context)?;
    let key = MasterKey::random().with_context(context)?;
    // Under a temporary name first, so that no crash leaves half a key.
    let draft = directory.join(format!("l2.key.{}", std::process::id()));
    let mut file = ogive_private::create_new(&draft).with_context(context)?;
    file.write_all(key.expose()).and_then(|()| file.sync_all()).with_context(context)?;
    // Another process may have been quicker; then its key counts.
    let linked = std::fs::hard_link(&draft, &path);
    std::fs::remove_file(&draft).with_context(context)?;
    match linked {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(error).with_context(context)
        }
        _ => from_file(&path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_key_of_our_own_is_made_once_and_private() {
        let directory = tempfile::tempdir().unwrap();
        let state = directory.path().join("a/state");
        let first = own_key(&state).unwrap();
        let mode = std::fs::metadata(state.join("l2.key")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(own_key(&state).unwrap().expose(), first.expose());
        assert_eq!(std::fs::read_dir(&state).unwrap().count(), 1);
    }

    #[test]
    fn a_key_file_that_others_may_read_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        std::fs::write(&path, [7; 32]).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        let error = from_file(&path).unwrap_err().to_string();
        assert!(error.contains("others may read it (mode 640)"), "{error}");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o400)).unwrap();
        assert_eq!(from_file(&path).unwrap().expose(), &[7; 32]);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::write(&path, "short").unwrap();
        assert!(from_file(&path).unwrap_err().to_string().contains("32 bytes"));
    }
}
