//! Files without extended attributes, which are cached for a while.

use super::*;
use ogive_origin::{Errno, XattrFlags};

fn get(fixture: &Fixture, number: u64, name: &str) -> Result<Vec<u8>> {
    let mut value = [0; 256];
    let length = fixture.view.get_xattr(number, OsStr::new(name), &mut value)?;
    Ok(value[..length].to_vec())
}

/// An access list in its stored form: version 2, with the entries of the mode.
fn list() -> Vec<u8> {
    let mut bytes = 2u32.to_le_bytes().to_vec();
    for (tag, permissions) in [(1u16, 6u16), (2, 4), (4, 4), (16, 4), (32, 4)] {
        let id = if tag == 2 { 1234u32 } else { u32::MAX };
        bytes.extend(
            [&tag.to_le_bytes()[..], &permissions.to_le_bytes(), &id.to_le_bytes()].concat(),
        );
    }
    bytes
}

#[test]
fn a_missing_access_list_is_cached_and_our_own_is_seen_at_once() {
    let fixture = fixture();
    fs::write(fixture.path("file"), "x").unwrap();
    let number = fixture.lookup("file").number;
    let name = "system.posix_acl_access";
    assert_eq!(get(&fixture, number, name), Err(Errno::NODATA));
    let set = |how: &dyn Fn() -> Result<()>| match how() {
        Err(Errno::OPNOTSUPP) => {
            let place = fixture.directory.path().display();
            crate::skipped::skipped(format_args!("no access lists on {place}"));
            false
        }
        other => {
            other.unwrap();
            true
        }
    };
    // Behind the view: the view has cached its last answer, as with other attributes.
    let behind = || {
        rustix::fs::setxattr(fixture.path("file"), name, &list(), rustix::fs::XattrFlags::empty())
    };
    if !set(&behind) {
        return;
    }
    assert_eq!(get(&fixture, number, name), Err(Errno::NODATA), "for an hour");
    // Attributes that some file systems compute are always requested.
    assert_eq!(get(&fixture, number, "user.colour"), Err(Errno::NODATA));
    rustix::fs::setxattr(fixture.path("file"), "user.colour", b"green", XattrFlags::empty())
        .unwrap();
    assert_eq!(get(&fixture, number, "user.colour"), Ok(b"green".to_vec()));
    // Through the view: at once.
    let value = list();
    fixture.view.set_xattr(number, OsStr::new(name), &value, XattrFlags::empty()).unwrap();
    assert_eq!(get(&fixture, number, name), Ok(value));
}

#[test]
fn without_a_lifetime_of_metadata_every_question_reaches_the_origin() {
    let fixture = fixture_with(Duration::ZERO, |settings| settings.metadata_ttl = Duration::ZERO);
    fs::write(fixture.path("file"), "x").unwrap();
    let number = fixture.lookup("file").number;
    let name = "system.posix_acl_access";
    assert_eq!(get(&fixture, number, name), Err(Errno::NODATA));
    match rustix::fs::setxattr(fixture.path("file"), name, &list(), XattrFlags::empty()) {
        Err(Errno::OPNOTSUPP) => crate::skipped::skipped("no access lists here"),
        other => {
            other.unwrap();
            assert_eq!(get(&fixture, number, name), Ok(list()));
        }
    }
}
