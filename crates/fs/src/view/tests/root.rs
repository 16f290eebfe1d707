//! The root directory of a view, whatever happens to its path.

use super::*;

fn view_of(source: &std::path::Path, like: &Fixture) -> View<DirectoryOrigin> {
    View::new(
        DirectoryOrigin::open(source).unwrap(),
        like.view.settings.clone(),
        Cache::new(1 << 20),
        Versions::new(Duration::ZERO, false, 2, VersionSecret::new([1; 32])),
        Workers::new(2),
        InodeLimit::new(1 << 20, || {}),
        None,
    )
    .unwrap()
}

#[test]
fn a_removed_source_is_an_error_and_another_with_its_name_is_not_mistaken_for_it() {
    let fixture = fixture();
    let outer = fixture.path("source");
    fs::create_dir(&outer).unwrap();
    fs::write(outer.join("a"), "before").unwrap();
    let view = view_of(&outer, &fixture);
    let name = OsStr::new("a");
    assert!(view.lookup(ROOT, name, 1).is_ok());
    fs::remove_dir_all(&outer).unwrap();
    let is_gone = || {
        assert_eq!(view.lookup(ROOT, name, 1).unwrap_err(), Errno::IO);
        assert_eq!(view.open_directory(ROOT, 1).unwrap_err(), Errno::IO);
        // Without attributes of the root, no user would reach the control directory.
        assert_eq!(view.attributes(ROOT, None).unwrap().number, ROOT);
    };
    is_gone();
    fs::create_dir(&outer).unwrap();
    fs::write(outer.join("a"), "after").unwrap();
    is_gone();
    let caller = Caller { user: 0, group: 0, umask: 0 };
    let what = Make::Directory { mode: 0o755 };
    assert!(view.make(ROOT, OsStr::new("b"), what, caller).is_err());
    assert!(!outer.join("b").exists());
}

#[test]
fn a_renamed_source_is_the_same_and_another_with_its_name_is_not() {
    let fixture = fixture();
    let (outer, moved) = (fixture.path("source"), fixture.path("moved"));
    fs::create_dir(&outer).unwrap();
    let view = view_of(&outer, &fixture);
    fs::rename(&outer, &moved).unwrap();
    fs::create_dir(&outer).unwrap();
    fs::write(outer.join("other"), "other").unwrap();
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let caller = Caller { user, group, umask: 0 };
    let what = Make::Directory { mode: 0o755 };
    view.make(ROOT, OsStr::new("made"), what, caller).unwrap();
    assert!(moved.join("made").is_dir() && !outer.join("made").exists());
    assert_eq!(view.lookup(ROOT, OsStr::new("other"), 1).unwrap_err(), Errno::NOENT);
    let inode = view.attributes(ROOT, None).unwrap().attributes.inode;
    assert_eq!(inode, fs::metadata(&moved).unwrap().ino());
}
