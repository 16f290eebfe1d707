//! Kstats in every text: Linux files, FreeBSD sysctl, illumos blocks and `kstat -p`, and what
//! people make of them (header cut off, columns swapped by awk, rates put behind in parentheses).
//!
//! A Linux file does not say its own name: it is taken from the rows, then from the path. The whole
//! formats are those of `ogive_kstat`; only single rows are read here, because a paste may lack any
//! line of them.

use std::sync::LazyLock;

use ogive_kstat::table::Kind;
use ogive_kstat::{arcstats, tables};
use regex::Regex;

use crate::evidence::Number;
use crate::read::text::clean::Line;
use crate::read::text::number;
use crate::read::text::reading::{Reading, Rows};
use crate::read::text::section::Section;
use crate::read::text::words;

/// Rows by which a kstat is known when nothing else names it.
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

/// Parts of names of rows that are levels, for kstats that `ogive_kstat` does not declare.
const GAUGE_MARKS: &str = "_size|_max|_min|_limit|_target|hiwater|lowater|cache_count|_elements|_chains|evictable\
     |_avail|in_pool|_cnt|hash_table_count|mutex_count|io_active";

/// The kind of a row of the kstat `name`.
pub(crate) fn kind_of(name: &str, row: &str) -> Kind {
    let declared = std::iter::once(&arcstats::ARCSTATS)
        .chain(tables::COMPANIONS)
        .find(|table| table.name == name)
        .and_then(|table| table.field(row));
    if let Some(field) = declared {
        return field.kind;
    }
    if name == "arcstats" && arcstats::REMOVED_ROWS.iter().any(|field| field.name == row) {
        return Kind::Gauge;
    }
    // Order statistics of ABDs and levels of the dbuf cache are numbers of buffers now.
    let level = matches!(row, "c" | "p" | "size" | "inodes" | "worker_threads")
        || row.starts_with("cache_level_")
        || row.starts_with("scatter_order_")
        || matches!(name, "abdstats" | "simd")
        || row.starts_with("metadata_cache_") && !row.contains("overflow")
        || words::contains(GAUGE_MARKS, row);
    if level { Kind::Gauge } else { Kind::Counter }
}

/// A kstat value with its kind.
pub(crate) fn number_of(kstat: &str, row: &str, text: &str) -> Number {
    match number::integer(text).map(|value| value as f64).or_else(|| number::plain(text)) {
        Some(value) => match kind_of(kstat, row) {
            Kind::Counter => Number::Counter(value),
            Kind::Gauge => Number::Gauge(value),
        },
        None => Number::Text(text.trim().to_owned()),
    }
}

static HEADER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^\s*\d+ (\d+) 0x[0-9a-fA-F]+ -?\d+ \d+ (-?\d+) (-?\d+)\s*$")
        .expect("a constant pattern")
});
static LINUX_ROW: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^\s*(\S.*?)\s+([0-7])\s+(-?\d+|\S.*?)\s*$").expect("a constant pattern")
});
static VALUE_FIRST: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^\s*(-?\d+)\s+([a-z][a-z0-9_-]*)\s*$").expect("a constant pattern")
});
static NAME_VALUE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^\s*([a-z_][A-Za-z0-9_-]*)\s*[\s:=]\s*(-?\d[\d,.]*[KMGTkmgt]?(?:i?B)?)(?:\s+\(\s*([+-]?\d[\d,.]*)\s*(?:/s)?\s*\))?\s*$")
        .expect("a constant pattern")
});

struct Row<'t> {
    name: &'t str,
    value: &'t str,
    rate: Option<&'t str>,
}

/// One row in any of the dresses.
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

/// Whether a line without heading can be a row of a Linux kstat.
pub(crate) fn is_known_row(text: &str) -> bool {
    let Some(row) = row(text) else { return false };
    arcstats::ARCSTATS.field(row.name).is_some() && row.name.len() > 1 && row.name != "size"
        || arcstats::REMOVED_ROWS.iter().any(|field| field.name == row.name && row.name.len() > 1)
        || MARK_ROWS.iter().any(|(_, marks)| words::is(marks, row.name))
        || matches!(row.name, "recycle_miss" | "mutex_miss" | "arc_prune" | "deleted")
}

/// Whether a line has the shape of a row, of whatever kstat: one word and one number.
pub(crate) fn has_row_shape(text: &str) -> bool {
    text.len() < 200
        && (VALUE_FIRST.is_match(text) || NAME_VALUE.is_match(text) || LINUX_ROW.is_match(text))
}

/// Whether a line holds the seven numbers a kstat of Linux begins with.
pub(crate) fn is_header(text: &str) -> bool {
    text.contains(" 0x") && HEADER.is_match(text)
}

/// Name of the kstat whose rows these are, and its pool.
fn identify(rows: &[(&Line<'_>, Row<'_>)], path: Option<&str>) -> (String, Option<String>) {
    let (stem, pool) = path.map(name_and_pool).unwrap_or_default();
    let score = |marks: &str| rows.iter().filter(|(_, row)| words::is(marks, row.name)).count();
    let arc = rows
        .iter()
        .filter(|(_, row)| row.name.len() > 1 && arcstats::ARCSTATS.field(row.name).is_some());
    let long = rows.iter().filter(|(_, row)| row.name.len() > 1).count().max(1);
    let best =
        MARK_ROWS.iter().map(|(name, marks)| (score(marks), *name)).max_by_key(|(score, _)| *score);
    let known = MARK_ROWS.iter().any(|(name, _)| *name == stem);
    let name = match best {
        _ if known => stem,
        Some((score, "objset")) if score > 0 => {
            if stem.starts_with("objset") {
                stem
            } else {
                "objset".to_owned()
            }
        }
        Some((score, name)) if score > 0 => name.to_owned(),
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

/// Reads a Linux named kstat, whole or in part.
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
    add(&mut table, &name, &rows);
    reading.push(table);
}

fn add(table: &mut Rows, kstat: &str, rows: &[(&Line<'_>, Row<'_>)]) {
    for (line, row) in rows {
        let humanised = row.value.ends_with(|c: char| c.is_alphabetic());
        let value = match number::bytes(row.value).filter(|_| humanised) {
            Some(value) if kind_of(kstat, row.name) == Kind::Gauge => Number::Gauge(value),
            Some(value) => Number::Counter(value),
            None => number_of(kstat, row.name, row.value),
        };
        table.number(row.name, value, line);
        if let Some(rate) = row.rate.and_then(number::plain) {
            table.rate(row.name, Some(rate), line);
        }
    }
}

/// Reads FreeBSD's `kstat.zfs.misc.arcstats.hits: 8019094`; other sysctls are not for here.
pub(crate) fn read_sysctl_row(text: &str) -> Option<(String, Option<String>, String, String)> {
    let kstats = ogive_kstat::sysctl::parse(text.trim().as_bytes()).ok()?;
    let kstat = kstats.first()?;
    let entry = kstat.entries.first()?;
    let pool = kstat.module.split_once('/').map(|(_, pool)| pool.to_owned());
    Some((kstat.name.to_lowercase(), pool, entry.name.clone(), entry.value.to_string()))
}

static ILLUMOS_TITLE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^\s*(module|name):\s+(\S+)\s+(?:instance|class):\s*(\S*)")
        .expect("a constant pattern")
});

/// Whether a line begins a block, or is one of `kstat -p`.
pub(crate) fn is_illumos(text: &str) -> bool {
    text.starts_with("module:") && text.contains("instance:")
        || parsable(text).is_some_and(|(name, row, _)| {
            !name.is_empty() && !name.contains(char::is_whitespace) && !row.is_empty()
        })
}

/// Reads the blocks of illumos `kstat`, and `kstat -p` lines.
pub(crate) fn read_illumos(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut table: Option<(String, Rows)> = None;
    let mut created_s = None;
    for line in section.lines {
        let text = line.text.trim();
        if let Some(title) = ILLUMOS_TITLE.captures(text) {
            if &title[1] == "name" {
                let name = title[2].to_lowercase();
                let next = reading.table(&name);
                if let Some((_, done)) = table.replace((name, next)) {
                    reading.push(done);
                }
            }
            continue;
        }
        let (name, row, value) = match parsable(text) {
            Some(found) => found,
            None => match (text.split_once(char::is_whitespace), &table) {
                (Some((row, value)), Some((name, _))) => (name.clone(), row, value.trim()),
                _ => {
                    reading.leave(line);
                    continue;
                }
            },
        };
        if table.as_ref().is_none_or(|(current, _)| *current != name) {
            let next = reading.table(&name);
            if let Some((_, done)) = table.replace((name.clone(), next)) {
                reading.push(done);
            }
            created_s = None;
        }
        let Some((_, rows)) = &mut table else { continue };
        match row {
            "class" => {}
            "crtime" => {
                created_s = number::plain(value);
                age(rows, created_s);
            }
            "snaptime" => {
                rows.table.taken_ns = number::plain(value).map(|seconds| (seconds * 1e9) as i128);
                age(rows, created_s);
            }
            _ => rows.number(row, number_of(&name, row, value), line),
        }
    }
    if let Some((_, done)) = table {
        reading.push(done);
    }
}

fn age(rows: &mut Rows, created_s: Option<f64>) {
    let taken_s = rows.table.taken_ns.map(|taken| taken as f64 / 1e9);
    rows.table.age_s =
        taken_s.zip(created_s).map(|(taken, created)| taken - created).filter(|age| *age > 0.0);
}

/// `zfs:0:arcstats:hits 123` as `("arcstats", "hits", "123")`.
fn parsable(text: &str) -> Option<(String, &str, &str)> {
    let (path, value) = text.split_once(char::is_whitespace)?;
    let mut parts = path.splitn(4, ':');
    let (module, instance) = (parts.next()?, parts.next()?);
    instance
        .parse::<u32>()
        .ok()
        .filter(|_| module.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'))?;
    let (name, row) = (parts.next()?, parts.next()?);
    Some((name.to_lowercase(), row, value.trim()))
}
