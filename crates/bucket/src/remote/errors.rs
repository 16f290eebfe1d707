//! Translates the errors of the library into [`BucketError`], and says which answers are not final.
//!
//! A request that may be repeated is sent again by [`super::transport`]. Work that has to be
//! repeated as a whole is [`BucketError::Again`]; the layer that has the bytes repeats it. Where it
//! is unknown whether a request took effect, the store is asked for the object before an error is
//! returned.

use super::limits::LATE;
use crate::BucketError;
use crate::error::in_words;
use http::{Method, StatusCode};
use opendal::ErrorKind;

/// How codes begin with which Azure and Google say that an object is held.
const HOLDS: [&str; 6] = [
    "Lease",
    "SnapshotsPresent",
    "BlobImmutable",
    "ContainerHasLegalHold",
    "objectUnderActiveHold",
    "retentionPolicyNotMet",
];

/// How S3 says that credentials have ended.
const ENDED: [&str; 3] = ["ExpiredToken", "InvalidToken", "TokenRefreshRequired"];

/// Code and message of a store's answer, out of the library's text of it. Google's code is what it
/// calls the reason.
fn said(error: &opendal::Error) -> String {
    let text = error.message();
    let field = |name: &str| {
        let (_, rest) = text.split_once(&format!("{name}: \""))?;
        Some(rest.split_once('"')?.0.to_owned()).filter(|value| !value.is_empty())
    };
    match (field("code").or_else(|| field("reason")), field("message")) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        (Some(text), None) | (None, Some(text)) => text,
        (None, None) => {
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

/// The meaning of an answer that is not final.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// The same request is to be sent again.
    Repeat,
    /// Its whole has gone, or another request crossed it: all of it has to be repeated.
    Anew,
    /// As [`Word::Repeat`], and more slowly.
    Patience,
    /// It is unknown whether it was done. The library sends it again.
    Open,
    /// It can be read some hours after a restore was requested.
    Archived,
}

/// By the codes that stores give. A code that is not here says that nothing was done, and that it is
/// not going to be.
const CODES: [(&str, Word); 20] = [
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
    // Google.
    ("backendError", Word::Open),
    ("conflict", Word::Repeat),
    ("internalError", Word::Open),
    ("rateLimitExceeded", Word::Patience),
    ("userRateLimitExceeded", Word::Patience),
];
/// The code of [`Word::Anew`] where the answer has none.
const GONE: &str = "NoSuchUpload";

/// Which statuses the library takes for no last word by itself.
fn is_repeated_anyway(status: StatusCode) -> bool {
    matches!(status.as_u16(), 429 | 500 | 502 | 503 | 504)
}

/// By the status, whatever the code: what stands before a store gives none.
fn of_status(status: u16) -> Option<Word> {
    match status {
        // A request that did not come in time, or too early.
        408 | 425 => Some(Word::Repeat),
        // The statuses of content networks for a store that they cannot reach.
        520..=530 => Some(Word::Repeat),
        _ => None,
    }
}

fn of_code(code: &str) -> Option<Word> {
    CODES.iter().find(|(known, _)| *known == code).map(|(_, word)| *word)
}

/// The text between the first tags of a name.
pub(super) fn text_of(text: &str, name: &str) -> Option<String> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    let (inner, _) = rest.split_once(&format!("</{name}>"))?;
    let entities =
        [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")];
    Some(entities.iter().fold(inner.to_owned(), |text, (entity, is)| text.replace(entity, is)))
}

/// The code in the body of an answer: in XML, or in Google's JSON.
fn code_in(body: &str) -> Option<String> {
    let reason = || {
        let (_, rest) = body.split_once("\"reason\"")?;
        Some(rest.split('"').nth(1)?.to_owned())
    };
    text_of(body, "Code").or_else(reason)
}

/// Whether an answer asks for patience and refuses nothing.
pub(super) fn is_about_rate(body: &str) -> bool {
    code_in(body).and_then(|code| of_code(&code)) == Some(Word::Patience)
}

/// The error of a request that the library takes for answered for good, or for something else, and
/// is not: it is to be sent again, or its upload has gone.
pub(super) fn no_last_word(
    (method, query): (&Method, &str),
    status: StatusCode,
    body: &str,
) -> Option<opendal::Error> {
    let is_session = query.split('&').any(|field| field.starts_with("upload_id="));
    if is_session && matches!(status, StatusCode::NOT_FOUND | StatusCode::GONE) {
        return Some(opendal::Error::new(ErrorKind::Unexpected, GONE));
    }
    let code = code_in(body);
    let word = match &code {
        _ if of_status(status.as_u16()).is_some() => of_status(status.as_u16()),
        Some(code) => of_code(code),
        // The answer to a HEAD has no room for a code. A read is in conflict with nothing for long.
        None if *method == Method::HEAD && status == StatusCode::CONFLICT => Some(Word::Repeat),
        None => None,
    };
    let is_repeated = match word {
        Some(Word::Repeat) => true,
        Some(Word::Patience) => !is_repeated_anyway(status),
        _ => false,
    };
    let said = code.unwrap_or_else(|| status.to_string());
    is_repeated.then(|| opendal::Error::new(ErrorKind::Unexpected, said).set_temporary())
}

/// Whether the store has said that it did nothing: it has a code for it, and none of those that
/// leave it open. Google's codes begin with a small letter, and so do words of a connection's errors.
fn is_no(code: &str, text: &str) -> bool {
    let is_code = code.chars().all(|letter| letter.is_ascii_alphanumeric()) && code.len() > 3;
    let is_google = text.starts_with("GcsErrorResponse");
    is_code && (is_google || code.starts_with(|first: char| first.is_ascii_uppercase()))
}

/// How long nothing had come, out of the text of such an error.
fn late_seconds(message: &str) -> u64 {
    message.rsplit(' ').nth(1).and_then(|seconds| seconds.parse().ok()).unwrap_or(0)
}

/// Translates an error of the library.
pub(super) fn translate(key: &str, error: &opendal::Error) -> BucketError {
    let (key, message) = (key.to_owned(), said(error));
    let code = message.split(':').next().unwrap_or_default();
    match of_code(code) {
        Some(Word::Anew | Word::Repeat) => return BucketError::Again { key, message },
        Some(Word::Archived) => return BucketError::Archived { key },
        Some(Word::Patience) => return BucketError::Busy { key, message },
        Some(Word::Open) => return BucketError::Failed { key, message },
        None if HOLDS.iter().any(|held| code.starts_with(held)) => {
            return BucketError::Held { key, message };
        }
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
        ErrorKind::Conflict => BucketError::Again { key, message },
        ErrorKind::Unexpected if code == "InvalidPart" => BucketError::UnevenParts { key, message },
        // Amazon has room; others say so with 507.
        ErrorKind::Unexpected if code == "StorageFull" => BucketError::Full { key, message },
        ErrorKind::Unsupported => BucketError::Unsupported { what: "do this" },
        _ if error.message().starts_with(LATE) => {
            BucketError::TimedOut { key, seconds: late_seconds(&message) }
        }
        // Without a text there is the kind, which is no code.
        ErrorKind::Unexpected if is_no(code, error.message()) && !error.message().is_empty() => {
            BucketError::Refused { key, message }
        }
        _ => BucketError::Failed { key, message: in_words(message) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ended_credentials_are_reported_as_ended() {
        for code in ENDED {
            let text = format!("S3Error {{ code: \"{code}\", message: \"said\" }}");
            let error = opendal::Error::new(ErrorKind::Unexpected, text);
            assert!(matches!(translate("k", &error), BucketError::Denied { .. }), "{code}");
        }
    }

    /// An error of Google's, as the library reports it.
    fn google(status: u16, reason: &str) -> String {
        format!(
            "GcsErrorResponse {{ error: GcsError {{ code: {status}, message: \"said\", errors: \
             [GcsErrorDetail {{ domain: \"global\", message: \"said\", reason: {reason:?} }}] }} }}"
        )
    }

    #[test]
    fn an_object_that_is_held_is_reported_as_held() {
        let azure = |code: &str| format!("AzblobError {{ code: \"{code}\", message: \"said\" }}");
        let is_held = |kind, code: &str, text: String| {
            let message = format!("{code}: said");
            let told = translate("k", &opendal::Error::new(kind, text));
            assert_eq!(told, BucketError::Held { key: "k".to_owned(), message });
        };
        for code in ["LeaseIdMissing", "LeaseAlreadyPresent", "SnapshotsPresent"] {
            is_held(ErrorKind::Conflict, code, azure(code));
        }
        for code in ["objectUnderActiveHold", "retentionPolicyNotMet"] {
            is_held(ErrorKind::PermissionDenied, code, google(403, code));
        }
    }

    #[test]
    fn an_error_of_google_keeps_its_reason_and_its_words() {
        let told = |kind, reason| {
            translate("k", &opendal::Error::new(kind, google(400, reason))).to_string()
        };
        let (open, denied) = (ErrorKind::Unexpected, ErrorKind::PermissionDenied);
        assert_eq!(told(denied, "forbidden"), "the store refuses k: forbidden: said");
        assert_eq!(told(open, "invalid"), "the store does not do this to k: invalid: said");
        assert_eq!(told(open, "backendError"), "k: backendError: said");
        let busy = "the store is too busy for k: rateLimitExceeded: said";
        assert_eq!(told(denied, "rateLimitExceeded"), busy);
    }

    #[test]
    fn errors_are_known_by_their_code_and_not_by_the_words_around_it() {
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
    fn an_error_of_a_gateway_has_the_request_sent_again() {
        let is_repeated = |status, body: &str| {
            let status = StatusCode::from_u16(status).expect("a status");
            no_last_word((&Method::GET, ""), status, body)
        };
        for status in [408, 425, 520, 524, 530] {
            assert!(is_repeated(status, "<html/>").is_some(), "{status}");
        }
        for status in [400, 403, 404, 409, 412, 501] {
            assert!(is_repeated(status, "").is_none(), "{status}");
        }
        assert!(is_repeated(409, "<Error><Code>OperationAborted</Code></Error>").is_some());
        assert!(is_repeated(409, "<Error><Code>BucketNotEmpty</Code></Error>").is_none());
        assert!(
            is_repeated(403, "{\"error\": {\"errors\": [{\"reason\": \"forbidden\"}]}}").is_none()
        );
    }
}
