//! The second level: one or several devices, and the threads that read them.

use crate::admission::Offered;
use crate::counters::{Counters, Counts, Stopwatch, add};
use crate::device::Device;
use crate::index::{Shrunk, Slot};
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
    /// The devices, each with threads of its own: one that hangs holds up no other.
    stores: Vec<Member>,
    counters: Arc<Counters>,
}

/// A device and who reads it.
struct Member {
    store: Arc<Store>,
    readers: Readers,
}

impl std::fmt::Debug for Tier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let stores: Vec<_> = self.stores.iter().map(|member| &member.store).collect();
        f.debug_struct("Tier").field("stores", &stores).finish_non_exhaustive()
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
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let mut tier = Self { stores: Vec::with_capacity(opened.len()), counters };
        for (position, (device, superblock, keys)) in opened.into_iter().enumerate() {
            let threads_max = match (options.threads_max, device.depth()) {
                (0, 1) => THREADS_BLOCKING.max(processors),
                (0, _) => processors * 2,
                (given, _) => given,
            };
            let patience = options.read_patience;
            let readers = Readers::new(threads_max, patience, tier.counters.clone());
            let store_options = options.store.clone();
            let counters = tier.counters.clone();
            let store = Store::start(device, superblock, keys, store_options, counters).map_err(
                |error| (position, DeviceError::System { action: "start a thread", error }),
            )?;
            tier.stores.push(Member { store, readers });
        }
        Ok(tier)
    }

    /// The device of a name: by rendezvous hashing (Thaler and Ravishankar, 1998), so that another
    /// device takes its share from all and changes nothing else.
    fn member(&self, name: &[u8]) -> Option<&Member> {
        if let [only] = &self.stores[..] {
            return Some(only);
        }
        let hash = twox_hash::XxHash3_64::oneshot(name);
        self.stores.iter().max_by_key(|member| member.store.affinity(hash))
    }

    /// The bytes of a record, if they are to be had. Waits for a device at most for the patience
    /// that was agreed on; without a promising slot in the index it does not wait at all.
    pub fn read(&self, name: &[u8]) -> Option<Vec<u8>> {
        self.read_by(name, |readers, store, key, slot| readers.read(store, key, slot))
    }

    /// The same for a thread whose work this is, named [`READER_NAME`](crate::READER_NAME) so that
    /// people see whose CPU time it is: the device is waited for and the record unsealed here, and
    /// two hand-overs between threads are saved. Where the system cannot bound a wait for the
    /// device this is [`Tier::read`].
    pub fn read_here(&self, name: &[u8]) -> Option<Vec<u8>> {
        self.read_by(name, |readers, store, key, slot| readers.read_here(store, &key, slot))
    }

    fn read_by(
        &self,
        name: &[u8],
        read: impl FnOnce(&Readers, &Arc<Store>, [u8; 16], Slot) -> Option<Vec<u8>>,
    ) -> Option<Vec<u8>> {
        let bytes = self.member(name).and_then(|member| self.read_from(member, name, read));
        let counter = match bytes {
            Some(_) => &self.counters.l2_hits,
            None => &self.counters.l2_misses,
        };
        add(counter, 1);
        bytes
    }

    fn read_from(
        &self,
        member: &Member,
        name: &[u8],
        read: impl FnOnce(&Readers, &Arc<Store>, [u8; 16], Slot) -> Option<Vec<u8>>,
    ) -> Option<Vec<u8>> {
        let Member { store, readers } = member;
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
        read(readers, store, key, slot)
    }

    /// Whether a record of this name is worth asking for: the index knows it, or one that looks the
    /// same to it, and its device is not left alone at the moment; or it is on its way there.
    pub fn may_have(&self, name: &[u8]) -> bool {
        self.member(name).is_some_and(|Member { store, .. }| {
            let key = store.key(name);
            (store.look(&key).is_some() && !store.health.is_bypassed())
                || store.in_flight(&key).is_some()
        })
    }

    /// Offers a record that leaves the first level. Never waits: what cannot be taken is dropped
    /// and counted. Returns whether it was taken.
    pub fn offer(&self, name: &[u8], bytes: SharedBytes, offered: Offered) -> bool {
        self.member(name).is_some_and(|member| member.store.offer(name, bytes, offered))
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
        self.stores.iter().map(|member| member.store.usage()).collect()
    }

    /// How each device is read and written.
    pub fn engines(&self) -> Vec<&'static str> {
        self.stores.iter().map(|member| member.store.device().engine()).collect()
    }

    /// Gives back about `want_bytes` of the memory that the indexes take, as far as they have it, and
    /// says how much it was and how many records are unknown now that were known. They stay on
    /// their devices and are found again at the next opening. For a minute no index grows.
    pub fn shrink_index(&self, want_bytes: u64) -> Shrunk {
        let all: u64 = self.stores.iter().map(|member| member.store.index_bytes()).sum();
        let mut sum = Shrunk::default();
        for Member { store, .. } in &self.stores {
            // Each gives its share of what all have.
            let share = u128::from(want_bytes) * u128::from(store.index_bytes());
            let share = share.div_ceil(u128::from(all.max(1))).min(u128::from(u64::MAX));
            let shrunk = store.shrink_index(share as u64);
            sum.bytes += shrunk.bytes;
            sum.records += shrunk.records;
        }
        sum
    }

    /// Waits until recovery has ended and all that was offered so far is on the devices, a minute
    /// at most: for tests and measurements. Returns whether that is so.
    pub fn settle(&self) -> bool {
        let deadline = Instant::now() + Duration::from_secs(60);
        while Instant::now() < deadline {
            let is_settled = |store: &Store| store.is_recovered() && store.is_quiet();
            if self.stores.iter().all(|member| is_settled(&member.store)) {
                return true;
            }
            self.stores.iter().for_each(|member| member.store.hurry());
            std::thread::sleep(Duration::from_millis(1));
        }
        false
    }

    /// Seals what is open and ends all threads. Also done when it is dropped.
    pub fn close(&self) {
        self.stores.iter().for_each(|member| member.readers.stop());
        self.stores.iter().for_each(|member| member.store.close());
    }
}

impl Drop for Tier {
    fn drop(&mut self) {
        self.close();
    }
}
