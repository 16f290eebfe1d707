//! The 148 rows of OpenZFS's `arcstats`, in OpenZFS's order, and the four that older tools want.
//!
//! Source: `arc_stats` in `module/zfs/arc.c`, OpenZFS 2.4. Releases differ only by rows they lack
//! (2.1 has 123 on Linux, 2.2 has 147); giving all of them satisfies the tools of every release
//! from 0.8 on. Where a name promises more than the number holds, its line says so.

use crate::table::{Field, Rows, Table, Unit, UnknownField};

/// `/proc/spl/kstat/zfs/arcstats`.
pub static ARCSTATS: Table = Table { module: "zfs", name: "arcstats", kid: 12, fields: FIELDS };

/// Rows that OpenZFS 2.2 removed and that `arc_summary` of 2.0 and 2.1 and `htop` still look for.
pub static REMOVED_ROWS: [Field; 4] = [
    Field::bytes("p", "Target of the MRU list (its share of `c`), before 2.2"),
    Field::bytes("arc_meta_limit", "Most metadata the cache may hold, before 2.2"),
    Field::bytes("arc_meta_max", "Most metadata it ever held, before 2.2"),
    Field::bytes("arc_meta_min", "Metadata below which none is evicted, before 2.2"),
];

/// The exact `arcstats` file for `counters`: all 148 rows, those not given zero.
///
/// ```
/// let text = ogive_kstat::arcstats::file(1, 2, [("hits", 7_u64), ("size", 4096)]).unwrap();
/// assert!(text.starts_with("12 1 0x01 148 40256 1 2\nname                            type data\n"));
/// assert!(text.contains("\nhits                            4    7\n"));
/// ```
///
/// # Errors
/// [`UnknownField`] for a name that is not one of the 148.
pub fn file<'a, Number: Into<i128>>(
    crtime_ns: i64,
    snaptime_ns: i64,
    counters: impl IntoIterator<Item = (&'a str, Number)>,
) -> Result<String, UnknownField> {
    let mut rows = ARCSTATS.rows(crtime_ns, snaptime_ns);
    rows.fill(counters)?;
    Ok(rows.to_text())
}

/// Appends [`REMOVED_ROWS`] to a filling, from values in their order.
pub fn append_removed_rows(rows: &mut Rows, values: [u64; 4]) {
    for (field, value) in REMOVED_ROWS.iter().zip(values) {
        rows.append(field, value);
    }
}

const fn counter(name: &'static str, doc: &'static str) -> Field {
    Field::counter(name, doc)
}

const fn byte_counter(name: &'static str, doc: &'static str) -> Field {
    Field::byte_counter(name, doc)
}

const fn bytes(name: &'static str, doc: &'static str) -> Field {
    Field::bytes(name, doc)
}

const fn level(name: &'static str, doc: &'static str) -> Field {
    Field::gauge(name, Unit::Count, doc)
}

const fn fraction(name: &'static str, doc: &'static str) -> Field {
    Field::gauge(name, Unit::Fraction32, doc)
}

const fn flag(name: &'static str, doc: &'static str) -> Field {
    Field::gauge(name, Unit::Flag, doc)
}

const FIELDS: &[Field] = &[
    counter("hits", "Accesses served from memory"),
    counter("iohits", "Accesses that joined a read already under way"),
    counter("misses", "Accesses that started a read"),
    counter("demand_data_hits", "Hits by programs on file data"),
    counter("demand_data_iohits", "I/O hits by programs on file data"),
    counter("demand_data_misses", "Misses by programs on file data"),
    counter("demand_metadata_hits", "Hits by programs on metadata"),
    counter("demand_metadata_iohits", "I/O hits by programs on metadata"),
    counter("demand_metadata_misses", "Misses by programs on metadata"),
    counter("prefetch_data_hits", "Prefetches of file data that was in memory already"),
    counter("prefetch_data_iohits", "Prefetches of file data that was being read already"),
    counter("prefetch_data_misses", "Prefetches of file data that started a read"),
    counter("prefetch_metadata_hits", "Prefetches of metadata that was in memory already"),
    counter("prefetch_metadata_iohits", "Prefetches of metadata that was being read already"),
    counter("prefetch_metadata_misses", "Prefetches of metadata that started a read"),
    counter("mru_hits", "Hits on the MRU list (seen once lately)"),
    counter("mru_ghost_hits", "Misses whose key the MRU ghost list still knew"),
    counter("mfu_hits", "Hits on the MFU list (seen more than once lately)"),
    counter("mfu_ghost_hits", "Misses whose key the MFU ghost list still knew"),
    counter("uncached_hits", "Hits on entries that are not to be kept"),
    counter("deleted", "Entries removed, by eviction or because their object went"),
    counter("mutex_miss", "Evictions given up because the entry was locked"),
    counter("access_skip", "Accesses that found the entry already freed"),
    counter("evict_skip", "Entries eviction passed over because they were in use"),
    counter("evict_not_enough", "Eviction passes that freed less than wanted"),
    byte_counter("evict_l2_cached", "Bytes evicted that L2 holds"),
    byte_counter("evict_l2_eligible", "Bytes evicted that could have gone to L2"),
    byte_counter("evict_l2_eligible_mfu", "Of evict_l2_eligible, from the MFU list"),
    byte_counter("evict_l2_eligible_mru", "Of evict_l2_eligible, from the MRU list"),
    byte_counter("evict_l2_ineligible", "Bytes evicted that L2 may not hold"),
    counter("evict_l2_skip", "Evictions put off because L2 was writing the entry"),
    level("hash_elements", "Headers in the hash table, ghosts included"),
    level("hash_elements_max", "Same as hash_elements: the maximum is no longer tracked"),
    counter("hash_collisions", "Inserts into a bucket that was not empty"),
    level("hash_chains", "Buckets that hold more than one header"),
    level("hash_chain_max", "Longest chain in one bucket"),
    fraction("meta", "Share of the cache meant for metadata, 2^32 being all"),
    fraction("pd", "Share of data meant for the MRU list, 2^32 being all"),
    fraction("pm", "Share of metadata meant for the MRU list, 2^32 being all"),
    bytes("c", "Target size"),
    bytes("c_min", "Floor of the target"),
    bytes("c_max", "Ceiling of the target"),
    bytes("size", "All memory of the cache, headers and overhead included"),
    bytes("compressed_size", "Entries as they are kept (compressed where they are)"),
    bytes("uncompressed_size", "The same entries at their logical size; may exceed memory"),
    bytes("overhead_size", "Further copies that consumers hold"),
    bytes("hdr_size", "Headers"),
    bytes("data_size", "File data"),
    bytes("metadata_size", "Metadata"),
    bytes("dbuf_size", "ZFS's dbuf structures"),
    bytes("dnode_size", "ZFS's dnodes; here the inode table"),
    bytes("bonus_size", "ZFS's bonus buffers"),
    bytes("anon_size", "Entries on no list because they are being written"),
    bytes("anon_data", "Of anon_size, data"),
    bytes("anon_metadata", "Of anon_size, metadata"),
    bytes("anon_evictable_data", "Of anon_data, evictable; always 0"),
    bytes("anon_evictable_metadata", "Of anon_metadata, evictable; always 0"),
    bytes("mru_size", "Entries on the MRU list"),
    bytes("mru_data", "Of mru_size, data"),
    bytes("mru_metadata", "Of mru_size, metadata"),
    bytes("mru_evictable_data", "Of mru_data, not held by anyone"),
    bytes("mru_evictable_metadata", "Of mru_metadata, not held by anyone"),
    bytes("mru_ghost_size", "What the MRU ghosts' entries would take"),
    bytes("mru_ghost_data", "Of mru_ghost_size, data"),
    bytes("mru_ghost_metadata", "Of mru_ghost_size, metadata"),
    bytes("mru_ghost_evictable_data", "Of mru_ghost_data, droppable"),
    bytes("mru_ghost_evictable_metadata", "Of mru_ghost_metadata, droppable"),
    bytes("mfu_size", "Entries on the MFU list"),
    bytes("mfu_data", "Of mfu_size, data"),
    bytes("mfu_metadata", "Of mfu_size, metadata"),
    bytes("mfu_evictable_data", "Of mfu_data, not held by anyone"),
    bytes("mfu_evictable_metadata", "Of mfu_metadata, not held by anyone"),
    bytes("mfu_ghost_size", "What the MFU ghosts' entries would take"),
    bytes("mfu_ghost_data", "Of mfu_ghost_size, data"),
    bytes("mfu_ghost_metadata", "Of mfu_ghost_size, metadata"),
    bytes("mfu_ghost_evictable_data", "Of mfu_ghost_data, droppable"),
    bytes("mfu_ghost_evictable_metadata", "Of mfu_ghost_metadata, droppable"),
    bytes("uncached_size", "Entries to be dropped as soon as nobody holds them"),
    bytes("uncached_data", "Of uncached_size, data"),
    bytes("uncached_metadata", "Of uncached_size, metadata"),
    bytes("uncached_evictable_data", "Of uncached_data, not held by anyone"),
    bytes("uncached_evictable_metadata", "Of uncached_metadata, not held by anyone"),
    level("l2_ndev", "L2 devices"),
    counter("l2_hits", "Misses that L2 served"),
    counter("l2_misses", "Misses that L2 did not hold"),
    bytes("l2_prefetch_asize", "L2 space of entries that were prefetched"),
    bytes("l2_mru_asize", "L2 space of entries that came from the MRU list"),
    bytes("l2_mfu_asize", "L2 space of entries that came from the MFU list"),
    bytes("l2_bufc_data_asize", "L2 space of data"),
    bytes("l2_bufc_metadata_asize", "L2 space of metadata"),
    counter("l2_feeds", "Passes of the L2 feed thread"),
    counter("l2_rw_clash", "L2 reads of a part being written"),
    byte_counter("l2_read_bytes", "Bytes read from L2"),
    byte_counter("l2_write_bytes", "Bytes written to L2"),
    counter("l2_writes_sent", "Writes to L2 begun"),
    counter("l2_writes_done", "Writes to L2 ended"),
    counter("l2_writes_error", "Writes to L2 that failed"),
    counter("l2_writes_lock_retry", "L2 write completions that waited for a lock"),
    counter("l2_evict_lock_retry", "L2 evictions that waited for a lock"),
    counter("l2_evict_reading", "L2 evictions of an entry being read"),
    counter("l2_evict_l1cached", "L2 evictions of an entry that is in memory too"),
    counter("l2_free_on_write", "Entries freed while L2 was writing them"),
    counter("l2_abort_lowmem", "Feed passes given up for want of memory"),
    counter("l2_cksum_bad", "L2 reads with a wrong checksum (read again from the origin)"),
    counter("l2_io_error", "L2 reads that failed (read again from the origin)"),
    bytes("l2_size", "Logical size of what L2 holds"),
    bytes("l2_asize", "Space it takes on the L2 device"),
    bytes("l2_hdr_size", "Memory for headers of entries that only L2 holds"),
    counter("l2_log_blk_writes", "L2 log blocks written"),
    bytes("l2_log_blk_avg_asize", "Moving average of the size of a log block"),
    bytes("l2_log_blk_asize", "L2 space of log blocks"),
    level("l2_log_blk_count", "Log blocks on L2"),
    level("l2_data_to_meta_ratio", "Moving average of L2 data bytes over log bytes"),
    counter("l2_rebuild_success", "L2 devices whose index was rebuilt after a start"),
    counter("l2_rebuild_unsupported", "Rebuilds refused: format not known"),
    counter("l2_rebuild_io_errors", "Rebuilds stopped: read error"),
    counter("l2_rebuild_dh_errors", "Rebuilds stopped: bad device header"),
    counter("l2_rebuild_cksum_lb_errors", "Rebuilds stopped: bad checksum of a log block"),
    counter("l2_rebuild_lowmem", "Rebuilds stopped: memory short"),
    byte_counter("l2_rebuild_size", "Logical bytes rebuilt"),
    byte_counter("l2_rebuild_asize", "L2 bytes rebuilt"),
    counter("l2_rebuild_bufs", "Entries rebuilt"),
    counter("l2_rebuild_bufs_precached", "Entries met in a rebuild that were in memory already"),
    counter("l2_rebuild_log_blks", "Log blocks read in rebuilds"),
    counter("memory_throttle_count", "Writes delayed because memory was short"),
    counter("memory_direct_count", "Reclaims asked by an allocating thread"),
    counter("memory_indirect_count", "Reclaims asked by the system in the background"),
    bytes("memory_all_bytes", "Memory of the machine"),
    bytes("memory_free_bytes", "Free memory as the cache sees it"),
    Field::signed_bytes(
        "memory_available_bytes",
        "Free memory less the reserve; negative if short",
    ),
    flag("arc_no_grow", "1 while the cache may not grow"),
    bytes("arc_tempreserve", "Memory promised to writes in preparation"),
    bytes("arc_loaned_bytes", "Memory lent for filling by others"),
    counter("arc_prune", "Requests to the owners of pinned metadata to let go"),
    bytes("arc_meta_used", "size less data and rounding waste"),
    bytes("arc_dnode_limit", "Dnode memory above which prunes are asked for"),
    counter("async_upgrade_sync", "Asynchronous reads that a synchronous one had to wait for"),
    counter("predictive_prefetch", "Reads begun because a stream was recognised"),
    counter("demand_hit_predictive_prefetch", "Demand hits on what a stream prefetched"),
    counter("demand_iohit_predictive_prefetch", "Demand I/O hits on what a stream is prefetching"),
    counter("prescient_prefetch", "Reads begun because the caller said what comes next"),
    counter("demand_hit_prescient_prefetch", "Demand hits on what was prefetched on request"),
    counter("demand_iohit_prescient_prefetch", "Demand I/O hits on a prefetch on request"),
    bytes("arc_need_free", "Memory the system has asked for and not yet got"),
    bytes("arc_sys_free", "Free memory the cache leaves to the system"),
    bytes("arc_raw_size", "Entries kept encrypted"),
    counter("cached_only_in_progress", "Cache-only accesses that met a read under way"),
    bytes("abd_chunk_waste_size", "Memory lost to rounding up to pages"),
];
