//! The second level below the engine: records that were evicted from memory, sealed on an SSD.
//!
//! A record's name there is its version, its index and the record size. A version is the digest of
//! a settled identity under a secret that the devices keep. So a changed file has other names, and
//! the records under its old names are never asked for again. Two rules guarantee that
//! ([`crate::version`]):
//!
//! 1. *Out:* a record is offered only if the file had that identity before and after the load of
//!    its bytes.
//! 2. *In:* the second level is asked only while nothing was written through the mount under that
//!    version. A write that begins later dooms the load.
//!
//! The engine's hook makes offers, on the thread that made room and with no lock held. An offer
//! costs a keyed hash and a place in a queue, and never waits.
//!
//! The index is memory that the engine may ask for ([`ogive_arc::prune`]): if evicting records does
//! not free enough, the index drops its coldest entries.

mod devices;
mod options;
mod path_rules;
mod statistics;

pub(crate) use devices::REQUEST_MAX_BYTES;
pub use options::{SecondLevelError, SecondLevelOptions};
pub use path_rules::{PathRuleError, PathRules};

use crate::record::{Entry, Key, Version, Worth};
use devices::Devices;
use ogive_arc::prune::{Prune, PruneResult};
use ogive_arc::{Eviction, List};
use ogive_l2::{MasterKey, Offered, StoreOptions, Tier, TierOptions};
use ogive_origin::VersionSecret;
use std::path::Path;
use std::sync::Arc;

/// A sequential run of this length is not worth keeping (bcache: `sequential_cutoff`).
const SEQUENTIAL_CUTOFF_BYTES: u64 = 4 << 20;
/// The share of the first level's size that may wait to be written, and its maximum.
const QUEUE_SHARE: u64 = 16;
const QUEUE_BYTES_MAX: u64 = 64 << 20;
const QUEUE_BYTES_MIN: u64 = 4 << 20;
/// The share of the first level's size that the index may take.
const INDEX_SHARE: u64 = 8;

/// The second level of a mount.
#[derive(Debug)]
pub(crate) struct SecondLevel {
    tier: Tier,
    record_size_bytes: u64,
    devices: Devices,
}

/// A record that the engine has evicted, as bytes.
struct Evicted(Arc<Entry>);

impl AsRef<[u8]> for Evicted {
    fn as_ref(&self) -> &[u8] {
        self.0.bytes()
    }
}

impl SecondLevel {
    /// Opens the devices, if any. Their records are found in the background.
    ///
    /// # Errors
    /// See [`SecondLevelError`]; no device is in use then.
    pub(crate) fn open(
        options: Option<&SecondLevelOptions>,
        (source, mount_point): (&Path, &Path),
        record_size_bytes: u64,
        arc_max_bytes: u64,
    ) -> Result<Option<Self>, SecondLevelError> {
        let Some(options) = options else { return Ok(None) };
        let store = StoreOptions {
            compression: options.compression,
            padding: options.padding,
            admission: options.admission,
            limits: options.limits,
            queue_bytes_max: (arc_max_bytes / QUEUE_SHARE).clamp(QUEUE_BYTES_MIN, QUEUE_BYTES_MAX),
            // The savings of compression and the waste of small files come to about half.
            expected_record_bytes: record_size_bytes / 2,
            index_bytes_max: (arc_max_bytes / INDEX_SHARE).max(1 << 20),
            ..StoreOptions::default()
        };
        let tier_options = TierOptions { store, ..TierOptions::default() };
        let (tier, paths) = options.open(source, &tier_options)?;
        let devices = Devices::new(options.clone(), source, mount_point);
        let names = tier.devices().into_iter().map(|device| device.device);
        devices.are(paths.into_iter().zip(names).collect());
        Ok(Some(Self { tier, record_size_bytes, devices }))
    }

    /// The secret that makes versions unpredictable: the devices' own, so that their records are
    /// found again, or a new one for this mount alone.
    ///
    /// # Errors
    /// If there is no second level and the system has no random bytes.
    pub(crate) fn version_secret(this: Option<&Self>) -> Result<VersionSecret, SecondLevelError> {
        if let Some(this) = this {
            return Ok(VersionSecret::new(*this.tier.version_secret()));
        }
        let random = MasterKey::random().map_err(SecondLevelError::Random)?;
        Ok(VersionSecret::new(*random.expose()))
    }

    /// The ciphers of its devices in words, each of them once.
    fn ciphers(&self) -> String {
        let mut names: Vec<_> = self.tier.ciphers().iter().map(|cipher| cipher.name()).collect();
        names.sort_unstable();
        names.dedup();
        names.join(", ")
    }

    /// For the control directory; nothing secret.
    pub(crate) fn describe(&self) -> serde_json::Value {
        self.devices.options.describe(&self.paths(), &self.ciphers())
    }

    fn name(&self, version: Version, index: u64) -> [u8; 32] {
        let mut name = [0; 32];
        name[..16].copy_from_slice(&version.to_le_bytes());
        name[16..24].copy_from_slice(&index.to_le_bytes());
        name[24..].copy_from_slice(&self.record_size_bytes.to_le_bytes());
        name
    }

    /// Whether the index has an entry that may be this record.
    pub(crate) fn may_have(&self, version: Version, index: u64) -> bool {
        self.tier.may_have(&self.name(version, index))
    }

    /// Reads a record, if it is there and `may_be_asked`.
    pub(crate) fn read(&self, version: Version, index: u64, may_be_asked: bool) -> Option<Vec<u8>> {
        self.read_by(may_be_asked, || self.tier.read(&self.name(version, index)))
    }

    /// The same on a thread of the second level ([`Tier::read_here`]).
    pub(crate) fn read_here(
        &self,
        version: Version,
        index: u64,
        may_be_asked: bool,
    ) -> Option<Vec<u8>> {
        self.read_by(may_be_asked, || self.tier.read_here(&self.name(version, index)))
    }

    fn read_by(
        &self,
        may_be_asked: bool,
        read: impl FnOnce() -> Option<Vec<u8>>,
    ) -> Option<Vec<u8>> {
        if !may_be_asked {
            self.tier.note_miss();
            return None;
        }
        read().filter(|bytes| bytes.len() as u64 <= self.record_size_bytes)
    }

    /// Notes a miss of the first level for which this one is not asked.
    pub(crate) fn note_miss(&self) {
        self.tier.note_miss();
    }

    /// The worth of a record at `start`, whose bytes are known to be its version's.
    pub(crate) fn worth(&self, start: u64, sequential: bool) -> Worth {
        if sequential && start >= SEQUENTIAL_CUTOFF_BYTES { Worth::Passing } else { Worth::Lasting }
    }

    /// The rules about files that may go there.
    pub(crate) fn rules(&self) -> &PathRules {
        &self.devices.options.paths
    }

    /// Notes a record that may not go there because of its file's path.
    pub(crate) fn note_refused_path(&self) {
        self.tier.note_refused_path();
    }

    /// Takes an evicted entry and offers it to the tier, if it is a record that may be kept.
    pub(crate) fn on_evict(&self, eviction: Eviction<Key, Entry>) {
        let worth = match &*eviction.value {
            Entry::Record(_, worth) => *worth,
            Entry::Link(_) | Entry::Listing(_) => Worth::Fleeting,
        };
        if worth == Worth::Fleeting {
            self.tier.note_ineligible(eviction.weight_bytes);
            return;
        }
        let offered = Offered {
            frequent: eviction.list == List::Mfu,
            unused_prefetch: eviction.prefetched,
            sequential: worth == Worth::Passing,
        };
        let name = self.name(eviction.key.version, eviction.key.index);
        self.tier.offer(&name, Arc::new(Evicted(eviction.value)), offered);
    }

    /// Seals the open segment and ends the threads.
    pub(crate) fn close(&self) {
        self.tier.close();
    }
}

impl Prune for SecondLevel {
    fn prune(&self, want_bytes: u64) -> PruneResult {
        let shrunk = self.tier.shrink_index(want_bytes);
        PruneResult {
            examined: shrunk.records,
            freed_bytes: shrunk.bytes,
            freed_objects: shrunk.records,
            held: 0,
        }
    }
}

#[cfg(test)]
mod tests;
