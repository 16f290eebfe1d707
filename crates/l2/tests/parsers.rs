//! Whatever bytes a device holds: nothing panics, no number is out of bounds, nothing is believed.

mod common;

use common::*;
use ogive_l2::device::MemoryDevice;
use ogive_l2::format::{
    RECORD_MAX_BYTES, RecordHeader, SegmentHeader, SegmentTrailer, Superblock, parse_summary,
};
use ogive_l2::{Cipher, Decompressor, Stored};
use proptest::prelude::*;
use std::sync::Arc;

/// Bytes that begin like ours now and then, or a piece of noise would never get past the magic.
fn plausible() -> impl Strategy<Value = Vec<u8>> {
    let magic = prop_oneof![
        Just(b"OGIVEL2\n".to_vec()),
        Just(b"OGrc".to_vec()),
        Just(b"OGsh".to_vec()),
        Just(b"OGst".to_vec()),
        Just(Vec::new()),
    ];
    (magic, prop::collection::vec(prop_oneof![Just(0_u8), any::<u8>()], 0..5000)).prop_map(
        |(mut bytes, rest)| {
            bytes.extend(rest);
            bytes
        },
    )
}

proptest! {
    #[test]
    fn parsers_bound_their_results(bytes in plausible()) {
        if let Some(record) = RecordHeader::parse(&bytes) {
            prop_assert!(record.plain_bytes as usize <= RECORD_MAX_BYTES);
            prop_assert!(record.stored_bytes <= record.plain_bytes);
            prop_assert_eq!(&record.to_bytes()[..], &bytes[..64]);
        }
        if let Some(header) = SegmentHeader::parse(&bytes) {
            prop_assert!(header.sequence != 0);
            prop_assert_eq!(&header.to_bytes()[..112], &bytes[..112]);
        }
        if let Some(trailer) = SegmentTrailer::parse(&bytes, 1 << 20) {
            prop_assert!(u64::from(trailer.data_bytes) < 1 << 20);
            prop_assert!(u64::from(trailer.records) * 32 < 1 << 20);
            prop_assert!(trailer.sent_bytes() <= 1 << 20);
            prop_assert_eq!(&trailer.to_bytes()[..80], &bytes[..80]);
        }
        for entry in parse_summary(&bytes, 1 << 20) {
            prop_assert!(u64::from(entry.place) * 512 + u64::from(entry.stored_bytes) < 1 << 20);
        }
        if let Ok(superblock) = Superblock::parse(&bytes) {
            prop_assert!(superblock.segments > 0 && superblock.device_bytes() <= 1 << 44);
        }
    }

    #[test]
    fn decompression_of_anything_stays_in_its_bounds(
        bytes in prop::collection::vec(any::<u8>(), 0..2000),
        length in 0..100_000_usize,
    ) {
        let mut plain = vec![0; length];
        for way in [Stored::Plain, Stored::Lz4, Stored::Zstd] {
            let _ = Decompressor::default().decompress(way, &bytes, &mut plain);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// A device with pieces of noise in it, some of them in front of the recovery.
    #[test]
    fn noise_on_a_device_is_at_worst_a_miss(
        noise in prop::collection::vec((any::<u32>(), plausible()), 1..12),
        cipher in prop_oneof![Just(Cipher::Off), Just(Cipher::Gcm)],
        before_opening in any::<bool>(),
    ) {
        let device = Arc::new(MemoryDevice::new(6 << 20));
        fill(&open_as(&device, how(cipher)).unwrap(), 150, 20_000);
        let spoil = || device.tamper(|bytes| {
            for (place, noise) in &noise {
                let place = *place as usize % bytes.len();
                let length = noise.len().min(bytes.len() - place);
                bytes[place..place + length].copy_from_slice(&noise[..length]);
            }
        });
        if before_opening {
            spoil();
        }
        // Both copies of the superblock may have gone, and then it is refused or starts empty.
        let Ok(tier) = open_as(&device, how(cipher)) else { return Ok(()) };
        if !before_opening {
            spoil();
        }
        found(&tier, 150, 20_000);
    }
}
