//! A faithful directory keeps each promise, and a view that does not follow its source breaks them.

use super::*;

fn directories() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let (one, two) = (directory.path().join("one"), directory.path().join("two"));
    std::fs::create_dir(&one).unwrap();
    std::fs::create_dir(&two).unwrap();
    (directory, one, two)
}

fn plan(mount: &Path, source: &Path, rounds: u32) -> Plan {
    Plan {
        mount: mount.to_path_buf(),
        source: source.to_path_buf(),
        chosen: promises(),
        rounds,
        seed: 1,
        names_time: Duration::ZERO,
    }
}

#[test]
fn a_directory_keeps_every_promise_to_itself() {
    let (_directory, one, _) = directories();
    let broken = run(&plan(&one, &one, 6)).unwrap();
    assert!(broken.is_empty(), "{broken:?}");
}

#[test]
fn names_are_unique() {
    let mut names: Vec<_> = promises().iter().map(|promise| promise.name).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

/// A "mount" that shows another directory: the suite must report every promise as broken.
#[test]
fn a_view_of_another_directory_breaks_every_promise() {
    let (_directory, mount, source) = directories();
    let broken = run(&plan(&mount, &source, 1)).unwrap();
    assert_eq!(broken.len(), promises().len());
}

/// A delayed writer still gets its turns next to faster ones.
#[test]
fn every_part_of_a_race_has_its_turns() {
    let (mut turns_of_one, mut turns_of_another) = (0, 0);
    race::at_once(vec![
        Box::new(|| {
            turns_of_one += 1;
            Ok(())
        }),
        Box::new(|| {
            turns_of_another += 1;
            std::thread::sleep(Duration::from_micros(turns_of_another % 7 * 100));
            Ok(())
        }),
    ])
    .unwrap();
    assert!(turns_of_one >= race::TURNS, "{turns_of_one}");
    assert!(turns_of_another >= race::TURNS.into(), "{turns_of_another}");
    let error = race::at_once(vec![Box::new(|| Ok(())), Box::new(|| bail!("broken"))]);
    assert_eq!(error.unwrap_err().to_string(), "broken");
}

#[test]
fn a_counter_that_goes_back_is_seen() {
    let read =
        |values: &[u64]| -> Vec<u8> { values.iter().flat_map(|v| v.to_le_bytes()).collect() };
    let mut seen = vec![0; 2];
    race::check_counters(&read(&[3, 4]), 3, &mut seen).unwrap();
    let error = race::check_counters(&read(&[3, 3]), 3, &mut seen).unwrap_err();
    assert!(error.to_string().contains("went back"), "{error}");
    let error = race::check_counters(&read(&[4, 4]), 5, &mut seen).unwrap_err();
    assert!(error.to_string().contains("published"), "{error}");
    assert!(race::check_counters(&read(&[4]), 0, &mut seen).is_err());
}
