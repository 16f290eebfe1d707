//! Errors of a mount, with the next step.

use std::io;
use std::path::{Path, PathBuf};

/// Why a mount could not be started or did not end well.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MountError {
    /// An option has an invalid value.
    #[error("--{option} {reason}")]
    Option {
        /// The option, as on the command line.
        option: &'static str,
        /// The value, and the valid ones.
        reason: String,
    },
    /// The source cannot be read.
    #[error("cannot open the source directory {}: {error}; check that it exists and that you may \
        read it", path.display())]
    Source {
        /// The source.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The mount point cannot be used.
    #[error("cannot mount at {}: {error}; the mount point must be an existing directory that you \
        own", path.display())]
    MountPoint {
        /// The mount point.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The second level cannot be used.
    #[error(transparent)]
    SecondLevel(#[from] crate::second_level::SecondLevelError),
    /// FUSE is missing.
    #[error("cannot use FUSE: {error}; {hint}")]
    Fuse {
        /// The system's error.
        error: io::Error,
        /// The next step.
        hint: &'static str,
    },
    /// The system refused a resource.
    #[error("cannot {action}: {error}")]
    System {
        /// The action that failed.
        action: &'static str,
        /// The system's error.
        error: io::Error,
    },
    /// The session with the kernel failed.
    #[error("the session with the kernel ended: {error}; the source is unharmed, mount again")]
    Session {
        /// The system's error.
        error: io::Error,
    },
}

impl MountError {
    /// Exit code for a program that ends with this error.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Option { .. } => 2,
            Self::Source { .. } => 3,
            Self::MountPoint { .. } => 4,
            Self::Fuse { .. } => 5,
            Self::SecondLevel(_) | Self::System { .. } | Self::Session { .. } => 1,
        }
    }

    pub(super) fn source(path: &Path, error: io::Error) -> Self {
        Self::Source { path: path.to_owned(), error }
    }

    pub(super) fn mount_point(path: &Path, error: io::Error) -> Self {
        Self::MountPoint { path: path.to_owned(), error }
    }

    pub(super) fn memory(error: ogive_pressure::PressureError) -> Self {
        Self::System { action: "find out how much memory there is", error: io::Error::other(error) }
    }

    pub(super) fn thread(error: io::Error) -> Self {
        Self::System { action: "start a thread", error }
    }

    pub(super) fn session(error: io::Error) -> Self {
        Self::Session { error }
    }
}

impl From<ogive_origin::OpenError> for MountError {
    fn from(error: ogive_origin::OpenError) -> Self {
        Self::Source { path: error.path, error: error.errno.into() }
    }
}
