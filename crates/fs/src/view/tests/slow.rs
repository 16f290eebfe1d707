//! Requests to an origin that takes its time to answer.

use super::*;
use crate::testing::{FakeOrigin, NAMES, SIZE};
use std::ffi::OsString;
use std::sync::atomic::Ordering;

/// Lists the root with attributes; returns the number of names.
fn list(view: &View<FakeOrigin>) -> u64 {
    let opened = view.open_directory(ROOT, 1).unwrap();
    let (mut count, mut cookie) = (0, 0);
    loop {
        let mut room = 150;
        view.read_directory(opened.handle, cookie, true, &mut |entry| {
            if room > 0 {
                (room, count, cookie) = (room - 1, count + 1, entry.cookie);
            }
            room > 0
        })
        .unwrap();
        if room > 0 {
            break;
        }
    }
    view.release_directory(opened.handle);
    count
}

fn view() -> View<FakeOrigin> {
    let settings = Settings { direct_io: false, ..fixture().view.settings.clone() };
    View::new(
        FakeOrigin::default(),
        settings,
        Cache::new(64 << 20),
        Versions::new(Duration::ZERO, false, 1, VersionSecret::new([1; 32])),
        Workers::new(1),
        InodeLimit::new(1 << 20, || {}),
        None,
    )
    .unwrap()
}

#[test]
fn attributes_that_come_with_names_are_not_asked_for_one_by_one() {
    let view = view();
    assert_eq!(list(&view), NAMES);
    assert_eq!(view.origin.names.lock().asked, 0, "all came with the names");
    // Later the reply has expired, while the names are still in the cache.
    view.origin.names.lock().with_attributes.clear();
    assert_eq!(list(&view), NAMES);
    assert_eq!(view.origin.names.lock().asked, 0, "and all came with the names again");
}

/// An NFS client caches names for longer than the attributes that came with them.
#[test]
fn attributes_that_are_old_come_with_names_again() {
    let mut view = view();
    let dropped = |view: &View<FakeOrigin>| view.origin.names_dropped.load(Ordering::SeqCst);
    list(&view);
    assert_eq!(dropped(&view), 1, "their age in the client is unknown");
    list(&view);
    assert_eq!(dropped(&view), 1, "they are fresh");
    view.attributes_old = Duration::ZERO;
    list(&view);
    assert_eq!(dropped(&view), 2);
}

#[test]
fn old_attributes_of_many_names_are_read_again_after_the_first_few_lookups() {
    let mut view = view();
    let dropped = |view: &View<FakeOrigin>| view.origin.names_dropped.load(Ordering::SeqCst);
    let names = (1..=3000).map(|cookie| (cookie, OsString::from(cookie.to_string())));
    *view.origin.listed.lock() = Arc::new(names.collect());
    assert_eq!(list(&view), 3000);
    assert_eq!(dropped(&view), 1);
    view.attributes_old = Duration::ZERO;
    let opened = view.open_directory(ROOT, 1).unwrap();
    let mut cookie = 0;
    let mut first = |from| {
        view.read_directory(opened.handle, from, true, &mut |entry| {
            cookie = entry.cookie;
            false
        })
        .unwrap();
        cookie
    };
    let on = first(0);
    assert_eq!(dropped(&view), 1, "a program may want the names alone");
    first(on);
    assert_eq!(dropped(&view), 2);
    view.release_directory(opened.handle);
}

/// An NFS client sends each write to the server before it answers with times. The kernel asks for
/// the size each time that a program alternates between writes and reads.
#[test]
fn a_request_for_the_size_of_a_file_being_written_does_not_ask_for_its_times() {
    for (pristine, flushes, is_spared) in
        [(false, true, true), (false, false, false), (true, true, false)]
    {
        let view = view();
        view.origin.flushes_before_times.store(flushes, Ordering::SeqCst);
        let number = view.lookup(ROOT, OsStr::new("file"), 1).unwrap().number;
        let opened = view.open(number, OFlags::RDWR, 1).unwrap();
        let inode = view.inodes.get(number).unwrap();
        inode.update_contents(|contents| contents.pristine = pristine);
        view.origin.times_asked.store(0, Ordering::SeqCst);
        let known = view.attributes_for_size(number, Some(opened.handle));
        assert_eq!(known.is_some(), is_spared, "{pristine} {flushes}");
        assert!(known.is_none_or(|known| known.unwrap().attributes.size_bytes == SIZE));
        assert!(view.attributes_for_size(number, None).is_none(), "stat(2) needs all");
        assert_eq!(view.origin.times_asked.load(Ordering::SeqCst), 0);
        view.release(opened.handle);
    }
}
