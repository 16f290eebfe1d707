//! The meaning of an offset into a directory, for as long as the directory is open.

use super::*;
use crate::testing::FakeOrigin;
use std::collections::BTreeMap;
use std::ops::Bound;

/// More names than a listing keeps.
const COUNT: u64 = 40_000;

/// Names by 63-bit cookies, like ext4's.
fn names(numbers: std::ops::Range<u64>) -> BTreeMap<u64, OsString> {
    let cookie = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 1;
    numbers.map(|number| (cookie(number), format!("n{number}").into())).collect()
}

fn view_of(listed: BTreeMap<u64, OsString>) -> View<FakeOrigin> {
    let origin = FakeOrigin::default();
    *origin.listed.lock() = listed.into();
    View::new(
        origin,
        Settings { direct_io: false, ..fixture().view.settings.clone() },
        Cache::new(64 << 20),
        Versions::new(Duration::ZERO, false, 1, VersionSecret::new([1; 32])),
        Workers::new(1),
        InodeLimit::new(1 << 20, || {}),
        None,
    )
    .unwrap()
}

/// Up to this many names after an offset, in replies of a hundred, each with the offset behind it.
fn read<O: Origin>(
    view: &View<O>,
    handle: u64,
    from: u64,
    most: usize,
    attributes: bool,
) -> Result<Vec<(OsString, u64)>> {
    let (mut read, mut offset) = (Vec::new(), from);
    while read.len() < most {
        let before = read.len();
        view.read_directory(handle, offset, attributes, &mut |entry| {
            let has_room = read.len() < most.min(before + 100);
            if has_room {
                read.push((entry.name.to_owned(), entry.cookie));
                offset = entry.cookie;
            }
            has_room
        })?;
        if read.len() == before {
            break;
        }
    }
    Ok(read)
}

#[test]
fn a_huge_directory_has_offsets_of_31_bits_that_keep_their_meaning_while_names_come_and_go() {
    for attributes in [false, true] {
        let before = names(2..COUNT + 2);
        assert_eq!(before.len() as u64, COUNT);
        let view = view_of(before.clone());
        let handle = view.open_directory(ROOT, 1).unwrap().handle;
        let all = read(&view, handle, 0, usize::MAX, attributes).unwrap();
        assert!(all.iter().map(|(name, _)| name).eq(before.values()), "each name once");
        assert!(all.iter().all(|(_, offset)| (1..1 << 31).contains(offset)));
        assert_eq!(read(&view, handle, all[COUNT as usize - 1].1, 9, attributes), Ok(Vec::new()));

        let mut after = before.clone();
        after.retain(|cookie, _| cookie % 3 != 0);
        after.extend(names(COUNT + 2..COUNT + 20_000));
        *view.origin.listed.lock() = after.clone().into();
        let other = view.open_directory(ROOT, 2).unwrap().handle;
        // Rewound, with another read in between.
        read(&view, handle, 0, 500, attributes).unwrap();
        let cookies: Vec<u64> = before.into_keys().collect();
        for at in (0..COUNT as usize).step_by(997) {
            let from = (Bound::Excluded(cookies[at]), Bound::Unbounded);
            let expected = after.range(from).map(|(_, name)| name).take(7);
            let expected: Vec<&OsString> = expected.collect();
            for handle in [handle, other] {
                let rest = read(&view, handle, all[at].1, 7, attributes).unwrap();
                assert_eq!(rest.iter().map(|(name, _)| name).collect::<Vec<_>>(), expected);
            }
        }
        // Handles that are opened after the last one was closed share no offsets with it.
        view.release_directory(handle);
        view.release_directory(other);
        let later = view.open_directory(ROOT, 3).unwrap();
        assert!(later.sharing.is_some_and(|sharing| !sharing.keeps), "the kernel has lost offsets");
        let refused = read(&view, later.handle, all[77].1, 7, attributes);
        assert_eq!(
            refused,
            Err(Errno::STALE),
            "the program would take an end for a complete listing"
        );
    }
}

#[test]
fn names_before_an_error_are_shown_and_the_error_comes_with_the_next_read() {
    for attributes in [false, true] {
        let listed = names(2..COUNT + 2);
        let view = view_of(listed.clone());
        // Within a reply.
        let break_at = listed.keys().copied().nth(35_050);
        *view.origin.breaks_off_at.lock() = break_at;
        let handle = view.open_directory(ROOT, 1).unwrap().handle;
        let mut all = read(&view, handle, 0, 35_050, attributes).unwrap();
        assert_eq!(all.len(), 35_050);
        let from = all.last().unwrap().1;
        assert_eq!(read(&view, handle, from, 1, attributes), Err(Errno::IO));
        *view.origin.breaks_off_at.lock() = None;
        all.extend(read(&view, handle, from, usize::MAX, attributes).unwrap());
        assert!(all.iter().map(|(name, _)| name).eq(listed.values()), "each name once");
    }
}

#[test]
fn an_offset_keeps_its_meaning_after_the_directory_changed() {
    let fixture = fixture();
    fs::create_dir(fixture.path("d")).unwrap();
    for number in 0..30 {
        fs::write(fixture.path("d").join(format!("n{number}")), "").unwrap();
    }
    let number = fixture.lookup("d").number;
    let view = &*fixture.view;
    let handle = view.open_directory(number, 1).unwrap().handle;
    let first = read(view, handle, 0, usize::MAX, false).unwrap();
    let (offset, rest) = (first[9].1, &first[10..]);
    for pass in 0..4 {
        fixture.make_noticed("d", &format!("new{pass}"));
        fs::remove_file(fixture.path("d").join(format!("n{pass}"))).unwrap();
        let now = read(view, handle, 0, usize::MAX, false).unwrap();
        assert!(now.iter().any(|(name, _)| *name == *format!("new{pass}")), "it is rewound");
        assert_eq!(read(view, handle, offset, usize::MAX, false).unwrap(), rest);
        let third = now[2].1;
        assert_eq!(read(view, handle, third, usize::MAX, false).unwrap(), now[3..]);
    }
}

#[test]
fn names_held_by_open_directories_are_bounded_and_all_are_still_read() {
    // The cache must have no listing, as in a directory that changes all the time.
    let mut view = view_of(names(1..20_001));
    view.versions = racy_for_ever();
    let held = |view: &View<FakeOrigin>| view.held_names.bytes();
    let open = || view.open_directory(ROOT, 1).unwrap().handle;
    let handles: Vec<_> = (0..200).map(|_| open()).collect();
    let begun: Vec<_> =
        handles.iter().map(|handle| read(&view, *handle, 0, 100, false).unwrap()).collect();
    let listing_bytes = 2 << 20;
    assert!(held(&view) > listing_bytes && held(&view) < (32 << 20) + listing_bytes);
    for (handle, mut seen) in handles.iter().zip(begun) {
        let from = seen.last().unwrap().1;
        seen.extend(read(&view, *handle, from, usize::MAX, false).unwrap());
        let numbers: std::collections::BTreeSet<_> = seen.iter().map(|(name, _)| name).collect();
        assert_eq!((seen.len(), numbers.len()), (20_000, 20_000));
    }
    handles.iter().for_each(|handle| view.release_directory(*handle));
    assert_eq!(held(&view), 0);
}

fn racy_for_ever() -> Versions {
    Versions::new(Duration::from_secs(1 << 33), false, 1, VersionSecret::new([1; 32]))
}
