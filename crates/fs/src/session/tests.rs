//! A session over a directory, for tests of the control directory's handles.

use super::fuzzing::session_over;
use super::*;
use ogive_origin::DirectoryOrigin;
use std::sync::Arc;
use std::time::Duration;

pub(super) fn session(directory: &std::path::Path) -> Arc<Session<DirectoryOrigin>> {
    session_over(DirectoryOrigin::open(directory).unwrap(), Duration::ZERO, false)
}

#[test]
fn open_control_files_have_a_memory_bound_and_give_it_back() {
    use crate::inode_number::CONTROL_FIRST;
    use ogive_origin::{Errno, OFlags};
    use std::ffi::OsStr;
    let session = session_over(crate::testing::FakeOrigin::default(), Duration::ZERO, false);
    let control = &session.control;
    let number = control.find(CONTROL_FIRST, OsStr::new("arc_max")).unwrap();
    let open = || control.open(number, OFlags::RDONLY);
    let held = || {
        let text = control.kstat("ogivestats").unwrap();
        let row = text.lines().find(|line| line.starts_with("control_held_bytes ")).unwrap();
        row.split_whitespace().last().unwrap().parse::<u64>().unwrap()
    };
    assert_eq!(held(), 0);
    let mut handles = Vec::new();
    let refused = loop {
        match open() {
            Ok(handle) => handles.push(handle),
            Err(errno) => break errno,
        }
        assert!(handles.len() < 1 << 20, "handles are not bounded");
    };
    assert_eq!(refused, Errno::NFILE);
    let all = held();
    assert!((64 << 20..65 << 20).contains(&all), "{all} bytes");
    control.release(handles.pop().unwrap());
    assert!(open().is_ok());
    handles.into_iter().for_each(|handle| control.release(handle));
    assert!(held() < 1024, "only the last open file's memory remains");
}
