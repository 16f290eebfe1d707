//! The options of a second level, and the errors of opening it.

use super::path_rules::PathRules;
use ogive_l2::device::{self, Device, Engine, OpenError, OpenMode};
use ogive_l2::{
    Admission, Cipher, Compression, DeviceError, FormatPolicy, KeySource, OpenOptions, Padding,
    SecretError, Tier, TierOptions, WriteLimits,
};
use ogive_text::ShellWord;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Options of a second level.
#[derive(Clone, Debug)]
pub struct SecondLevelOptions {
    /// Files or block devices for records, which they share by size.
    pub devices: Vec<PathBuf>,
    /// Size of each device in bytes; all of it if `None`.
    pub size_bytes: Option<u64>,
    /// The cipher of records. `None`: that of the devices, or AES-256-GCM on new ones.
    pub cipher: Option<Cipher>,
    /// The key that seals them.
    pub key: KeySource,
    /// Most KiB that deriving the key from a passphrase may fill, over all passes.
    pub kdf_work_max_kib: u64,
    /// The compression to try on records.
    pub compression: Compression,
    /// The multiple to which records are padded.
    pub padding: Padding,
    /// The rule that admits records.
    pub admission: Admission,
    /// The rule that admits files by their paths.
    pub paths: PathRules,
    /// The write budget.
    pub limits: WriteLimits,
    /// How the devices are read and written.
    pub engine: Engine,
}

/// Why a second level cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecondLevelError {
    /// A path cannot be opened.
    #[error("cannot use a second level: {0}")]
    Open(OpenError),
    /// A device cannot be used.
    #[error("cannot use {} as a second level: {error}", path.display())]
    Device {
        /// Its path.
        path: PathBuf,
        /// The error.
        error: DeviceError,
    },
    /// A device cannot be added later, because the passphrase is not kept.
    #[error("cannot use {} as a second level: this mount was begun with a passphrase, which is not \
        kept; unmount, and mount with --l2 {} besides", path.display(),
        ShellWord(path.as_os_str()))]
    NotKept {
        /// Its path.
        path: PathBuf,
    },
    /// It would lie in the mount that it caches.
    #[error("cannot use {} as a second level: it lies inside the mount itself; keep it elsewhere, \
        best on a faster disk", path.display())]
    InMount {
        /// Its path.
        path: PathBuf,
    },
    /// It is in use already.
    #[error("{} is in use by this mount already", path.display())]
    InUse {
        /// Its path.
        path: PathBuf,
    },
    /// It is not in use.
    #[error("{} is not in use by this mount", path.display())]
    NotInUse {
        /// Its path.
        path: PathBuf,
    },
    /// It does not answer.
    #[error("{} is asked for nothing more, but does not answer; it is closed when it \
        does", path.display())]
    Hangs {
        /// Its path.
        path: PathBuf,
    },
    /// The versions have no secret.
    #[error("cannot keep versions of files unforeseeable: {0}")]
    Random(SecretError),
    /// It would lie in the source that it caches.
    #[error("cannot use {} as a second level: it lies inside the source {}; keep it elsewhere, \
        best on a faster disk", path.display(), source_directory.display())]
    InSource {
        /// Its path.
        path: PathBuf,
        /// The source.
        source_directory: PathBuf,
    },
}

/// A device, its path, and the options for its use.
type Opened = (Arc<dyn Device>, OpenOptions, PathBuf);

/// Whether the hardware fails, and not the request.
fn does_not_answer(error: &std::io::Error) -> bool {
    use rustix::io::Errno;
    let errno = Errno::from_io_error(error);
    const GONE: [Errno; 5] =
        [Errno::IO, Errno::NXIO, Errno::NODEV, Errno::NOMEDIUM, Errno::TIMEDOUT];
    errno.is_some_and(|errno| GONE.contains(&errno))
}

/// Whether a path leads to a place below a directory, as far as it can be resolved.
pub(super) fn lies_below(path: &Path, directory: &Path) -> bool {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let place = path.canonicalize().or_else(|_| parent.unwrap_or(Path::new(".")).canonicalize());
    place.map_or_else(|_| path.starts_with(directory), |place| place.starts_with(directory))
}

fn warn(path: &Path, error: &std::io::Error) {
    log::warn!("the second level at {} is left out: {error}", path.display());
}

impl SecondLevelOptions {
    /// Opens the devices. A wrong option is an error. A device that does not answer is left out
    /// with a warning, because a mount is worth more than its cache.
    pub(super) fn open(
        &self,
        source: &Path,
        options: &TierOptions,
    ) -> Result<(Tier, Vec<PathBuf>), SecondLevelError> {
        let mut devices = self.open_devices(source)?;
        loop {
            let opened = devices.iter().map(|(device, how, _)| (device.clone(), how.clone()));
            let (number, error) = match Tier::open(opened.collect(), options.clone()) {
                Ok(tier) => {
                    self.key.forget();
                    return Ok((tier, devices.into_iter().map(|(.., path)| path).collect()));
                }
                Err(failed) => failed,
            };
            let path = devices.get(number).map_or_else(PathBuf::new, |(_, _, path)| path.clone());
            match error {
                DeviceError::System { error, .. } | DeviceError::Size { error, .. }
                    if does_not_answer(&error) =>
                {
                    warn(&path, &error);
                    devices.remove(number);
                }
                error => return Err(SecondLevelError::Device { path, error }),
            }
        }
    }

    /// Opens a path, and returns the options for its use.
    pub(super) fn open_device(
        &self,
        path: &Path,
        source: &Path,
        size_bytes: Option<u64>,
    ) -> Result<(Arc<dyn Device>, OpenOptions), SecondLevelError> {
        if lies_below(path, source) {
            let (path, source_directory) = (path.into(), source.into());
            return Err(SecondLevelError::InSource { path, source_directory });
        }
        let how = OpenOptions {
            size_bytes,
            cipher: self.cipher,
            key: self.key.clone(),
            format: FormatPolicy::IfEmpty,
            kdf_work_max_kib: self.kdf_work_max_kib,
        };
        let device = device::open(path, OpenMode::Create, self.engine);
        Ok((device.map_err(SecondLevelError::Open)?, how))
    }

    fn open_devices(&self, source: &Path) -> Result<Vec<Opened>, SecondLevelError> {
        let open = |path: &PathBuf| match self.open_device(path, source, self.size_bytes) {
            Ok((device, how)) => Ok(Some((device, how, path.clone()))),
            Err(SecondLevelError::Open(OpenError::System { error, .. }))
                if does_not_answer(&error) =>
            {
                warn(path, &error);
                Ok(None)
            }
            Err(error) => Err(error),
        };
        self.devices.iter().filter_map(|path| open(path).transpose()).collect()
    }

    /// For the control directory; nothing secret. `devices` and `ciphers` are those in use.
    pub(super) fn describe(&self, devices: &[PathBuf], ciphers: &str) -> serde_json::Value {
        serde_json::json!({
            "devices": devices.iter().map(|path| path.to_string_lossy()).collect::<Vec<_>>(),
            "size_bytes": self.size_bytes,
            "cipher": ciphers,
            "compression": self.compression.to_string(),
            "padding": self.padding.to_string(),
            "write_max_bytes_per_second": self.limits.bytes_per_second,
            "drive_writes_per_day": self.limits.drive_writes_per_day,
        })
    }
}
