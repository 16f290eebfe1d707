//! Whether the origin as a whole is available.
//!
//! Every operation passes through here, and this module examines only its error. Some errors mean
//! that a file system may be gone as a whole ([`is_of_the_whole`]). After such an error, and after
//! any operation while it is gone, this module asks the file system itself
//! ([`Origin::check_health`]). It returns the error to the program once that question is answered,
//! or after [`PATIENCE`], because a dead server lets each question time out. It asks at most once a
//! second, and only after an operation: there is no timer.
//!
//! `ESTALE` counts only at the root, because any removed file gives it too. A run that is read in
//! the background meets its error on a thread that must not wait, so the next operation asks.
//!
//! The log reports once that the origin has gone and once that it is back, each at most once a
//! minute. Programs get the errors of the origin.

use crate::timed_check::TimedCheck;
use crate::{
    Access, Allocation, Attributes, Availability, Caller, Changes, DirectoryEntry, Errno,
    FileFlags, FileSystemStatistics, FlagsForm, Found, Identity, Make, Needed, OFlags, Origin,
    ReadAhead, RenameFlags, Result, Run, RunSink, Time, Whence, XattrFlags,
};
use ogive_text::{Change, Recurring};
use parking_lot::Mutex;
use rustix::fd::OwnedFd;
use std::ffi::{OsStr, OsString};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

/// How long to leave an origin alone after it was asked, in milliseconds.
const PAUSE_MS: i64 = 1000;

/// How long an error waits for the answer, so that the program can then read the outcome in the
/// control directory.
const PATIENCE: Duration = Duration::from_millis(50);

/// The shortest time between two lines in the log about a loss.
const LOG_EVERY: Duration = Duration::from_secs(60);

/// An origin with health checks.
pub struct HealthChecked<O>(Arc<HealthCheck<O>>);

/// The part that a background run needs as well.
struct HealthCheck<O> {
    origin: O,
    /// The origin's name in the log.
    name: String,
    gone: AtomicBool,
    /// A run has met an error of the whole origin, and no check has followed since.
    suspected: AtomicBool,
    /// When it was last checked, in time since the start of the system.
    checked_ms: AtomicI64,
    check: TimedCheck,
    patience: Duration,
    /// The last known availability, and the one in the log.
    known: Mutex<(Availability, Recurring)>,
}

impl<O: Origin> HealthChecked<O> {
    /// Checks `origin`, which is available now, under a name for the log.
    pub fn new(origin: O, name: String) -> Self {
        Self::with_patience(origin, name, PATIENCE)
    }

    fn with_patience(origin: O, name: String, patience: Duration) -> Self {
        Self(Arc::new(HealthCheck {
            origin,
            name,
            gone: AtomicBool::new(false),
            suspected: AtomicBool::new(false),
            checked_ms: AtomicI64::new(i64::MIN / 2),
            check: TimedCheck::default(),
            patience,
            known: Mutex::new((Availability::default(), Recurring::new(LOG_EVERY, Duration::ZERO))),
        }))
    }

    /// The origin itself.
    pub fn origin(&self) -> &O {
        &self.0.origin
    }
}

impl<O: Origin> HealthCheck<O> {
    /// Examines a result on its way to the caller.
    fn note<T>(self: &Arc<Self>, result: Result<T>) -> Result<T> {
        let is_due = result.as_ref().is_err_and(is_suspicious)
            || self.gone.load(Ordering::Relaxed)
            || self.suspected.load(Ordering::Relaxed);
        if is_due && self.is_turn() {
            self.check_with_timeout();
        }
        result
    }

    /// Starts a check and waits a moment for it. Returns whether the origin is known to be
    /// available.
    fn check_with_timeout(self: &Arc<Self>) -> bool {
        let watch = self.clone();
        let check = move || {
            // The availability has the result.
            let _ = watch.check_now();
        };
        self.check.ask(self.patience, check) && !self.gone.load(Ordering::Relaxed)
    }

    /// Whether the pause since the last check is over; then the caller has to check.
    fn is_turn(&self) -> bool {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let now_ms = now.tv_sec.saturating_mul(1000).saturating_add(now.tv_nsec / 1_000_000);
        let last_ms = self.checked_ms.load(Ordering::Relaxed);
        now_ms.saturating_sub(last_ms) >= PAUSE_MS
            && self
                .checked_ms
                .compare_exchange(last_ms, now_ms, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }

    fn check_now(&self) -> Result<()> {
        self.suspected.store(false, Ordering::Relaxed);
        let answer = self.origin.check_health();
        let mut known = self.known.lock();
        let (availability, logged) = &mut *known;
        let since = availability.gone.map(|(_, since)| since);
        match (availability.gone, answer) {
            (None, Err(errno)) => {
                availability.gone = Some((errno, Time::now()));
                availability.losses += 1;
                self.gone.store(true, Ordering::Relaxed);
            }
            (Some(_), Ok(())) => {
                availability.gone = None;
                self.gone.store(false, Ordering::Relaxed);
            }
            _ => {}
        }
        let losses = availability.losses;
        let change = logged.say(availability.gone.is_some(), Instant::now());
        drop(known);
        match (change, answer) {
            (Some(Change::Came), Err(errno)) => log::error!(
                event = "source_gone",
                source = self.name.as_str(),
                errno = errno.raw_os_error(),
                losses;
                "the source {} has gone: {errno}; programs get errors until the same file system \
                 is back",
                self.name
            ),
            (Some(Change::Went(_)), _) => {
                let since = since.map_or(0, |since| since.seconds);
                let seconds = Time::now().seconds.saturating_sub(since);
                log::info!(
                    event = "source_back",
                    source = self.name.as_str(),
                    seconds,
                    losses;
                    "the source {} is back after {seconds} s",
                    self.name
                );
            }
            _ => {}
        }
        answer
    }
}

/// Whether an error can mean that an origin has gone as a whole, and not one file of it.
pub(crate) fn is_of_the_whole(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::IO
            | Errno::STALE
            | Errno::NOTCONN
            | Errno::CONNABORTED
            | Errno::SHUTDOWN
            | Errno::HOSTDOWN
            | Errno::NODEV
            | Errno::NXIO
            | Errno::REMOTEIO
            | Errno::TIMEDOUT
            | Errno::UCLEAN
    )
}

/// Whether the error of one operation is a reason for a check.
fn is_suspicious(errno: &Errno) -> bool {
    is_of_the_whole(*errno) && *errno != Errno::STALE
}

/// Passes the records of a run on, and examines its end.
struct HealthCheckedSink<O, S> {
    sink: S,
    watch: Arc<HealthCheck<O>>,
}

impl<O: Origin, S: RunSink> RunSink for HealthCheckedSink<O, S> {
    fn asks(&mut self) {
        self.sink.asks();
    }

    fn record(&mut self, index: u64, bytes: Vec<u8>) -> ControlFlow<()> {
        self.sink.record(index, bytes)
    }

    fn end(self, result: Result<()>) {
        let Self { sink, watch } = self;
        if !watch.origin.reads_in_background() {
            return sink.end(watch.note(result));
        }
        if result.as_ref().is_err_and(is_suspicious) {
            watch.suspected.store(true, Ordering::Relaxed);
        }
        sink.end(result);
    }
}

/// Passes an operation on, and examines its result.
macro_rules! passed_on {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        $(fn $name(&self, $($argument: $type),*) -> Result<$result> {
            self.0.note(self.0.origin.$name($($argument),*))
        })*
    };
}

impl<O: Origin> Origin for HealthChecked<O> {
    type Node = O::Node;
    type File = O::File;
    type Directory = O::Directory;

    /// An origin that has gone is checked at once, if the pause is over.
    fn root(&self) -> Result<Found<O::Node>> {
        match self.0.origin.root() {
            Err(errno) if self.0.is_turn() => {
                if self.0.check_with_timeout() {
                    self.0.origin.root()
                } else {
                    Err(errno)
                }
            }
            other => self.0.note(other),
        }
    }

    fn check_health(&self) -> Result<()> {
        self.0.check_now()
    }

    /// The origin's own availability overrides the one that follows from errors.
    fn availability(&self) -> Availability {
        let (own, known) = (self.0.origin.availability(), self.0.known.lock().0);
        let losses = own.losses + known.losses;
        if own.gone.is_some() {
            Availability { losses, ..own }
        } else {
            Availability { losses, ..known }
        }
    }

    fn open_unread(
        &self,
        node: &O::Node,
        flags: OFlags,
        is_kept: &dyn Fn(&Identity) -> bool,
    ) -> Result<O::File> {
        self.0.note(self.0.origin.open_unread(node, flags, is_kept))
    }

    fn read_run<S: RunSink>(&self, file: &O::File, run: Run, sink: S) {
        self.0.origin.read_run(file, run, HealthCheckedSink { sink, watch: self.0.clone() });
    }

    fn counters(&self, tell: &mut dyn FnMut(&str, u64)) {
        self.0.origin.counters(tell);
    }

    fn hidden(&self, tell: &mut dyn FnMut(&str, &str)) {
        self.0.origin.hidden(tell);
    }

    fn untrusted_times(&self, tell: &mut dyn FnMut(&str, &str)) {
        self.0.origin.untrusted_times(tell);
    }

    fn reads_in_background(&self) -> bool {
        self.0.origin.reads_in_background()
    }

    fn size_is_reliable(&self, file: &O::File, size_bytes: u64) -> bool {
        self.0.origin.size_is_reliable(file, size_bytes)
    }

    fn is_corrupt(&self, file: &O::File) -> bool {
        self.0.origin.is_corrupt(file)
    }

    fn read_ahead(&self) -> ReadAhead {
        self.0.origin.read_ahead()
    }

    fn may_read_ahead(&self) -> bool {
        self.0.origin.may_read_ahead()
    }

    fn pinned_identity(&self, file: &O::File) -> Option<Identity> {
        self.0.origin.pinned_identity(file)
    }

    fn descriptor(&self, file: &O::File) -> Option<Result<OwnedFd>> {
        self.0.origin.descriptor(file)
    }

    fn local_size(&self, file: &O::File) -> Option<u64> {
        self.0.origin.local_size(file)
    }

    fn lists_with_attributes(&self, device: u64) -> bool {
        self.0.origin.lists_with_attributes(device)
    }

    fn has_only_hidden_files(&self, parent: &O::Node, name: &OsStr) -> bool {
        self.0.origin.has_only_hidden_files(parent, name)
    }

    fn attribute_ttl(&self) -> Duration {
        self.0.origin.attribute_ttl()
    }

    fn invalidate_names(&self, directory: &O::Directory) {
        self.0.origin.invalidate_names(directory);
    }

    fn flushes_before_times(&self, file: &O::Node) -> bool {
        self.0.origin.flushes_before_times(file)
    }

    fn folds_case(&self, device: u64) -> bool {
        self.0.origin.folds_case(device)
    }

    fn folds_case_in(&self, directory: &O::Node) -> bool {
        self.0.origin.folds_case_in(directory)
    }

    fn lacks_capabilities(&self, file: &O::Node) -> bool {
        self.0.origin.lacks_capabilities(file)
    }

    fn keeps_places(&self) -> bool {
        self.0.origin.keeps_places()
    }

    fn met_again(&self, known: &O::Node, found: &O::Node) {
        self.0.origin.met_again(known, found);
    }

    fn forgotten(&self, node: &O::Node) {
        self.0.origin.forgotten(node);
    }

    fn expect_at(&self, node: &O::Node, at: (&O::Node, &OsStr)) {
        self.0.origin.expect_at(node, at);
    }

    fn has_moved(&self, node: &O::Node, from: (&O::Node, &OsStr), to: (&O::Node, &OsStr)) {
        self.0.origin.has_moved(node, from, to);
    }

    fn has_access_control_lists(&self) -> bool {
        self.0.origin.has_access_control_lists()
    }

    passed_on! {
        lookup(parent: &O::Node, name: &OsStr) -> Found<O::Node>;
        revalidate_name(parent: &O::Node, name: &OsStr) -> Found<O::Node>;
        lookup_in(parent: &O::Directory, name: &OsStr) -> Found<O::Node>;
        leads_to(parent: &O::Node, name: &OsStr, node: &O::Node) -> bool;
        attributes(node: &O::Node, file: Option<&O::File>) -> Attributes;
        attributes_needed(node: &O::Node, file: Option<&O::File>, needed: Needed) -> Attributes;
        set_attributes(node: &O::Node, file: Option<&O::File>, changes: &Changes) -> Attributes;
        access(node: &O::Node, file: Option<&O::File>, wanted: Access) -> ();
        read_link(node: &O::Node) -> OsString;
        make(parent: &O::Node, name: &OsStr, what: Make<'_>, caller: Caller) -> Found<O::Node>;
        create(parent: &O::Node, name: &OsStr, flags: OFlags, mode: u32, caller: Caller)
            -> (Found<O::Node>, O::File);
        link(node: &O::Node, file: Option<&O::File>, parent: &O::Node, name: &OsStr)
            -> Found<O::Node>;
        unlink(parent: &O::Node, name: &OsStr) -> ();
        remove_directory(parent: &O::Node, name: &OsStr) -> ();
        rename(from: (&O::Node, &OsStr), to: (&O::Node, &OsStr), flags: RenameFlags) -> ();
        open(node: &O::Node, flags: OFlags) -> O::File;
        read_at(file: &O::File, offset: u64, length_bytes: usize, into: &mut Vec<u8>) -> ();
        write_at(file: &O::File, offset: u64, bytes: &[u8]) -> usize;
        append(file: &O::File, bytes: &[u8]) -> usize;
        flush(file: &O::File) -> ();
        sync(file: &O::File, data_only: bool) -> ();
        allocate(file: &O::File, allocation: Allocation) -> ();
        seek(file: &O::File, offset: u64, whence: Whence) -> u64;
        copy_range(from: (&O::File, u64), to: (&O::File, u64), length_bytes: usize) -> usize;
        open_directory(node: &O::Node) -> O::Directory;
        read_directory(
            directory: &O::Directory,
            cookie: u64,
            visit: &mut dyn FnMut(DirectoryEntry<'_>) -> bool
        ) -> ();
        directory_attributes(directory: &O::Directory) -> Attributes;
        sync_directory(directory: &O::Directory) -> ();
        get_xattr(node: &O::Node, name: &OsStr, into: &mut [u8]) -> usize;
        set_xattr(node: &O::Node, name: &OsStr, value: &[u8], flags: XattrFlags) -> ();
        list_xattrs(node: &O::Node, into: &mut [u8]) -> usize;
        remove_xattr(node: &O::Node, name: &OsStr) -> ();
        flags(node: &O::Node, form: FlagsForm) -> FileFlags;
        set_flags(node: &O::Node, flags: FileFlags) -> ();
        statistics(node: &O::Node) -> FileSystemStatistics;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DirectoryOrigin;

    /// Waits for the check, however slow the machine is.
    fn watched(origin: DirectoryOrigin) -> HealthChecked<DirectoryOrigin> {
        HealthChecked::with_patience(origin, "source".to_owned(), Duration::from_secs(3600))
    }

    #[test]
    fn a_loss_is_known_without_another_check() {
        let directory = tempfile::tempdir().unwrap();
        let source = directory.path().join("source");
        std::fs::create_dir(&source).unwrap();
        let origin = DirectoryOrigin::open(&source).unwrap();
        let watched = watched(origin);
        let root = watched.root().unwrap();
        assert_eq!(watched.availability(), Availability::default());
        // Errors of one file are not errors of the origin.
        assert!(watched.lookup(&root.node, OsStr::new("missing")).is_err());
        assert!(watched.0.note::<()>(Err(Errno::IO)).is_err());
        assert_eq!(watched.availability(), Availability::default());
        std::fs::remove_dir(&source).unwrap();
        watched.0.checked_ms.store(i64::MIN / 2, Ordering::Relaxed);
        assert!(watched.root().is_err());
        let availability = watched.availability();
        assert!(availability.gone.is_some() && availability.losses == 1);
        assert!(watched.root().is_err() && watched.check_health().is_err());
        assert_eq!(watched.availability(), availability, "it counts one loss");
    }

    /// Keeps the records of a run, up to a number of them.
    #[derive(Default)]
    struct Kept {
        records: Vec<(u64, Vec<u8>)>,
        wanted: usize,
        ended: Option<Result<()>>,
    }

    struct Keep(Arc<Mutex<Kept>>);

    impl RunSink for Keep {
        fn record(&mut self, index: u64, bytes: Vec<u8>) -> ControlFlow<()> {
            let mut kept = self.0.lock();
            assert!(bytes.capacity() <= 4, "no more room than a record needs");
            kept.records.push((index, bytes));
            if kept.records.len() < kept.wanted {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        }

        fn end(self, result: Result<()>) {
            assert!(self.0.lock().ended.replace(result).is_none());
        }
    }

    fn read_run(origin: &impl Origin, name: &str, run: Run, wanted: usize) -> Kept {
        let root = origin.root().unwrap().node;
        let node = origin.lookup(&root, OsStr::new(name)).unwrap().node;
        let file = origin.open(&node, OFlags::RDONLY).unwrap();
        let kept = Arc::new(Mutex::new(Kept { wanted, ..Kept::default() }));
        origin.read_run(&file, run, Keep(kept.clone()));
        std::mem::take(&mut kept.lock())
    }

    #[test]
    fn a_run_brings_its_records_in_order_up_to_the_end_of_the_file() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("ten"), "0123456789").unwrap();
        std::fs::write(directory.path().join("eight"), "01234567").unwrap();
        let origin = DirectoryOrigin::open(directory.path()).unwrap();
        let watched = watched(origin);
        let records = |list: &[(u64, &str)]| -> Vec<(u64, Vec<u8>)> {
            list.iter().map(|(index, bytes)| (*index, bytes.as_bytes().to_vec())).collect()
        };
        let run =
            Run { first: 0, records: 9, record_size_bytes: 4, size_bytes: 10, is_demanded: true };
        let kept = read_run(&watched, "ten", run, 9);
        assert_eq!(kept.records, records(&[(0, "0123"), (1, "4567"), (2, "89")]));
        assert_eq!(kept.ended, Some(Ok(())));
        // An end between two records is an empty record, as is one before the run.
        let kept = read_run(&watched, "eight", Run { first: 1, ..run }, 9);
        assert_eq!(kept.records, records(&[(1, "4567"), (2, "")]));
        let kept = read_run(&watched, "eight", Run { first: 5, ..run }, 9);
        assert_eq!((kept.records, kept.ended), (records(&[(5, "")]), Some(Ok(()))));
        // A run has the requested length, or ends at the last needed record.
        let kept = read_run(&watched, "ten", Run { records: 2, ..run }, 9);
        assert_eq!(kept.records, records(&[(0, "0123"), (1, "4567")]));
        let kept = read_run(&watched, "ten", run, 1);
        assert_eq!((kept.records, kept.ended), (records(&[(0, "0123")]), Some(Ok(()))));
        // No file has such a record.
        let kept = read_run(&watched, "ten", Run { first: u64::MAX / 2, ..run }, 9);
        assert_eq!((kept.records.len(), kept.ended), (0, Some(Err(Errno::FBIG))));
    }

    #[test]
    fn a_run_that_meets_a_gone_origin_reports_it_before_it_ends() {
        let directory = tempfile::tempdir().unwrap();
        let source = directory.path().join("source");
        std::fs::create_dir(&source).unwrap();
        let origin = DirectoryOrigin::open(&source).unwrap();
        let watched = watched(origin);
        std::fs::remove_dir(&source).unwrap();
        /// Looks at the availability when the run ends.
        struct Look(Arc<HealthCheck<DirectoryOrigin>>, Arc<Mutex<Vec<bool>>>);
        impl RunSink for Look {
            fn record(&mut self, _: u64, _: Vec<u8>) -> ControlFlow<()> {
                ControlFlow::Continue(())
            }
            fn end(self, _: Result<()>) {
                self.1.lock().push(self.0.known.lock().0.gone.is_some());
            }
        }
        let seen = Arc::new(Mutex::new(Vec::new()));
        let look = Look(watched.0.clone(), seen.clone());
        HealthCheckedSink { sink: look, watch: watched.0.clone() }.end(Err(Errno::IO));
        assert_eq!(*seen.lock(), [true]);
    }

    #[test]
    fn the_next_operation_checks_what_a_background_run_suspects() {
        let directory = tempfile::tempdir().unwrap();
        let source = directory.path().join("source");
        std::fs::create_dir(&source).unwrap();
        let origin = DirectoryOrigin::open(&source).unwrap();
        let watched = watched(origin);
        std::fs::remove_dir(&source).unwrap();
        assert!(watched.0.note(Ok(())).is_ok());
        assert_eq!(watched.availability(), Availability::default());
        watched.0.suspected.store(true, Ordering::Relaxed);
        assert!(watched.0.note(Ok(())).is_ok(), "its own result stands");
        assert!(watched.availability().gone.is_some());
        assert!(!watched.0.suspected.load(Ordering::Relaxed), "it is checked once");
    }
}
