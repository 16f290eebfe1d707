//! A load in flight: where those who want the same key wait for the one who loads it.
//!
//! Waiters join under the sublist's lock, by a hold on the loading node; so when the load
//! lands, the entry is held for every one of them before anybody can evict it. The flight's
//! own lock is a leaf: nothing is locked under it, and nothing of the user's runs under it.

use crate::sync::{Condition, Mutex, lock};
use std::any::Any;
use std::sync::Arc;

/// How a load ended.
#[derive(Debug)]
pub(crate) enum Landing<V> {
    /// With a value; the node is held for every waiter.
    Loaded(Arc<V>),
    /// With an error of the loader's type.
    Failed(Arc<dyn Any + Send + Sync>),
    /// The loader panicked.
    Panicked,
    /// Nobody loads it any more: whoever still wants it starts again.
    Abandoned,
}

impl<V> Clone for Landing<V> {
    fn clone(&self) -> Self {
        match self {
            Self::Loaded(value) => Self::Loaded(Arc::clone(value)),
            Self::Failed(error) => Self::Failed(Arc::clone(error)),
            Self::Panicked => Self::Panicked,
            Self::Abandoned => Self::Abandoned,
        }
    }
}

/// What a flight's lock guards.
#[derive(Debug)]
struct Course<V> {
    landing: Option<Landing<V>>,
    /// Somebody sleeps until it lands. Waking costs a system call even if nobody does.
    awaited: bool,
}

/// One load.
#[derive(Debug)]
pub(crate) struct Flight<V> {
    course: Mutex<Course<V>>,
    landed: Condition,
}

impl<V> Flight<V> {
    pub(crate) fn new() -> Self {
        let course = Course { landing: None, awaited: false };
        Self { course: Mutex::new(course), landed: Condition::new() }
    }

    /// Ends the flight and wakes all who wait.
    pub(crate) fn land(&self, landing: Landing<V>) {
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
    pub(crate) fn wait(&self) -> Landing<V> {
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
