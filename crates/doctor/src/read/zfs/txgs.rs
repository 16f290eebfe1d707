//! `/proc/spl/kstat/zfs/POOL/txgs`: the last transaction groups, one per row.
//!
//! Forced groups show in their open time (`otime`) against `zfs_txg_timeout`, and in how little
//! they carry. Medians go into one table, and each row into a table of its own.
//!
//! The file holds a hundred groups: a history of minutes. If it is read twice, only the groups that
//! were committed between the readings describe the present, as with any counter. The word `groups`
//! says which groups the medians cover.

use std::collections::BTreeMap;

use super::kstat;
use crate::evidence::{Evidence, Number, Source, Table};
use crate::read::text::number;
use crate::read::text::number::median;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;

/// Columns in nanoseconds, in bytes and of plain counts, with the names of their figures.
const FIGURES: [(&str, &str); 9] = [
    ("ndirty", "ndirty_bytes"),
    ("nread", "nread_bytes"),
    ("nwritten", "nwritten_bytes"),
    ("reads", "reads"),
    ("writes", "writes"),
    ("otime", "otime_ns"),
    ("qtime", "qtime_ns"),
    ("wtime", "wtime_ns"),
    ("stime", "stime_ns"),
];

/// Reads the table.
pub(crate) fn read(section: &Section<'_>, reading: &mut Reading<'_>) {
    let pool = section.hint.path.as_deref().and_then(|path| kstat::name_and_pool(path).1);
    let mut names: Vec<&str> = Vec::new();
    let mut groups = Vec::new();
    let mut last = None;
    for line in section.lines {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        if words.contains(&"otime") {
            names = words;
            continue;
        }
        if words.len() == 7 && words[2].starts_with("0x") {
            continue;
        }
        let cell = |name: &str| {
            let at = names.iter().position(|known| *known == name);
            at.filter(|_| words.len() == names.len()).map(|at| words[at])
        };
        let figure = |name: &str| cell(name).and_then(number::plain);
        let Some(txg) = figure("txg") else {
            reading.leave(line);
            continue;
        };
        let mut row = reading.table("txg").scope(format!("{txg}"));
        row.gauge("birth_ns", figure("birth"), line);
        row.text("state", cell("state").unwrap_or("C"), line);
        for (column, name) in FIGURES {
            row.gauge(name, figure(column), line);
        }
        groups.push(Group::of(txg, &row.table));
        reading.push(row);
        last = Some(line);
    }
    let Some(line) = last else { return };
    let words = format!("the last {} groups", groups.len());
    let summary = summary(pool, &groups, &words, &reading.at(line));
    reading.evidence.tables.push(summary);
}

/// One group.
struct Group {
    txg: f64,
    is_committed: bool,
    birth_ns: Option<f64>,
    /// Its figures, in the order of [`FIGURES`].
    values: Vec<Option<f64>>,
}

impl Group {
    fn of(txg: f64, row: &Table) -> Self {
        let values = FIGURES.iter().map(|(_, name)| row.value(name)).collect();
        let is_committed = row.word("state").is_none_or(|state| state == "C");
        Self { txg, is_committed, birth_ns: row.value("birth_ns"), values }
    }
}

/// The table of these groups; `words` describes which ones they are.
fn summary(pool: Option<String>, groups: &[Group], words: &str, source: &Source) -> Table {
    let mut table = Table { scope: pool, ..Table::named("txgs") };
    #[expect(clippy::cast_precision_loss, reason = "a number of rows")]
    table.add("count", Some(groups.len() as f64), source);
    table.add("groups", Some(words), source);
    for (at, (_, name)) in FIGURES.iter().enumerate() {
        // The times of a group are incomplete until it is committed.
        let committed = groups.iter().filter(|group| group.is_committed);
        let values: Vec<f64> = committed.filter_map(|group| group.values[at]).collect();
        table.add(&format!("{name}_median"), median(&values), source);
    }
    let births: Vec<f64> = groups.iter().filter_map(|group| group.birth_ns).collect();
    let steps: Vec<f64> = births.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let step_ns = median(&steps).filter(|step| *step > 0.0);
    table.add("interval_ns_median", step_ns, source);
    table.add("per_second", step_ns.map(|step_ns| Number::Rate(1e9 / step_ns)), source);
    table
}

/// If the groups of a pool were read more than once, keeps those that were committed between the
/// first and the last reading.
pub(crate) fn finish(evidence: &mut Evidence) {
    let mut pools: BTreeMap<Option<String>, Vec<Source>> = BTreeMap::new();
    for table in evidence.tables.iter().filter(|table| table.name == "txgs") {
        if let Some(figure) = table.figures.first() {
            pools.entry(table.scope.clone()).or_default().push(figure.source.clone());
        }
    }
    pools.retain(|_, readings| readings.len() > 1);
    for (pool, sources) in pools {
        // A reading's rows end at its last line.
        let of_reading = |source: &Source| -> Vec<Group> {
            let before = sources.iter().filter(|one| one.input == source.input);
            let begins = before.filter_map(|one| one.line).filter(|line| Some(*line) < source.line);
            let begins = begins.max();
            let is_row = |table: &&Table| {
                table.name == "txg"
                    && table.figures.first().is_some_and(|figure| {
                        let at = &figure.source;
                        at.input == source.input && at.line > begins && at.line <= source.line
                    })
            };
            let rows = evidence.tables.iter().filter(is_row);
            let txg = |row: &Table| row.scope.as_deref().and_then(|txg| txg.parse().ok());
            rows.filter_map(|row| Some(Group::of(txg(row)?, row))).collect()
        };
        let mut readings: Vec<(&Source, Vec<Group>)> =
            sources.iter().map(|source| (source, of_reading(source))).collect();
        let newest = |groups: &[Group]| {
            let committed = groups.iter().filter(|group| group.is_committed);
            committed.map(|group| group.txg).fold(0.0, f64::max)
        };
        readings.sort_by(|a, b| newest(&a.1).total_cmp(&newest(&b.1)));
        let (Some((_, first)), true) = (readings.first(), readings.len() > 1) else { continue };
        let known = newest(first);
        let Some((source, mut last)) = readings.pop() else { continue };
        last.retain(|group| group.is_committed && group.txg > known);
        let words = format!("{} groups committed during the capture", last.len());
        let table = summary(pool.clone(), &last, &words, source);
        evidence.tables.retain(|one| one.name != "txgs" || one.scope != pool);
        evidence.tables.push(table);
    }
}

#[cfg(test)]
mod tests {
    use crate::evidence::Evidence;
    use crate::facts::Facts;
    use crate::read::{finish, read_bytes};

    const HEADING: &str =
        "txg birth state ndirty nread nwritten reads writes otime qtime wtime stime";

    /// Successive groups with their open times in milliseconds; the last is open.
    fn text(first: usize, open_ms: &[u64]) -> String {
        let mut text = format!("{HEADING}\n");
        for (at, ms) in open_ms.iter().enumerate() {
            let txg = first + at;
            text += &format!("{txg} {txg}000000000 C 0 0 4096 0 1 {ms}000000 1 1 1\n");
        }
        text + &format!("{0} {0}000000000 O 0 0 0 0 0 0 0 0 0\n", first + open_ms.len())
    }

    fn open_ms(readings: &[(&str, String)]) -> Option<f64> {
        let mut evidence = Evidence::default();
        for (name, text) in readings {
            let name = format!("{name}/proc/spl/kstat/zfs/tank/txgs");
            read_bytes(&mut evidence, &name, text.as_bytes());
        }
        finish(&mut evidence);
        Some(Facts::new(evidence).gauge("txgs.otime_ns_median").ok()? / 1e6)
    }

    #[test]
    fn groups_older_than_the_capture_are_dropped() {
        // Snapshots forced short groups some minutes ago; since then the timeout closes them.
        let start = ("start", text(10, &[400, 400, 400, 5100]));
        let end = ("end", text(12, &[400, 5100, 5120, 5130]));
        assert_eq!(open_ms(&[start.clone(), end.clone()]), Some(5120.0));
        assert_eq!(open_ms(&[end.clone(), start.clone()]), Some(5120.0));
        // A single reading covers no interval: it is the history that the file holds.
        assert_eq!(open_ms(std::slice::from_ref(&start)), Some(400.0));
        // Nothing was committed in between, so there is no present value.
        assert_eq!(open_ms(&[start.clone(), ("end", start.1)]), None);
    }
}
