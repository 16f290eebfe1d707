//! `/metrics`: the counters of all mounts and of the host's OpenZFS for Prometheus.
//!
//! The answer is made for each request. A mount may hang, and a reader of its files hangs with it.
//! So each mount has a reader thread, which gets a new request only after it has answered the
//! last. A scrape waits at most `PATIENCE` for all of them together. A mount without an answer then
//! has no counters, and its `ogive_mount_answers` is 0.
//!
//! Locks: one scrape at a time; others wait for it on the threads of their connections.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use ogive_kstat::Source;
use ogive_metrics::exposition::Kind;
use ogive_metrics::families::openzfs::OpenZfs;
use ogive_metrics::{Exposition, Figures, Format, families, path_label};
use parking_lot::Mutex;

use crate::http::{Access, Request, Response, Routes};
use crate::openzfs;
use crate::sample::Watched;

/// A scrape waits so long for answers.
const PATIENCE: Duration = Duration::from_millis(400);

/// Adds the route. Clients that may read the page's counters may read these.
pub fn routes(routes: Routes, watched: Watched) -> Routes {
    let readers = Mutex::new(Readers::of_host(Path::new("/")));
    routes.get("/metrics", Access::Look, move |request| {
        let Some(mounts) = watched.mounted() else {
            return Response::error(500, "cannot read the list of mounts, /proc/self/mountinfo");
        };
        readers.lock().answer(&mounts, request)
    })
}

/// The readers.
#[derive(Debug, Default)]
struct Readers {
    readers: Vec<Reader<Figures>>,
    /// The one of the host's OpenZFS.
    openzfs: Option<Reader<OpenZfs>>,
}

impl Readers {
    /// With the kstats of the OpenZFS below a root directory.
    fn of_host(root: &Path) -> Self {
        let own = root.to_owned();
        let reader = Reader::start(root.to_owned(), move || openzfs::read(&own));
        let warn = |error| log::warn!("cannot start a thread to read OpenZFS's kstats: {error}");
        Self { readers: Vec::new(), openzfs: reader.map_err(warn).ok() }
    }

    fn answer(&mut self, mounts: &[PathBuf], request: &Request) -> Response {
        let format = Format::accepted(request.field("accept"));
        let figures = self.scrape(mounts, format, PATIENCE);
        Response::new(format.media_type(), figures)
    }

    fn scrape(&mut self, mounts: &[PathBuf], format: Format, patience: Duration) -> Vec<u8> {
        // A thread that still waits for an unmounted mount ends with its answer.
        self.readers.retain(|reader| mounts.contains(&reader.path));
        for path in mounts {
            if self.readers.iter().all(|reader| reader.path != *path) {
                match Reader::of_mount(path.clone()) {
                    Ok(reader) => self.readers.push(reader),
                    Err(error) => log::warn!("cannot start a thread to read a mount: {error}"),
                }
            }
        }
        self.readers.iter_mut().for_each(Reader::ask);
        self.openzfs.iter_mut().for_each(Reader::ask);
        let until = Instant::now() + patience;
        let found: Vec<(String, Option<Figures>)> =
            self.readers.iter_mut().map(|reader| (reader.name(), reader.answer(until))).collect();
        let openzfs = self.openzfs.as_mut().and_then(|reader| reader.answer(until));
        exposition(format, found, openzfs.as_ref())
    }
}

/// The answer.
fn exposition(
    format: Format,
    found: Vec<(String, Option<Figures>)>,
    openzfs: Option<&OpenZfs>,
) -> Vec<u8> {
    let mut exposition = Exposition::new(format);
    let help = "Mounts of ogive that are watched";
    #[expect(clippy::cast_precision_loss, reason = "a number of mounts")]
    exposition.family("ogive_watch_mounts", Kind::Gauge, help).sample(&[], found.len() as f64);
    if !found.is_empty() {
        let help = "1 if the mount answered within 0.4 seconds, otherwise 0";
        let samples = exposition.family("ogive_mount_answers", Kind::Gauge, help);
        for (mount, figures) in &found {
            samples.sample(&[("mount", mount)], i32::from(figures.is_some()));
        }
    }
    let figures: Vec<Figures> = found.into_iter().filter_map(|(_, figures)| figures).collect();
    if !figures.is_empty() {
        families::tell(&mut exposition, &figures);
    }
    if let Some(zfs) = openzfs {
        families::openzfs::tell(&mut exposition, zfs);
    }
    exposition.finish()
}

/// The reader of one mount, or of the host's OpenZFS.
#[derive(Debug)]
struct Reader<T> {
    path: PathBuf,
    ask: SyncSender<()>,
    answers: Receiver<Option<T>>,
    is_asked: bool,
}

impl Reader<Figures> {
    fn of_mount(path: PathBuf) -> std::io::Result<Self> {
        let (mount, source) = (path.clone(), Source::directory(path.join(".ogive")));
        Self::start(path, move || figures(&source, &mount))
    }
}

impl<T: Send + 'static> Reader<T> {
    fn start(
        path: PathBuf,
        read: impl Fn() -> Option<T> + Send + 'static,
    ) -> std::io::Result<Self> {
        let (ask, asked) = mpsc::sync_channel(1);
        let (answer, answers) = mpsc::sync_channel(1);
        thread::Builder::new().name("watch_scrape".into()).spawn(move || {
            while let Ok(()) = asked.recv() {
                if answer.send(read()).is_err() {
                    break;
                }
            }
        })?;
        Ok(Self { path, ask, answers, is_asked: false })
    }

    fn name(&self) -> String {
        path_label(&self.path)
    }

    fn ask(&mut self) {
        // An answer that came too late for its scrape is too old for this one.
        if self.is_asked && self.answers.try_recv().is_ok() {
            self.is_asked = false;
        }
        if !self.is_asked {
            self.is_asked = self.ask.try_send(()).is_ok();
        }
    }

    fn answer(&mut self, until: Instant) -> Option<T> {
        let left = until.saturating_duration_since(Instant::now());
        let found = self.answers.recv_timeout(left).ok()?;
        self.is_asked = false;
        found
    }
}

fn figures(source: &Source, mount: &Path) -> Option<Figures> {
    let kstat = |name| source.kstat(name).ok();
    Some(Figures {
        mount: path_label(mount),
        arcstats: kstat("arcstats")?,
        zfetchstats: kstat("zfetchstats")?,
        ogivestats: kstat("ogivestats")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GENEROUS: Duration = Duration::from_secs(60);

    fn control(hits: u64) -> tempfile::TempDir {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join(".ogive");
        std::fs::create_dir(&directory).unwrap();
        let head = "9 1 0x01 1 272 1000 2000\nname type data\n";
        for (name, row) in [
            ("arcstats", format!("demand_data_hits 4 {hits}\n")),
            ("zfetchstats", "hits 4 1\n".to_owned()),
            ("ogivestats", "read_bytes 4 7\n".to_owned()),
        ] {
            std::fs::write(directory.join(name), format!("{head}{row}")).unwrap();
        }
        place
    }

    fn scraped(readers: &mut Readers, mounts: &[PathBuf], patience: Duration) -> String {
        String::from_utf8(readers.scrape(mounts, Format::Text, patience)).unwrap()
    }

    fn assert_has(text: &str, line: &str) {
        assert!(text.lines().any(|own| own == line), "no {line}: {text}");
    }

    #[test]
    fn mount_points_that_are_not_utf8_have_separate_series() {
        use std::os::unix::ffi::OsStrExt as _;
        let place = control(5);
        let mounts = [&b"caf\xe8"[..], b"caf\xe9", b"caf\\xe9"]
            .map(|name| place.path().join(std::ffi::OsStr::from_bytes(name)));
        for mount in &mounts {
            std::os::unix::fs::symlink(place.path(), mount).unwrap();
        }
        let text = scraped(&mut Readers::default(), &mounts, GENEROUS);
        let own = text.lines().filter(|line| line.starts_with("ogive_read_bytes_total{"));
        let own: std::collections::BTreeSet<&str> = own.collect();
        assert_eq!(own.len(), 3, "{own:?}");
    }

    #[test]
    fn every_mount_is_scraped_and_a_hanging_one_delays_no_other() {
        let (good, bad) = (control(5), control(9));
        // A FIFO without a writer acts as a hanging daemon: its open waits.
        let fifo = bad.path().join(".ogive/arcstats");
        let counters = std::fs::read(&fifo).unwrap();
        std::fs::remove_file(&fifo).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RWXU).unwrap();
        let (good, bad) = (good.path().to_owned(), bad.path().to_owned());
        let mut readers = Readers::default();
        let both = [good.clone(), bad.clone()];
        let text = scraped(&mut readers, &both, PATIENCE);
        assert_has(&text, "ogive_watch_mounts 2");
        assert_has(&text, &format!("ogive_mount_answers{{mount=\"{}\"}} 0", bad.display()));

        let text = scraped(&mut readers, std::slice::from_ref(&good), GENEROUS);
        assert_has(&text, &format!("ogive_mount_answers{{mount=\"{}\"}} 1", good.display()));
        assert_has(&text, &format!("ogive_read_bytes_total{{mount=\"{}\"}} 7", good.display()));
        assert!(!text.contains(&bad.display().to_string()), "it is no longer asked for: {text}");
        // The hanging reader gets its answer, and ends.
        std::fs::write(&fifo, counters).unwrap();
    }

    #[test]
    fn a_late_answer_is_dropped() {
        let place = control(5);
        let mut reader = Reader::of_mount(place.path().to_owned()).unwrap();
        reader.ask();
        assert!(reader.is_asked);
        // It has answered once a new request is possible; nothing waited for it.
        let until = Instant::now() + GENEROUS;
        let fresh = control(6);
        let of = |place: &tempfile::TempDir| place.path().join(".ogive/arcstats");
        while reader.is_asked {
            assert!(Instant::now() < until, "it does not answer");
            reader.is_asked = reader.answers.try_recv().is_err();
        }
        std::fs::rename(of(&fresh), of(&place)).unwrap();
        reader.ask();
        let text = reader.answer(until).unwrap();
        assert_eq!(text.arcstats.get("demand_data_hits").unwrap().as_integer(), Some(6));
    }

    #[test]
    fn the_kernels_openzfs_is_scraped_with_the_mounts() {
        let root = tempfile::tempdir().unwrap();
        let zfs = root.path().join("proc/spl/kstat/zfs");
        std::fs::create_dir_all(&zfs).unwrap();
        let text = "9 1 0x01 1 272 1000 2000\nname type data\nsize 4 4096\n";
        std::fs::write(zfs.join("arcstats"), text).unwrap();
        let text = scraped(&mut Readers::of_host(root.path()), &[], GENEROUS);
        assert_has(&text, "openzfs_cache_size_bytes 4096");
        assert_has(&text, "ogive_watch_mounts 0");
    }

    #[test]
    fn without_a_mount_there_is_an_answer() {
        let text = scraped(&mut Readers::default(), &[], GENEROUS);
        assert_has(&text, "ogive_watch_mounts 0");
        assert_eq!(text.lines().filter(|line| !line.starts_with('#')).count(), 1, "{text}");
    }
}
