//! Validators: size, time and ETag of an object in an answer, to distinguish it from other objects.

use crate::ETag;
use http::HeaderMap;
use http::header::{CONTENT_LENGTH, CONTENT_RANGE, DATE, ETAG, LAST_MODIFIED};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The minimal age of a change: a later change then has another time in whole seconds.
const SETTLED: Duration = Duration::from_secs(2);

/// The description of an object in an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Validator {
    /// Its whole size, if the answer has it.
    pub(super) size_bytes: Option<u64>,
    pub(super) modified: Option<SystemTime>,
    etag: Option<String>,
    /// The server's clock.
    now: Option<SystemTime>,
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

impl Validator {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let time = |name| text(name).and_then(|text| httpdate::parse_http_date(text).ok());
        // In the answer for a range the length is that of the range.
        let size_bytes = match text(CONTENT_RANGE) {
            Some(range) => range.rsplit_once('/').and_then(|(_, whole)| whole.parse().ok()),
            None => text(CONTENT_LENGTH).and_then(|length| length.parse().ok()),
        };
        let etag = text(ETAG).map(str::to_owned);
        Self { size_bytes, modified: time(LAST_MODIFIED), etag, now: time(DATE) }
    }

    /// The same from a listing, made at this time by the server's clock.
    pub(super) fn listed(named: &super::index::IndexEntry, now: Option<SystemTime>) -> Self {
        let (size_bytes, modified) = (named.size_bytes, named.modified);
        Self { size_bytes, modified, etag: named.etag.clone(), now }
    }

    pub(super) fn modified_seconds(&self) -> i64 {
        self.modified.map_or(0, |time| seconds(time) as i64)
    }

    /// The ETag on which a request can depend.
    fn strong(&self) -> Option<&str> {
        self.etag.as_deref().filter(|tag| tag.len() > 2 && tag.starts_with('"'))
    }

    /// The validator: the strong ETag, or one in the same form made of the other properties.
    pub(super) fn tag(&self) -> Option<ETag> {
        if let Some(strong) = self.strong() {
            return Some(ETag::new(strong));
        }
        let modified = self.modified?;
        let age = self.now?.duration_since(modified).ok()?;
        (age >= SETTLED).then(|| self.mark(modified))
    }

    fn mark(&self, modified: SystemTime) -> ETag {
        let weak = self.etag.as_deref().unwrap_or_default();
        let size = self.size_bytes.map_or("-".to_owned(), |bytes| bytes.to_string());
        ETag::new(&format!("\"ogive:{}:{size}:{weak}\"", seconds(modified)))
    }

    /// Whether this answer is about the object with such a validator.
    pub(super) fn is(&self, expected: &ETag) -> bool {
        match self.strong() {
            Some(strong) => strong == expected.as_str(),
            // The clock no longer matters: the change was old enough when the validator was made.
            None => self.modified.is_some_and(|modified| self.mark(modified) == *expected),
        }
    }
}

/// Whether a validator is the server's own ETag, on which requests can depend.
pub(super) fn is_the_servers(tag: &ETag) -> bool {
    !tag.as_str().starts_with("\"ogive:")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(fields: &[(http::HeaderName, &'static str)]) -> Validator {
        let fields = fields.iter().cloned();
        Validator::of(&fields.map(|(name, value)| (name, value.parse().unwrap())).collect())
    }

    const THEN: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const A_SECOND_LATER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";
    const LATER: &str = "Sun, 06 Nov 1994 08:49:39 GMT";

    #[test]
    fn a_strong_tag_is_a_validator_at_once() {
        let strong = seen(&[(ETAG, "\"x\""), (LAST_MODIFIED, THEN), (DATE, THEN)]);
        let tag = strong.tag().unwrap();
        assert!(is_the_servers(&tag) && strong.is(&tag));
        assert!(!seen(&[(ETAG, "\"y\"")]).is(&tag));
    }

    #[test]
    fn a_weak_tag_or_a_time_is_a_validator_after_the_next_second() {
        for etag in [&[][..], &[(ETAG, "W/\"x\"")]] {
            let at = |now: &'static str| {
                let fields = [(LAST_MODIFIED, THEN), (DATE, now), (CONTENT_LENGTH, "7")];
                seen(&[&fields[..], etag].concat())
            };
            assert_eq!(at(THEN).tag(), None);
            assert_eq!(at(A_SECOND_LATER).tag(), None);
            let tag = at(LATER).tag().unwrap();
            assert!(!is_the_servers(&tag) && at(LATER).is(&tag) && at(THEN).is(&tag));
            let longer = [(LAST_MODIFIED, THEN), (DATE, LATER), (CONTENT_LENGTH, "8")];
            assert!(!seen(&longer).is(&tag));
            let newer = [(LAST_MODIFIED, A_SECOND_LATER), (CONTENT_LENGTH, "7")];
            assert!(!seen(&newer).is(&tag));
        }
    }

    #[test]
    fn without_tag_and_time_or_without_a_clock_there_is_no_validator() {
        assert_eq!(seen(&[(CONTENT_LENGTH, "7"), (DATE, LATER)]).tag(), None);
        assert_eq!(seen(&[(LAST_MODIFIED, THEN)]).tag(), None);
        assert_eq!(seen(&[(ETAG, "x"), (DATE, LATER)]).tag(), None);
    }

    #[test]
    fn the_answer_for_a_range_has_the_whole_size() {
        let range = [(CONTENT_RANGE, "bytes 0-9/70"), (CONTENT_LENGTH, "10")];
        assert_eq!(seen(&range).size_bytes, Some(70));
        assert_eq!(seen(&[(CONTENT_RANGE, "bytes 0-9/*")]).size_bytes, None);
    }
}
