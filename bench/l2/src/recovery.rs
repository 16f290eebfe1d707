//! Recovery of the index: a million small records in memory, and 100 GiB on a disk.
//!
//! The large device is a sparse file. Its headers, summaries and trailers are made here by the byte
//! tables of `docs/l2-format.md`, with the public parts of the crate alone. So this is also a
//! second implementation of the format. The records themselves, which a recovery never reads, are
//! holes.

use crate::measure::{Rounds, process_cpu_ns, show};
use crate::{Failure, ROUNDS, tier};
use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::hkdf;
use ogive_l2::device::{self, AlignedBuffer, Device, Engine, MemoryDevice, OpenMode};
use ogive_l2::format::{
    NUMBER_OF_SUMMARY, SEGMENT_BLOCK_BYTES, SEGMENTS_START, SegmentHeader, SegmentTrailer,
    SummaryEntry, Superblock, WearAccount, record_units, summary_bytes,
};
use ogive_l2::{
    Cipher, Compression, FormatPolicy, KeySource, MasterKey, Offered, OpenOptions, Purpose,
    SegmentKey, Tier, format_device,
};
use std::path::Path;
use std::sync::Arc;

const LARGE_BYTES: u64 = 100 << 30;
/// The size of a record of 128 KiB that compresses to half.
const STORED_BYTES: u32 = 64 << 10;
const MASTER: [u8; 32] = [1; 32];

pub(crate) fn run(work: &Path) -> Result<(), Failure> {
    println!();
    a_million()?;
    a_hundred_gib(work)
}

fn a_million() -> Result<(), Failure> {
    const MANY: u64 = 1_000_000;
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new(640 << 20));
    let filled = tier(device.clone(), 600, Compression::Off)?;
    for number in 0..MANY {
        let bytes = Arc::new(vec![number as u8; 400]);
        let name = number.to_le_bytes();
        crate::measure::wait_for("room in the queue", || {
            filled.offer(&name, bytes.clone(), Offered::default()) || filled.may_have(&name)
        })?;
    }
    crate::measure::wait_for("the end of writing", || filled.settle())?;
    drop(filled);
    let (mut seconds, mut cpu) = (Rounds::new(), Rounds::new());
    let mut usage = None;
    for _ in 0..ROUNDS {
        let before = process_cpu_ns();
        let again = tier(device.clone(), 600, Compression::Off)?;
        let spent = process_cpu_ns() - before;
        let now = again.usage()[0];
        let millions = now.records as f64 / 1e6;
        seconds.push(now.recovery_ns as f64 / 1e9 / millions);
        cpu.push(spent as f64 / 1e9 / millions);
        usage = Some(now);
    }
    seconds.show("recovery of a million records, from memory", "s");
    cpu.show("  CPU", "s");
    let usage = usage.ok_or("there were no rounds")?;
    show("records found of a million", usage.records as f64, "");
    show("memory a record", usage.index_bytes as f64 / usage.records as f64, "bytes");
    Ok(())
}

fn a_hundred_gib(work: &Path) -> Result<(), Failure> {
    let path = work.join("large");
    std::fs::File::create(&path)?.set_len(LARGE_BYTES)?;
    let device = device::open(&path, OpenMode::Create, Engine::Probe)?;
    let how = OpenOptions {
        cipher: Some(Cipher::Gcm),
        key: KeySource::Master(MasterKey::from_material(&MASTER)?),
        format: FormatPolicy::Force,
        ..OpenOptions::default()
    };
    let superblock = format_device(&device, &how)?;
    write_segments(&*device, &superblock)?;
    let (mut seconds, mut cpu, mut records) = (Rounds::new(), Rounds::new(), 0);
    for _ in 0..ROUNDS {
        let before = process_cpu_ns();
        let tier = tier(device.clone(), STORED_BYTES.into(), Compression::Off)?;
        cpu.push((process_cpu_ns() - before) as f64 / 1e9);
        let usage = tier.usage()[0];
        seconds.push(usage.recovery_ns as f64 / 1e9);
        records = usage.records;
        leave(tier);
    }
    println!("100 GiB in {} segments, {records} records of 64 KiB stored", superblock.segments);
    seconds.show("recovery of 100 GiB, around the page cache", "s");
    cpu.show("  CPU", "s");
    Ok(())
}

/// Closing seals nothing, because nothing was written.
fn leave(tier: Tier) {
    tier.close();
}

struct KeyLength;

impl hkdf::KeyType for KeyLength {
    fn len(&self) -> usize {
        32
    }
}

fn derive(secret: &[u8], salt: &[u8; 32], info: &[&[u8]]) -> Result<[u8; 32], Failure> {
    let mut key = [0; 32];
    hkdf::Salt::new(hkdf::HKDF_SHA256, salt)
        .extract(secret)
        .expand(info, KeyLength)
        .and_then(|output| output.fill(&mut key))
        .map_err(|_| "HKDF gives no 32 bytes")?;
    Ok(key)
}

/// The volume key out of the keyring, as the format's table of keys has it.
fn volume_key(superblock: &Superblock) -> Result<[u8; 32], Failure> {
    let Superblock { device, salt, keyring, keyring_tag, .. } = superblock;
    let key = derive(&MASTER, salt, &[b"ogive l2 keyring v2", device])?;
    let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM_SIV, &key).map_err(|_| "a bad key")?);
    let (nonce, mut plain) = (Nonce::assume_unique_for_key([0; 12]), [0; 64]);
    let covered = Aad::from(superblock.keyring_covers());
    key.open_separate_gather(nonce, covered, keyring, keyring_tag, &mut plain)
        .map_err(|_| "the keyring does not open")?;
    Ok(*plain.first_chunk().ok_or("a keyring is longer")?)
}

fn write_segments(device: &dyn Device, superblock: &Superblock) -> Result<(), Failure> {
    let salt = [5; 32];
    let key =
        SegmentKey::derive(&volume_key(superblock)?, superblock.cipher, &superblock.device, &salt);
    let units = record_units(STORED_BYTES as usize) as u32;
    let each = superblock.segment_bytes / (u64::from(units) * 512) - 1;
    let length = summary_bytes(each) as usize + SEGMENT_BLOCK_BYTES;
    let mut buffer = AlignedBuffer::zeroed(length);
    let mut random = fastrand::Rng::with_seed(1);
    for segment in 0..superblock.segments as u32 {
        let sequence = u64::from(segment) + 1;
        let (device_id, start) = (superblock.device, SEGMENTS_START);
        let start = start + u64::from(segment) * superblock.segment_bytes;
        let account = WearAccount { sent_bytes: 0, clock_seconds: 0, allowance_bytes: i64::MAX };
        let tag = [0; 16];
        let mut header = SegmentHeader { segment, sequence, device: device_id, salt, account, tag };
        header.tag = key.code(Purpose::Header, &header.covered());
        buffer.first(SEGMENT_BLOCK_BYTES).copy_from_slice(&header.to_bytes());
        device.write_at(start, &buffer.bytes()[..SEGMENT_BLOCK_BYTES])?;
        let (summary, trailer) = buffer.first(length).split_at_mut(length - SEGMENT_BLOCK_BYTES);
        let (entries, _) = summary.as_chunks_mut::<32>();
        for (number, bytes) in (0..each as u32).zip(entries) {
            let mut name = [0; 16];
            random.fill(&mut name);
            let entry = SummaryEntry {
                key: name,
                place: 8 + number * units,
                provenance: 0,
                plain_bytes: STORED_BYTES * 2,
                stored_bytes: STORED_BYTES,
            };
            *bytes = entry.to_bytes();
        }
        let mut end = SegmentTrailer {
            segment,
            sequence,
            device: device_id,
            records: each as u32,
            data_bytes: 4096 + each as u32 * units * 512,
            salt: [0; 8],
            tag: [0; 16],
            code: [0; 16],
        };
        let sealed = &mut summary[..each as usize * 32];
        end.salt = key.salt_of(&end.additional_data(), sealed);
        end.tag = key.seal(end.salt, NUMBER_OF_SUMMARY, &end.additional_data(), sealed);
        end.code = key.code(Purpose::Trailer, &end.covered());
        trailer.copy_from_slice(&end.to_bytes());
        let at = start + superblock.segment_bytes - length as u64;
        device.write_at(at, &buffer.bytes()[..length])?;
    }
    device.flush()?;
    Ok(())
}
