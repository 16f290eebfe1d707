//! The table: one row per statistic.
//!
//! A row has a kind, an owner, a name and a meaning. It may also have a family and a series:
//!
//! - `in "FAMILY" {label "value"}` names the Prometheus family and the labels of its sample.
//! - `chart "SERIES"` names the series of the live view. A counter is charted as a rate, a level as
//!   it is. Several counters of one series are added up.
//!
//! The owner counts the statistic. `engine`, `second_level` and `mount` make a field of each of
//! their rows. `other` is everything else, such as numbers that are computed on demand or rows of
//! OpenZFS that ogive never counts. A name that ends in `_` stands for all rows with this prefix.
//!
//! The order is that of the files. `arcstats` and `zfetchstats` are in OpenZFS's order
//! (`module/zfs/arc.c` and `dmu_zfetch.c`, release 2.4).

/// Calls a macro with the tokens in the parentheses and then the whole table.
#[doc(hidden)]
#[macro_export]
macro_rules! statistics {
    ($then:path, ($($before:tt)*)) => { $then! { $($before)*
    ARCSTATS {
    counter engine hits "Accesses that found their entry";
    counter engine iohits "Accesses that waited for a load of their entry in flight";
    counter engine misses "Accesses that found nothing, or a ghost";
    counter engine demand_data_hits "Demand hits on data"
        in "ogive_cache_accesses" {access "demand", content "data", result "hit"}
        chart "demand_data_hits";
    counter engine demand_data_iohits "Demand accesses that waited for a load of data in flight"
        in "ogive_cache_accesses" {access "demand", content "data", result "iohit"}
        chart "demand_data_hits";
    counter engine demand_data_misses
        "Demand misses of data; also misses of `get`, which does not know a kind"
        in "ogive_cache_accesses" {access "demand", content "data", result "miss"}
        chart "demand_data_misses";
    counter engine demand_metadata_hits "Demand hits on metadata"
        in "ogive_cache_accesses" {access "demand", content "metadata", result "hit"}
        chart "demand_metadata_hits";
    counter engine demand_metadata_iohits
        "Demand accesses that waited for a load of metadata in flight"
        in "ogive_cache_accesses" {access "demand", content "metadata", result "iohit"}
        chart "demand_metadata_hits";
    counter engine demand_metadata_misses "Demand misses of metadata"
        in "ogive_cache_accesses" {access "demand", content "metadata", result "miss"}
        chart "demand_metadata_misses";
    counter engine prefetch_data_hits "Prefetches of data that was in the cache"
        in "ogive_cache_accesses" {access "prefetch", content "data", result "hit"}
        chart "prefetch_hits";
    counter engine prefetch_data_iohits "Prefetches of data that waited for a load in flight"
        in "ogive_cache_accesses" {access "prefetch", content "data", result "iohit"}
        chart "prefetch_hits";
    counter engine prefetch_data_misses "Prefetches of data that had to be loaded"
        in "ogive_cache_accesses" {access "prefetch", content "data", result "miss"}
        chart "prefetch_misses";
    counter engine prefetch_metadata_hits "Prefetches of metadata that was in the cache"
        in "ogive_cache_accesses" {access "prefetch", content "metadata", result "hit"}
        chart "prefetch_hits";
    counter engine prefetch_metadata_iohits
        "Prefetches of metadata that waited for a load in flight"
        in "ogive_cache_accesses" {access "prefetch", content "metadata", result "iohit"}
        chart "prefetch_hits";
    counter engine prefetch_metadata_misses "Prefetches of metadata that had to be loaded"
        in "ogive_cache_accesses" {access "prefetch", content "metadata", result "miss"}
        chart "prefetch_misses";
    counter engine mru_hits "Hits on MRU entries" in "ogive_cache_list_hits" {list "mru"}
        chart "mru_hits";
    counter engine mru_ghost_hits "Misses that found the ghost of an MRU entry"
        in "ogive_cache_list_hits" {list "mru_ghost"} chart "mru_ghost_hits";
    counter engine mfu_hits "Hits on MFU entries" in "ogive_cache_list_hits" {list "mfu"}
        chart "mfu_hits";
    counter engine mfu_ghost_hits "Misses that found the ghost of an MFU entry"
        in "ogive_cache_list_hits" {list "mfu_ghost"} chart "mfu_ghost_hits";
    counter other uncached_hits "Hits on entries that are dropped after use";
    counter engine deleted "Entries that lost their bytes: evicted, demoted, removed or replaced"
        in "ogive_cache_deleted_entries" chart "deleted";
    counter engine mutex_miss "Evictions that had to wait for the lock of their sublist"
        chart "mutex_misses";
    counter other access_skip "Accesses that found the entry already freed";
    counter engine evict_skip "Evictions that found their sublist already empty"
        chart "evict_skips";
    counter engine evict_not_enough
        "Entries inserted above the target, because all others were held";
    byte_counter second_level evict_l2_cached
        "Bytes evicted from the first level that a device held";
    byte_counter second_level evict_l2_eligible "Bytes evicted that a device could take";
    byte_counter second_level evict_l2_eligible_mfu "Of those, from the MFU list";
    byte_counter second_level evict_l2_eligible_mru "Of those, from the MRU list";
    byte_counter second_level evict_l2_ineligible "Bytes evicted that no device may hold";
    counter other evict_l2_skip "Evictions put off because L2 was writing the entry";
    level engine hash_elements "Keys in the index: entries, ghosts and loads in flight";
    level engine hash_elements_max
        "Largest number of keys in the index: the sum of the sublists' maxima";
    counter other hash_collisions "Inserts into a bucket that was not empty";
    level other hash_chains "Buckets that hold more than one header";
    level other hash_chain_max "Longest chain in one bucket";
    fraction engine meta "Metadata's share of the target, times 2^32"
        in "ogive_cache_metadata_target_ratio";
    fraction engine pd "MRU's share of data's capacity (ARC's `p`), times 2^32"
        in "ogive_cache_mru_target_ratio" {content "data"};
    fraction engine pm "MRU's share of metadata's capacity (ARC's `p`), times 2^32"
        in "ogive_cache_mru_target_ratio" {content "metadata"};
    bytes engine c "The target" in "ogive_cache_target_bytes" chart "target";
    bytes engine c_min "Smallest target" in "ogive_cache_target_min_bytes"
        chart "target_min";
    bytes engine c_max "Largest target" in "ogive_cache_target_max_bytes"
        chart "target_max";
    bytes engine size "Weight of all entries plus `hdr_size`" in "ogive_cache_size_bytes"
        chart "size";
    bytes other compressed_size "Size of entries in memory, compressed or not";
    bytes other uncompressed_size "The same entries at their logical size; may exceed memory";
    bytes other overhead_size "Additional copies that consumers hold";
    bytes engine hdr_size "Real bytes of the nodes of entries, ghosts and loads, and of their index"
        in "ogive_cache_headers_bytes" chart "header_bytes";
    bytes engine data_size "Weight of data entries, including those in flight and removed";
    bytes engine metadata_size "Weight of metadata entries, including those in flight and removed";
    bytes other dbuf_size "ZFS's dbuf structures";
    bytes other dnode_size "ZFS's dnodes; here the inode table" in "ogive_cache_inodes_bytes";
    bytes other bonus_size "ZFS's bonus buffers";
    bytes engine anon_size "Weight of entries in flight, or removed and still held"
        chart "anon_bytes";
    bytes engine anon_data "The data part of `anon_size`";
    bytes engine anon_metadata "The metadata part of `anon_size`";
    bytes other anon_evictable_data "Of anon_data, evictable; always 0";
    bytes other anon_evictable_metadata "Of anon_metadata, evictable; always 0";
    bytes engine mru_size "Weight of MRU entries" chart "mru_bytes";
    bytes engine mru_data "The data part of `mru_size`"
        in "ogive_cache_list_bytes" {content "data", list "mru"};
    bytes engine mru_metadata "The metadata part of `mru_size`"
        in "ogive_cache_list_bytes" {content "metadata", list "mru"};
    bytes engine mru_evictable_data "MRU data that is not held";
    bytes engine mru_evictable_metadata "MRU metadata that is not held";
    bytes engine mru_ghost_size "Weight that MRU ghosts had" chart "mru_ghost_bytes";
    bytes engine mru_ghost_data "The data part of `mru_ghost_size`"
        in "ogive_cache_ghost_bytes" {content "data", list "mru"};
    bytes engine mru_ghost_metadata "The metadata part of `mru_ghost_size`"
        in "ogive_cache_ghost_bytes" {content "metadata", list "mru"};
    bytes engine mru_ghost_evictable_data "The same as `mru_ghost_data`; a ghost is never held";
    bytes engine mru_ghost_evictable_metadata
        "The same as `mru_ghost_metadata`; a ghost is never held";
    bytes engine mfu_size "Weight of MFU entries" chart "mfu_bytes";
    bytes engine mfu_data "The data part of `mfu_size`"
        in "ogive_cache_list_bytes" {content "data", list "mfu"};
    bytes engine mfu_metadata "The metadata part of `mfu_size`"
        in "ogive_cache_list_bytes" {content "metadata", list "mfu"};
    bytes engine mfu_evictable_data "MFU data that is not held";
    bytes engine mfu_evictable_metadata "MFU metadata that is not held";
    bytes engine mfu_ghost_size "Weight that MFU ghosts had" chart "mfu_ghost_bytes";
    bytes engine mfu_ghost_data "The data part of `mfu_ghost_size`"
        in "ogive_cache_ghost_bytes" {content "data", list "mfu"};
    bytes engine mfu_ghost_metadata "The metadata part of `mfu_ghost_size`"
        in "ogive_cache_ghost_bytes" {content "metadata", list "mfu"};
    bytes engine mfu_ghost_evictable_data "The same as `mfu_ghost_data`; a ghost is never held";
    bytes engine mfu_ghost_evictable_metadata
        "The same as `mfu_ghost_metadata`; a ghost is never held";
    bytes other uncached_size "Entries to be dropped after their last hold"
        chart "uncached_bytes";
    bytes other uncached_data "Of uncached_size, data";
    bytes other uncached_metadata "Of uncached_size, metadata";
    bytes other uncached_evictable_data "Of uncached_data, not held";
    bytes other uncached_evictable_metadata "Of uncached_metadata, not held";
    level other l2_ndev "L2 devices" in "ogive_l2_devices";
    counter second_level l2_hits "Misses of the first level that a device served"
        in "ogive_l2_lookups" {result "hit"} chart "l2_hits";
    counter second_level l2_misses "Misses of the first level that no device had"
        in "ogive_l2_lookups" {result "miss"} chart "l2_misses";
    bytes other l2_prefetch_asize "L2 space of entries that were prefetched";
    bytes other l2_mru_asize "L2 space of entries that came from the MRU list";
    bytes other l2_mfu_asize "L2 space of entries that came from the MFU list";
    bytes other l2_bufc_data_asize "L2 space of data";
    bytes other l2_bufc_metadata_asize "L2 space of metadata";
    counter second_level l2_feeds "Segments begun: what OpenZFS calls a pass of the feed thread";
    counter second_level l2_rw_clash
        "Reads of a record that was just being written, answered from memory";
    byte_counter second_level l2_read_bytes
        "Bytes read from devices for hits and for misses that looked like hits"
        in "ogive_l2_read_bytes" chart "l2_read_bytes";
    byte_counter second_level l2_write_bytes
        "Bytes written to devices, including headers, summaries and padding"
        in "ogive_l2_written_bytes" chart "l2_write_bytes";
    counter second_level l2_writes_sent "Writes begun";
    counter second_level l2_writes_done "Writes ended, with success or not";
    counter second_level l2_writes_error "Writes that failed" chart "l2_errors";
    counter other l2_writes_lock_retry "L2 write completions that waited for a lock";
    counter other l2_evict_lock_retry "L2 evictions that waited for a lock";
    counter other l2_evict_reading "L2 evictions of an entry being read";
    counter other l2_evict_l1cached "L2 evictions of an entry that is in memory too";
    counter other l2_free_on_write "Entries freed while L2 was writing them";
    counter other l2_abort_lowmem "Feed passes given up for lack of memory";
    counter second_level l2_cksum_bad "Records whose seal or checksum was wrong"
        in "ogive_l2_errors" {error "checksum"} chart "l2_errors";
    counter second_level l2_io_error "Reads that failed with a system error"
        in "ogive_l2_errors" {error "device"} chart "l2_errors";
    bytes other l2_size "Logical size of what L2 holds" in "ogive_l2_size_bytes"
        chart "l2_uncompressed_bytes";
    bytes other l2_asize "Space it takes on the L2 device" in "ogive_l2_stored_bytes"
        chart "l2_bytes";
    bytes other l2_hdr_size "Memory for headers of entries that only L2 holds"
        in "ogive_l2_index_bytes";
    counter second_level l2_log_blk_writes "Summaries written: what OpenZFS calls log blocks";
    bytes other l2_log_blk_avg_asize "Moving average of the size of a log block";
    bytes other l2_log_blk_asize "L2 space of log blocks";
    level other l2_log_blk_count "Log blocks on L2";
    level other l2_data_to_meta_ratio "Moving average of L2 data bytes over log bytes";
    counter second_level l2_rebuild_success "Devices whose index was rebuilt";
    counter other l2_rebuild_unsupported "Rebuilds refused: unknown format";
    counter second_level l2_rebuild_io_errors "Rebuilds with a segment that could not be read";
    counter other l2_rebuild_dh_errors "Rebuilds stopped: bad device header";
    counter second_level l2_rebuild_cksum_lb_errors "Summaries with a wrong seal, met in rebuilds";
    counter other l2_rebuild_lowmem "Rebuilds stopped: memory short";
    byte_counter second_level l2_rebuild_size "Records rebuilt, in bytes before compression";
    byte_counter second_level l2_rebuild_asize "Records rebuilt, in bytes on the device";
    counter second_level l2_rebuild_bufs "Records rebuilt";
    counter other l2_rebuild_bufs_precached "Entries in a rebuild that were already in memory";
    counter second_level l2_rebuild_log_blks "Summaries read in rebuilds";
    counter other memory_throttle_count "Writes delayed because memory was short";
    counter other memory_direct_count "Reclaims asked by an allocating thread";
    counter other memory_indirect_count "Reclaims asked by the system in the background";
    bytes other memory_all_bytes "Memory of the machine";
    bytes other memory_free_bytes "Free memory as the cache sees it";
    signed_bytes other memory_available_bytes "Free memory less the reserve; negative if short"
        in "ogive_memory_available_bytes";
    flag engine arc_no_grow "1 while the target may not grow" in "ogive_may_not_grow";
    bytes other arc_tempreserve "Memory promised to writes in preparation";
    bytes other arc_loaned_bytes "Memory lent for filling by others";
    counter engine arc_prune "Requests to prune that were passed to an owner"
        in "ogive_prune_requests" chart "prunes";
    bytes engine arc_meta_used "Weight of metadata entries plus `hdr_size`" chart "metadata_bytes";
    bytes other arc_dnode_limit "Dnode memory above which prunes are asked for";
    counter other async_upgrade_sync "Asynchronous reads that a synchronous one had to wait for";
    counter engine predictive_prefetch "Loads started by prefetch";
    counter engine demand_hit_predictive_prefetch
        "First demand hits on entries that a prefetch had brought";
    counter engine demand_iohit_predictive_prefetch
        "Demands that found the load of a prefetch in flight";
    counter other prescient_prefetch "Reads begun on the caller's advice";
    counter other demand_hit_prescient_prefetch "Demand hits on entries prefetched on request";
    counter other demand_iohit_prescient_prefetch "Demand I/O hits on a prefetch on request";
    bytes engine arc_need_free "Memory that reclaim could not free at its last try";
    bytes other arc_sys_free "Free memory the cache leaves to the system";
    bytes other arc_raw_size "Entries kept encrypted";
    counter engine cached_only_in_progress
        "Accesses for cached entries only that found a load in flight";
    bytes other abd_chunk_waste_size "Memory lost to rounding up to pages";
    }
    ZFETCHSTATS {
    counter other hits "Accesses that continued a stream" in "ogive_stream_reads" {result "hit"};
    counter other future "Accesses ahead of a stream, within its reach";
    counter other stride "Accesses ahead of a stream, at a stride";
    counter other past "Accesses behind a stream";
    counter other misses "Accesses that belonged to no stream"
        in "ogive_stream_reads" {result "miss"};
    counter other max_streams "Streams not begun because the object had too many";
    counter other io_issued "Prefetch reads begun" in "ogive_prefetches";
    level other io_active "Prefetch reads under way" in "ogive_prefetches_under_way";
    }
    OGIVESTATS {
    level engine sublists "Sublists";
    level engine entries "Entries, without ghosts and loads in flight" in "ogive_cache_entries";
    level engine ghosts "Ghosts" in "ogive_cache_ghosts";
    counter engine inserts "Entries inserted";
    byte_counter engine insert_bytes "Their weight" in "ogive_cache_inserted_bytes";
    counter engine evict_parked
        "Held entries that an eviction took off their list until their release";
    counter engine notes_lost
        "Hits whose move was left to eviction, because their ring was full and the lock taken";
    counter engine locks "Locks taken, of sublists and of the balance";
    counter engine lock_waits "Locks that a thread had to wait for" in "ogive_cache_lock_waits";
    ns_counter engine lock_wait_ns "Time waited for locks" in "ogive_cache_lock_wait_seconds";
    counter engine evict_calls "Times room had to be made";
    ns_counter engine evict_ns "Time of evictions, including hooks and drops of values"
        in "ogive_cache_eviction_seconds";
    byte_counter engine evict_bytes "Weight of entries evicted or demoted"
        in "ogive_cache_evicted_bytes" chart "evict_bytes";
    counter engine ghosts_forgotten "Ghosts dropped to stay within bounds";
    counter engine loads "Loads that ended with a value" in "ogive_cache_loads";
    ns_counter engine load_ns "Time from claim to value, over all loads"
        in "ogive_cache_load_seconds";
    counter engine load_errors "Loads that ended with an error" in "ogive_cache_load_errors"
        chart "load_errors";
    counter engine load_panics "Loads that ended with a panic";
    counter engine loads_abandoned "Loads that were given up without a result";
    counter engine loads_doomed
        "Loads whose key was invalidated in the meantime, so the value was dropped";
    counter engine joined_waits "Waits for another caller's load" chart "joined_waits";
    ns_counter engine joined_wait_ns "Time waited for another caller's load";
    counter engine invalidations "Keys invalidated or removed that were in the cache";
    counter engine demotions
        "Entries demoted to ghosts by their owner, or because they were handed over";
    bytes engine handed_size
        "Weight of entries handed over to a cache above, which are evicted first";
    counter engine oversize "Entries heavier than the target, handed out but not kept";
    bytes engine oversize_size
        "Weight of such entries still held; in `anon_size`, but not counted against `c`";
    counter engine reclaim_calls "Calls of reclaim" in "ogive_reclaims" chart "reclaim_calls";
    byte_counter engine reclaim_bytes "Bytes by which reclaim has made the cache smaller"
        in "ogive_reclaimed_bytes" chart "reclaim_bytes";
    counter engine prune_examined "Objects that owners examined to prune"
        in "ogive_prune_examined_objects" chart "prune_examined";
    byte_counter engine prune_freed_bytes "Bytes that owners freed" in "ogive_prune_freed_bytes";
    counter engine prune_freed_objects "Objects that owners freed" in "ogive_prune_freed_objects"
        chart "prune_freed";
    counter engine prune_held "Objects that owners examined and could not free"
        in "ogive_prune_held_objects";
    counter engine prune_backed_off
        "Requests not passed on because the owner had freed little lately";
    counter engine prune_busy "Requests not passed on because the owner was busy with one";
    rule engine rule_data
        "The rule for data: 0 LIRS, 1 LRU, 2 2Q, 3 ARC (always, if the policy is ARC)"
        in "ogive_cache_rule" {content "data"} chart "rule_data";
    rule engine rule_metadata "The rule for metadata" in "ogive_cache_rule" {content "metadata"}
        chart "rule_metadata";
    counter engine rule_changes "How often the duel has changed a rule"
        in "ogive_cache_rule_changes" chart "rule_changes";
    counter engine referee_requests "Requests shown to the referees of the duel";
    counter engine referee_busy "Requests not shown to them because they were busy";
    counter engine referee_spared
        "Requests not shown to them because of too many hits since the last miss";
    level engine referee_one_in_data
        "One key in this many is sampled by the referee of data; 0 if the policy is ARC";
    level engine referee_one_in_metadata
        "One key in this many is sampled by the referee of metadata; 0 if the policy is ARC";
    bytes engine referee_bytes "Real bytes of the referees' shadows";
    bytes engine window_size "Weight of entries in the windows; they are in `mru_size`, too"
        chart "window_bytes";
    counter engine window_admitted "Entries that went from a window to MFU";
    counter engine window_demoted "Entries that went from MRU or MFU back to a window";
    counter engine second_chances "MFU entries that 2Q gave another round" chart "second_chances";
    counter engine ghosts_too_late "Ghosts that were requested too late for their rule";
    counter mount read_requests "Reads of programs that reached the daemon"
        in "ogive_read_requests" chart "read_requests";
    byte_counter mount read_bytes "Bytes that programs read" in "ogive_read_bytes"
        chart "read_bytes";
    counter mount origin_reads "Reads of the source" chart "origin_reads";
    byte_counter mount origin_bytes "Bytes read from the source" in "ogive_origin_read_bytes"
        chart "origin_bytes";
    ns_counter other origin_read_ns
        "Time of reads of the source; parallel reads count separately";
    counter other origin_reads_within_us_
        "Reads of the source within this many microseconds";
    counter mount write_requests "Writes of programs, or of the kernel for them"
        in "ogive_write_requests";
    byte_counter mount written_bytes "Bytes written through" in "ogive_written_bytes"
        chart "written_bytes";
    counter mount handed_over "Records handed over to the kernel's page cache";
    counter mount ring_answered "Requests through rings answered by the receiving thread";
    counter mount ring_waited "Requests through rings whose receiving thread called the source";
    counter mount ring_queued
        "Requests through rings that were queued for threads which wait for the source";
    counter mount ring_nudged
        "Requests that ogive made so that the kernel checks its queue again";
    counter mount passthrough_opens "Opens of files that the kernel then read and wrote itself";
    counter mount passthrough_refused "Opens of files for which the kernel refused this";
    flag other source_gone "1 while the source is unavailable" in "ogive_source_gone"
        chart "source_gone";
    counter other source_losses "Times the source became unavailable" in "ogive_source_losses";
    level other descriptors_kept "Descriptors that are kept open for known files";
    level other descriptors_recent "Descriptors of recent lookups that are still open";
    level other descriptors_removed "Descriptors of files that have lost their last name";
    counter other keys_hidden
        "Keys that cannot be file names, for each listing that contained one";
    counter other origin_get "GET requests sent to the store";
    counter other origin_head "HEAD requests sent to the store";
    counter other origin_list "Requests for listings sent to the store";
    counter other origin_put "Requests that write objects or parts";
    counter other origin_delete "Requests that delete objects";
    counter other origin_failed "Requests that failed";
    byte_counter other origin_received_bytes "Bytes of bodies that the store sent";
    byte_counter other origin_sent_bytes "Bytes of bodies that were sent to the store";
    counter other origin_microdollars "Price of all requests, in millionths of a dollar";
    level other origin_names_held "Names that kept listings hold";
    level other origin_objects_known "Objects in the object cache";
    bytes other origin_waiting_bytes "Bytes that came with an open and were not read yet";
    counter other origin_opened_with_bytes "Opens whose answer brought the bytes of the object";
    counter other origin_held_back_by_requests "Prefetches that the limit of requests held back";
    counter other origin_held_back_by_budget "Prefetches that the budget held back";
    counter other origin_checksums_matched "Objects whose bytes matched their checksum";
    counter other origin_checksum_mismatches "Objects whose bytes did not match their checksum";
    counter other origin_throttled "Answers by which the store throttled requests";
    counter other origin_denied "Answers by which the store denied a request";
    counter other origin_retried "Reads that were sent again";
    level other origin_reads_at_once "Limit of reads in flight";
    counter other origin_slow_downs "Times that this limit was lowered";
    bytes other origin_window_bytes "Bytes that a stream is read ahead";
    level other origin_bytes_per_second "Bytes a second that the store delivers, as measured";
    counter other origin_hedged "Reads that were hedged with a second request";
    counter other origin_hedges_won "Hedges that answered first";
    counter other origin_first_bytes "Reads whose first byte was timed";
    counter other origin_first_byte_us "Time to the first byte over all of them, in microseconds";
    level other origin_first_byte_median_us "Median time to the first byte, in microseconds";
    level other origin_first_byte_p95_us
        "95th percentile of the time to the first byte, in microseconds";
    level other staged_files "Files that are staged and not uploaded";
    bytes other staged_bytes "Bytes that are staged and not uploaded";
    level other staged_pieces "Pieces of staged files that are held in memory";
    counter other upload_panics "Uploads that ended in a panic";
    bytes other uploads_held_bytes "Memory of uploads that are under way";
    bytes other names_held_bytes "Memory of the names that open directories hold";
    bytes other control_held_bytes "Memory of open control files";
    level other inodes "Known inodes" in "ogive_inodes" chart "inodes";
    counter other inodes_forgotten "Inodes that the kernel forgot";
    level other inode_limit "Inodes above which some are pruned" in "ogive_inodes_limit";
    counter mount panics "Panics of the threads that answer requests, and of their jobs"
        in "ogive_panics";
    level other worker_threads "Threads that wait for the source" in "ogive_worker_threads";
    counter other worker_requests "Requests that were queued for them";
    counter other worker_wakeups "Times that one of them was woken" in "ogive_worker_wakeups";
    counter other prefetch_dropped "Prefetches given up because there were too many"
        in "ogive_prefetches_dropped";
    byte_counter other l2_bytes "Bytes that the second level brought";
    counter second_level l2_rebuild_unseals
        "Seals of records that were tried in segments without a summary";
    counter second_level l2_offers "Records that were offered";
    counter second_level l2_records_written "Records that were written";
    counter second_level l2_plain_bytes_written "Bytes of them before compression";
    counter second_level l2_stored_bytes_written "Bytes of them as stored";
    byte_counter second_level l2_padding_bytes
        "Of those, bytes that were added so that lengths tell less";
    counter second_level l2_reinserted
        "Records that were carried over before their segment was overwritten";
    byte_counter second_level l2_reinserted_bytes "Bytes of them as stored";
    counter second_level l2_refused_prefetch "Offers refused: prefetched and never used";
    counter second_level l2_refused_sequential "Offers refused: part of a long sequential run";
    counter second_level l2_refused_chance
        "Offers refused: lost the draw that keeps writes within their budget";
    counter second_level l2_refused_budget "Offers refused: no bytes left in the budget of writes";
    counter second_level l2_refused_size "Offers refused: too large for a segment, or empty";
    counter second_level l2_refused_path
        "Records loaded that may not be kept because of the path of their file";
    counter second_level l2_dropped_queue "Offers dropped: the queue was full";
    counter second_level l2_dropped_device
        "Offers dropped: the device was bypassed or its write failed";
    counter second_level l2_timeouts "Reads given up: the device took too long";
    counter second_level l2_busy "Reads not begun: too many were waiting";
    counter second_level l2_stale "Reads that found another record";
    counter second_level l2_index_lost "Records that did not fit into the index";
    byte_counter second_level l2_index_reclaimed_bytes
        "Memory that the index released on request, in bytes";
    counter second_level l2_index_reclaimed "Records dropped from the index for it";
    counter second_level l2_slow
        "Reads and writes that ended well but took so long that they count as failures";
    counter second_level l2_bypasses "Times a device was bypassed";
    counter second_level l2_reads "Reads answered in time";
    ns_counter second_level l2_read_wait_ns "Time from request to answer, over all of them";
    ns_counter second_level l2_read_cpu_ns "CPU time of reading from devices"
        in "ogive_l2_cpu_seconds" {stage "read"};
    ns_counter second_level l2_unseal_cpu_ns "CPU time of unsealing"
        in "ogive_l2_cpu_seconds" {stage "unseal"};
    ns_counter second_level l2_decompress_cpu_ns "CPU time of decompressing"
        in "ogive_l2_cpu_seconds" {stage "decompress"};
    ns_counter second_level l2_copy_cpu_ns
        "CPU time of copying bytes that are neither sealed nor compressed, or still in memory"
        in "ogive_l2_cpu_seconds" {stage "copy"};
    ns_counter second_level l2_compress_cpu_ns "CPU time of compressing"
        in "ogive_l2_cpu_seconds" {stage "compress"};
    ns_counter second_level l2_seal_cpu_ns "CPU time of sealing"
        in "ogive_l2_cpu_seconds" {stage "seal"};
    ns_counter second_level l2_write_cpu_ns "CPU time of writing to devices"
        in "ogive_l2_cpu_seconds" {stage "write"};
    byte_counter second_level l2_unsealed_bytes "Bytes unsealed";
    level other l2_records "Records that the second level holds";
    level other l2_segments "Segments of its devices";
    level other l2_segments_used "Of those, segments that hold records";
    bytes other l2_queue_bytes "Bytes that wait to be written";
    level other l2_recovering "Devices whose index is being rebuilt";
    ns other l2_recovery_ns "Time that the longest rebuild took";
    level other l2_bypassed "Devices bypassed because they are slow or fail"
        in "ogive_l2_bypassed_devices";
    }
    } };
}
