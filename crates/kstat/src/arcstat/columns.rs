//! The table of `arcstat`'s columns, in the order of `arcstat -v`.
//!
//! Source of names, widths, scales and formulas: `cmd/zarcstat.in`, OpenZFS 2.4. The last column is
//! ogive's own.

use super::column::{CACHED, Column, Formula, Quarters, Scale};

/// All columns.
pub static COLUMNS: &[Column] = TABLE;

type Names = &'static [&'static str];

const fn column(
    name: &'static str,
    width: usize,
    scale: Scale,
    formula: Formula,
    description: &'static str,
) -> Column {
    Column { name, width, scale, description, formula }
}

/// Events per second.
const fn rate(
    name: &'static str,
    width: usize,
    fields: Names,
    description: &'static str,
) -> Column {
    column(name, width, Scale::Count, Formula::Rate(fields), description)
}

/// Bytes per second.
const fn flow(
    name: &'static str,
    width: usize,
    fields: Names,
    description: &'static str,
) -> Column {
    column(name, width, Scale::Bytes, Formula::Rate(fields), description)
}

/// Events in percent of more events.
const fn share(
    name: &'static str,
    width: usize,
    part: Names,
    whole: Names,
    description: &'static str,
) -> Column {
    column(name, width, Scale::Percent, Formula::RateShare(part, whole), description)
}

/// Bytes at the time of reading.
const fn size(
    name: &'static str,
    width: usize,
    fields: Names,
    description: &'static str,
) -> Column {
    column(name, width, Scale::Bytes, Formula::Level(fields), description)
}

/// Bytes at the time of reading in percent of more bytes.
const fn part(
    name: &'static str,
    width: usize,
    part: Names,
    whole: Names,
    description: &'static str,
) -> Column {
    column(name, width, Scale::Percent, Formula::LevelShare(part, whole), description)
}

/// A column of the breakdown, which is as wide as its name.
const fn cut(name: &'static str, fields: Names, description: &'static str) -> Column {
    size(name, name.len(), fields, description)
}

const fn cut_share(
    name: &'static str,
    fields: Names,
    whole: Names,
    description: &'static str,
) -> Column {
    part(name, name.len(), fields, whole, description)
}

const fn target(name: &'static str, quarters: Quarters, description: &'static str) -> Column {
    column(name, name.len(), Scale::Bytes, Formula::Target(quarters), description)
}

const fn target_share(name: &'static str, quarters: Quarters, description: &'static str) -> Column {
    column(name, name.len(), Scale::Percent, Formula::TargetShare(quarters), description)
}

const fn quarters(
    mru_data: bool,
    mru_metadata: bool,
    mfu_data: bool,
    mfu_metadata: bool,
) -> Quarters {
    Quarters { mru_data, mru_metadata, mfu_data, mfu_metadata }
}

const DATA: Quarters = quarters(true, false, true, false);
const METADATA: Quarters = quarters(false, true, false, true);
const MRU: Quarters = quarters(true, true, false, false);
const MRU_DATA: Quarters = quarters(true, false, false, false);
const MRU_METADATA: Quarters = quarters(false, true, false, false);
const MFU: Quarters = quarters(false, false, true, true);
const MFU_DATA: Quarters = quarters(false, false, true, false);
const MFU_METADATA: Quarters = quarters(false, false, false, true);

const ALL: Names = &["hits", "iohits", "misses"];
const DEMAND: Names = &[
    "demand_data_hits",
    "demand_data_iohits",
    "demand_data_misses",
    "demand_metadata_hits",
    "demand_metadata_iohits",
    "demand_metadata_misses",
];
const DEMAND_DATA: Names = &["demand_data_hits", "demand_data_iohits", "demand_data_misses"];
const DEMAND_METADATA: Names =
    &["demand_metadata_hits", "demand_metadata_iohits", "demand_metadata_misses"];
const PREFETCH: Names = &[
    "prefetch_data_hits",
    "prefetch_data_iohits",
    "prefetch_data_misses",
    "prefetch_metadata_hits",
    "prefetch_metadata_iohits",
    "prefetch_metadata_misses",
];
const PREFETCH_DATA: Names =
    &["prefetch_data_hits", "prefetch_data_iohits", "prefetch_data_misses"];
const PREFETCH_METADATA: Names =
    &["prefetch_metadata_hits", "prefetch_metadata_iohits", "prefetch_metadata_misses"];
const ALL_METADATA: Names = &[
    "prefetch_metadata_hits",
    "prefetch_metadata_iohits",
    "prefetch_metadata_misses",
    "demand_metadata_hits",
    "demand_metadata_iohits",
    "demand_metadata_misses",
];

/// All accesses that the prefetcher classifies.
const PREFETCHER: Names =
    &["zfetch_hits", "zfetch_future", "zfetch_stride", "zfetch_past", "zfetch_misses"];
const SIZE: Names = &["size"];
const L2_ASIZE: Names = &["l2_asize"];

// One line per column; rustfmt would use seven.
#[rustfmt::skip]
const TABLE: &[Column] = &[
    column("time", 8, Scale::Text, Formula::Time, "Time of the reading"),
    rate("hits", 4, &["hits"], "Accesses that hit, per second"),
    rate("iohs", 4, &["iohits"], "Accesses that joined a read under way, per second"),
    rate("miss", 4, &["misses"], "Accesses that missed, per second"),
    rate("read", 4, ALL, "Accesses, per second"),
    share("hit%", 4, &["hits"], ALL, "Accesses that hit, percent"),
    share("ioh%", 4, &["iohits"], ALL, "Accesses that joined a read under way, percent"),
    share("miss%", 5, &["misses"], ALL, "Accesses that missed, percent"),
    rate("dhit", 4, &["demand_data_hits", "demand_metadata_hits"],
        "Demand accesses that hit, per second"),
    rate("dioh", 4, &["demand_data_iohits", "demand_metadata_iohits"],
        "Demand accesses that joined a read under way, per second"),
    rate("dmis", 4, &["demand_data_misses", "demand_metadata_misses"],
        "Demand accesses that missed, per second"),
    share("dh%", 3, &["demand_data_hits", "demand_metadata_hits"], DEMAND,
        "Demand accesses that hit, percent"),
    share("di%", 3, &["demand_data_iohits", "demand_metadata_iohits"], DEMAND,
        "Demand accesses that joined a read under way, percent"),
    share("dm%", 3, &["demand_data_misses", "demand_metadata_misses"], DEMAND,
        "Demand accesses that missed, percent"),
    rate("ddhit", 5, &["demand_data_hits"], "Demand accesses to data that hit, per second"),
    rate("ddioh", 5, &["demand_data_iohits"],
        "Demand accesses to data that joined a read under way, per second"),
    rate("ddmis", 5, &["demand_data_misses"], "Demand accesses to data that missed, per second"),
    share("ddh%", 4, &["demand_data_hits"], DEMAND_DATA,
        "Demand accesses to data that hit, percent"),
    share("ddi%", 4, &["demand_data_iohits"], DEMAND_DATA,
        "Demand accesses to data that joined a read under way, percent"),
    share("ddm%", 4, &["demand_data_misses"], DEMAND_DATA,
        "Demand accesses to data that missed, percent"),
    rate("dmhit", 5, &["demand_metadata_hits"], "Demand accesses to metadata that hit, per second"),
    rate("dmioh", 5, &["demand_metadata_iohits"],
        "Demand accesses to metadata that joined a read under way, per second"),
    rate("dmmis", 5, &["demand_metadata_misses"],
        "Demand accesses to metadata that missed, per second"),
    share("dmh%", 4, &["demand_metadata_hits"], DEMAND_METADATA,
        "Demand accesses to metadata that hit, percent"),
    share("dmi%", 4, &["demand_metadata_iohits"], DEMAND_METADATA,
        "Demand accesses to metadata that joined a read under way, percent"),
    share("dmm%", 4, &["demand_metadata_misses"], DEMAND_METADATA,
        "Demand accesses to metadata that missed, percent"),
    rate("phit", 4, &["prefetch_data_hits", "prefetch_metadata_hits"],
        "Prefetches that hit, per second"),
    rate("pioh", 4, &["prefetch_data_iohits", "prefetch_metadata_iohits"],
        "Prefetches that joined a read under way, per second"),
    rate("pmis", 4, &["prefetch_data_misses", "prefetch_metadata_misses"],
        "Prefetches that missed, per second"),
    share("ph%", 3, &["prefetch_data_hits", "prefetch_metadata_hits"], PREFETCH,
        "Prefetches that hit, percent"),
    share("pi%", 3, &["prefetch_data_iohits", "prefetch_metadata_iohits"], PREFETCH,
        "Prefetches that joined a read under way, percent"),
    share("pm%", 3, &["prefetch_data_misses", "prefetch_metadata_misses"], PREFETCH,
        "Prefetches that missed, percent"),
    rate("pdhit", 5, &["prefetch_data_hits"], "Prefetches of data that hit, per second"),
    rate("pdioh", 5, &["prefetch_data_iohits"],
        "Prefetches of data that joined a read under way, per second"),
    rate("pdmis", 5, &["prefetch_data_misses"], "Prefetches of data that missed, per second"),
    share("pdh%", 4, &["prefetch_data_hits"], PREFETCH_DATA,
        "Prefetches of data that hit, percent"),
    share("pdi%", 4, &["prefetch_data_iohits"], PREFETCH_DATA,
        "Prefetches of data that joined a read under way, percent"),
    share("pdm%", 4, &["prefetch_data_misses"], PREFETCH_DATA,
        "Prefetches of data that missed, percent"),
    rate("pmhit", 5, &["prefetch_metadata_hits"], "Prefetches of metadata that hit, per second"),
    rate("pmioh", 5, &["prefetch_metadata_iohits"],
        "Prefetches of metadata that joined a read under way, per second"),
    rate("pmmis", 5, &["prefetch_metadata_misses"],
        "Prefetches of metadata that missed, per second"),
    share("pmh%", 4, &["prefetch_metadata_hits"], PREFETCH_METADATA,
        "Prefetches of metadata that hit, percent"),
    share("pmi%", 4, &["prefetch_metadata_iohits"], PREFETCH_METADATA,
        "Prefetches of metadata that joined a read under way, percent"),
    share("pmm%", 4, &["prefetch_metadata_misses"], PREFETCH_METADATA,
        "Prefetches of metadata that missed, percent"),
    rate("mhit", 4, &["prefetch_metadata_hits", "demand_metadata_hits"],
        "Accesses to metadata that hit, per second"),
    rate("mioh", 4, &["prefetch_metadata_iohits", "demand_metadata_iohits"],
        "Accesses to metadata that joined a read under way, per second"),
    rate("mmis", 4, &["prefetch_metadata_misses", "demand_metadata_misses"],
        "Accesses to metadata that missed, per second"),
    rate("mread", 5, ALL_METADATA, "Accesses to metadata, per second"),
    share("mh%", 3, &["prefetch_metadata_hits", "demand_metadata_hits"], ALL_METADATA,
        "Accesses to metadata that hit, percent"),
    share("mi%", 3, &["prefetch_metadata_iohits", "demand_metadata_iohits"], ALL_METADATA,
        "Accesses to metadata that joined a read under way, percent"),
    share("mm%", 3, &["prefetch_metadata_misses", "demand_metadata_misses"], ALL_METADATA,
        "Accesses to metadata that missed, percent"),
    size("arcsz", 5, SIZE, "Size of the cache"),
    size("size", 5, SIZE, "Size of the cache"),
    size("c", 5, &["c"], "Target size of the cache"),
    rate("mfu", 4, &["mfu_hits"], "Hits on the MFU list, per second"),
    rate("mru", 4, &["mru_hits"], "Hits on the MRU list, per second"),
    rate("mfug", 4, &["mfu_ghost_hits"], "Hits on the MFU ghost list, per second"),
    rate("mrug", 4, &["mru_ghost_hits"], "Hits on the MRU ghost list, per second"),
    rate("unc", 4, &["uncached_hits"], "Hits on entries not to be kept, per second"),
    rate("eskip", 5, &["evict_skip"], "Entries eviction passed over, per second"),
    rate("el2skip", 7, &["evict_l2_skip"], "Evictions put off for an L2 write, per second"),
    flow("el2cach", 7, &["evict_l2_cached"], "Bytes evicted that L2 holds, per second"),
    flow("el2el", 5, &["evict_l2_eligible"], "Bytes evicted that L2 could take, per second"),
    flow("el2mfu", 6, &["evict_l2_eligible_mfu"], "Of el2el, from the MFU list"),
    flow("el2mru", 6, &["evict_l2_eligible_mru"], "Of el2el, from the MRU list"),
    flow("el2inel", 7, &["evict_l2_ineligible"], "Bytes evicted that L2 may not take, per second"),
    rate("mtxmis", 6, &["mutex_miss"], "Evictions given up at a lock, per second"),
    rate("dread", 5, DEMAND, "Demand accesses, per second"),
    rate("ddread", 6, DEMAND_DATA, "Demand accesses to data, per second"),
    rate("dmread", 6, DEMAND_METADATA, "Demand accesses to metadata, per second"),
    rate("pread", 5, PREFETCH, "Prefetches, per second"),
    rate("pdread", 6, PREFETCH_DATA, "Prefetches of data, per second"),
    rate("pmread", 6, PREFETCH_METADATA, "Prefetches of metadata, per second"),
    rate("l2hits", 6, &["l2_hits"], "Reads L2 served, per second"),
    rate("l2miss", 6, &["l2_misses"], "Reads L2 did not hold, per second"),
    rate("l2read", 6, &["l2_hits", "l2_misses"], "Reads L2 was asked for, per second"),
    share("l2hit%", 6, &["l2_hits"], &["l2_hits", "l2_misses"], "Reads L2 served, percent"),
    share("l2miss%", 7, &["l2_misses"], &["l2_hits", "l2_misses"],
        "Reads L2 did not hold, percent"),
    size("l2pref", 6, &["l2_prefetch_asize"], "L2 space of prefetched entries"),
    size("l2mfu", 5, &["l2_mfu_asize"], "L2 space of entries from the MFU list"),
    size("l2mru", 5, &["l2_mru_asize"], "L2 space of entries from the MRU list"),
    size("l2data", 6, &["l2_bufc_data_asize"], "L2 space of data"),
    size("l2meta", 6, &["l2_bufc_metadata_asize"], "L2 space of metadata"),
    part("l2pref%", 7, &["l2_prefetch_asize"], L2_ASIZE, "L2 space of prefetched entries, percent"),
    part("l2mfu%", 6, &["l2_mfu_asize"], L2_ASIZE,
        "L2 space of entries from the MFU list, percent"),
    part("l2mru%", 6, &["l2_mru_asize"], L2_ASIZE,
        "L2 space of entries from the MRU list, percent"),
    part("l2data%", 7, &["l2_bufc_data_asize"], L2_ASIZE, "L2 space of data, percent"),
    part("l2meta%", 7, &["l2_bufc_metadata_asize"], L2_ASIZE, "L2 space of metadata, percent"),
    size("l2asize", 7, L2_ASIZE, "Space taken on L2"),
    size("l2size", 6, &["l2_size"], "Logical size of what L2 holds"),
    flow("l2bytes", 7, &["l2_read_bytes"], "Bytes read from L2, per second"),
    flow("l2wbytes", 8, &["l2_write_bytes"], "Bytes written to L2, per second"),
    column("grow", 4, Scale::Count, Formula::Not("arc_no_grow"), "1 while the cache may grow"),
    size("need", 5, &["arc_need_free"], "Memory the system asked for and has not got"),
    size("free", 5, &["memory_free_bytes"], "Free memory"),
    size("avail", 5, &["memory_available_bytes"], "Free memory less the reserve"),
    size("waste", 5, &["abd_chunk_waste_size"], "Memory lost to rounding up to pages"),
    rate("ztotal", 6, PREFETCHER,
        "Accesses the prefetcher saw, per second"),
    rate("zhits", 5, &["zfetch_hits"], "Accesses that continued a stream, per second"),
    rate("zahead", 6, &["zfetch_future", "zfetch_stride"],
        "Accesses ahead of a stream, per second"),
    rate("zpast", 5, &["zfetch_past"], "Accesses behind a stream, per second"),
    rate("zmisses", 7, &["zfetch_misses"], "Accesses in no stream, per second"),
    rate("zmax", 4, &["zfetch_max_streams"], "Streams not begun for the limit, per second"),
    rate("zfuture", 7, &["zfetch_future"], "Accesses ahead within reach, per second"),
    rate("zstride", 7, &["zfetch_stride"], "Accesses ahead at a stride, per second"),
    rate("zissued", 7, &["zfetch_io_issued"], "Prefetch reads begun, per second"),
    rate("zactive", 7, &["zfetch_io_active"], "Change of prefetch reads under way, per second"),
    cut("cmpsz", &["compressed_size"], "Entries as kept"),
    cut_share("cmpsz%", &["compressed_size"], SIZE, "Entries as kept, percent of size"),
    cut("ovhsz", &["overhead_size"], "Copies held by consumers"),
    cut_share("ovhsz%", &["overhead_size"], SIZE, "Copies held by consumers, percent of size"),
    cut("bonsz", &["bonus_size"], "Bonus buffers"),
    cut_share("bonsz%", &["bonus_size"], SIZE, "Bonus buffers, percent of size"),
    cut("dnosz", &["dnode_size"], "Dnodes"),
    cut_share("dnosz%", &["dnode_size"], SIZE, "Dnodes, percent of size"),
    cut("dbusz", &["dbuf_size"], "Dbufs"),
    cut_share("dbusz%", &["dbuf_size"], SIZE, "Dbufs, percent of size"),
    cut("hdrsz", &["hdr_size"], "Headers"),
    cut_share("hdrsz%", &["hdr_size"], SIZE, "Headers, percent of size"),
    cut("l2hsz", &["l2_hdr_size"], "L2 headers"),
    cut_share("l2hsz%", &["l2_hdr_size"], SIZE, "L2 headers, percent of size"),
    cut("abdsz", &["abd_chunk_waste_size"], "Waste of rounding to pages"),
    cut_share("abdsz%", &["abd_chunk_waste_size"], SIZE,
        "Waste of rounding to pages, percent of size"),
    target("datatg", DATA, "Target of data"),
    target_share("datatg%", DATA, "Target of data, percent"),
    cut("datasz", &["data_size"], "Size of data"),
    cut_share("datasz%", &["data_size"], CACHED, "Size of data, percent"),
    target("metatg", METADATA, "Target of metadata"),
    target_share("metatg%", METADATA, "Target of metadata, percent"),
    cut("metasz", &["metadata_size"], "Size of metadata"),
    cut_share("metasz%", &["metadata_size"], CACHED, "Size of metadata, percent"),
    cut("anosz", &["anon_size"], "Entries being written"),
    cut_share("anosz%", &["anon_size"], CACHED, "Entries being written, percent"),
    cut("anoda", &["anon_data"], "Data being written"),
    cut_share("anoda%", &["anon_data"], CACHED, "Data being written, percent"),
    cut("anome", &["anon_metadata"], "Metadata being written"),
    cut_share("anome%", &["anon_metadata"], CACHED, "Metadata being written, percent"),
    cut("anoed", &["anon_evictable_data"], "Evictable data being written"),
    cut_share("anoed%", &["anon_evictable_data"], CACHED, "Evictable data being written, percent"),
    cut("anoem", &["anon_evictable_metadata"], "Evictable metadata being written"),
    cut_share("anoem%", &["anon_evictable_metadata"], CACHED,
        "Evictable metadata being written, percent"),
    target("mfutg", MFU, "Target of the MFU list"),
    target_share("mfutg%", MFU, "Target of the MFU list, percent"),
    target("mfudt", MFU_DATA, "Target of the MFU list, data"),
    target_share("mfudt%", MFU_DATA, "Target of the MFU list, data, percent"),
    target("mfumt", MFU_METADATA, "Target of the MFU list, metadata"),
    target_share("mfumt%", MFU_METADATA, "Target of the MFU list, metadata, percent"),
    cut("mfusz", &["mfu_size"], "Entries on the MFU list"),
    cut_share("mfusz%", &["mfu_size"], CACHED, "Entries on the MFU list, percent"),
    cut("mfuda", &["mfu_data"], "Data on the MFU list"),
    cut_share("mfuda%", &["mfu_data"], CACHED, "Data on the MFU list, percent"),
    cut("mfume", &["mfu_metadata"], "Metadata on the MFU list"),
    cut_share("mfume%", &["mfu_metadata"], CACHED, "Metadata on the MFU list, percent"),
    cut("mfued", &["mfu_evictable_data"], "Evictable data on the MFU list"),
    cut_share("mfued%", &["mfu_evictable_data"], CACHED, "Evictable data on the MFU list, percent"),
    cut("mfuem", &["mfu_evictable_metadata"], "Evictable metadata on the MFU list"),
    cut_share("mfuem%", &["mfu_evictable_metadata"], CACHED,
        "Evictable metadata on the MFU list, percent"),
    cut("mfugsz", &["mfu_ghost_size"], "Ghosts on the MFU ghost list"),
    cut("mfugd", &["mfu_ghost_data"], "Ghosts of data on the MFU ghost list"),
    cut("mfugm", &["mfu_ghost_metadata"], "Ghosts of metadata on the MFU ghost list"),
    target("mrutg", MRU, "Target of the MRU list"),
    target_share("mrutg%", MRU, "Target of the MRU list, percent"),
    target("mrudt", MRU_DATA, "Target of the MRU list, data"),
    target_share("mrudt%", MRU_DATA, "Target of the MRU list, data, percent"),
    target("mrumt", MRU_METADATA, "Target of the MRU list, metadata"),
    target_share("mrumt%", MRU_METADATA, "Target of the MRU list, metadata, percent"),
    cut("mrusz", &["mru_size"], "Entries on the MRU list"),
    cut_share("mrusz%", &["mru_size"], CACHED, "Entries on the MRU list, percent"),
    cut("mruda", &["mru_data"], "Data on the MRU list"),
    cut_share("mruda%", &["mru_data"], CACHED, "Data on the MRU list, percent"),
    cut("mrume", &["mru_metadata"], "Metadata on the MRU list"),
    cut_share("mrume%", &["mru_metadata"], CACHED, "Metadata on the MRU list, percent"),
    cut("mrued", &["mru_evictable_data"], "Evictable data on the MRU list"),
    cut_share("mrued%", &["mru_evictable_data"], CACHED, "Evictable data on the MRU list, percent"),
    cut("mruem", &["mru_evictable_metadata"], "Evictable metadata on the MRU list"),
    cut_share("mruem%", &["mru_evictable_metadata"], CACHED,
        "Evictable metadata on the MRU list, percent"),
    cut("mrugsz", &["mru_ghost_size"], "Ghosts on the MRU ghost list"),
    cut("mrugd", &["mru_ghost_data"], "Ghosts of data on the MRU ghost list"),
    cut("mrugm", &["mru_ghost_metadata"], "Ghosts of metadata on the MRU ghost list"),
    cut("uncsz", &["uncached_size"], "Entries not to be kept"),
    cut_share("uncsz%", &["uncached_size"], CACHED, "Entries not to be kept, percent"),
    cut("uncda", &["uncached_data"], "Data not to be kept"),
    cut_share("uncda%", &["uncached_data"], CACHED, "Data not to be kept, percent"),
    cut("uncme", &["uncached_metadata"], "Metadata not to be kept"),
    cut_share("uncme%", &["uncached_metadata"], CACHED, "Metadata not to be kept, percent"),
    cut("unced", &["uncached_evictable_data"], "Evictable data not to be kept"),
    cut_share("unced%", &["uncached_evictable_data"], CACHED,
        "Evictable data not to be kept, percent"),
    cut("uncem", &["uncached_evictable_metadata"], "Evictable metadata not to be kept"),
    cut_share("uncem%", &["uncached_evictable_metadata"], CACHED,
        "Evictable metadata not to be kept, percent"),
    column("$/h", 6, Scale::Dollars, Formula::Spending("origin_microdollars"),
        "Dollars an hour that requests to the bucket cost"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_column_uses_existing_rows() {
        let is_row = |name: &str| match name.strip_prefix("zfetch_") {
            Some(name) => ogive_stats::ZFETCHSTATS.iter().any(|row| row.name == name),
            None => {
                let files = [ogive_stats::ARCSTATS, ogive_stats::OGIVESTATS];
                files.into_iter().flatten().any(|row| row.name == name)
            }
        };
        for column in COLUMNS {
            let names: Vec<&str> = match column.formula {
                Formula::Rate(names) | Formula::Level(names) => names.to_vec(),
                Formula::RateShare(part, whole) | Formula::LevelShare(part, whole) => {
                    [part, whole].concat()
                }
                Formula::Spending(name) | Formula::Not(name) => vec![name],
                Formula::Time | Formula::Target(_) | Formula::TargetShare(_) => Vec::new(),
            };
            assert!(names.into_iter().all(is_row), "{}", column.name);
        }
    }
}
