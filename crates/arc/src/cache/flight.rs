//! A load in flight: where those who want the same key wait for the one who loads it.
//!
//! The first to wait makes the flight. Waiters join under the sublist's lock, by a pin of the
//! loading entry; so when the load lands, the entry is held for every one of them before anybody
//! can evict it. The flight's own lock is a leaf: nothing is locked under it, and nothing of the
//! user's runs under it.

use crate::sync::{Condition, Mutex, lock};
use std::any::Any;
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
    /// Nobody loads it any more: whoever still wants it starts again.
    Abandoned,
}

/// What a flight's lock guards.
#[derive(Debug)]
struct Course {
    landing: Option<Landing>,
    /// Somebody sleeps until it lands. Waking costs a system call even if nobody does.
    awaited: bool,
}

/// One load.
#[derive(Debug)]
pub(crate) struct Flight {
    course: Mutex<Course>,
    landed: Condition,
}

impl Default for Flight {
    fn default() -> Self {
        Self::new()
    }
}

impl Flight {
    fn new() -> Self {
        let course = Course { landing: None, awaited: false };
        Self { course: Mutex::new(course), landed: Condition::new() }
    }

    /// Ends the flight and wakes all who wait.
    pub(crate) fn land(&self, landing: Landing) {
        let mut course = lock(&self.course);
        let before = course.landing.replace(landing);
        debug_assert!(before.is_none(), "a flight lands once");
        let awaited = course.awaited;
        drop(course);
        if awaited {
            self.landed.notify_all();
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
