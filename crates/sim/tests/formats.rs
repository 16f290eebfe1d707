//! Promise: every format is decoded as documented, and detected by content or name. A bad trace is
//! refused with its line or offset, and never panics.
#![allow(clippy::unwrap_used)]

mod common;
#[path = "../../../tests/skipped.rs"]
mod skipped;

use ogive_kstat::trace::{Access, Event, Header, Kind};
use ogive_sim::trace::Place;
use ogive_sim::{Format, ReadOptions, Request, TraceError, TraceReader};
use proptest::prelude::*;
use skipped::skipped;
use std::io::Cursor;
use std::path::Path;

fn read(
    name: &str,
    bytes: &[u8],
    options: &ReadOptions,
) -> Result<(Format, Vec<Request>), TraceError> {
    let reader = TraceReader::from_reader(Path::new(name), Cursor::new(bytes.to_vec()), options);
    let mut reader = reader?;
    let mut requests = Vec::new();
    while !reader.read(&mut requests, 1 << 20)? {
        if requests.len() >= 1 << 20 {
            break;
        }
    }
    Ok((reader.format(), requests))
}

/// Format, weights, and the number of different keys.
fn recognised(name: &str, text: &str) -> (Format, Vec<u64>, usize) {
    let (format, requests) = read(name, text.as_bytes(), &ReadOptions::default()).unwrap();
    let mut keys: Vec<u64> = requests.iter().map(|request| request.key).collect();
    keys.sort_unstable();
    keys.dedup();
    (format, requests.iter().map(|request| request.bytes).collect(), keys.len())
}

#[test]
fn text_formats_are_recognised_by_their_content() {
    let lis = "10 3 0 0\n12 2 0 1\n";
    assert_eq!(recognised("x", lis), (Format::Lis, vec![1; 5], 4));
    assert_eq!(recognised("x", "5\n*\n6\n5\n"), (Format::Lirs, vec![1; 3], 2));
    assert_eq!(recognised("x", "5\n6\n5\n"), (Format::Keys, vec![1; 3], 2));
    assert_eq!(recognised("x", "a 10\nb,20\n# c\na 10\n"), (Format::Keys, vec![10, 20, 10], 2));
    assert_eq!(recognised("x", "0 7 100\n1 8 50\n"), (Format::TimeKeySize, vec![100, 50], 2));
    assert_eq!(recognised("x", "100 0 0 16 1\n200 0 8 8 0\n"), (Format::MqSim, vec![4096; 3], 2));
    let msr = "128166372003061629,hm,1,Read,383496192,32768,413\n1,hm,1,Write,0,1,4\n";
    assert_eq!(recognised("x", msr), (Format::Msr, vec![4096; 9], 9));
    let fio =
        "fio version 2 iolog\n/f add\n/f open\n/f read 0 8192\n/f write 4096 4096\n/f close\n";
    assert_eq!(recognised("x", fio), (Format::Fio, vec![4096; 3], 2));
    let fio3 = "fio version 3 iolog\n10 /f add\n11 /f open\n12 /f read 0 4096\n13 /g read 0 4096\n";
    assert_eq!(recognised("x", fio3), (Format::Fio, vec![4096; 2], 2));
    let bpftrace = "Attaching 1 probe...\n1234 8388608 RA 2048 16\n1240 8388608 WS 2048 8\n1250 8388608 FF 0 0\n";
    assert_eq!(recognised("x", bpftrace), (Format::BpfTrace, vec![4096; 3], 2));
}

#[test]
fn blkparse_counts_one_line_a_request() {
    let text = "\
  8,0    3        1     0.000000000   697  G   W 223490 + 8 [kjournald]
  8,0    3        2     0.000001829   697  Q   W 223488 + 8 [kjournald]
  8,0    3        3     0.000002197   697  Q   R 223488 + 16 [kjournald]
  8,0    3        4     0.000002500   697  D   W 223488 + 8 [kjournald]
  8,0    3        5     0.000003000   697  C   W 223488 + 8 [0]
  8,0    3        6     0.000004000   697  Q  FN [kjournald]
CPU3 (8,0):
 Reads Queued:           1,        8KiB\t Writes Queued:           1,        4KiB
";
    let (format, weights, keys) = recognised("x", text);
    assert_eq!((format, weights, keys), (Format::BlkParse, vec![4096; 3], 2));
    let reads = ReadOptions { reads_only: true, ..ReadOptions::default() };
    assert_eq!(read("x", text.as_bytes(), &reads).unwrap().1.len(), 2);
}

#[test]
fn the_read_history_of_openzfs_keeps_prefetch_apart() {
    let text = "\
UID      start            objset   object   level    blkid    aflags   origin                   pid      process
1        5130742          0x36     128      0        7        0x5      dbuf_prefetch_impl       911      cat
2        5130799          0x36     128      0        0        0x1      dbuf_read_impl           911      cat
3        5130800          0x36     128      1        0        0x1      dbuf_read_impl           911      cat
4        5130999          0x0      -1       -1       0        0x1      arc_read                 1        txg_sync
";
    assert_eq!(recognised("reads", text), (Format::ZfsReads, vec![1; 3], 3));
    let all =
        ReadOptions { with_prefetch: true, block_bytes: Some(131_072), ..ReadOptions::default() };
    let (_, requests) = read("reads", text.as_bytes(), &all).unwrap();
    assert_eq!(requests.iter().map(|request| request.bytes).collect::<Vec<_>>(), [131_072; 4]);
}

#[test]
fn binary_formats() {
    let options = |format| ReadOptions { format: Some(format), ..ReadOptions::default() };
    let keys = |bytes: &[u8], format| -> Vec<u64> {
        let (_, requests) = read("x", bytes, &options(format)).unwrap();
        requests.iter().map(|request| request.key).collect()
    };
    assert_eq!(keys(&[0, 0, 1, 2, 0xff, 0, 0, 0], Format::Be32), [258, 0xff00_0000]);
    assert_eq!(keys(&[0, 0, 0, 0, 0, 0, 1, 2], Format::Be64), [258]);

    let mut oracle = Vec::new();
    for (time, key, size, next) in
        [(1_u32, 77_u64, 100_u32, 3_i64), (1, 78, 0, -1), (2, 77, 100, -1)]
    {
        oracle.extend(time.to_le_bytes());
        oracle.extend(key.to_le_bytes());
        oracle.extend(size.to_le_bytes());
        oracle.extend(next.to_le_bytes());
    }
    let (format, requests) = read("x", &oracle, &ReadOptions::default()).unwrap();
    assert_eq!(format, Format::OracleGeneral);
    assert_eq!(requests, [Request::new(77, 100), Request::new(77, 100)]);

    let mut vscsi = [Vec::new(), Vec::new()];
    for (command, length, block) in [(0x28_u16, 8192_u32, 16_u64), (0x2a, 4096, 16), (0x35, 0, 0)] {
        let (number, segments, rest) = (7_u32.to_le_bytes(), 1_u32.to_le_bytes(), [0; 8]);
        let (command, length) = (command.to_le_bytes(), length.to_le_bytes());
        let block = block.to_le_bytes();
        let first = [&number[..], &length, &segments, &command, &[0, 1], &block, &rest].concat();
        let second =
            [&command[..], &[0, 2], &number, &length, &segments, &block, &rest, &rest].concat();
        assert_eq!((first.len(), second.len()), (32, 40));
        vscsi[0].extend(first);
        vscsi[1].extend(second);
    }
    for bytes in &vscsi {
        let (format, requests) = read("x", bytes, &ReadOptions::default()).unwrap();
        assert_eq!((format, requests.len()), (Format::Vscsi, 3));
        assert_eq!(requests[0], requests[2]);
    }
}

#[test]
fn a_recording_of_a_mount_is_read_and_its_losses_are_counted() {
    let event = |index, access| Event::Read {
        time_ns: 1,
        object: 9,
        index,
        bytes: 4096,
        kind: Kind::Data,
        access,
    };
    let mut bytes = Header { start_unix_ns: 1, record_size_bytes: 4096 }.encode().to_vec();
    bytes.extend(event(1, Access::Demand).encode());
    bytes.extend(event(2, Access::Prefetch).encode());
    bytes.extend(Event::Dropped { time_ns: 2, reads: 40 }.encode());
    bytes.extend(event(1, Access::Demand).encode());
    let mut reader = TraceReader::from_reader(
        Path::new("x"),
        Cursor::new(bytes.clone()),
        &ReadOptions::default(),
    )
    .unwrap();
    let mut requests = Vec::new();
    assert!(reader.read(&mut requests, 100).unwrap());
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[0], requests[1]);
    let counts = reader.counts();
    assert_eq!((counts.requests, counts.prefetches, counts.dropped), (2, 1, 40));
    bytes[40] ^= 1;
    let error = read("x", &bytes, &ReadOptions::default()).unwrap_err();
    assert_eq!(error.place, Place::Offset(32));
    let skip = ReadOptions { skip_bad: true, ..ReadOptions::default() };
    assert_eq!(read("x", &bytes, &skip).unwrap().1.len(), 1);
}

#[test]
fn a_bad_record_is_named_by_its_line_or_skipped_and_counted() {
    let text = "1 2 3 4\n1 2 3 4\n\n5 -7 0 0\n1 1 0 0\n";
    let options = ReadOptions { format: Some(Format::Lis), ..ReadOptions::default() };
    let error = read("t", text.as_bytes(), &options).unwrap_err();
    assert_eq!(error.place, Place::Line(4));
    let message = error.to_string();
    assert!(
        message.starts_with("t, line 4: the number of blocks is not a whole number: \"-7\""),
        "{message}"
    );
    let skip = ReadOptions { skip_bad: true, ..options };
    let mut reader =
        TraceReader::from_reader(Path::new("t"), Cursor::new(text.as_bytes().to_vec()), &skip)
            .unwrap();
    let mut requests = Vec::new();
    assert!(reader.read(&mut requests, 100).unwrap());
    assert_eq!((requests.len(), reader.counts().bad), (5, 1));
    let huge = read("t", b"0 99999999999 0 0\n", &ReadOptions::default()).unwrap_err();
    assert!(huge.reason.contains("plausible"), "{huge}");
}

#[test]
fn a_file_of_another_kind_is_refused() {
    for bytes in [&b""[..], b"\x00\x01\x02", b"hello world, this is not a trace\n", &[0xff; 100]] {
        let error = read("x", bytes, &ReadOptions::default()).unwrap_err();
        assert_eq!(error.place, Place::Whole, "{error}");
    }
    let mut gzip = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    gzip.extend([0x55; 40]);
    assert!(read("x", &gzip, &ReadOptions::default()).is_err());
}

#[test]
fn the_samples_of_block_traces_have_their_counted_requests() {
    for (trace, requests, unique) in
        [("mq-tpcc-small", 20_669, 20_470), ("msr-hm-sample", 2473, 1917)]
    {
        let Some(read) = common::requests(trace) else {
            skipped(format_args!("{trace} needs OGIVE_TRACES: it is not in the tree"));
            continue;
        };
        let keys: std::collections::HashSet<u64> = read.iter().map(|request| request.key).collect();
        assert_eq!((read.len(), keys.len()), (requests, unique), "{trace}");
    }
}

/// Bytes like the beginnings of traces, and other bytes.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let text = "[ 0-9a-zRWQ,+*.x\\-\n]{0,400}".prop_map(String::into_bytes);
    let magic = prop::sample::select(vec![
        &b"ogivetrc"[..],
        b"\x1f\x8b\x08",
        b"\x28\xb5\x2f\xfd",
        b"\xfd7zXZ\0",
        b"fio version 2 iolog\n",
        b"UID start objset\n",
        b"8,0 1 1 0.5 1 Q R ",
    ]);
    let any = prop::collection::vec(any::<u8>(), 0..400);
    prop_oneof![text, any.clone(), (magic, any).prop_map(|(magic, rest)| [magic, &rest].concat()),]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn any_bytes_are_read_or_refused(bytes in bytes(), number in 0_usize..16, skip_bad: bool) {
        let format = Format::all().nth(number).map(|(format, _, _)| format);
        let options = ReadOptions {
            format,
            skip_bad,
            requests_max: Some(10_000),
            block_bytes: Some(512),
            ..ReadOptions::default()
        };
        if let Ok((_, requests)) = read("x", &bytes, &options) {
            prop_assert!(requests.len() <= 10_000);
            prop_assert!(requests.iter().all(|request| request.bytes > 0));
        }
    }
}
