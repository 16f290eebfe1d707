//! The miss-ratio curve of a mount's reads, `/api/curve`: what more memory would gain.
//!
//! While somebody asks, a thread reads the mount's control file `reads` every second or two. It has
//! the last reads of a sample of its records (`miss_ratio_curve/sampled_log.rs`), and gives what is new to
//! `ogive_sim`'s curve (SHARDS, bounded). The file is open for a look alone, so the mount can be
//! unmounted beside it, and whoever records a trace is not disturbed. For `LEASE` after the last
//! question it goes on, then it ends: while nobody looks, neither the mount nor this process does
//! anything for it.
//!
//! The last hour is two curves. Each begins half an hour after the other and ends after an hour;
//! the longer one is the answer. Earlier reads are unknown, so the first read of a record is a miss
//! at every size, and the curve rises while it is young.
//!
//! Locks: that of a reader's state, a leaf; the file is read without it.

mod sampled_reads;

use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use ogive_sim::curve::Curve;
use parking_lot::Mutex;
use serde_json::{Value, json};

use self::sampled_reads::{New, SampledReads};
use crate::http::{Access, Response, Routes};
use crate::sample::Subject;
use crate::sampler::Sampler;

/// It goes on so long after a question, of which a page has one every 15 seconds.
const LEASE: Duration = Duration::from_secs(40);
/// Between two looks: a mount samples half of what it keeps meanwhile at most.
const PAUSE: Duration = Duration::from_secs(1);
/// After a look with fewer new entries than this, the next one may come later: even if all
/// possible samples came at once, the mount would keep them.
const FEW: usize = 4 << 10;
const PAUSE_AFTER_FEW: Duration = Duration::from_secs(2);
/// After a look that found so many, which is how a sampling begins that has not found its rate yet.
const MANY: usize = 16 << 10;
const PAUSE_AFTER_MANY: Duration = Duration::from_millis(50);
/// A curve covers this time.
const HOUR: Duration = Duration::from_secs(3600);
/// Records of which a curve keeps the places: an error of a point or two.
const KEYS_MAX: usize = 16 << 10;
/// With fewer reads there is no curve.
const READS_MIN: u64 = 1000;
/// A curve covers sizes from 1/16 to 16 times the largest size of the cache, in this many steps a
/// doubling.
const DOUBLINGS: i32 = 4;
const STEPS_A_DOUBLING: i32 = 4;
/// Mounts whose reads are remembered at most.
const READERS_MAX: usize = 16;

/// Adds the route. It says how much is read of what size, and names nothing; but it has the mount
/// sample its reads, which its user alone may.
pub fn routes(routes: Routes, sampler: Sampler) -> Routes {
    let readers = Mutex::new(Vec::<Arc<Reader>>::new());
    routes.get("/api/curve", Access::Act, move |request| {
        let source = request.query("source").unwrap_or_default();
        let path = match sampler.subject(source) {
            Some(Subject::Mount(path, _)) => path,
            Some(Subject::Host) => {
                return Response::error(400, "the host has no cache of its own; name a mount");
            }
            None => {
                return Response::error(404, "there is no such source any more; reload the page");
            }
        };
        let allowed = sampler.last(&format!("{source}.target_max")).unwrap_or(0.0);
        #[expect(clippy::cast_possible_truncation, reason = "a cast saturates")]
        #[expect(clippy::cast_sign_loss, reason = "a cast saturates")]
        let allowed_bytes = allowed as u64;
        let reader = reader(&mut readers.lock(), path);
        // Before the next try: what it says now may be of the one before.
        let told = reader.told(allowed_bytes, Instant::now());
        if let Err(error) = reader.ask(Instant::now(), LEASE) {
            return Response::error(500, &format!("cannot start a thread: {error}"));
        }
        match told {
            Ok(told) => Response::json(told.to_string()),
            Err((status, why)) => Response::error(status, &why),
        }
    })
}

/// The reader of a mount, made if there is none.
fn reader(readers: &mut Vec<Arc<Reader>>, path: PathBuf) -> Arc<Reader> {
    let found = readers.iter().position(|reader| reader.path == path);
    let own = match found {
        Some(at) => readers.remove(at),
        None => Arc::new(Reader { path, state: Mutex::default() }),
    };
    if readers.len() == READERS_MAX {
        // Drop the reader with the oldest request; its thread ends by itself.
        readers.remove(0);
    }
    readers.push(Arc::clone(&own));
    own
}

/// The reader of a mount's sampled reads.
#[derive(Debug)]
struct Reader {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    until: Option<Instant>,
    is_running: bool,
    /// Why there is nothing to read.
    failed: Option<(u16, String)>,
    /// The longer one first.
    curves: Vec<Half>,
}

/// A curve, and what it is of.
#[derive(Debug)]
struct Half {
    began: Instant,
    /// Time in which reads were sampled.
    listened: Duration,
    dropped: u64,
    curve: Curve,
}

impl Reader {
    /// A request arrived: samples are read for the length of the lease.
    fn ask(self: &Arc<Self>, now: Instant, lease: Duration) -> std::io::Result<()> {
        let mut state = self.state.lock();
        state.until = Some(now + lease);
        if state.is_running {
            return Ok(());
        }
        state.is_running = true;
        let own = Arc::clone(self);
        let started = thread::Builder::new().name("watch_reads".into()).spawn(move || own.run());
        if started.is_err() {
            state.is_running = false;
        }
        started.map(drop)
    }

    fn run(&self) {
        let failed = self.take().err();
        let mut state = self.state.lock();
        state.failed = failed.map(|error| self.words(&error));
        state.is_running = false;
    }

    /// Reads samples until the lease ends.
    fn take(&self) -> std::io::Result<()> {
        let mut log = SampledReads::new(self.path.join(".ogive/reads"));
        let mut new = New::default();
        loop {
            log.look(Instant::now(), &mut new)?;
            let mut state = self.state.lock();
            state.failed = None;
            let now = Instant::now();
            state.add(&new, now);
            if state.until.is_none_or(|until| now >= until) {
                return Ok(());
            }
            drop(state);
            thread::sleep(match new.chosen.len() {
                0..FEW => PAUSE_AFTER_FEW,
                FEW..MANY => PAUSE,
                _ => PAUSE_AFTER_MANY,
            });
        }
    }

    fn words(&self, error: &std::io::Error) -> (u16, String) {
        let mount = self.path.display();
        match error.kind() {
            ErrorKind::PermissionDenied => (
                403,
                format!(
                    "{mount} tells its reads to the user who mounted it alone; run ogive watch as \
                     that one"
                ),
            ),
            ErrorKind::NotFound | ErrorKind::NotConnected => (
                404,
                format!(
                    "{mount} does not tell its reads: it was unmounted, or its daemon is of an \
                     earlier version; mount it again to see this"
                ),
            ),
            ErrorKind::Unsupported => (
                404,
                format!("{mount} does not tell its reads: with --passthrough the kernel has them"),
            ),
            _ => (500, format!("cannot read what {mount} tells of its reads: {error}")),
        }
    }

    /// The curve, or how far it is.
    fn told(&self, allowed_bytes: u64, now: Instant) -> Result<Value, (u16, String)> {
        let mut state = self.state.lock();
        if let Some(failed) = &state.failed {
            return Err(failed.clone());
        }
        state.turn(now);
        let Some(half) = state.curves.first() else {
            return Ok(json!({ "seconds": 0, "reads": 0, "reads_min": READS_MIN, "points": [] }));
        };
        let is_enough = half.curve.requests() >= READS_MIN && allowed_bytes > 0;
        let mut sizes = if is_enough { sizes(allowed_bytes) } else { Vec::new() };
        // With room for everything, only what is read for the first time misses.
        sizes.push(u64::MAX);
        let mut points = half.curve.points(&sizes);
        let ever = points.pop().map_or(0.0, |point| point.hit_ratio);
        Ok(json!({
            "seconds": half.listened.as_secs(),
            "reads": half.curve.requests(),
            "reads_min": READS_MIN,
            "dropped": half.dropped,
            "sampled_share": half.curve.rate(),
            "first_share": 1.0 - ever,
            "allowed_bytes": allowed_bytes,
            "points": points,
        }))
    }
}

impl State {
    fn add(&mut self, new: &New, now: Instant) {
        self.turn(now);
        if self.curves.is_empty() {
            self.curves.push(Half::new(now));
        }
        for half in &mut self.curves {
            half.curve.add_chosen(&new.chosen, new.reads);
            half.listened += new.time;
            half.dropped += new.dropped;
        }
    }

    /// Begins the second curve, and ends the first, when it is time.
    fn turn(&mut self, now: Instant) {
        let age = |half: &Half| now.saturating_duration_since(half.began);
        self.curves.retain(|half| age(half) < HOUR);
        if self.curves.len() == 1 && age(&self.curves[0]) >= HOUR / 2 {
            self.curves.push(Half::new(now));
        }
    }
}

impl Half {
    fn new(now: Instant) -> Self {
        let curve = Curve::sampled(KEYS_MAX);
        Self { began: now, listened: Duration::ZERO, dropped: 0, curve }
    }
}

/// Sizes around the present one, which is among them.
fn sizes(allowed_bytes: u64) -> Vec<u64> {
    let most = DOUBLINGS * STEPS_A_DOUBLING;
    #[expect(clippy::cast_precision_loss, reason = "sizes for people")]
    #[expect(clippy::cast_possible_truncation, reason = "a cast saturates")]
    #[expect(clippy::cast_sign_loss, reason = "it is not negative")]
    let size = |step: i32| {
        let factor = 2_f64.powf(f64::from(step) / f64::from(STEPS_A_DOUBLING));
        (allowed_bytes as f64 * factor).round() as u64
    };
    let mut sizes: Vec<u64> = (-most..=most).map(size).collect();
    sizes.dedup();
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;
    use ogive_kstat::sampled_reads::Entry;
    use std::path::Path;

    fn reader(path: &Path) -> Arc<Reader> {
        Arc::new(Reader { path: path.to_owned(), state: Mutex::default() })
    }

    /// A control directory whose file `reads` has these.
    fn sampled(reads: u64, entries: impl IntoIterator<Item = Entry>) -> tempfile::TempDir {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join(".ogive")).unwrap();
        sampled_reads::tests::write(&place.path().join(".ogive/reads"), 1, 0, reads, entries);
        place
    }

    /// As good as random, and whole: nothing is sampled away.
    fn entry(record: u64) -> Entry {
        Entry { hash: record.wrapping_mul(0x9e37_79b9_7f4a_7c15), bytes: 100, shift: 0 }
    }

    fn ended(reader: &Arc<Reader>) {
        let until = Instant::now() + Duration::from_secs(60);
        while reader.state.lock().is_running {
            assert!(Instant::now() < until, "never came: the end of the thread that reads");
            thread::yield_now();
        }
    }

    /// A hundred records in a circle: a cache of all of them hits, one of half of them never.
    #[test]
    fn a_circle_hits_from_its_size_on_and_not_below() {
        let place = sampled(5000, (0..5000_u64).map(|read| entry(read % 100)));
        let reader = reader(place.path());
        let now = Instant::now();
        reader.ask(now, Duration::ZERO).unwrap();
        ended(&reader);
        let told = reader.told(5200, now).unwrap();
        assert_eq!((&told["reads"], &told["dropped"]), (&json!(5000), &json!(0)));
        assert_eq!(told["first_share"].as_f64().map(|share| (share * 100.0).round()), Some(2.0));
        let at = |size: u64| {
            let points = told["points"].as_array().unwrap();
            let point = points.iter().find(|point| point["size_bytes"] == size).unwrap();
            point["hit_ratio"].as_f64().unwrap()
        };
        assert!(at(5200) < 0.01, "{}", at(5200));
        assert!((at(10_400) - 0.98).abs() < 0.01, "{}", at(10_400));
        assert_eq!(told["points"].as_array().unwrap().len(), 33);
    }

    #[test]
    fn with_few_reads_there_is_no_curve_but_how_many_there_are() {
        let place = sampled(10, (0..10).map(entry));
        let reader = reader(place.path());
        let told = reader.told(5000, Instant::now()).unwrap();
        assert_eq!((&told["reads"], &told["points"]), (&json!(0), &json!([])));
        reader.ask(Instant::now(), Duration::ZERO).unwrap();
        ended(&reader);
        let told = reader.told(5000, Instant::now()).unwrap();
        assert_eq!((&told["reads"], &told["points"]), (&json!(10), &json!([])));
    }

    #[test]
    fn it_says_why_there_is_nothing_and_begins_again_when_there_is() {
        let place = tempfile::tempdir().unwrap();
        let reader = reader(place.path());
        reader.ask(Instant::now(), LEASE).unwrap();
        ended(&reader);
        let (status, why) = reader.told(5000, Instant::now()).unwrap_err();
        assert_eq!(status, 404, "{why}");
        let passed = std::io::Error::from_raw_os_error(rustix::io::Errno::NOTSUP.raw_os_error());
        assert!(reader.words(&passed).1.contains("--passthrough"), "{:?}", reader.words(&passed));
        let other = sampled(10, (0..10).map(entry));
        std::fs::rename(other.path().join(".ogive"), place.path().join(".ogive")).unwrap();
        reader.ask(Instant::now(), Duration::ZERO).unwrap();
        ended(&reader);
        assert_eq!(reader.told(5000, Instant::now()).unwrap()["reads"], 10);
    }

    #[test]
    fn a_curve_covers_an_hour_and_no_more() {
        let mut state = State::default();
        let start = Instant::now();
        let time = Duration::from_secs(60);
        let new = New { chosen: Vec::new(), reads: 1, dropped: 0, time };
        let mut most = Duration::ZERO;
        for minute in 0..300 {
            let now = start + Duration::from_secs(60 * minute);
            state.add(&new, now);
            assert!(state.curves.len() <= 2);
            most = most.max(state.curves[0].listened);
            assert!(minute < 30 || state.curves[0].listened >= HOUR / 2, "{minute}");
        }
        assert!(most <= HOUR, "{most:?}");
        // After a long time without requests, the old curve is not returned as the present one.
        state.turn(start + Duration::from_secs(60 * 500));
        assert!(state.curves.is_empty());
    }

    #[test]
    fn readers_do_not_add_up() {
        let mut readers = Vec::new();
        for number in 0..100 {
            let path = PathBuf::from(format!("/{number}"));
            let own = super::reader(&mut readers, path.clone());
            assert_eq!(readers.last().unwrap().path, path);
            assert!(Arc::ptr_eq(&own, readers.last().unwrap()));
        }
        assert_eq!(readers.len(), READERS_MAX);
    }

    #[test]
    fn sizes_are_around_the_present_one_whatever_it_is() {
        for target in [0, 1, 7, u64::MAX] {
            let sizes = sizes(target);
            assert!(sizes.is_sorted() && sizes.contains(&target), "{sizes:?}");
        }
    }
}
