//! The control file `objects` over a view with a known cache.

use super::*;
use serde_json::Value;
use std::os::unix::ffi::OsStrExt;
use std::time::Instant;

impl Fixture {
    fn objects(&self, now: Instant) -> Value {
        serde_json::from_str(&crate::cached_objects::json(&self.view, now)).unwrap()
    }

    /// Opens a file in a directory, reads all of it and closes it.
    fn read_below(&self, directory: u64, name: &OsStr) -> u64 {
        let number = self.view.lookup(directory, name, 1).unwrap().number;
        let opened = self.view.open(number, OFlags::RDONLY, 1).unwrap();
        self.read(opened.handle, 0, 1 << 20);
        self.view.release(opened.handle);
        number
    }
}

/// The row with this path.
fn row<'a>(shown: &'a Value, rows: &str, path: &str) -> &'a Value {
    let mut found = shown[rows].as_array().unwrap().iter().filter(|row| row["path"] == path);
    let row = found.next().unwrap_or_else(|| panic!("no {path} in {shown:#}"));
    assert!(found.next().is_none(), "{path} has one row");
    row
}

fn paths(shown: &Value, rows: &str) -> Vec<String> {
    let rows = shown[rows].as_array().unwrap();
    rows.iter().map(|row| row["path"].as_str().unwrap().to_owned()).collect()
}

/// The weight of the records of a file of this length.
fn weight(length: u64) -> u64 {
    length + length.div_ceil(RECORD) * crate::record::ENTRY_OVERHEAD_BYTES
}

#[test]
fn resident_bytes_are_exact_by_file_and_directory() {
    let fixture = fixture();
    fs::create_dir_all(fixture.path("d/inner")).unwrap();
    for (name, length) in [("a", 3 * RECORD + 100), ("d/b", RECORD + 50), ("d/inner/c", 10)] {
        fs::write(fixture.path(name), pattern(length as usize, 1)).unwrap();
    }
    let shown = fixture.objects(Instant::now());
    assert_eq!((&shown["total"]["bytes"], &shown["objects"]), (&0.into(), &0.into()));
    assert!(paths(&shown, "files").is_empty() && paths(&shown, "directories").is_empty());

    let d = fixture.lookup("d").number;
    let inner = fixture.view.lookup(d, OsStr::new("inner"), 1).unwrap().number;
    fixture.read_below(ROOT, OsStr::new("a"));
    fixture.read_below(ROOT, OsStr::new("a"));
    fixture.read_below(d, OsStr::new("b"));
    fixture.read_below(inner, OsStr::new("c"));

    let shown = fixture.objects(Instant::now());
    assert_eq!(paths(&shown, "files"), ["/a", "/d/b", "/d/inner/c"], "the largest first");
    assert_eq!(paths(&shown, "directories"), ["/", "/d", "/d/inner"]);
    let expected = [
        ("files", "/a", weight(3 * RECORD + 100), 4),
        ("files", "/d/b", weight(RECORD + 50), 2),
        ("files", "/d/inner/c", weight(10), 1),
        ("directories", "/d", weight(RECORD + 50) + weight(10), 3),
        ("directories", "/d/inner", weight(10), 1),
    ];
    for (rows, path, bytes, records) in expected {
        let row = row(&shown, rows, path);
        assert_eq!((&row["bytes"], &row["records"]), (&bytes.into(), &records.into()), "{path}");
        let lists = row["mru_bytes"].as_u64().unwrap() + row["mfu_bytes"].as_u64().unwrap();
        assert_eq!(lists, bytes, "{path}");
    }
    let stats = fixture.view.cache.stats();
    let total = &shown["total"];
    assert_eq!(total["bytes"], stats.data_size);
    assert_eq!(total["mru_bytes"], stats.mru_data);
    assert_eq!(total["mfu_bytes"], stats.mfu_data);
    assert_eq!(row(&shown, "directories", "/")["bytes"], stats.data_size);
    assert_eq!((&shown["objects"], &shown["undercount_max_bytes"]), (&3.into(), &0.into()));
    assert_eq!(shown["unnamed"]["records"], 0);
}

#[test]
fn reads_and_misses_are_counted_by_file_while_a_program_looks() {
    let fixture = fixture();
    fs::write(fixture.path("before"), pattern(5000, 1)).unwrap();
    fs::write(fixture.path("after"), pattern(2 * RECORD as usize + 9, 1)).unwrap();
    fixture.read_file("before");
    assert!(!fixture.view.observers.are_active());

    // The lease lasts, however slow this machine is.
    let now = Instant::now() + Duration::from_secs(3600);
    fixture.objects(now);
    assert!(fixture.view.observers.are_active());
    (0..3).for_each(|_| drop(fixture.read_file("after")));
    fixture.read_file("before");
    let shown = fixture.objects(now);
    let counts = |path| {
        let row = row(&shown, "files", path);
        ["reads", "hits", "misses", "origin_bytes", "l2_bytes"].map(|name| row[name].as_u64())
    };
    assert_eq!(counts("/after"), [9, 6, 3, 2 * RECORD + 9, 0].map(Some));
    assert_eq!(counts("/before"), [2, 2, 0, 0, 0].map(Some), "its record was resident already");
    assert_eq!((&shown["sampled_one_in"], &shown["total"]["reads"]), (&1.into(), &11.into()));
}

#[test]
fn a_removed_or_changed_file_is_unnamed_and_a_renamed_one_has_its_new_name() {
    let fixture = fixture();
    fs::create_dir(fixture.path("d")).unwrap();
    for name in ["removed", "changed", "old"] {
        fs::write(fixture.path(name), pattern(4000, 1)).unwrap();
    }
    let read = |name| fixture.read_below(ROOT, OsStr::new(name));
    let (removed, _, _) = (read("removed"), read("changed"), read("old"));
    let names = ["/changed", "/old", "/removed"];
    let mut shown = paths(&fixture.objects(Instant::now()), "files");
    shown.sort();
    assert_eq!(shown, names);

    // The kernel forgets removed files.
    fixture.view.unlink(ROOT, OsStr::new("removed")).unwrap();
    fixture.view.forget(removed, 1);
    // Records of the earlier contents stay until they are evicted.
    fs::write(fixture.path("changed"), pattern(5000, 2)).unwrap();
    read("changed");
    let d = fixture.lookup("d").number;
    let (old, new) = ((ROOT, OsStr::new("old")), (d, OsStr::new("new")));
    fixture.view.rename(old, new, RenameFlags::empty()).unwrap();
    fixture.view.lookup(d, OsStr::new("new"), 1).unwrap();

    let shown = fixture.objects(Instant::now());
    assert_eq!(paths(&shown, "files"), ["/changed", "/d/new"]);
    assert_eq!(row(&shown, "files", "/changed")["records"], 2);
    assert_eq!(shown["unnamed"]["bytes"], 2 * weight(4000));
    assert_eq!(shown["total"]["bytes"], 3 * weight(4000) + weight(5000));
}

#[test]
fn a_hostile_name_stays_one_name() {
    let fixture = fixture();
    let hostile = OsStr::from_bytes(b"a\nb\xff\\\x1b[2J<script>");
    fs::write(fixture.directory.path().join(hostile), pattern(100, 1)).unwrap();
    fixture.read_below(ROOT, hostile);
    let shown = fixture.objects(Instant::now());
    assert_eq!(paths(&shown, "files"), ["/a\\u{a}b\\xff\\\\\\u{1b}[2J<script>"]);
}

/// More files than rows; the largest files are not the most read ones.
#[test]
fn rows_are_bounded_and_include_the_first_of_each_order() {
    let fixture = fixture();
    for number in 0..400_usize {
        fs::write(fixture.path(&number.to_string()), pattern(10 * (number + 1), 1)).unwrap();
        fixture.read_file(&number.to_string());
    }
    let now = Instant::now() + Duration::from_secs(3600);
    fixture.objects(now);
    (0..150).for_each(|number| drop(fixture.read_file(&number.to_string())));
    fixture.read_file("7");
    let shown = fixture.objects(now);
    let files = paths(&shown, "files");
    assert_eq!(files.len(), 200, "a hundred by bytes, a hundred others by reads");
    assert_eq!(files[..2], ["/399", "/398"]);
    assert_eq!(row(&shown, "files", "/7")["reads"], 2);
    assert_eq!(shown["objects"], 400);
}
