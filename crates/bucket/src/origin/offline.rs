//! What a mount shows while its store does not answer (`--offline stale`).
//!
//! A store that gives no answer in time is *offline* until it answers something. A failure for one
//! key, by a status or a broken connection, may concern that key alone: the store is in doubt. It
//! is offline if the next answer is a failure for another key, or if a request for the store itself
//! fails. A read that had no turn proves nothing.
//!
//! While the store is offline, names and attributes are those of its last answers, and reads of
//! bytes that are not cached fail with `EIO` at once. Only the request that finds out waits. Each
//! use of the mount has the store asked again in the background, at most once a second; there is no
//! timer. Each change is logged, at most once a minute, and shown in `MNT/.ogive/mount`.
//!
//! Without `--offline stale` none of this happens: each request finds out for itself.
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

/// How long a store that is out of reach is left alone.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// The log says so often at most that the store is offline.
const SAY_EVERY: Duration = Duration::from_secs(60);

/// Whether the store answers, and what it said of objects when it did.
pub(super) struct Offline {
    /// Read without a lock after each answer.
    is_out: AtomicBool,
    /// Whether [`State::doubted`] is some key; looked at as [`Self::is_out`] is.
    is_doubted: AtomicBool,
    state: Mutex<State>,
}

struct State {
    standing: Availability,
    said: Recurring,
    /// When it was asked last whether it is back, and whether that is being asked.
    asked: Option<Instant>,
    is_asking: bool,
    /// The key of which it gave no answer that makes sense, and nothing was answered since.
    doubted: Option<Box<str>>,
}

/// A question whether the store is back; over when it is dropped, be it by a panic.
struct Asking(Arc<Offline>);

impl Drop for Asking {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        (state.asked, state.is_asking) = (Some(Instant::now()), false);
    }
}

/// Whether this is no answer of a store that works.
fn is_no_answer(error: &BucketError) -> bool {
    matches!(error, BucketError::TimedOut { .. } | BucketError::Failed { .. })
}

impl Default for Offline {
    fn default() -> Self {
        let said = Recurring::new(SAY_EVERY, Duration::ZERO);
        let standing = Availability { shows_stale: true, ..Availability::default() };
        let state = State { standing, said, asked: None, is_asking: false, doubted: None };
        Self {
            is_out: AtomicBool::new(false),
            is_doubted: AtomicBool::new(false),
            state: Mutex::new(state),
        }
    }
}

impl Offline {
    /// Whether the last answers are shown, without a request.
    fn is_out(&self) -> bool {
        self.is_out.load(Relaxed)
    }

    /// Notes whether the store has answered; what to say of it.
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
            state.asked = Some(now);
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

    /// Notes that there was no answer that makes sense of a key. Whether that is enough to say that
    /// the store is out of reach.
    fn is_enough(&self, key: &str) -> bool {
        let mut state = self.state.lock();
        if state.standing.gone.is_some() {
            return true;
        }
        let is_second = state.doubted.as_deref().is_some_and(|doubted| doubted != key);
        if !is_second && state.doubted.is_none() {
            // The next use of the mount asks the store itself.
            state.asked = None;
            self.doubt(&mut state, Some(key));
        }
        is_second
    }

    /// Begins to ask a store that is out of reach or in doubt, if it is time to.
    fn begin_to_ask(self: &Arc<Self>) -> Option<Asking> {
        let mut state = self.state.lock();
        let is_early = state.asked.is_some_and(|asked| asked.elapsed() < ASK_EVERY);
        let is_wanted = state.standing.gone.is_some() || state.doubted.is_some();
        if !is_wanted || is_early || state.is_asking {
            return None;
        }
        state.is_asking = true;
        Some(Asking(Arc::clone(self)))
    }

    /// Notes an answer to a question about a key, and says what has changed.
    pub(super) fn note_answer(
        &self,
        answer: std::result::Result<(), &BucketError>,
        messages: &Messages,
    ) {
        match answer {
            // It was not asked.
            Err(BucketError::NoTurn { .. }) => {}
            Err(BucketError::Failed { key, .. }) if !self.is_enough(key) => {}
            answer => self.note_store_answer(answer, messages),
        }
    }

    /// The same for an answer to the question whether it is there.
    fn note_store_answer(
        &self,
        answer: std::result::Result<(), &BucketError>,
        messages: &Messages,
    ) {
        let changed = self.note(!answer.is_err_and(is_no_answer));
        match (changed, answer) {
            (Some(Change::Came), Err(error)) => messages.say(format_args!(
                "the store does not answer ({error}): names as last known and cached bytes are \
                 shown until it answers again"
            )),
            (Some(Change::Went(_)), _) => messages.say(format_args!("the store answers again")),
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
    /// Shows the last answers from now on, while the store does not answer.
    pub fn show_stale(&mut self) {
        self.offline = Some(Arc::default());
        self.objects = Arc::new(ObjectCache::new(true));
        self.listings.keep_stale();
    }

    pub(super) fn offline_availability(&self) -> Availability {
        self.offline
            .as_ref()
            .map_or_else(Availability::default, |reach| reach.state.lock().standing)
    }

    /// Whether to show what is known without asking. Has the store asked in the background.
    pub(super) fn is_offline(&self) -> bool {
        let Some(reach) = &self.offline else { return false };
        let (is_out, is_doubted) = (reach.is_out(), reach.is_doubted.load(Relaxed));
        if !is_out && !is_doubted {
            return false;
        }
        if let Some(asking) = reach.begin_to_ask() {
            let bucket = Arc::clone(&self.bucket);
            let (messages, prefix) = (Arc::clone(&self.messages), self.options.prefix.clone());
            let job = move || {
                let listing = Listing { prefix: &prefix, delimited: false, page: 1 };
                let answer = bucket.list(&listing, &mut |_| ControlFlow::Break(()));
                asking.0.note_store_answer(answer.as_ref().copied(), &messages);
            };
            self.readers.queue(true, Box::new(job));
        }
        is_out
    }

    /// Notes what the store has answered. Whether what is known is to be shown instead.
    pub(super) fn note_answer<T>(&self, answer: &crate::Result<T>) -> bool {
        let Some(reach) = &self.offline else { return false };
        reach.note_answer(answer.as_ref().map(|_| ()), &self.messages);
        matches!(answer, Err(error) if is_no_answer(error))
    }

    /// Remembers what a key led to, where stale names are shown.
    pub(super) fn remember(&self, key: &str, item: Item) {
        if self.offline.is_some() {
            self.objects.insert(key, item);
        }
    }

    /// What a key led to by the last answer.
    ///
    /// # Errors
    /// `EIO` if nothing is known of it.
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
