//! The metric families of a host's OpenZFS, from its own kstats.
//!
//! Rows that a mount's table also has use the same families, with `openzfs_` instead of `ogive_` in
//! the name and without the label `mount`. The families of the intent log, the dbuf cache, pools
//! and data sets are derived from the names of their rows.

use ogive_kstat::{Kstat, files};
use ogive_stats::{Field, Unit};

use super::{FAMILIES, From, kind_of, sample};
use crate::exposition::{Exposition, Kind, Label};

/// The kstats of a host's OpenZFS at one moment.
#[derive(Debug)]
pub struct OpenZfs {
    /// Its `arcstats`.
    pub arcstats: Kstat,
    /// Its `zfetchstats`, if it exists.
    pub zfetchstats: Option<Kstat>,
    /// Its `zil`.
    pub zil: Option<Kstat>,
    /// Its `dbufstats`.
    pub dbufstats: Option<Kstat>,
    /// Its imported pools.
    pub pools: Vec<Pool>,
}

/// A pool.
#[derive(Debug)]
pub struct Pool {
    /// Its name.
    pub name: String,
    /// Its state as OpenZFS writes it (`ONLINE`, `DEGRADED`, `SUSPENDED`).
    pub state: String,
    /// The kstats of its data sets, each with the row `dataset_name`.
    pub datasets: Vec<Kstat>,
}

/// Rows of `dbufstats` (`module/zfs/dbuf.c`) about its cache.
const DBUFSTATS: [Field; 7] = [
    Field::bytes("cache_size_bytes", "Size of the dbuf cache"),
    Field::bytes("cache_target_bytes", "Target size of the dbuf cache"),
    Field::bytes("metadata_cache_size_bytes", "Size of the dbuf cache of metadata"),
    Field::counter("cache_total_evicts", "Dbufs evicted from the cache"),
    Field::counter("hash_hits", "Dbufs found in the hash table"),
    Field::counter("hash_misses", "Dbufs not found in the hash table"),
    Field::counter("hash_collisions", "Dbufs added to a chain that was not empty"),
];

/// Adds all families of a host's OpenZFS.
pub fn tell(exposition: &mut Exposition, zfs: &OpenZfs) {
    for family in FAMILIES.iter() {
        let known = |(from, row): &(From, &'static Field)| Some((*row, zfs.number(*from, row)?));
        let rows: Vec<(&Field, i128)> = family.rows.iter().filter_map(known).collect();
        if rows.is_empty() {
            continue;
        }
        let name = family.name.replacen("ogive_", "openzfs_", 1);
        let samples = exposition.family(&name, family.kind(), family.help);
        for (row, number) in rows {
            sample(samples, &[], row, number);
        }
    }
    for (part, fields, kstat) in
        [("", files::ZIL.fields, &zfs.zil), ("dbuf_", &DBUFSTATS[..], &zfs.dbufstats)]
    {
        let Some(kstat) = kstat else { continue };
        for field in fields {
            tell_field(exposition, part, field, &[(Vec::new(), kstat)]);
        }
    }
    let states = exposition.family("openzfs_pool_state", Kind::Gauge, "1 of a pool's state");
    for pool in &zfs.pools {
        states.sample(&[("pool", &pool.name), ("state", &pool.state)], 1);
    }
    let of_pool = |pool: &'_ Pool| -> Vec<(Vec<(&'static str, String)>, usize)> {
        let label = |(at, kstat): (usize, &Kstat)| {
            let dataset = kstat.get("dataset_name")?.as_text()?.to_owned();
            Some((vec![("pool", pool.name.clone()), ("dataset", dataset)], at))
        };
        pool.datasets.iter().enumerate().filter_map(label).collect()
    };
    let labelled: Vec<_> = zfs.pools.iter().map(|pool| (pool, of_pool(pool))).collect();
    for field in files::OBJSET.fields {
        let rows: Vec<(Vec<Label<'_>>, &Kstat)> = labelled
            .iter()
            .flat_map(|(pool, labels)| labels.iter().map(move |one| (*pool, one)))
            .map(|(pool, (labels, at))| {
                let labels = labels.iter().map(|(name, value)| (*name, value.as_str())).collect();
                (labels, &pool.datasets[*at])
            })
            .collect();
        tell_field(exposition, "dataset_", field, &rows);
    }
}

/// Adds one row of each kstat, with its labels.
fn tell_field(
    exposition: &mut Exposition,
    part: &str,
    field: &Field,
    rows: &[(Vec<Label<'_>>, &Kstat)],
) {
    let known: Vec<(&Vec<Label<'_>>, i128)> = rows
        .iter()
        .filter_map(|(labels, kstat)| Some((labels, kstat.integer(field.name)?)))
        .collect();
    if known.is_empty() {
        return;
    }
    // The text after a semicolon is about a mount's own row.
    let help = field.doc.split(';').next().unwrap_or(field.doc);
    let samples = exposition.family(&name_of(part, field), kind_of(field), help);
    for (labels, number) in known {
        samples.sample(labels, number);
    }
}

/// `zil_commit_count` as `openzfs_zil_commit`, and bytes with their unit.
fn name_of(part: &str, field: &Field) -> String {
    let name = field.name.strip_suffix("_count").unwrap_or(field.name);
    let unit = if field.unit == Unit::Bytes && !name.ends_with("_bytes") { "_bytes" } else { "" };
    format!("openzfs_{part}{name}{unit}")
}

impl OpenZfs {
    fn number(&self, from: From, row: &Field) -> Option<i128> {
        let kstat = match from {
            From::Arcstats => &self.arcstats,
            From::Zfetchstats => self.zfetchstats.as_ref()?,
            From::Ogivestats => return None,
        };
        let is_second_level = row.name.starts_with("l2_");
        let has_devices = || self.arcstats.integer("l2_ndev").is_none_or(|devices| devices > 0);
        (!is_second_level || has_devices()).then(|| kstat.integer(row.name))?
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;
    use crate::Format;
    use ogive_kstat::named;
    use std::collections::HashSet;

    fn kstat(name: &str, rows: &str) -> Kstat {
        let (count, bytes) = (rows.lines().count(), rows.lines().count() * 272);
        let text = format!("9 1 0x01 {count} {bytes} 1000 2000\nname type data\n{rows}");
        named::parse("zfs", name, text.as_bytes()).unwrap()
    }

    #[test]
    fn a_hosts_kstats_use_the_table_of_mounts_and_their_own_rows() {
        let dataset = "dataset_name 7 tank/a b\nwrites 4 3\nnwritten 4 4096\nnread 4 9\n";
        let zfs = OpenZfs {
            arcstats: kstat("arcstats", "size 4 4096\ndemand_data_hits 4 7\n"),
            zfetchstats: Some(kstat("zfetchstats", "io_issued 4 2\n")),
            zil: Some(kstat("zil", "zil_commit_count 4 5\nzil_itx_metaslab_slog_write 4 6\n")),
            dbufstats: Some(kstat("dbufstats", "cache_size_bytes 4 8\ncache_total_evicts 4 1\n")),
            pools: vec![Pool {
                name: "tank".to_owned(),
                state: "ONLINE".to_owned(),
                datasets: vec![kstat("objset-0x36", dataset)],
            }],
        };
        let mut exposition = Exposition::new(Format::Text);
        tell(&mut exposition, &zfs);
        let text = String::from_utf8(exposition.finish()).unwrap();
        for line in [
            "openzfs_cache_size_bytes 4096",
            "openzfs_cache_accesses_total{access=\"demand\",content=\"data\",result=\"hit\"} 7",
            "openzfs_prefetches_total 2",
            "openzfs_zil_commit_total 5",
            "openzfs_zil_itx_metaslab_slog_write_bytes_total 6",
            "openzfs_dbuf_cache_size_bytes 8",
            "openzfs_dbuf_cache_total_evicts_total 1",
            "openzfs_pool_state{pool=\"tank\",state=\"ONLINE\"} 1",
            "openzfs_dataset_nwritten_bytes_total{pool=\"tank\",dataset=\"tank/a b\"} 4096",
        ] {
            assert!(text.lines().any(|own| own == line), "no {line}: {text}");
        }
        assert!(!text.contains("ogive_") && !text.contains("openzfs_l2_"), "{text}");
        let names: Vec<&str> =
            text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len(), "{names:?}");
    }
}
