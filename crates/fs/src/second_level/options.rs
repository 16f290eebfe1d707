//! What a second level can be told, and why there is none.

use ogive_l2::device::{self, Device, Engine, OpenError, OpenMode};
use ogive_l2::{
    Admission, Cipher, Compression, DeviceError, FormatPolicy, KeySource, OpenOptions, WriteLimits,
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

/// A device, and how it is to be taken into use.
type Opened = (Arc<dyn Device>, OpenOptions);

impl SecondLevelOptions {
    pub(super) fn open_devices(&self, source: &Path) -> Result<Vec<Opened>, SecondLevelError> {
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
            let device = device::open(path, OpenMode::Create, self.engine);
            Ok((device.map_err(SecondLevelError::Open)?, how.clone()))
        };
        self.devices.iter().map(open).collect()
    }

    pub(super) fn explain(&self, number: usize, error: DeviceError) -> SecondLevelError {
        let path = self.devices.get(number).cloned().unwrap_or_default();
        SecondLevelError::Device { path, error }
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
