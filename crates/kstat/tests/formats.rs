//! The four texts of kstats: real files, made-up corners, and arbitrary bytes.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;

use ogive_kstat::{Entry, Kstat, ParseErrorKind, Value, illumos, limits, named, parse, sysctl};
use proptest::prelude::*;

fn captures() -> Vec<(String, Vec<u8>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/openzfs-2.1.11");
    let mut files = Vec::new();
    for moment in ["start", "end"] {
        for file in fs::read_dir(root.join(moment)).unwrap() {
            let path = file.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            files.push((name, fs::read(path).unwrap()));
        }
    }
    files
}

#[test]
fn files_of_openzfs_are_rewritten_byte_for_byte() {
    let mut named_files = 0;
    for (name, bytes) in captures() {
        if name == "fletcher_4_bench" {
            let error = named::parse("zfs", &name, &bytes).unwrap_err();
            assert_eq!(error.kind, ParseErrorKind::NotNamed(0));
            continue;
        }
        let kstat = named::parse("zfs", &name, &bytes).unwrap();
        assert_eq!(named::write(&kstat).as_bytes(), bytes, "{name}");
        assert_eq!(parse(&bytes).unwrap()[0].entries, kstat.entries);
        named_files += 1;
    }
    assert_eq!(named_files, 11);
}

#[test]
fn values_names_and_times_of_a_real_file() {
    let bytes = include_bytes!("data/openzfs-2.1.11/start/arcstats");
    let kstat = named::parse("zfs", "arcstats", bytes).unwrap();
    assert_eq!(kstat.entries.len(), 123);
    assert_eq!((kstat.kid, kstat.flags, kstat.data_size_bytes), (12, 1, None));
    assert_eq!((kstat.crtime_ns, kstat.snaptime_ns), (866_730_933_347, 977_093_119_499));
    assert_eq!(kstat.get("hits"), Some(&Value::U64(16_711)));
    assert!(matches!(kstat.get("memory_available_bytes"), Some(Value::I64(_))));
    assert_eq!(kstat.integer("none such"), None);

    // Strings are stored outside the kernel's table and add to its size.
    let objset =
        named::parse("zfs/tank", "o", include_bytes!("data/openzfs-2.1.11/start/objset-0x36"));
    let objset = objset.unwrap();
    assert_eq!(objset.data_size_bytes, Some(2160));
    assert_eq!(objset.get("dataset_name").unwrap().as_text(), Some("tank"));

    // Names with blanks.
    let kcf = named::parse("kcf", "f", include_bytes!("data/openzfs-2.1.11/start/framework_stats"));
    assert_eq!(kcf.unwrap().get("max requests in gswq"), Some(&Value::U32(4_194_304)));
}

#[test]
fn long_names_shift_the_row_and_strings_keep_their_blanks() {
    let long = "demand_iohit_predictive_prefetch";
    let longer_with_blank = "a name with blanks of more than thirty-one columns";
    assert!(long.len() > 31);
    let mut kstat = Kstat::new("zfs", "t");
    for (name, value) in [
        (long, Value::U64(7)),
        (longer_with_blank, Value::I64(-7)),
        ("text", Value::Str("my pool/a  4    b".into())),
        ("empty", Value::Str(String::new())),
        ("characters", Value::Char("abc".into())),
        ("l", Value::Long(-1)),
        ("ul", Value::Ulong(u64::MAX)),
        ("i", Value::I32(i32::MIN)),
    ] {
        kstat.entries.push(Entry { name: name.into(), value });
    }
    let text = named::write(&kstat);
    assert!(text.contains("\ndemand_iohit_predictive_prefetch 4    7\n"), "{text}");
    assert!(text.contains("\ncharacters                      0    abc             \n"), "{text}");
    assert_eq!(named::parse("zfs", "t", text.as_bytes()).unwrap(), kstat);
}

#[test]
fn a_row_out_of_its_columns_is_read_by_words() {
    let text = "0 1 0x01 2 544 0 0\nname type data\nhits 4 12\n\tlost   3  -4 \n\n";
    let kstat = named::parse("m", "n", text.as_bytes()).unwrap();
    assert_eq!(kstat.get("hits"), Some(&Value::U64(12)));
    assert_eq!(kstat.get("lost"), Some(&Value::I64(-4)));
}

#[test]
fn errors_name_the_line() {
    let head = "0 1 0x01 1 272 0 0\nname type data\n";
    let at = |text: String| {
        let error = named::parse("m", "n", text.as_bytes()).unwrap_err();
        (error.line, error.to_string())
    };
    for (text, line, words) in [
        (String::new(), 1, "header"),
        ("0 1 1 1 272 0 0\n".into(), 1, "flags"),
        ("0 1 0x01 1 272 0 0 0\n".into(), 1, "more than seven"),
        ("0 1 0x01 -1 272 0 0\nname type data\n".into(), 1, "negative"),
        ("0 1 0x01 1 272 0 0\nnothing\n".into(), 2, "name type data"),
        (format!("{head}hits\n"), 3, "a name, a type"),
        (format!("{head}hits 4\n"), 3, "a type and a value"),
        (format!("{head}hits 8 1\n"), 3, "data type"),
        (format!("{head}hits 4 -1\n"), 3, "not a number of type 4"),
        (format!("{head}hits 4 1\nmisses 4 1\n"), 5, "promises 1 rows, the text has 2"),
        (head.into(), 3, "the text has 0"),
        (format!("{head}{}\n", "x".repeat(limits::MAX_LINE_BYTES + 1)), 3, "over the limit"),
    ] {
        let (found, message) = at(text.clone());
        assert_eq!(found, line, "{text:?}: {message}");
        assert!(message.contains(words), "{text:?}: {message}");
        assert!(message.starts_with(&format!("line {line}: ")), "{message}");
    }
    let error = named::parse("m", "n", b"0 1 0x01 1 272 0 0\nname type data\n\xff\xfe 4 1\n");
    assert_eq!(error.unwrap_err().kind, ParseErrorKind::NotUtf8);
    assert_eq!(parse(b"hello\n").unwrap_err().kind, ParseErrorKind::UnknownFormat);
    let huge = vec![b'\n'; limits::MAX_INPUT_BYTES + 1];
    assert!(matches!(parse(&huge).unwrap_err().kind, ParseErrorKind::InputTooLong { .. }));
}

#[test]
fn rows_are_bounded() {
    let mut text = String::from("kstat.m.c.t.0: 1\n");
    for row in 1..=limits::MAX_ROWS {
        text.push_str(&format!("kstat.m.c.t.{row}: 1\n"));
    }
    let error = sysctl::parse(text.as_bytes()).unwrap_err();
    assert_eq!(error.kind, ParseErrorKind::TooManyRows);
    assert_eq!(error.line, limits::MAX_ROWS + 1);
}

#[test]
fn freebsd_sysctl_in_both_forms() {
    let text = "kern.ostype: FreeBSD\n\
        kstat.zfs.misc.arcstats.hits: 8019094\n\
        kstat.zfs.misc.arcstats.memory_available_bytes: -5\n\
        kstat.zfs.misc.zfetchstats.hits=42\n\
        kstat.zfs.my.pool.dataset.objset-0x36.dataset_name: my.pool/a=b: c\n\
        kstat.zfs.misc.vdev_raidz_bench: \n\
        implementation   gen_p\n\
        kstat.zfs.my.pool.misc.state: ONLINE\n\
        kstat.zfs.misc.fm.empty:\n\
        kstat.zfs.misc.arcstats.misses: 7\n";
    let kstats = parse(text.as_bytes()).unwrap();
    let names: Vec<_> = kstats.iter().map(|k| (&*k.module, &*k.class, &*k.name)).collect();
    assert_eq!(
        names,
        [
            ("zfs", "misc", "arcstats"),
            ("zfs", "misc", "zfetchstats"),
            ("zfs/my.pool", "dataset", "objset-0x36"),
            ("zfs", "misc", "fm"),
        ]
    );
    assert_eq!(kstats[0].integer("hits"), Some(8_019_094));
    assert_eq!(kstats[0].integer("memory_available_bytes"), Some(-5));
    assert_eq!(kstats[0].integer("misses"), Some(7));
    assert_eq!(kstats[1].integer("hits"), Some(42));
    assert_eq!(kstats[2].get("dataset_name").unwrap().as_text(), Some("my.pool/a=b: c"));
    assert_eq!(kstats[3].get("empty").unwrap().as_text(), Some(""));
    let error = sysctl::parse(b"\nkstat.zfs.misc.arcstats.hits 5\n").unwrap_err();
    assert_eq!(error.line, 2);
    assert!(sysctl::parse(b"kstat.hits: 5\n").is_err());
}

#[test]
fn illumos_in_both_forms() {
    let parsable = "zfs:0:arcstats:c\t1000\nzfs:0:arcstats:class\tmisc\n\
        zfs:0:arcstats:crtime\t33.801247\nzfs:0:arcstats:snaptime\t44.000000005\n\
        sd:3:sd3,err:Vendor\tA B C\n";
    let blocks = "module: zfs                             instance: 0     \n\
        name:   arcstats                        class:    misc\n\
        \tc                               1000\n\tcrtime                          33.801247\n\
        \tsnaptime                        44.000000005\n\nmodule: sd   instance: 3\n\
        name:   sd3,err   class:\n\tVendor                          A B C\n";
    let from_parsable = parse(parsable.as_bytes()).unwrap();
    let from_blocks = parse(blocks.as_bytes()).unwrap();
    assert_eq!(from_parsable, from_blocks);
    let [arcstats, sd] = &from_blocks[..] else { panic!("{from_blocks:?}") };
    assert_eq!((&*arcstats.module, &*arcstats.name, &*arcstats.class), ("zfs", "arcstats", "misc"));
    assert_eq!((arcstats.crtime_ns, arcstats.snaptime_ns), (33_801_247_000, 44_000_000_005));
    assert_eq!(arcstats.entries, [Entry { name: "c".into(), value: Value::U64(1000) }]);
    assert_eq!(sd.instance, 3);
    assert_eq!(sd.get("Vendor").unwrap().as_text(), Some("A B C"));
    assert_eq!(illumos::parse_parsable(b"a:0:b:c\t1\nnonsense\n").unwrap_err().line, 2);
    assert_eq!(illumos::parse_blocks(b"\tc 5\n").unwrap_err().line, 1);
    assert!(illumos::parse_blocks(b"module: a instance: 0\nc 5\n").is_err());
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        "[!-~]{0,15}".prop_map(Value::Char),
        any::<i32>().prop_map(Value::I32),
        any::<u32>().prop_map(Value::U32),
        any::<i64>().prop_map(Value::I64),
        any::<u64>().prop_map(Value::U64),
        any::<i64>().prop_map(Value::Long),
        any::<u64>().prop_map(Value::Ulong),
        "[!-~]{0,8}( {0,5}[!-~]{1,9}){0,3}".prop_map(Value::Str),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    /// Names with single blanks as the kernel uses them, of lengths around the column's.
    #[test]
    fn written_kstats_are_read_back_the_same(
        rows in prop::collection::vec(("[a-z_%-]{1,20}( ?[a-z_]{1,12}){0,3}", value()), 0..9),
        times in any::<(i64, i64)>(),
    ) {
        let mut kstat = Kstat::new("zfs", "t");
        (kstat.crtime_ns, kstat.snaptime_ns) = times;
        kstat.entries = rows.into_iter().map(|(name, value)| Entry { name, value }).collect();
        let text = named::write(&kstat);
        prop_assert_eq!(named::parse("zfs", "t", text.as_bytes()).unwrap(), kstat);
    }

    #[test]
    fn arbitrary_bytes_make_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let _ = parse(&bytes);
        let _ = named::parse("", "", &bytes);
        let _ = sysctl::parse(&bytes);
        let _ = illumos::parse_parsable(&bytes);
        let _ = illumos::parse_blocks(&bytes);
    }

    /// Texts of the formats' own pieces reach more code than random bytes.
    #[test]
    fn shuffled_pieces_make_no_panic(pieces in prop::collection::vec(prop::sample::select(vec![
        "0 1 0x01 1 272 0 0", "name type data", "\n", "\t", " ", ":", "=", ".", "kstat.zfs.misc.",
        "arcstats", "hits", "4    ", "7    ", "module:", "instance:", "name:", "class:", "crtime",
        "-1", "99999999999999999999", "1.5", "é", "zfs:0:arcstats:c\t", "                    ",
    ]), 0..40)) {
        let text = pieces.concat();
        for read in [sysctl::parse, illumos::parse_parsable, illumos::parse_blocks, parse] {
            let _ = read(text.as_bytes());
        }
        let whole = format!("0 1 0x01 1 272 0 0\nname type data\n{text}\n");
        let _ = parse(whole.as_bytes());
    }
}
