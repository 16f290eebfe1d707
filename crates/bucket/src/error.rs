//! What a store answers when it does not do what it was asked, and the errno of it.
//!
//! | answer | HTTP | errno |
//! |---|---|---|
//! | [`BucketError::NotFound`] | 404 | `ENOENT` |
//! | [`BucketError::NoSuchBucket`] | 404 `NoSuchBucket` | `ENOENT` |
//! | [`BucketError::Denied`] | 401, 403 | `EACCES` |
//! | [`BucketError::ConditionFailed`] | 304, 412, 409 of a condition | `ESTALE` |
//! | [`BucketError::OutOfRange`] | 416 | none: the end of the file |
//! | [`BucketError::Busy`] | 429, 503, 403 of a rate after retries | `EIO` |
//! | [`BucketError::Again`] | 409 after retries, 404 `NoSuchUpload` | `EIO` |
//! | [`BucketError::UnevenParts`] | 400 `InvalidPart` | `EIO` |
//! | [`BucketError::Archived`] | 403 `InvalidObjectState` | `EIO` |
//! | [`BucketError::Held`] | 409, 412 of a lease or of snapshots, 403 of a hold | `EBUSY` |
//! | [`BucketError::OtherBlob`] | known beforehand | `EPERM` |
//! | [`BucketError::Full`] | 507 | `ENOSPC` |
//! | [`BucketError::TimedOut`] | none within the time allowed | `EIO` |
//! | [`BucketError::NoTurn`] | not asked | `EIO` |
//! | [`BucketError::Unsupported`] | 501, or known beforehand | `EOPNOTSUPP` |
//! | [`BucketError::BadKey`] | 400, or known beforehand | `EINVAL` |
//! | [`BucketError::KeyTooLong`] | known beforehand | `ENAMETOOLONG` |
//! | [`BucketError::Refused`] | 400, 501 and others by which it is said that nothing was done | `EIO` |
//! | [`BucketError::Failed`] | anything else | `EIO` |

use ogive_origin::Errno;
use thiserror::Error;

/// Why an operation of a bucket failed. Texts name the key and what the store said; they hold no
/// credentials.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum BucketError {
    /// There is no such object.
    #[error("there is no object {key}")]
    NotFound {
        /// The key asked for.
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
        /// The key, or the bucket where no key is meant.
        key: String,
        /// The answer of the store.
        message: String,
    },
    /// The object is another one than the condition names, or exists where none was to exist.
    #[error("{key} was changed by somebody else")]
    ConditionFailed {
        /// The key.
        key: String,
    },
    /// The range begins at or after the end of the object.
    #[error("{key} ends before the range asked for")]
    OutOfRange {
        /// The key.
        key: String,
    },
    /// The store asks for patience, and went on to after all retries.
    #[error("the store is too busy for {key}: {message}")]
    Busy {
        /// The key.
        key: String,
        /// The answer of the store.
        message: String,
    },
    /// Another request was in the way, or a multipart upload has gone: all of it has to be
    /// repeated.
    #[error("the store asks to repeat the request for {key}: {message}")]
    Again {
        /// The key.
        key: String,
        /// The answer of the store.
        message: String,
    },
    /// The store does not take the parts of an upload as they are. Some take parts of one length
    /// only, with a shorter one at the end. Nothing has happened.
    #[error("the store does not take the parts of {key}: {message}")]
    UnevenParts {
        /// The key.
        key: String,
        /// The answer of the store.
        message: String,
    },
    /// The object is in an archive and has to be restored before it can be read.
    #[error("{key} is archived; restore it in the store before it is read")]
    Archived {
        /// The key.
        key: String,
    },
    /// A lease, a snapshot or a policy holds it in the store. Nothing has happened.
    #[error(
        "{key} is held in the store; end its lease or hold, or delete its snapshots there: {message}"
    )]
    Held {
        /// The key.
        key: String,
        /// The answer of the store.
        message: String,
    },
    /// It is an append blob or a page blob of Azure. A change here would make a block blob of it, to
    /// which its writer can add no more. Nothing has happened.
    #[error(
        "{key} is a blob of type {kind}, which its writer changes in place; it can be read and \
         removed here. Change a copy of it under another name"
    )]
    OtherBlob {
        /// The key.
        key: String,
        /// The store's name for such a blob.
        kind: String,
    },
    /// The store has no room for it. Nothing has happened.
    #[error("the store has no room for {key}: {message}")]
    Full {
        /// The key.
        key: String,
        /// The answer of the store.
        message: String,
    },
    /// No answer within the time allowed. **A write may have happened all the same**: look with
    /// [`Bucket::head`](crate::Bucket::head) for the mark that it was sent with before anything is
    /// called a conflict.
    #[error("no answer for {key} within {seconds} s")]
    TimedOut {
        /// The key.
        key: String,
        /// The time allowed.
        seconds: u64,
    },
    /// So many reads were under way that this one had no turn within the time allowed. The store was
    /// not asked.
    #[error("{key} is not read: other reads took all turns for {seconds} s")]
    NoTurn {
        /// The key.
        key: String,
        /// The time allowed.
        seconds: u64,
    },
    /// The store cannot do that.
    #[error("the store cannot {what}")]
    Unsupported {
        /// The action that is not supported.
        what: &'static str,
    },
    /// The key cannot be sent or stored as it is.
    #[error("{key:?} cannot be a key: {why}")]
    BadKey {
        /// The key.
        key: String,
        /// Why.
        why: &'static str,
    },
    /// The key has more bytes, or characters, than the store takes.
    #[error("{key} is longer than the store takes")]
    KeyTooLong {
        /// The key.
        key: String,
    },
    /// The store has answered that it does not do it, in words that are not in this table. Nothing
    /// has happened.
    #[error("the store does not do this to {key}: {message}")]
    Refused {
        /// The key.
        key: String,
        /// The answer of the store.
        message: String,
    },
    /// Anything else: a connection that failed, an answer that makes no sense. **A write may have
    /// happened all the same**, as for [`BucketError::TimedOut`].
    #[error("{}{message}", before(key))]
    Failed {
        /// The key.
        key: String,
        /// What happened.
        message: String,
    },
}

impl BucketError {
    /// The errno for a program. A reader takes [`BucketError::OutOfRange`] as the end of the file;
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

    /// The same with something added to what the store or the connection said, where that may be of
    /// its cause.
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

    /// Whether a write that failed so may have happened: the caller has to look.
    pub fn is_in_doubt(&self) -> bool {
        matches!(
            self,
            Self::TimedOut { .. } | Self::Failed { .. } | Self::Busy { .. } | Self::Again { .. }
        )
    }
}

/// The prefix of a message: none, if the message is about the whole bucket.
fn before(key: &str) -> String {
    if key.is_empty() { String::new() } else { format!("{key}: ") }
}

/// The failure of a connection, in words that say what to do where its own do not.
#[cfg(feature = "remote")]
pub(crate) fn in_words(message: String) -> String {
    // rustls's for an answer that is none of TLS.
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
