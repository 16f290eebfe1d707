//! A store that does not answer, and what is shown meanwhile (`--offline stale`).
//!
//! A store that gives no answer, or none that makes sense, is *out of reach* from then on until it
//! answers something. That is said in the log, once a minute at most, and in `MNT/.ogive/mount`.
//! Nobody waits for it but the first who finds out: names and attributes are what they were when
//! they were last told, and bytes that are not in the cache are `EIO` at once. Whoever uses the mount
//! has the store asked again in the background, once a second at most: there is no timer.
//!
//! Where nothing old is to be shown none of this is done: each request finds out for itself.
//!
//! # Locks
//! One, of the state, and one of the objects that were seen; leaves.

use super::directory::Item;
use super::{BucketOrigin, Messages};
use crate::{Bucket, BucketError, Listing, keys};
use ogive_origin::{Errno, Result, Standing, Time};
use ogive_text::{Change, Recurring};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// How long a store that is out of reach is left alone.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// That it is out of reach is said once in so long.
const SAY_EVERY: Duration = Duration::from_secs(60);
/// Names at most that are remembered for when the store is out of reach.
const SEEN_MAX: usize = 100_000;

/// Whether the store answers, and what it said of objects when it did.
pub(super) struct Reach {
    /// Looked at without a lock by whoever was answered.
    is_out: AtomicBool,
    state: Mutex<State>,
    seen: Mutex<HashMap<Box<str>, Item>>,
}

struct State {
    standing: Standing,
    said: Recurring,
    /// When it was asked last whether it is back, and whether that is being asked.
    asked: Option<Instant>,
    is_asking: bool,
}

/// Whether this is no answer of a store that works.
fn is_no_answer(error: &BucketError) -> bool {
    matches!(error, BucketError::TimedOut { .. } | BucketError::Failed { .. })
}

impl Default for Reach {
    fn default() -> Self {
        let said = Recurring::new(SAY_EVERY, Duration::ZERO);
        let standing = Standing { shows_stale: true, ..Standing::default() };
        let state = State { standing, said, asked: None, is_asking: false };
        Self { is_out: AtomicBool::new(false), state: Mutex::new(state), seen: Mutex::default() }
    }
}

impl Reach {
    /// Whether what is known is shown, and nobody asks.
    fn is_out(&self) -> bool {
        self.is_out.load(Relaxed)
    }

    /// Notes whether the store has answered; what to say of it.
    fn note(&self, answers: bool) -> Option<Change> {
        if answers && !self.is_out() {
            return None;
        }
        let mut state = self.state.lock();
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

    /// Whether it is time to ask a store that is out of reach again; it is being asked then.
    fn is_to_be_asked(&self) -> bool {
        let mut state = self.state.lock();
        let is_early = state.asked.is_some_and(|asked| asked.elapsed() < ASK_EVERY);
        if state.standing.gone.is_none() || is_early || state.is_asking {
            return false;
        }
        state.is_asking = true;
        true
    }

    fn was_asked(&self) {
        let mut state = self.state.lock();
        (state.asked, state.is_asking) = (Some(Instant::now()), false);
    }

    /// Notes an answer, and says what has changed.
    pub(super) fn hear(&self, answer: std::result::Result<(), &BucketError>, messages: &Messages) {
        let changed = match answer {
            Err(error) if is_no_answer(error) => self.note(false),
            _ => self.note(true),
        };
        match (changed, answer) {
            (Some(Change::Came), Err(error)) => messages.say(format_args!(
                "the store does not answer ({error}): what is known of it is shown, and what is \
                 cached is read, until it does, which is said here then"
            )),
            (Some(Change::Went(_)), _) => messages.say(format_args!("the store answers again")),
            _ => {}
        }
    }
}

impl fmt::Debug for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reach").field("is_out", &self.is_out()).finish_non_exhaustive()
    }
}

impl<B: Bucket> BucketOrigin<B> {
    /// From now on what is known is shown while the store does not answer.
    pub fn show_stale(&mut self) {
        self.reach = Some(Arc::default());
        self.young.keep_old();
    }

    pub(super) fn reach_standing(&self) -> Standing {
        self.reach.as_ref().map_or_else(Standing::default, |reach| reach.state.lock().standing)
    }

    /// Whether to show what is known without asking. Has the store asked in the background.
    pub(super) fn is_out_of_reach(&self) -> bool {
        let Some(reach) = self.reach.as_ref().filter(|reach| reach.is_out()) else { return false };
        if reach.is_to_be_asked() {
            let (reach, bucket) = (Arc::clone(reach), Arc::clone(&self.bucket));
            let (messages, prefix) = (Arc::clone(&self.messages), self.options.prefix.clone());
            let job = move || {
                let listing = Listing { prefix: &prefix, delimited: false, page: 1 };
                let answer = bucket.list(&listing, &mut |_| ControlFlow::Break(()));
                reach.hear(answer.as_ref().copied(), &messages);
                reach.was_asked();
            };
            self.readers.queue(true, Box::new(job));
        }
        true
    }

    /// Notes what the store has answered. Whether what is known is to be shown instead.
    pub(super) fn hear<T>(&self, answer: &crate::Result<T>) -> bool {
        let Some(reach) = &self.reach else { return false };
        reach.hear(answer.as_ref().map(|_| ()), &self.messages);
        matches!(answer, Err(error) if is_no_answer(error))
    }

    /// Remembers what a key led to that was asked for by itself.
    pub(super) fn saw(&self, key: &str, item: &Item) {
        let Some(reach) = &self.reach else { return };
        let mut seen = reach.seen.lock();
        if seen.len() >= SEEN_MAX && !seen.contains_key(key) {
            // Any half of it: what matters is asked for again.
            let mut keep = false;
            seen.retain(|_, _| {
                keep = !keep;
                keep
            });
        }
        seen.insert(key.into(), item.clone());
    }

    /// What a key led to when it was last told.
    ///
    /// # Errors
    /// `EIO` if nothing is known of it.
    pub(super) fn remembered(&self, key: &str) -> Result<Option<Item>> {
        let (parent, name) = keys::split(key);
        let listed = self.young.last(parent);
        if let Some(item) = listed.as_ref().and_then(|listed| listed.find(name)) {
            return Ok(item.cloned());
        }
        if self.young.last(&format!("{key}/")).is_some_and(|below| below.exists()) {
            return Ok(Some(Item::Directory));
        }
        let seen = self.reach.as_ref().and_then(|reach| reach.seen.lock().get(key).cloned());
        seen.map(Some).ok_or(Errno::IO)
    }
}
