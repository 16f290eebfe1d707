//! What a store answers instead of doing it, as the library tells it, in our table.

use super::transport::LATE;
use crate::BucketError;
use crate::error::in_words;
use opendal::ErrorKind;

/// Code and message of a store's answer, out of the library's text of it.
fn said(error: &opendal::Error) -> String {
    let text = error.message();
    let field = |name: &str| {
        let (_, rest) = text.split_once(&format!("{name}: \""))?;
        Some(rest.split_once('"')?.0.to_owned()).filter(|value| !value.is_empty())
    };
    match (field("code"), field("message")) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        (Some(code), None) => code,
        _ => {
            let mut text = text.to_owned();
            let mut source = std::error::Error::source(error);
            while let Some(cause) = source {
                text = format!("{text}: {cause}");
                source = cause.source();
            }
            if text.is_empty() { error.kind().to_string() } else { text }
        }
    }
}

/// Whether the store has said that it did nothing: it has a code for it, and none of those that
/// leave it open.
fn is_no(said: &str) -> bool {
    let open = ["InternalError", "RequestTimeout", "OperationAborted", "ServiceUnavailable"];
    let code = said.split(':').next().unwrap_or_default();
    let is_code = code.chars().all(|letter| letter.is_ascii_alphanumeric()) && code.len() > 3;
    is_code && code.starts_with(|first: char| first.is_ascii_uppercase()) && !open.contains(&code)
}

/// How long nothing had come, out of the text of such an error.
fn late_seconds(message: &str) -> u64 {
    message.rsplit(' ').nth(1).and_then(|seconds| seconds.parse().ok()).unwrap_or(0)
}

/// What the library tells, in our table.
pub(super) fn translate(key: &str, error: &opendal::Error) -> BucketError {
    let (key, message) = (key.to_owned(), said(error));
    let has = |words: &str| error.message().contains(words) || message.contains(words);
    match error.kind() {
        ErrorKind::ConfigInvalid if has("NoSuchBucket") => BucketError::NoSuchBucket { message },
        ErrorKind::NotFound => BucketError::NotFound { key },
        ErrorKind::ConditionNotMatch => BucketError::ConditionFailed { key },
        ErrorKind::PermissionDenied if has("InvalidObjectState") => BucketError::Archived { key },
        ErrorKind::PermissionDenied => BucketError::Denied { key, message },
        ErrorKind::RangeNotSatisfied => BucketError::OutOfRange { key },
        ErrorKind::Unexpected if has("InvalidRange") => BucketError::OutOfRange { key },
        ErrorKind::Unexpected if has("signing credential") => BucketError::Denied { key, message },
        ErrorKind::RateLimited | ErrorKind::Conflict => BucketError::Busy { key, message },
        ErrorKind::Unexpected if has("SlowDown") || has("ServiceUnavailable") => {
            BucketError::Busy { key, message }
        }
        // Amazon has room; others say so with 507.
        ErrorKind::Unexpected if has("StorageFull") => BucketError::Full { key, message },
        ErrorKind::Unsupported => BucketError::Unsupported { what: "do this" },
        _ if error.message().starts_with(LATE) => {
            BucketError::TimedOut { key, seconds: late_seconds(&message) }
        }
        ErrorKind::Unexpected if is_no(&message) => BucketError::Refused { key, message },
        _ => BucketError::Failed { key, message: in_words(message) },
    }
}
