//! Promise: a trace is recognised only if its whole beginning fits one format and no other.
//! Otherwise the error lists the possible formats. A recognised trace is not decoded as another
//! format later.
#![allow(clippy::unwrap_used)]

use ogive_sim::trace::Place;
use ogive_sim::{Format, ReadOptions, Request, TraceReader};
use std::io::{Cursor, Write as _};
use std::path::Path;

fn read_with(
    bytes: &[u8],
    format: Option<Format>,
) -> Result<(Format, Vec<Request>), ogive_sim::TraceError> {
    let options = ReadOptions { format, ..ReadOptions::default() };
    let input = Cursor::new(bytes.to_vec());
    let mut reader = TraceReader::from_reader(Path::new("x"), input, &options)?;
    let mut requests = Vec::new();
    while !reader.read(&mut requests, 1 << 16)? {}
    Ok((reader.format(), requests))
}

/// Format and number of requests, or the text of the error.
fn recognised(text: &str) -> Result<(Format, usize), String> {
    let read = read_with(text.as_bytes(), None).map_err(|error| error.to_string())?;
    Ok((read.0, read.1.len()))
}

fn unrecognised(text: &str) -> String {
    let message = recognised(text).unwrap_err();
    assert!(message.contains("is not recognised") && message.contains("--format"), "{message}");
    message
}

fn rows(row: impl Fn(u64) -> String) -> String {
    (0..2000).map(|number| row(number) + "\n").collect()
}

/// The line with this number.
type Row = fn(u64) -> String;

/// A key that repeats.
fn key(number: u64) -> u64 {
    number * number % 499
}

#[test]
fn a_trace_with_extra_columns_needs_a_named_format() {
    let plain = rows(|i| format!("{i} {} {}", key(i), 1000 + 7 * key(i)));
    assert_eq!(recognised(&plain), Ok((Format::TimeKeySize, 2000)));
    let expected = read_with(plain.as_bytes(), None).unwrap().1;
    let further: [Row; 7] = [
        |i| format!(" {}", key(i) % 3),
        |i| format!(" {}", i / 3),
        |i| format!(" {} {}", key(i) % 3, key(i) % 2),
        |i| format!(" {} {}", 1 + key(i) % 3, key(i) % 2),
        |_| " 1 1".to_owned(),
        |_| " GET tenant7".to_owned(),
        |i| format!(" {i} 0 0 0.5"),
    ];
    for more in further {
        let text = rows(|i| format!("{i} {} {}{}", key(i), 1000 + 7 * key(i), more(i)));
        let message = unrecognised(&text);
        assert!(message.contains("time-key-size"), "{message}");
        let named = read_with(text.as_bytes(), Some(Format::TimeKeySize)).unwrap();
        assert_eq!(named.1, expected);
    }
}

#[test]
fn no_format_accepts_a_line_with_more_or_fewer_columns() {
    let whole = [
        (Format::Lis, "10 3 0 0"),
        (Format::Lirs, "7"),
        (Format::Msr, "128166372003061629,hm,1,Read,4096,4096,413"),
        (Format::Keys, "a 10"),
        (Format::MqSim, "100 0 8 16 1"),
        (Format::BpfTrace, "1234 8388608 RA 2048 16"),
    ];
    for (format, line) in whole {
        let separator = if format == Format::Msr { ',' } else { ' ' };
        let more = format!("{line}{separator}5");
        let later = format!("{line}\n{more}");
        for wrong in [more, later, format!("{line}\n{line}{separator}x")] {
            let error = read_with(wrong.as_bytes(), Some(format)).unwrap_err();
            assert!(matches!(error.place, Place::Line(_)), "{format}: {error}");
        }
    }
    let fewer = [
        (Format::Lis, "10 3 0 0\n10 3"),
        (Format::Msr, "1,hm,1,Read,4096,4096,413\n1,hm,1,Read,4096,4096"),
        (Format::Keys, "a 10\nb"),
        (Format::Keys, "a\nb 10"),
        (Format::TimeKeySize, "0 7 100 1\n1 7 100"),
        (Format::MqSim, "100 0 8 16 1\n200 0 8 16"),
    ];
    for (format, text) in fewer {
        let error = read_with(text.as_bytes(), Some(format)).unwrap_err();
        assert_eq!(error.place, Place::Line(2), "{format}: {error}");
    }
}

#[test]
fn a_later_misfit_is_an_error_with_its_line_and_no_switch() {
    let (many, line) = (20_000_u64, 20_001);
    let long = |row: &dyn Fn(u64) -> String, last: &str| {
        let text: String = (0..many).map(|number| row(number) + "\n").collect();
        format!("{text}{last}\n")
    };
    let key_only = |i: u64| key(i).to_string();
    let sized = |i: u64| format!("{} {}", key(i), 10 + key(i));
    let timed = |i: u64| format!("{i} {} {}", key(i), 10 + key(i));
    for (format, text) in [
        (Format::Keys, long(&key_only, "*")),
        (Format::Keys, long(&key_only, "abc")),
        (Format::Keys, long(&key_only, "5 100")),
        (Format::Keys, long(&sized, "5")),
        (Format::Keys, long(&sized, "5 10 1")),
        (Format::TimeKeySize, long(&timed, "20000 5 15 1")),
        (Format::TimeKeySize, long(&timed, "20000 5")),
    ] {
        let error = read_with(text.as_bytes(), None).unwrap_err();
        assert_eq!(error.place, Place::Line(line), "{error}");
        assert!(error.reason.contains(&format!("read as {format}")), "{error}");
        let skip = ReadOptions { skip_bad: true, ..ReadOptions::default() };
        let input = Cursor::new(text.into_bytes());
        let mut reader = TraceReader::from_reader(Path::new("x"), input, &skip).unwrap();
        assert!(reader.read(&mut Vec::new(), usize::MAX).unwrap());
        assert_eq!((reader.counts().requests, reader.counts().bad), (many, 1));
    }
    // If the format is named, these are keys.
    let stars = long(&key_only, "*");
    assert_eq!(read_with(stars.as_bytes(), Some(Format::Keys)).unwrap().1.len(), line as usize);
    assert_eq!(read_with(stars.as_bytes(), Some(Format::Lirs)).unwrap().1.len(), many as usize);
}

#[test]
fn columns_of_another_meaning_need_a_named_format() {
    let refused: [(&str, Row); 11] = [
        ("phases with a column more", |i| {
            format!("{} 7", if i == 9 { "*".into() } else { key(i).to_string() })
        }),
        ("time and key", |i| format!("{i} {}", key(i))),
        ("coarse time and key", |i| format!("{} {}", i / 40, key(i))),
        ("key, size and time", |i| format!("{} {} {i}", key(i), 10 + key(i))),
        ("time, block, sectors and kind", |i| format!("{i} {} 8 {}", key(i), i % 2)),
        ("semicolons", |i| format!("{i};{};100", key(i))),
        ("bars", |i| format!("{i}|{}", key(i))),
        ("colons", |i| format!("{i}:{}:100", key(i))),
        ("commas", |i| format!("{i},{},100", key(i))),
        ("a kind in front", |i| format!("r 0x{:x} 8", key(i))),
        ("a header", |i| if i == 0 { "key size".to_owned() } else { format!("{} 1", key(i)) }),
    ];
    for (what, row) in refused {
        let message = unrecognised(&rows(row));
        assert!(!message.contains("read as"), "{what}: {message}");
    }
}

#[test]
fn a_format_that_fits_up_to_a_line_is_named_with_that_line() {
    let text = rows(|i| if i == 9 { "9 4".to_owned() } else { format!("{i} {} 64", key(i)) });
    let message = unrecognised(&text);
    assert!(message.contains("time-key-size fits up to line 10: the size is missing"), "{message}");
}

#[test]
fn keys_of_text_or_numbers_are_recognised() {
    let keys: [Row; 9] = [
        |i| key(i).to_string(),
        |i| format!("{} {}", key(i), 100 + key(i)),
        |i| format!("{},{}", key(i), 100 + key(i)),
        |i| format!("user:{}", key(i)),
        |i| format!("http://host/a;b|c?{}", key(i)),
        |i| format!("{:032x}", key(i)),
        |i| format!("0x{:x} 64", key(i)),
        |i| format!("{i} 4096"),
        |i| format!("/srv/file{}\t{}", key(i), key(i) * 3),
    ];
    for row in keys {
        assert_eq!(recognised(&rows(row)), Ok((Format::Keys, 2000)), "{}", row(3));
    }
}

#[test]
fn comments_blank_lines_line_ends_and_marks_are_ignored() {
    let plain = "0 7 100\n1 8 50\n2 7 100\n";
    let expected = read_with(plain.as_bytes(), None).unwrap();
    assert_eq!(expected.0, Format::TimeKeySize);
    for same in [
        "0 7 100\r\n1 8 50\r\n2 7 100\r\n",
        "0 7 100\n1 8 50\n2 7 100",
        "\u{feff}0 7 100\n1 8 50\n2 7 100\n",
        "# time key size\n\n0 7 100\n   \n1 8 50\n # more\n2\t7\t100\n\n",
        "\u{feff}# time key size\r\n0 7 100\r\n1 8 50\r\n2 7 100\r\n",
    ] {
        assert_eq!(read_with(same.as_bytes(), None).unwrap(), expected, "{same:?}");
    }
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(plain.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    assert_eq!(read_with(&gzip, None).unwrap(), expected);
    assert!(read_with(&gzip[..gzip.len() - 6], None).is_err(), "cut off, and not shorter");
    let zstd = zstd::encode_all(plain.as_bytes(), 3).unwrap();
    assert_eq!(read_with(&zstd, None).unwrap(), expected);
    assert!(read_with(&zstd[..zstd.len() - 2], None).is_err(), "cut off, and not shorter");
}

#[test]
fn invalid_and_too_large_numbers_are_refused() {
    for wrong in ["inf 7 100", "nan 7 100", "-1 7 100", "0 7 -100", "0 7 1e3", "0 7 0x10"] {
        assert!(read_with(wrong.as_bytes(), Some(Format::TimeKeySize)).is_err(), "{wrong}");
    }
    let over = "0 7 18446744073709551616";
    assert!(read_with(over.as_bytes(), Some(Format::TimeKeySize)).is_err());
    // As a key it is a name like any other, and not another number.
    let keys = "18446744073709551616\n0\n18446744073709551616\n";
    let (_, requests) = read_with(keys.as_bytes(), Some(Format::Keys)).unwrap();
    assert!(requests[0] == requests[2] && requests[0].key != requests[1].key);
    for (format, wrong) in [
        (Format::Lis, "18446744073709551615 2 0 0"),
        (Format::MqSim, "0 0 36028797018963968 1 1"),
        (Format::Msr, "0,h,0,Read,18446744073709551615,2,0"),
    ] {
        let error = read_with(wrong.as_bytes(), Some(format)).unwrap_err();
        assert_eq!(error.place, Place::Line(1), "{error}");
    }
}

#[test]
fn a_fio_log_with_thousands_of_files_is_recognised_by_its_first_line() {
    let mut text = "fio version 2 iolog\n".to_owned();
    text.extend((0..20_000).map(|number| format!("/f{number} add\n")));
    text.push_str("/f1 read 0 4096\n");
    assert_eq!(recognised(&text), Ok((Format::Fio, 1)));
}

#[test]
fn binary_records_are_recognised_only_if_the_whole_beginning_fits() {
    let oracle = |number: u64, next: i64| {
        let mut record = Vec::new();
        record.extend((number as u32).to_le_bytes());
        record.extend(key(number).to_le_bytes());
        record.extend(64_u32.to_le_bytes());
        record.extend(next.to_le_bytes());
        record
    };
    let good: Vec<u8> = (0..1000).flat_map(|number| oracle(number, -1)).collect();
    assert_eq!(read_with(&good, None).unwrap().0, Format::OracleGeneral);
    let mut bad = good.clone();
    // The next use is in the past.
    bad.splice(900 * 24..901 * 24, oracle(900, 3));
    let error = read_with(&bad, None).unwrap_err();
    assert!(error.reason.contains("is not recognised") && error.place == Place::Whole, "{error}");
    let cut = &good[..good.len() - 5];
    let error = read_with(cut, None).unwrap_err();
    assert_eq!(error.place, Place::Offset(999 * 24), "{error}");
}
