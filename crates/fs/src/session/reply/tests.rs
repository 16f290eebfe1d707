//! Answers as the kernel reads them.

use super::*;
use crate::seed::seeded;
use ogive_origin::{Attributes, Tag, Time};
use proptest::prelude::*;

fn known() -> NodeAttributes {
    let at = |seconds, nanoseconds| Time { seconds, nanoseconds };
    let attributes = Attributes {
        device: 1,
        inode: 2,
        kind: FileKind::Directory,
        permissions: 0o755,
        links: 21,
        user: 22,
        group: 23,
        special_device: device::decode(24),
        size_bytes: 12,
        blocks: 13,
        block_size_bytes: 25,
        accessed: at(-14, 17),
        modified: at(15, 18),
        changed: at(16, 19),
        tag: Tag::Times,
    };
    NodeAttributes { number: 10, shown: 11, generation: 5, attributes }
}

const VALIDITY: Validity = Validity { name: Duration::new(1, 2), attributes: Duration::new(3, 4) };

fn check_attributes(bytes: &[u8]) {
    let large: Vec<u64> = (0..6).map(|at| u64_at(bytes, at * 8)).collect();
    assert_eq!(large, [11, 12, 13, (-14i64) as u64, 15, 16]);
    let small: Vec<u32> = (0..10).map(|at| u32_at(bytes, 48 + at * 4)).collect();
    assert_eq!(small, [17, 18, 19, 0o040_755, 21, 22, 23, 24, 25, 0]);
    assert_eq!(bytes.len(), ATTRIBUTES_BYTES);
}

#[test]
fn attributes_are_where_the_kernel_reads_them() {
    let mut buffer = [0xff; 200];
    let mut reply = Reply::new(&mut buffer);
    reply.attributes(Duration::new(3, 4), &known());
    assert_eq!(reply.length(), 104);
    assert_eq!((u64_at(&buffer, 0), u32_at(&buffer, 8), u32_at(&buffer, 12)), (3, 4, 0));
    check_attributes(&buffer[16..104]);
}

#[test]
fn an_entry_is_where_the_kernel_reads_it() {
    let mut buffer = [0xff; 200];
    let mut reply = Reply::new(&mut buffer);
    reply.entry(VALIDITY, &known());
    reply.opened(6, open_flags::KEEP_CACHE);
    assert_eq!(reply.length(), ENTRY_BYTES + 16);
    let large: Vec<u64> = (0..4).map(|at| u64_at(&buffer, at * 8)).collect();
    assert_eq!(large, [10, 5, 1, 3]);
    assert_eq!((u32_at(&buffer, 32), u32_at(&buffer, 36)), (2, 4));
    check_attributes(&buffer[40..128]);
    assert_eq!((u64_at(&buffer, 128), u32_at(&buffer, 136), u32_at(&buffer, 140)), (6, 2, 0));
}

#[test]
fn a_missing_name_has_no_inode_and_may_be_cached() {
    let mut buffer = [0xff; 200];
    let mut reply = Reply::new(&mut buffer);
    reply.absent(Duration::new(9, 8));
    assert_eq!(reply.length(), ENTRY_BYTES);
    let large: Vec<u64> = (0..4).map(|at| u64_at(&buffer, at * 8)).collect();
    assert_eq!(large, [0, 0, 9, 9]);
    assert_eq!((u32_at(&buffer, 32), u32_at(&buffer, 36)), (8, 8));
    assert_eq!(buffer[40..128], [0; ATTRIBUTES_BYTES]);
}

#[test]
fn space_and_counts_are_where_the_kernel_reads_them() {
    let mut buffer = [0xff; 100];
    let mut reply = Reply::new(&mut buffer);
    reply.statistics(&FileSystemStatistics {
        block_size_bytes: 6,
        fragment_size_bytes: 8,
        blocks: 1,
        blocks_free: 2,
        blocks_available: 3,
        inodes: 4,
        inodes_free: 5,
        name_max_bytes: 7,
    });
    reply.count(9);
    assert_eq!(reply.length(), 88);
    let large: Vec<u64> = (0..5).map(|at| u64_at(&buffer, at * 8)).collect();
    assert_eq!(large, [1, 2, 3, 4, 5]);
    let small: Vec<u32> = (0..3).map(|at| u32_at(&buffer, 40 + at * 4)).collect();
    assert_eq!(small, [6, 7, 8]);
    assert_eq!((u32_at(&buffer, 80), u32_at(&buffer, 84)), (9, 0));
}

#[test]
fn entries_of_a_listing_begin_at_multiples_of_eight() {
    let mut buffer = [0xff; 80];
    let mut reply = Reply::new(&mut buffer);
    assert!(reply.listed(1, 7, FileKind::Regular, OsStr::new("abc")));
    assert_eq!(reply.length(), 32);
    assert!(reply.listed(2, 8, FileKind::Symlink, OsStr::new("12345678")));
    assert_eq!(reply.length(), 64);
    assert!(!reply.listed(3, 9, FileKind::Symlink, OsStr::new("a")), "there is no room");
    assert_eq!(reply.length(), 64);
    assert_eq!((u64_at(&buffer, 0), u64_at(&buffer, 8)), (1, 7));
    assert_eq!((u32_at(&buffer, 16), u32_at(&buffer, 20)), (3, 8));
    assert_eq!(buffer[24..32], *b"abc\0\0\0\0\0");
    assert_eq!((u64_at(&buffer, 32), u32_at(&buffer, 52)), (2, 10));
    assert_eq!(buffer[64..], [0xff; 16]);
}

#[test]
fn an_entry_without_a_lookup_has_a_number_and_no_inode() {
    let mut buffer = [0xff; 320];
    let mut reply = Reply::new(&mut buffer);
    let name = OsStr::new("name");
    assert!(reply.listed_without_attributes(11, 7, FileKind::Directory, name));
    assert!(reply.listed_with_attributes(VALIDITY, 8, &known(), name));
    assert!(!reply.listed_with_attributes(VALIDITY, 9, &known(), name));
    assert_eq!(reply.length(), 320);
    assert_eq!((u64_at(&buffer, 0), u64_at(&buffer, 128), u64_at(&buffer, 136)), (0, 11, 7));
    assert_eq!((u64_at(&buffer, 160), u64_at(&buffer, 288), u64_at(&buffer, 296)), (10, 11, 8));
    assert_eq!(buffer[312..316], *b"name");
    assert_eq!(listed_inodes(&buffer).collect::<Vec<_>>(), [0, 10]);
}

#[test]
fn bytes_without_room_are_left_out() {
    let mut buffer = [0; 4];
    let mut reply = Reply::new(&mut buffer);
    reply.bytes(b"12345");
    assert_eq!(reply.length(), 0);
    reply.bytes(b"1234");
    assert_eq!((reply.length(), buffer), (4, *b"1234"));
}

proptest! {
    #![proptest_config(seeded())]

    #[test]
    fn device_numbers_survive_the_protocol(major in 0u32..1 << 12, minor in 0u32..1 << 20) {
        let number = rustix::fs::makedev(major, minor);
        prop_assert_eq!(device::decode(device::encode(number)), number);
    }

    #[test]
    fn any_bytes_are_a_listing_that_ends(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        prop_assert!(listed_inodes(&bytes).count() <= 4);
    }
}
