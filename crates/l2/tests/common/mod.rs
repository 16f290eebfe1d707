//! Helpers that the tests of promises share.
#![allow(dead_code, clippy::unwrap_used)]

use ogive_l2::device::{Device, foreign_contents};
use ogive_l2::format::FormatError;
use ogive_l2::{
    Admission, Cipher, Clock, DeviceError, FormatPolicy, KeySource, MasterKey, Offered,
    OpenOptions, StoreOptions, Tier, TierOptions, format_device_from, read_superblock,
};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A log of seven segments of 1 MiB.
pub(crate) const DEVICE_BYTES: u64 = 8 << 20;

/// Waits for an event that has to come; a late one proves nothing.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// How long a device that fails is left alone at first.
pub(crate) const PAUSE: Duration = Duration::from_millis(20);

pub(crate) fn key(number: u8) -> KeySource {
    KeySource::Master(MasterKey::from_material(&[number; 32]).unwrap())
}

pub(crate) fn how(cipher: Cipher) -> OpenOptions {
    OpenOptions { cipher: Some(cipher), key: key(1), ..OpenOptions::default() }
}

/// Time stands still: nothing is slow, nothing is written because nothing came for long, and a
/// device that is bypassed stays so.
pub(crate) fn options() -> TierOptions {
    options_at(&Clock::played())
}

/// The same by a clock that the test moves on.
pub(crate) fn options_at(clock: &Clock) -> TierOptions {
    let store = StoreOptions {
        admission: Admission::All,
        expected_record_bytes: 2048,
        bypass_pause: PAUSE,
        linger: Duration::from_secs(3600),
        close_patience: LONG,
        clock: clock.clone(),
        ..StoreOptions::default()
    };
    TierOptions { store, read_patience: LONG, threads_max: 2 }
}

/// Formats an empty device, as its opening would, but with a number in place of all random bytes.
/// Returns the options to open it with.
///
/// The index keeps twenty bits of a key, and keys are other ones with each format. In one of some
/// thousand fills, two records look the same to the index, and the later one is refused as cached
/// already. Which records share a slot, and which device has which, is the same every time with a
/// number. No two devices of a tier may have the same.
pub(crate) fn ready(
    device: Arc<dyn Device>,
    number: u64,
    mut how: OpenOptions,
) -> Result<(Arc<dyn Device>, OpenOptions), DeviceError> {
    let is_blank = matches!(read_superblock(&*device), Ok(Err(FormatError::Foreign)))
        && matches!(foreign_contents(&*device), Ok(None));
    if is_blank && how.format != FormatPolicy::Never {
        format_device_from(&device, &how, number)?;
        how.format = FormatPolicy::IfEmpty;
    }
    Ok((device, how))
}

pub(crate) fn open(device: &Arc<impl Device + 'static>) -> Tier {
    open_as(device, how(Cipher::Gcm)).unwrap()
}

pub(crate) fn open_as(
    device: &Arc<impl Device + 'static>,
    how: OpenOptions,
) -> Result<Tier, DeviceError> {
    open_with(vec![ready(device.clone(), 0, how)?], options())
}

pub(crate) fn open_with(
    devices: Vec<(Arc<dyn Device>, OpenOptions)>,
    options: TierOptions,
) -> Result<Tier, DeviceError> {
    let tier = Tier::open(devices, options).map_err(|(_, error)| error)?;
    assert!(tier.settle(), "recovery ends");
    Ok(tier)
}

/// Waits for something that has to come.
pub(crate) fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + LONG;
    while !is_so() {
        assert!(Instant::now() < deadline, "not within {LONG:?}: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Name of a record of an object's version.
pub(crate) fn name(object: u64, version: u64) -> Vec<u8> {
    format!("object {object} version {version}").into_bytes()
}

/// The origin's bytes of a name: half of them compress.
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
pub(crate) fn fill(tier: &Tier, count: u64, length: usize) {
    for object in 0..count {
        assert!(put(tier, object, 1, length), "record {object} is taken: {:?}", tier.counts());
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
