//! Known faults, by rule and file: `debt.tsv`. The counts only fall.
//!
//! A test fails where a file has more faults of a rule than its row says, or has faults and no row.
//! After mending some, `TIDY=lower cargo test -p ogive-torture --test tidy` writes the file again.
//! That is refused while a rule has more faults in all than the file says.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Faults by file.
pub(crate) type Found = BTreeMap<PathBuf, Vec<String>>;

/// The counts by rule and file.
type Debt = BTreeMap<(String, String), usize>;

/// Faults of a file that a failure shows at most.
const SHOWN_MAX: usize = 5;

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tidy/debt.tsv")
}

fn read(text: &str) -> Debt {
    let row = |line: &str| {
        let mut cells = line.split('\t');
        let (rule, count) = (cells.next()?.to_owned(), cells.next()?.parse().ok()?);
        Some(((rule, cells.next()?.to_owned()), count))
    };
    text.lines().filter_map(row).collect()
}

fn write(debt: &Debt) -> String {
    debt.iter().map(|((rule, file), count)| format!("{rule}\t{count}\t{file}\n")).collect()
}

/// What is found of a rule beyond its rows.
fn beyond(debt: &Debt, rule: &str, found: &Found) -> Vec<String> {
    let mut faults = Vec::new();
    for (file, of_file) in found {
        let known = debt.get(&(rule.to_owned(), file.display().to_string())).copied().unwrap_or(0);
        if of_file.len() > known {
            faults.push(format!("{}: {} faults, {known} known", file.display(), of_file.len()));
            faults.extend(of_file.iter().take(SHOWN_MAX).map(|fault| format!("    {fault}")));
        }
    }
    faults
}

/// The debt with the counts that were found, unless a rule has more faults than before.
fn lowered(mut debt: Debt, found: &[(&str, Found)]) -> Result<Debt, String> {
    for (rule, found) in found {
        let before: usize = debt.iter().filter(|((of, _), _)| of == rule).map(|(_, n)| n).sum();
        let now: usize = found.values().map(Vec::len).sum();
        if before > 0 && now > before {
            return Err(format!("{rule}: {now} faults, {before} are known"));
        }
        debt.retain(|(of, _), _| of != rule);
        for (file, faults) in found.iter().filter(|(_, faults)| !faults.is_empty()) {
            debt.insert(((*rule).to_owned(), file.display().to_string()), faults.len());
        }
    }
    Ok(debt)
}

/// Faults beyond the known ones; with `TIDY=lower` the file gets the counts that were found.
pub(crate) fn faults(found: &[(&str, Found)]) -> Vec<String> {
    let debt = read(&std::fs::read_to_string(path()).unwrap_or_default());
    if std::env::var_os("TIDY").is_some_and(|value| value == "lower") {
        return match lowered(debt, found) {
            Ok(debt) => std::fs::write(path(), write(&debt)).err().map(|e| e.to_string()),
            Err(reason) => Some(reason),
        }
        .into_iter()
        .collect();
    }
    found.iter().flat_map(|(rule, found)| beyond(&debt, rule, found)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(count: usize) -> Found {
        Found::from([(PathBuf::from("a.rs"), vec![String::new(); count])])
    }

    #[test]
    fn known_faults_pass_and_more_of_them_do_not() {
        let debt = read("long\t2\ta.rs\n");
        assert_eq!(write(&debt), "long\t2\ta.rs\n");
        assert!(beyond(&debt, "long", &found(2)).is_empty());
        assert_eq!(beyond(&debt, "long", &found(3)).len(), 4);
        assert_eq!(beyond(&debt, "other", &found(1)).len(), 2);
    }

    #[test]
    fn counts_are_lowered_and_never_raised() {
        let debt = read("long\t2\tb.rs\n");
        assert_eq!(
            write(&lowered(debt.clone(), &[("long", found(1))]).unwrap()),
            "long\t1\ta.rs\n"
        );
        assert!(lowered(debt.clone(), &[("long", found(3))]).is_err());
        assert!(lowered(debt, &[("long", Found::new())]).unwrap().is_empty());
    }
}
