//! The daemons' own counters.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::error::{Context, Result};

/// Counters by name.
pub type Counters = BTreeMap<String, i128>;

/// A file of ogive's control directory below the mount point `root`: `arcstats`, or `ogivestats` with
/// counters that OpenZFS does not have. The format is OpenZFS's named kstat: two header lines, then
/// `name type value`.
pub fn ogive(root: &Path, file: &str) -> Result<Counters> {
    let path = root.join(".ogive").join(file);
    let text = fs::read_to_string(&path).context(|| format!("cannot read {}", path.display()))?;
    let counters: Counters = text.lines().skip(2).filter_map(named).collect();
    if counters.is_empty() {
        return Err(format!("{} holds no counters", path.display()));
    }
    Ok(counters)
}

fn named(line: &str) -> Option<(String, i128)> {
    let mut words = line.split_whitespace();
    let name = words.next()?;
    let value = words.nth(1)?.parse().ok()?;
    Some((name.to_owned(), value))
}

/// The passthrough's counters below the mount point `root`: `name value`.
pub fn passthrough(root: &Path) -> Result<Counters> {
    let path = root.join(".passthrough");
    let text = fs::read_to_string(&path).context(|| format!("cannot read {}", path.display()))?;
    let pair = |line: &str| {
        let (name, value) = line.split_once(' ')?;
        Some((name.to_owned(), value.parse().ok()?))
    };
    Ok(text.lines().filter_map(pair).collect())
}

/// The growth of counter `name` from `before` to `after`; 0 for a missing one.
pub fn delta(before: &Counters, after: &Counters, name: &str) -> i128 {
    let get = |counters: &Counters| counters.get(name).copied().unwrap_or(0);
    get(after) - get(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_lines_give_name_and_value() {
        let line = "hits                            4    123456";
        assert_eq!(named(line), Some(("hits".into(), 123_456)));
        assert_eq!(named("no value"), None);
    }
}
