//! What an origin is asked that takes its time to answer.

use super::*;
use crate::testing::{FakeOrigin, NAMES};

/// Lists the root with attributes; how many names there are.
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

#[test]
fn attributes_that_come_with_names_are_not_asked_for_one_by_one() {
    let settings = Settings { direct_io: false, ..fixture().view.settings.clone() };
    let view = View::new(
        FakeOrigin::default(),
        settings,
        Cache::new(64 << 20),
        Versions::new(Duration::ZERO, false, 1, VersionSecret::new([1; 32])),
        Workers::new(1),
        InodeLimit::new(1 << 20, || {}),
        None,
    );
    let view = view.unwrap();
    assert_eq!(list(&view), NAMES);
    assert_eq!(view.origin.names.lock().asked, 0, "all came with the names");
    // Later what was told is not believed any more, while the names are in the cache still.
    view.origin.names.lock().told.clear();
    assert_eq!(list(&view), NAMES);
    assert_eq!(view.origin.names.lock().asked, 0, "and all came with the names again");
}
