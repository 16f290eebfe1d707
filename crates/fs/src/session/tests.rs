//! A session over a directory, for the tests of what is below it.

use super::fuzzing::session_over;
use super::*;
use ogive_origin::DirectoryOrigin;
use std::time::Duration;

pub(super) fn session(directory: &std::path::Path) -> Arc<Session<DirectoryOrigin>> {
    session_over(DirectoryOrigin::open(directory).unwrap(), Duration::ZERO, false)
}
