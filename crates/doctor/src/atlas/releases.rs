//! Ranges of releases, in the order of the releases.
//!
//! `0.8.0-2.1.16 2.2.1-` means from 0.8.0 to 2.1.16, and from 2.2.1 on. An empty text means every
//! release. A release that the atlas does not know counts as the one before it.

use super::version::{Version, parse_versions};

/// Lowest version of each range, and the first one after it, if there is one.
type Run = (Version, Option<Version>);

fn version(text: &str) -> Option<Version> {
    parse_versions(text).map(|(low, _)| low)
}

/// The first known release after one.
fn next(release: Version) -> Option<Version> {
    super::releases().iter().filter_map(|text| version(text)).find(|known| *known > release)
}

/// Parses ranges; `None` if the text is not a list of ranges.
pub fn parse_runs(text: &str) -> Option<Vec<Run>> {
    text.split_whitespace()
        .map(|run| {
            let (low, high) = run.split_once('-').unwrap_or((run, run));
            let end = if high.is_empty() { None } else { next(version(high)?) };
            Some((version(low)?, end))
        })
        .collect()
}

/// Whether a version between `low` and `high` may be in one of the ranges.
pub fn may_include(runs: &str, (low, high): (Version, Version)) -> bool {
    let Some(runs) = parse_runs(runs) else { return true };
    runs.is_empty()
        || runs.iter().any(|(start, end)| high >= *start && end.is_none_or(|end| low < end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may(runs: &str, text: &str) -> bool {
        may_include(runs, parse_versions(text).expect("a version"))
    }

    #[test]
    fn releases_are_found_in_ranges() {
        let runs = "0.8.0-2.1.16 2.2.1-";
        assert!(may(runs, "0.8.0") && may(runs, "2.1.16") && may(runs, "2.2.1-1~bpo"));
        assert!(!may(runs, "0.6.2") && !may(runs, "0.7.13") && !may(runs, "2.2.0-rc3"));
        // A later release of a branch and a future release are unknown, but not excluded.
        assert!(may(runs, "2.1.17") && may(runs, "9.0.0"));
        assert!(may(runs, "0.7.x to 0.8.x") && !may(runs, "0.7.x") && may("", "0.5.0"));
    }
}
