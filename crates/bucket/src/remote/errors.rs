//! Translates the library's errors into [`BucketError`], and decides which answers are not final.
//!
//! [`super::transport`] retries requests that can be repeated alone. [`BucketError::Again`] means
//! that the whole operation has to be repeated; the layer that has the bytes repeats it. If it is
//! unknown whether a request took effect, the store is asked for the object before an error is
//! returned.

use super::limits::LATE;
use crate::BucketError;
use crate::error::in_words;
use http::{Method, StatusCode};
use opendal::ErrorKind;

/// Prefixes of the codes by which Azure and Google say that an object is held.
const HOLDS: [&str; 6] = [
    "Lease",
    "SnapshotsPresent",
    "BlobImmutable",
    "ContainerHasLegalHold",
    "objectUnderActiveHold",
    "retentionPolicyNotMet",
];

/// The codes by which S3 says that credentials have expired.
const ENDED: [&str; 3] = ["ExpiredToken", "InvalidToken", "TokenRefreshRequired"];

/// The code and message of a store's answer, from the library's text of it. For Google the code is
/// the reason.
fn code_and_message(error: &opendal::Error) -> String {
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
pub(super) enum Meaning {
    /// Send the same request again.
    Repeat,
    /// The multipart upload is gone, or another request conflicted: repeat the whole operation.
    Restart,
    /// As [`Meaning::Repeat`], but more slowly: the store throttles.
    Throttled,
    /// It is unknown whether the request was done. The library repeats it.
    Unknown,
    /// The object can be read some hours after its restore was requested.
    Archived,
}

/// Codes of stores. Any other code means that nothing was done, and that a retry will not help.
const CODES: [(&str, Meaning); 20] = [
    // Amazon, and stores that speak its protocol.
    ("ConditionalRequestConflict", Meaning::Repeat),
    ("InternalError", Meaning::Unknown),
    ("InvalidObjectState", Meaning::Archived),
    ("NoSuchUpload", Meaning::Restart),
    ("OperationAborted", Meaning::Repeat),
    ("RequestTimeout", Meaning::Unknown),
    ("ServiceUnavailable", Meaning::Throttled),
    ("SlowDown", Meaning::Throttled),
    ("TooManyRequests", Meaning::Throttled),
    // Azure.
    ("BlobArchived", Meaning::Archived),
    ("BlobBeingRehydrated", Meaning::Archived),
    ("InternalServerError", Meaning::Unknown),
    ("InvalidBlockList", Meaning::Restart),
    ("OperationTimedOut", Meaning::Unknown),
    ("ServerBusy", Meaning::Throttled),
    // Google.
    ("backendError", Meaning::Unknown),
    ("conflict", Meaning::Repeat),
    ("internalError", Meaning::Unknown),
    ("rateLimitExceeded", Meaning::Throttled),
    ("userRateLimitExceeded", Meaning::Throttled),
];
/// The code of [`Meaning::Restart`] if the answer has none.
const GONE: &str = "NoSuchUpload";

/// Whether the library retries this status by itself.
fn is_repeated_anyway(status: StatusCode) -> bool {
    matches!(status.as_u16(), 429 | 500 | 502 | 503 | 504)
}

/// The meaning of a status from a gateway, which adds no code.
fn of_status(status: u16) -> Option<Meaning> {
    match status {
        // The request came too late, or too early.
        408 | 425 => Some(Meaning::Repeat),
        // Content delivery networks use these if they cannot reach the store.
        520..=530 => Some(Meaning::Repeat),
        _ => None,
    }
}

fn of_code(code: &str) -> Option<Meaning> {
    CODES.iter().find(|(known, _)| *known == code).map(|(_, meaning)| *meaning)
}

/// The text of the first element with a name.
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

/// Whether an answer throttles and is not a refusal.
pub(super) fn is_about_rate(body: &str) -> bool {
    code_in(body).and_then(|code| of_code(&code)) == Some(Meaning::Throttled)
}

/// The error of an answer that the library misreads as final or as something else: the request has
/// to be sent again, or its upload is gone.
pub(super) fn not_final(
    (method, query): (&Method, &str),
    status: StatusCode,
    body: &str,
) -> Option<opendal::Error> {
    let is_session = query.split('&').any(|field| field.starts_with("upload_id="));
    if is_session && matches!(status, StatusCode::NOT_FOUND | StatusCode::GONE) {
        return Some(opendal::Error::new(ErrorKind::Unexpected, GONE));
    }
    let code = code_in(body);
    let meaning = match &code {
        _ if of_status(status.as_u16()).is_some() => of_status(status.as_u16()),
        Some(code) => of_code(code),
        // The answer to a HEAD has no body for a code. A conflict with a read is temporary.
        None if *method == Method::HEAD && status == StatusCode::CONFLICT => Some(Meaning::Repeat),
        None => None,
    };
    let is_repeated = match meaning {
        Some(Meaning::Repeat) => true,
        Some(Meaning::Throttled) => !is_repeated_anyway(status),
        _ => false,
    };
    let said = code.unwrap_or_else(|| status.to_string());
    is_repeated.then(|| opendal::Error::new(ErrorKind::Unexpected, said).set_temporary())
}

/// Whether the store has refused the request: the answer has a code that is not in [`CODES`].
/// Google's codes start with a small letter, and so do the messages of connection errors.
fn is_refusal(code: &str, text: &str) -> bool {
    let is_code = code.chars().all(|letter| letter.is_ascii_alphanumeric()) && code.len() > 3;
    let is_google = text.starts_with("GcsErrorResponse");
    is_code && (is_google || code.starts_with(|first: char| first.is_ascii_uppercase()))
}

/// For how long nothing had arrived, from the text of such an error.
fn late_seconds(message: &str) -> u64 {
    message.rsplit(' ').nth(1).and_then(|seconds| seconds.parse().ok()).unwrap_or(0)
}

/// Translates an error of the library.
pub(super) fn translate(key: &str, error: &opendal::Error) -> BucketError {
    let (key, message) = (key.to_owned(), code_and_message(error));
    let code = message.split(':').next().unwrap_or_default();
    match of_code(code) {
        Some(Meaning::Restart | Meaning::Repeat) => return BucketError::Again { key, message },
        Some(Meaning::Archived) => return BucketError::Archived { key },
        Some(Meaning::Throttled) => return BucketError::Busy { key, message },
        Some(Meaning::Unknown) => return BucketError::Failed { key, message },
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
        // Amazon uses status 400.
        ErrorKind::Unexpected if ENDED.contains(&code) => BucketError::Denied { key, message },
        ErrorKind::Unexpected if message.contains("signing credential") => {
            BucketError::Denied { key, message }
        }
        ErrorKind::RateLimited => BucketError::Busy { key, message },
        ErrorKind::Conflict => BucketError::Again { key, message },
        ErrorKind::Unexpected if code == "InvalidPart" => BucketError::UnevenParts { key, message },
        // Amazon never runs full; other stores use 507.
        ErrorKind::Unexpected if code == "StorageFull" => BucketError::Full { key, message },
        ErrorKind::Unsupported => BucketError::Unsupported { what: "do this" },
        _ if error.message().starts_with(LATE) => {
            BucketError::TimedOut { key, seconds: late_seconds(&message) }
        }
        // An empty text is replaced by the kind, which is not a code.
        ErrorKind::Unexpected
            if is_refusal(code, error.message()) && !error.message().is_empty() =>
        {
            BucketError::Refused { key, message }
        }
        _ => BucketError::Failed { key, message: in_words(message) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expired_credentials_are_reported_as_expired() {
        for code in ENDED {
            let text = format!("S3Error {{ code: \"{code}\", message: \"said\" }}");
            let error = opendal::Error::new(ErrorKind::Unexpected, text);
            assert!(matches!(translate("k", &error), BucketError::Denied { .. }), "{code}");
        }
    }

    /// An error of Google, in the library's text.
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
            let translated = translate("k", &opendal::Error::new(kind, text));
            assert_eq!(translated, BucketError::Held { key: "k".to_owned(), message });
        };
        for code in ["LeaseIdMissing", "LeaseAlreadyPresent", "SnapshotsPresent"] {
            is_held(ErrorKind::Conflict, code, azure(code));
        }
        for code in ["objectUnderActiveHold", "retentionPolicyNotMet"] {
            is_held(ErrorKind::PermissionDenied, code, google(403, code));
        }
    }

    #[test]
    fn an_error_of_google_keeps_its_reason_and_message() {
        let message = |kind, reason| {
            translate("k", &opendal::Error::new(kind, google(400, reason))).to_string()
        };
        let (open, denied) = (ErrorKind::Unexpected, ErrorKind::PermissionDenied);
        assert_eq!(message(denied, "forbidden"), "the store refuses k: forbidden: said");
        assert_eq!(message(open, "invalid"), "the store refuses the request for k: invalid: said");
        assert_eq!(message(open, "backendError"), "k: backendError: said");
        let busy = "the store is too busy for k: rateLimitExceeded: said";
        assert_eq!(message(denied, "rateLimitExceeded"), busy);
    }

    #[test]
    fn errors_are_recognized_by_their_code_and_not_by_their_message() {
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
            assert_eq!(said(kind, code, "a meaning"), expected, "{code}");
            // A message may contain a key with any name.
            assert_eq!(said(kind, code, "SlowDown, or NoSuchUpload"), expected, "{code}");
        }
    }

    #[test]
    fn a_request_is_repeated_after_an_error_of_a_gateway() {
        let is_repeated = |status, body: &str| {
            let status = StatusCode::from_u16(status).expect("a status");
            not_final((&Method::GET, ""), status, body)
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
