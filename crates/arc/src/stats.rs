//! All statistics in one table: name, type, meaning. The struct, its documentation and the
//! list of fields come from it, so a new counter is one row here and one in the snapshot.
//!
//! Names before the line are those of OpenZFS's `arcstats` with their meaning there, as far
//! as this engine has it; what belongs to a second level, to compression or to the system's
//! memory is for the crates that have them. Names after the line are ogive's own.

macro_rules! stats {
    ($($(#[doc = $doc:literal])+ $name:ident)+) => {
        /// Statistics of a cache at one moment. Counts since the cache was made; sizes in
        /// bytes, weights unless said otherwise; times in nanoseconds.
        ///
        /// Counters are read one after the other while others count, so sums may differ by
        /// what happened meanwhile.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Stats {
            $($(#[doc = $doc])+ pub $name: u64,)+
        }

        impl Stats {
            /// Name and value of every statistic, in the order of the table.
            pub fn fields(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                [$((stringify!($name), self.$name),)+].into_iter()
            }

            /// Name and meaning of every statistic, in the order of the table.
            pub fn documentation() -> impl Iterator<Item = (&'static str, &'static str)> {
                [$((stringify!($name), concat!($($doc),+).trim_ascii_start()),)+].into_iter()
            }
        }
    };
}

stats! {
    /// Accesses that found their entry.
    hits
    /// Accesses that found their entry being loaded and waited for it.
    iohits
    /// Accesses that found nothing, or a ghost.
    misses
    /// Demand hits on data.
    demand_data_hits
    /// Demand accesses that waited for a load of data in flight.
    demand_data_iohits
    /// Demand misses of data; also misses of `get`, which does not know a kind.
    demand_data_misses
    /// Demand hits on metadata.
    demand_metadata_hits
    /// Demand accesses that waited for a load of metadata in flight.
    demand_metadata_iohits
    /// Demand misses of metadata.
    demand_metadata_misses
    /// Prefetches of data that was here.
    prefetch_data_hits
    /// Prefetches of data that waited for a load in flight.
    prefetch_data_iohits
    /// Prefetches of data that had to be loaded.
    prefetch_data_misses
    /// Prefetches of metadata that was here.
    prefetch_metadata_hits
    /// Prefetches of metadata that waited for a load in flight.
    prefetch_metadata_iohits
    /// Prefetches of metadata that had to be loaded.
    prefetch_metadata_misses
    /// Hits on MRU entries.
    mru_hits
    /// Misses that found the ghost of an MRU entry.
    mru_ghost_hits
    /// Hits on MFU entries.
    mfu_hits
    /// Misses that found the ghost of an MFU entry.
    mfu_ghost_hits
    /// Entries that lost their bytes: evicted, demoted, removed or replaced.
    deleted
    /// Evictions that had to wait for the lock of their sublist.
    mutex_miss
    /// Evictions that found their sublist empty, others having been quicker. Held entries
    /// leave their list when an eviction meets them, and are never skipped twice.
    evict_skip
    /// Entries brought in although the cache went over its target, all the rest being held.
    evict_not_enough
    /// Keys in the index: entries, ghosts and loads in flight.
    hash_elements
    /// The most keys there have been in the index; the sum over the sublists' own maxima.
    hash_elements_max
    /// Metadata's share of the target, times 2^32.
    meta
    /// MRU's share of data's capacity (ARC's `p`), times 2^32.
    pd
    /// MRU's share of metadata's capacity (ARC's `p`), times 2^32.
    pm
    /// The target.
    c
    /// The least the target can be.
    c_min
    /// The most the target can be.
    c_max
    /// Weight of all entries plus `hdr_size`.
    size
    /// Real bytes of the nodes of entries, ghosts and loads, and of their index.
    hdr_size
    /// Weight of data entries, in flight and removed ones included.
    data_size
    /// Weight of metadata entries, in flight and removed ones included.
    metadata_size
    /// Weight on its way in, or removed and still held.
    anon_size
    /// The data part of `anon_size`.
    anon_data
    /// The metadata part of `anon_size`.
    anon_metadata
    /// Weight of MRU entries.
    mru_size
    /// The data part of `mru_size`.
    mru_data
    /// The metadata part of `mru_size`.
    mru_metadata
    /// MRU data nobody holds.
    mru_evictable_data
    /// MRU metadata nobody holds.
    mru_evictable_metadata
    /// Weight that MRU ghosts had.
    mru_ghost_size
    /// The data part of `mru_ghost_size`.
    mru_ghost_data
    /// The metadata part of `mru_ghost_size`.
    mru_ghost_metadata
    /// The same as `mru_ghost_data`: nobody can hold a ghost.
    mru_ghost_evictable_data
    /// The same as `mru_ghost_metadata`: nobody can hold a ghost.
    mru_ghost_evictable_metadata
    /// Weight of MFU entries.
    mfu_size
    /// The data part of `mfu_size`.
    mfu_data
    /// The metadata part of `mfu_size`.
    mfu_metadata
    /// MFU data nobody holds.
    mfu_evictable_data
    /// MFU metadata nobody holds.
    mfu_evictable_metadata
    /// Weight that MFU ghosts had.
    mfu_ghost_size
    /// The data part of `mfu_ghost_size`.
    mfu_ghost_data
    /// The metadata part of `mfu_ghost_size`.
    mfu_ghost_metadata
    /// The same as `mfu_ghost_data`: nobody can hold a ghost.
    mfu_ghost_evictable_data
    /// The same as `mfu_ghost_metadata`: nobody can hold a ghost.
    mfu_ghost_evictable_metadata
    /// 1 while the target may not grow.
    arc_no_grow
    /// What reclaim could not free at its last try.
    arc_need_free
    /// Requests to prune that were passed to an owner.
    arc_prune
    /// Weight of metadata entries plus `hdr_size`.
    arc_meta_used
    /// Loads started by prefetch.
    predictive_prefetch
    /// First demand hits on entries that a prefetch had brought.
    demand_hit_predictive_prefetch
    /// Demands that found the load of a prefetch in flight.
    demand_iohit_predictive_prefetch
    /// Accesses for cached entries only that found a load in flight.
    cached_only_in_progress

    /// Ogive: sublists.
    sublists
    /// Ogive: entries, without ghosts and loads in flight.
    entries
    /// Ogive: ghosts.
    ghosts
    /// Ogive: entries that were brought in.
    inserts
    /// Ogive: their weight.
    insert_bytes
    /// Ogive: held entries that an eviction met and took off their list, until their release.
    evict_parked
    /// Ogive: hits whose move was left to eviction, their ring being full and the lock taken.
    notes_lost
    /// Ogive: locks taken, of sublists and of the balance.
    locks
    /// Ogive: locks somebody had to wait for.
    lock_waits
    /// Ogive: time waited for locks.
    lock_wait_ns
    /// Ogive: times room had to be made.
    evict_calls
    /// Ogive: time it took, hooks and drops of values included.
    evict_ns
    /// Ogive: weight of entries evicted or demoted.
    evict_bytes
    /// Ogive: ghosts forgotten to stay within bounds.
    ghosts_forgotten
    /// Ogive: loads that ended with a value.
    loads
    /// Ogive: time from claim to value, over all loads.
    load_ns
    /// Ogive: loads that ended with an error.
    load_errors
    /// Ogive: loads that ended with a panic.
    load_panics
    /// Ogive: loads that were given up without a result.
    loads_abandoned
    /// Ogive: loads whose key was invalidated meanwhile, so that the value was not kept.
    loads_doomed
    /// Ogive: waits for somebody else's load.
    joined_waits
    /// Ogive: time waited for somebody else's load.
    joined_wait_ns
    /// Ogive: keys invalidated or removed that were here.
    invalidations
    /// Ogive: entries demoted to ghosts at the wish of their owner, or because they were handed over.
    demotions
    /// Ogive: weight of entries that were handed over to a cache above: the first to leave.
    handed_size
    /// Ogive: entries heavier than the target, handed out but not kept.
    oversize
    /// Ogive: weight of such entries still held; in `anon_size`, but not counted against `c`.
    oversize_size
    /// Ogive: calls of reclaim.
    reclaim_calls
    /// Ogive: bytes by which reclaim has made the cache smaller.
    reclaim_bytes
    /// Ogive: objects owners looked at when asked to prune.
    prune_examined
    /// Ogive: bytes owners freed.
    prune_freed_bytes
    /// Ogive: objects owners freed.
    prune_freed_objects
    /// Ogive: objects owners looked at and could not free.
    prune_held
    /// Ogive: requests not passed on because the owner had freed little lately.
    prune_backed_off
    /// Ogive: requests not passed on because the owner was at work on one.
    prune_busy
    /// Ogive: the rule data go by: 0 LIRS, 1 LRU, 2 2Q, 3 ARC (always, if the policy is ARC).
    rule_data
    /// Ogive: the rule metadata go by.
    rule_metadata
    /// Ogive: how often the duel has changed a rule.
    rule_changes
    /// Ogive: requests the referees of the duel were shown.
    referee_requests
    /// Ogive: requests they were not shown because they were at work.
    referee_busy
    /// Ogive: requests they were not shown because too many hits had come since the last miss.
    referee_spared
    /// Ogive: one key in so many is sampled by the referee of data; 0 if the policy is ARC.
    referee_one_in_data
    /// Ogive: one key in so many is sampled by the referee of metadata; 0 if the policy is ARC.
    referee_one_in_metadata
    /// Ogive: real bytes of the referees' shadows.
    referee_bytes
    /// Ogive: weight of entries in the windows; they are in `mru_size`, too.
    window_size
    /// Ogive: entries that went from a window to MFU.
    window_admitted
    /// Ogive: entries that went from MRU or MFU back to a window.
    window_demoted
    /// Ogive: MFU entries that 2Q gave another round.
    second_chances
    /// Ogive: ghosts that were asked for too late for their rule.
    ghosts_too_late
}
