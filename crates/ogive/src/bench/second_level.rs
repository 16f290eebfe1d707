//! The second level of a measured mount: every record goes there, uncompressed.

use std::path::Path;

use anyhow::Result;
use ogive_fs::{PathRules, SecondLevelOptions};
use ogive_l2::device::Engine;
use ogive_l2::{
    Admission, Cipher, Compression, KDF_WORK_MAX_KIB, KeySource, MasterKey, Padding, WriteLimits,
};

/// The options: one device of this size, with a new key.
pub(super) fn options(
    device: &Path,
    cipher: Cipher,
    size_bytes: u64,
) -> Result<SecondLevelOptions> {
    Ok(SecondLevelOptions {
        devices: vec![device.to_owned()],
        size_bytes: Some(size_bytes),
        cipher: Some(cipher),
        key: KeySource::Master(MasterKey::random()?),
        kdf_work_max_kib: KDF_WORK_MAX_KIB,
        compression: Compression::Off,
        padding: Padding::Off,
        paths: PathRules::default(),
        admission: Admission::All,
        limits: WriteLimits::default(),
        engine: Engine::Probe,
    })
}
