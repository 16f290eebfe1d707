//! The table: every family with its rows.

use super::From::{Arcstats, Ogivestats, Zfetchstats};
use super::{Family, Row, Scale, counter, gauge};

pub(super) const FAMILIES: &[Family] = &[
    counter(
        "ogive_cache_accesses",
        "Accesses to the cache; an iohit joined a load under way",
        &[
            Row::new(
                Arcstats,
                "demand_data_hits",
                Scale::One,
                &[("access", "demand"), ("content", "data"), ("result", "hit")],
            ),
            Row::new(
                Arcstats,
                "demand_data_iohits",
                Scale::One,
                &[("access", "demand"), ("content", "data"), ("result", "iohit")],
            ),
            Row::new(
                Arcstats,
                "demand_data_misses",
                Scale::One,
                &[("access", "demand"), ("content", "data"), ("result", "miss")],
            ),
            Row::new(
                Arcstats,
                "demand_metadata_hits",
                Scale::One,
                &[("access", "demand"), ("content", "metadata"), ("result", "hit")],
            ),
            Row::new(
                Arcstats,
                "demand_metadata_iohits",
                Scale::One,
                &[("access", "demand"), ("content", "metadata"), ("result", "iohit")],
            ),
            Row::new(
                Arcstats,
                "demand_metadata_misses",
                Scale::One,
                &[("access", "demand"), ("content", "metadata"), ("result", "miss")],
            ),
            Row::new(
                Arcstats,
                "prefetch_data_hits",
                Scale::One,
                &[("access", "prefetch"), ("content", "data"), ("result", "hit")],
            ),
            Row::new(
                Arcstats,
                "prefetch_data_iohits",
                Scale::One,
                &[("access", "prefetch"), ("content", "data"), ("result", "iohit")],
            ),
            Row::new(
                Arcstats,
                "prefetch_data_misses",
                Scale::One,
                &[("access", "prefetch"), ("content", "data"), ("result", "miss")],
            ),
            Row::new(
                Arcstats,
                "prefetch_metadata_hits",
                Scale::One,
                &[("access", "prefetch"), ("content", "metadata"), ("result", "hit")],
            ),
            Row::new(
                Arcstats,
                "prefetch_metadata_iohits",
                Scale::One,
                &[("access", "prefetch"), ("content", "metadata"), ("result", "iohit")],
            ),
            Row::new(
                Arcstats,
                "prefetch_metadata_misses",
                Scale::One,
                &[("access", "prefetch"), ("content", "metadata"), ("result", "miss")],
            ),
        ],
    ),
    counter(
        "ogive_cache_list_hits",
        "Hits by list; of a ghost list: misses whose key it knew",
        &[
            Row::new(Arcstats, "mru_hits", Scale::One, &[("list", "mru")]),
            Row::new(Arcstats, "mru_ghost_hits", Scale::One, &[("list", "mru_ghost")]),
            Row::new(Arcstats, "mfu_hits", Scale::One, &[("list", "mfu")]),
            Row::new(Arcstats, "mfu_ghost_hits", Scale::One, &[("list", "mfu_ghost")]),
        ],
    ),
    gauge(
        "ogive_cache_list_bytes",
        "Bytes of entries by list",
        &[
            Row::new(Arcstats, "mru_data", Scale::One, &[("content", "data"), ("list", "mru")]),
            Row::new(
                Arcstats,
                "mru_metadata",
                Scale::One,
                &[("content", "metadata"), ("list", "mru")],
            ),
            Row::new(Arcstats, "mfu_data", Scale::One, &[("content", "data"), ("list", "mfu")]),
            Row::new(
                Arcstats,
                "mfu_metadata",
                Scale::One,
                &[("content", "metadata"), ("list", "mfu")],
            ),
        ],
    ),
    gauge(
        "ogive_cache_ghost_bytes",
        "Bytes that the entries would take of which a ghost list knows the keys",
        &[
            Row::new(
                Arcstats,
                "mru_ghost_data",
                Scale::One,
                &[("content", "data"), ("list", "mru")],
            ),
            Row::new(
                Arcstats,
                "mru_ghost_metadata",
                Scale::One,
                &[("content", "metadata"), ("list", "mru")],
            ),
            Row::new(
                Arcstats,
                "mfu_ghost_data",
                Scale::One,
                &[("content", "data"), ("list", "mfu")],
            ),
            Row::new(
                Arcstats,
                "mfu_ghost_metadata",
                Scale::One,
                &[("content", "metadata"), ("list", "mfu")],
            ),
        ],
    ),
    gauge(
        "ogive_cache_size_bytes",
        "All memory of the cache, headers included",
        &[Row::plain(Arcstats, "size")],
    ),
    gauge(
        "ogive_cache_headers_bytes",
        "Memory for headers and their index",
        &[Row::plain(Arcstats, "hdr_size")],
    ),
    gauge(
        "ogive_cache_inodes_bytes",
        "Memory for the table of inodes",
        &[Row::plain(Arcstats, "dnode_size")],
    ),
    gauge("ogive_cache_target_bytes", "Size the cache aims at", &[Row::plain(Arcstats, "c")]),
    gauge(
        "ogive_cache_target_min_bytes",
        "Least size it aims at",
        &[Row::plain(Arcstats, "c_min")],
    ),
    gauge(
        "ogive_cache_target_max_bytes",
        "Largest size it aims at",
        &[Row::plain(Arcstats, "c_max")],
    ),
    gauge(
        "ogive_cache_metadata_target_ratio",
        "Share of the target that is meant for metadata",
        &[Row::new(Arcstats, "meta", Scale::Fraction32, &[])],
    ),
    gauge(
        "ogive_cache_mru_target_ratio",
        "Share of each content that is meant for MRU, under the rule ARC",
        &[
            Row::new(Arcstats, "pd", Scale::Fraction32, &[("content", "data")]),
            Row::new(Arcstats, "pm", Scale::Fraction32, &[("content", "metadata")]),
        ],
    ),
    gauge(
        "ogive_cache_rule",
        "The rule the cache goes by has 1, the others 0",
        &[
            Row::new(
                Ogivestats,
                "rule_data",
                Scale::Is(0),
                &[("content", "data"), ("rule", "lirs")],
            ),
            Row::new(
                Ogivestats,
                "rule_data",
                Scale::Is(1),
                &[("content", "data"), ("rule", "lru")],
            ),
            Row::new(Ogivestats, "rule_data", Scale::Is(2), &[("content", "data"), ("rule", "2q")]),
            Row::new(
                Ogivestats,
                "rule_data",
                Scale::Is(3),
                &[("content", "data"), ("rule", "arc")],
            ),
            Row::new(
                Ogivestats,
                "rule_metadata",
                Scale::Is(0),
                &[("content", "metadata"), ("rule", "lirs")],
            ),
            Row::new(
                Ogivestats,
                "rule_metadata",
                Scale::Is(1),
                &[("content", "metadata"), ("rule", "lru")],
            ),
            Row::new(
                Ogivestats,
                "rule_metadata",
                Scale::Is(2),
                &[("content", "metadata"), ("rule", "2q")],
            ),
            Row::new(
                Ogivestats,
                "rule_metadata",
                Scale::Is(3),
                &[("content", "metadata"), ("rule", "arc")],
            ),
        ],
    ),
    counter(
        "ogive_cache_rule_changes",
        "Changes of the rule",
        &[Row::plain(Ogivestats, "rule_changes")],
    ),
    gauge("ogive_cache_entries", "Entries with their bytes", &[Row::plain(Ogivestats, "entries")]),
    gauge(
        "ogive_cache_ghosts",
        "Keys remembered without their bytes",
        &[Row::plain(Ogivestats, "ghosts")],
    ),
    counter(
        "ogive_cache_inserted_bytes",
        "Bytes brought in",
        &[Row::plain(Ogivestats, "insert_bytes")],
    ),
    counter(
        "ogive_cache_evicted_bytes",
        "Bytes pushed out",
        &[Row::plain(Ogivestats, "evict_bytes")],
    ),
    counter(
        "ogive_cache_eviction_seconds",
        "Time in eviction",
        &[Row::new(Ogivestats, "evict_ns", Scale::Nanoseconds, &[])],
    ),
    counter(
        "ogive_cache_deleted_entries",
        "Entries that lost their bytes, for whatever reason",
        &[Row::plain(Arcstats, "deleted")],
    ),
    counter(
        "ogive_cache_lock_waits",
        "Waits for a lock of the cache",
        &[Row::plain(Ogivestats, "lock_waits")],
    ),
    counter(
        "ogive_cache_lock_wait_seconds",
        "Time in such waits",
        &[Row::new(Ogivestats, "lock_wait_ns", Scale::Nanoseconds, &[])],
    ),
    counter(
        "ogive_cache_loads",
        "Loads of records, from wherever",
        &[Row::plain(Ogivestats, "loads")],
    ),
    counter(
        "ogive_cache_load_seconds",
        "Time in loads, those side by side each by itself",
        &[Row::new(Ogivestats, "load_ns", Scale::Nanoseconds, &[])],
    ),
    counter(
        "ogive_cache_load_errors",
        "Loads that failed",
        &[Row::plain(Ogivestats, "load_errors")],
    ),
    counter(
        "ogive_reclaims",
        "Requests to give memory back",
        &[Row::plain(Ogivestats, "reclaim_calls")],
    ),
    counter(
        "ogive_reclaimed_bytes",
        "Bytes given back",
        &[Row::plain(Ogivestats, "reclaim_bytes")],
    ),
    gauge(
        "ogive_may_not_grow",
        "1 while pressure keeps the cache from growing",
        &[Row::plain(Arcstats, "arc_no_grow")],
    ),
    gauge(
        "ogive_memory_available_bytes",
        "Memory the system has left for the cache to grow; negative if short",
        &[Row::plain(Arcstats, "memory_available_bytes")],
    ),
    counter(
        "ogive_prune_requests",
        "Requests to let go of pinned metadata",
        &[Row::plain(Arcstats, "arc_prune")],
    ),
    counter(
        "ogive_prune_examined_objects",
        "Objects looked at for them",
        &[Row::plain(Ogivestats, "prune_examined")],
    ),
    counter(
        "ogive_prune_freed_objects",
        "Objects let go of",
        &[Row::plain(Ogivestats, "prune_freed_objects")],
    ),
    counter(
        "ogive_prune_freed_bytes",
        "Bytes let go of",
        &[Row::plain(Ogivestats, "prune_freed_bytes")],
    ),
    counter(
        "ogive_prune_held_objects",
        "Objects that could not be let go of, being in use",
        &[Row::plain(Ogivestats, "prune_held")],
    ),
    counter(
        "ogive_read_requests",
        "Reads of programs that reached the process",
        &[Row::plain(Ogivestats, "read_requests")],
    ),
    counter(
        "ogive_read_bytes",
        "Bytes they were answered with",
        &[Row::plain(Ogivestats, "read_bytes")],
    ),
    counter(
        "ogive_write_requests",
        "Writes of programs",
        &[Row::plain(Ogivestats, "write_requests")],
    ),
    counter(
        "ogive_written_bytes",
        "Bytes written through",
        &[Row::plain(Ogivestats, "written_bytes")],
    ),
    counter(
        "ogive_origin_read_bytes",
        "Bytes read from the source",
        &[Row::plain(Ogivestats, "origin_bytes")],
    ),
    gauge(
        "ogive_source_gone",
        "1 while the source is not there",
        &[Row::plain(Ogivestats, "source_gone")],
    ),
    counter(
        "ogive_source_losses",
        "Times the source went",
        &[Row::plain(Ogivestats, "source_losses")],
    ),
    gauge("ogive_inodes", "Inodes that are known", &[Row::plain(Ogivestats, "inodes")]),
    gauge(
        "ogive_inodes_limit",
        "Inodes above which some are let go of",
        &[Row::plain(Ogivestats, "inode_limit")],
    ),
    gauge(
        "ogive_worker_threads",
        "Threads that wait for the source",
        &[Row::plain(Ogivestats, "worker_threads")],
    ),
    counter(
        "ogive_worker_wakeups",
        "Times one of them was woken",
        &[Row::plain(Ogivestats, "worker_wakeups")],
    ),
    counter(
        "ogive_panics",
        "Requests and jobs that ended in a panic, which is a bug of ogive's",
        &[Row::plain(Ogivestats, "panics")],
    ),
    counter(
        "ogive_stream_reads",
        "Reads that went on with a stream, and that did not",
        &[
            Row::new(Zfetchstats, "hits", Scale::One, &[("result", "hit")]),
            Row::new(Zfetchstats, "misses", Scale::One, &[("result", "miss")]),
        ],
    ),
    counter("ogive_prefetches", "Prefetches of records", &[Row::plain(Zfetchstats, "io_issued")]),
    gauge(
        "ogive_prefetches_under_way",
        "Prefetches under way",
        &[Row::plain(Zfetchstats, "io_active")],
    ),
    counter(
        "ogive_prefetches_dropped",
        "Prefetches given up since there were too many",
        &[Row::plain(Ogivestats, "prefetch_dropped")],
    ),
    counter(
        "ogive_l2_lookups",
        "Misses that asked the second level",
        &[
            Row::new(Arcstats, "l2_hits", Scale::One, &[("result", "hit")]),
            Row::new(Arcstats, "l2_misses", Scale::One, &[("result", "miss")]),
        ],
    ),
    gauge("ogive_l2_devices", "Devices of the second level", &[Row::plain(Arcstats, "l2_ndev")]),
    gauge(
        "ogive_l2_bypassed_devices",
        "Devices that are not asked, being too slow or failing",
        &[Row::plain(Ogivestats, "l2_bypassed")],
    ),
    gauge("ogive_l2_size_bytes", "Bytes of the records it has", &[Row::plain(Arcstats, "l2_size")]),
    gauge(
        "ogive_l2_stored_bytes",
        "What they take on the devices",
        &[Row::plain(Arcstats, "l2_asize")],
    ),
    gauge("ogive_l2_index_bytes", "Memory for its index", &[Row::plain(Arcstats, "l2_hdr_size")]),
    counter(
        "ogive_l2_read_bytes",
        "Bytes read from its devices",
        &[Row::plain(Arcstats, "l2_read_bytes")],
    ),
    counter(
        "ogive_l2_written_bytes",
        "Bytes written to its devices",
        &[Row::plain(Arcstats, "l2_write_bytes")],
    ),
    counter(
        "ogive_l2_errors",
        "Reads of the second level that failed; each became a miss",
        &[
            Row::new(Arcstats, "l2_cksum_bad", Scale::One, &[("error", "checksum")]),
            Row::new(Arcstats, "l2_io_error", Scale::One, &[("error", "device")]),
        ],
    ),
    counter(
        "ogive_l2_cpu_seconds",
        "CPU time of the second level by stage",
        &[
            Row::new(Ogivestats, "l2_read_cpu_ns", Scale::Nanoseconds, &[("stage", "read")]),
            Row::new(Ogivestats, "l2_unseal_cpu_ns", Scale::Nanoseconds, &[("stage", "unseal")]),
            Row::new(
                Ogivestats,
                "l2_decompress_cpu_ns",
                Scale::Nanoseconds,
                &[("stage", "decompress")],
            ),
            Row::new(Ogivestats, "l2_copy_cpu_ns", Scale::Nanoseconds, &[("stage", "copy")]),
            Row::new(
                Ogivestats,
                "l2_compress_cpu_ns",
                Scale::Nanoseconds,
                &[("stage", "compress")],
            ),
            Row::new(Ogivestats, "l2_seal_cpu_ns", Scale::Nanoseconds, &[("stage", "seal")]),
            Row::new(Ogivestats, "l2_write_cpu_ns", Scale::Nanoseconds, &[("stage", "write")]),
        ],
    ),
];
