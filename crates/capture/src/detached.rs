//! Work that may never return runs on its own thread, which is abandoned when it hangs.
//!
//! A suspended pool, an unreachable server or a process whose memory is locked blocks its caller in
//! the kernel, where no signal arrives. Captures are taken of such hosts. So every wait here ends,
//! and the number of abandoned threads is bounded. At the bound, further work is refused.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use parking_lot::Mutex;

use super::Bundle;

/// Threads that may be abandoned.
const MOST: usize = 16;
/// Bytes that are taken of a file at most.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// Counts threads that have not returned.
#[derive(Debug, Default)]
pub(super) struct Detached {
    running: Arc<AtomicUsize>,
}

/// The threads of this process.
pub(super) static HERE: std::sync::LazyLock<Detached> = std::sync::LazyLock::new(Detached::default);

/// The reason why work has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gone {
    /// It exceeded its time limit, and continues detached.
    TooLong,
    /// Too many threads are detached already.
    TooMany,
}

impl Gone {
    /// The note about `what`.
    pub(super) fn note(self, what: &str, limit: Duration) -> String {
        match self {
            Self::TooLong => {
                format!("{what} took longer than {} s and was abandoned", limit.as_secs())
            }
            Self::TooMany => format!(
                "{what} was not tried: {MOST} others hang; restart ogive when the host answers"
            ),
        }
    }
}

/// Counts one thread for as long as it runs.
struct Running(Arc<AtomicUsize>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Detached {
    /// Starts `work` on a thread of its own, unless there are too many.
    pub(super) fn start(&self, work: impl FnOnce() + Send + 'static) -> Result<(), Gone> {
        let more = |running| (running < MOST).then_some(running + 1);
        let counted = self.running.fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        counted.map_err(|_| Gone::TooMany)?;
        let running = Running(Arc::clone(&self.running));
        let thread = std::thread::Builder::new().name("capture".to_owned());
        let started = thread.spawn(move || {
            let _running = running;
            work();
        });
        started.map(|_| ()).map_err(|_| Gone::TooMany)
    }

    /// The result of `work`, if it returns within the limit.
    pub(super) fn done<T: Send + 'static>(
        &self,
        limit: Duration,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Gone> {
        let (send, receive) = mpsc::sync_channel(1);
        self.start(move || {
            // The receiver is gone after the limit.
            let _ = send.send(work());
        })?;
        receive.recv_timeout(limit).map_err(|_| Gone::TooLong)
    }

    /// Adds the files that `work` takes to the bundle; if it hangs, those taken so far.
    pub(super) fn take(
        &self,
        bundle: &mut Bundle,
        limit: Duration,
        work: impl FnOnce(&Part) + Send + 'static,
    ) {
        let part = Arc::new(Part::default());
        let own = Arc::clone(&part);
        let end = self.done(limit, move || work(&own));
        let mut taken = part.0.lock();
        taken.is_closed = true;
        bundle.files.append(&mut taken.files);
        bundle.notes.append(&mut taken.notes);
        if let Err(gone) = end {
            let what = match taken.reads.as_str() {
                "" => "reading more from this host".to_owned(),
                path => format!("reading {path} and similar files"),
            };
            bundle.notes.push(gone.note(&what, limit));
        }
    }
}

/// The files that one piece of work has taken, and the path that it reads now.
#[derive(Debug, Default)]
pub(super) struct Part(Mutex<Taken>);

#[derive(Debug, Default)]
struct Taken {
    files: Vec<(String, Vec<u8>)>,
    notes: Vec<String>,
    reads: String,
    /// The bundle takes no more files.
    is_closed: bool,
}

impl Part {
    /// Sets the path that is read next. `false` if the caller has given up.
    pub(super) fn goes_on_with(&self, path: &std::path::Path) -> bool {
        let mut taken = self.0.lock();
        taken.reads = path.display().to_string();
        !taken.is_closed
    }

    pub(super) fn add(&self, name: String, content: Vec<u8>) {
        let mut taken = self.0.lock();
        if !taken.is_closed {
            taken.files.push((name, content));
        }
    }

    /// Adds to the file of the name, which is the last one or a new one.
    pub(super) fn append(&self, name: &str, content: &[u8]) {
        let mut taken = self.0.lock();
        if taken.is_closed {
            return;
        }
        match taken.files.last_mut().filter(|(last, _)| last == name) {
            Some((_, known)) => known.extend_from_slice(content),
            None => taken.files.push((name.to_owned(), content.to_vec())),
        }
    }

    pub(super) fn note(&self, note: String) {
        self.0.lock().notes.push(note);
    }
}

/// The content of a file, if the caller still waits for it.
pub(super) fn read(part: &Part, path: &Path) -> Option<Vec<u8>> {
    part.goes_on_with(path).then(|| content(path))?
}

pub(super) fn content(path: &Path) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    File::open(path).ok()?.take(MAX_FILE_BYTES).read_to_end(&mut content).ok()?;
    (!content.is_empty()).then_some(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Long enough for work that hangs, and short enough for a test.
    const LIMIT: Duration = Duration::from_millis(20);

    #[test]
    fn hanging_work_is_abandoned_within_a_bound() {
        let detached = Detached::default();
        let (release, held) = mpsc::channel::<()>();
        let held = Arc::new(std::sync::Mutex::new(held));
        let mut bundle = Bundle::default();
        for _ in 0..MOST {
            let held = Arc::clone(&held);
            detached.take(&mut bundle, LIMIT, move |part| {
                part.add("a".to_owned(), vec![1]);
                part.append("b", b"x");
                part.append("b", b"y");
                assert!(part.goes_on_with(std::path::Path::new("/proc/1/stack")));
                let _ = held.lock().map(|held| held.recv());
            });
        }
        assert_eq!(bundle.files.len(), 2 * MOST);
        assert_eq!(bundle.files[1], ("b".to_owned(), b"xy".to_vec()));
        assert_eq!(bundle.notes.len(), MOST);
        assert!(bundle.notes[0].starts_with("reading /proc/1/stack and similar"), "{bundle:?}");
        assert_eq!(detached.done(LIMIT, || 7), Err(Gone::TooMany));
        drop(release);
        // They return when the host answers, and then more work can start.
        while detached.running.load(Ordering::Acquire) > 0 {
            std::thread::yield_now();
        }
        assert_eq!(detached.done(Duration::from_secs(600), || 7), Ok(7));
    }
}
