//! The file over its life: kept, bounded, damaged, foreign.

use super::*;
use redb::TableHandle as _;

const NOW: u64 = 1_700_000_040_000;
const HOUR: u64 = 60;

fn at(minute: u64) -> u64 {
    NOW + minute * MINUTE_MS
}

fn minute_of(minute: u64) -> u32 {
    u32::try_from(at(minute) / MINUTE_MS).unwrap()
}

fn over(minute: u64, values: &[(&str, f32)]) -> Over {
    let spread = |value: f32| Spread { mean: value, min: value / 2.0, max: value * 2.0 };
    let series = values.iter().map(|(name, value)| ((*name).to_owned(), spread(*value)));
    Over { begins_ms: at(minute), series: series.collect() }
}

fn opened(path: &Path) -> Week {
    let opened = Week::open(path).unwrap();
    assert!(opened.set_aside.is_none(), "{:?}", opened.set_aside);
    opened.week
}

fn place() -> (tempfile::TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("history");
    (place, path)
}

#[test]
fn a_minute_survives_unchanged() {
    let (_place, path) = place();
    let week = opened(&path);
    week.put(&over(0, &[("host.cpu", 3.0), ("m1.hits", 1000.0)]), &["/a".into()]).unwrap();
    week.put(&over(1, &[("host.cpu", 5.0)]), &["/a".into()]).unwrap();
    drop(week);
    let week = opened(&path);
    assert_eq!(week.mounts(), [Some(PathBuf::from("/a"))]);
    assert_eq!(week.oldest_ms(), Some(NOW));
    let answer = week.points(at(0), at(2), 100).unwrap();
    assert_eq!(answer["step_ms"], MINUTE_MS);
    assert_eq!(answer["times"], json!([at(1), at(2)]));
    let cpu = json!({"mean": [3, 5], "min": [1.5, 2.5], "max": [6, 10]});
    assert_eq!(answer["series"]["host.cpu"], cpu);
    assert_eq!(answer["series"]["m1.hits"]["mean"], json!([1000, null]));
    // From ever on: what is asked for beyond a week is not there.
    assert_eq!(week.points(0, at(2), 100).unwrap()["times"].as_array().unwrap().len(), 1);
    // As one point.
    let answer = week.points(at(0), at(2), 1).unwrap();
    let mean = &answer["series"]["host.cpu"];
    assert!([json!([4]), json!([3, 5])].contains(&mean["mean"]), "{answer}");
    let means = week.means(at(0), at(2)).unwrap();
    assert_eq!((means.steps, means.get("host.cpu")), (2, Some(4.0)));
    assert_eq!(week.means(at(5), at(6)).unwrap(), Means::default());
}

#[test]
fn an_empty_file_has_no_rows_and_answers_every_question() {
    let (_place, path) = place();
    let week = opened(&path);
    for (from, to, points) in [(0, 0, 0), (u64::MAX, 0, 9), (0, u64::MAX, u64::MAX), (5, 4, 1)] {
        let answer = week.points(from, to, points).unwrap();
        assert_eq!((&answer["times"], &answer["series"]), (&json!([]), &json!({})));
    }
    assert_eq!(week.oldest_ms(), None);
}

#[test]
fn a_week_is_kept_and_no_more_and_no_row_of_a_clock_that_was_wrong() {
    let (_place, path) = place();
    let week = opened(&path);
    let minutes = KEPT_MS / MINUTE_MS;
    for minute in [0, 1, 2] {
        week.put(&over(minute, &[("a", 1.0)]), &[]).unwrap();
    }
    // A clock that was set to next year, and back.
    week.put(&over(525_600, &[("a", 1.0)]), &[]).unwrap();
    assert_eq!(week.oldest_ms(), Some(at(525_600)), "what is older than a week of that");
    week.put(&over(3, &[("a", 1.0)]), &[]).unwrap();
    assert_eq!(week.oldest_ms(), Some(at(3)));
    week.put(&over(3 + minutes, &[("a", 1.0)]), &[]).unwrap();
    assert_eq!(week.oldest_ms(), Some(at(3)), "a week ago to the minute");
    week.put(&over(4 + minutes, &[("a", 1.0)]), &[]).unwrap();
    assert_eq!(week.oldest_ms(), Some(at(3 + minutes)));
}

#[test]
fn bytes_are_counted_and_the_oldest_go_when_there_are_too_many() {
    let (_place, path) = place();
    let week = opened(&path);
    for minute in 0..5 {
        week.put(&over(minute, &[("a", 1.0), ("b", 7.0)]), &[]).unwrap();
    }
    week.put(&over(4, &[("a", 2.0)]), &[]).unwrap();
    let bytes = week.known.lock().bytes;
    assert!(bytes > 0);
    drop(week);
    let week = opened(&path);
    assert_eq!(week.known.lock().bytes, bytes, "counted as it is read");
    // As if there were as many as there may be.
    week.known.lock().bytes = BYTES_MAX - 1;
    week.put(&over(5, &[("a", 1.0), ("b", 7.0)]), &[]).unwrap();
    assert!(week.known.lock().bytes <= BYTES_MAX);
    assert!(week.oldest_ms().unwrap() > at(0));
}

/// Puts another table in the place of the mounts', or takes it away: no minute can be kept then.
fn disturb(week: &Week, is_wrong: bool) {
    const OTHER: TableDefinition<'_, u64, u64> = TableDefinition::new("mounts");
    let transaction = week.database.begin_write().unwrap();
    if is_wrong {
        transaction.delete_table(MOUNTS).unwrap();
        transaction.open_table(OTHER).unwrap();
    } else {
        transaction.delete_table(OTHER).unwrap();
    }
    transaction.commit().unwrap();
}

#[test]
fn a_minute_that_could_not_be_kept_gives_no_name_to_later_series() {
    let (_place, path) = place();
    let week = opened(&path);
    week.put(&over(0, &[("a", 1.0)]), &[]).unwrap();
    disturb(&week, true);
    assert!(week.put(&over(1, &[("b", 2.0)]), &["/b".into()]).is_err());
    disturb(&week, false);
    week.put(&over(2, &[("b", 3.0)]), &["/b".into()]).unwrap();
    drop(week);
    let week = opened(&path);
    week.put(&over(3, &[("c", 9.0)]), &[]).unwrap();
    let answer = week.points(at(0), at(4), 100).unwrap();
    let mean = |name: &str| answer["series"][name]["mean"].clone();
    assert_eq!(mean("b"), json!([null, 3, null]), "{answer}");
    assert_eq!(mean("c"), json!([null, null, 9]), "{answer}");
}

#[test]
fn a_number_that_only_rows_have_is_given_to_no_series() {
    let (_place, path) = place();
    let week = opened(&path);
    week.put(&over(0, &[("a", 1.0), ("b", 2.0)]), &[]).unwrap();
    let transaction = week.database.begin_write().unwrap();
    transaction.open_table(NAMES).unwrap().retain(|_, name| name != "a").unwrap();
    transaction.commit().unwrap();
    drop(week);
    let week = opened(&path);
    week.put(&over(1, &[("c", 9.0)]), &[]).unwrap();
    let answer = week.points(at(0), at(2), 100).unwrap();
    assert_eq!(answer["series"]["c"]["mean"], json!([null, 9]), "{answer}");
    assert_eq!(answer["series"].as_object().unwrap().len(), 2, "{answer}");
    assert_eq!(week.means(at(0), at(2)).unwrap().get(""), None);
}

#[test]
fn names_that_come_and_go_do_not_fill_the_file() {
    let (_place, path) = place();
    let week = opened(&path);
    let names: Vec<String> = (0..NAMES_MAX + 10).map(|number| format!("s{number}")).collect();
    let values: Vec<(&str, f32)> = names.iter().map(|name| (name.as_str(), 1.0)).collect();
    week.put(&over(0, &values), &[]).unwrap();
    assert_eq!(week.known.lock().numbers.len(), NAMES_MAX);
    // Its minute is over and gone; the next open removes names without a row.
    week.put(&over(2 * KEPT_MS / MINUTE_MS, &[("s1", 1.0)]), &["/gone".into()]).unwrap();
    drop(week);
    let week = opened(&path);
    assert_eq!(week.known.lock().numbers.keys().collect::<Vec<_>>(), ["s1"]);
    assert!(week.mounts().iter().all(Option::is_none), "a mount without a row");
    week.put(&over(2 * KEPT_MS / MINUTE_MS + 1, &[("new", 4.0)]), &[]).unwrap();
    let answer = week.means(at(0), u64::MAX).unwrap();
    assert_eq!((answer.get("s1"), answer.get("new")), (Some(1.0), Some(4.0)));
}

#[test]
fn a_mount_without_room_for_its_path_is_not_shown_under_another_path() {
    assert!(is_of_unknown_mount(&format!("m{}.hits", MOUNTS_MAX + 1)));
    for name in [&format!("m{MOUNTS_MAX}.hits"), "host.m9999", "m.hits", "mru", "m99999"] {
        assert!(!is_of_unknown_mount(name), "{name}");
    }
}

#[test]
fn a_file_of_something_else_is_left_alone() {
    let (place, path) = place();
    std::fs::write(&path, "root:x:0:0\n").unwrap();
    assert!(matches!(Week::open(&path), Err(Unusable::Foreign)));
    assert_eq!(std::fs::read(&path).unwrap(), b"root:x:0:0\n");
    // Another program's database, which is whole.
    let other = place.path().join("other");
    let database = Database::create(&other).unwrap();
    let transaction = database.begin_write().unwrap();
    let table: TableDefinition<'_, u64, u64> = TableDefinition::new("theirs");
    transaction.open_table(table).unwrap().insert(1, 2).unwrap();
    transaction.commit().unwrap();
    drop(database);
    assert!(matches!(Week::open(&other), Err(Unusable::Foreign)));
    assert!(other.exists());
    assert!(matches!(Week::open(place.path()), Err(Unusable::Failed(_))));
    assert!(matches!(Week::open(&place.path().join("no/where")), Err(Unusable::Failed(_))));
}

#[test]
fn one_process_writes_at_a_time() {
    let (_place, path) = place();
    let _week = opened(&path);
    assert!(matches!(Week::open(&path), Err(Unusable::InUse)));
}

/// Each part of a file with an hour in it, damaged or cut off: it opens, or it is set aside for a
/// new file. It never panics.
#[test]
fn a_damaged_file_is_set_aside_and_a_new_one_begun() {
    let (place, path) = place();
    let week = opened(&path);
    let values: Vec<(String, f32)> = (0..100).map(|n| (format!("host.s{n}"), n as f32)).collect();
    let values: Vec<(&str, f32)> = values.iter().map(|(name, n)| (name.as_str(), *n)).collect();
    (0..HOUR).for_each(|minute| week.put(&over(minute, &values), &["/a".into()]).unwrap());
    drop(week);
    let good = std::fs::read(&path).unwrap();
    let used = good.iter().rposition(|byte| *byte != 0).unwrap();
    let mut aside = 0;
    let damaged = place.path().join("history.damaged");
    for part in 0..24 {
        let mut bad = good.clone();
        if part % 4 == 3 {
            bad.truncate(16 + part * good.len() / 24);
        } else {
            let from = 16 + part * used / 24;
            bad[from..from + 512].iter_mut().for_each(|byte| *byte = !*byte);
        }
        std::fs::write(&path, &bad).unwrap();
        let opened = Week::open(&path).unwrap_or_else(|error| panic!("part {part}: {error}"));
        if let Some((why, there)) = &opened.set_aside {
            assert_eq!((there, why.is_empty()), (&damaged, false));
            assert_eq!(std::fs::read(there).unwrap().len(), bad.len(), "nothing is thrown away");
            assert_eq!(opened.week.oldest_ms(), None);
            aside += 1;
        }
        let week = opened.week;
        week.put(&over(HOUR, &values), &["/a".into()]).unwrap();
        assert_eq!(week.means(at(HOUR), at(HOUR + 1)).unwrap().get("host.s7"), Some(7.0));
    }
    assert!(aside > 8, "{aside} of 24 were found to be damaged");
}

/// A valid file with unusual rows: the form of a later version; invalid bytes; data that expands
/// without end; figures without a name; impossible times.
#[test]
fn rows_of_another_version_and_hostile_ones_are_left_out_and_the_others_are_shown() {
    use std::io::Write as _;
    let (_place, path) = place();
    let week = opened(&path);
    (0..3).for_each(|minute| week.put(&over(minute, &[("a", 5.0)]), &["/m".into()]).unwrap());
    drop(week);

    let good = row::encode(&[(0, Spread::of(5.0))]).unwrap();
    let mut later = good.clone();
    later[0] += 1;
    let mut endless =
        flate2::write::DeflateEncoder::new(vec![good[0]], flate2::Compression::best());
    endless.write_all(&vec![0xff; 64 << 20]).unwrap();
    let endless = endless.finish().unwrap();
    let nameless = row::encode(&[(999, Spread::of(1.0)), (0, Spread::of(7.0))]).unwrap();
    let database = Database::create(&path).unwrap();
    let transaction = database.begin_write().unwrap();
    {
        let mut rows = transaction.open_table(ROWS).unwrap();
        for (minute, bytes) in [
            (1, &later[..]),
            (3, &[]),
            (4, &[0xff; 300]),
            (5, &good[..good.len() - 1]),
            (6, &endless),
            (7, &nameless),
        ] {
            rows.insert(minute_of(minute), bytes).unwrap();
        }
        rows.insert(0, &good[..]).unwrap();
        rows.insert(u32::MAX, &good[..]).unwrap();
        let mut names = transaction.open_table(NAMES).unwrap();
        names.insert(7, "m1.<script>\u{0}\u{202e}").unwrap();
        names.insert(u16::MAX, "a").unwrap();
        let mut mounts = transaction.open_table(MOUNTS).unwrap();
        mounts.insert(u32::MAX, &b"/far"[..]).unwrap();
        mounts.insert(7, &b"\xff\0"[..]).unwrap();
    }
    transaction.commit().unwrap();
    drop(database);

    let week = opened(&path);
    let answer = week.points(at(0), at(9), 100).unwrap();
    let times = answer["times"].as_array().unwrap();
    for minute in [0, 2, 7] {
        assert!(times.contains(&json!(at(minute + 1))), "{minute} is whole: {answer}");
    }
    for minute in [1, 3, 4, 6] {
        assert!(!times.contains(&json!(at(minute + 1))), "{minute} is none: {answer}");
    }
    assert_eq!(answer["series"].as_object().unwrap().keys().collect::<Vec<_>>(), ["a"]);
    assert!(week.means(0, u64::MAX).unwrap().steps >= 4);
    // It continues, and the impossible times disappear.
    week.put(&over(10, &[("a", 6.0)]), &["/m".into()]).unwrap();
    let means = week.means(at(10), at(11)).unwrap();
    assert_eq!((means.steps, means.get("a")), (1, Some(6.0)));
    assert_eq!(week.oldest_ms(), Some(at(0)));
    assert_eq!(week.mounts(), [Some(PathBuf::from("/m"))]);
}

/// The tables of another version may hold other things under the same names.
#[test]
fn a_file_of_another_version_is_set_aside() {
    let (_place, path) = place();
    let database = Database::create(&path).unwrap();
    let transaction = database.begin_write().unwrap();
    let rows: TableDefinition<'_, u64, u64> = TableDefinition::new(ROWS.name());
    transaction.open_table(rows).unwrap().insert(1, 2).unwrap();
    transaction.commit().unwrap();
    drop(database);
    let opened = Week::open(&path).unwrap();
    let (why, aside) = opened.set_aside.unwrap();
    assert!(!why.is_empty() && aside.exists(), "{why}");
    opened.week.put(&over(0, &[("a", 1.0)]), &[]).unwrap();
    assert_eq!(opened.week.oldest_ms(), Some(NOW));
}

/// A host with two mounts, with figures that change from minute to minute. docs/watch.md takes its
/// figures for a week from this.
#[test]
fn a_minute_takes_less_than_a_kilobyte() {
    let (_place, path) = place();
    let week = opened(&path);
    let names: Vec<String> = (0..180).map(|number| format!("m1.series{number}")).collect();

    let mut state = 1_u32;
    for minute in 0..HOUR {
        let series = names.iter().enumerate().map(|(number, name)| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let mean = (state >> 8) as f32 / 1000.0;
            // A third is idle, a third stands still, the rest moves.
            let spread = match number % 3 {
                0 => Spread::of(0.0),
                1 => Spread::of(mean),
                _ => Spread { mean, min: mean * 0.9, max: mean * 1.3 },
            };
            (name.clone(), spread)
        });
        let over = Over { begins_ms: at(minute), series: series.collect() };
        week.put(&over, &["/mnt/fast".into()]).unwrap();
    }
    let bytes = week.known.lock().bytes;
    assert!(bytes < HOUR * 1024, "{} bytes a minute", bytes / HOUR);
    drop(week);
    let file = std::fs::metadata(&path).unwrap().len();
    assert!(file < 8 << 20, "{file} bytes");
}
