//! Lengths of time: `1s`, `250ms`, `1m 30s`, or a bare number of seconds.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A length of time: `1s`, `250ms`, `1m 30s`; a bare number is in seconds, as in fstab options of
/// other file systems.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span(pub(crate) Duration);

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let error =
            || "not a length of time; give seconds or a unit, as in 1s, 250ms or 5m".to_owned();
        // Only digits and one point: f64's own parser would also take "inf", "nan" and "1e300".
        if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
            let seconds: f64 = text.parse().map_err(|_| error())?;
            return Duration::try_from_secs_f64(seconds).map(Self).map_err(|_| error());
        }
        humantime::parse_duration(text).map(Self).map_err(|_| error())
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_duration(self.0).fmt(f)
    }
}

impl Span {
    /// A parser of durations from `min` to `max`.
    pub(crate) fn between(
        min: Duration,
        max: Duration,
    ) -> impl Fn(&str) -> Result<Duration, String> + Clone + Send + Sync {
        move |text| {
            let Self(duration) = text.parse()?;
            if (min..=max).contains(&duration) {
                return Ok(duration);
            }
            Err(format!("give a time from {} to {}", Self(min), Self(max)))
        }
    }

    /// A parser of how long to look at a host: long enough to measure, an hour at most.
    pub(crate) fn observation() -> impl Fn(&str) -> Result<Duration, String> + Clone + Send + Sync {
        Self::between(Duration::from_millis(200), Duration::from_secs(3600))
    }

    /// A parser of how long to sample, or how often: a day at most.
    pub(crate) fn sampling() -> impl Fn(&str) -> Result<Duration, String> + Clone + Send + Sync {
        Self::between(Duration::from_millis(1), Duration::from_secs(86_400))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn spans_with_and_without_units() {
        for (text, millis) in
            [("1s", 1000), ("1", 1000), ("0.25", 250), ("250ms", 250), ("1m 30s", 90_000), ("0", 0)]
        {
            assert_eq!(text.parse(), Ok(Span(Duration::from_millis(millis))), "{text}");
        }
        for text in
            ["", ".", "1.2.3", "inf", "nan", "1e3", "-1", "1 parsec", "99999999999999999999999"]
        {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_time_outside_the_limits_is_refused_with_them() {
        let parse = Span::between(Duration::from_millis(200), Duration::from_secs(3600));
        assert_eq!(parse("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(parse("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(parse("0.5"), Ok(Duration::from_millis(500)));
        let refused = Err("give a time from 200ms to 1h".to_owned());
        assert_eq!((parse("0"), parse("2h")), (refused.clone(), refused));
        assert!(parse("-1").is_err() && parse("soon").is_err());
    }

    proptest! {
        #[test]
        fn a_printed_span_parses_back(millis in 0_u64..1 << 50) {
            let span = Span(Duration::from_millis(millis));
            prop_assert_eq!(span.to_string().parse(), Ok(span));
        }

        #[test]
        fn any_text_parses_or_is_refused(text in "\\PC{0,24}") {
            let _ = text.parse::<Span>();
        }
    }
}
