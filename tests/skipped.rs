//! How a test reports that it cannot run here. Included by path into the tests of every crate.
//!
//! The test runner hides the output of the print macros in a passing test, so this writes past it.
//! `.ci/run` counts these lines and reports them as skipped, not as passed.

use std::io::Write as _;

/// Says that the running test ends early, and why.
pub(crate) fn skipped(reason: impl std::fmt::Display) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    // One call, so that lines of concurrent tests do not mix.
    let _ = std::io::stderr().write_all(format!("skipped: {test}: {reason}\n").as_bytes());
}

/// Whether this is the nightly run, which has time and its own machine.
#[allow(dead_code, reason = "not every crate has such tests")]
pub(crate) fn is_nightly() -> bool {
    std::env::var_os("OGIVE_NIGHTLY").is_some_and(|value| value == "1")
}

/// Whether the running test must end at once, because it tests the kernel or the machine and so
/// belongs to the nightly run. Reports the skip with its reason.
#[allow(dead_code, reason = "not every crate has such tests")]
pub(crate) fn only_nightly(why: impl std::fmt::Display) -> bool {
    let ends = !is_nightly();
    if ends {
        skipped(format_args!("{why}; OGIVE_NIGHTLY=1 runs it"));
    }
    ends
}
