//! Everything counted, in one table. Names that OpenZFS's `arcstats` has mean here what they mean
//! there; the others are ogive's own.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $name:ident)+) => {
        /// Counters of a second level, shared by its devices.
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $($(#[doc = $doc])+ pub(crate) $name: AtomicU64,)+
        }

        /// Counters at one moment, since the level was opened. Times in nanoseconds.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Counts {
            $($(#[doc = $doc])+ pub $name: u64,)+
        }

        impl Counters {
            /// The counters now.
            pub(crate) fn counts(&self) -> Counts {
                Counts { $($name: self.$name.load(Ordering::Relaxed),)+ }
            }
        }

        impl Counts {
            /// Name and value of each, in the order of the table.
            pub fn fields(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                [$((stringify!($name), self.$name),)+].into_iter()
            }
        }
    };
}

counters! {
    /// Misses of the first level that a device served.
    l2_hits
    /// Misses of the first level that no device had.
    l2_misses
    /// Bytes read from devices for hits and for misses that looked like hits.
    l2_read_bytes
    /// Bytes written to devices, headers, summaries and padding included.
    l2_write_bytes
    /// Writes begun.
    l2_writes_sent
    /// Writes ended, well or not.
    l2_writes_done
    /// Writes that failed.
    l2_writes_error
    /// Segments begun: what OpenZFS calls a pass of the feed thread.
    l2_feeds
    /// Reads of a record that was just being written, answered from memory.
    l2_rw_clash
    /// Records whose seal or checksum was wrong.
    l2_cksum_bad
    /// Reads that the system failed.
    l2_io_error
    /// Summaries written: what OpenZFS calls log blocks.
    l2_log_blk_writes
    /// Devices whose index was rebuilt.
    l2_rebuild_success
    /// Rebuilds with a segment that could not be read.
    l2_rebuild_io_errors
    /// Summaries with a wrong seal, met in rebuilds.
    l2_rebuild_cksum_lb_errors
    /// Records rebuilt, in bytes before compression.
    l2_rebuild_size
    /// Records rebuilt, in bytes on the device.
    l2_rebuild_asize
    /// Records rebuilt.
    l2_rebuild_bufs
    /// Summaries read in rebuilds.
    l2_rebuild_log_blks
    /// Seals of records that were tried in segments without a summary.
    l2_rebuild_unseals
    /// Bytes evicted from the first level that a device held.
    evict_l2_cached
    /// Bytes evicted that a device could take.
    evict_l2_eligible
    /// Of those, from the MFU list.
    evict_l2_eligible_mfu
    /// Of those, from the MRU list.
    evict_l2_eligible_mru
    /// Bytes evicted that no device may hold.
    evict_l2_ineligible

    /// Records that were offered.
    l2_offers
    /// Records that were written.
    l2_records_written
    /// Bytes of them before compression.
    l2_plain_bytes_written
    /// Bytes of them as stored.
    l2_stored_bytes_written
    /// Of those, bytes that were added so that lengths tell less.
    l2_padding_bytes
    /// Records that were carried over before their segment was overwritten.
    l2_reinserted
    /// Bytes of them as stored.
    l2_reinserted_bytes
    /// Offers refused: prefetched and never used.
    l2_refused_prefetch
    /// Offers refused: part of a long sequential run.
    l2_refused_sequential
    /// Offers refused: lost the draw that keeps writes within their budget.
    l2_refused_chance
    /// Offers refused: no bytes left in the budget of writes.
    l2_refused_budget
    /// Offers refused: too large for a segment, or empty.
    l2_refused_size
    /// Records loaded that may not be kept because of the path of their file.
    l2_refused_path
    /// Offers dropped: the queue was full.
    l2_dropped_queue
    /// Offers dropped: the device was bypassed or its write failed.
    l2_dropped_device
    /// Reads given up: the device took too long.
    l2_timeouts
    /// Reads not begun: too many were waiting.
    l2_busy
    /// Reads that met another record than the wanted one.
    l2_stale
    /// Records that the index had no room for.
    l2_index_lost
    /// Memory that the index has given back when it was asked to, in bytes.
    l2_index_reclaimed_bytes
    /// Records that it has forgotten for that.
    l2_index_reclaimed
    /// Reads and writes that ended well but took so long that they count as failures.
    l2_slow
    /// Times a device was bypassed.
    l2_bypasses
    /// Reads that were answered before their time was up.
    l2_reads
    /// Time from asking to answer, over all of them.
    l2_read_wait_ns
    /// CPU time of reading from devices.
    l2_read_cpu_ns
    /// CPU time of unsealing.
    l2_unseal_cpu_ns
    /// CPU time of decompressing.
    l2_decompress_cpu_ns
    /// CPU time of copying bytes that are neither sealed nor compressed, or still in memory.
    l2_copy_cpu_ns
    /// CPU time of compressing.
    l2_compress_cpu_ns
    /// CPU time of sealing.
    l2_seal_cpu_ns
    /// CPU time of writing to devices.
    l2_write_cpu_ns
    /// Bytes unsealed.
    l2_unsealed_bytes
}

impl Counters {
    /// A read was answered in its time.
    pub(crate) fn read_answered(&self, waited: Duration) {
        add(&self.l2_reads, 1);
        add(&self.l2_read_wait_ns, u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX));
    }
}

/// Adds to a counter.
pub(crate) fn add(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Ordering::Relaxed);
}

/// CPU time of a thread, stage by stage.
pub(crate) struct Stopwatch(u64);

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self(thread_cpu_ns())
    }

    /// Adds the time since the last call to a counter.
    pub(crate) fn lap(&mut self, counter: &AtomicU64) {
        let now = thread_cpu_ns();
        add(counter, now.saturating_sub(self.0));
        self.0 = now;
    }
}

fn thread_cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    (time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64)
}
