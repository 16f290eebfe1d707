//! The table of mounts, as this process sees it.

use std::io;

pub use ogive_proc::mountinfo::{FSTYPE, MountEntry, below, parse, topmost_at};

/// The mounts that this process sees, in the order of mounting. Only the kernel is asked: an
/// unresponsive file system does not matter.
///
/// # Errors
/// If `/proc` is not mounted, or cannot be read.
pub fn read() -> io::Result<Vec<MountEntry>> {
    std::fs::read("/proc/self/mountinfo").map(|text| parse(&text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn this_process_sees_its_own_root() {
        let mounts = read().unwrap();
        assert!(topmost_at(&mounts, Path::new("/")).is_some());
    }
}
