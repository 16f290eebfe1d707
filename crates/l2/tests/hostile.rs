//! An attacker who holds the device chooses every byte of it. The tests try what that can make a
//! tier do.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::*;
use ogive_l2::device::{Device, MemoryDevice};
use ogive_l2::format::{FormatError, SUPERBLOCK_PLACES, SegmentHeader, Superblock};
use ogive_l2::{
    Cipher, DeviceError, FormatPolicy, KdfParameters, KeySource, OpenOptions, Tier, change_key,
    format_device, read_superblock, verify,
};
use std::sync::Arc;

const RECORD: usize = 8 << 10;

fn memory() -> Arc<MemoryDevice> {
    Arc::new(MemoryDevice::new(DEVICE_BYTES))
}

/// The options of a usual mount: a key and nothing else.
fn usual() -> OpenOptions {
    OpenOptions { key: key(1), ..OpenOptions::default() }
}

fn unsealed() -> OpenOptions {
    OpenOptions { cipher: Some(Cipher::Off), format: FormatPolicy::Force, ..OpenOptions::default() }
}

fn dynamic(device: &Arc<MemoryDevice>) -> Arc<dyn Device> {
    device.clone()
}

/// Writes a superblock with a right checksum over one copy.
fn forge(device: &MemoryDevice, place: u64, change: impl FnOnce(&mut Superblock)) {
    let mut superblock = read_superblock(device).unwrap().unwrap();
    change(&mut superblock);
    let bytes = superblock.to_bytes(|_| [0x5a; 16]);
    device.write_at(place, &bytes).unwrap();
}

#[test]
fn an_unsealed_device_is_never_used_where_a_seal_is_required() {
    let device = memory();
    fill(&open_as(&device, usual()).unwrap(), 30, RECORD);
    // An attacker can write to the device, and has no key.
    format_device(&dynamic(&device), &unsealed()).unwrap();
    let before = device.contents();
    for format in [FormatPolicy::IfEmpty, FormatPolicy::Never] {
        for cipher in [None, Some(Cipher::Gcm)] {
            let refused = open_as(&device, OpenOptions { cipher, format, ..usual() }).unwrap_err();
            assert!(matches!(refused, DeviceError::Unsealed), "{refused}");
            assert!(refused.to_string().contains("--cipher off"), "{refused}");
        }
        let keyless = OpenOptions { format, ..OpenOptions::default() };
        assert!(matches!(open_as(&device, keyless), Err(DeviceError::Unsealed)));
    }
    assert!(matches!(verify(&dynamic(&device), &usual(), |_, _| true), Err(DeviceError::Unsealed)));
    assert!(device.contents() == before, "nothing was written to it");
    let asked_for = OpenOptions { format: FormatPolicy::IfEmpty, ..unsealed() };
    assert_eq!(open_as(&device, asked_for).unwrap().ciphers(), [Cipher::Off]);
}

#[test]
fn a_sealed_device_is_not_used_without_its_seals() {
    let device = memory();
    fill(&open_as(&device, usual()).unwrap(), 30, RECORD);
    let off = OpenOptions { format: FormatPolicy::IfEmpty, ..unsealed() };
    assert!(matches!(open_as(&device, off), Err(DeviceError::WrongCipher { .. })));
    assert_eq!(found(&open_as(&device, usual()).unwrap(), 30, RECORD), 30);
}

#[test]
fn a_forged_copy_of_the_superblock_decides_nothing() {
    let forgeries: [fn(&mut Superblock); 8] = [
        |copy| copy.segments = 3,
        |copy| copy.segments = 1 << 20,
        |copy| copy.segment_bytes = 2 << 20,
        |copy| copy.cipher = Cipher::Off,
        |copy| copy.device = [7; 16],
        |copy| copy.keyring = [0; _],
        |copy| copy.salt = [7; 32],
        |copy| copy.kdf = Some(KdfParameters { memory_kib: 4 << 20, passes: 64, lanes: 1 }),
    ];
    let device = memory();
    fill(&open_as(&device, usual()).unwrap(), 30, RECORD);
    let good = device.contents();
    for (number, change) in forgeries.into_iter().enumerate() {
        for place in SUPERBLOCK_PLACES {
            // It says that it is younger than the good one.
            forge(&device, place, |copy| {
                copy.generation = u64::MAX;
                change(copy);
            });
            let tier = open_as(&device, usual()).unwrap();
            assert_eq!(found(&tier, 30, RECORD), 30, "forgery {number} at {place}");
            assert_eq!(tier.ciphers(), [Cipher::Gcm]);
            drop(tier);
            device.tamper(|bytes| bytes.copy_from_slice(&good));
        }
        SUPERBLOCK_PLACES.iter().for_each(|place| forge(&device, *place, change));
        let forged = device.contents();
        let refused = open_as(&device, usual()).unwrap_err();
        assert!(
            refused.to_string().contains("ogive l2 format --force")
                || refused.to_string().contains("give that"),
            "forgery {number}: {refused}"
        );
        assert!(device.contents() == forged, "forgery {number}: nothing was written");
        device.tamper(|bytes| bytes.copy_from_slice(&good));
    }
    assert_eq!(found(&open_as(&device, usual()).unwrap(), 30, RECORD), 30);
}

/// Every byte of a superblock that means anything, changed with the checksum put right.
#[test]
fn every_byte_of_the_superblock_is_vouched_for() {
    let device = memory();
    fill(&open_as(&device, usual()).unwrap(), 5, RECORD);
    let good = device.contents();
    for byte in 0..216 {
        for place in SUPERBLOCK_PLACES {
            device.tamper(|bytes| {
                let copy = &mut bytes[place as usize..][..4096];
                copy[byte] ^= 1;
                let checksum = crc32c::crc32c(&copy[..216]);
                copy[216..220].copy_from_slice(&checksum.to_le_bytes());
            });
        }
        // A superblock without its shape is damaged, and the device starts empty; one with its
        // shape is refused.
        let has_shape = read_superblock(&*device).unwrap();
        let opened = Tier::open(vec![(device.clone(), usual())], options());
        match has_shape {
            Err(FormatError::Damaged) => assert!(opened.is_ok(), "byte {byte}"),
            _ => assert!(opened.is_err(), "byte {byte}"),
        }
        drop(opened);
        device.tamper(|bytes| bytes.copy_from_slice(&good));
    }
}

#[test]
fn another_format_is_refused_with_words_and_left_alone() {
    for version in [1_u32, 3, u32::MAX] {
        let device = memory();
        fill(&open_as(&device, usual()).unwrap(), 5, RECORD);
        for place in SUPERBLOCK_PLACES {
            device.write_at(place + 8, &version.to_le_bytes()).unwrap();
        }
        let before = device.contents();
        let refused = open_as(&device, usual()).unwrap_err().to_string();
        assert!(refused.contains(&format!("version {version}")), "{refused}");
        assert!(refused.contains("ogive l2 format --force"), "{refused}");
        assert!(device.contents() == before);
    }
}

#[test]
fn a_cipher_that_is_not_known_is_refused_and_nothing_is_written() {
    for (number, name) in [(2_u32, "AES-256-CCM"), (7, "cipher number 7")] {
        let device = memory();
        fill(&open_as(&device, usual()).unwrap(), 5, RECORD);
        for place in SUPERBLOCK_PLACES {
            device.tamper(|bytes| {
                let copy = &mut bytes[place as usize..][..4096];
                copy[12..16].copy_from_slice(&number.to_le_bytes());
                let checksum = crc32c::crc32c(&copy[..216]);
                copy[216..220].copy_from_slice(&checksum.to_le_bytes());
            });
        }
        let before = device.contents();
        for cipher in [None, Some(Cipher::Gcm), Some(Cipher::Off)] {
            let refused = open_as(&device, OpenOptions { cipher, ..usual() }).unwrap_err();
            let refused = refused.to_string();
            assert!(refused.contains(name), "{refused}");
            assert!(refused.contains("ogive l2 format --force"), "{refused}");
        }
        assert!(device.contents() == before);
    }
}

#[test]
fn a_key_derivation_that_costs_too_much_is_not_begun() {
    let passphrase = |memory_kib, passes| {
        let parameters = KdfParameters { memory_kib, passes, lanes: 1 };
        let typed = zeroize::Zeroizing::new(b"correct horse".to_vec());
        KeySource::Passphrase(typed.into(), parameters)
    };
    let device = memory();
    let cheap = OpenOptions { key: passphrase(64, 1), ..OpenOptions::default() };
    fill(&open_as(&device, cheap.clone()).unwrap(), 5, RECORD);
    let costly = KdfParameters { memory_kib: 4 << 20, passes: 64, lanes: 1 };
    SUPERBLOCK_PLACES
        .iter()
        .for_each(|place| forge(&device, *place, |copy| copy.kdf = Some(costly)));
    // 256 GiB would have to be filled: had it been begun, the test would not end.
    let refused = open_as(&device, cheap.clone()).unwrap_err();
    assert!(matches!(refused, DeviceError::Costly { memory_kib: 4_194_304, passes: 64 }));
    assert!(refused.to_string().contains("--l2-kdf-max 262145M"), "{refused}");
    // The limit is on the product, and the owner can raise it.
    let device = memory();
    let dear = OpenOptions { key: passphrase(1024, 3), kdf_work_max_kib: 3072, ..cheap };
    fill(&open_as(&device, dear.clone()).unwrap(), 5, RECORD);
    let less = OpenOptions { kdf_work_max_kib: 3071, ..dear.clone() };
    assert!(matches!(open_as(&device, less), Err(DeviceError::Costly { .. })));
    assert_eq!(found(&open_as(&device, dear).unwrap(), 5, RECORD), 5);
}

/// A device that may be read only.
#[derive(Debug)]
struct ReadOnly(Arc<MemoryDevice>);

impl Device for ReadOnly {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<()> {
        self.0.read_at(offset, buffer)
    }

    fn write_at(&self, _: u64, _: &[u8]) -> std::io::Result<()> {
        panic!("verifying writes")
    }

    fn flush(&self) -> std::io::Result<()> {
        panic!("verifying flushes")
    }

    fn len_bytes(&self) -> std::io::Result<u64> {
        self.0.len_bytes()
    }

    fn set_len_bytes(&self, _: u64) -> std::io::Result<()> {
        panic!("verifying resizes")
    }

    fn engine(&self) -> &'static str {
        "read only"
    }
}

#[test]
fn verifying_writes_nothing_and_believes_no_size() {
    for (how, cipher) in [(usual(), None), (unsealed(), Some(Cipher::Off))] {
        let device = memory();
        fill(&open_as(&device, how.clone()).unwrap(), 900, RECORD);
        device.set_len_bytes(4 << 20).unwrap();
        let looked_at: Arc<dyn Device> = Arc::new(ReadOnly(device.clone()));
        let how = OpenOptions { cipher, ..how };
        let mut all = 0;
        let found = verify(&looked_at, &how, |_, segments| {
            all = segments;
            true
        });
        let found = found.unwrap();
        assert!(all == 3 && found.segments <= 3 && found.records > 0, "{all}, {found:?}");
        assert_eq!(device.len_bytes().unwrap(), 4 << 20);
    }
}

#[test]
fn all_devices_make_versions_with_one_secret_and_keep_it() {
    let open = |devices: &[&Arc<MemoryDevice>]| {
        let all = devices.iter().map(|device| (dynamic(device), usual()));
        Tier::open(all.collect(), options()).unwrap()
    };
    let [one, two, three] = [memory(), memory(), memory()];
    let secret = *open(&[&one, &two]).version_secret();
    assert_ne!(secret, [0; 32]);
    for together in [&[&one, &two][..], &[&two, &one], &[&two], &[&one], &[&three, &two]] {
        assert_eq!(*open(together).version_secret(), secret, "what is new adopts the others'");
    }
    assert_eq!(*open(&[&three]).version_secret(), secret, "and keeps it");
    let other = memory();
    let others = *open(&[&other]).version_secret();
    assert_ne!(others, secret, "another installation's is another");
    // Two that were used apart: the first one's, from now on.
    assert_eq!(*open(&[&other, &one]).version_secret(), others);
    assert_eq!(*open(&[&one]).version_secret(), others);
    let in_clear = |device: &MemoryDevice, secret: &[u8]| {
        device.contents().windows(secret.len()).any(|bytes| bytes == secret)
    };
    assert!([&one, &two, &three].iter().all(|device| !in_clear(device, &secret[..8])));
    let forgotten = *open_as(&one, OpenOptions { format: FormatPolicy::Force, ..usual() })
        .unwrap()
        .version_secret();
    assert!(forgotten != secret && forgotten != others, "formatting forgets it");
}

/// A device of 126 segments of 1 MiB, more than a hundred of them full.
fn full() -> Arc<MemoryDevice> {
    let device = Arc::new(MemoryDevice::new(127 << 20));
    let tier = open_as(&device, usual()).unwrap();
    for object in 0..5500 {
        put(&tier, object, 1, 40_000);
        if object % 100 == 0 {
            assert!(tier.settle());
        }
    }
    assert!(tier.settle());
    drop(tier);
    device
}

/// Each segment of a device, with its number.
fn each_segment(device: &MemoryDevice, mut change: impl FnMut(usize, &mut [u8])) {
    let segment_bytes = read_superblock(device).unwrap().unwrap().segment_bytes as usize;
    device.tamper(|bytes| {
        for (number, segment) in bytes[1 << 20..].chunks_exact_mut(segment_bytes).enumerate() {
            change(number, segment);
        }
    });
}

fn wipe_trailer(segment: &mut [u8]) {
    let end = segment.len();
    segment[end - 4096..].fill(0);
}

#[test]
fn headers_without_a_seal_are_not_followed() {
    let device = full();
    each_segment(&device, |_, segment| {
        wipe_trailer(segment);
        // At every place a record could begin, one that claims to be long.
        for (number, unit) in (0_u32..).zip(segment[4096..].chunks_exact_mut(512)) {
            unit[..8].copy_from_slice(b"OGrc\0\0\0\0");
            unit[8..32].fill(number as u8);
            unit[32..36].copy_from_slice(&number.to_le_bytes());
            unit[36..40].copy_from_slice(&(256_u32 << 10).to_le_bytes());
            unit[40..44].copy_from_slice(&(256_u32 << 10).to_le_bytes());
        }
    });
    let tier = open_as(&device, usual()).unwrap();
    let counts = tier.counts();
    assert_eq!((counts.l2_rebuild_bufs, counts.l2_rebuild_log_blks), (0, 0));
    // Of 260,000 headers one in four billion passes by chance.
    assert!(counts.l2_rebuild_unseals <= 1, "{counts:?}");
}

#[test]
fn segments_without_an_end_are_read_through_up_to_a_limit_and_youngest_first() {
    let device = full();
    let before = open_as(&device, usual()).unwrap().counts();
    assert!(before.l2_rebuild_log_blks > 100 && before.l2_rebuild_unseals == 0, "{before:?}");
    each_segment(&device, |_, segment| wipe_trailer(segment));
    let tier = open_as(&device, usual()).unwrap();
    let after = tier.counts();
    let share = after.l2_rebuild_bufs * before.l2_rebuild_log_blks / before.l2_rebuild_bufs;
    assert!((60..=66).contains(&share), "{share} instead of 64 segments: {after:?}");
    assert_eq!(after.l2_rebuild_unseals, after.l2_rebuild_bufs, "each record once");
    assert!((5400..5500).all(|object| holds(&tier, object, 1, 40_000)), "the youngest are there");
}

#[test]
fn a_record_that_breaks_its_promise_is_tried_once() {
    let device = full();
    let before = open_as(&device, usual()).unwrap().counts();
    each_segment(&device, |_, segment| {
        wipe_trailer(segment);
        for unit in segment.chunks_exact_mut(512).filter(|unit| unit.starts_with(b"OGrc")) {
            unit[100] ^= 1;
        }
    });
    let counts = open_as(&device, usual()).unwrap().counts();
    assert_eq!(counts.l2_rebuild_bufs, 0);
    let share = counts.l2_rebuild_unseals * before.l2_rebuild_log_blks / before.l2_rebuild_bufs;
    assert!((60..=66).contains(&share), "each record of 64 segments, {share}: {counts:?}");
}

/// Nothing of a header or trailer that a recovery goes by can be changed.
#[test]
fn every_byte_of_a_border_is_vouched_for() {
    let device = memory();
    fill(&open_as(&device, usual()).unwrap(), 30, RECORD);
    let good = device.contents();
    let header = 1 << 20;
    let trailer = (2 << 20) - 4096;
    for (start, end) in [(header, header + 112), (trailer, trailer + 80)] {
        for byte in (start..end).step_by(3) {
            device.tamper(|bytes| bytes[byte] ^= 0x10);
            let tier = open_as(&device, usual()).unwrap();
            let counts = tier.counts();
            assert_eq!(counts.l2_rebuild_log_blks, 0, "byte {} is believed", byte - start);
            let expected = if start == header { 0 } else { 30 };
            assert_eq!(found(&tier, 30, RECORD), expected, "byte {}", byte - start);
            drop(tier);
            device.tamper(|bytes| bytes.copy_from_slice(&good));
        }
    }
}

#[test]
fn drive_writes_are_one_account_over_all_mounts() {
    let device = Arc::new(MemoryDevice::new(33 << 20));
    let mut limited = options();
    limited.store.limits.drive_writes_per_day = Some(1.0);
    let mut written = 0;
    for mount in 0..12 {
        let all = vec![ready(device.clone(), 0, usual()).unwrap()];
        let tier = open_with(all, limited.clone()).unwrap();
        for object in 0..3000 {
            put(&tier, mount * 10_000 + object, 1, 20_000);
            if object % 100 == 0 {
                assert!(tier.settle());
            }
        }
        assert!(tier.settle());
        drop(tier);
        let bytes = device.contents();
        let headers = bytes[1 << 20..].chunks(1 << 20).filter_map(SegmentHeader::parse);
        written = headers.map(|header| header.account.sent_bytes).max().unwrap();
    }
    // The first fill, the least burst of 16 MiB once, and what a mount writes without being asked:
    // a header and a summary.
    assert!(written > 30 << 20 && written < (33 + 16 + 6) << 20, "{written} bytes in 12 mounts");
}

#[test]
fn a_change_of_key_keeps_the_records_and_refuses_the_old_key() {
    let device = memory();
    let tier = open_as(&device, usual()).unwrap();
    fill(&tier, 30, RECORD);
    let secret = *tier.version_secret();
    drop(tier);
    let old = device.contents();
    let second = OpenOptions { key: key(2), ..OpenOptions::default() };
    let refused = change_key(&dynamic(&device), &second, &key(3));
    assert!(matches!(refused, Err(DeviceError::WrongKey)), "without the key it cannot be changed");
    assert!(change_key(&dynamic(&device), &usual(), &KeySource::None).is_err());
    assert!(device.contents() == old, "and nothing was written");

    change_key(&dynamic(&device), &usual(), &key(2)).unwrap();
    let changed = device.contents();
    assert!(matches!(open_as(&device, usual()), Err(DeviceError::WrongKey)));
    let tier = open_as(&device, second.clone()).unwrap();
    assert!(found(&tier, 30, RECORD) == 30 && *tier.version_secret() == secret);
    drop(tier);
    // From a key to a passphrase.
    let typed = zeroize::Zeroizing::new(b"correct horse".to_vec());
    let parameters = KdfParameters { memory_kib: 64, passes: 1, lanes: 1 };
    let phrase = KeySource::Passphrase(typed.into(), parameters);
    change_key(&dynamic(&device), &second, &phrase).unwrap();
    assert!(matches!(open_as(&device, second.clone()), Err(DeviceError::WrongKind(_))));
    let typed = OpenOptions { key: phrase, ..OpenOptions::default() };
    assert_eq!(found(&open_as(&device, typed).unwrap(), 30, RECORD), 30);

    // The power goes between the two copies: both keys open it.
    for place in SUPERBLOCK_PLACES.map(|place| place as usize) {
        for how in [usual(), second.clone()] {
            let half = memory();
            half.tamper(|bytes| {
                bytes.copy_from_slice(&old);
                bytes[place..place + 4096].copy_from_slice(&changed[place..place + 4096]);
            });
            assert_eq!(found(&open_as(&half, how).unwrap(), 30, RECORD), 30);
        }
    }
}
