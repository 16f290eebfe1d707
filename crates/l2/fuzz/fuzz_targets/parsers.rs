//! Superblock, segment header, trailer, summary, record and decompression of arbitrary bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ogive_l2::format::{
    RecordHeader, SegmentHeader, SegmentTrailer, Superblock, parse_summary, record_units,
};
use ogive_l2::{Decompressor, Stored};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(superblock) = Superblock::parse(bytes) {
        assert!(superblock.device_bytes() <= 1 << 44);
    }
    if let Some(header) = SegmentHeader::parse(bytes) {
        assert_eq!(&header.to_bytes()[..112], &bytes[..112]);
        assert_eq!(&header.covered(), &bytes[..96]);
    }
    if let Some(trailer) = SegmentTrailer::parse(bytes, 1 << 20) {
        assert!(u64::from(trailer.records) * 32 < 1 << 20);
        assert!(trailer.sent_bytes() <= 1 << 20);
        assert_eq!(&trailer.to_bytes()[..80], &bytes[..80]);
    }
    for entry in parse_summary(bytes, 1 << 20) {
        assert!(u64::from(entry.place) * 512 + entry.units() * 512 <= (1 << 20) + 512);
    }
    if let Some(record) = RecordHeader::parse(bytes) {
        assert!(record_units(record.stored_bytes as usize) <= 2049);
        assert_eq!(&record.to_bytes()[..], &bytes[..64]);
    }
    if let Some((first, rest)) = bytes.split_first() {
        let mut plain = vec![0; usize::from(*first) * 64];
        for way in [Stored::Plain, Stored::Lz4, Stored::Zstd] {
            let _ = Decompressor::default().decompress(way, rest, &mut plain);
        }
    }
});
