//! A load in flight: callers that ask for the same key wait here for the one that loads it.
//!
//! The first to wait makes the flight. Waiters join under the sublist's lock, and each pins the
//! loading entry. So when the load lands, the entry is held for every waiter before it can be
//! evicted. A waiter that has something else to do leaves a continuation instead. The thread that
//! lands the flight runs it.
//!
//! The flight's own lock is a leaf: nothing is locked under it, and no code of
//! the user runs under it.

use crate::sync::{Condition, Mutex, lock};
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// How a load ended.
#[derive(Debug, Clone)]
pub(crate) enum Landing {
    /// With a value; the entry is held for every waiter.
    Loaded,
    /// With an error of the loader's type.
    Failed(Arc<dyn Any + Send + Sync>),
    /// The loader panicked.
    Panicked,
    /// The load was given up: a caller that still needs the key starts again.
    Abandoned,
}

/// A continuation: it runs when a load ends.
pub(crate) type Continuation = Box<dyn FnOnce(Landing) + Send>;

/// The state that a flight's lock guards.
struct FlightState {
    landing: Option<Landing>,
    /// A thread sleeps until it lands. Waking costs a system call even if there is no sleeper.
    awaited: bool,
    then: Vec<Continuation>,
}

/// One load.
pub(crate) struct Flight {
    course: Mutex<FlightState>,
    landed: Condition,
}

impl Default for Flight {
    fn default() -> Self {
        Self::new()
    }
}

impl Flight {
    fn new() -> Self {
        let course = FlightState { landing: None, awaited: false, then: Vec::new() };
        Self { course: Mutex::new(course), landed: Condition::new() }
    }

    /// Ends the flight, wakes all waiters and runs the continuations.
    pub(crate) fn land(&self, landing: Landing) {
        let mut course = lock(&self.course);
        let then = std::mem::take(&mut course.then);
        let landings = vec![landing.clone(); then.len()];
        let before = course.landing.replace(landing);
        debug_assert!(before.is_none(), "a flight lands once");
        let awaited = course.awaited;
        drop(course);
        if awaited {
            self.landed.notify_all();
        }
        then.into_iter().zip(landings).for_each(|(then, landing)| then(landing));
    }

    /// Runs `then` when the load ends; at once if it has ended.
    pub(crate) fn then(&self, then: Continuation) {
        let mut course = lock(&self.course);
        match &course.landing {
            Some(landing) => {
                let landing = landing.clone();
                drop(course);
                then(landing);
            }
            None => course.then.push(then),
        }
    }

    /// Waits for the end.
    pub(crate) fn wait(&self) -> Landing {
        let mut course = lock(&self.course);
        loop {
            if let Some(landing) = &course.landing {
                return landing.clone();
            }
            course.awaited = true;
            course = self.landed.wait(course);
        }
    }
}

impl fmt::Debug for Flight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let course = lock(&self.course);
        f.debug_struct("Flight")
            .field("landing", &course.landing)
            .field("awaited", &course.awaited)
            .field("continuations", &course.then.len())
            .finish()
    }
}
