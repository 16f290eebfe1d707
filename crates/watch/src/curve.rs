//! The miss-ratio curve of a mount's reads, `/api/curve`: the hit ratio at other cache sizes.
//!
//! During a lease, a thread reads the mount's control file `reads` every second or two. The file has
//! the last reads of a sample of the records (`miss_ratio_curve/sampled_log.rs`). The thread gives
//! new entries to `ogive_sim`'s curve (SHARDS, bounded). It opens the file only for each look, so
//! the mount can be unmounted meanwhile, and a recording of a trace is not disturbed.
//!
//! Each request renews the lease (`LEASE`). When it ends, the thread ends, and then neither the
//! mount nor this process works for the curve.
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

/// The thread goes on so long after a request. A page sends one every 15 seconds.
const LEASE: Duration = Duration::from_secs(40);
/// Between two looks: meanwhile a mount fills at most half of its log.
const PAUSE: Duration = Duration::from_secs(1);
/// After a look with fewer new entries than this, the next one may come later: the log has room for
/// all samples that can come meanwhile.
const FEW: usize = 4 << 10;
const PAUSE_AFTER_FEW: Duration = Duration::from_secs(2);
/// After a look with so many entries, the next one comes at once: a new sampling has not found its
/// rate yet.
const MANY: usize = 16 << 10;
const PAUSE_AFTER_MANY: Duration = Duration::from_millis(50);
/// A curve covers this time.
const HOUR: Duration = Duration::from_secs(3600);
/// Records that a curve tracks: enough for an error of a percentage point or two.
const KEYS_MAX: usize = 16 << 10;
/// With fewer reads there is no curve.
const READS_MIN: u64 = 1000;
/// A curve covers sizes from 1/16 to 16 times the largest size of the cache, in this many steps a
/// doubling.
const DOUBLINGS: i32 = 4;
const STEPS_A_DOUBLING: i32 = 4;
/// Mounts with a reader at most.
const READERS_MAX: usize = 16;

/// Adds the route. The answer contains no names. But the mount samples its reads for it, which only
/// its user may request.
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
                return Response::error(404, "this source no longer exists; reload the page");
            }
        };
        let allowed = sampler.last(&format!("{source}.target_max")).unwrap_or(0.0);
        #[expect(clippy::cast_possible_truncation, reason = "a cast saturates")]
        #[expect(clippy::cast_sign_loss, reason = "a cast saturates")]
        let allowed_bytes = allowed as u64;
        let reader = reader(&mut readers.lock(), path);
        // Before the lease is renewed, because a new thread clears the last error.
        let answer = reader.answer(allowed_bytes, Instant::now());
        if let Err(error) = reader.renew(Instant::now(), LEASE) {
            return Response::error(500, &format!("cannot start a thread: {error}"));
        }
        match answer {
            Ok(answer) => Response::json(answer.to_string()),
            Err((status, why)) => Response::error(status, &why),
        }
    })
}

/// The reader of a mount, created if there is none.
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
    /// Why the mount's reads cannot be read.
    failed: Option<(u16, String)>,
    /// The older one first.
    curves: Vec<Half>,
}

/// A curve, and the time that it covers.
#[derive(Debug)]
struct Half {
    began: Instant,
    /// Time in which reads were sampled.
    sampled: Duration,
    dropped: u64,
    curve: Curve,
}

impl Reader {
    /// Renews the lease, and starts the thread if it does not run.
    fn renew(self: &Arc<Self>, now: Instant, lease: Duration) -> std::io::Result<()> {
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
        state.failed = failed.map(|error| self.describe(&error));
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

    fn describe(&self, error: &std::io::Error) -> (u16, String) {
        let mount = self.path.display();
        match error.kind() {
            ErrorKind::PermissionDenied => (
                403,
                format!(
                    "only the user who mounted {mount} may read its sampled reads; run ogive watch \
                     as that user"
                ),
            ),
            ErrorKind::NotFound | ErrorKind::NotConnected => (
                404,
                format!(
                    "{mount} has no sampled reads: it was unmounted, or its daemon is of an earlier \
                     version; mount it again to see the curve"
                ),
            ),
            ErrorKind::Unsupported => (
                404,
                format!("{mount} does not see its reads: with --passthrough the kernel makes them"),
            ),
            _ => (500, format!("cannot read the sampled reads of {mount}: {error}")),
        }
    }

    /// The curve, or the progress towards one.
    fn answer(&self, allowed_bytes: u64, now: Instant) -> Result<Value, (u16, String)> {
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
        // In a cache without a limit, only first reads miss.
        sizes.push(u64::MAX);
        let mut points = half.curve.points(&sizes);
        let ever = points.pop().map_or(0.0, |point| point.hit_ratio);
        Ok(json!({
            "seconds": half.sampled.as_secs(),
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
            half.sampled += new.time;
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
        Self { began: now, sampled: Duration::ZERO, dropped: 0, curve }
    }
}

/// Sizes around the present one, including it.
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

    /// Pseudo-random entries, all of them: none is left out by sampling.
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
        reader.renew(now, Duration::ZERO).unwrap();
        ended(&reader);
        let answer = reader.answer(5200, now).unwrap();
        assert_eq!((&answer["reads"], &answer["dropped"]), (&json!(5000), &json!(0)));
        assert_eq!(answer["first_share"].as_f64().map(|share| (share * 100.0).round()), Some(2.0));
        let at = |size: u64| {
            let points = answer["points"].as_array().unwrap();
            let point = points.iter().find(|point| point["size_bytes"] == size).unwrap();
            point["hit_ratio"].as_f64().unwrap()
        };
        assert!(at(5200) < 0.01, "{}", at(5200));
        assert!((at(10_400) - 0.98).abs() < 0.01, "{}", at(10_400));
        assert_eq!(answer["points"].as_array().unwrap().len(), 33);
    }

    #[test]
    fn with_few_reads_there_is_no_curve_but_how_many_there_are() {
        let place = sampled(10, (0..10).map(entry));
        let reader = reader(place.path());
        let answer = reader.answer(5000, Instant::now()).unwrap();
        assert_eq!((&answer["reads"], &answer["points"]), (&json!(0), &json!([])));
        reader.renew(Instant::now(), Duration::ZERO).unwrap();
        ended(&reader);
        let answer = reader.answer(5000, Instant::now()).unwrap();
        assert_eq!((&answer["reads"], &answer["points"]), (&json!(10), &json!([])));
    }

    #[test]
    fn it_says_why_there_is_nothing_and_begins_again_when_there_is() {
        let place = tempfile::tempdir().unwrap();
        let reader = reader(place.path());
        reader.renew(Instant::now(), LEASE).unwrap();
        ended(&reader);
        let (status, why) = reader.answer(5000, Instant::now()).unwrap_err();
        assert_eq!(status, 404, "{why}");
        let passed = std::io::Error::from_raw_os_error(rustix::io::Errno::NOTSUP.raw_os_error());
        assert!(
            reader.describe(&passed).1.contains("--passthrough"),
            "{:?}",
            reader.describe(&passed)
        );
        let other = sampled(10, (0..10).map(entry));
        std::fs::rename(other.path().join(".ogive"), place.path().join(".ogive")).unwrap();
        reader.renew(Instant::now(), Duration::ZERO).unwrap();
        ended(&reader);
        assert_eq!(reader.answer(5000, Instant::now()).unwrap()["reads"], 10);
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
            most = most.max(state.curves[0].sampled);
            assert!(minute < 30 || state.curves[0].sampled >= HOUR / 2, "{minute}");
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
