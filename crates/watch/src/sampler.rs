//! Measures once a second while a page asks, and sleeps otherwise.
//!
//! Each request for steps extends the measurement by a few seconds. Five seconds after the last
//! request, the thread waits without a timeout. The first look after such a pause is only a base
//! for differences, so no rate is an average over the pause.
//!
//! With a history file ([`Week`]) the thread continues in steps of ten seconds without requests,
//! and writes each complete minute to the file. If the file cannot be written, the log says so
//! once, and the file is left alone.
//!
//! Locks: that of the state, a leaf: no measurement and no file access runs under it.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::{Condvar, Mutex};
use serde_json::{Value, json};

use crate::history::History;
use crate::hour_comparison::{self, Earlier, NoEarlier};
use crate::sample::{Sources, Step, Subject, Watched};
use crate::week::{Minute, Week};

/// Between two steps.
pub const STEP: Duration = Duration::from_secs(1);
/// Measuring goes on so long after a request.
const LINGER: Duration = Duration::from_secs(5);
/// The time between two steps without requests, with a history file.
pub const STEP_UNSEEN: Duration = Duration::from_secs(10);

/// The sampler.
#[derive(Debug, Clone)]
pub struct Sampler {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Notified by a request.
    asked: Condvar,
    week: Option<Week>,
}

#[derive(Debug)]
struct State {
    history: History,
    sources: Value,
    subjects: Vec<(String, Subject)>,
    leased_until: Option<Instant>,
    /// Whether the thread waits without a timeout.
    is_paused: bool,
    /// Why the week is no longer kept.
    week_failed: Option<String>,
}

impl Sampler {
    /// Starts the thread, which waits, or keeps a week if it is given one.
    ///
    /// # Errors
    ///
    /// The thread cannot be started.
    pub fn start(watched: Watched, week: Option<Week>) -> std::io::Result<Self> {
        let mut sources = Sources::new(watched);
        if let Some(week) = &week {
            sources.remember_mounts(week.mounts());
        }
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                history: History::default(),
                sources: Value::Array(Vec::new()),
                subjects: vec![("host".to_owned(), Subject::Host)],
                leased_until: None,
                is_paused: false,
                week_failed: None,
            }),
            asked: Condvar::new(),
            week,
        });
        let own = Arc::clone(&shared);
        thread::Builder::new().name("watch_sample".into()).spawn(move || own.run(&mut sources))?;
        Ok(Self { shared })
    }

    /// The subject of a source's identifier, among the sources of the last step.
    pub fn subject(&self, id: &str) -> Option<Subject> {
        let state = self.shared.state.lock();
        state.subjects.iter().find(|(own, _)| own == id).map(|(_, subject)| subject.clone())
    }

    /// The last value of a series.
    pub fn last(&self, series: &str) -> Option<f64> {
        self.shared.state.lock().history.last(series).map(f64::from)
    }

    /// The last minute and the one an hour ago.
    ///
    /// # Errors
    ///
    /// The reason why there is none, as text.
    pub fn earlier(&self) -> Result<Earlier, String> {
        let (now_ms, week) = (now_ms(), self.shared.week.as_ref());
        let in_memory = hour_comparison::earlier(&self.shared.state.lock().history, now_ms);
        match (in_memory, week) {
            (Err(NoEarlier::NotThen { now, why }), Some(week)) => {
                hour_comparison::from_week(week, now, now_ms).ok_or(why)
            }
            (found, _) => found.map_err(NoEarlier::into_words),
        }
    }

    /// The file's content between two moments, in at most this many points.
    ///
    /// # Errors
    ///
    /// No week is kept, or the file cannot be read: in words.
    pub fn week(&self, from_ms: u64, to_ms: u64, points: u64) -> Result<Value, String> {
        let week = self.shared.week.as_ref().ok_or_else(|| {
            "only the last hour is kept, in memory; \"ogive watch --history\" keeps a week"
                .to_owned()
        })?;
        let answer = week.points(from_ms, to_ms, points);
        answer.map_err(|error| format!("cannot read {}: {error}", week.path().display()))
    }

    /// The steps after number `since`, as JSON, and the wish for the next ones:
    /// `{"now_ms", "sequence", "series", "sources", "week", "rows"}`. `week` says since when a file
    /// has minutes, and is null without one. `series` are names, of as many values as
    /// a row may have after its time; where a reader says that it knows as many, they are left out.
    pub fn steps(&self, since: u64, known: usize) -> String {
        let mut state = self.shared.state.lock();
        state.leased_until = Some(Instant::now() + LINGER);
        self.shared.asked.notify_one();
        let names = match state.history.names() {
            names if names.len() == known => Value::Null,
            names => Value::from(names),
        };
        let week = self.shared.week.as_ref().map_or(Value::Null, |week| {
            json!({
                "oldest_ms": week.oldest_ms(),
                "step_unseen_ms": millis(STEP_UNSEEN),
                "failed": state.week_failed,
            })
        });
        let mut text = format!(
            "{{\"now_ms\":{},\"sequence\":{},\"series\":{names},\"sources\":{},\"week\":{week},\
             \"rows\":",
            now_ms(),
            state.history.sequence(),
            state.sources,
        );
        state.history.write_rows(since, &mut text);
        text.push('}');
        text
    }
}

impl Shared {
    fn run(&self, sources: &mut Sources) {
        let mut due = Instant::now();
        let mut minute = Minute::default();
        let mut keeps = self.week.is_some();
        // With a week to keep there is no pause, and the first step is the one to compare with.
        let mut is_afresh = keeps;
        loop {
            if is_afresh || self.wait(due, keeps) {
                sources.forget();
                // This look is only a base for differences.
                due = Instant::now();
                sources.step();
                self.put(None, sources);
                is_afresh = false;
            } else {
                let step = sources.step();
                self.put(Some(&step), sources);
                if keeps {
                    keeps = self.keep(&mut minute, &step, sources);
                }
            }
            // Steps missed by a delay or a stop of the process are skipped. Otherwise the next step
            // would have almost no length, and its rates would mean nothing.
            due = (due + STEP).max(Instant::now() + STEP / 2);
        }
    }

    /// Waits until a step is due for a request or for the history file; returns whether there was
    /// a pause.
    fn wait(&self, due: Instant, keeps: bool) -> bool {
        let mut state = self.state.lock();
        loop {
            match next(Instant::now(), due, state.leased_until, keeps, state.is_paused) {
                Next::Step => return std::mem::take(&mut state.is_paused),
                Next::WaitUntil(at) => _ = self.asked.wait_until(&mut state, at),
                Next::WaitForRequest => {
                    state.is_paused = true;
                    self.asked.wait(&mut state);
                }
            }
        }
    }

    /// Keeps a step for the week; says whether it goes on.
    fn keep(&self, minute: &mut Minute, step: &Step, sources: &Sources) -> bool {
        let Some(week) = &self.week else { return false };
        let Some(over) = minute.add(now_ms(), step.values()) else { return true };
        let Err(error) = week.put(&over, sources.mount_paths()) else { return true };
        let path = week.path().display();
        let why = format!("cannot write to {path}: {error}");
        log::warn!("{why}; the last week is no longer kept: make room, then start again");
        self.state.lock().week_failed = Some(why);
        false
    }

    fn put(&self, step: Option<&Step>, sources: &Sources) {
        let (described, subjects) = (sources.describe(), sources.subjects());
        let mut state = self.state.lock();
        state.sources = described;
        state.subjects = subjects;
        if let Some(step) = step {
            state.history.push(now_ms(), step.values());
        }
    }
}

/// The next action of the thread.
#[derive(Debug, PartialEq)]
enum Next {
    Step,
    WaitUntil(Instant),
    /// Without a timeout: only a request wakes it up.
    WaitForRequest,
}

/// The action of a thread whose next step is due at `due`. Requests have steps made until
/// `leased_until`, or a history file is kept; after a pause the first step comes at once.
fn next(
    now: Instant,
    due: Instant,
    leased_until: Option<Instant>,
    keeps: bool,
    is_paused: bool,
) -> Next {
    let unseen = due + (STEP_UNSEEN - STEP);
    match leased_until {
        Some(until) if until > now && (now >= due || is_paused) => Next::Step,
        // A request does not make a step come earlier.
        Some(until) if until > now => Next::WaitUntil(due),
        _ if keeps && now >= unseen => Next::Step,
        _ if keeps => Next::WaitUntil(unseen),
        _ => Next::WaitForRequest,
    }
}

fn now_ms() -> u64 {
    millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(sampler: &Sampler, since: u64) -> Value {
        serde_json::from_str(&sampler.steps(since, 0)).unwrap()
    }

    #[track_caller]
    fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
        let until = Instant::now() + Duration::from_secs(60);
        while !holds() {
            assert!(Instant::now() < until, "never came: {what}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    #[test]
    fn a_step_needs_a_due_time_and_a_lease_and_nothing_else_wakes_the_thread() {
        let now = Instant::now();
        let due = now + STEP;
        let leased = Some(due + LINGER);
        assert_eq!(next(now, due, leased, false, false), Next::WaitUntil(due));
        assert_eq!(next(due, due, leased, false, false), Next::Step);
        assert_eq!(next(now, due, leased, false, true), Next::Step, "at once after a pause");
        // No request has come yet, or none for a long time.
        for at in [now, due, due + LINGER, due + 1000 * LINGER] {
            assert_eq!(next(at, due, None, false, false), Next::WaitForRequest);
            let asked = at.checked_sub(STEP);
            assert_eq!(next(at, due, asked, false, true), Next::WaitForRequest);
        }
        // With a history file: rarely without requests, at the usual pace with them.
        let unseen = due + STEP_UNSEEN - STEP;
        assert_eq!(next(due, due, None, true, false), Next::WaitUntil(unseen));
        assert_eq!(next(unseen, due, None, true, false), Next::Step);
        assert_eq!(next(due, due, leased, true, false), Next::Step);
    }

    #[test]
    fn it_measures_while_requests_come_and_does_not_wake_up_otherwise() {
        let sampler = Sampler::start(Watched::These(Vec::new()), None).unwrap();
        let is_paused = || sampler.shared.state.lock().is_paused;
        eventually("a pause before the first request", is_paused);
        eventually("two steps", || rows(&sampler, 0)["sequence"].as_u64().unwrap() >= 2);
        let answer = rows(&sampler, 1);
        let names = answer["series"].as_array().unwrap();
        assert!(names.contains(&Value::from("host.cpu_usr")), "{names:?}");
        assert_eq!(answer["sources"][0]["kind"], "host");
        assert!(answer["rows"].as_array().unwrap().len() as u64 >= 1);
        // Without requests the thread stops for good.
        sampler.shared.state.lock().leased_until = None;
        sampler.shared.asked.notify_one();
        eventually("a pause after the last request", is_paused);
    }
}
