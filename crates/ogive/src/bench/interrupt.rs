//! SIGINT, SIGTERM and SIGHUP for benchmarks that must clean up.
//!
//! A benchmark checks a flag and then ends along its usual path.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, Result, bail};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Set when it is time to end; the workers check it.
pub(super) type Stop = Arc<AtomicBool>;

/// One that Ctrl-C, SIGTERM and SIGHUP set.
pub(super) fn on_signals() -> Result<Stop> {
    let stop = Stop::default();
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("cannot catch signals")?;
    }
    Ok(stop)
}

/// An error once it is time to end.
pub(super) fn check(stop: &Stop) -> Result<()> {
    if stop.load(Ordering::Relaxed) {
        bail!("stopped by a signal; nothing is left behind");
    }
    Ok(())
}
