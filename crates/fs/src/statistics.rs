//! The mount's counters as kstats: OpenZFS's files for OpenZFS's tools, and a file of our own.
//! Their rows are declared in `ogive-stats`.

use crate::latency::Latency;
use crate::view::View;
use ogive_arc::Stats;
use ogive_kstat::{Rows, arcstats, files};
use ogive_origin::Origin;
use rustix::time::{ClockId, clock_gettime};

/// Bytes of the daemon's memory per known inode: the inode, its slot and its share of the index, as
/// the allocator rounds them. Measured over trees of 500,000 files.
pub(crate) const INODE_BYTES: u64 = 176;
/// Additional bytes where the origin keeps an inode's place: the object, and its name.
pub(crate) const PLACE_BYTES: u64 = 144;

/// Makes kstats of a mount.
pub(crate) struct Statistics {
    created_ns: i64,
    pressure: Option<ogive_pressure::Sources>,
}

impl Statistics {
    /// Starts the counters now. `pressure` reads the system's memory.
    pub(crate) fn new(pressure: Option<ogive_pressure::Sources>) -> Self {
        Self { created_ns: monotonic_ns(), pressure }
    }

    /// Memory of the machine in bytes, if known.
    pub(crate) fn memory_bytes(&self) -> Option<u64> {
        self.pressure.as_ref()?.read().ok().map(|reading| reading.total_bytes)
    }

    /// `arcstats`, with every row that OpenZFS has.
    pub(crate) fn arcstats<O: Origin>(&self, view: &View<O>) -> String {
        self.arcstats_rows(view).to_text()
    }

    /// The same, with the rows that OpenZFS 2.2 removed at its end. `arc_summary` of earlier
    /// releases fails without them, and later ones ignore them.
    pub(crate) fn arcstats_for_all<O: Origin>(&self, view: &View<O>) -> String {
        let mut rows = self.arcstats_rows(view);
        let value = |name| rows.value(name).unwrap_or_default();
        let share = |bytes: u64, name| (u128::from(bytes) * u128::from(value(name))) >> 32;
        // Data and metadata have a share of the target now, and so has MRU of either kind. Before
        // OpenZFS 2.2, MRU had one target and metadata had limits.
        let c = value("c");
        let metadata = u64::try_from(share(c, "meta")).unwrap_or(c).min(c);
        let p = share(metadata, "pm") + share(c - metadata, "pd");
        let used = value("arc_meta_used");
        arcstats::append_removed_rows(&mut rows, [u64::try_from(p).unwrap_or(c), c, used, 0]);
        rows.to_text()
    }

    fn arcstats_rows<O: Origin>(&self, view: &View<O>) -> Rows {
        let stats = view.cache.stats();
        let dnode_bytes = view.inodes.len() as u64 * INODE_BYTES;
        let mut rows = arcstats::ARCSTATS.rows(self.created_ns, monotonic_ns());
        let mut set = |name: &str, value: i128| {
            // A name that OpenZFS does not have goes into our own file.
            let _ = rows.set(name, value);
        };
        for (name, value) in stats.fields() {
            set(name, i128::from(value));
        }
        set("dnode_size", i128::from(dnode_bytes));
        set("arc_prune", i128::from(stats.arc_prune + view.inode_limit.requests()));
        set("compressed_size", i128::from(stats.size - stats.hdr_size));
        set("uncompressed_size", i128::from(stats.size - stats.hdr_size));
        set("arc_meta_used", i128::from(stats.metadata_size + stats.hdr_size + dnode_bytes));
        if let Some(reading) = self.pressure.as_ref().and_then(|sources| sources.read().ok()) {
            set("memory_all_bytes", i128::from(reading.total_bytes));
            set("memory_free_bytes", i128::from(reading.available_bytes));
            set("memory_available_bytes", i128::from(reading.headroom_bytes));
        }
        if let Some(second_level) = &view.second_level {
            second_level.arcstats(&mut set);
        }
        rows
    }

    /// Reads and writes of programs, as the dataset `name` of a pool.
    pub(crate) fn dataset<O: Origin>(&self, view: &View<O>, name: &str) -> String {
        let counts = view.counters.counts();
        let mut rows = files::OBJSET.rows(self.created_ns, monotonic_ns());
        for (name, value) in [
            ("writes", counts.write_requests),
            ("nwritten", counts.written_bytes),
            ("reads", counts.read_requests),
            ("nread", counts.read_bytes),
        ] {
            let _ = rows.set(name, value);
        }
        files::dataset(name, &rows)
    }

    /// `zfetchstats`.
    pub(crate) fn zfetchstats<O: Origin>(&self, view: &View<O>) -> String {
        let counts = view.counters.counts();
        let mut rows = files::ZFETCHSTATS.rows(self.created_ns, monotonic_ns());
        for (name, value) in [
            ("hits", counts.stream_hits),
            ("misses", counts.stream_misses),
            ("max_streams", counts.streams_max),
            ("io_issued", counts.prefetch_issued),
            ("io_active", counts.prefetch_active),
        ] {
            let _ = rows.set(name, value);
        }
        rows.to_text()
    }

    /// A file of zeroes, which OpenZFS's tools need.
    pub(crate) fn zeroes(&self, table: &'static ogive_kstat::Table) -> String {
        table.rows(self.created_ns, monotonic_ns()).to_text()
    }

    /// `ogivestats`: the rows that arcstats lacks. `control_bytes` is the memory of open control
    /// files.
    pub(crate) fn ogivestats<O: Origin>(&self, view: &View<O>, control_bytes: u64) -> String {
        let mut rows = files::OGIVESTATS.listing(self.created_ns, monotonic_ns());
        let own = |name: &str| arcstats::ARCSTATS.field(name).is_none();
        let mut set = |name: &str, value: u64| {
            let known = rows.set(name, value);
            debug_assert!(known.is_ok(), "{name} has no row in `ogive-stats`");
        };
        let mut stats: Stats = view.cache.stats();
        // Inodes count as pruned whether memory or the table's limit was the reason.
        let pruned = view.inode_limit.pruned();
        stats.prune_examined += pruned.examined;
        stats.prune_freed_objects += pruned.freed_objects;
        stats.prune_freed_bytes += pruned.freed_bytes;
        stats.prune_held += pruned.held;
        stats.fields().filter(|(name, _)| own(name)).for_each(|(name, value)| set(name, value));
        let workers = view.workers.statistics();
        let mut counts = view.counters.counts();
        counts.panics += workers.panics;
        counts.fields().chain(workers.fields()).for_each(|(name, value)| set(name, value));
        latencies(&view.counters.origin_latency, &mut set);
        let standing = view.origin.availability();
        set("source_gone", u64::from(standing.gone.is_some()));
        set("source_losses", standing.losses);
        view.origin.counters(&mut set);
        set("names_held_bytes", view.held_names.bytes());
        set("control_held_bytes", control_bytes);
        set("inodes", view.inodes.len() as u64);
        set("inodes_forgotten", view.inodes.forgotten());
        set("inode_limit", view.inode_limit.limit());
        if let Some(second_level) = &view.second_level {
            set("l2_bytes", counts.second_level_bytes);
            second_level.own(&mut |name, value| {
                if own(name) {
                    set(name, value);
                }
            });
        }
        rows.to_text()
    }

    /// The sources of memory pressure, one per line.
    pub(crate) fn memory(&self) -> String {
        match &self.pressure {
            Some(sources) => sources.describe().iter().map(|note| format!("{note}\n")).collect(),
            None => "no source of memory pressure\n".to_owned(),
        }
    }
}

/// How long reads of the origin took.
fn latencies(latency: &Latency, push: &mut dyn FnMut(&str, u64)) {
    push("origin_read_ns", latency.total_ns());
    for (bound_us, reads) in latency.within() {
        push(&format!("origin_reads_within_us_{bound_us}"), reads);
    }
}

fn monotonic_ns() -> i64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.saturating_mul(1_000_000_000).saturating_add(now.tv_nsec)
}
