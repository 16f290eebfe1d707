//! What the tests of promises share.
#![allow(dead_code, clippy::unwrap_used)]

use ogive_l2::device::Device;
use ogive_l2::{
    Admission, Cipher, DeviceError, KeySource, MasterKey, Offered, OpenOptions, StoreOptions, Tier,
    TierOptions,
};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// A log of seven segments of 1 MiB.
pub(crate) const DEVICE_BYTES: u64 = 8 << 20;

pub(crate) fn key(number: u8) -> KeySource {
    KeySource::Master(MasterKey::from_material(&[number; 32]).unwrap())
}

pub(crate) fn how(cipher: Cipher) -> OpenOptions {
    OpenOptions { cipher: Some(cipher), key: key(1), ..OpenOptions::default() }
}

pub(crate) fn options() -> TierOptions {
    let store = StoreOptions {
        admission: Admission::All,
        expected_record_bytes: 2048,
        bypass_pause: Duration::from_millis(20),
        ..StoreOptions::default()
    };
    TierOptions { store, read_patience: Duration::from_secs(10), threads_max: 2 }
}

pub(crate) fn open(device: &Arc<impl Device + 'static>) -> Tier {
    open_as(device, how(Cipher::Gcm)).unwrap()
}

pub(crate) fn open_as(
    device: &Arc<impl Device + 'static>,
    how: OpenOptions,
) -> Result<Tier, DeviceError> {
    let device: Arc<dyn Device> = device.clone();
    let tier = Tier::open(vec![(device, how)], options()).map_err(|(_, error)| error)?;
    assert!(tier.settle(), "recovery ends");
    Ok(tier)
}

thread_local! {
    /// How often an object had to be named anew, see [`fill`].
    static NAMED_ANEW: RefCell<HashMap<u64, u32>> = RefCell::default();
}

/// Name of a record of an object's version.
pub(crate) fn name(object: u64, version: u64) -> Vec<u8> {
    let anew = NAMED_ANEW.with_borrow(|anew| anew.get(&object).copied().unwrap_or(0));
    format!("object {object}{} version {version}", "'".repeat(anew as usize)).into_bytes()
}

/// What the origin has under a name: half of it compresses.
pub(crate) fn contents(object: u64, version: u64, length: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(object << 20 | version);
    let mut bytes = vec![(object + version) as u8; length];
    random.fill(&mut bytes[length / 2..]);
    bytes
}

pub(crate) fn put(tier: &Tier, object: u64, version: u64, length: usize) -> bool {
    let bytes = contents(object, version, length);
    tier.offer(&name(object, version), Arc::new(bytes), Offered::default())
}

/// Whether the record is there; if it is, it is right. Records of odd objects are read on this
/// thread.
pub(crate) fn holds(tier: &Tier, object: u64, version: u64, length: usize) -> bool {
    let name = name(object, version);
    let bytes = if object.is_multiple_of(2) { tier.read(&name) } else { tier.read_here(&name) };
    match bytes {
        Some(bytes) => {
            assert!(bytes == contents(object, version, length), "wrong bytes: {object} {version}");
            true
        }
        None => false,
    }
}

/// Puts records 0..count, all of which are on the device afterwards.
///
/// The index keeps twenty bits of a key, and keys are other ones with each format. So of some
/// thousand fills one has two records that the index cannot tell apart, and the later one is
/// refused as cached already. That is what the index promises; the object gets another name here.
pub(crate) fn fill(tier: &Tier, count: u64, length: usize) {
    for object in 0..count {
        let before = tier.counts();
        if !put(tier, object, 1, length) {
            let counts = tier.counts();
            let is_cached = counts.evict_l2_cached > before.evict_l2_cached;
            assert!(is_cached, "record {object} is taken: {counts:?}");
            NAMED_ANEW.with_borrow_mut(|anew| *anew.entry(object).or_default() += 1);
            assert!(put(tier, object, 1, length), "record {object} is taken by another name");
        }
        if object % 256 == 255 {
            assert!(tier.settle());
        }
    }
    assert!(tier.settle());
}

/// How many of the records 0..count are there.
pub(crate) fn found(tier: &Tier, count: u64, length: usize) -> u64 {
    (0..count).filter(|object| holds(tier, *object, 1, length)).count() as u64
}
