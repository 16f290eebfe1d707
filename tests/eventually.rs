//! How a test waits for other threads and processes. Included by path into the tests of every
//! crate.
//!
//! No working program needs the whole time limit, so a slow machine does not decide the result. A
//! bug becomes a failure with a name instead of a test that hangs.

use std::io::Write as _;
use std::time::{Duration, Instant};

/// The timeout of a wait without a condition to check.
#[allow(dead_code, reason = "not every crate waits so")]
pub(crate) const BOUND: Duration = Duration::from_secs(60);

/// Waits until a condition holds, and fails with this name if it never does.
#[track_caller]
#[allow(dead_code, reason = "not every crate waits so")]
pub(crate) fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let until = Instant::now() + BOUND;
    let mut looks = 0_u32;
    while !is_so() {
        if Instant::now() > until && !is_so() {
            // The test may wait for other threads before it shows this failure, so print it now.
            let text = format!("waited in vain: {what}\n");
            let _ = std::io::stderr().write_all(text.as_bytes());
            panic!("never, in {} s: {what}", BOUND.as_secs());
        }
        // Most conditions hold at once; otherwise other threads get the processor.
        looks += 1;
        if looks < 100 {
            std::thread::yield_now();
        } else {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
