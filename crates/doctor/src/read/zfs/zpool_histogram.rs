//! Histograms of `zpool iostat`: how long requests waited (`-w`) and how large they were (`-r`),
//! one bucket per row.
//!
//! Each row goes unchanged into the table `zpool_iostat_histogram`. Rules ask about all rows
//! together. `zpool_iostat_sizes` has the average size of requests, and the shares that are small
//! or were aggregated. The first report counts since boot, later ones an interval; the latest is
//! used.

use crate::read::text::clean::Line;
use crate::read::text::number;
use crate::read::text::reading::Reading;

/// Requests smaller than this are small: a disk spends its time on their number, not their size.
const SMALL_BYTES: f64 = 16.0 * 1024.0;

/// Whether the words are a pool or device, then the groups of columns of a histogram.
pub(super) fn is_heading(words: &[&str]) -> bool {
    words.len() > 3
        && matches!(
            words[1..3],
            ["sync_read", "sync_write" | "async_read"] | ["total_wait", "disk_wait"]
        )
}

/// A histogram while it is read.
pub(super) struct Histogram<'a, 'l> {
    /// The pool or device.
    of: &'a str,
    /// The title of the buckets: `latency` or `req_size`.
    title: &'a str,
    columns: Vec<String>,
    rows: Vec<(f64, Vec<Option<f64>>)>,
    last: &'a Line<'l>,
}

impl<'a, 'l> Histogram<'a, 'l> {
    /// Begins with the line that names the columns.
    pub(super) fn begin(
        of: &'a str,
        title: &'a str,
        columns: Vec<String>,
        last: &'a Line<'l>,
    ) -> Self {
        Self { of, title, columns, rows: Vec::new(), last }
    }

    /// A bucket: nanoseconds or bytes. Exact figures (`-p`) have no unit.
    fn bucket(&self, word: &str) -> Option<f64> {
        if self.title == "req_size" {
            return number::bytes(word);
        }
        let seconds = number::seconds(word).filter(|_| word.ends_with('s'));
        seconds.map(|seconds| (seconds * 1e9).round()).or_else(|| number::plain(word))
    }

    /// Takes a row; `false` if the words are none.
    pub(super) fn row(
        &mut self,
        words: &[&str],
        line: &'a Line<'l>,
        reading: &mut Reading<'_>,
    ) -> bool {
        let Some(bucket) = self.bucket(words[0]).filter(|_| words.len() > 2) else { return false };
        let scope = format!("{} {} {}", self.of, self.title, words[0]);
        let mut table = reading.table("zpool_iostat_histogram").scope(scope);
        let values: Vec<Option<f64>> = words[1..].iter().map(|word| number::count(word)).collect();
        for (at, value) in values.iter().enumerate() {
            let name = self.columns.get(at).map_or_else(|| format!("column{at}"), Clone::clone);
            table.rate(&name, *value, line);
        }
        reading.push(table);
        self.rows.push((bucket, values));
        self.last = line;
        true
    }

    /// Adds the figures of all rows, where the buckets are sizes.
    pub(super) fn end(ended: Option<Self>, reading: &mut Reading<'_>) {
        if let Some(sizes) = ended.filter(|ended| ended.title == "req_size") {
            sizes.sizes(reading);
        }
    }

    /// Buckets of a column, smallest first, with their numbers of requests.
    fn column(&self, at: usize) -> impl Iterator<Item = (f64, f64)> + '_ {
        let count = move |values: &Vec<Option<f64>>| values.get(at).copied().flatten();
        self.rows.iter().filter_map(move |(bucket, values)| Some((*bucket, count(values)?)))
    }

    fn sizes(&self, reading: &mut Reading<'_>) {
        let (mut all, mut bytes, mut small, mut aggregated) = (0.0, 0.0, 0.0, 0.0);
        for (at, name) in self.columns.iter().enumerate() {
            // A trim has a size but moves no bytes.
            for (bucket, count) in self.column(at).filter(|_| !name.starts_with("trim")) {
                all += count;
                bytes += bucket * count;
                small += if bucket < SMALL_BYTES { count } else { 0.0 };
                aggregated += if name.ends_with("_agg") { count } else { 0.0 };
            }
        }
        let of_all = |part: f64| (all > 0.0).then(|| part / all);
        let mut table = reading.table("zpool_iostat_sizes").scope(self.of);
        table.gauge("requests", Some(all), self.last);
        table.gauge("mean_bytes", of_all(bytes), self.last);
        table.gauge("small_percent", of_all(small * 100.0), self.last);
        table.gauge("aggregated_percent", of_all(aggregated * 100.0), self.last);
        reading.push(table);
    }
}
