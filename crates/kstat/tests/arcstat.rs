//! The columns of arcstat, on real counters and on made-up ones.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashSet;
use std::path::Path;

use ogive_kstat::arcstat::{
    COLUMNS, Cell, Column, ColumnError, Columns, Layout, Report, Scale, Snapshot,
};
use ogive_kstat::{Source, SourceError};

fn captured(moment: &str) -> Snapshot {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/openzfs-2.1.11");
    Source::directory(data.join(moment)).snapshot().unwrap()
}

fn snapshot(numbers: &[(&str, i128)]) -> Snapshot {
    Snapshot::from_numbers(1, 2, numbers.iter().map(|&(name, number)| (name, number)))
}

fn number(report: &Report<'_>, column: &str) -> f64 {
    match report.cell(Column::find(column).unwrap(), "") {
        Cell::Number(number) => number,
        cell => panic!("{column}: {cell:?}"),
    }
}

#[test]
fn rates_shares_and_levels_between_two_readings() {
    let before = snapshot(&[
        ("hits", 100),
        ("iohits", 10),
        ("misses", 50),
        ("demand_data_hits", 80),
        ("demand_data_iohits", 10),
        ("demand_data_misses", 30),
        ("demand_metadata_hits", 5),
        ("evict_l2_eligible", 1 << 20),
        ("size", 9),
    ]);
    let after = snapshot(&[
        ("hits", 260),
        ("iohits", 30),
        ("misses", 70),
        ("demand_data_hits", 200),
        ("demand_data_iohits", 30),
        ("demand_data_misses", 50),
        ("demand_metadata_hits", 15),
        ("demand_metadata_misses", 30),
        ("evict_l2_eligible", 5 << 20),
        ("size", 4096),
        ("arc_no_grow", 1),
    ]);
    let report = Report::between(&before, &after, 2.0);
    for (column, expected) in [
        ("hits", 80.0),
        ("iohs", 10.0),
        ("miss", 10.0),
        ("read", 100.0),
        ("hit%", 80.0),
        ("ioh%", 10.0),
        ("miss%", 10.0),
        ("ddread", 80.0),
        ("ddh%", 75.0),
        ("ddi%", 12.5),
        ("ddm%", 12.5),
        ("dmread", 20.0),
        ("dmh%", 25.0),
        ("dread", 100.0),
        ("dhit", 65.0),
        ("mread", 20.0),
        ("el2el", 2.0 * 1_048_576.0),
        ("size", 4096.0),
        ("arcsz", 4096.0),
        ("grow", 0.0),
    ] {
        assert_eq!(number(&report, column), expected, "{column}");
    }
    assert_eq!(
        report.cell(Column::find("time").unwrap(), "12:00:00"),
        Cell::Text("12:00:00".into())
    );
    assert_eq!(report.cell(Column::find("avail").unwrap(), ""), Cell::Absent);
}

#[test]
fn nothing_happened_is_zero_percent() {
    let idle = snapshot(&[("hits", 5), ("iohits", 0), ("misses", 5)]);
    let report = Report::between(&idle, &idle, 1.0);
    assert_eq!(number(&report, "hit%"), 0.0);
    assert_eq!(number(&report, "miss%"), 0.0);
    assert_eq!(number(&Report::between(&idle, &idle, 0.0), "read"), 0.0);
    assert_eq!(number(&Report::between(&idle, &idle, f64::NAN), "read"), 0.0);
}

#[test]
fn the_four_targets_share_the_cache() {
    let half = 1_i128 << 31;
    let quarter = 1_i128 << 30;
    let cache = snapshot(&[
        ("meta", quarter),
        ("pd", half),
        ("pm", quarter),
        ("mru_data", 1000),
        ("mfu_metadata", 500),
        ("anon_data", 60),
        ("uncached_data", 40),
        ("size", 3200),
        ("hdr_size", 800),
        ("mfu_ghost_size", 77),
    ]);
    let report = Report::since_start(&cache);
    for (column, expected) in [
        ("metatg", 400.0),
        ("datatg", 1200.0),
        ("mrudt", 600.0),
        ("mfudt", 600.0),
        ("mrumt", 100.0),
        ("mfumt", 300.0),
        ("mrutg", 700.0),
        ("mfutg%", 56.25),
        ("metatg%", 25.0),
        ("mruda", 1000.0),
        ("mruda%", 62.5),
        ("hdrsz%", 25.0),
        ("mfugsz", 77.0),
    ] {
        assert_eq!(number(&report, column), expected, "{column}");
    }
}

#[test]
fn the_first_row_is_the_average_since_the_counters_began() {
    let numbers = [("hits", 600_i128), ("misses", 0)];
    let ten_minutes = Snapshot::from_numbers(1_000_000_000, 601_000_000_000, numbers);
    let report = Report::since_start(&ten_minutes);
    assert_eq!(report.elapsed_seconds(), 600.0);
    assert_eq!(number(&report, "hits"), 1.0);
    // A source without times shows totals.
    let timeless = Snapshot::from_numbers(0, 0, numbers);
    assert_eq!(number(&Report::since_start(&timeless), "hits"), 600.0);
    // Counters that were reset are not subtracted.
    let reset = Snapshot::from_numbers(700_000_000_000, 702_000_000_000, [("hits", 4_i128)]);
    assert_eq!(reset.seconds_since(&ten_minutes), None);
    assert_eq!(number(&Report::between(&ten_minutes, &reset, 101.0), "hits"), 2.0);
}

#[test]
fn captured_counters_of_an_older_release() {
    let (before, after) = (captured("start"), captured("end"));
    let seconds = after.seconds_since(&before).unwrap();
    assert!(seconds > 1.0);
    let report = Report::between(&before, &after, seconds);
    let growth = |name| (after.get(name).unwrap() - before.get(name).unwrap()) as f64 / seconds;
    assert_eq!(number(&report, "hits"), growth("hits"));
    assert_eq!(number(&report, "read"), (growth("hits") + growth("misses")));
    assert_eq!(number(&report, "zissued"), growth("zfetch_io_issued"));
    assert_eq!(number(&report, "c"), after.get("c").unwrap() as f64);
    // 2.1 has neither I/O hits nor the adaptive shares.
    assert_eq!(report.cell(Column::find("iohs").unwrap(), ""), Cell::Absent);
    assert_eq!(report.cell(Column::find("mrutg").unwrap(), ""), Cell::Absent);
    assert!(!after.has_l2());
    let row = Layout::new(Columns::parse("iohs,hits").unwrap()).row(&report, "");
    assert!(row.starts_with("   -  "), "{row:?}");
}

fn one_row(list: &str, numbers: &[(&str, i128)], elapsed_seconds: f64) -> String {
    let (before, after) = (snapshot(&[]), snapshot(numbers));
    let columns = Columns::parse(list).unwrap();
    Layout::new(columns).row(&Report::between(&before, &after, elapsed_seconds), "01:02:03")
}

#[test]
fn numbers_are_shortened_as_arcstat_shortens_them() {
    let hits = |hits, seconds| one_row("hits", &[("hits", hits)], seconds);
    assert_eq!(hits(0, 1.0), "   0");
    assert_eq!(hits(999, 1.0), " 999");
    assert_eq!(hits(1000, 1.0), "1000", "a number equal to the scale is not divided");
    assert_eq!(hits(1001, 1.0), "1.0K");
    assert_eq!(hits(1670, 1.0), "1.7K");
    assert_eq!(hits(15_400, 1.0), " 15K");
    assert_eq!(hits(2_000_000, 1.0), "  2M", "whole after the division: no decimal");
    assert_eq!(hits(3_000_000, 2.0), "1.5M", "another interval: one decimal");
    assert_eq!(hits(5, 2.0), " 2.5");
    assert_eq!(hits(17, 0.999), "  17", "a second that came late is still a second");
    assert_eq!(one_row("size", &[("size", 1023)], 1.0), " 1023");
    assert_eq!(one_row("size", &[("size", 1536)], 1.0), " 1.5K");
    assert_eq!(one_row("size", &[("size", 32 << 30)], 1.0), "  32G");
    assert_eq!(one_row("avail", &[("memory_available_bytes", -(3 << 20))], 1.0), "  -3M");
    assert_eq!(one_row("hit%", &[("hits", 1), ("misses", 2)], 1.0), "33.3");
    assert_eq!(one_row("hit%", &[("hits", 1)], 1.0), " 100");
    let demand = [("demand_data_hits", 1), ("demand_data_misses", 2)];
    assert_eq!(one_row("dh%", &demand, 1.0), " 33", "a decimal does not fit");
    assert_eq!(one_row("time,c", &[("c", 7)], 1.0), "01:02:03      7");
}

#[test]
fn the_header_returns_and_rows_align() {
    let counters = snapshot(&[("hits", 1), ("misses", 1), ("size", 5), ("c", 5)]);
    let report = Report::between(&counters, &counters, 1.0);
    let mut layout = Layout::new(Columns::default());
    assert_eq!(
        layout.header(),
        "    time  read  ddread  ddh%  dmread  dmh%  pread  ph%   size      c  avail"
    );
    let first = layout.line(&report, "01:02:03");
    let (header, row) = first.trim_end().split_once('\n').unwrap();
    assert_eq!(header.len(), row.len());
    let headers = |layout: &mut Layout, rows: usize| {
        let lines = (0..rows).map(|_| layout.line(&report, "01:02:03"));
        lines.filter(|line| line.contains("time")).count()
    };
    assert_eq!(headers(&mut layout, 20), 0, "one header for 21 rows");
    assert_eq!(headers(&mut layout, 1), 1);
    layout.set_terminal_rows(10);
    assert_eq!(headers(&mut layout, 7), 0);
    assert_eq!(headers(&mut layout, 1), 1);
    layout.set_terminal_rows(2);
    assert_eq!(headers(&mut layout, 8), 1, "a terminal of two lines changes nothing");
}

#[test]
fn raw_numbers_and_separators() {
    let (before, after) =
        (snapshot(&[]), snapshot(&[("hits", 3), ("misses", 0), ("size", 1 << 40)]));
    let columns = Columns::parse("time, hits,size ,avail").unwrap();
    let layout = Layout::new(columns).separator(",").raw_numbers(true);
    let report = Report::between(&before, &after, 2.0);
    assert_eq!(layout.header(), "time,hits,size,avail");
    assert_eq!(layout.row(&report, "01:02:03"), "01:02:03,1.5,1099511627776,-");
}

#[test]
fn records_are_json_objects_of_raw_numbers() {
    let (before, after) = (
        snapshot(&[]),
        snapshot(&[("hits", 3), ("misses", 1), ("size", 1 << 40), ("memory_available_bytes", -4)]),
    );
    let columns = Columns::parse("time,hits,hit%,size,avail,need").unwrap();
    let record = Report::between(&before, &after, 2.0).record(&columns, "01:02:03");
    assert_eq!(
        serde_json::to_string(&record).unwrap(),
        r#"{"time":"01:02:03","hits":1.5,"hit%":75.0,"size":1099511627776,"avail":-4,"need":null}"#
    );
    assert_eq!(record.cells().count(), 6);
}

#[test]
fn choices_of_columns() {
    let names = |columns: &Columns| columns.iter().map(|column| column.name).collect::<Vec<_>>();
    assert_eq!(names(&Columns::default())[..3], ["time", "read", "ddread"]);
    assert_eq!(names(&Columns::default()).len(), 11);
    assert_eq!(names(&Columns::extended())[1..4], ["mfu", "mru", "mfug"]);
    assert_eq!(names(&Columns::prefetch())[10], "zactive");
    assert_eq!(names(&Columns::all(true)).len(), COLUMNS.len() - 1);
    assert_eq!(names(&Columns::all(true).with_costs()).len(), COLUMNS.len());
    assert_eq!(names(&Columns::default().with_costs())[11], "$/h");
    assert!(!names(&Columns::all(false)).iter().any(|name| name.starts_with("l2")));
    assert_eq!(names(&Columns::parse("c,time,c").unwrap()), ["c", "time", "c"]);
    assert_eq!(Columns::parse(" , ").unwrap_err(), ColumnError::Empty);
    let unknown = Columns::parse("time,hti%").unwrap_err();
    let message = unknown.to_string();
    assert!(message.starts_with("no field \"hti%\"; did you mean "), "{message}");
    assert!(message.contains("hit%"), "{message}");
    let ColumnError::Unknown { near, .. } = Columns::parse("missess").unwrap_err() else {
        panic!()
    };
    assert_eq!(near.first(), Some(&"zmisses"), "{near:?}");
    let nothing_near = Columns::parse("entirely-elsewhere").unwrap_err().to_string();
    assert!(nothing_near.contains("the fields are: time hits"), "{nothing_near}");
}

#[test]
fn the_table_is_sound() {
    let names: HashSet<_> = COLUMNS.iter().map(|column| column.name).collect();
    assert_eq!(names.len(), COLUMNS.len());
    assert_eq!(COLUMNS.len(), 190);
    for column in COLUMNS {
        assert!(column.width >= column.name.len(), "{}", column.name);
        assert_eq!(column.scale == Scale::Percent, column.name.ends_with('%'), "{}", column.name);
        assert!(!column.description.is_empty());
    }
}

#[test]
fn sources_name_the_missing_file() {
    let root = tempfile::tempdir().unwrap();
    let error = Source::kernel_below(root.path()).snapshot().unwrap_err();
    assert!(matches!(error, SourceError::NoKernelKstats { .. }));
    let message = error.to_string();
    assert!(message.starts_with("no OpenZFS kstats on this host ("), "{message}");
    assert!(message.contains("/proc/spl/kstat/zfs/arcstats: No such file"), "{message}");
    assert!(message.ends_with("name the mount point of an ogive mount"), "{message}");

    let error = Source::directory(root.path()).snapshot().unwrap_err();
    assert!(matches!(error, SourceError::NotASource { .. }), "{error}");

    let kernel = root.path().join("proc/spl/kstat/zfs");
    std::fs::create_dir_all(&kernel).unwrap();
    std::fs::write(kernel.join("arcstats"), "0 1 0x01 1 272 5 6\nname type data\nhits 4 x\n")
        .unwrap();
    let error = Source::kernel_below(root.path()).snapshot().unwrap_err();
    assert!(error.to_string().contains("arcstats: line 3: "), "{error}");

    std::fs::write(kernel.join("arcstats"), "0 1 0x01 1 272 5 6\nname type data\nhits 4 7\n")
        .unwrap();
    let read = Source::kernel_below(root.path()).snapshot().unwrap();
    assert_eq!(read.get("hits"), Some(7), "without zfetchstats");
    std::fs::create_dir(kernel.join("zfetchstats")).unwrap();
    let error = Source::kernel_below(root.path()).snapshot().unwrap_err();
    assert!(matches!(error, SourceError::Read { .. }), "{error}");
}

#[test]
fn the_cost_of_requests_is_shown_in_dollars_an_hour() {
    let at = |seconds: i64, microdollars: i128| {
        let numbers = [("origin_microdollars", microdollars)];
        Snapshot::from_numbers(1, 1 + seconds * 1_000_000_000, numbers)
    };
    let (earlier, later) = (at(0, 1_000), at(10, 1_400));
    let report = Report::between(&earlier, &later, 10.0);
    let column = Column::find("$/h").unwrap();
    // 40 microdollars a second.
    let Cell::Number(dollars) = report.cell(column, "") else { panic!("no number") };
    assert!((dollars - 0.144).abs() < 1e-9, "{dollars}");
    let layout = Layout::new(Columns::parse("$/h").unwrap());
    assert_eq!(layout.row(&report, ""), "0.1440");
    for (microdollars, shown) in [(0, "0.0000"), (35_000, "12.600"), (5_000_000_000, "1800000")] {
        let later = at(10, 1_000 + microdollars);
        let report = Report::between(&earlier, &later, 10.0);
        assert_eq!(layout.row(&report, ""), shown);
    }
    assert!(later.has_costs() && !snapshot(&[]).has_costs());
    let nothing = snapshot(&[]);
    let row = layout.row(&Report::since_start(&nothing), "");
    assert_eq!(row, "     -", "no bucket");
}
