//! The error answers of a store, and the errno of each.
//!
//! | error | HTTP | errno |
//! |---|---|---|
//! | [`BucketError::NotFound`] | 404 | `ENOENT` |
//! | [`BucketError::NoSuchBucket`] | 404 `NoSuchBucket` | `ENOENT` |
//! | [`BucketError::Denied`] | 401, 403 | `EACCES` |
//! | [`BucketError::ConditionFailed`] | 304, 412, 409 of a condition | `ESTALE` |
//! | [`BucketError::OutOfRange`] | 416 | none: the end of the file |
//! | [`BucketError::Busy`] | 429, 503, 403 of a rate limit, after retries | `EIO` |
//! | [`BucketError::Again`] | 409 after retries, 404 `NoSuchUpload` | `EIO` |
//! | [`BucketError::UnevenParts`] | 400 `InvalidPart` | `EIO` |
//! | [`BucketError::Archived`] | 403 `InvalidObjectState` | `EIO` |
//! | [`BucketError::Held`] | 409, 412 of a lease or of snapshots, 403 of a hold | `EBUSY` |
//! | [`BucketError::OtherBlob`] | detected before the request | `EPERM` |
//! | [`BucketError::Full`] | 507 | `ENOSPC` |
//! | [`BucketError::TimedOut`] | no answer within the timeout | `EIO` |
//! | [`BucketError::NoTurn`] | no request was sent | `EIO` |
//! | [`BucketError::Unsupported`] | 501, or detected before the request | `EOPNOTSUPP` |
//! | [`BucketError::BadKey`] | 400, or detected before the request | `EINVAL` |
//! | [`BucketError::KeyTooLong`] | detected before the request | `ENAMETOOLONG` |
//! | [`BucketError::Refused`] | 400, 501 and other definite refusals | `EIO` |
//! | [`BucketError::Failed`] | anything else | `EIO` |

use ogive_origin::Errno;
use thiserror::Error;

/// Why an operation of a bucket failed. Messages have the key and the store's answer, but no
/// credentials.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum BucketError {
    /// There is no such object.
    #[error("there is no object {key}")]
    NotFound {
        /// The requested key.
        key: String,
    },
    /// There is no such bucket.
    #[error("there is no such bucket: {message}")]
    NoSuchBucket {
        /// The answer of the store.
        message: String,
    },
    /// The credentials are missing, expired, or do not allow it.
    #[error("the store refuses {key}: {message}")]
    Denied {
        /// The key, or the bucket if the request was not about a key.
        key: String,
        /// The answer of the store.
        message: String,
    },
    /// The object does not match the condition: it was replaced, or it exists though it should not.
    #[error("{key} was changed by another client")]
    ConditionFailed {
        /// The key.
        key: String,
    },
    /// The range begins at or after the end of the object.
    #[error("{key} ends before the requested range")]
    OutOfRange {
        /// The key.
        key: String,
    },
    /// The store throttles, even after all retries.
    #[error("the store is too busy for {key}: {message}")]
    Busy {
        /// The key.
        key: String,
        /// The answer of the store.
        message: String,
    },
    /// A conflict with another request, or a multipart upload that is gone: the whole operation has
    /// to be repeated.
    #[error("the store asks to repeat the request for {key}: {message}")]
    Again {
        /// The key.
        key: String,
        /// The answer of the store.
        message: String,
    },
    /// The store rejects the parts of an upload. Some stores require parts of one length, except
    /// for the last. Nothing has happened.
    #[error("the store rejects the parts of {key}: {message}")]
    UnevenParts {
        /// The key.
        key: String,
        /// The answer of the store.
        message: String,
    },
    /// The object is in an archive and has to be restored before it can be read.
    #[error("{key} is archived: restore it in the store before reading it")]
    Archived {
        /// The key.
        key: String,
    },
    /// A lease, a snapshot or a policy protects the object. Nothing has happened.
    #[error(
        "{key} is held in the store: end its lease or hold, or delete its snapshots ({message})"
    )]
    Held {
        /// The key.
        key: String,
        /// The answer of the store.
        message: String,
    },
    /// An append blob or a page blob of Azure. A write would turn it into a block blob, to which
    /// its writer could not append any more. Nothing has happened.
    #[error(
        "{key} is a blob of type {kind}, which its writer changes in place: it can be read and \
         removed, but not overwritten; change a copy under another name"
    )]
    OtherBlob {
        /// The key.
        key: String,
        /// The store's name for such a blob.
        kind: String,
    },
    /// The store is full. Nothing has happened.
    #[error("the store is full and rejects {key}: {message}")]
    Full {
        /// The key.
        key: String,
        /// The answer of the store.
        message: String,
    },
    /// No answer within the timeout. **A write may have happened all the same**: check the mark
    /// with [`Bucket::head`](crate::Bucket::head) before reporting a conflict.
    #[error("no answer for {key} within {seconds} s")]
    TimedOut {
        /// The key.
        key: String,
        /// The timeout.
        seconds: u64,
    },
    /// Other reads used all turns within the timeout. No request was sent.
    #[error("{key} was not read: other reads took all turns for {seconds} s")]
    NoTurn {
        /// The key.
        key: String,
        /// The timeout.
        seconds: u64,
    },
    /// The store does not support this.
    #[error("the store cannot {what}")]
    Unsupported {
        /// The action that is not supported.
        what: &'static str,
    },
    /// The key cannot be sent or stored unchanged.
    #[error("{key:?} cannot be a key: {why}")]
    BadKey {
        /// The key.
        key: String,
        /// The reason.
        why: &'static str,
    },
    /// The key is longer than the store's limit.
    #[error("{key} is too long for the store")]
    KeyTooLong {
        /// The key.
        key: String,
    },
    /// A definite refusal for a reason that is not in this table. Nothing has happened.
    #[error("the store refuses the request for {key}: {message}")]
    Refused {
        /// The key.
        key: String,
        /// The answer of the store.
        message: String,
    },
    /// Anything else, such as a broken connection or an unreadable answer. **A write may have
    /// happened all the same**, as for [`BucketError::TimedOut`].
    #[error("{}{message}", before(key))]
    Failed {
        /// The key.
        key: String,
        /// The reason.
        message: String,
    },
}

impl BucketError {
    /// The errno for a program. Reads treat [`BucketError::OutOfRange`] as the end of the file;
    /// elsewhere it is `EINVAL`.
    pub fn errno(&self) -> Errno {
        match self {
            Self::NotFound { .. } | Self::NoSuchBucket { .. } => Errno::NOENT,
            Self::Denied { .. } => Errno::ACCESS,
            Self::ConditionFailed { .. } => Errno::STALE,
            Self::OutOfRange { .. } | Self::BadKey { .. } => Errno::INVAL,
            Self::KeyTooLong { .. } => Errno::NAMETOOLONG,
            Self::Unsupported { .. } => Errno::OPNOTSUPP,
            Self::Held { .. } => Errno::BUSY,
            Self::OtherBlob { .. } => Errno::PERM,
            Self::Full { .. } => Errno::NOSPC,
            Self::Busy { .. }
            | Self::Again { .. }
            | Self::UnevenParts { .. }
            | Self::Archived { .. }
            | Self::TimedOut { .. }
            | Self::NoTurn { .. }
            | Self::Refused { .. }
            | Self::Failed { .. } => Errno::IO,
        }
    }

    /// Appends a possible cause to the message of an error that may have such a cause.
    #[cfg(feature = "remote")]
    pub(crate) fn with(mut self, more: &str) -> Self {
        if let Self::Denied { message, .. }
        | Self::Busy { message, .. }
        | Self::Refused { message, .. }
        | Self::Failed { message, .. } = &mut self
        {
            message.push_str(more);
        }
        self
    }

    /// Whether a write that failed with this error may have happened.
    pub fn is_in_doubt(&self) -> bool {
        matches!(
            self,
            Self::TimedOut { .. } | Self::Failed { .. } | Self::Busy { .. } | Self::Again { .. }
        )
    }
}

/// The prefix of a message: the key, or nothing for the whole bucket.
fn before(key: &str) -> String {
    if key.is_empty() { String::new() } else { format!("{key}: ") }
}

/// The message of a connection error, with the next step if the library's message has none.
#[cfg(feature = "remote")]
pub(crate) fn in_words(message: String) -> String {
    // rustls's error for an answer that is not TLS.
    if message.contains("InvalidContentType") {
        return "the server does not speak TLS at this address; try http:// instead of https://"
            .to_owned();
    }
    message
}

impl From<BucketError> for Errno {
    fn from(error: BucketError) -> Self {
        error.errno()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_answer_of_a_store_has_its_errno() {
        let key = || "k".to_owned();
        let message = || "m".to_owned();
        let table = [
            (BucketError::NotFound { key: key() }, Errno::NOENT),
            (BucketError::NoSuchBucket { message: message() }, Errno::NOENT),
            (BucketError::Denied { key: key(), message: message() }, Errno::ACCESS),
            (BucketError::ConditionFailed { key: key() }, Errno::STALE),
            (BucketError::OutOfRange { key: key() }, Errno::INVAL),
            (BucketError::Busy { key: key(), message: message() }, Errno::IO),
            (BucketError::Again { key: key(), message: message() }, Errno::IO),
            (BucketError::Archived { key: key() }, Errno::IO),
            (BucketError::Held { key: key(), message: message() }, Errno::BUSY),
            (BucketError::OtherBlob { key: key(), kind: message() }, Errno::PERM),
            (BucketError::Full { key: key(), message: message() }, Errno::NOSPC),
            (BucketError::TimedOut { key: key(), seconds: 1 }, Errno::IO),
            (BucketError::NoTurn { key: key(), seconds: 1 }, Errno::IO),
            (BucketError::Unsupported { what: "rename" }, Errno::OPNOTSUPP),
            (BucketError::BadKey { key: key(), why: "it is empty" }, Errno::INVAL),
            (BucketError::KeyTooLong { key: key() }, Errno::NAMETOOLONG),
            (BucketError::Refused { key: key(), message: message() }, Errno::IO),
            (BucketError::Failed { key: key(), message: message() }, Errno::IO),
        ];
        for (error, errno) in table {
            assert_eq!(error.errno(), errno, "{error}");
            assert!(!error.to_string().is_empty());
        }
    }
}
