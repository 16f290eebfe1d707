//! The data sets that are read and written, from the kstats of their object sets, and the cost of
//! their record sizes.
//!
//! The counters run since the data set was mounted, so two readings are needed.
//!
//! Lock: none. The use is computed once, at the first question.

use std::collections::BTreeMap;

use super::figures::seconds;
use super::settings::quantity;
use super::{Facts, Known, absent};
use crate::evidence::{Property, Source, Table};

/// Properties that decide how the data of a data set are read and written. They matter only where
/// the data set has traffic. Deduplication is not among them: its table serves the whole pool, and
/// frees in any data set look it up.
const OF_TRAFFIC: [&str; 13] = [
    "atime",
    "checksum",
    "compression",
    "dnodesize",
    "encryption",
    "logbias",
    "prefetch",
    "primarycache",
    "recordsize",
    "secondarycache",
    "sync",
    "volblocksize",
    "xattr",
];
/// A data set with less than this part of all bytes does not explain the CPU.
const SMALL_PART: f64 = 0.02;

/// The I/O of programs on a data set between the first and the last reading.
#[derive(Clone, Debug)]
pub(super) struct DatasetUse {
    name: String,
    reads: f64,
    read_bytes: f64,
    writes: f64,
    written_bytes: f64,
    /// Seconds between the readings, where their times are known.
    interval_s: Option<f64>,
    source: Source,
}

impl DatasetUse {
    fn bytes(&self) -> f64 {
        self.read_bytes + self.written_bytes
    }

    /// The number of reads or writes, and their bytes.
    fn of(&self, direction: &str) -> (f64, f64) {
        match direction {
            "read" => (self.reads, self.read_bytes),
            _ => (self.writes, self.written_bytes),
        }
    }
}

/// The use of each data set, most bytes first, without those that have no traffic.
fn uses(tables: &[Table]) -> Vec<DatasetUse> {
    let mut readings: BTreeMap<&str, Vec<&Table>> = BTreeMap::new();
    for table in tables.iter().filter(|table| table.name.starts_with("objset")) {
        if let Some(name) = table.word("dataset_name") {
            readings.entry(name).or_default().push(table);
        }
    }
    let mut all: Vec<DatasetUse> = readings
        .into_iter()
        .filter_map(|(name, mut tables)| {
            tables.sort_by_key(|table| table.taken_ns);
            let (first, last) = (tables.first()?, tables.last()?);
            let value = |table: &Table, row: &str| table.value(row).unwrap_or(0.0);
            let grown = |row: &str| (value(last, row) - value(first, row)).max(0.0);
            let found = DatasetUse {
                name: name.to_owned(),
                reads: grown("reads"),
                read_bytes: grown("nread"),
                writes: grown("writes"),
                written_bytes: grown("nwritten"),
                interval_s: first.taken_ns.zip(last.taken_ns).map(|(a, b)| seconds(b - a)),
                source: last.figures.first()?.source.clone(),
            };
            (found.bytes() > 0.0).then_some(found)
        })
        .collect();
    all.sort_by(|a, b| b.bytes().total_cmp(&a.bytes()).then_with(|| a.name.cmp(&b.name)));
    all
}

impl Facts {
    fn dataset_uses(&self) -> &[DatasetUse] {
        self.dataset_uses.get_or_init(|| uses(&self.evidence().tables))
    }

    /// Bytes of one read or write of programs in a data set, over all between the first and the
    /// last reading. `None` without a second reading or without traffic.
    pub fn io_size(&self, dataset: &str) -> Option<f64> {
        let found = self.dataset_uses().iter().find(|one| one.name == dataset)?;
        let calls = found.reads + found.writes;
        (calls > 0.0).then(|| found.bytes() / calls)
    }

    /// A property of a data set as a number, sizes in bytes.
    pub fn dataset_number(&self, dataset: &str, name: &str) -> Option<f64> {
        let mut all = self.evidence().properties.iter();
        let found = all.find(|known| known.owner == dataset && known.name == name)?;
        quantity(&found.value)
    }

    /// Bytes that programs read and wrote between the first and the last reading, by data set, most
    /// first, without those that have no traffic.
    pub fn datasets_by_traffic(&self) -> Vec<(String, f64)> {
        self.dataset_uses().iter().map(|one| (one.name.clone(), one.bytes())).collect()
    }

    /// The rows of a property that matter now: of the data sets with traffic, busiest first. All
    /// rows where no traffic is shown, or where a scan, a send or a receive works on data that no
    /// program reads or writes.
    pub(super) fn in_use<'a>(&self, name: &str, rows: Vec<&'a Property>) -> Vec<&'a Property> {
        let uses = self.dataset_uses();
        if uses.is_empty() || !OF_TRAFFIC.contains(&name) || self.works_beside_programs() {
            return rows;
        }
        let all: f64 = uses.iter().map(DatasetUse::bytes).sum();
        let busy = uses.iter().filter(|one| one.bytes() >= SMALL_PART * all);
        let of = |one: &DatasetUse| {
            rows.iter().copied().find(|row| !row.of_pool && row.owner == one.name)
        };
        let used: Vec<&Property> = busy.filter_map(of).collect();
        if used.is_empty() { rows } else { used }
    }

    fn works_beside_programs(&self) -> bool {
        self.pool_says("scrub in progress|resilver in progress") == Ok(true)
            || self.thread_cpu("^(send|receive|recv)").is_ok_and(|percent| percent > 1.0)
    }

    /// The data set whose reads or writes move most bytes beyond their own, with its record size
    /// and the bytes of one read or write.
    fn largest_excess(&self, direction: &str) -> Known<(&DatasetUse, f64, f64)> {
        let sized = self.dataset_uses().iter().filter_map(|one| {
            let (count, bytes) = one.of(direction);
            let of_this = |row: &&Property| {
                row.owner == one.name && matches!(&*row.name, "recordsize" | "volblocksize")
            };
            let rows = self.evidence().properties.iter().filter(of_this);
            let record = rows.filter_map(|row| quantity(&row.value)).next()?;
            (count > 0.0).then(|| (one, record, bytes / count))
        });
        let excess = |(one, record, each): &(&DatasetUse, f64, f64)| {
            one.of(direction).0 * (record - each).max(0.0)
        };
        match sized.max_by(|a, b| excess(a).total_cmp(&excess(b))) {
            Some(found) => {
                self.used(&found.0.source);
                Ok(found)
            }
            None => absent("sizes of reads and writes (kstats of data sets, read twice)"),
        }
    }

    /// Bytes a second that programs read or write, of all data sets together.
    pub fn traffic(&self, direction: &str) -> Known<f64> {
        let each = |one: &DatasetUse| {
            let interval_s = one.interval_s.filter(|seconds| *seconds > 0.0)?;
            self.used(&one.source);
            Some(one.of(direction).1 / interval_s)
        };
        let all: Vec<f64> = self.dataset_uses().iter().filter_map(each).collect();
        if all.is_empty() {
            return absent("bytes that programs read and write (kstats of data sets, read twice)");
        }
        Ok(all.iter().sum())
    }

    /// The record size divided by the bytes of one read or write, in the data set where that costs
    /// most.
    pub fn record_excess(&self, direction: &str) -> Known<f64> {
        let (_, record, each) = self.largest_excess(direction)?;
        Ok(record / each.max(1.0))
    }

    /// The name of that data set.
    pub fn record_excess_owner(&self, direction: &str) -> Known<String> {
        Ok(self.largest_excess(direction)?.0.name.clone())
    }

    /// Bytes of one read or write there.
    pub fn record_excess_io(&self, direction: &str) -> Known<f64> {
        Ok(self.largest_excess(direction)?.2)
    }
}

#[cfg(test)]
mod tests {
    use crate::evidence::Evidence;
    use crate::facts::Facts;
    use crate::read::{finish, read_bytes};

    const PROPERTIES: &str = "\
NAME        PROPERTY    VALUE  SOURCE
tank        recordsize  128K   default
tank/big    recordsize  1M     local
tank/plain  recordsize  128K   default
tank/hash   recordsize  128K   default
tank        checksum    on     default
tank/big    checksum    on     default
tank/plain  checksum    on     default
tank/hash   checksum    blake3 local
";

    fn objset(dataset: &str, taken: u64, figures: [u64; 4]) -> String {
        let [writes, nwritten, reads, nread] = figures;
        format!(
            "62 1 0x01 27 7600 1 {taken}\nname type data\ndataset_name 7 {dataset}\n\
             writes 4 {writes}\nnwritten 4 {nwritten}\nreads 4 {reads}\nnread 4 {nread}\n\
             nunlinks 4 0\nnunlinked 4 0\n"
        )
    }

    fn facts(uses: &[(&str, [u64; 4])], more: &[(&str, &str)]) -> Facts {
        let mut evidence = Evidence::default();
        read_bytes(&mut evidence, "zfs-get.txt", PROPERTIES.as_bytes());
        for (name, text) in more {
            read_bytes(&mut evidence, name, text.as_bytes());
        }
        for (at, (dataset, grown)) in uses.iter().enumerate() {
            for (moment, taken, figures) in [("start", 1, [7; 4]), ("end", 2, grown.map(|n| n + 7))]
            {
                let name = format!("{moment}/proc/spl/kstat/zfs/tank/objset-0x{at}");
                read_bytes(&mut evidence, &name, objset(dataset, taken, figures).as_bytes());
            }
        }
        finish(&mut evidence);
        Facts::new(evidence)
    }

    #[test]
    fn properties_are_those_of_the_data_sets_with_traffic() {
        let idle = [0; 4];
        let read_in_a_row = [0, 0, 8000, 8000 * 131_072];
        let uses = [("tank/plain", read_in_a_row), ("tank/big", idle), ("tank/hash", idle)];
        let used = facts(&uses, &[]);
        assert_eq!(used.prop_max("recordsize"), Ok(131_072.0));
        assert_eq!(used.prop_owner("recordsize", "."), Ok("tank/plain".to_owned()));
        assert_eq!(used.prop("checksum", "blake3"), Ok(false));
        // Without traffic every data set counts; so it does while a scrub reads them all.
        assert_eq!(facts(&[], &[]).prop("checksum", "blake3"), Ok(true));
        let scrub = "  pool: tank\n state: ONLINE\n  scan: scrub in progress since Fri Nov 27\n";
        let scanned = facts(&uses, &[("zpool-status.txt", scrub)]);
        assert_eq!(scanned.prop("checksum", "blake3"), Ok(true));
        // A few bytes in another data set are no traffic.
        let beside = [uses[0], ("tank/hash", [1, 4096, 0, 0])];
        assert_eq!(facts(&beside, &[]).prop("checksum", "blake3"), Ok(false));
    }

    #[test]
    fn small_writes_into_large_records_name_their_data_set() {
        let small = ("tank/big", [20_000, 20_000 * 4096, 0, 0]);
        let large = ("tank/plain", [1000, 1000 * 131_072, 8000, 8000 * 131_072]);
        let used = facts(&[large, small], &[]);
        assert_eq!(used.record_excess("write"), Ok(256.0));
        assert_eq!(used.record_excess_owner("write"), Ok("tank/big".to_owned()));
        assert_eq!(used.record_excess_io("write"), Ok(4096.0));
        assert_eq!(used.record_excess("read"), Ok(1.0));
        assert!(facts(&[], &[]).record_excess("write").is_err());
        // The readings are a nanosecond apart.
        assert_eq!(used.traffic("write"), Ok((20_000.0 * 4096.0 + 131_072_000.0) * 1e9));
    }
}
