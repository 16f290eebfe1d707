//! Tables of the other kstats that OpenZFS's tools open.
//!
//! `arcstat` also reads `zfetchstats`. `arc_summary` opens `dmu_tx`, `zfetchstats` and `zil` for
//! every section, up to 2.1 also `vdev_cache_stats` and `vdev_mirror_stats`, and up to 2.0
//! `xuio_stats`. A tree with these files satisfies both tools of every release.

use crate::kstat::{Entry, Value};
use crate::named;
use crate::table::{Field, Rows, Table};

/// Every table of this module; `arcstats` is in [`crate::arcstats`].
pub static COMPANIONS: [&Table; 6] =
    [&ZFETCHSTATS, &DMU_TX, &ZIL, &VDEV_CACHE_STATS, &VDEV_MIRROR_STATS, &XUIO_STATS];

/// The name of the pool in a mount's own tree.
pub const POOL: &str = "ogive";

/// `<pool>/objset-0x<id>`: the reads and writes of one dataset (`module/zfs/dataset_kstats.c`,
/// OpenZFS 2.4), without the rows of its intent log. The name of the dataset precedes these rows
/// ([`dataset`]).
pub static OBJSET: Table = Table {
    module: "zfs/ogive",
    name: "objset-0x1",
    kid: 18,
    fields: &[
        Field::counter("writes", "Writes of programs"),
        Field::byte_counter("nwritten", "Their bytes"),
        Field::counter("reads", "Reads of programs"),
        Field::byte_counter("nread", "Their bytes"),
        Field::counter(
            "nunlinks",
            "Files put into the queue of those to be deleted; always 0 here",
        ),
        Field::counter("nunlinked", "Files taken from it; always 0 here"),
    ],
};

/// The file of a dataset: its name, which `node_exporter` uses as a label, and `rows` of
/// [`OBJSET`].
///
/// A line feed ends the name for every reader, so control characters become `?`.
pub fn dataset(name: &str, rows: &Rows) -> String {
    let name = name.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    let mut kstat = rows.to_kstat();
    kstat.entries.insert(0, Entry { name: "dataset_name".to_owned(), value: Value::Str(name) });
    named::write(&kstat)
}

/// `zfetchstats`: the stream prefetcher (`module/zfs/dmu_zfetch.c`, OpenZFS 2.4).
pub static ZFETCHSTATS: Table =
    Table { module: "zfs", name: "zfetchstats", kid: 10, fields: ogive_stats::ZFETCHSTATS };

/// `ogivestats`: statistics that `arcstats` has no row for. OpenZFS has no such file.
pub static OGIVESTATS: Table =
    Table { module: "ogive", name: "ogivestats", kid: 0, fields: ogive_stats::OGIVESTATS };

/// `dmu_tx`: delays of ZFS transactions (`module/zfs/dmu_tx.c`).
pub static DMU_TX: Table = Table {
    module: "zfs",
    name: "dmu_tx",
    kid: 11,
    fields: &[
        Field::counter("dmu_tx_assigned", "Transactions given a group"),
        Field::counter("dmu_tx_delay", "Transactions delayed"),
        Field::counter("dmu_tx_error", "Transactions that failed"),
        Field::counter("dmu_tx_suspended", "Transactions held by a suspended pool"),
        Field::counter("dmu_tx_group", "Transactions that waited for the next group"),
        Field::counter("dmu_tx_memory_reserve", "Transactions that found no memory to reserve"),
        Field::counter("dmu_tx_memory_reclaim", "Transactions that waited for reclaim"),
        Field::counter("dmu_tx_dirty_throttle", "Transactions throttled for too much dirty data"),
        Field::counter("dmu_tx_dirty_delay", "Transactions delayed for dirty data"),
        Field::counter("dmu_tx_dirty_over_max", "Transactions stopped at the dirty data maximum"),
        Field::counter("dmu_tx_dirty_frees_delay", "Frees delayed for too many dirty frees"),
        Field::counter("dmu_tx_wrlog_delay", "Transactions delayed for the write log"),
        Field::counter("dmu_tx_quota", "Transactions stopped by a quota"),
    ],
};

/// `zil`: the ZFS intent log (`module/zfs/zil.c`, OpenZFS 2.4).
pub static ZIL: Table = Table {
    module: "zfs",
    name: "zil",
    kid: 15,
    fields: &[
        Field::counter("zil_commit_count", "Commits asked for"),
        Field::counter("zil_commit_writer_count", "Commits that wrote"),
        Field::counter("zil_commit_error_count", "Commits that fell back after an error"),
        Field::counter("zil_commit_stall_count", "Commits that fell back after a stall"),
        Field::counter("zil_commit_suspend_count", "Commits that met a suspended log"),
        Field::counter("zil_commit_crash_count", "Commits that met a crashed log"),
        Field::counter("zil_itx_count", "Transactions in the log"),
        Field::counter("zil_itx_indirect_count", "Transactions whose data stands outside the log"),
        Field::byte_counter("zil_itx_indirect_bytes", "Their bytes"),
        Field::counter("zil_itx_copied_count", "Transactions whose data was copied early"),
        Field::byte_counter("zil_itx_copied_bytes", "Their bytes"),
        Field::counter("zil_itx_needcopy_count", "Transactions whose data was copied at commit"),
        Field::byte_counter("zil_itx_needcopy_bytes", "Their bytes"),
        Field::counter("zil_itx_metaslab_normal_count", "Transactions logged on the pool"),
        Field::byte_counter("zil_itx_metaslab_normal_bytes", "Their bytes"),
        Field::byte_counter("zil_itx_metaslab_normal_write", "Bytes written to the pool for them"),
        Field::byte_counter("zil_itx_metaslab_normal_alloc", "Bytes taken on the pool for them"),
        Field::counter("zil_itx_metaslab_slog_count", "Transactions on a log device"),
        Field::byte_counter("zil_itx_metaslab_slog_bytes", "Their bytes"),
        Field::byte_counter("zil_itx_metaslab_slog_write", "Bytes written to log devices for them"),
        Field::byte_counter("zil_itx_metaslab_slog_alloc", "Bytes taken on log devices for them"),
    ],
};

/// `vdev_cache_stats`: a cache that OpenZFS 2.2 removed; older `arc_summary` fails without the
/// file.
pub static VDEV_CACHE_STATS: Table = Table {
    module: "zfs",
    name: "vdev_cache_stats",
    kid: 16,
    fields: &[
        Field::counter("delegations", "Reads that joined another"),
        Field::counter("hits", "Reads served"),
        Field::counter("misses", "Reads not served"),
    ],
};

/// `xuio_stats`: buffers lent to NFS, which OpenZFS 2.1 removed; older `arc_summary` fails without
/// the file.
pub static XUIO_STATS: Table = Table {
    module: "zfs",
    name: "xuio_stats",
    kid: 9,
    fields: &[
        Field::level("onloan_read_buf", "Buffers lent for reads"),
        Field::level("onloan_write_buf", "Buffers lent for writes"),
        Field::counter("read_buf_copied", "Reads whose buffer was copied"),
        Field::counter("read_buf_nocopy", "Reads whose buffer was lent"),
        Field::counter("write_buf_copied", "Writes whose buffer was copied"),
        Field::counter("write_buf_nocopy", "Writes whose buffer was lent"),
    ],
};

/// `vdev_mirror_stats`: the choice of a mirror's side; older `arc_summary` fails without the file.
pub static VDEV_MIRROR_STATS: Table = Table {
    module: "zfs",
    name: "vdev_mirror_stats",
    kid: 17,
    fields: &[
        Field::counter("rotating_linear", "Reads that continued on a rotating disk"),
        Field::counter("rotating_offset", "Reads near the last on a rotating disk"),
        Field::counter("rotating_seek", "Reads that made a rotating disk seek"),
        Field::counter("non_rotating_linear", "Reads that continued on a solid-state disk"),
        Field::counter("non_rotating_seek", "Reads that made a solid-state disk seek"),
        Field::counter("preferred_found", "Reads that had a preferred side"),
        Field::counter("preferred_not_found", "Reads that had none"),
    ],
};
