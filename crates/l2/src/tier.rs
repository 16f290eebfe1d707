//! The second level: devices, and the threads that read them.
//!
//! Devices come and go while it is in use ([`Tier::add`], [`Tier::remove`]). A lock guards the list
//! of devices. It is held to find one or to change the list, and never during a read, a write, an
//! open or a wait. A user of a device holds the device itself. So a device that is taken away gets
//! no more requests, and is closed by its last user.
//!
//! # Locks
//! The list's is a leaf, and so are all of the devices' ([`crate::store`]).

use crate::admission::Offered;
use crate::cipher::Cipher;
use crate::counters::{Counters, Counts, Stopwatch, add};
use crate::device::Device;
use crate::index::{Shrunk, Slot};
use crate::readers::Readers;
use crate::store::{
    DeviceError, OpenOptions, Opened, SharedBytes, Store, StoreOptions, Usage, open,
};
use ogive_threads::Alive;
use parking_lot::RwLock;
use std::sync::Arc;
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

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
/// Records have names, each of which must mean one content for ever: put the version into the name.
/// Everything that goes wrong is a miss and a counter.
///
/// ```
/// use ogive_l2::device::MemoryDevice;
/// use ogive_l2::{KeySource, MasterKey, Offered, OpenOptions, Tier, TierOptions};
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// let device = Arc::new(MemoryDevice::new(8 << 20));
/// let key = KeySource::Master(MasterKey::random()?);
/// let open = OpenOptions { key, ..OpenOptions::default() };
/// let options = TierOptions { read_patience: Duration::from_secs(60), ..TierOptions::default() };
/// let tier = Tier::open(vec![(device, open)], options).map_err(|(_, error)| error)?;
/// tier.settle();
/// tier.offer(b"object 1, version 7, record 0", Arc::new(vec![42; 4096]), Offered::default());
/// assert_eq!(tier.read(b"object 1, version 7, record 0"), Some(vec![42; 4096]));
/// assert_eq!(tier.read(b"object 1, version 8, record 0"), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Tier {
    members: RwLock<Members>,
    options: TierOptions,
    counters: Arc<Counters>,
    versions: Zeroizing<[u8; 32]>,
}

/// The devices, each with threads of its own: one that hangs delays no other.
#[derive(Default)]
struct Members {
    list: Vec<Arc<Member>>,
    /// Nothing is added any more.
    is_closed: bool,
}

/// A device and its readers.
struct Member {
    store: Arc<Store>,
    readers: Readers,
    /// The device is open.
    in_use: Alive,
}

/// A device that is in use.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct DeviceInUse {
    /// Its name in the superblock.
    pub device: [u8; 16],
    /// How it is sealed.
    pub cipher: Cipher,
    /// How it is read and written.
    pub engine: &'static str,
    /// Bytes that its log has room for.
    pub room_bytes: u64,
    /// Its contents.
    pub usage: Usage,
}

/// The state of a device that was taken out of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removed {
    /// All its records are written, and it is closed.
    Closed,
    /// It gets no more requests, but a caller still waits for it. It is closed when it answers.
    Hangs,
}

impl std::fmt::Debug for Tier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let stores: Vec<_> = self.list().iter().map(|member| member.store.clone()).collect();
        f.debug_struct("Tier").field("stores", &stores).finish_non_exhaustive()
    }
}

impl Tier {
    /// Opens devices, formatting them where that is asked for. Their records are found in the
    /// background, and miss until then.
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
            let found = open(&device, &how).map_err(|error| (position, error))?;
            opened.push((device, found));
        }
        // One secret for all: that of the first which has been in use before.
        let oldest = opened.iter().find(|(_, opened)| !opened.is_new).or(opened.first());
        let versions =
            Zeroizing::new(oldest.map_or([0; 32], |(_, oldest)| *oldest.keys.versions()));
        for (position, (device, opened)) in opened.iter_mut().enumerate() {
            opened.adopt_versions(&**device, &versions).map_err(|error| (position, error))?;
        }
        let mut members = Members::default();
        for (position, (device, opened)) in opened.into_iter().enumerate() {
            let member = Member::new(device, opened, &options, &counters);
            let taken = member.and_then(|member| members.take(&Arc::new(member)));
            taken.map_err(|error| (position, error))?;
        }
        Ok(Self { members: RwLock::new(members), options, counters, versions })
    }

    /// Takes another device into use, which has a share of the records from then on. That share
    /// misses until it is written there. Names mean the same on all devices. Returns the device's
    /// name.
    ///
    /// # Errors
    /// See [`DeviceError`]; nothing has changed then.
    pub fn add(&self, device: Arc<dyn Device>, how: &OpenOptions) -> Result<[u8; 16], DeviceError> {
        let mut opened = open(&device, how)?;
        let id = opened.superblock.device;
        self.members.read().check(&id)?;
        opened.adopt_versions(&*device, &self.versions)?;
        let member = Arc::new(Member::new(device, opened, &self.options, &self.counters)?);
        // The member outlives the lock: one that is not taken is closed when it is dropped.
        self.members.write().take(&member)?;
        Ok(id)
    }

    /// Takes a device out of use: reads in flight end, queued records are written, it is closed.
    /// Its records are misses from the start, and found again when it is added again. `None` if
    /// there is no such device.
    pub fn remove(&self, device: &[u8; 16]) -> Option<Removed> {
        let removed = {
            let mut members = self.members.write();
            let is_it = |member: &Arc<Member>| member.id() == device;
            let position = members.list.iter().position(is_it)?;
            members.list.remove(position)
        };
        removed.close();
        let in_use = removed.in_use.clone();
        drop(removed);
        let left = in_use.wait(self.options.read_patience);
        Some(if left == 0 { Removed::Closed } else { Removed::Hangs })
    }

    /// The devices in use now.
    pub fn devices(&self) -> Vec<DeviceInUse> {
        let in_use = |member: &Arc<Member>| {
            let store = &member.store;
            DeviceInUse {
                device: *store.id(),
                cipher: store.cipher(),
                engine: store.device().engine(),
                room_bytes: store.room_bytes(),
                usage: store.usage(),
            }
        };
        self.list().iter().map(in_use).collect()
    }

    /// The devices as they are now, to be used without the lock.
    fn list(&self) -> Vec<Arc<Member>> {
        self.members.read().list.clone()
    }

    /// Thirty-two random bytes that all devices keep, sealed as they are. They make names that
    /// cannot be predicted, and that mean the same to the next mount of these devices.
    pub fn version_secret(&self) -> &[u8; 32] {
        &self.versions
    }

    /// How each device is sealed.
    pub fn ciphers(&self) -> Vec<Cipher> {
        self.list().iter().map(|member| member.store.cipher()).collect()
    }

    /// The device of a name: by rendezvous hashing (Thaler and Ravishankar, 1998), weighted by size
    /// (Schindelhauer and Schomaker, 2005). So a new device takes its share from all others, and
    /// changes nothing else.
    fn member(&self, name: &[u8]) -> Option<Arc<Member>> {
        let members = self.members.read();
        if let [only] = &members.list[..] {
            return Some(only.clone());
        }
        let hash = twox_hash::XxHash3_64::oneshot(name);
        let affinity = |member: &Member| member.store.affinity(hash);
        let chosen = members.list.iter();
        chosen.max_by(|one, other| affinity(one).total_cmp(&affinity(other))).cloned()
    }

    /// The bytes of a record, if they can be read. Waits for a device for the configured patience
    /// at most. Without a slot in the index it does not wait at all.
    pub fn read(&self, name: &[u8]) -> Option<Vec<u8>> {
        self.read_by(name, |readers, store, key, slot| readers.read(store, key, slot))
    }

    /// The same for a thread that exists for this, named [`READER_NAME`](crate::READER_NAME) so
    /// that its CPU time can be attributed. It waits for the device and unseals the record itself,
    /// which saves two hand-overs between threads. Where the system cannot bound a wait for the
    /// device this is [`Tier::read`].
    pub fn read_here(&self, name: &[u8]) -> Option<Vec<u8>> {
        self.read_by(name, |readers, store, key, slot| readers.read_here(store, &key, slot))
    }

    fn read_by(
        &self,
        name: &[u8],
        read: impl FnOnce(&Readers, &Arc<Store>, [u8; 16], Slot) -> Option<Vec<u8>>,
    ) -> Option<Vec<u8>> {
        let bytes = self.member(name).and_then(|member| self.read_from(&member, name, read));
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
        let Member { store, readers, .. } = member;
        let key = store.key(name);
        if let Some(bytes) = store.in_flight(&key) {
            let mut watch = Stopwatch::start();
            let copy = (*bytes).as_ref().to_vec();
            watch.lap(&self.counters.l2_copy_cpu_ns);
            add(&self.counters.l2_rw_clash, 1);
            return Some(copy);
        }
        let slot = store.look(&key)?;
        if store.is_bypassed() {
            return None;
        }
        read(readers, store, key, slot)
    }

    /// Whether to ask for a record of this name. Either the index has an entry that may be this
    /// record, and its device is not bypassed. Or the record is on its way to the device.
    pub fn may_have(&self, name: &[u8]) -> bool {
        self.member(name).is_some_and(|member| {
            let store = &member.store;
            let key = store.key(name);
            (store.look(&key).is_some() && !store.is_bypassed()) || store.in_flight(&key).is_some()
        })
    }

    /// Offers a record that leaves the first level to the device of its name, which may refuse it
    /// (`Store::admit`). Never waits: a refused record is dropped and counted. Returns whether it
    /// was taken.
    pub fn offer(&self, name: &[u8], bytes: SharedBytes, offered: Offered) -> bool {
        self.member(name).is_some_and(|member| member.store.admit(name, bytes, offered))
    }

    /// Notes a miss of the first level that does not ask this one.
    pub fn note_miss(&self) {
        add(&self.counters.l2_misses, 1);
    }

    /// Notes bytes that left the first level and must not come here.
    pub fn note_ineligible(&self, bytes: u64) {
        add(&self.counters.evict_l2_ineligible, bytes);
    }

    /// Notes a record that must not come here because of the path of its file.
    pub fn note_refused_path(&self) {
        add(&self.counters.l2_refused_path, 1);
    }

    /// Everything counted.
    pub fn counts(&self) -> Counts {
        self.counters.counts()
    }

    /// The contents of each device.
    pub fn usage(&self) -> Vec<Usage> {
        self.list().iter().map(|member| member.store.usage()).collect()
    }

    /// Gives back about `want_bytes` of the indexes' memory, or as much as they have. Returns how
    /// much it was, and how many records are unknown now. Those stay on their devices and are found
    /// again at the next opening. For a minute no index grows.
    pub fn shrink_index(&self, want_bytes: u64) -> Shrunk {
        let members = self.list();
        let all: u64 = members.iter().map(|member| member.store.index_bytes()).sum();
        let mut sum = Shrunk::default();
        for store in members.iter().map(|member| &member.store) {
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
            let members = self.list();
            if members.iter().all(|member| is_settled(&member.store)) {
                return true;
            }
            members.iter().for_each(|member| member.store.write_soon());
            std::thread::sleep(Duration::from_millis(1));
        }
        false
    }

    /// Waits until the devices' threads have taken all offered records and rest. Whole chunks of
    /// them are on the devices then; a part of a chunk stays in memory. A minute at most, for
    /// tests: a test that does so after each step finds the same writes every time. Returns whether
    /// that is so.
    pub fn keep_step(&self) -> bool {
        let deadline = Instant::now() + Duration::from_secs(60);
        self.list().iter().all(|member| member.store.wait_taken(deadline))
    }

    /// Seals the open segments and ends all threads. Also done when it is dropped.
    pub fn close(&self) {
        let members = {
            let mut members = self.members.write();
            members.is_closed = true;
            members.list.clone()
        };
        members.iter().for_each(|member| member.readers.stop());
        members.iter().for_each(|member| member.store.close());
    }
}

impl Members {
    /// Whether a device of this name may come.
    fn check(&self, device: &[u8; 16]) -> Result<(), DeviceError> {
        if self.is_closed {
            return Err(DeviceError::Ended);
        }
        match self.list.iter().any(|member| member.id() == device) {
            true => Err(DeviceError::Twin),
            false => Ok(()),
        }
    }

    fn take(&mut self, member: &Arc<Member>) -> Result<(), DeviceError> {
        self.check(member.id())?;
        self.list.push(member.clone());
        Ok(())
    }
}

impl Member {
    /// Begins to use a device that was opened, and its recovery in the background.
    fn new(
        device: Arc<dyn Device>,
        opened: Opened,
        options: &TierOptions,
        counters: &Arc<Counters>,
    ) -> Result<Self, DeviceError> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let threads_max = match (options.threads_max, device.depth()) {
            (0, 1) => THREADS_BLOCKING.max(processors),
            (0, _) => processors * 2,
            (given, _) => given,
        };
        let readers = Readers::new(threads_max, options.read_patience, counters.clone());
        let in_use = Alive::default();
        let store = Store::start(
            device,
            opened,
            options.store.clone(),
            counters.clone(),
            Some(in_use.enter()),
        )
        .map_err(|error| DeviceError::System { action: "start a thread", error })?;
        Ok(Self { store, readers, in_use })
    }

    fn id(&self) -> &[u8; 16] {
        self.store.id()
    }

    /// Seals the open segment and ends the threads. The second time it does nothing.
    fn close(&self) {
        self.readers.stop();
        self.store.close();
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.close();
    }
}

impl Drop for Tier {
    fn drop(&mut self) {
        self.close();
    }
}
