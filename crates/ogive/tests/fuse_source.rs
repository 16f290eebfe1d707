//! A view of a FUSE file system such as sshfs or bindfs.
//!
//! Such a file system hides a file that is removed while it is open, and may report at open that a
//! file is gone. The file system is this test, with an origin that behaves like one on libfuse.
//! Each step comes only after the view has met the one before it. These tests need root and
//! /dev/fuse.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Place, assert_code, ogive};
use ogive_fs::{Mount, MountOptions};
use ogive_origin::{
    Allocation, Attributes, Caller, Changes, DirectoryEntry, DirectoryOrigin, Errno, FileFlags,
    FileSystemStatistics, FlagsForm, Found, Make, Needed, Node, OFlags, OpenDirectory, OpenFile,
    Origin, RenameFlags, Result, Time, Whence, XattrFlags,
};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The name of the removed file.
const HIDDEN: &str = ".fuse_hidden0001";

/// A directory shown by such a file system.
struct Played {
    directory: DirectoryOrigin,
    /// The removed file.
    hidden: Mutex<Option<Node>>,
    replacing: Arc<Mutex<Replacing>>,
    /// The number of requests for only a size.
    sizes: Arc<AtomicUsize>,
}

/// The events before an open of a file, for this and the next opens.
type Replacing = VecDeque<Step>;

#[derive(Default)]
struct Step {
    /// The file is replaced by this one.
    by: Option<(PathBuf, PathBuf)>,
    /// The error instead of the open.
    error: Option<Errno>,
    /// The delay of the answer after the open and the replacement.
    late: Duration,
}

/// Passes operations on.
macro_rules! handed_on {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        $(fn $name(&self, $($argument: $type),*) -> Result<$result> {
            self.directory.$name($($argument),*)
        })*
    };
}

impl Origin for Played {
    type Node = Node;
    type File = OpenFile;
    type Directory = OpenDirectory;

    fn unlink(&self, parent: &Node, name: &OsStr) -> Result<()> {
        self.directory.rename(
            (parent, name),
            (parent, OsStr::new(HIDDEN)),
            RenameFlags::empty(),
        )?;
        *self.hidden.lock() = Some(parent.clone());
        Ok(())
    }

    /// The program learns a moment too late that the file is no longer open.
    fn remove_directory(&self, parent: &Node, name: &OsStr) -> Result<()> {
        let removed = self.directory.remove_directory(parent, name);
        if let Some(directory) = self.hidden.lock().take() {
            self.directory.unlink(&directory, OsStr::new(HIDDEN))?;
        }
        removed
    }

    fn open(&self, node: &Node, flags: OFlags) -> Result<OpenFile> {
        let Step { by, error, late } = self.replacing.lock().pop_front().unwrap_or_default();
        let opened_before = (!late.is_zero()).then(|| self.directory.open(node, flags));
        if let Some((new, old)) = by {
            fs::rename(new, old).unwrap();
        }
        std::thread::sleep(late);
        match error {
            Some(errno) => Err(errno),
            None => opened_before.unwrap_or_else(|| self.directory.open(node, flags)),
        }
    }

    fn flushes_before_times(&self, _: &Node) -> bool {
        true
    }

    /// Times that no program must ever see.
    fn attributes_needed(
        &self,
        node: &Node,
        file: Option<&OpenFile>,
        needed: Needed,
    ) -> Result<Attributes> {
        let attributes = self.directory.attributes_needed(node, file, needed)?;
        Ok(match needed {
            Needed::Size => {
                self.sizes.fetch_add(1, Ordering::Relaxed);
                Attributes { modified: Time::default(), ..attributes }
            }
            Needed::Version | Needed::Links => attributes,
        })
    }

    fn has_access_control_lists(&self) -> bool {
        self.directory.has_access_control_lists()
    }

    handed_on! {
        root() -> Found<Node>;
        check_health() -> ();
        lookup(parent: &Node, name: &OsStr) -> Found<Node>;
        lookup_in(parent: &OpenDirectory, name: &OsStr) -> Found<Node>;
        leads_to(parent: &Node, name: &OsStr, node: &Node) -> bool;
        attributes(node: &Node, file: Option<&OpenFile>) -> Attributes;
        set_attributes(node: &Node, file: Option<&OpenFile>, changes: &Changes) -> Attributes;
        read_link(node: &Node) -> OsString;
        make(parent: &Node, name: &OsStr, what: Make<'_>, caller: Caller) -> Found<Node>;
        create(parent: &Node, name: &OsStr, flags: OFlags, mode: u32, caller: Caller)
            -> (Found<Node>, OpenFile);
        link(node: &Node, file: Option<&OpenFile>, parent: &Node, name: &OsStr) -> Found<Node>;
        rename(from: (&Node, &OsStr), to: (&Node, &OsStr), flags: RenameFlags) -> ();
        read_at(file: &OpenFile, offset: u64, length_bytes: usize, into: &mut Vec<u8>) -> ();
        write_at(file: &OpenFile, offset: u64, bytes: &[u8]) -> usize;
        append(file: &OpenFile, bytes: &[u8]) -> usize;
        flush(file: &OpenFile) -> ();
        sync(file: &OpenFile, data_only: bool) -> ();
        allocate(file: &OpenFile, allocation: Allocation) -> ();
        seek(file: &OpenFile, offset: u64, whence: Whence) -> u64;
        copy_range(from: (&OpenFile, u64), to: (&OpenFile, u64), length_bytes: usize) -> usize;
        open_directory(node: &Node) -> OpenDirectory;
        read_directory(
            directory: &OpenDirectory,
            cookie: u64,
            visit: &mut dyn FnMut(DirectoryEntry<'_>) -> bool
        ) -> ();
        directory_attributes(directory: &OpenDirectory) -> Attributes;
        sync_directory(directory: &OpenDirectory) -> ();
        get_xattr(node: &Node, name: &OsStr, into: &mut [u8]) -> usize;
        set_xattr(node: &Node, name: &OsStr, value: &[u8], flags: XattrFlags) -> ();
        list_xattrs(node: &Node, into: &mut [u8]) -> usize;
        remove_xattr(node: &Node, name: &OsStr) -> ();
        flags(node: &Node, form: FlagsForm) -> FileFlags;
        set_flags(node: &Node, flags: FileFlags) -> ();
        statistics(node: &Node) -> FileSystemStatistics;
    }
}

fn step(by: Option<(PathBuf, PathBuf)>, error: Option<Errno>) -> Step {
    Step { by, error, late: Duration::ZERO }
}

/// A view of what the program shows of a directory.
struct View {
    /// Before the program ends.
    place: Option<Place>,
    program: Option<Mount<Played>>,
    replacing: Arc<Mutex<Replacing>>,
    sizes: Arc<AtomicUsize>,
}

impl View {
    fn new(arguments: &[&str]) -> Option<Self> {
        let place = Place::mountable()?;
        let served = place.path("served");
        fs::create_dir(&served).unwrap();
        let replacing = Arc::<Mutex<Replacing>>::default();
        let sizes = Arc::<AtomicUsize>::default();
        let directory = DirectoryOrigin::open(&place.source()).unwrap();
        let played = Played {
            directory,
            hidden: Mutex::default(),
            replacing: replacing.clone(),
            sizes: sizes.clone(),
        };
        let options = MountOptions {
            source: place.source(),
            mount_point: served.clone(),
            metadata_ttl: Duration::ZERO,
            negative_ttl: Duration::ZERO,
            allow_other: arguments.contains(&"--allow-other"),
            ..MountOptions::default()
        };
        let program = Some(Mount::of(played, options).unwrap());
        let view = Self { place: Some(place), program, replacing, sizes };
        let mount_point = view.path("mount point");
        let mut line = vec!["mount"];
        line.extend(arguments);
        line.extend([served.to_str().unwrap(), mount_point.to_str().unwrap()]);
        assert_code(&ogive(line), 0);
        Some(view)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.as_ref().unwrap().path(name)
    }
}

impl Drop for View {
    fn drop(&mut self) {
        let mount_point = self.path("mount point");
        let _ = ogive(["unmount", mount_point.to_str().unwrap()]);
        if let Some(program) = self.program.take() {
            let _ = program.unmounter().unmount();
            let _ = program.wait();
        }
    }
}

#[test]
fn a_directory_is_removed_once_its_last_file_that_was_open_is_closed() {
    for arguments in [&[][..], &["--allow-other"]] {
        let Some(view) = View::new(arguments) else { return };
        let directory = view.path("mount point/directory");
        fs::create_dir(&directory).unwrap();
        let path = directory.join("file");
        let options = fs::File::options().read(true).write(true).create_new(true).clone();
        let mut file = options.open(&path).unwrap();
        file.write_all(b"contents").unwrap();
        fs::remove_file(&path).unwrap();
        let mut contents = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut contents).unwrap();
        assert_eq!(contents, "contents", "what is removed can be read as long as it is open");
        drop(file);
        assert!(view.path("source/directory").join(HIDDEN).exists(), "it was hidden");
        fs::remove_dir(&directory).unwrap();
        assert!(!view.path("source/directory").exists());
    }
}

#[test]
fn a_view_for_one_user_is_shared_with_no_other() {
    let Some(view) = View::new(&[]) else { return };
    let another = view.path("another");
    fs::create_dir(&another).unwrap();
    let (served, another) = (view.path("served"), another.to_str().unwrap().to_owned());
    let shared = ogive(["mount", "--allow-other", served.to_str().unwrap(), &another]);
    assert_code(&shared, 2);
    let errors = String::from_utf8_lossy(&shared.stderr);
    assert!(errors.contains("--allow-other") && errors.contains("--trust-permissions"), "{errors}");
}

#[test]
fn an_open_during_a_replacement_gets_one_file_or_the_other() {
    let Some(view) = View::new(&["--metadata-ttl", "60s"]) else { return };
    // The kernel asks a program again after `ESTALE`, and so gets the error twice.
    let (none, stale) = (Some(Errno::NOENT), Some(Errno::STALE));
    for error in [
        &[(1, none)][..],
        &[(1, stale), (0, stale)],
        // The view holds the result of the second walk for the program.
        &[(1, stale), (0, stale), (0, None), (2, stale), (0, stale)],
        &[(1, stale), (0, stale), (2, stale), (0, stale), (0, None)],
    ] {
        // A slower open comes after the view has dropped the result, and proves nothing.
        let in_time = (0..60).find_map(|_| {
            let begun = Instant::now();
            let (read, left) = replaced_while_opened(&view, error);
            (begun.elapsed() < Duration::from_millis(900)).then_some((read, left))
        });
        let Some((read, left)) = in_time else { panic!("never came: a second without a pause") };
        assert!(read.as_ref().is_ok_and(|read| read.starts_with("new ")), "{error:?}: {read:?}");
        assert_eq!(left, 0, "it was asked for: {error:?}");
    }
}

/// Reads a file that is replaced in these steps while it is opened; how many of them are left.
fn replaced_while_opened(
    view: &View,
    error: &[(usize, Option<Errno>)],
) -> (std::io::Result<String>, usize) {
    let file = view.path("source/file");
    let new = |number: usize| view.path(&format!("source/new {number}"));
    fs::write(&file, "old").unwrap();
    for number in [1, 2] {
        fs::write(new(number), format!("new {number}")).unwrap();
    }
    let shown = view.path("mount point/file");
    assert_eq!(fs::read_to_string(&shown).unwrap(), "old");
    let by = |number: usize| (number > 0).then(|| (new(number), file.clone()));
    let steps = error.iter().map(|(number, error)| step(by(*number), *error));
    *view.replacing.lock() = steps.collect();
    let read = fs::read_to_string(&shown);
    let left = std::mem::take(&mut *view.replacing.lock()).len();
    (read, left)
}

#[test]
fn a_file_replaced_while_a_slow_source_opens_it_is_no_longer_shown() {
    let Some(view) = View::new(&["--metadata-ttl", "500ms"]) else { return };
    let (file, new) = (view.path("source/file"), view.path("source/new"));
    fs::write(&file, "old").unwrap();
    fs::write(&new, "new").unwrap();
    let shown = view.path("mount point/file");
    // The kernel gets the name again, and relies on it when it opens the file.
    assert_eq!(fs::read_to_string(&shown).unwrap(), "old");
    // By then the kernel no longer uses the earlier answer.
    let late = Duration::from_millis(2500);
    view.replacing.lock().push_back(Step { by: Some((new, file)), error: None, late });
    assert_eq!(fs::read_to_string(&shown).unwrap(), "new");
    assert!(view.replacing.lock().is_empty(), "it was asked for");
}

/// Through a handle, the kernel would get wrong times.
#[test]
fn a_program_sees_the_times_of_a_file_that_it_writes() {
    let Some(view) = View::new(&[]) else { return };
    let path = view.path("served/file");
    let options = fs::File::options().read(true).append(true).create_new(true).clone();
    let mut file = options.open(&path).unwrap();
    for round in 1..=3 {
        file.write_all(b"12345678").unwrap();
        assert_eq!(file.seek(SeekFrom::End(0)).unwrap(), round * 8);
        let source = fs::metadata(view.path("source/file")).unwrap();
        for shown in [file.metadata().unwrap(), fs::metadata(&path).unwrap()] {
            assert_eq!(shown.len(), round * 8);
            assert_eq!(shown.modified().unwrap(), source.modified().unwrap());
        }
    }
    assert!(view.sizes.load(Ordering::Relaxed) > 0, "the end is found without times");
}
