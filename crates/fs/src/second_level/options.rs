//! What a second level can be told, and why there is none.

use ogive_l2::device::{self, Device, Engine, OpenError, OpenMode};
use ogive_l2::{
    Admission, Cipher, Compression, DeviceError, FormatPolicy, KeySource, OpenOptions, Tier,
    TierOptions, WriteLimits,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Options of a second level.
#[derive(Clone, Debug)]
pub struct SecondLevelOptions {
    /// Files or block devices to keep records on; they share them evenly.
    pub devices: Vec<PathBuf>,
    /// Size of each in bytes; `None`: what it has.
    pub size_bytes: Option<u64>,
    /// How records are sealed; `None`: as the devices are, or AES-256-GCM for new ones.
    pub cipher: Option<Cipher>,
    /// The key that seals them.
    pub key: KeySource,
    /// What to try on records.
    pub compression: Compression,
    /// Which records are taken.
    pub admission: Admission,
    /// How much may be written.
    pub limits: WriteLimits,
    /// How the devices are read and written.
    pub engine: Engine,
}

/// Why there is no second level.
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
        /// Why.
        error: DeviceError,
    },
    /// It would lie in what it is to be a cache of.
    #[error("cannot use {} as a second level: it lies inside the source {}; keep it elsewhere, best on a faster disk", path.display(), source_directory.display())]
    InSource {
        /// Its path.
        path: PathBuf,
        /// The source.
        source_directory: PathBuf,
    },
}

/// A device, its path, and how it is to be taken into use.
type Opened = (Arc<dyn Device>, OpenOptions, PathBuf);

/// Whether it is the hardware that fails, and not what was asked for.
fn does_not_answer(error: &std::io::Error) -> bool {
    use rustix::io::Errno;
    let errno = Errno::from_io_error(error);
    const GONE: [Errno; 5] =
        [Errno::IO, Errno::NXIO, Errno::NODEV, Errno::NOMEDIUM, Errno::TIMEDOUT];
    errno.is_some_and(|errno| GONE.contains(&errno))
}

fn warn(path: &Path, error: &std::io::Error) {
    log::warn!("the second level at {} is left out: {error}", path.display());
}

impl SecondLevelOptions {
    /// Takes the devices into use. What is wrong with what was asked for is an error; a device that
    /// does not answer is left out with a warning, for a mount is worth more than its cache.
    pub(super) fn open(
        &self,
        source: &Path,
        options: &TierOptions,
    ) -> Result<Tier, SecondLevelError> {
        let mut devices = self.open_devices(source)?;
        loop {
            let opened = devices.iter().map(|(device, how, _)| (device.clone(), how.clone()));
            let (number, error) = match Tier::open(opened.collect(), options.clone()) {
                Ok(tier) => return Ok(tier),
                Err(failed) => failed,
            };
            let path = devices.get(number).map_or_else(PathBuf::new, |(_, _, path)| path.clone());
            match error {
                DeviceError::System { error, .. } if does_not_answer(&error) => {
                    warn(&path, &error);
                    devices.remove(number);
                }
                error => return Err(SecondLevelError::Device { path, error }),
            }
        }
    }

    fn open_devices(&self, source: &Path) -> Result<Vec<Opened>, SecondLevelError> {
        let how = OpenOptions {
            size_bytes: self.size_bytes,
            cipher: self.cipher,
            key: self.key.clone(),
            format: FormatPolicy::IfEmpty,
        };
        let open = |path: &PathBuf| {
            let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            let directory = directory.unwrap_or(Path::new(".")).canonicalize();
            if directory.is_ok_and(|directory| directory.starts_with(source)) {
                let (path, source_directory) = (path.clone(), source.into());
                return Err(SecondLevelError::InSource { path, source_directory });
            }
            match device::open(path, OpenMode::Create, self.engine) {
                Ok(device) => Ok(Some((device, how.clone(), path.clone()))),
                Err(OpenError::System { error, .. }) if does_not_answer(&error) => {
                    warn(path, &error);
                    Ok(None)
                }
                Err(error) => Err(SecondLevelError::Open(error)),
            }
        };
        self.devices.iter().filter_map(|path| open(path).transpose()).collect()
    }

    /// For the control directory; nothing secret.
    pub(crate) fn describe(&self) -> serde_json::Value {
        serde_json::json!({
            "devices": self.devices.iter().map(|path| path.to_string_lossy()).collect::<Vec<_>>(),
            "size_bytes": self.size_bytes,
            "cipher": self.cipher.unwrap_or_default().to_string(),
            "compression": self.compression.to_string(),
            "write_max_bytes_per_second": self.limits.bytes_per_second,
            "drive_writes_per_day": self.limits.drive_writes_per_day,
        })
    }
}
