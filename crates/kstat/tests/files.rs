//! The files that are written for OpenZFS's tools.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashSet;

use ogive_kstat::arcstats::{self, ARCSTATS, REMOVED_ROWS};
use ogive_kstat::files::{COMPANIONS, DMU_TX, ZFETCHSTATS, ZIL};
use ogive_kstat::{Value, named};

const CAPTURED: &[u8] = include_bytes!("data/openzfs-2.1.11/start/arcstats");

#[test]
fn all_rows_come_in_order_and_the_absent_ones_are_zero() {
    let counters = [("size", 5_i128), ("hits", 9), ("memory_available_bytes", -3), ("c", -1)];
    let text = arcstats::file(11, 22, counters).unwrap();
    assert!(text.starts_with("12 1 0x01 148 40256 11 22\n"), "{text}");
    let kstat = named::parse("zfs", "arcstats", text.as_bytes()).unwrap();
    let names: Vec<_> = kstat.entries.iter().map(|entry| &*entry.name).collect();
    let declared: Vec<_> = ARCSTATS.fields.iter().map(|field| field.name).collect();
    assert_eq!(names, declared);
    assert_eq!(names.len(), 148);
    assert_eq!(kstat.get("hits"), Some(&Value::U64(9)));
    assert_eq!(kstat.get("c"), Some(&Value::U64(0)), "clamped to the range of the row");
    assert_eq!(kstat.get("memory_available_bytes"), Some(&Value::I64(-3)));
    let set = kstat.entries.iter().filter(|entry| entry.value.as_integer() != Some(0)).count();
    assert_eq!(set, 3);
    // Tools do the same: they skip two lines and read three words of each other line.
    assert!(text.lines().skip(2).all(|line| line.split_whitespace().count() == 3));
}

/// The captured release is older: its rows are a part of the table, in the table's order, except
/// the four that were removed later.
#[test]
fn order_and_types_match_a_real_file() {
    let captured = named::parse("zfs", "arcstats", CAPTURED).unwrap();
    let removed: HashSet<_> = REMOVED_ROWS.iter().map(|field| field.name).collect();
    let mut before = None;
    let mut shared = 0;
    for entry in captured.entries.iter().filter(|entry| !removed.contains(&*entry.name)) {
        let position = ARCSTATS.position(&entry.name).unwrap_or_else(|| panic!("{}", entry.name));
        assert!(Some(position) > before, "{} is out of order", entry.name);
        before = Some(position);
        assert_eq!(ARCSTATS.fields[position].type_code, entry.value.type_code(), "{}", entry.name);
        shared += 1;
    }
    assert_eq!(shared, 119);
}

#[test]
fn companions_match_real_files() {
    let captured = |name, bytes| named::parse("zfs", name, bytes).unwrap();
    let dmu_tx = captured("dmu_tx", include_bytes!("data/openzfs-2.1.11/start/dmu_tx"));
    let mut ours = DMU_TX.rows(dmu_tx.crtime_ns, dmu_tx.snaptime_ns);
    ours.fill([("dmu_tx_assigned", 1561_u64), ("dmu_tx_dirty_throttle", 6)]).unwrap();
    let theirs = std::str::from_utf8(include_bytes!("data/openzfs-2.1.11/start/dmu_tx")).unwrap();
    assert_eq!(ours.to_text(), theirs);
    for (table, captured) in [
        (&ZIL, captured("zil", include_bytes!("data/openzfs-2.1.11/start/zil"))),
        (&ZFETCHSTATS, captured("z", include_bytes!("data/openzfs-2.1.11/start/zfetchstats"))),
    ] {
        let positions: Option<Vec<_>> =
            captured.entries.iter().map(|entry| table.position(&entry.name)).collect();
        let positions = positions.expect("a captured row is not in the table");
        assert!(positions.is_sorted(), "{}: {positions:?}", table.name);
        assert_eq!(captured.kid, table.kid);
    }
    assert_eq!((ZIL.fields.len(), ZFETCHSTATS.fields.len()), (21, 8));
}

#[test]
fn names_are_unique_and_documented() {
    for table in COMPANIONS.into_iter().chain([&ARCSTATS]) {
        let names: HashSet<_> = table.fields.iter().map(|field| field.name).collect();
        assert_eq!(names.len(), table.fields.len(), "{}", table.name);
        for field in table.fields {
            assert!(!field.doc.is_empty() && !field.doc.ends_with('.'), "{}", field.name);
            assert_eq!(table.field(field.name).unwrap().doc, field.doc);
        }
    }
}

#[test]
fn an_unknown_name_is_an_error_and_extra_rows_come_last() {
    let error = arcstats::file(0, 0, [("hist", 1_u64)]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "arcstats has no field \"hist\"; append it if it is an extra row"
    );
    let mut rows = ARCSTATS.rows(0, 0);
    arcstats::append_removed_rows(&mut rows, [1, 2, 3, 4]);
    let kstat = rows.to_kstat();
    assert_eq!(kstat.entries.len(), 152);
    assert_eq!(kstat.entries[148].name, "p");
    assert_eq!(kstat.entries[151].value, Value::U64(4));
}
