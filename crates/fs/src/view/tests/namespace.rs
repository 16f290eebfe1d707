//! Names that the kernel has cached, and that lead elsewhere by now or were changed through the
//! mount.

use super::*;

#[test]
fn a_name_that_leads_to_another_file_now_is_looked_up_again() {
    let fixture = fixture();
    let (view, thread, other) = (&fixture.view, 7, 8);
    fs::write(fixture.path("a"), "old").unwrap();
    fs::write(fixture.path("b"), "new").unwrap();
    let old = fixture.lookup("a").number;
    view.open(old, OFlags::RDONLY, thread).unwrap();
    fs::rename(fixture.path("b"), fixture.path("a")).unwrap();
    assert_eq!(view.open(old, OFlags::RDONLY, thread).unwrap_err(), Errno::STALE);
    let truncate = Changes { size_bytes: Some(0), ..Changes::default() };
    assert_eq!(view.open(old, OFlags::RDWR, other).unwrap_err(), Errno::STALE);
    let new = view.lookup(ROOT, OsStr::new("a"), thread).unwrap().number;
    assert_ne!(new, old);
    let opened = view.open(new, OFlags::RDONLY, thread).unwrap();
    assert_eq!(fixture.read(opened.handle, 0, 100), b"new");
    view.release(opened.handle);

    // The same for a file that would be truncated by that name.
    fs::write(fixture.path("c"), "other").unwrap();
    fs::rename(fixture.path("a"), fixture.path("kept")).unwrap();
    fs::rename(fixture.path("c"), fixture.path("a")).unwrap();
    let refused = view.set_attributes(new, None, &truncate, thread).unwrap_err();
    assert_eq!(refused, Errno::STALE);
    assert_eq!(fs::read(fixture.path("kept")).unwrap(), b"new");
}

#[test]
fn files_that_exchange_their_names_are_distinguished() {
    let fixture = fixture();
    let (view, thread) = (&fixture.view, 7);
    fs::write(fixture.path("a"), "one").unwrap();
    fs::write(fixture.path("b"), "two").unwrap();
    let (one, two) = (fixture.lookup("a").number, fixture.lookup("b").number);
    fs::rename(fixture.path("a"), fixture.path("c")).unwrap();
    fs::rename(fixture.path("b"), fixture.path("a")).unwrap();
    fs::rename(fixture.path("c"), fixture.path("b")).unwrap();
    assert_eq!(view.open(one, OFlags::RDONLY, thread).unwrap_err(), Errno::STALE);
    assert_eq!(view.lookup(ROOT, OsStr::new("a"), thread).unwrap().number, two);
    let opened = view.open(two, OFlags::RDONLY, thread).unwrap();
    assert_eq!(fixture.read(opened.handle, 0, 100), b"two");
    // The kernel has still cached "b" for the same file, whose last lookup was of "a".
    assert_eq!(view.open(two, OFlags::RDONLY, thread).unwrap_err(), Errno::STALE);
}

#[test]
fn a_file_renamed_linked_or_unlinked_through_the_mount_needs_no_second_lookup() {
    let fixture = fixture();
    let view = &fixture.view;
    let name = OsStr::new;
    for file in ["single", "linked", "replaced"] {
        fs::write(fixture.path(file), file).unwrap();
    }
    fs::create_dir(fixture.path("d")).unwrap();
    let directory = fixture.lookup("d").number;
    let (single, linked) = (fixture.lookup("single").number, fixture.lookup("linked").number);
    let replaced = fixture.lookup("replaced").number;
    view.link(linked, directory, name("other")).unwrap();
    view.link(replaced, directory, name("kept")).unwrap();
    let flags = RenameFlags::empty();
    view.rename((ROOT, name("single")), (ROOT, name("then")), flags).unwrap();
    view.rename((ROOT, name("then")), (ROOT, name("replaced")), flags).unwrap();
    view.rename((ROOT, name("d")), (ROOT, name("e")), flags).unwrap();
    // A fanotify watcher looks nothing up: it opens the file that it is handed.
    for (number, contents) in [(single, "single"), (linked, "linked"), (replaced, "replaced")] {
        for thread in [7, 8] {
            let opened = view.open(number, OFlags::RDONLY, thread).unwrap();
            assert_eq!(fixture.read(opened.handle, 0, 100), contents.as_bytes());
            view.release(opened.handle);
        }
    }
    let opened = view.open_directory(directory, 7).unwrap();
    view.release_directory(opened.handle);
    view.unlink(ROOT, name("linked")).unwrap();
    let opened = view.open(linked, OFlags::RDONLY, 7).unwrap();
    assert_eq!(fixture.read(opened.handle, 0, 100), b"linked");
    // A change of the name behind the mount is still noticed.
    fs::write(fixture.path("new"), "new").unwrap();
    fs::rename(fixture.path("new"), fixture.path("replaced")).unwrap();
    assert_eq!(view.open(single, OFlags::RDONLY, 7).unwrap_err(), Errno::STALE);
    fs::write(fixture.path("new"), "new").unwrap();
    fs::rename(fixture.path("new"), fixture.path("e/other")).unwrap();
    assert_eq!(view.open(linked, OFlags::RDONLY, 8).unwrap_err(), Errno::STALE);
}

#[test]
fn directories_exchanged_through_the_mount_are_opened_without_a_second_lookup() {
    let fixture = fixture();
    let (view, flags) = (&fixture.view, RenameFlags::EXCHANGE);
    for directory in ["a", "b"] {
        fs::create_dir(fixture.path(directory)).unwrap();
    }
    let (one, two) = (fixture.lookup("a").number, fixture.lookup("b").number);
    view.rename((ROOT, OsStr::new("a")), (ROOT, OsStr::new("b")), flags).unwrap();
    for number in [one, two] {
        let opened = view.open_directory(number, 7).unwrap();
        view.release_directory(opened.handle);
    }
    fs::rename(fixture.path("a"), fixture.path("c")).unwrap();
    fs::rename(fixture.path("b"), fixture.path("a")).unwrap();
    assert_eq!(view.open_directory(one, 7).unwrap_err(), Errno::STALE);
    assert_eq!(view.open_directory(two, 8).unwrap_err(), Errno::STALE);
}

#[test]
fn a_file_that_lost_its_name_after_the_lookup_can_be_opened() {
    let fixture = fixture();
    fs::write(fixture.path("a"), "old").unwrap();
    fs::write(fixture.path("b"), "new").unwrap();
    let old = fixture.lookup("a").number;
    fs::rename(fixture.path("b"), fixture.path("a")).unwrap();
    assert_eq!(fixture.view.open(old, OFlags::RDONLY, 1).unwrap_err(), Errno::STALE);
    // The kernel comes back with the inode that it had looked up before the rename.
    let opened = fixture.view.open(old, OFlags::RDONLY, 1).unwrap();
    assert_eq!(fixture.read(opened.handle, 0, 100), b"old");
}
