//! The same promises on files: with O_DIRECT and io_uring, with O_DIRECT alone, and through the
//! page cache. Where the system refuses one of them, the next best is what is tested.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::*;
use ogive_l2::device::{self, Device, Engine, OpenError, OpenMode};
use ogive_l2::{Cipher, OpenOptions, Tier, Verification, verify};
use std::path::Path;
use std::sync::Arc;

const ENGINES: [Engine; 3] = [Engine::Probe, Engine::Pread, Engine::Buffered];

fn directory() -> tempfile::TempDir {
    // Not a tmpfs where there is another place: there O_DIRECT means nothing.
    tempfile::tempdir_in("/var/tmp").or_else(|_| tempfile::tempdir()).unwrap()
}

fn sized() -> OpenOptions {
    OpenOptions { size_bytes: Some(16 << 20), ..how(Cipher::Gcm) }
}

fn open_file(path: &Path, engine: Engine) -> Tier {
    let device = device::open(path, OpenMode::Create, engine).unwrap();
    open_with(vec![ready(device, 0, sized()).unwrap()], options()).unwrap()
}

#[test]
fn every_engine_reads_the_records_of_every_other() {
    let directory = directory();
    for writer in ENGINES {
        let path = directory.path().join(format!("{writer:?}"));
        let tier = open_file(&path, writer);
        fill(&tier, 300, 20_000);
        assert_eq!(found(&tier, 300, 20_000), 300, "{writer:?}");
        drop(tier);
        for reader in ENGINES {
            let tier = open_file(&path, reader);
            assert_eq!(found(&tier, 300, 20_000), 300, "{writer:?} then {reader:?}");
        }
    }
}

#[test]
fn many_readers_at_once_all_get_theirs() {
    let directory = directory();
    for engine in ENGINES {
        let tier = open_file(&directory.path().join(format!("{engine:?}")), engine);
        fill(&tier, 300, 20_000);
        std::thread::scope(|scope| {
            for reader in 0..8 {
                let tier = &tier;
                scope.spawn(move || {
                    for number in 0..300 {
                        assert!(holds(tier, (number * 7 + reader) % 300, 1, 20_000));
                    }
                });
            }
        });
        assert_eq!(tier.counts().l2_hits, 2400, "{engine:?}");
    }
}

#[test]
fn devices_of_unequal_size_take_by_their_share_and_wear_alike() {
    // Seven segments of 1 MiB, and four times as many.
    let sizes = [DEVICE_BYTES, (4 * 7 + 1) << 20];
    let devices = (0..).zip(sizes).map(|(number, bytes)| {
        ready(Arc::new(device::MemoryDevice::new(bytes)), number, how(Cipher::Gcm)).unwrap()
    });
    let tier = open_with(devices.collect(), options()).unwrap();
    fill(&tier, 2000, 4000);
    assert_eq!(found(&tier, 2000, 4000), 2000);
    let usage = tier.usage();
    // A fifth of them, and by chance 18 more or fewer.
    let records = usage[0].records;
    assert!((250..550).contains(&records), "{records} of 2000 are on the smaller one");
    assert_eq!(records + usage[1].records, 2000);
    // Twice as much as there is room for: both are full of what came last.
    for object in 2000..9000 {
        put(&tier, object, 1, 16_000);
        if object % 64 == 63 {
            assert!(tier.settle());
        }
    }
    assert!(tier.settle());
    for (usage, bytes) in tier.usage().iter().zip(sizes) {
        assert!(usage.stored_bytes > bytes / 2, "{} of {bytes} bytes in use", usage.stored_bytes);
    }
}

#[test]
fn many_reads_at_once_fill_their_own_buffers_and_the_end_is_an_error() {
    let directory = directory();
    for engine in ENGINES {
        let path = directory.path().join(format!("{engine:?}"));
        let device = device::open(&path, OpenMode::Create, engine).unwrap();
        device.set_len_bytes(1 << 20).unwrap();
        let mut page = device::AlignedBuffer::zeroed(4096);
        for number in 0..256_u64 {
            page.bytes_mut().fill(number as u8);
            device.write_at(number * 4096, page.bytes()).unwrap();
        }
        let mut buffers: Vec<_> = (0..100).map(|_| device::AlignedBuffer::zeroed(4096)).collect();
        let mut reads: Vec<_> = buffers
            .iter_mut()
            .zip((0..).map(|number| number * 3 * 4096))
            .map(|(buffer, offset)| device::ReadRequest {
                offset,
                buffer: buffer.bytes_mut(),
                result: Ok(()),
            })
            .collect();
        device.read_many(&mut reads);
        for (number, read) in (0..).zip(reads) {
            let inside = number * 3 < 256;
            assert_eq!(read.result.is_ok(), inside, "{engine:?}, {number}");
            assert!(!inside || read.buffer.iter().all(|byte| *byte == (number * 3) as u8));
        }
    }
}

#[test]
fn a_file_that_was_made_and_not_used_is_removed() {
    let directory = directory();
    for engine in ENGINES {
        let path = directory.path().join(format!("{engine:?}"));
        let make = || device::open(&path, OpenMode::Create, engine).unwrap();
        drop(make());
        assert!(!path.exists(), "{engine:?}");
        make().set_len_bytes(4096).unwrap();
        assert!(path.exists(), "{engine:?}: it has a size");
        // A file that was there before has an owner, even if it is empty.
        std::fs::write(&path, "").unwrap();
        drop(make());
        assert!(path.exists(), "{engine:?}: it was not made here");
        std::fs::remove_file(&path).unwrap();
        let made = make();
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "").unwrap();
        drop(made);
        assert!(path.exists(), "{engine:?}: another file has the name");
    }
}

#[test]
fn a_device_has_one_user_and_others_may_look() {
    let directory = directory();
    let path = directory.path().join("device");
    let tier = open_file(&path, Engine::Probe);
    let second = device::open(&path, OpenMode::Write, Engine::Probe);
    assert!(matches!(second, Err(OpenError::Busy { .. })));
    let verifier = device::open(&path, OpenMode::ReadAlone, Engine::Probe);
    assert!(matches!(verifier, Err(OpenError::Busy { .. })));
    let looker = device::open(&path, OpenMode::Read, Engine::Pread).unwrap();
    assert!(ogive_l2::read_superblock(&*looker).unwrap().is_ok());
    drop(tier);
    assert!(device::open(&path, OpenMode::Write, Engine::Probe).is_ok());
    let kind = device::open(directory.path(), OpenMode::Create, Engine::Probe);
    assert!(matches!(kind, Err(OpenError::Kind { .. })));
}

#[test]
fn verifying_counts_whole_and_damaged_records() {
    let directory = directory();
    let path = directory.path().join("device");
    fill(&open_file(&path, Engine::Probe), 100, 20_000);
    let check = || -> Verification {
        let device = device::open(&path, OpenMode::ReadAlone, Engine::Probe).unwrap();
        verify(&device, &how(Cipher::Gcm), |_, _| true).unwrap()
    };
    let before = check();
    assert_eq!((before.records, before.bad_records), (100, 0));
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.windows(4).position(|bytes| bytes == b"OGrc").unwrap();
    bytes[at + 100] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let after = check();
    assert_eq!((after.records, after.bad_records), (99, 1));
}

/// Noise, an older copy and a shorter file, behind the back of a tier that is using it.
#[test]
fn any_damage_to_an_open_file_is_a_miss_on_every_engine() {
    use std::io::{Seek as _, SeekFrom, Write as _};
    let directory = directory();
    for engine in ENGINES {
        let path = directory.path().join(format!("{engine:?}"));
        let tier = open_file(&path, engine);
        fill(&tier, 100, 20_000);
        let older = std::fs::read(&path).unwrap();
        for object in 0..900 {
            put(&tier, object, 2, 20_000);
            if object % 50 == 0 {
                assert!(tier.settle());
            }
        }
        assert!(tier.settle());
        let young = |tier: &Tier| (0..900).filter(|n| holds(tier, *n, 2, 20_000)).count();
        let before = young(&tier);
        assert!(before > 500, "{engine:?}: {before}");

        let overwrite = |from: usize, bytes: &[u8]| {
            let mut file = std::fs::File::options().write(true).open(&path).unwrap();
            file.seek(SeekFrom::Start(from as u64)).unwrap();
            file.write_all(bytes).unwrap();
            file.sync_all().unwrap();
        };
        let mut noise = vec![0; 3 << 20];
        fastrand::Rng::with_seed(8).fill(&mut noise);
        overwrite(4 << 20, &noise);
        let left = young(&tier);
        assert!(left < before && left > 0, "{engine:?}: {left} of {before} after noise");
        overwrite(1 << 20, &older[1 << 20..4 << 20]);
        found(&tier, 100, 20_000);
        assert!(young(&tier) < left, "{engine:?}: an older copy has nothing young");
        let counts = tier.counts();
        assert!(counts.l2_cksum_bad + counts.l2_stale > 0, "{engine:?}: {counts:?}");

        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.set_len(1 << 20).unwrap();
        assert_eq!(young(&tier), 0, "{engine:?}: nothing is left of a file that was truncated");
        drop(tier);
        // And it is a second level again for the next.
        let tier = open_file(&path, engine);
        fill(&tier, 50, 20_000);
        assert_eq!(found(&tier, 50, 20_000), 50, "{engine:?}");
    }
}

#[test]
fn a_lost_file_starts_empty() {
    let directory = directory();
    let path = directory.path().join("device");
    let tier = open_file(&path, Engine::Probe);
    fill(&tier, 50, 20_000);
    std::fs::remove_file(&path).unwrap();
    // A process that has it open goes on; the next one finds nothing.
    assert_eq!(found(&tier, 50, 20_000), 50);
    drop(tier);
    let tier = open_file(&path, Engine::Probe);
    assert_eq!(found(&tier, 50, 20_000), 0);
    let device: Arc<dyn Device> = device::open(&path, OpenMode::Read, Engine::Pread).unwrap();
    assert_eq!(device.len_bytes().unwrap(), 16 << 20);
}
