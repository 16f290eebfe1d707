//! The kernel's cached pages and names of opened files and directories.

use super::*;
use crate::eventually::eventually;

impl Fixture {
    /// Makes a file that changes the times of its directory, because clocks of file systems tick.
    pub(super) fn make_noticed(&self, directory: &str, name: &str) {
        let changed = || {
            let metadata = fs::metadata(self.path(directory)).unwrap();
            (metadata.ctime(), metadata.ctime_nsec())
        };
        let before = changed();
        let path = self.path(directory).join(name);
        eventually("a new name changes the times of its directory", || {
            fs::write(&path, "").unwrap();
            let is_noticed = changed() != before;
            if !is_noticed {
                fs::remove_file(&path).unwrap();
            }
            is_noticed
        });
    }
}

#[test]
fn pages_are_kept_once_the_kernel_has_dropped_those_before() {
    let fixture = fixture();
    fs::write(fixture.path("a"), "one").unwrap();
    let first = fixture.open("a", OFlags::RDONLY);
    // The reply to this open may overtake the other.
    let second = fixture.open("a", OFlags::RDONLY);
    assert!(!first.keep_pages && !second.keep_pages);
    fixture.read(first.handle, 0, 10);
    let third = fixture.open("a", OFlags::RDONLY);
    assert!(third.keep_pages);
    // A kernel that never got the handle did not drop its pages.
    fs::write(fixture.path("a"), "another").unwrap();
    let never_told = fixture.open("a", OFlags::RDONLY);
    fixture.view.undo_open(never_told.handle);
    let fourth = fixture.open("a", OFlags::RDONLY);
    assert!(!fourth.keep_pages);
    fixture.view.release(fourth.handle);
    assert!(fixture.open("a", OFlags::RDONLY).keep_pages);
}

#[test]
fn names_are_kept_by_the_kernel_as_long_as_a_directory_has_not_changed() {
    let fixture = fixture();
    let path = fixture.path("d");
    fs::create_dir(&path).unwrap();
    let number = fixture.lookup("d").number;
    let open = || fixture.view.open_directory(number, 1).unwrap();
    let keeps = |opened: &OpenedDirectory| opened.sharing.map(|sharing| sharing.keeps);
    let list = |handle| fixture.view.read_directory(handle, 0, false, &mut |_| true).unwrap();
    let first = open();
    assert_eq!(keeps(&first), Some(false));
    list(first.handle);
    let second = open();
    assert_eq!(keeps(&second), Some(true));
    fixture.make_noticed("d", "new");
    // The other handles read the names from before the change.
    let third = open();
    assert_eq!(keeps(&third), None);
    for opened in [first, second, third] {
        fixture.view.release_directory(opened.handle);
    }
    let fourth = open();
    assert_eq!(keeps(&fourth), Some(false));
    list(fourth.handle);
    // Rewound, it reads the directory's present names. The other handles must not read on in those.
    list(fourth.handle);
    assert_eq!(keeps(&open()), None);
}

#[test]
fn names_of_a_directory_that_has_just_changed_are_not_kept() {
    let fixture = fixture_with(LONG, |_| {});
    fs::create_dir(fixture.path("d")).unwrap();
    let number = fixture.lookup("d").number;
    assert!(fixture.view.open_directory(number, 1).unwrap().sharing.is_none());
}

#[test]
fn a_source_that_never_changes_is_asked_for_a_listing_once() {
    let fixture = fixture_with(Duration::ZERO, |settings| settings.immutable = true);
    let path = fixture.path("d");
    fs::create_dir(&path).unwrap();
    fs::write(path.join("name"), "").unwrap();
    let number = fixture.lookup("d").number;
    let list = || {
        let opened = fixture.view.open_directory(number, 1)?;
        let mut names = Vec::new();
        fixture.view.read_directory(opened.handle, 0, false, &mut |entry| {
            names.push(entry.name.to_owned());
            true
        })?;
        fixture.view.release_directory(opened.handle);
        names.sort();
        Result::Ok(names)
    };
    assert_eq!(list().unwrap(), [".", "..", "name"]);
    // A request to the source would fail now.
    fs::remove_dir_all(&path).unwrap();
    assert_eq!(list().unwrap(), [".", "..", "name"]);
}
