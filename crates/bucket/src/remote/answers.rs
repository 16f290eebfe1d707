//! What a store answers instead of doing it, as the library tells it, in our table; and which
//! answers are not the last word.
//!
//! Where a request is to be repeated, [`super::transport`] says so, and it is sent again. Where all
//! of it is to be done anew, that is [`BucketError::Again`], and whoever has the bytes does it. Where
//! nobody knows whether it was done, the store is asked what is there before anything is said.

use super::transport::{LATE, text_of};
use crate::BucketError;
use crate::error::in_words;
use http::{Method, StatusCode};
use opendal::ErrorKind;

/// How codes of Azure begin by which it says that somebody holds a blob.
const HOLDS: [&str; 4] = ["Lease", "SnapshotsPresent", "BlobImmutable", "ContainerHasLegalHold"];

/// How S3 says that credentials have ended.
const ENDED: [&str; 3] = ["ExpiredToken", "InvalidToken", "TokenRefreshRequired"];

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

/// What an answer means that is not the last word on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// The same request is to be sent again.
    Repeat,
    /// What it was a part of has gone, or was crossed by another: all of it is to be done anew.
    Anew,
    /// As [`Word::Repeat`], and more slowly.
    Patience,
    /// Nobody knows whether it was done. The library sends it again.
    Open,
    /// It can be read some hours after somebody has asked for that.
    Archived,
}

/// By the codes that stores give. A code that is not here says that nothing was done, and that it is
/// not going to be.
const CODES: [(&str, Word); 15] = [
    // Amazon, and those that speak its protocol.
    ("ConditionalRequestConflict", Word::Repeat),
    ("InternalError", Word::Open),
    ("InvalidObjectState", Word::Archived),
    ("NoSuchUpload", Word::Anew),
    ("OperationAborted", Word::Repeat),
    ("RequestTimeout", Word::Open),
    ("ServiceUnavailable", Word::Patience),
    ("SlowDown", Word::Patience),
    ("TooManyRequests", Word::Patience),
    // Azure.
    ("BlobArchived", Word::Archived),
    ("BlobBeingRehydrated", Word::Archived),
    ("InternalServerError", Word::Open),
    ("InvalidBlockList", Word::Anew),
    ("OperationTimedOut", Word::Open),
    ("ServerBusy", Word::Patience),
];

/// By the status, where no code is told: what stands before a store gives none. The library repeats
/// 429, 500, 502, 503 and 504 by itself.
fn of_status(status: u16) -> Option<Word> {
    match status {
        // A request that did not come in time, or too early.
        408 | 425 => Some(Word::Repeat),
        // Those of content networks for a store that they cannot reach.
        520..=530 => Some(Word::Repeat),
        _ => None,
    }
}

fn of_code(code: &str) -> Option<Word> {
    CODES.iter().find(|(known, _)| *known == code).map(|(_, word)| *word)
}

/// Whether a request is to be sent again that was answered so, though the library takes that for
/// the last word; the code, or the status, if it is.
pub(super) fn repeated(method: &Method, status: StatusCode, body: &str) -> Option<String> {
    let code = text_of(body, "Code");
    let word = match &code {
        Some(code) => of_code(code),
        // The answer to a HEAD has no room for a code. A read is in conflict with nothing for long.
        None if *method == Method::HEAD && status == StatusCode::CONFLICT => Some(Word::Repeat),
        None => of_status(status.as_u16()),
    };
    (word == Some(Word::Repeat)).then(|| code.unwrap_or_else(|| status.to_string()))
}

/// Whether the store has said that it did nothing: it has a code for it, and none of those that
/// leave it open.
fn is_no(code: &str) -> bool {
    let is_code = code.chars().all(|letter| letter.is_ascii_alphanumeric()) && code.len() > 3;
    is_code && code.starts_with(|first: char| first.is_ascii_uppercase())
}

/// How long nothing had come, out of the text of such an error.
fn late_seconds(message: &str) -> u64 {
    message.rsplit(' ').nth(1).and_then(|seconds| seconds.parse().ok()).unwrap_or(0)
}

/// What the library tells, in our table.
pub(super) fn translate(key: &str, error: &opendal::Error) -> BucketError {
    let (key, message) = (key.to_owned(), said(error));
    let code = message.split(':').next().unwrap_or_default();
    match of_code(code) {
        Some(Word::Anew | Word::Repeat) => return BucketError::Again { key, message },
        Some(Word::Archived) => return BucketError::Archived { key },
        Some(Word::Patience) => return BucketError::Busy { key, message },
        Some(Word::Open) => return BucketError::Failed { key, message },
        None => {}
    }
    match error.kind() {
        ErrorKind::ConfigInvalid if code == "NoSuchBucket" => BucketError::NoSuchBucket { message },
        ErrorKind::NotFound => BucketError::NotFound { key },
        ErrorKind::ConditionNotMatch => BucketError::ConditionFailed { key },
        ErrorKind::PermissionDenied => BucketError::Denied { key, message },
        ErrorKind::RangeNotSatisfied => BucketError::OutOfRange { key },
        ErrorKind::Unexpected if code == "InvalidRange" => BucketError::OutOfRange { key },
        // Amazon says it with 400.
        ErrorKind::Unexpected if ENDED.contains(&code) => BucketError::Denied { key, message },
        ErrorKind::Unexpected if message.contains("signing credential") => {
            BucketError::Denied { key, message }
        }
        ErrorKind::RateLimited => BucketError::Busy { key, message },
        ErrorKind::Conflict if HOLDS.iter().any(|held| code.starts_with(held)) => {
            BucketError::Held { key, message }
        }
        ErrorKind::Conflict => BucketError::Again { key, message },
        ErrorKind::Unexpected if code == "InvalidPart" => BucketError::UnevenParts { key, message },
        // Amazon has room; others say so with 507.
        ErrorKind::Unexpected if code == "StorageFull" => BucketError::Full { key, message },
        ErrorKind::Unsupported => BucketError::Unsupported { what: "do this" },
        _ if error.message().starts_with(LATE) => {
            BucketError::TimedOut { key, seconds: late_seconds(&message) }
        }
        // Without a text there is the kind, which is no code.
        ErrorKind::Unexpected if is_no(code) && !error.message().is_empty() => {
            BucketError::Refused { key, message }
        }
        _ => BucketError::Failed { key, message: in_words(message) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_that_have_ended_are_told_as_those() {
        for code in ENDED {
            let text = format!("S3Error {{ code: \"{code}\", message: \"said\" }}");
            let error = opendal::Error::new(ErrorKind::Unexpected, text);
            assert!(matches!(translate("k", &error), BucketError::Denied { .. }), "{code}");
        }
    }

    #[test]
    fn what_somebody_holds_is_told_as_that() {
        let conflict = |code: &str| {
            let text = format!("AzblobError {{ code: \"{code}\", message: \"said\" }}");
            translate("k", &opendal::Error::new(ErrorKind::Conflict, text))
        };
        for code in ["LeaseIdMissing", "LeaseAlreadyPresent", "SnapshotsPresent"] {
            let message = format!("{code}: said");
            assert_eq!(conflict(code), BucketError::Held { key: "k".to_owned(), message });
        }
    }

    #[test]
    fn what_stores_say_is_told_by_its_code_and_not_by_the_words_around_it() {
        let said = |kind, code: &str, message: &str| {
            let text = format!("StoreError {{ code: {code:?}, message: {message:?} }}");
            let error = translate("k", &opendal::Error::new(kind, text));
            format!("{error:?}").split(' ').next().unwrap_or_default().to_owned()
        };
        let (open, conflict) = (ErrorKind::Unexpected, ErrorKind::Conflict);
        let table = [
            (open, "SlowDown", "Busy"),
            (open, "ServerBusy", "Busy"),
            (conflict, "OperationAborted", "Again"),
            (conflict, "ConditionalRequestConflict", "Again"),
            (conflict, "PendingCopyOperation", "Again"),
            (ErrorKind::NotFound, "NoSuchUpload", "Again"),
            (open, "InvalidBlockList", "Again"),
            (ErrorKind::NotFound, "NoSuchKey", "NotFound"),
            (conflict, "BlobBeingRehydrated", "Archived"),
            (ErrorKind::PermissionDenied, "InvalidObjectState", "Archived"),
            (ErrorKind::PermissionDenied, "AccessDenied", "Denied"),
            (open, "OperationTimedOut", "Failed"),
            (open, "InternalError", "Failed"),
            (open, "EntityTooLarge", "Refused"),
            (open, "InvalidPart", "UnevenParts"),
        ];
        for (kind, code, expected) in table {
            assert_eq!(said(kind, code, "a word"), expected, "{code}");
            // A key may be called anything.
            assert_eq!(said(kind, code, "SlowDown, or NoSuchUpload"), expected, "{code}");
        }
    }

    #[test]
    fn what_stands_before_a_store_has_a_request_sent_again() {
        let is_repeated = |status, body: &str| {
            repeated(&Method::GET, StatusCode::from_u16(status).expect("a status"), body)
        };
        for status in [408, 425, 520, 524, 530] {
            assert!(is_repeated(status, "<html/>").is_some(), "{status}");
        }
        for status in [400, 403, 404, 409, 412, 501] {
            assert!(is_repeated(status, "").is_none(), "{status}");
        }
        assert!(is_repeated(409, "<Error><Code>OperationAborted</Code></Error>").is_some());
        assert!(is_repeated(409, "<Error><Code>BucketNotEmpty</Code></Error>").is_none());
    }
}
