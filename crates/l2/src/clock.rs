//! The time by which devices are judged.
//!
//! A record's fate depends on how long a device took, and on whether its pause is over. Tests of
//! that play the time; other tests stop it. So no test depends on how fast the machine is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// A clock: by default the machine's.
#[derive(Clone, Debug, Default)]
pub struct Clock(Option<Arc<Played>>);

#[derive(Debug)]
struct Played {
    start: Instant,
    passed_ns: AtomicU64,
}

impl Clock {
    /// A clock that stands still until a test moves it; all its clones move with it.
    pub fn played() -> Self {
        Self(Some(Arc::new(Played { start: Instant::now(), passed_ns: AtomicU64::new(0) })))
    }

    /// Moves a played clock on. The machine's goes by itself.
    pub fn advance(&self, time: Duration) {
        if let Some(played) = &self.0 {
            let time_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
            played.passed_ns.fetch_add(time_ns, Ordering::Relaxed);
        }
    }

    pub(crate) fn now(&self) -> Instant {
        match &self.0 {
            None => Instant::now(),
            Some(played) => played.start + played.passed(),
        }
    }

    /// Seconds since 1970; a played clock begins there.
    pub(crate) fn seconds(&self) -> u64 {
        let passed = match &self.0 {
            None => SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default(),
            Some(played) => played.passed(),
        };
        passed.as_secs()
    }
}

impl Played {
    fn passed(&self) -> Duration {
        Duration::from_nanos(self.passed_ns.load(Ordering::Relaxed))
    }
}
