//! Versions, also partial ones and ranges, and whether a branch has a fix.
//!
//! Fixes land on branches: "2.1.3 and 2.2.0" means that 2.1.2 lacks the fix, and that 2.1.3 and all
//! releases from 2.2.0 have it. A version such as `0.8.x` gets an answer only if every 0.8 has the
//! same.

use std::fmt;

/// A version of up to four numbers, `0.6.5.9` or `2.2.0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub [u32; 4]);

impl Version {
    /// The first two numbers; releases of one branch share them.
    pub fn branch(self) -> [u32; 2] {
        [self.0[0], self.0[1]]
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d] = self.0;
        write!(f, "{a}.{b}.{c}")?;
        if d > 0 { write!(f, ".{d}") } else { Ok(()) }
    }
}

/// The lowest and the highest version that a text can mean: `0.7.5-1ubuntu16.6`, `0.8.x`, `2.1 to
/// 2.2`.
pub fn parse_versions(text: &str) -> Option<(Version, Version)> {
    let mut ends = text.split(" to ").filter_map(one);
    let first = ends.next()?;
    let last = ends.last().unwrap_or(first);
    Some((first.0, last.1.max(first.1)))
}

/// One version: the lowest and the highest that it can mean.
fn one(text: &str) -> Option<(Version, Version)> {
    let text =
        text.trim().trim_start_matches("zfs-").trim_start_matches("kmod-").trim_start_matches('v');
    let end =
        text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == 'x')).unwrap_or(text.len());
    let (mut low, mut high) = ([0; 4], [u32::MAX; 4]);
    let mut numbers = 0;
    let mut open = false;
    for part in text[..end].split('.').take(4) {
        if part == "x" {
            open = true;
            break;
        }
        let Ok(number) = part.parse() else { break };
        low[numbers] = number;
        high[numbers] = number;
        numbers += 1;
    }
    if numbers < 2 {
        return None;
    }
    if !open && numbers >= 3 {
        // A missing fourth number is zero: 0.6.5 is a release, 0.6.5.x is any of its branch.
        high[numbers..].fill(0);
    }
    Some((Version(low), Version(high)))
}

/// Whether a version lacks a fix whose first releases, one per branch, are these.
fn lacks(version: Version, fixed: &[Version]) -> bool {
    let Some(newest) = fixed.iter().max() else { return false };
    if version >= *newest {
        return false;
    }
    match fixed.iter().find(|fix| fix.branch() == version.branch()) {
        Some(fix) => version < *fix,
        None => true,
    }
}

/// The versions in a list separated by commas: `2.1.3, 2.2.0`.
pub(super) fn parse_list(text: &str) -> Option<Vec<Version>> {
    text.split(',').map(|part| one(part).map(|(low, _)| low)).collect()
}

/// Whether all versions in `range` lack the fix (`true`) or have it (`false`); `None` if they
/// differ.
pub(crate) fn range_lacks(range: (Version, Version), fixed: &[Version]) -> Option<bool> {
    let (low, high) = (lacks(range.0, fixed), lacks(range.1, fixed));
    // Between the ends a fix may arrive, and be missing again on the next branch.
    let inside = fixed.iter().any(|fix| *fix > range.0 && *fix <= range.1);
    (low == high && !inside).then_some(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lacks_text(version: &str, fixed: &str) -> Option<bool> {
        range_lacks(parse_versions(version).unwrap(), &parse_list(fixed).unwrap())
    }

    #[test]
    fn a_branch_with_its_own_fix_is_judged_by_it() {
        assert_eq!(lacks_text("2.1.2-1~bpo", "2.1.3, 2.2.0"), Some(true));
        assert_eq!(lacks_text("2.1.11-1+deb12u1", "2.1.3, 2.2.0"), Some(false));
        assert_eq!(lacks_text("2.0.7", "2.1.3, 2.2.0"), Some(true));
        assert_eq!(lacks_text("2.3.1", "2.1.3, 2.2.0"), Some(false));
        assert_eq!(lacks_text("2.3.3", "2.2.9, 2.3.4, 2.4.0"), Some(true));
    }

    #[test]
    fn a_partial_version_answers_only_if_all_its_versions_agree() {
        assert_eq!(lacks_text("0.8.x", "0.8.4"), None);
        assert_eq!(lacks_text("0.8.x", "2.0.0"), Some(true));
        assert_eq!(lacks_text("0.8.x", "0.7.0"), Some(false));
        assert_eq!(lacks_text("0.6.5 to 0.7.0-rc", "2.0.0"), Some(true));
        assert_eq!(lacks_text("0.6.5.x", "0.6.5"), Some(false));
        assert_eq!(parse_versions("illumos 2013"), None);
    }
}
