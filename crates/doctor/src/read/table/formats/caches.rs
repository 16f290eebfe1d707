//! Caches: ZFS's ARC, the kernel's page cache, its slabs.

use crate::read::table::{Boot, FORMAT, Format, Heading, Rows, To, Unit, column, gauge};

/// `arcstat` of all releases, and `ogive stat`. Columns differ, so only names count. Without an
/// interval, the only row is the mean since the module was loaded; with one, the first row is.
pub(crate) static ARCSTAT: [Format; 1] = [Format {
    name: "arcstat",
    heading: Heading::of("", "read miss% hit% arcsz c size & *% read miss hits")
        .without("pool vdev operations alloc")
        .known(40),
    tables: &["arcstat"],
    rows: Rows::IntervalsWithMost,
    boot: Boot::First,
    others: To::OwnRate,
    columns: &[
        column("time", To::Clock, Unit::Word),
        gauge("arcsz|size", "size_bytes", Unit::Bytes),
        column(
            "c|avail|free|need|meta|mfusz|mrusz|l2size|l2asize|l2bytes|mfu_size|mru_size|ameta|pd\
             |mfugsz|mrugsz|cmax|cmin|l2data|l2meta|l2hsize",
            To::OwnBytes,
            Unit::Bytes,
        ),
        column(
            "read|hits|miss|hit%|miss%|dmis|dm%|pmis|pm%|mmis|mm%|dread|ddread|pread|mread\
                 |mfu|mru|l2hits|l2miss|l2read|eskip|mtxmis|dhit|ioh%|iohs|dh%",
            To::OwnRate,
            Unit::Number,
        ),
    ],
    ..FORMAT
}];

/// `cachestat` of the BPF tools: hits and misses of the page cache, one row per interval.
pub(crate) static CACHESTAT: [Format; 1] = [Format {
    name: "cachestat",
    heading: Heading::of("HITS MISSES DIRTIES CACHED_MB", ""),
    tables: &["cachestat"],
    rows: Rows::Intervals,
    columns: &[
        column("TIME", To::Clock, Unit::Word),
        gauge("BUFFERS_MB", "buffers_bytes", Unit::BytesOf(1 << 20)),
        gauge("CACHED_MB", "cached_bytes", Unit::BytesOf(1 << 20)),
        column("HITS|MISSES|DIRTIES", To::Own, Unit::Number),
    ],
    ..FORMAT
}];

/// `slabtop`: one row per slab.
pub(crate) static SLABTOP: [Format; 1] = [Format {
    name: "slabtop",
    heading: Heading::of("OBJS ACTIVE USE SLABS NAME", ""),
    tables: &["slab"],
    columns: &[
        column("NAME", To::Scope, Unit::Word),
        gauge("OBJS", "objects", Unit::Number),
        gauge("ACTIVE", "objects_active", Unit::Number),
        gauge("OBJ SIZE", "object_bytes", Unit::Bytes),
        gauge("SLABS", "slabs", Unit::Number),
        gauge("CACHE SIZE", "size_bytes", Unit::Bytes),
        column("USE|OBJ/SLAB", To::Nothing, Unit::Number),
    ],
    silent: &["Minimum / Average"],
    above: &["Active / Total"],
    ..FORMAT
}];
