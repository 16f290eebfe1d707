//! The second level: one or several devices, and the threads that read them.

use crate::admission::Offered;
use crate::counters::{Counters, Counts, Stopwatch, add};
use crate::device::Device;
use crate::readers::Readers;
use crate::store::{DeviceError, OpenOptions, SharedBytes, Store, StoreOptions, Usage, open};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How a second level is used.
#[derive(Clone, Debug)]
pub struct TierOptions {
    /// How each device is.
    pub store: StoreOptions,
    /// How long a reader waits for a device before it goes elsewhere.
    pub read_patience: Duration,
    /// Threads that read and unseal, at most; 0: by the devices.
    pub threads_max: usize,
}

impl Default for TierOptions {
    fn default() -> Self {
        Self {
            store: StoreOptions::default(),
            read_patience: Duration::from_secs(2),
            threads_max: 0,
        }
    }
}

/// Threads for a device that is read one record at a time by each.
const THREADS_BLOCKING: usize = 32;

/// A second level of a cache, on devices that need not be trusted.
///
/// Records are known by names, which must stand for one content for ever: put the version into
/// the name. Everything that goes wrong is a miss and a counter.
///
/// ```
/// use ogive_l2::device::MemoryDevice;
/// use ogive_l2::{FormatPolicy, KeySource, MasterKey, Offered, OpenOptions, Tier, TierOptions};
/// use std::sync::Arc;
///
/// let device = Arc::new(MemoryDevice::new(8 << 20));
/// let key = KeySource::Master(MasterKey::random()?);
/// let open = OpenOptions { size_bytes: None, cipher: None, key, format: FormatPolicy::IfEmpty };
/// let tier = Tier::open(vec![(device, open)], TierOptions::default())
///     .map_err(|(_, error)| error)?;
/// tier.settle();
/// tier.offer(b"object 1, version 7, record 0", Arc::new(vec![42; 4096]), Offered::default());
/// assert_eq!(tier.read(b"object 1, version 7, record 0"), Some(vec![42; 4096]));
/// assert_eq!(tier.read(b"object 1, version 8, record 0"), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Tier {
    stores: Vec<Arc<Store>>,
    readers: Readers,
    counters: Arc<Counters>,
}

impl std::fmt::Debug for Tier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tier").field("stores", &self.stores).finish_non_exhaustive()
    }
}

impl Tier {
    /// Opens devices, formatting them where that is asked for. What is on them is found in the
    /// background; until then it misses.
    ///
    /// # Errors
    /// The position of the device that cannot be used, and why; none is in use then.
    pub fn open(
        devices: Vec<(Arc<dyn Device>, OpenOptions)>,
        options: TierOptions,
    ) -> Result<Self, (usize, DeviceError)> {
        let counters = Arc::new(Counters::default());
        let mut opened = Vec::with_capacity(devices.len());
        for (position, (device, how)) in devices.into_iter().enumerate() {
            let (superblock, keys) = open(&device, &how).map_err(|error| (position, error))?;
            opened.push((device, superblock, keys));
        }
        let blocking = opened.iter().any(|(device, ..)| device.depth() == 1);
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let threads_max = match (options.threads_max, blocking) {
            (0, true) => THREADS_BLOCKING.max(processors),
            (0, false) => processors * 2,
            (given, _) => given,
        };
        let readers = Readers::new(threads_max, options.read_patience, counters.clone());
        let mut tier = Self { stores: Vec::with_capacity(opened.len()), readers, counters };
        for (position, (device, superblock, keys)) in opened.into_iter().enumerate() {
            let store_options = options.store.clone();
            let counters = tier.counters.clone();
            let store = Store::start(device, superblock, keys, store_options, counters).map_err(
                |error| (position, DeviceError::System { action: "start a thread", error }),
            )?;
            tier.stores.push(store);
        }
        Ok(tier)
    }

    /// The device of a name: by rendezvous hashing (Thaler and Ravishankar, 1998), so that another
    /// device takes its share from all and changes nothing else.
    fn store(&self, name: &[u8]) -> Option<&Arc<Store>> {
        let hash = twox_hash::XxHash3_64::oneshot(name);
        self.stores.iter().max_by_key(|store| store.affinity(hash))
    }

    /// The bytes of a record, if they are to be had. Waits for a device at most for the patience
    /// that was agreed on; without a promising slot in the index it does not wait at all.
    pub fn read(&self, name: &[u8]) -> Option<Vec<u8>> {
        let bytes = self.store(name).and_then(|store| self.read_from(store, name));
        let counter = match bytes {
            Some(_) => &self.counters.l2_hits,
            None => &self.counters.l2_misses,
        };
        add(counter, 1);
        bytes
    }

    fn read_from(&self, store: &Arc<Store>, name: &[u8]) -> Option<Vec<u8>> {
        let key = store.key(name);
        if let Some(bytes) = store.in_flight(&key) {
            let mut watch = Stopwatch::start();
            let copy = (*bytes).as_ref().to_vec();
            watch.lap(&self.counters.l2_copy_cpu_ns);
            add(&self.counters.l2_rw_clash, 1);
            return Some(copy);
        }
        let slot = store.look(&key)?;
        if store.health.is_bypassed() {
            return None;
        }
        self.readers.read(store, key, slot)
    }

    /// Whether the index knows a record of this name, or of one that looks the same to it.
    pub fn may_have(&self, name: &[u8]) -> bool {
        self.store(name).is_some_and(|store| {
            let key = store.key(name);
            store.look(&key).is_some() || store.in_flight(&key).is_some()
        })
    }

    /// Offers a record that leaves the first level. Never waits: what cannot be taken is dropped
    /// and counted. Returns whether it was taken.
    pub fn offer(&self, name: &[u8], bytes: SharedBytes, offered: Offered) -> bool {
        self.store(name).is_some_and(|store| store.offer(name, bytes, offered))
    }

    /// Notes a miss of the first level that nobody asks this one about.
    pub fn note_miss(&self) {
        add(&self.counters.l2_misses, 1);
    }

    /// Notes bytes that left the first level and must not come here.
    pub fn note_ineligible(&self, bytes: u64) {
        add(&self.counters.evict_l2_ineligible, bytes);
    }

    /// Everything counted.
    pub fn counts(&self) -> Counts {
        self.counters.counts()
    }

    /// What each device holds.
    pub fn usage(&self) -> Vec<Usage> {
        self.stores.iter().map(|store| store.usage()).collect()
    }

    /// How each device is read and written.
    pub fn engines(&self) -> Vec<&'static str> {
        self.stores.iter().map(|store| store.device().engine()).collect()
    }

    /// Waits until recovery has ended and all that was offered so far is on the devices, a minute
    /// at most: for tests and measurements. Returns whether that is so.
    pub fn settle(&self) -> bool {
        let deadline = Instant::now() + Duration::from_secs(60);
        while Instant::now() < deadline {
            if self.stores.iter().all(|store| store.is_recovered() && store.is_quiet()) {
                return true;
            }
            self.stores.iter().for_each(|store| store.hurry());
            std::thread::sleep(Duration::from_millis(1));
        }
        false
    }

    /// Seals what is open and ends all threads. Also done when it is dropped.
    pub fn close(&self) {
        self.readers.stop();
        self.stores.iter().for_each(|store| store.close());
    }
}

impl Drop for Tier {
    fn drop(&mut self) {
        self.close();
    }
}
