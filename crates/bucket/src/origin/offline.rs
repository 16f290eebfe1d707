//! The mount while its store does not answer (`--offline stale`).
//!
//! A store that does not answer in time is *offline* until it answers something. A failure for one
//! key, by a status or a broken connection, may concern that key alone: it puts the store in doubt.
//! The store goes offline if the next answer is a failure for another key, or if a request for the
//! store itself fails. A read that got no turn to send its request proves nothing.
//!
//! While the store is offline, names and attributes come from its last answers, and reads of
//! uncached bytes fail with `EIO` at once. Only the request that detects the outage waits. Each use
//! of the mount starts a probe of the store in the background, at most once a second; no timer
//! runs. Each change of state is logged, at most once a minute, and shown in `MNT/.ogive/mount`.
//!
//! Without `--offline stale` each request finds out for itself.
//!
//! # Locks
//! One, of the state; a leaf.

use super::directory::Item;
use super::object_cache::ObjectCache;
use super::{BucketOrigin, Messages};
use crate::{Bucket, BucketError, Listing, keys};
use ogive_origin::{Availability, Errno, Result, Time};
use ogive_text::{Change, Recurring};
use parking_lot::Mutex;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The minimal time between two probes of an offline store.
const PROBE_EVERY: Duration = Duration::from_secs(1);
/// The minimal time between two log messages that the store is offline.
const WARN_EVERY: Duration = Duration::from_secs(60);

/// Whether the store answers.
pub(super) struct Offline {
    /// Whether the store is offline. Read without a lock after each answer.
    is_out: AtomicBool,
    /// Whether [`State::doubted`] is set. Read without a lock as well.
    is_doubted: AtomicBool,
    state: Mutex<State>,
}

struct State {
    standing: Availability,
    said: Recurring,
    /// When the store was probed last, and whether a probe is in flight.
    probed: Option<Instant>,
    is_probing: bool,
    /// The key that failed last, if nothing was answered since.
    doubted: Option<Box<str>>,
}

/// A probe of the store. Its drop ends it, even after a panic.
struct Probe(Arc<Offline>);

impl Drop for Probe {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        (state.probed, state.is_probing) = (Some(Instant::now()), false);
    }
}

/// Whether this error shows that the store does not work.
fn is_no_answer(error: &BucketError) -> bool {
    matches!(error, BucketError::TimedOut { .. } | BucketError::Failed { .. })
}

impl Default for Offline {
    fn default() -> Self {
        let said = Recurring::new(WARN_EVERY, Duration::ZERO);
        let standing = Availability { shows_stale: true, ..Availability::default() };
        let state = State { standing, said, probed: None, is_probing: false, doubted: None };
        Self {
            is_out: AtomicBool::new(false),
            is_doubted: AtomicBool::new(false),
            state: Mutex::new(state),
        }
    }
}

impl Offline {
    /// Whether to show the last answers without a request.
    fn is_out(&self) -> bool {
        self.is_out.load(Relaxed)
    }

    /// Records whether the store has answered. Returns the change to log.
    fn note(&self, answers: bool) -> Option<Change> {
        if answers && !self.is_out() && !self.is_doubted.load(Relaxed) {
            return None;
        }
        let mut state = self.state.lock();
        self.doubt(&mut state, None);
        let now = Instant::now();
        if !answers && state.standing.gone.is_none() {
            state.standing.gone = Some((Errno::IO, Time::now()));
            state.standing.losses += 1;
            state.probed = Some(now);
        } else if answers {
            state.standing.gone = None;
        }
        self.is_out.store(!answers, Relaxed);
        state.said.say(!answers, now)
    }

    fn doubt(&self, state: &mut State, key: Option<&str>) {
        state.doubted = key.map(Box::from);
        self.is_doubted.store(key.is_some(), Relaxed);
    }

    /// Records a failure for a key. Whether it proves that the store is offline.
    fn is_enough(&self, key: &str) -> bool {
        let mut state = self.state.lock();
        if state.standing.gone.is_some() {
            return true;
        }
        let is_second = state.doubted.as_deref().is_some_and(|doubted| doubted != key);
        if !is_second && state.doubted.is_none() {
            // The next use of the mount probes the store.
            state.probed = None;
            self.doubt(&mut state, Some(key));
        }
        is_second
    }

    /// Starts a probe of a store that is offline or in doubt, if one is due.
    fn begin_probe(self: &Arc<Self>) -> Option<Probe> {
        let mut state = self.state.lock();
        let is_early = state.probed.is_some_and(|probed| probed.elapsed() < PROBE_EVERY);
        let is_wanted = state.standing.gone.is_some() || state.doubted.is_some();
        if !is_wanted || is_early || state.is_probing {
            return None;
        }
        state.is_probing = true;
        Some(Probe(Arc::clone(self)))
    }

    /// Records an answer about a key, and logs a change.
    pub(super) fn note_answer(
        &self,
        answer: std::result::Result<(), &BucketError>,
        messages: &Messages,
    ) {
        match answer {
            // No request was sent.
            Err(BucketError::NoTurn { .. }) => {}
            Err(BucketError::Failed { key, .. }) if !self.is_enough(key) => {}
            answer => self.note_store_answer(answer, messages),
        }
    }

    /// Records an answer about the store itself, and logs a change.
    fn note_store_answer(
        &self,
        answer: std::result::Result<(), &BucketError>,
        messages: &Messages,
    ) {
        let changed = self.note(!answer.is_err_and(is_no_answer));
        match (changed, answer) {
            (Some(Change::Came), Err(error)) => messages.warn(format_args!(
                "the store does not answer ({error}): the last known names and cached bytes are \
                 shown until it answers again"
            )),
            (Some(Change::Went(_)), _) => messages.warn(format_args!("the store answers again")),
            _ => {}
        }
    }
}

impl fmt::Debug for Offline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Offline").field("is_out", &self.is_out()).finish_non_exhaustive()
    }
}

impl<B: Bucket> BucketOrigin<B> {
    /// Shows the last answers from now on while the store does not answer.
    pub fn show_stale(&mut self) {
        self.offline = Some(Arc::default());
        self.objects = Arc::new(ObjectCache::new(true));
        self.listings.keep_stale();
    }

    pub(super) fn offline_availability(&self) -> Availability {
        self.offline
            .as_ref()
            .map_or_else(Availability::default, |offline| offline.state.lock().standing)
    }

    /// Whether to show the last answers without a request. Starts a probe if one is due.
    pub(super) fn is_offline(&self) -> bool {
        let Some(offline) = &self.offline else { return false };
        let (is_out, is_doubted) = (offline.is_out(), offline.is_doubted.load(Relaxed));
        if !is_out && !is_doubted {
            return false;
        }
        if let Some(probe) = offline.begin_probe() {
            let bucket = Arc::clone(&self.bucket);
            let (messages, prefix) = (Arc::clone(&self.messages), self.options.prefix.clone());
            let job = move || {
                let listing = Listing { prefix: &prefix, delimited: false, page: 1 };
                let answer = bucket.list(&listing, &mut |_| ControlFlow::Break(()));
                probe.0.note_store_answer(answer.as_ref().copied(), &messages);
            };
            self.read_threads.queue(true, Box::new(job));
        }
        is_out
    }

    /// Records an answer of the store. Whether to show the last answers instead.
    pub(super) fn note_answer<T>(&self, answer: &crate::Result<T>) -> bool {
        let Some(offline) = &self.offline else { return false };
        offline.note_answer(answer.as_ref().map(|_| ()), &self.messages);
        matches!(answer, Err(error) if is_no_answer(error))
    }

    /// Remembers the item of a key, if stale names are shown.
    pub(super) fn remember(&self, key: &str, item: Item) {
        if self.offline.is_some() {
            self.objects.insert(key, item);
        }
    }

    /// The item of a key by the last answer.
    ///
    /// # Errors
    /// `EIO` if there was no answer about it.
    pub(super) fn remembered(&self, key: &str) -> Result<Option<Item>> {
        let (parent, name) = keys::split(key);
        let listed = self.listings.last(parent);
        if let Some(item) = listed.as_ref().and_then(|listed| listed.find(name)) {
            return Ok(item.cloned());
        }
        if self.listings.last(&format!("{key}/")).is_some_and(|below| below.exists()) {
            return Ok(Some(Item::Directory));
        }
        self.objects.get(key).map(Some).ok_or(Errno::IO)
    }
}
