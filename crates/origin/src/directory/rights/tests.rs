//! Operations as another user, over a local directory whose kernel decides like a server.

use super::super::{DirectoryOrigin, Node, Nodes, Root};
use super::*;
use crate::impersonation::{Requester, on_behalf_of};
use crate::{Changes, Make, OFlags, Origin, RenameFlags, SetTime, XattrFlags};
use std::ffi::OsStr;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;

const USER: u32 = 1234;
const GROUP: u32 = 4321;
const OTHER_GROUP: u32 = 5432;

fn somebody(groups: fn(&Requester) -> Vec<u32>) -> Requester {
    Requester { user: USER, group: USER, thread: 0, groups }
}

fn root() -> Requester {
    Requester { user: 0, group: 0, thread: 0, groups: |_| Vec::new() }
}

fn member() -> Requester {
    somebody(|_| vec![OTHER_GROUP, GROUP])
}

fn stranger() -> Requester {
    somebody(|_| Vec::new())
}

struct Fixture {
    directory: tempfile::TempDir,
    origin: DirectoryOrigin,
}

impl Fixture {
    /// A directory that all users may search; `None` if this process cannot act for others.
    fn new(by_handle: bool) -> Option<Self> {
        if let Err(why) = can_switch() {
            crate::skipped::skipped(why);
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let mut origin = DirectoryOrigin::open(directory.path()).unwrap();
        if !by_handle {
            origin.nodes = Nodes::by_place(16);
            origin.root = Root::open(directory.path(), false).unwrap();
        }
        let origin = origin.asking_for_requesters().unwrap();
        Some(Self { directory, origin })
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }

    fn own(&self, name: &str, (user, group, mode): (u32, u32, u32)) {
        chown(self.path(name), Some(user), Some(group)).unwrap();
        std::fs::set_permissions(self.path(name), PermissionsExt::from_mode(mode)).unwrap();
    }

    fn file(&self, name: &str, owner: (u32, u32, u32)) {
        std::fs::write(self.path(name), name).unwrap();
        self.own(name, owner);
    }

    fn directory(&self, name: &str, owner: (u32, u32, u32)) {
        std::fs::create_dir(self.path(name)).unwrap();
        self.own(name, owner);
    }

    /// The node for root.
    fn node(&self, path: &str) -> Node {
        on_behalf_of(root(), || {
            let mut node = self.origin.root().unwrap().node;
            for name in path.split('/') {
                node = self.origin.lookup(&node, OsStr::new(name)).unwrap().node;
            }
            node
        })
    }

    fn opens(&self, who: Requester, path: &str, flags: OFlags) -> Result<()> {
        let node = self.node(path);
        on_behalf_of(who, || self.origin.open(&node, flags).map(drop))
    }

    fn changes(&self, who: Requester, path: &str, changes: Changes) -> Result<()> {
        let node = self.node(path);
        on_behalf_of(who, || self.origin.set_attributes(&node, None, &changes).map(drop))
    }
}

/// The rights of a thread: file-system ids, as new files show them, groups and capabilities.
fn this_thread(directory: &Path) -> ((u32, u32), Vec<Gid>, CapabilitySets) {
    let path = directory.join("probe of the thread");
    let made = std::fs::File::create(&path).unwrap().metadata().unwrap();
    std::fs::remove_file(path).unwrap();
    ((made.uid(), made.gid()), getgroups().unwrap(), capabilities(None).unwrap())
}

#[test]
fn files_are_opened_as_their_modes_and_owners_let_the_requester() {
    for by_handle in [true, false] {
        let Some(fixture) = Fixture::new(by_handle) else { return };
        let before = this_thread(fixture.directory.path());
        fixture.file("own", (USER, 0, 0o600));
        fixture.file("foreign", (0, 0, 0o600));
        fixture.file("grouped", (0, GROUP, 0o640));
        fixture.file("read only", (0, 0, 0o644));
        let opens = |who, path, flags| fixture.opens(who, path, flags);
        assert_eq!(opens(stranger(), "own", OFlags::RDWR), Ok(()));
        for flags in [OFlags::RDONLY, OFlags::WRONLY] {
            assert_eq!(opens(stranger(), "foreign", flags), Err(Errno::ACCESS));
            assert_eq!(opens(root(), "foreign", flags), Ok(()));
        }
        assert_eq!(opens(stranger(), "grouped", OFlags::RDONLY), Err(Errno::ACCESS));
        assert_eq!(opens(member(), "grouped", OFlags::RDONLY), Ok(()));
        assert_eq!(opens(member(), "grouped", OFlags::RDWR), Err(Errno::ACCESS));
        assert_eq!(opens(stranger(), "read only", OFlags::RDONLY), Ok(()));
        let node = fixture.node("grouped");
        let access = |who, wanted| on_behalf_of(who, || fixture.origin.access(&node, None, wanted));
        assert_eq!(access(member(), Access::READ_OK), Ok(()));
        assert_eq!(access(member(), Access::WRITE_OK), Err(Errno::ACCESS));
        assert_eq!(access(stranger(), Access::READ_OK), Err(Errno::ACCESS));
        assert_eq!(access(root(), Access::READ_OK | Access::WRITE_OK), Ok(()));
        assert_eq!(this_thread(fixture.directory.path()), before);
    }
}

#[test]
fn a_directory_is_searched_and_listed_by_permitted_users() {
    for by_handle in [true, false] {
        let Some(fixture) = Fixture::new(by_handle) else { return };
        fixture.directory("closed", (0, 0, 0o700));
        fixture.file("closed/inner", (0, 0, 0o644));
        fixture.directory("own", (USER, 0, 0o700));
        fixture.file("own/inner", (USER, 0, 0o644));
        fixture.directory("by name", (0, 0, 0o711));
        fixture.file("by name/inner", (0, 0, 0o644));
        let Fixture { origin, .. } = &fixture;
        let lookup = |who, path: &str| {
            let node = fixture.node(path);
            on_behalf_of(who, || origin.lookup(&node, OsStr::new("inner")).map(drop))
        };
        let lists = |who, path: &str| {
            let node = fixture.node(path);
            on_behalf_of(who, || origin.open_directory(&node).map(drop))
        };
        // A permitted user has just searched it.
        assert_eq!(lookup(root(), "closed"), Ok(()));
        assert_eq!(lookup(stranger(), "closed"), Err(Errno::ACCESS));
        assert_eq!(lists(stranger(), "closed"), Err(Errno::ACCESS));
        assert_eq!((lookup(stranger(), "own"), lists(stranger(), "own")), (Ok(()), Ok(())));
        assert_eq!(lookup(stranger(), "by name"), Ok(()));
        assert_eq!(lists(stranger(), "by name"), Err(Errno::ACCESS));
        let (closed, inner) = (fixture.node("closed"), fixture.node("closed/inner"));
        let leads = || origin.leads_to(&closed, OsStr::new("inner"), &inner);
        assert_eq!(on_behalf_of(stranger(), leads), Err(Errno::ACCESS));
        assert_eq!(on_behalf_of(root(), leads), Ok(true));
    }
}

#[test]
fn names_are_made_and_removed_by_permitted_users_and_belong_to_them() {
    for by_handle in [true, false] {
        let Some(fixture) = Fixture::new(by_handle) else { return };
        fixture.directory("sticky", (0, 0, 0o1777));
        fixture.file("sticky/foreign", (0, 0, 0o666));
        fixture.directory("shared", (0, GROUP, 0o2770));
        fixture.directory("own", (USER, USER, 0o700));
        let Fixture { origin, .. } = &fixture;
        let caller = Caller { user: USER, group: USER, umask: 0o027 };
        let (sticky, shared, own) =
            (fixture.node("sticky"), fixture.node("shared"), fixture.node("own"));
        let name = OsStr::new;
        on_behalf_of(stranger(), || {
            assert_eq!(origin.unlink(&sticky, name("foreign")), Err(Errno::PERM));
            let (from, to) = ((&sticky, name("foreign")), (&own, name("taken")));
            assert_eq!(origin.rename(from, to, RenameFlags::empty()), Err(Errno::PERM));
            let what = Make::Directory { mode: 0o777 };
            assert!(matches!(origin.make(&shared, name("d"), what, caller), Err(Errno::ACCESS)));
            origin.make(&own, name("d"), what, caller).unwrap();
            let what = Make::Symlink { target: name("d") };
            let link = origin.make(&own, name("link"), what, caller).unwrap();
            assert_eq!(origin.read_link(&link.node).unwrap(), "d");
            let made = origin.create(&sticky, name("mine"), OFlags::WRONLY, 0o666, caller);
            assert!(made.is_ok());
            let linked = origin.link(&made.unwrap().0.node, None, &own, name("second")).unwrap();
            assert_eq!(linked.attributes.links, 2);
            origin
                .rename((&sticky, name("mine")), (&own, name("m")), RenameFlags::empty())
                .unwrap();
            origin.unlink(&own, name("second")).unwrap();
            assert_eq!(origin.remove_directory(&own, name("d")), Ok(()));
        });
        let made = std::fs::metadata(fixture.path("own/m")).unwrap();
        assert_eq!((made.uid(), made.gid(), made.mode() & 0o7777), (USER, USER, 0o640));
        on_behalf_of(member(), || {
            origin.create(&shared, name("f"), OFlags::WRONLY, 0o666, caller).unwrap();
        });
        let made = std::fs::metadata(fixture.path("shared/f")).unwrap();
        assert_eq!((made.uid(), made.gid(), made.mode() & 0o7777), (USER, GROUP, 0o640));
    }
}

#[test]
fn attributes_are_changed_by_permitted_users() {
    let Some(fixture) = Fixture::new(true) else { return };
    fixture.file("own", (USER, USER, 0o600));
    fixture.file("foreign", (0, 0, 0o644));
    fixture.file("for all", (0, 0, 0o666));
    let none = Changes::default();
    let mode = Changes { permissions: Some(0o640), ..none };
    let size = Changes { size_bytes: Some(1), ..none };
    let time = crate::Time { seconds: 1_000_000_000, nanoseconds: 0 };
    let times = Changes { modified: Some(SetTime::To(time)), ..none };
    let now = Changes { modified: Some(SetTime::Now), accessed: Some(SetTime::Now), ..none };
    let changes = |path, changes| fixture.changes(member(), path, changes);
    for wanted in [mode, times] {
        assert_eq!(changes("own", wanted), Ok(()));
        assert_eq!(changes("foreign", wanted), Err(Errno::PERM));
    }
    assert_eq!((changes("own", size), changes("own", now)), (Ok(()), Ok(())));
    assert_eq!(changes("foreign", size), Err(Errno::ACCESS));
    assert_eq!(changes("foreign", now), Err(Errno::ACCESS));
    assert_eq!(changes("for all", size), Ok(()));
    assert_eq!(changes("for all", now), Ok(()));
    let (to_root, to_group) =
        (Changes { user: Some(0), ..none }, |group| Changes { group: Some(group), ..none });
    assert_eq!(changes("own", to_root), Err(Errno::PERM));
    assert_eq!(changes("own", to_group(GROUP)), Ok(()));
    assert_eq!(changes("own", to_group(0)), Err(Errno::PERM), "a group without this user");
    let (own, foreign) = (fixture.node("own"), fixture.node("foreign"));
    let name = OsStr::new("user.ogive");
    let set = |node: &Node| fixture.origin.set_xattr(node, name, b"1", XattrFlags::empty());
    if on_behalf_of(root(), || set(&own)) == Err(Errno::OPNOTSUPP) {
        return crate::skipped::skipped("no extended attributes of users here");
    }
    assert_eq!(
        on_behalf_of(stranger(), || (set(&own), set(&foreign))),
        (Ok(()), Err(Errno::ACCESS))
    );
    std::fs::set_permissions(fixture.path("own"), PermissionsExt::from_mode(0o200)).unwrap();
    let get = || fixture.origin.get_xattr(&own, name, &mut []);
    assert_eq!(on_behalf_of(stranger(), get), Err(Errno::ACCESS), "it may not be read");
    assert_eq!(on_behalf_of(root(), get), Ok(1));
    let remove = || fixture.origin.remove_xattr(&foreign, name);
    assert_eq!(on_behalf_of(stranger(), remove), Err(Errno::ACCESS));
}

/// An access list that gives one user these permissions, in addition to those of the mode.
fn access_list(path: &Path, user: u32, permissions: u16) -> Result<()> {
    const NOBODY: u32 = u32::MAX;
    let mode = std::fs::metadata(path).unwrap().mode() as u16;
    let mut list = 2u32.to_le_bytes().to_vec();
    let mask = permissions | mode >> 3 & 7;
    for (tag, permissions, id) in [
        (1u16, mode >> 6 & 7, NOBODY),
        (2, permissions, user),
        (4, mode >> 3 & 7, NOBODY),
        (0x10, mask, NOBODY),
        (0x20, mode & 7, NOBODY),
    ] {
        list.extend(tag.to_le_bytes());
        list.extend(permissions.to_le_bytes());
        list.extend(id.to_le_bytes());
    }
    rustix::fs::setxattr(path, c"system.posix_acl_access", &list, XattrFlags::empty())
}

#[test]
fn an_access_list_of_the_source_gives_and_denies() {
    let Some(fixture) = Fixture::new(true) else { return };
    fixture.file("denied", (0, 0, 0o644));
    fixture.file("given", (0, 0, 0o600));
    fixture.directory("closed", (0, 0, 0o755));
    fixture.file("closed/inner", (0, 0, 0o644));
    for (path, permissions) in [("denied", 0), ("given", 4), ("closed", 0)] {
        if access_list(&fixture.path(path), USER, permissions) == Err(Errno::OPNOTSUPP) {
            return crate::skipped::skipped("no access lists here");
        }
    }
    assert_eq!(fixture.opens(stranger(), "denied", OFlags::RDONLY), Err(Errno::ACCESS));
    assert_eq!(fixture.opens(stranger(), "given", OFlags::RDONLY), Ok(()));
    let closed = fixture.node("closed");
    let lookup = || fixture.origin.lookup(&closed, OsStr::new("inner")).map(drop);
    assert_eq!(on_behalf_of(stranger(), lookup), Err(Errno::ACCESS));
    let other = Requester { user: USER + 1, ..stranger() };
    assert_eq!(fixture.opens(other, "denied", OFlags::RDONLY), Ok(()));
    assert_eq!(fixture.opens(other, "given", OFlags::RDONLY), Err(Errno::ACCESS));
}

#[test]
fn a_program_is_executed_by_permitted_users_even_without_permission_to_read_it() {
    const EXECUTES: OFlags = OFlags::from_bits_retain(0x20);
    let Some(fixture) = Fixture::new(true) else { return };
    fixture.file("program", (0, 0, 0o711));
    fixture.file("of the owner", (0, 0, 0o744));
    let opens = |path, flags| fixture.opens(stranger(), path, flags);
    assert_eq!(opens("program", EXECUTES), Ok(()));
    assert_eq!(opens("program", OFlags::RDONLY), Err(Errno::ACCESS));
    assert_eq!(opens("of the owner", EXECUTES), Err(Errno::ACCESS));
    assert_eq!(opens("of the owner", OFlags::RDONLY), Ok(()));
}

#[test]
fn a_thread_without_a_requester_is_refused_and_a_panic_restores_the_thread() {
    let Some(fixture) = Fixture::new(true) else { return };
    let before = this_thread(fixture.directory.path());
    fixture.file("file", (0, 0, 0o666));
    symlink("file", fixture.path("link")).unwrap();
    let root_node = fixture.origin.root().unwrap().node;
    let found = fixture.origin.lookup(&root_node, OsStr::new("file"));
    assert!(matches!(found, Err(Errno::ACCESS)), "the thread has no requester");
    let node = fixture.node("file");
    assert!(matches!(fixture.origin.open(&node, OFlags::RDONLY), Err(Errno::ACCESS)));
    let rights = Rights::Requesters;
    let panicked = std::panic::catch_unwind(|| {
        on_behalf_of(member(), || {
            rights.run::<()>(|| {
                let groups = getgroups().unwrap();
                assert_eq!(groups, [Gid::from_raw(GROUP), Gid::from_raw(OTHER_GROUP)]);
                assert!(capabilities(None).unwrap().effective.is_empty());
                // Within the call, the thread has no other requester.
                rights.run(|| panic!("on purpose"))
            })
        })
    });
    assert!(panicked.is_err());
    assert_eq!(this_thread(fixture.directory.path()), before);
    assert_eq!(fixture.opens(stranger(), "file", OFlags::RDWR), Ok(()), "and can act again");
}

/// A server opens as the program asked, even if the kernel above knew another object by the name.
#[test]
fn where_the_source_decides_a_new_file_is_opened_as_the_program_asked() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let origin = DirectoryOrigin::open(directory.path()).unwrap().leaving_rights_to_source();
    let root = origin.root().unwrap().node;
    let caller = Caller { user: geteuid().as_raw(), group: getegid().as_raw(), umask: 0o022 };
    let create = |name: &str, flags| {
        let name = OsStr::new(name);
        origin.create(&root, name, OFlags::RDWR | flags, 0o666, caller).map(|(found, _)| found)
    };
    let found = create("new", OFlags::empty()).unwrap();
    assert_eq!((found.attributes.permissions, found.attributes.size_bytes), (0o644, 0));
    std::fs::write(at("old"), "1234").unwrap();
    assert_eq!(create("old", OFlags::empty()).unwrap().attributes.size_bytes, 4);
    assert_eq!(create("old", OFlags::EXCL).err(), Some(Errno::EXIST));
    assert_eq!(create("old", OFlags::TRUNC).unwrap().attributes.size_bytes, 0);
    // The kernel looks again, and opens the object that is there.
    symlink("old", at("link")).unwrap();
    nix::unistd::mkfifo(&at("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    for name in ["link", "pipe"] {
        assert_eq!(create(name, OFlags::empty()).err(), Some(Errno::STALE), "{name}");
    }
    std::fs::create_dir(at("directory")).unwrap();
    assert_eq!(create("directory", OFlags::empty()).err(), Some(Errno::ISDIR));
}

#[test]
fn if_the_source_decides_it_checks_the_rights_of_the_only_user() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("file"), "").unwrap();
    std::fs::set_permissions(directory.path().join("file"), PermissionsExt::from_mode(0o600))
        .unwrap();
    let origin = DirectoryOrigin::open(directory.path()).unwrap();
    let ask = |origin: &DirectoryOrigin, wanted| {
        let root = origin.root().unwrap().node;
        let file = origin.lookup(&root, OsStr::new("file")).unwrap().node;
        origin.access(&file, None, wanted)
    };
    assert_eq!(ask(&origin, Access::READ_OK), Err(Errno::NOSYS), "the kernel checks it");
    let origin = origin.leaving_rights_to_source();
    assert_eq!(ask(&origin, Access::READ_OK), Ok(()));
    assert_eq!(ask(&origin, Access::EXEC_OK), Err(Errno::ACCESS), "not even root");
}

#[test]
fn space_is_allocated_on_behalf_of_its_owner() {
    if !rustix::process::geteuid().is_root() {
        return crate::skipped::skipped("only root writes on behalf of other users");
    }
    let file_system_ids = || {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let id = |name| status.lines().find(|line| line.starts_with(name)).unwrap();
        let last = |line: &str| line.split_whitespace().last().unwrap().parse().unwrap();
        Ok::<(u32, u32), Errno>((last(id("Uid:")), last(id("Gid:"))))
    };
    let spends = |opened_for| Rights::Own.spend(opened_for, file_system_ids).unwrap();
    let (asks, opened) = (somebody(|_| Vec::new()), (2999, 2998));
    on_behalf_of(asks, || assert_eq!(spends(Some(opened)), (asks.user, asks.group)));
    // Like the kernel, which writes mapped pages as root.
    on_behalf_of(root(), || assert_eq!(spends(Some(opened)), opened));
    on_behalf_of(root(), || assert_eq!(spends(Some((0, 0))), (0, 0)));
    crate::on_own_behalf(|| assert_eq!(spends(None), (0, 0)));
    let panicked = std::panic::catch_unwind(|| {
        on_behalf_of(asks, || Rights::Own.spend(None, || -> Result<()> { panic!("on purpose") }))
    });
    assert!(panicked.is_err());
    assert_eq!(file_system_ids(), Ok((0, 0)), "restored");
}
