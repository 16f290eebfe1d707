//! Fixes that rules cite: the first releases of every branch that contain each commit.

use super::version::{Version, parse_list, parse_versions, range_lacks};
use super::{releases, section};

/// Digits of a commit's hash in rules.
const HASH_DIGITS: usize = 10;
/// The version of a fix that no release has: later than all of them.
const NOT_RELEASED: Version = Version([u32::MAX; 4]);

/// Whether a text has the form of a commit's hash.
pub fn is_commit(text: &str) -> bool {
    text.len() == HASH_DIGITS && text.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'))
}

/// The first releases that contain a commit or its backport, one per branch; empty if no release
/// does. `None` if the atlas does not know the commit.
pub fn first_releases(commit: &str) -> Option<Vec<&'static str>> {
    let hash = |line: &'static str| line.split(' ').next().unwrap_or(line);
    let lines = section("fixes");
    let at = lines.binary_search_by(|line| hash(line).cmp(commit)).ok()?;
    Some(lines[at].split(' ').skip(1).collect())
}

/// The same as versions; a commit without a release comes after all of them.
fn fixed_versions(commit: &str) -> Option<Vec<Version>> {
    let first = first_releases(commit)?;
    let versions = first.iter().filter_map(|text| Some(parse_versions(text)?.0)).collect();
    Some(if first.is_empty() { vec![NOT_RELEASED] } else { versions })
}

/// The versions that a rule names: a list, or a commit that stands for the first releases with it.
pub(crate) fn versions(text: &str) -> Option<Vec<Version>> {
    if is_commit(text) { fixed_versions(text) } else { parse_list(text) }
}

/// The first releases, one per branch, that contain all of the commits, up to the branch that has
/// them from its start. `None` if the atlas does not know one of them.
pub fn fixed_by(commits: &[String]) -> Option<Vec<String>> {
    let fixes: Vec<_> =
        commits.iter().map(|commit| fixed_versions(commit)).collect::<Option<_>>()?;
    let mut found: Vec<(Version, &str, bool)> = Vec::new();
    let mut branch = None;
    for text in releases() {
        let Some((version, high)) = parse_versions(text) else { continue };
        let is_first = branch != Some(version.branch());
        branch = Some(version.branch());
        let has = fixes.iter().all(|fix| range_lacks((version, high), fix) == Some(false));
        if has && found.last().is_none_or(|(last, ..)| last.branch() != version.branch()) {
            found.push((version, text, is_first));
        }
    }
    while let [.., (.., true), (.., true)] = found.as_slice() {
        found.pop();
    }
    Some(found.into_iter().map(|(_, text, _)| text.to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fix_is_in_the_first_release_of_each_branch_that_has_it_or_its_backport() {
        assert_eq!(first_releases("178c93f021"), Some(vec!["2.1.3", "2.2.0"]));
        // 0.8.3 has it in a commit that squashes four.
        assert_eq!(first_releases("b88ca2acf5"), Some(vec!["0.8.3", "2.0.0"]));
        assert_eq!(first_releases("90cdd9aef9"), Some(vec![]));
        assert_eq!(first_releases("0000000000"), None);
    }

    #[test]
    fn several_commits_fix_only_together() {
        let fixed = |commits: &[&str]| {
            fixed_by(&commits.iter().map(|&commit| commit.to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(fixed(&["178c93f021"]).unwrap(), ["2.1.3", "2.2.0"]);
        assert_eq!(fixed(&["812c36fc71", "dc56c673e3"]).unwrap(), ["2.1.7", "2.2.0"]);
        assert!(fixed(&["90cdd9aef9", "178c93f021"]).unwrap().is_empty());
        assert!(fixed(&["0000000000"]).is_none());
    }
}
