//! Errors: the errno for the program, and a message for the log.

use crate::staged::StagedError;
use crate::{BucketError, BucketIdentity};
use ogive_origin::{Errno, Time};
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// Ordinary errors are logged at most once in this many seconds.
const WARN_EVERY_S: u64 = 1;

/// Logs the errors of one bucket.
pub(super) struct Messages {
    identity: BucketIdentity,
    /// When an error was logged last, in seconds.
    last_warning_s: AtomicI64,
}

impl Messages {
    pub(super) fn new(identity: BucketIdentity) -> Self {
        Self { identity, last_warning_s: AtomicI64::new(0) }
    }

    /// The errno of an error. Unexpected errors are also logged, at most one a second.
    pub(super) fn errno(&self, error: &BucketError) -> Errno {
        let is_ordinary = matches!(
            error,
            BucketError::NotFound { .. }
                | BucketError::ConditionFailed { .. }
                | BucketError::KeyTooLong { .. }
                | BucketError::Unsupported { .. }
        );
        if !is_ordinary {
            self.warn_rarely(format_args!("{error}"));
        }
        error.errno()
    }

    /// The same for a staged file. A conflict is logged where it is detected.
    pub(super) fn of_staged(&self, error: &StagedError) -> Errno {
        match error {
            StagedError::Bucket(error) => self.errno(error),
            StagedError::Conflict { .. } => error.errno(),
            error => {
                self.warn_rarely(format_args!("{error}"));
                error.errno()
            }
        }
    }

    fn warn_rarely(&self, what: std::fmt::Arguments<'_>) {
        let now = Time::now().seconds;
        if self.last_warning_s.swap(now, Relaxed).abs_diff(now) >= WARN_EVERY_S {
            self.warn(what);
        }
    }

    /// Logs a message that must not be suppressed.
    pub(super) fn warn(&self, what: std::fmt::Arguments<'_>) {
        log::warn!("{}: {what}", self.identity);
    }
}
