//! An origin for tests. It has one file with many names, and each test controls the background
//! reads of that file.

use ogive_origin::{
    Allocation, Attributes, Caller, Changes, DirectoryEntry, Errno, FileFlags, FileKind,
    FileSystemStatistics, FlagsForm, Found, Identity, Make, Needed, OFlags, Origin, RenameFlags,
    Result, Run, RunSink, Tag, Time, Whence, XattrFlags,
};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A node with nothing but equality.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FakeNode {
    pub(crate) number: u64,
    /// Distinguishes objects that had this number one after the other.
    pub(crate) life: u64,
}

/// An empty regular file.
pub(crate) fn found(number: u64, life: u64) -> Found<FakeNode> {
    let never = Time::default();
    let attributes = Attributes {
        device: 1,
        inode: number,
        kind: FileKind::Regular,
        permissions: 0o644,
        links: 1,
        user: 0,
        group: 0,
        special_device: 0,
        size_bytes: 0,
        blocks: 0,
        block_size_bytes: 4096,
        accessed: never,
        modified: never,
        changed: never,
        tag: Tag::Times,
    };
    Found { node: FakeNode { number, life }, attributes, generation: life }
}

/// Bytes of a record of the file.
pub(crate) const RECORD: u64 = 4096;
/// Bytes of the file: ten records and a half.
pub(crate) const SIZE: u64 = 10 * RECORD + RECORD / 2;

/// An origin with one file below its root. Its runs advance when the test says so. Operations other
/// than listing, looking up and reading the file are refused.
#[derive(Default)]
pub(crate) struct FakeOrigin {
    pub(crate) runs: Mutex<Vec<Going>>,
    /// How often the file was overwritten; an open file is pinned to its contents at the open.
    pub(crate) overwritten: AtomicU64,
    /// Prefetch is refused.
    pub(crate) is_sparing: AtomicBool,
    /// The bytes of the file were found to be wrong.
    pub(crate) is_corrupt: AtomicBool,
    pub(crate) names: Mutex<Names>,
    /// Other names in its root instead, if any, each by the cookie behind it.
    pub(crate) listed: Mutex<Arc<BTreeMap<u64, OsString>>>,
    /// Listing fails before the name of this cookie.
    pub(crate) breaks_off_at: Mutex<Option<u64>>,
    /// Runs keep the calling thread waiting, and fail at the record of this number.
    pub(crate) gives_all_but: Mutex<Option<u64>>,
    /// It has cached the name of a removed file until it is asked to revalidate the name.
    pub(crate) is_stale: AtomicBool,
    /// How often it was asked to revalidate a name.
    pub(crate) revalidations: AtomicU64,
    /// Any spelling of a name leads to the same object.
    pub(crate) folds_case: AtomicBool,
    /// How often it had to fetch attributes with names.
    pub(crate) names_dropped: AtomicU64,
    /// It sends writes to its server before it answers with times.
    pub(crate) flushes_before_times: AtomicBool,
    /// How often it was asked for all attributes of the file.
    pub(crate) times_asked: AtomicU64,
    /// Its file can have no capabilities.
    pub(crate) lacks_capabilities: AtomicBool,
}

/// Names in its root, each of which leads to the file. They come in hundreds. The first hundred
/// come with attributes, like FUSE; later ones do if an entry of the hundred before was looked up.
#[derive(Default)]
pub(crate) struct Names {
    /// Names that came with attributes.
    pub(crate) with_attributes: HashSet<OsString>,
    /// An entry of the last hundred was looked up.
    is_wanted: bool,
    /// How often it was asked for the attributes of a single name.
    pub(crate) asked: u64,
}

/// The number of names.
pub(crate) const NAMES: u64 = 1000;
const NAMES_TOLD: u64 = 100;

/// A requested run, and how it advances: to its next record, or to its end.
pub(crate) struct Going {
    pub(crate) run: Run,
    step: Box<dyn FnMut(Option<Result<()>>) + Send>,
}

impl Going {
    pub(crate) fn record(&mut self) {
        (self.step)(None);
    }

    pub(crate) fn end(mut self, result: Result<()>) {
        (self.step)(Some(result));
    }
}

/// The root, or the file.
pub(crate) fn attributes(inode: u64) -> Found<FakeNode> {
    let mut found = found(inode, 0);
    if inode == 1 {
        found.attributes.kind = FileKind::Directory;
    } else {
        found.attributes.size_bytes = SIZE;
    }
    found
}

/// The file after it was overwritten this many times.
pub(crate) fn overwritten(times: u64) -> Found<FakeNode> {
    let mut found = attributes(2);
    found.attributes.modified.seconds += times as i64;
    found
}

/// The bytes of a record of the original file.
pub(crate) fn contents(index: u64) -> Vec<u8> {
    let length = RECORD.min(SIZE.saturating_sub(index * RECORD));
    (0..length).map(|at| (index * 7 + at) as u8).collect()
}

/// Gives the records of a run at once, up to one that fails.
fn give(run: Run, fails_at: u64, mut sink: impl RunSink) {
    for index in run.first..run.first + run.records {
        if index == fails_at {
            return sink.end(Err(Errno::IO));
        }
        if sink.record(index, contents(index)).is_break() {
            break;
        }
    }
    sink.end(Ok(()));
}

/// Refuses an operation.
macro_rules! refused {
    ($($name:ident($($argument:ty),*) -> $result:ty;)*) => {
        $(fn $name(&self, $(_: $argument),*) -> Result<$result> { Err(Errno::NOSYS) })*
    };
}

impl Origin for FakeOrigin {
    type Node = FakeNode;
    type File = u64;
    type Directory = ();

    fn root(&self) -> Result<Found<FakeNode>> {
        Ok(attributes(1))
    }

    fn lookup(&self, _: &FakeNode, _: &OsStr) -> Result<Found<FakeNode>> {
        Ok(attributes(2))
    }

    fn revalidate_name(&self, parent: &FakeNode, name: &OsStr) -> Result<Found<FakeNode>> {
        self.revalidations.fetch_add(1, Ordering::SeqCst);
        self.is_stale.store(false, Ordering::SeqCst);
        self.lookup(parent, name)
    }

    fn leads_to(&self, _: &FakeNode, _: &OsStr, _: &FakeNode) -> Result<bool> {
        Ok(true)
    }

    fn lacks_capabilities(&self, _: &FakeNode) -> bool {
        self.lacks_capabilities.load(Ordering::SeqCst)
    }

    fn folds_case(&self, _: u64) -> bool {
        self.folds_case.load(Ordering::SeqCst)
    }

    fn folds_case_in(&self, _: &FakeNode) -> bool {
        self.folds_case.load(Ordering::SeqCst)
    }

    fn flushes_before_times(&self, _: &FakeNode) -> bool {
        self.flushes_before_times.load(Ordering::SeqCst)
    }

    fn invalidate_names(&self, (): &()) {
        self.names_dropped.fetch_add(1, Ordering::SeqCst);
    }

    fn attributes_needed(
        &self,
        node: &FakeNode,
        file: Option<&u64>,
        _: Needed,
    ) -> Result<Attributes> {
        let known = file.map_or_else(|| attributes(node.number), |times| overwritten(*times));
        Ok(known.attributes)
    }

    fn attributes(&self, node: &FakeNode, file: Option<&u64>) -> Result<Attributes> {
        self.times_asked.fetch_add(1, Ordering::SeqCst);
        let known = file.map_or_else(|| attributes(node.number), |times| overwritten(*times));
        Ok(known.attributes)
    }

    fn open(&self, _: &FakeNode, _: OFlags) -> Result<u64> {
        if self.is_stale.load(Ordering::SeqCst) {
            return Err(Errno::STALE);
        }
        Ok(self.overwritten.load(Ordering::SeqCst))
    }

    fn may_read_ahead(&self) -> bool {
        !self.is_sparing.load(Ordering::SeqCst)
    }

    fn is_corrupt(&self, _: &u64) -> bool {
        self.is_corrupt.load(Ordering::SeqCst)
    }

    fn read_run<S: RunSink>(&self, file: &u64, run: Run, sink: S) {
        let times = *file as u8;
        let fails_at = *self.gives_all_but.lock();
        if let Some(fails_at) = fails_at {
            return give(run, fails_at, sink);
        }
        let mut sink = Some(sink);
        let mut next = run.first;
        let step = move |end: Option<Result<()>>| match end {
            None => {
                let sink = sink.as_mut().expect("a run goes on until it ends");
                let bytes = contents(next).iter().map(|byte| byte.wrapping_add(times)).collect();
                let more = sink.record(next, bytes).is_continue();
                next += 1;
                assert_eq!(more, next < run.first + run.records, "as many as were asked for");
            }
            Some(result) => sink.take().expect("a run ends once").end(result),
        };
        self.runs.lock().push(Going { run, step: Box::new(step) });
    }

    fn reads_in_background(&self) -> bool {
        self.gives_all_but.lock().is_none()
    }

    fn pinned_identity(&self, file: &u64) -> Option<Identity> {
        Some(overwritten(*file).identity())
    }

    fn open_directory(&self, _: &FakeNode) -> Result<()> {
        Ok(())
    }

    fn directory_attributes(&self, (): &()) -> Result<Attributes> {
        Ok(attributes(1).attributes)
    }

    fn lists_with_attributes(&self, _: u64) -> bool {
        true
    }

    fn read_directory(
        &self,
        (): &(),
        cookie: u64,
        visit: &mut dyn FnMut(DirectoryEntry<'_>) -> bool,
    ) -> Result<()> {
        let listed = self.listed.lock().clone();
        let from = (Bound::Excluded(cookie), Bound::Unbounded);
        for (cookie, name) in listed.range(from).map(|(cookie, name)| (*cookie, name)) {
            if *self.breaks_off_at.lock() == Some(cookie) {
                return Err(Errno::IO);
            }
            let kind = Some(FileKind::Regular);
            if !visit(DirectoryEntry { name, inode: 2, kind, cookie }) {
                break;
            }
        }
        if !listed.is_empty() {
            return Ok(());
        }
        let mut comes_with_attributes = false;
        for number in cookie..NAMES {
            if number.is_multiple_of(NAMES_TOLD) {
                let was_wanted = std::mem::take(&mut self.names.lock().is_wanted);
                comes_with_attributes = number == 0 || was_wanted;
            }
            let name = OsString::from(number.to_string());
            if comes_with_attributes {
                self.names.lock().with_attributes.insert(name.clone());
            }
            let kind = Some(FileKind::Regular);
            let entry = DirectoryEntry { name: &name, inode: 2, kind, cookie: number + 1 };
            if !visit(entry) {
                break;
            }
        }
        Ok(())
    }

    fn lookup_in(&self, (): &(), name: &OsStr) -> Result<Found<FakeNode>> {
        let mut names = self.names.lock();
        if names.with_attributes.insert(name.to_owned()) {
            names.asked += 1;
        }
        names.is_wanted = true;
        Ok(attributes(2))
    }

    refused! {
        check_health() -> ();
        set_attributes(&FakeNode, Option<&u64>, &Changes) -> Attributes;
        read_link(&FakeNode) -> OsString;
        make(&FakeNode, &OsStr, Make<'_>, Caller) -> Found<FakeNode>;
        create(&FakeNode, &OsStr, OFlags, u32, Caller) -> (Found<FakeNode>, u64);
        link(&FakeNode, Option<&u64>, &FakeNode, &OsStr) -> Found<FakeNode>;
        unlink(&FakeNode, &OsStr) -> ();
        remove_directory(&FakeNode, &OsStr) -> ();
        rename((&FakeNode, &OsStr), (&FakeNode, &OsStr), RenameFlags) -> ();
        read_at(&u64, u64, usize, &mut Vec<u8>) -> ();
        write_at(&u64, u64, &[u8]) -> usize;
        append(&u64, &[u8]) -> usize;
        flush(&u64) -> ();
        sync(&u64, bool) -> ();
        allocate(&u64, Allocation) -> ();
        seek(&u64, u64, Whence) -> u64;
        copy_range((&u64, u64), (&u64, u64), usize) -> usize;
        sync_directory(&()) -> ();
        get_xattr(&FakeNode, &OsStr, &mut [u8]) -> usize;
        set_xattr(&FakeNode, &OsStr, &[u8], XattrFlags) -> ();
        list_xattrs(&FakeNode, &mut [u8]) -> usize;
        remove_xattr(&FakeNode, &OsStr) -> ();
        statistics(&FakeNode) -> FileSystemStatistics;
        flags(&FakeNode, FlagsForm) -> FileFlags;
        set_flags(&FakeNode, FileFlags) -> ();
    }

    fn has_access_control_lists(&self) -> bool {
        false
    }
}
