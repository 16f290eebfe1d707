//! One device: a log of segments that is written round and round.
//!
//! # Threads
//! One thread writes (`l2_write`): it recovers the index first, and then takes records from a
//! bounded queue. Readers of the pool ([`crate::readers`]) look records up and unseal them. Only
//! closing the device waits for the writer.
//!
//! # What makes it safe
//! A record is trusted only if its seal is right. The seal covers the place it was read from, the
//! sequence that the table of segments expects there, and the requested key. Everything else
//! may be wrong: the index, the device, the writer's account of its writes.
//!
//! # Nonces
//! The writer alone gives out sequences and numbers, each once ([`writer`]); the key is one of this
//! opening. A segment that could not be written is left alone, never sealed again.
//!
//! # Locks
//! All are leaves: the queue's, the table of segments', the index's. None is held during I/O or
//! while anything is sealed.

#[cfg(test)]
mod cloned_machine;
mod discard;
mod open;
mod queue;
mod read;
mod reclaim;
mod recover;
mod segments;
mod verify;
mod writer;

pub use discard::{Discarded, discard};
pub use open::{
    DeviceError, FormatPolicy, KDF_WORK_MAX_KIB, KeySource, OpenOptions, change_key, format_device,
    format_device_from, read_superblock,
};
pub(crate) use open::{Opened, open};
use queue::Popped;
pub use queue::SharedBytes;
pub(crate) use read::{Plan, Unsealer};
pub use verify::{Verification, verify};

use crate::admission::{Gate, Offered, Verdict};
use crate::cipher::{Cipher, DeviceKeys};
use crate::clock::Clock;
use crate::compression::Compression;
use crate::counters::{Counters, add};
use crate::device::Device;
use crate::format::{Superblock, UNIT_BYTES, provenance, record_max_bytes, record_units};
use crate::health::Health;
use crate::index::{Index, LengthClasses, Place, Shrunk};
use crate::padding::Padding;
use ogive_threads::Present;
use parking_lot::Mutex;
use queue::{Queue, WaitingRecord};
use segments::Segments;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long an index that has given memory back does not grow.
const INDEX_GROWTH_PAUSE: Duration = Duration::from_secs(60);

/// How a device is used.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// The compression to try on records.
    pub compression: Compression,
    /// To what the lengths of records are made longer.
    pub padding: Padding,
    /// Which records are taken.
    pub admission: crate::Admission,
    /// How much may be written.
    pub limits: crate::WriteLimits,
    /// Most bytes that wait to be written; more are dropped.
    pub queue_bytes_max: u64,
    /// Size that records are expected to have on the device: what the index is sized for.
    pub expected_record_bytes: u64,
    /// Most memory that the index may take.
    pub index_bytes_max: u64,
    /// How long a device that fails is left alone at first.
    pub bypass_pause: Duration,
    /// A read that takes longer counts as a failure of the device, though its bytes are used. Such
    /// a slow device is as useless as one that fails.
    pub slow: Duration,
    /// How long a record waits in memory for others to be written with.
    pub linger: Duration,
    /// How long closing waits for a writer that does not come back from its device.
    pub close_patience: Duration,
    /// By which time all of this is judged, but for the two above: they are waits of threads.
    pub clock: Clock,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            compression: Compression::default(),
            padding: Padding::default(),
            admission: crate::Admission::default(),
            limits: crate::WriteLimits::default(),
            queue_bytes_max: 64 << 20,
            expected_record_bytes: 64 << 10,
            index_bytes_max: u64::MAX,
            bypass_pause: Duration::from_secs(30),
            slow: Duration::from_millis(500),
            linger: Duration::from_secs(1),
            close_patience: Duration::from_secs(10),
            clock: Clock::default(),
        }
    }
}

/// A device that is open.
pub(crate) struct Store {
    device: Arc<dyn Device>,
    superblock: Superblock,
    keys: DeviceKeys,
    index: Index,
    classes: LengthClasses,
    segments: Segments,
    queue: Queue,
    health: Health,
    gate: Gate,
    /// Where the log is being written, in units: the index takes the ages of slots from it.
    head: AtomicU64,
    /// When the index last gave memory back.
    shrunk: Mutex<Option<Instant>>,
    counters: Arc<Counters>,
    options: StoreOptions,
    recovered: AtomicBool,
    recovery_ns: AtomicU64,
    writer: Mutex<Option<JoinHandle<()>>>,
    /// The last field, so that it goes when the device has been closed.
    _in_use: Option<Present>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("device", &self.device).finish_non_exhaustive()
    }
}

/// The contents of a device at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Bytes before compression (`l2_size`).
    pub plain_bytes: u64,
    /// Bytes on the device (`l2_asize`).
    pub stored_bytes: u64,
    /// The part of those from the MFU list.
    pub frequent_bytes: u64,
    /// The part of those that was prefetched.
    pub prefetched_bytes: u64,
    /// Records the index knows.
    pub records: u64,
    /// Memory of index and table of segments (`l2_hdr_size`).
    pub index_bytes: u64,
    /// Segments with summaries.
    pub summaries: u64,
    /// Bytes of the summaries on the device.
    pub summary_bytes: u64,
    /// Segments in use, and all.
    pub segments: (u64, u64),
    /// Bytes that are on their way to the device.
    pub queue_bytes: u64,
    /// Recovery has ended.
    pub recovered: bool,
    /// How long it took, in nanoseconds.
    pub recovery_ns: u64,
    /// The device is left alone for now.
    pub bypassed: bool,
}

impl Store {
    /// Begins to use a device, and its recovery in the background. `in_use` is dropped when the
    /// device is closed everywhere.
    pub(crate) fn start(
        device: Arc<dyn Device>,
        opened: Opened,
        options: StoreOptions,
        counters: Arc<Counters>,
        in_use: Option<Present>,
    ) -> std::io::Result<Arc<Self>> {
        let mut store = Self::new(device, opened, options, counters);
        store._in_use = in_use;
        let store = Arc::new(store);
        let writer = writer::spawn(store.clone())?;
        *store.writer.lock() = Some(writer);
        Ok(store)
    }

    /// A device that is not in use yet: without a writer, nothing is written to it.
    fn new(
        device: Arc<dyn Device>,
        opened: Opened,
        options: StoreOptions,
        counters: Arc<Counters>,
    ) -> Self {
        let Opened { superblock, keys, .. } = opened;
        let record_max = record_max_bytes(superblock.segment_bytes);
        let room = superblock.segments * superblock.segment_bytes;
        let expected = options.expected_record_bytes.max(UNIT_BYTES);
        let now = options.clock.now();
        let gate = Gate::new(options.admission, options.limits, room, now);
        Self {
            index: Index::new(room / expected, options.index_bytes_max),
            classes: LengthClasses::new(record_units(record_max)),
            segments: Segments::new(superblock.segments),
            queue: Queue::new(options.queue_bytes_max),
            health: Health::new(options.bypass_pause, now),
            gate,
            head: AtomicU64::new(0),
            shrunk: Mutex::new(None),
            device,
            superblock,
            keys,
            counters,
            options,
            recovered: AtomicBool::new(false),
            recovery_ns: AtomicU64::new(0),
            writer: Mutex::new(None),
            _in_use: None,
        }
    }

    /// Its name.
    pub(crate) fn id(&self) -> &[u8; 16] {
        &self.superblock.device
    }

    /// Bytes that its log has room for.
    pub(crate) fn room_bytes(&self) -> u64 {
        self.superblock.segments * self.superblock.segment_bytes
    }

    /// How it is sealed.
    pub(crate) fn cipher(&self) -> Cipher {
        self.superblock.cipher
    }

    /// The weight of a device for a record; the device with the greatest gets it. It follows from
    /// the size: a device four times as large takes four times as much, so all turn over at one
    /// pace.
    pub(crate) fn affinity(&self, name: u64) -> f64 {
        let hash = twox_hash::XxHash3_64::oneshot_with_seed(name, &self.superblock.device);
        // Of 52 bits, with which it is neither 0 nor 1.
        let uniform = ((hash >> 12) as f64 + 0.5) / (1_u64 << 52) as f64;
        -(self.room_bytes() as f64) / uniform.ln()
    }

    pub(crate) fn key(&self, name: &[u8]) -> [u8; 16] {
        self.keys.name(name)
    }

    pub(crate) fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }

    /// The bytes of a record that is on its way to the device.
    pub(crate) fn in_flight(&self, key: &[u8; 16]) -> Option<SharedBytes> {
        self.queue.in_flight(key)
    }

    /// Takes a record that leaves the first level, or refuses it. Reasons are its size, a copy on
    /// the device, the admission, a bypassed device, or a full queue. Never waits.
    pub(crate) fn admit(&self, name: &[u8], bytes: SharedBytes, offered: Offered) -> bool {
        let length = (*bytes).as_ref().len() as u64;
        let counters = &self.counters;
        add(&counters.l2_offers, 1);
        let key = self.key(name);
        let room = self.options.padding.room((*bytes).as_ref().len());
        if length == 0 || room > record_max_bytes(self.superblock.segment_bytes) {
            add(&counters.l2_refused_size, 1);
            add(&counters.evict_l2_ineligible, length);
            return false;
        }
        let place = Place::of(&key);
        if self.index.find(place).is_some() || self.queue.in_flight(&key).is_some() {
            add(&counters.evict_l2_cached, length);
            return false;
        }
        let refusal = match self.gate.judge(offered, self.queue.bytes(), self.now()) {
            Verdict::Yes => None,
            Verdict::UnusedPrefetch => Some(&counters.l2_refused_prefetch),
            Verdict::Sequential => Some(&counters.l2_refused_sequential),
            Verdict::Chance => Some(&counters.l2_refused_chance),
            Verdict::Budget => Some(&counters.l2_refused_budget),
        };
        if let Some(counter) = refusal {
            add(counter, 1);
            add(&counters.evict_l2_ineligible, length);
            return false;
        }
        add(&counters.evict_l2_eligible, length);
        let (list, bit) = if offered.frequent {
            (&counters.evict_l2_eligible_mfu, provenance::MFU)
        } else {
            (&counters.evict_l2_eligible_mru, 0)
        };
        add(list, length);
        if self.is_bypassed() {
            add(&counters.l2_dropped_device, 1);
            return false;
        }
        let prefetched = if offered.unused_prefetch { provenance::PREFETCHED } else { 0 };
        let waiting = WaitingRecord { key, bytes, provenance: bit | prefetched };
        if !self.queue.try_push(waiting) {
            add(&counters.l2_dropped_queue, 1);
            return false;
        }
        true
    }

    /// The time now.
    pub(crate) fn now(&self) -> Instant {
        self.options.clock.now()
    }

    /// Whether the device is bypassed now.
    pub(crate) fn is_bypassed(&self) -> bool {
        self.health.is_bypassed(|| self.now())
    }

    /// A read or write failed.
    pub(crate) fn note_failure(&self) {
        let Some(bypass) = self.health.failed(self.now()) else { return };
        add(&self.counters.l2_bypasses, 1);
        if bypass.is_news {
            log::warn!(
                event = "l2_bypassed",
                engine = self.device.engine(),
                pause_seconds = bypass.pause.as_secs();
                "the second level's device ({}) fails or is slow; it is bypassed for a while",
                self.device.engine()
            );
        }
    }

    /// A read or write went well.
    fn note_success(&self) {
        if let Some(after) = self.health.succeeded(|| self.now()) {
            log::info!(
                event = "l2_back",
                engine = self.device.engine(),
                seconds = after.as_secs();
                "the second level's device ({}) works and is used again after {} s",
                self.device.engine(),
                after.as_secs()
            );
        }
    }

    /// A read or write ended well, but late.
    fn note_slow(&self) {
        add(&self.counters.l2_slow, 1);
        self.note_failure();
    }

    /// Reads that began at `started` have ended. `went_well`: at least one of them succeeded.
    pub(crate) fn note_time(&self, started: Instant, went_well: bool) {
        if self.now() - started > self.options.slow {
            self.note_slow();
        } else if went_well {
            self.note_success();
        }
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Whether recovery has ended, so that everything on the device can be found.
    pub(crate) fn is_recovered(&self) -> bool {
        self.recovered.load(Ordering::Acquire)
    }

    /// Whether nothing is on its way to the device.
    pub(crate) fn is_quiet(&self) -> bool {
        self.queue.is_empty()
    }

    /// Whether before the deadline the writer has taken all that was offered and waits for more.
    pub(crate) fn wait_taken(&self, deadline: Instant) -> bool {
        self.queue.wait_taken(deadline)
    }

    /// Asks the writer to write its buffer, without waiting for more.
    pub(crate) fn write_soon(&self) {
        self.queue.write_soon();
    }

    /// Gives back about this much of the index's memory: the entries of the coldest segments.
    pub(crate) fn shrink_index(&self, want_bytes: u64) -> Shrunk {
        *self.shrunk.lock() = Some(self.now());
        let shrunk = self.index.shrink(want_bytes, self.head.load(Ordering::Relaxed));
        add(&self.counters.l2_index_reclaimed_bytes, shrunk.bytes);
        add(&self.counters.l2_index_reclaimed, shrunk.records);
        shrunk
    }

    /// Memory of the index.
    pub(crate) fn index_bytes(&self) -> u64 {
        self.index.size_bytes()
    }

    /// Lets the index grow again after a while without a request for its memory.
    fn allow_index_growth(&self) {
        let mut shrunk = self.shrunk.lock();
        if shrunk.is_some_and(|at| self.now() - at > INDEX_GROWTH_PAUSE) {
            *shrunk = None;
            self.index.allow_growth(self.options.index_bytes_max);
        }
    }

    pub(crate) fn usage(&self) -> Usage {
        let mut usage = self.segments.usage();
        usage.records = self.index.records();
        usage.index_bytes = self.index.size_bytes() + self.segments.size_bytes();
        usage.queue_bytes = self.queue.bytes();
        usage.recovered = self.is_recovered();
        usage.recovery_ns = self.recovery_ns.load(Ordering::Relaxed);
        usage.bypassed = self.is_bypassed();
        usage
    }

    /// Seals the open segment and ends the writer; one that hangs in its device is left behind.
    pub(crate) fn close(&self) {
        self.queue.stop();
        let Some(writer) = self.writer.lock().take() else { return };
        let deadline = Instant::now() + self.options.close_patience;
        if !self.queue.wait_ended(deadline) {
            log::warn!("the second level's device does not answer; it is left as it is");
            return;
        }
        if writer.join().is_err() {
            log::error!("the thread that writes the second level panicked");
        }
    }
}
