//! Requests in the kernel's layout, and in layouts that it never sends.

use super::*;
use crate::seed::seeded;
use crate::session::arguments::{GET_EXTENDED_FLAGS, GET_FLAGS, SET_EXTENDED_FLAGS, SET_FLAGS};
use crate::session::operation::Transfer;
use crate::session::protocol::answer_header;
use ogive_origin::{Access, Allocation, Changes, OFlags, RenameFlags, SetTime, Time, XattrFlags};
use proptest::prelude::*;

const LONG: Dialect = Dialect::LONG;

/// The bytes that a read of the device returns.
fn message(opcode: u32, arguments: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 40];
    bytes[..4].copy_from_slice(&((40 + arguments.len() + payload.len()) as u32).to_ne_bytes());
    bytes[4..8].copy_from_slice(&opcode.to_ne_bytes());
    bytes[8..16].copy_from_slice(&7u64.to_ne_bytes());
    bytes[16..24].copy_from_slice(&99u64.to_ne_bytes());
    for (at, number) in [(24, 1u32), (28, 2), (32, 3)] {
        bytes[at..at + 4].copy_from_slice(&number.to_ne_bytes());
    }
    bytes.extend_from_slice(arguments);
    bytes.extend_from_slice(payload);
    bytes
}

fn request(opcode: u32, arguments: &[u8], payload: &[u8]) -> Request {
    Request::parse(&message(opcode, arguments, payload), LONG).unwrap().0
}

fn parse(opcode: u32, arguments: &[u8]) -> Operation {
    request(opcode, arguments, &[]).operation
}

fn transfer(handle: u64, offset: u64, size: u32) -> Vec<u8> {
    let mut arguments = [handle.to_ne_bytes(), offset.to_ne_bytes()].concat();
    arguments.extend_from_slice(&size.to_ne_bytes());
    arguments.resize(40, 0);
    arguments
}

/// Arguments of this length with numbers at these offsets.
fn arguments(bytes: usize, small: &[(usize, u32)], large: &[(usize, u64)]) -> Vec<u8> {
    let mut arguments = vec![0; bytes];
    for (at, number) in small {
        arguments[*at..at + 4].copy_from_slice(&number.to_ne_bytes());
    }
    for (at, number) in large {
        arguments[*at..at + 8].copy_from_slice(&number.to_ne_bytes());
    }
    arguments
}

#[test]
fn a_read_is_parsed() {
    let request = request(15, &transfer(3, 8192, 4096), &[]);
    let wanted = Transfer { handle: 3, offset: 8192, length_bytes: 4096 };
    let flags = OFlags::empty();
    assert_eq!((request.operation, request.node), (Operation::Read { from: wanted, flags }, 99));
    assert_eq!((request.user, request.group, request.thread), (1, 2, 3));
    assert_eq!(request.unique, 7);
}

#[test]
fn a_write_must_bring_as_many_bytes_as_it_says() {
    let mut arguments = transfer(3, 0, 5);
    let flags = OFlags::WRONLY | OFlags::APPEND;
    arguments[32..36].copy_from_slice(&flags.bits().to_ne_bytes());
    let to = Transfer { handle: 3, offset: 0, length_bytes: 5 };
    let write = |arguments: &[u8], bytes: &[u8]| request(16, arguments, bytes).operation;
    assert_eq!(
        write(&arguments, b"bytes"),
        Operation::Write { to, kills_privileges: false, flags }
    );
    assert_eq!(write(&arguments, b"byte"), Operation::Malformed);
    arguments[20..24].copy_from_slice(&(1u32 | 1 << 2).to_ne_bytes());
    assert_eq!(write(&arguments, b"bytes"), Operation::Write { to, kills_privileges: true, flags });
}

#[test]
fn a_message_is_as_long_as_it_says_and_the_payload_comes_last() {
    let mut bytes = message(1, &[], b"name\0");
    assert_eq!(Request::parse(&bytes, LONG).map(|(_, at)| at), Some(40));
    bytes.push(0);
    assert_eq!(Request::parse(&bytes, LONG), None);
    assert_eq!(Request::parse(&bytes[..39], LONG), None);
    let bytes = message(9, &[0; 8], b"name\0");
    let (request, payload_at) = Request::parse(&bytes, LONG).unwrap();
    assert_eq!((payload_at, request.payload_bytes), (48, 5));
}

#[test]
fn attributes_are_asked_for_by_number_or_by_handle() {
    let by_number = arguments(16, &[], &[(8, 7)]);
    assert_eq!(parse(3, &by_number), Operation::Attributes { handle: None });
    let by_handle = arguments(16, &[(0, 1)], &[(8, 7)]);
    assert_eq!(parse(3, &by_handle), Operation::Attributes { handle: Some(7) });
}

#[test]
fn rights_are_asked_for_in_the_bits_of_access() {
    let wanted = Access::READ_OK | Access::EXEC_OK;
    assert_eq!(parse(34, &arguments(8, &[(0, 5)], &[])), Operation::Access { wanted });
}

#[test]
fn only_marked_attributes_are_set() {
    let fields = (
        [(56, 21), (60, 22), (68, 0o100_640), (76, 1000), (80, 1001)],
        [(8, 5), (16, 4096), (32, u64::MAX), (40, 12)],
    );
    let with = |valid| {
        let mut bytes = arguments(88, &fields.0, &fields.1);
        bytes[..4].copy_from_slice(&u32::to_ne_bytes(valid));
        match parse(4, &bytes) {
            Operation::SetAttributes { handle, changes, kills_privileges } => {
                (handle, changes, kills_privileges)
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(with(0), (None, Changes::default(), false));
    assert!(with(1 << 11).2);
    let (handle, changes, _) = with(1 | 2 | 4 | 8 | 16 | 64 | 32 | 256);
    assert_eq!(handle, Some(5));
    let accessed = SetTime::To(Time { seconds: -1, nanoseconds: 21 });
    let wanted = Changes {
        permissions: Some(0o100_640),
        user: Some(1000),
        group: Some(1001),
        size_bytes: Some(4096),
        accessed: Some(accessed),
        modified: Some(SetTime::Now),
    };
    assert_eq!(changes, wanted);
    let modified = Some(SetTime::To(Time { seconds: 12, nanoseconds: 22 }));
    assert_eq!(with(32).1, Changes { modified, ..Changes::default() });
}

#[test]
fn operations_on_names_are_parsed() {
    let flags = OFlags::RDWR | OFlags::APPEND;
    let create = arguments(16, &[(0, flags.bits()), (4, 0o100_600), (8, 0o22)], &[]);
    assert_eq!(parse(35, &create), Operation::Create { flags, mode: 0o100_600, umask: 0o22 });
    let make = arguments(8, &[(0, 0o755), (4, 0o22)], &[]);
    assert_eq!(parse(9, &make), Operation::MakeDirectory { mode: 0o755, umask: 0o22 });
    let node = arguments(16, &[(0, 0o020_600), (4, 0x103), (8, 0o27)], &[]);
    let made = Operation::MakeNode { mode: 0o020_600, device: 0x103, umask: 0o27 };
    assert_eq!(parse(8, &node), made);
    assert_eq!(parse(13, &44u64.to_ne_bytes()), Operation::Link { node: 44 });
    let rename = arguments(16, &[(8, 1)], &[(0, 44)]);
    let flags = RenameFlags::NOREPLACE;
    assert_eq!(parse(45, &rename), Operation::Rename { new_parent: 44, flags });
    let flags = RenameFlags::empty();
    assert_eq!(parse(12, &rename[..8]), Operation::Rename { new_parent: 44, flags });
    assert_eq!(
        [parse(5, &[]), parse(6, &[]), parse(10, &[]), parse(11, &[]), parse(24, &[])],
        [
            Operation::ReadLink,
            Operation::Symlink,
            Operation::Unlink,
            Operation::RemoveDirectory,
            Operation::RemoveXattr
        ]
    );
}

#[test]
fn operations_on_open_files_are_parsed() {
    let flags = OFlags::RDWR | OFlags::APPEND;
    let open = arguments(8, &[(0, flags.bits())], &[]);
    assert_eq!(parse(14, &open), Operation::Open { flags });
    let sync = arguments(16, &[(8, 1)], &[(0, 6)]);
    assert_eq!(parse(20, &sync), Operation::Sync { handle: 6, data_only: true });
    assert_eq!(parse(30, &sync), Operation::SyncDirectory { handle: 6 });
    let handle = arguments(24, &[], &[(0, 6)]);
    assert_eq!(parse(18, &handle), Operation::Release { handle: 6 });
    assert_eq!(parse(25, &handle), Operation::Flush { handle: 6 });
    assert_eq!(parse(29, &handle), Operation::ReleaseDirectory { handle: 6 });
    let size = arguments(8, &[(0, 100)], &[]);
    assert_eq!(parse(22, &size), Operation::GetXattr { size_bytes: 100 });
    assert_eq!(parse(23, &size), Operation::ListXattrs { size_bytes: 100 });
    assert_eq!(parse(27, &size), Operation::OpenDirectory);
    assert_eq!(parse(17, &[]), Operation::Statistics);
    assert_eq!(parse(39, &[0; 32]), Operation::Control);
    let allocate = arguments(32, &[(24, 3)], &[(0, 6), (8, 4096), (16, 100)]);
    let allocation = Allocation { mode: 3, offset: 4096, length_bytes: 100 };
    assert_eq!(parse(43, &allocate), Operation::Allocate { handle: 6, allocation });
    let seek = arguments(24, &[(16, 4)], &[(0, 6), (8, 4096)]);
    assert_eq!(parse(46, &seek), Operation::Seek { handle: 6, offset: 4096, whence: 4 });
    let places = [(0, 1), (8, 2), (16, 3), (24, 4), (32, 5), (40, 6)];
    let copy = Operation::CopyRange { from: (1, 2), to_node: 3, to: (4, 5), length_bytes: 6 };
    assert_eq!(parse(47, &arguments(56, &[], &places)), copy);
}

#[test]
fn extended_attributes_are_set_in_a_short_and_a_long_form() {
    let payload = b"user.name\0value";
    let flags = XattrFlags::CREATE;
    let long = arguments(16, &[(0, 5), (4, 1), (8, 1)], &[]);
    let wanted = Operation::SetXattr { size_bytes: 5, flags, kills_set_group_id: true };
    assert_eq!(request(21, &long, payload).operation, wanted);
    let short = message(21, &long[..8], payload);
    let (request, at) = Request::parse(&short, Dialect::SHORT).unwrap();
    let wanted = Operation::SetXattr { size_bytes: 5, flags, kills_set_group_id: false };
    assert_eq!((request.operation, at), (wanted, 48));
    assert_eq!(name_and_value(payload, 5).unwrap(), ("user.name".into(), &b"value"[..]));
    assert_eq!(name_and_value(payload, 4), None);
    assert_eq!(name_and_value(b"\0value", 5), None);
    assert_eq!(name_and_value(b"name", 0), None);
}

#[test]
fn references_come_back_one_by_one_or_many_at_once() {
    assert_eq!(parse(2, &3u64.to_ne_bytes()), Operation::Forget { lookups: 3 });
    let payload: Vec<u8> = [5u64, 1, 6, 2, 7].iter().flat_map(|n| n.to_ne_bytes()).collect();
    let many = request(42, &arguments(8, &[(0, 9)], &[]), &payload);
    assert_eq!(many.operation, Operation::ForgetMany { count: 9 });
    assert_eq!(forgotten(&payload, 9).collect::<Vec<_>>(), [(5, 1), (6, 2)]);
    assert_eq!(forgotten(&payload, 1).collect::<Vec<_>>(), [(5, 1)]);
    assert_eq!(parse(36, &8u64.to_ne_bytes()), Operation::Interrupt { unique: 8 });
    assert_eq!(parse(41, &[0; 40]), Operation::Wakeup);
    assert_eq!(parse(38, &[]), Operation::Destroy);
}

#[test]
fn unknown_and_malformed_requests_are_distinguished() {
    for unknown in [0, 33, 37, 51, 52, 4096, u32::MAX] {
        assert_eq!(parse(unknown, &[]), Operation::Unknown);
    }
    for (opcode, bytes) in [(14, 4), (34, 4), (8, 8), (4, 80), (43, 24), (20, 8), (15, 24)] {
        assert_eq!(parse(opcode, &vec![0; bytes]), Operation::Malformed, "{opcode}");
    }
}

#[test]
fn flags_have_two_forms_and_need_a_kernel_that_checks_rights() {
    let plain = |command, in_bytes, out_bytes| {
        arguments(32, &[(12, command), (24, in_bytes), (28, out_bytes)], &[])
    };
    let (form, extended) = (FlagsForm::Plain, FlagsForm::Extended);
    for (command, in_bytes, out_bytes, operation) in [
        (GET_FLAGS, 0, 4, Operation::Flags { form }),
        (SET_FLAGS, 4, 0, Operation::SetFlags { form }),
        (GET_EXTENDED_FLAGS, 0, 28, Operation::Flags { form: extended }),
        (SET_EXTENDED_FLAGS, 28, 0, Operation::SetFlags { form: extended }),
        // As a program would ask itself: with the size that its command names.
        (SET_FLAGS, 8, 0, Operation::Control),
        (0x5401, 0, 0, Operation::Control),
    ] {
        let asked = plain(command, in_bytes, out_bytes);
        assert_eq!(parse(39, &asked), operation, "{command:x}");
        let unchecked = Dialect { long_set_xattr: true, checked_flags: false };
        let (request, _) = Request::parse(&message(39, &asked, &[]), unchecked).unwrap();
        assert_eq!(request.operation, Operation::Control, "{command:x}");
    }
    assert_eq!(flags(&7u32.to_ne_bytes(), form), Some(FileFlags::Plain(7)));
    assert_eq!(flags(&[0; 28], extended), Some(FileFlags::Extended([0; 7])));
    assert_eq!((flags(&[0; 3], form), flags(&[0; 27], extended)), (None, None));
}

#[test]
fn names_end_with_a_zero_byte_and_there_are_as_many_as_expected() {
    assert_eq!(names(b"a\0").unwrap(), ["a"]);
    assert_eq!(names(b"a\0bc\0").unwrap(), ["a", "bc"]);
    assert_eq!(names::<1>(b"a\0b\0"), None);
    assert_eq!(names::<2>(b"a\0b"), None);
    assert_eq!(names::<1>(b"\0"), None);
    assert_eq!(names::<1>(b""), None);
}

proptest! {
    #![proptest_config(seeded())]

    #[test]
    fn no_message_reaches_beyond_its_end(bytes in proptest::collection::vec(any::<u8>(), 0..300),
        fits in any::<bool>(), opcode in 0u32..60, long_set_xattr in any::<bool>()) {
        let mut bytes = bytes;
        if fits && bytes.len() >= 40 {
            let total = bytes.len() as u32;
            bytes[..4].copy_from_slice(&total.to_ne_bytes());
            bytes[4..8].copy_from_slice(&opcode.to_ne_bytes());
        }
        if let Some((request, at)) = Request::parse(&bytes, Dialect { long_set_xattr, checked_flags: fits }) {
            prop_assert_eq!(at + request.payload_bytes, bytes.len());
            prop_assert!(request.answer_max_bytes() >= answer_header(0, Ok(0)).len()
                || matches!(request.operation, Operation::List(_) | Operation::ListWithAttributes(_)));
        }
    }

    #[test]
    fn any_payload_is_names_or_none(payload in proptest::collection::vec(0u8..3, 0..12)) {
        if let Some([first, second]) = names(&payload) {
            prop_assert_eq!(first.len() + second.len() + 2, payload.len());
        }
        if let Some((name, value)) = name_and_value(&payload, 3) {
            prop_assert_eq!(name.len() + 1 + value.len(), payload.len());
        }
    }
}

#[test]
fn every_row_has_an_operation_and_no_other_opcode_has_one() {
    for opcode in 0..64 {
        let row = opcodes::of(opcode);
        let arguments = vec![0; row.as_ref().map_or(0, |row| row.arguments_bytes)];
        let operation = Arguments(&arguments).operation(opcode);
        assert_eq!(row.is_some(), operation != Operation::Unknown, "{opcode}");
    }
}
