//! Kstats in every format: Linux files, FreeBSD sysctl, illumos blocks and `kstat -p`. Also their
//! edited forms: no header, columns swapped by awk, rates appended in parentheses.
//!
//! A Linux file does not contain its own name; the name comes from the rows, then from the path.
//! Whole formats belong to `ogive_kstat`. This module reads single rows, because a paste may lack
//! any line.

use ogive_kstat::table::Kind;
use ogive_kstat::{arcstats, files, illumos};

use crate::evidence::Number;
use crate::pattern::Pattern;
use crate::read::text::clean::Line;
use crate::read::text::number;
use crate::read::text::reading::{Reading, Rows};
use crate::read::text::section::Section;
use crate::read::text::word_lists;

/// Rows that identify a kstat without a name.
const MARK_ROWS: [(&str, &str); 18] = [
    (
        "arcstats",
        "arc_meta_used|demand_data_hits|mru_ghost_hits|c_max|evict_skip|prefetch_data_hits\
         |dnode_size|arc_dnode_limit|mru_hits|evict_l2_cached|hash_chains|memory_throttle_count",
    ),
    (
        "dbufstats",
        "cache_count|cache_total_evicts|hash_chain_max|cache_size_bytes|hash_table_count",
    ),
    ("dnodestats", "dnode_hold_dbuf_hold|dnode_allocate"),
    ("abdstats", "struct_size|scatter_cnt|linear_cnt"),
    ("zil", "zil_commit_count|zil_itx_count"),
    ("dmu_tx", "dmu_tx_assigned|dmu_tx_delay"),
    ("zfetchstats", "max_streams|io_issued"),
    ("fm", "erpt-dropped"),
    ("vdev_cache_stats", "delegations"),
    ("vdev_mirror_stats", "rotating_linear"),
    ("metaslab_stats", "trace_over_limit|reload_tree"),
    ("zstd", "compress_level_invalid|alloc_fallback"),
    ("iostats", "trim_extents_written|arc_read_count"),
    ("objset", "dataset_name|nunlinks"),
    ("framework_stats", "total threads in pool"),
    ("ogivestats", "origin_reads|read_requests"),
    ("simd", "kfpu_allowed"),
    ("brtstats", "brt_addref_entry_in_memory"),
];

/// Parts of row names that mark a level, for kstats that `ogive_kstat` does not declare.
const GAUGE_MARKS: &str = "_size|_max|_min|_limit|_target|hiwater|lowater|cache_count|_elements|_chains|evictable\
     |_avail|in_pool|_cnt|hash_table_count|mutex_count|io_active";

/// The kind of a row of the kstat `name`.
pub(crate) fn kind_of(name: &str, row: &str) -> Kind {
    let declared = std::iter::once(&arcstats::ARCSTATS)
        .chain(files::COMPANIONS)
        .find(|table| table.name == name)
        .and_then(|table| table.field(row));
    if let Some(field) = declared {
        return field.kind;
    }
    if name == "arcstats" && arcstats::REMOVED_ROWS.iter().any(|field| field.name == row) {
        return Kind::Gauge;
    }
    // Scatter orders of ABDs and levels of the dbuf cache count buffers now.
    let level = matches!(row, "c" | "p" | "size" | "inodes" | "worker_threads")
        || row.starts_with("cache_level_")
        || row.starts_with("scatter_order_")
        || matches!(name, "abdstats" | "simd")
        || row.starts_with("metadata_cache_") && !row.contains("overflow")
        || word_lists::contains(GAUGE_MARKS, row);
    if level { Kind::Gauge } else { Kind::Counter }
}

/// A number of this kind.
pub(crate) fn number(kind: Kind, value: f64) -> Number {
    match kind {
        Kind::Counter => Number::Counter(value),
        Kind::Gauge => Number::Gauge(value),
    }
}

/// A kstat value with its kind.
fn number_of(kstat: &str, row: &str, text: &str) -> Number {
    match number::integer(text).map(|value| value as f64).or_else(|| number::plain(text)) {
        Some(value) => number(kind_of(kstat, row), value),
        None => Number::Text(text.trim().to_owned()),
    }
}

static HEADER: Pattern =
    Pattern::new(r"^\s*\d+ (\d+) 0x[0-9a-fA-F]+ -?\d+ \d+ (-?\d+) (-?\d+)\s*$");
static LINUX_ROW: Pattern = Pattern::new(r"^\s*(\S.*?)\s+([0-7])\s+(-?\d+|\S.*?)\s*$");
static VALUE_FIRST: Pattern = Pattern::new(r"^\s*(-?\d+)\s+([a-z][a-z0-9_-]*)\s*$");
static NAME_VALUE: Pattern = Pattern::new(
    r"^\s*([a-z_][A-Za-z0-9_-]*)\s*[\s:=]\s*(-?\d[\d,.]*[KMGTkmgt]?(?:i?B)?)(?:\s+\(\s*([+-]?\d[\d,.]*)\s*(?:/s)?\s*\))?\s*$",
);

struct Row<'t> {
    name: &'t str,
    value: &'t str,
    rate: Option<&'t str>,
}

/// One row in any of these formats.
fn row(text: &str) -> Option<Row<'_>> {
    let text = text.trim_start_matches([' ', '*', '•']);
    if let Some(found) = VALUE_FIRST.captures(text) {
        let (_, [value, name]) = found.extract();
        return Some(Row { name, value, rate: None });
    }
    if let Some(found) = NAME_VALUE.captures(text) {
        let (name, value) = (found.get(1)?.as_str(), found.get(2)?.as_str());
        return Some(Row { name, value, rate: found.get(3).map(|rate| rate.as_str()) });
    }
    let found = LINUX_ROW.captures(text)?;
    let (name, value) = (found.get(1)?.as_str(), found.get(3)?.as_str());
    Some(Row { name, value, rate: None })
}

/// Whether a line without a heading can be a row of a Linux kstat.
pub(crate) fn is_known_row(text: &str) -> bool {
    let Some(row) = row(text) else { return false };
    arcstats::ARCSTATS.field(row.name).is_some() && row.name.len() > 1 && row.name != "size"
        || arcstats::REMOVED_ROWS.iter().any(|field| field.name == row.name && row.name.len() > 1)
        || MARK_ROWS.iter().any(|(_, marks)| word_lists::is(marks, row.name))
        || matches!(row.name, "recycle_miss" | "mutex_miss" | "arc_prune" | "deleted")
}

/// Whether a line has the shape of a row of any kstat: one word and one number.
pub(crate) fn has_row_shape(text: &str) -> bool {
    text.len() < 200
        && (VALUE_FIRST.is_match(text) || NAME_VALUE.is_match(text) || LINUX_ROW.is_match(text))
}

/// Whether a line has the seven numbers that open a Linux kstat.
pub(crate) fn is_header(text: &str) -> bool {
    text.contains(" 0x") && HEADER.is_match(text)
}

/// The name of the kstat with these rows, and its pool.
fn identify(rows: &[(&Line<'_>, Row<'_>)], path: Option<&str>) -> (String, Option<String>) {
    let (stem, pool) = path.map(name_and_pool).unwrap_or_default();
    let score =
        |marks: &str| rows.iter().filter(|(_, row)| word_lists::is(marks, row.name)).count();
    let arc = rows
        .iter()
        .filter(|(_, row)| row.name.len() > 1 && arcstats::ARCSTATS.field(row.name).is_some());
    let long = rows.iter().filter(|(_, row)| row.name.len() > 1).count().max(1);
    let scores = MARK_ROWS.iter().map(|(name, marks)| (score(marks), *name));
    let best = scores.max_by_key(|(score, _)| *score).filter(|(score, _)| *score > 0);
    let name = match best {
        _ if MARK_ROWS.iter().any(|(name, _)| *name == stem) => stem,
        Some((_, "objset")) if stem.starts_with("objset") => stem,
        Some((_, name)) => name.to_owned(),
        _ if arc.count() * 2 >= long => "arcstats".to_owned(),
        _ if stem.is_empty() => "kstat".to_owned(),
        _ => stem,
    };
    (name, pool)
}

/// `.../spl/kstat/zfs/tank/txgs.prev` as `("txgs", Some("tank"))`.
pub(crate) fn name_and_pool(path: &str) -> (String, Option<String>) {
    let mut parts = path.rsplit('/');
    let file = parts.next().unwrap_or_default();
    let stem = file.split('.').next().unwrap_or(file).trim_start_matches("kstat-");
    let folder = parts.next().unwrap_or_default();
    let inside = parts.next() == Some("zfs") || parts.next() == Some("kstat") && folder != "zfs";
    let pool = (inside && !folder.is_empty()).then(|| folder.to_owned());
    (stem.to_lowercase(), pool)
}

/// Reads a Linux named kstat, whole or partial.
pub(crate) fn read_linux(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut times = None;
    let mut rows = Vec::new();
    for line in section.lines {
        let text = line.text.trim();
        if let Some(header) = HEADER.captures(text) {
            let (_, [_, created, taken]) = header.extract();
            times = created.parse::<i64>().ok().zip(taken.parse::<i64>().ok());
        } else if text.split_whitespace().eq(["name", "type", "data"]) || text.is_empty() {
        } else if let Some(row) = row(&line.text) {
            rows.push((line, row));
        } else {
            reading.leave(line);
        }
    }
    if rows.is_empty() {
        return;
    }
    let (name, pool) = identify(&rows, section.hint.path.as_deref());
    let mut table = reading.table(&name).taken(section.hint.time_s);
    table.table.scope = pool;
    if let Some((created, taken)) = times.filter(|(_, taken)| *taken > 0) {
        table.table.taken_ns = Some(i128::from(taken));
        table.table.age_s =
            (created > 0 && taken > created).then(|| (taken - created) as f64 / 1e9);
    }
    for (line, row) in &rows {
        let humanised = row.value.ends_with(|c: char| c.is_alphabetic());
        let value = match number::bytes(row.value).filter(|_| humanised) {
            Some(value) => self::number(kind_of(&name, row.name), value),
            None => number_of(&name, row.name, row.value),
        };
        table.number(row.name, value, line);
        table.rate(row.name, row.rate.and_then(number::plain), line);
    }
    reading.push(table);
}

/// Kstats of one section at most.
const MAX_KSTATS: usize = 4096;

/// Kstats whose lines each name their kstat.
#[derive(Default)]
pub(crate) struct Kstats(Vec<Rows>);

impl Kstats {
    /// Takes FreeBSD's `kstat.zfs.misc.arcstats.hits: 8019094`; `false` for any other sysctl.
    pub(crate) fn take_sysctl(
        &mut self,
        line: &Line<'_>,
        taken_s: Option<f64>,
        reading: &Reading<'_>,
    ) -> bool {
        let text = line.text.trim_start_matches(['*', '•', '–', ' ']);
        let parsed = ogive_kstat::sysctl::parse(text.as_bytes()).unwrap_or_default();
        let Some(kstat) = parsed.first() else { return false };
        let Some(entry) = kstat.entries.first() else { return false };
        let name = kstat.name.to_lowercase();
        let pool = kstat.module.split_once('/').map(|(_, pool)| pool);
        let is_it = |rows: &Rows| rows.table.name == name && rows.table.scope.as_deref() == pool;
        let known = self.0.iter().rposition(is_it);
        if known.is_none() && self.0.len() < MAX_KSTATS {
            let mut rows = reading.table(&name).taken(taken_s);
            rows.table.scope = pool.map(str::to_owned);
            self.0.push(rows);
        }
        let last = self.0.len() - 1;
        let rows = self.0.get_mut(known.unwrap_or(last)).filter(|rows| is_it(rows));
        if let Some(rows) = rows {
            let value = number_of(&name, &entry.name, &entry.value.to_string());
            rows.number(&entry.name, value, line);
        }
        true
    }

    /// Adds all of them to the evidence.
    pub(crate) fn end(self, reading: &mut Reading<'_>) {
        self.0.into_iter().for_each(|rows| reading.push(rows));
    }
}

/// Whether a line begins a block, or is a line of `kstat -p`.
pub(crate) fn is_illumos(text: &str) -> bool {
    illumos::title(text, "module:", "instance:").is_some()
        || illumos::row(text).is_some_and(|row| {
            let is_word = |name: &str| !name.is_empty() && !name.contains(char::is_whitespace);
            is_word(row.name) && !row.statistic.is_empty()
        })
}

/// Reads the blocks of illumos `kstat` and the lines of `kstat -p`.
pub(crate) fn read_illumos(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut kstats = Kstats::default();
    let mut created_s = None;
    for line in section.lines {
        let text = line.text.trim();
        let (row, title) = (illumos::row(text), illumos::title(text, "name:", "class:"));
        let name = title.map(|(name, _)| name).or(row.as_ref().map(|row| row.name));
        if let Some(name) = name.map(str::to_lowercase)
            && (title.is_some() || kstats.0.last().is_none_or(|rows| rows.table.name != name))
        {
            kstats.0.push(reading.table(&name));
            created_s = None;
        }
        if title.is_some() || text.starts_with("module:") {
            continue;
        }
        let cells = row.map(|row| (row.statistic, row.value));
        let cells = cells.or_else(|| text.split_once(char::is_whitespace));
        let Some((rows, (row, value))) = kstats.0.last_mut().zip(cells) else {
            reading.leave(line);
            continue;
        };
        let table = &mut rows.table;
        match row {
            "class" => {}
            "crtime" => created_s = number::plain(value),
            "snaptime" => {
                table.taken_ns = number::plain(value).map(|seconds| (seconds * 1e9) as i128);
                let taken_s = table.taken_ns.map(|taken| taken as f64 / 1e9);
                let age_s = taken_s.zip(created_s).map(|(taken, created)| taken - created);
                table.age_s = age_s.filter(|age| *age > 0.0);
            }
            _ => {
                let value = number_of(&table.name, row, value.trim());
                rows.number(row, value, line);
            }
        }
    }
    kstats.end(reading);
}
