//! The devices of a mount by their paths, and how they are added and removed at run time.
//!
//! A request is a line, written to the control directory's file `l2`: `add PATH` or `remove PATH`.
//! A path that does not exist is created. A second line `size_bytes NUMBER` sets the size of a new
//! device. The file shows the devices in use and the outcome of the last request.
//!
//! Only one request runs at a time; another one meanwhile gets `EBUSY`. So nothing is locked while
//! a device is opened, formatted or waited for.
//!
//! # Locks
//! The lock of the paths is a leaf.

use super::options::{SecondLevelError, SecondLevelOptions, lies_below};
use super::{SecondLevel, statistics};
use ogive_l2::{DeviceError, KeySource, Removed};
use ogive_origin::Errno;
use parking_lot::Mutex;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Longest request that can be written: a path and the words around it.
pub(crate) const REQUEST_MAX_BYTES: usize = 4096 + 64;

/// The options for opening devices, and the devices in use.
#[derive(Debug)]
pub(super) struct Devices {
    pub(super) options: SecondLevelOptions,
    source: PathBuf,
    mount_point: PathBuf,
    /// A request is being carried out.
    is_changing: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The paths, with the names of their devices.
    paths: Vec<(PathBuf, [u8; 16])>,
    /// The last request, and its error.
    last: Option<(String, Option<String>)>,
}

/// A request.
#[derive(Debug, PartialEq, Eq)]
enum Request<'a> {
    Add { path: &'a Path, size_bytes: Option<u64> },
    Remove { path: &'a Path },
}

impl Devices {
    pub(super) fn new(options: SecondLevelOptions, source: &Path, mount_point: &Path) -> Self {
        Self {
            options,
            source: source.into(),
            mount_point: mount_point.into(),
            is_changing: AtomicBool::new(false),
            state: Mutex::default(),
        }
    }

    /// Sets the devices in use at the start.
    pub(super) fn are(&self, paths: Vec<(PathBuf, [u8; 16])>) {
        self.state.lock().paths = paths;
    }

    fn path_of(&self, device: &[u8; 16]) -> Option<PathBuf> {
        let state = self.state.lock();
        state.paths.iter().find(|(_, known)| known == device).map(|(path, _)| path.clone())
    }

    fn device_at(&self, path: &Path) -> Option<[u8; 16]> {
        let paths = self.state.lock().paths.clone();
        // One file may have several paths.
        let place = path.canonicalize().ok();
        let is_it =
            |known: &Path| known == path || (place.is_some() && known.canonicalize().ok() == place);
        paths.into_iter().find(|(known, _)| is_it(known)).map(|(_, device)| device)
    }
}

impl SecondLevel {
    /// Carries out a request to add or remove a device. [`SecondLevel::status`] and the log have
    /// its error.
    ///
    /// # Errors
    /// `EBUSY` while another request is carried out; `EINVAL` for a malformed or impossible
    /// request; otherwise the system's error.
    pub(crate) fn change(&self, request: &[u8]) -> Result<(), Errno> {
        struct End<'a>(&'a AtomicBool);
        impl Drop for End<'_> {
            fn drop(&mut self) {
                self.0.store(false, Ordering::Release);
            }
        }
        let parsed = parse(request).ok_or(Errno::INVAL)?;
        if self.devices.is_changing.swap(true, Ordering::Acquire) {
            return Err(Errno::BUSY);
        }
        let _end = End(&self.devices.is_changing);
        let result = match parsed {
            Request::Add { path, size_bytes } => self.add(path, size_bytes),
            Request::Remove { path } => self.remove(path),
        };
        let line = request.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line).into_owned();
        let error = result.as_ref().err().map(ToString::to_string);
        if let Some(error) = &error {
            log::warn!("{error}");
        }
        self.devices.state.lock().last = Some((line, error));
        result.map_err(|error| error.errno())
    }

    fn add(&self, path: &Path, size_bytes: Option<u64>) -> Result<(), SecondLevelError> {
        let devices = &self.devices;
        if matches!(devices.options.key, KeySource::Passphrase(..)) {
            return Err(SecondLevelError::NotKept { path: path.into() });
        }
        // Checked by name first: a look-up there would be a request to this mount itself.
        if lies_below(path, &devices.mount_point) {
            return Err(SecondLevelError::InMount { path: path.into() });
        }
        if devices.device_at(path).is_some() {
            return Err(SecondLevelError::InUse { path: path.into() });
        }
        let is_there = std::fs::metadata(path).is_ok_and(|it| !it.is_file() || it.len() > 0);
        let size_bytes = size_bytes.or(devices.options.size_bytes.filter(|_| !is_there));
        let (device, how) = devices.options.open_device(path, &devices.source, size_bytes)?;
        let added = self.tier.add(device, &how);
        let device =
            added.map_err(|error| SecondLevelError::Device { path: path.into(), error })?;
        devices.state.lock().paths.push((path.into(), device));
        log::info!("the second level has {} as well from now on", path.display());
        Ok(())
    }

    fn remove(&self, path: &Path) -> Result<(), SecondLevelError> {
        let devices = &self.devices;
        let not_there = || SecondLevelError::NotInUse { path: path.into() };
        let device = devices.device_at(path).ok_or_else(not_there)?;
        let removed = self.tier.remove(&device);
        devices.state.lock().paths.retain(|(_, known)| *known != device);
        match removed.ok_or_else(not_there)? {
            Removed::Closed => {
                log::info!("the second level goes on without {}", path.display());
                Ok(())
            }
            Removed::Hangs => Err(SecondLevelError::Hangs { path: path.into() }),
        }
    }

    /// Paths of the devices that are in use.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        let devices = self.tier.devices();
        devices.iter().filter_map(|device| self.devices.path_of(&device.device)).collect()
    }

    /// The contents of the file `l2` (JSON).
    pub(crate) fn status(&self) -> String {
        let devices = self.tier.devices();
        let devices = devices.iter().map(|device| {
            statistics::device(device, self.devices.path_of(&device.device).as_deref())
        });
        let last = self.devices.state.lock().last.clone();
        let last =
            last.map(|(request, error)| serde_json::json!({ "request": request, "error": error }));
        let status = serde_json::json!({
            "devices": devices.collect::<Vec<_>>(),
            "padding": self.devices.options.padding.to_string(),
            "padding_bytes": self.tier.counts().l2_padding_bytes,
            "last_request": last,
        });
        format!("{status:#}\n")
    }
}

impl SecondLevelError {
    /// The error number for the system call that made the request.
    fn errno(&self) -> Errno {
        use ogive_l2::device::OpenError;
        let of = |error: &std::io::Error| Errno::from_io_error(error).unwrap_or(Errno::IO);
        match self {
            Self::Open(OpenError::System { error, .. })
            | Self::Device {
                error: DeviceError::System { error, .. } | DeviceError::Size { error, .. },
                ..
            } => of(error),
            Self::Open(OpenError::Busy { .. }) | Self::InUse { .. } => Errno::BUSY,
            Self::NotInUse { .. } => Errno::NOENT,
            Self::Hangs { .. } => Errno::TIMEDOUT,
            _ => Errno::INVAL,
        }
    }
}

/// Reads a request: lines, of which the first ends with an absolute path.
fn parse(request: &[u8]) -> Option<Request<'_>> {
    let mut lines = request.strip_suffix(b"\n").unwrap_or(request).split(|byte| *byte == b'\n');
    let first = lines.next()?;
    let size_bytes = match (lines.next(), lines.next()) {
        (None, None) => None,
        (Some(line), None) => {
            let digits = line.strip_prefix(b"size_bytes ")?;
            Some(std::str::from_utf8(digits).ok()?.parse().ok()?)
        }
        _ => return None,
    };
    let path = |bytes| {
        let path = Path::new(OsStr::from_bytes(bytes));
        path.is_absolute().then_some(path)
    };
    if let Some(bytes) = first.strip_prefix(b"add ") {
        return Some(Request::Add { path: path(bytes)?, size_bytes });
    }
    let path = path(first.strip_prefix(b"remove ")?)?;
    size_bytes.is_none().then_some(Request::Remove { path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_a_word_and_an_absolute_path() {
        let path = Path::new("/ssd/a b");
        let add = |size_bytes| Some(Request::Add { path, size_bytes });
        assert_eq!(parse(b"add /ssd/a b\n"), add(None));
        assert_eq!(parse(b"add /ssd/a b\nsize_bytes 4096\n"), add(Some(4096)));
        assert_eq!(parse(b"remove /ssd/a b"), Some(Request::Remove { path }));
        for wrong in [
            &b""[..],
            b"add",
            b"add ",
            b"add cache",
            b"Add /ssd/a",
            b"/ssd/a",
            b"remove /ssd/a\nsize_bytes 1",
            b"add /ssd/a\nsize_bytes -1",
            b"add /ssd/a\nsize 1",
            b"add /ssd/a\nsize_bytes 1\nsize_bytes 2",
            b"add /ssd/a\n\n",
        ] {
            assert_eq!(parse(wrong), None, "{}", String::from_utf8_lossy(wrong));
        }
    }
}
