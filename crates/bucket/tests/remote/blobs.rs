//! Azure blobs other than block blobs, and names that a store refuses to delete: an impossible
//! change is refused, and changes nothing.

use super::bucket;
use super::store::{Answer, Fault, Step, Store};
use ogive_bucket::journal::{Journal, OpenOptions};
use ogive_bucket::{
    BucketOrigin, Convention, Node, OriginOptions, Promises, RemoteBucket, StoreKind, WriteOptions,
};
use ogive_l2::MasterKey;
use ogive_origin::{Caller, Changes, Errno, OFlags, Origin as _, RenameFlags, Result};
use std::ffi::OsStr;
use std::time::Duration;

/// A store, and a mount of it.
struct Mounted {
    store: Store,
    origin: BucketOrigin<RemoteBucket>,
    _stage: tempfile::TempDir,
}

impl Mounted {
    fn new(kind: StoreKind) -> Self {
        let (store, stage) = (Store::of(kind), tempfile::tempdir().unwrap());
        let master = MasterKey::from_material(&[7; 32]).unwrap();
        let opened = Journal::open(stage.path(), "source", &master, OpenOptions::default());
        let options = OriginOptions {
            prefix: String::new(),
            metadata_ttl: Duration::ZERO,
            user: 7,
            group: 8,
            file_mode: 0o640,
            directory_mode: 0o750,
            convention: Convention::Off,
        };
        let bucket = bucket(&store);
        bucket.believe(Promises::ALL);
        let writing = WriteOptions::default();
        let origin = BucketOrigin::open_writable(bucket, options, opened.unwrap(), writing);
        Self { store, origin: origin.unwrap(), _stage: stage }
    }

    /// The directory and the name of a path.
    fn at<'a>(&self, path: &'a str) -> (Node, &'a OsStr) {
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        let root = self.origin.root().unwrap();
        let names = directory.split('/').filter(|name| !name.is_empty());
        let found = names
            .fold(root, |found, name| self.origin.lookup(&found.node, OsStr::new(name)).unwrap());
        (found.node, OsStr::new(name))
    }

    fn node(&self, path: &str) -> Node {
        let (parent, name) = self.at(path);
        self.origin.lookup(&parent, name).unwrap().node
    }

    fn open(&self, path: &str, flags: OFlags) -> Result<ogive_bucket::File> {
        self.origin.open(&self.node(path), flags)
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        let (from, to) = (self.at(from), self.at(to));
        self.origin.rename((&from.0, from.1), (&to.0, to.1), RenameFlags::empty())
    }

    /// How many requests may have changed the store so far.
    fn changes(&self) -> u64 {
        let changing =
            [Step::Put, Step::Begin, Step::Part, Step::CopyPart, Step::Complete, Step::Delete];
        changing.into_iter().map(|step| self.store.asked(step)).sum()
    }
}

#[test]
fn blobs_other_than_block_blobs_can_be_read_and_removed_but_not_changed() {
    for kind in ["AppendBlob", "PageBlob"] {
        let m = Mounted::new(StoreKind::Azure);
        m.store.put_with("d/log", b"line\n", &[("x-ms-blob-type", kind)]);
        m.store.put_with("d/file", b"file", &[("x-ms-blob-type", "BlockBlob")]);
        let file = m.open("d/log", OFlags::RDONLY).unwrap();
        let mut bytes = Vec::new();
        m.origin.read_at(&file, 0, 100, &mut bytes).unwrap();
        assert_eq!(bytes, b"line\n");
        let (parent, name) = m.at("d/log");
        let caller = Caller { user: 7, group: 8, umask: 0 };
        let cut = OFlags::CREATE | OFlags::WRONLY | OFlags::TRUNC;
        let size = Changes { size_bytes: Some(1), ..Changes::default() };
        let refused: [Result<()>; 8] = [
            m.open("d/log", OFlags::WRONLY).map(drop),
            m.open("d/log", OFlags::WRONLY | OFlags::APPEND).map(drop),
            m.open("d/log", OFlags::RDWR | OFlags::TRUNC).map(drop),
            m.origin.create(&parent, name, cut, 0o644, caller).map(drop),
            m.origin.set_attributes(&m.node("d/log"), None, &size).map(drop),
            m.rename("d/log", "d/other"),
            m.rename("d/file", "d/log"),
            m.rename("d", "e"),
        ];
        for (number, refused) in refused.into_iter().enumerate() {
            assert_eq!(refused, Err(Errno::PERM), "{kind}, {number}");
        }
        assert_eq!((m.changes(), m.store.keys()), (0, vec!["d/file".into(), "d/log".into()]));
        let file = m.open("d/file", OFlags::WRONLY).unwrap();
        m.origin.write_at(&file, 0, b"F").unwrap();
        m.origin.flush(&file).unwrap();
        let (parent, name) = m.at("d/log");
        m.origin.unlink(&parent, name).unwrap();
        assert_eq!(
            (m.store.keys(), m.store.body("d/file")),
            (vec!["d/file".into()], Some(b"File".into()))
        );
    }
}

#[test]
fn a_leased_blob_is_not_copied_for_a_rename() {
    let m = Mounted::new(StoreKind::Azure);
    m.store.put_with("d/held", b"held", &[("x-ms-lease-status", "locked")]);
    m.store.put("free", b"free");
    for (from, to) in [("d/held", "new"), ("d/held", "free"), ("d", "e")] {
        assert_eq!(m.rename(from, to), Err(Errno::BUSY), "{from} to {to}");
    }
    assert_eq!((m.changes(), m.store.body("free")), (0, Some(b"free".into())));
}

/// How stores refuse to delete a name, and the errno for the program.
const KEPT: [(StoreKind, u16, &str, Errno); 6] = [
    (StoreKind::S3, 403, "AccessDenied", Errno::ACCESS),
    (StoreKind::S3, 405, "MethodNotAllowed", Errno::IO),
    (StoreKind::Azure, 403, "AuthorizationPermissionMismatch", Errno::ACCESS),
    (StoreKind::Azure, 409, "SnapshotsPresent", Errno::BUSY),
    (StoreKind::Azure, 409, "BlobImmutableDueToPolicy", Errno::BUSY),
    (StoreKind::Azure, 412, "LeaseIdMissing", Errno::BUSY),
];

#[test]
fn a_rename_fails_without_effect_if_the_store_keeps_the_old_name() {
    for (kind, status, code, errno) in KEPT {
        for (from, to) in [("d/a", "d/new"), ("d", "e")] {
            let m = Mounted::new(kind);
            for key in ["d/", "d/a", "d/b"] {
                m.store.put(key, key.as_bytes());
            }
            let fault = Fault { answer: Answer::Error(status, code), is_done: false };
            m.store.doom(Step::Delete, fault);
            assert_eq!(m.rename(from, to), Err(errno), "{code}: {from}");
            assert_eq!(m.store.keys(), ["d/", "d/a", "d/b"], "{code}: {from}");
            m.rename(from, to).unwrap();
        }
    }
}
