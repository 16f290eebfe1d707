//! Statistics: each one that the code shows by name is a row of the table in `ogive-stats`.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// Crates that show statistics by name.
const CRATES: [&str; 3] = ["crates/bucket/src", "crates/fs/src", "crates/origin/src"];
/// How a statistic is shown.
const CALLS: [&str; 2] = ["tell(\"", "set(\""];

/// Every name that is shown and is no row.
pub(crate) fn faults(table: &str, sources: &BTreeMap<PathBuf, String>) -> Vec<String> {
    let words = |line: &str| line.split_whitespace().take(3).map(str::to_owned).collect::<Vec<_>>();
    // A row begins with a kind, an owner and the name.
    let rows: Vec<String> = table.lines().filter_map(|line| words(line).pop()).collect();
    let mut faults = Vec::new();
    for (path, text) in sources {
        if !CRATES.iter().any(|folder| path.starts_with(folder)) {
            continue;
        }
        for call in CALLS {
            for rest in text.split(call).skip(1) {
                let Some((name, _)) = rest.split_once("\",") else { continue };
                let is_name =
                    name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
                if is_name && !rows.iter().any(|row| row == name) {
                    faults.push(format!(
                        "{}: `{name}` has no row in stats/src/table.rs",
                        path.display()
                    ));
                }
            }
        }
    }
    faults
}

#[test]
fn a_statistic_without_a_row_is_a_fault() {
    let table =
        "    counter engine hits \"Hits\";\n    level other inodes\n        \"Known inodes\";\n";
    let source = |text: &str| BTreeMap::from([("crates/fs/src/a.rs".into(), text.to_owned())]);
    assert!(faults(table, &source("set(\"hits\", 1); tell(\"inodes\", 2);")).is_empty());
    let found = faults(table, &source("tell(\"hist\", 1);"));
    assert_eq!(found, ["crates/fs/src/a.rs: `hist` has no row in stats/src/table.rs"]);
}
