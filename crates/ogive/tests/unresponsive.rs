//! Commands that ask a mount whose process is stopped: they name the process, and end.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Place, Stopped, assert_code, ogive, stderr, within_a_minute};

#[test]
fn a_stopped_mount_is_reported_and_not_waited_for() {
    if !common::can_mount() {
        return;
    }
    let place = Place::new();
    place.mount(&[]);
    let (pid, point) = (place.pid(), place.mount_point());
    let stopped = Stopped::stop(pid);
    let lines: [&[&str]; 5] = [
        &["stat"],
        &["stat", "--objects"],
        &["stat", "--json"],
        &["doctor"],
        &["doctor", "--json", "--for", "1s"],
    ];
    for words in lines {
        let mut line: Vec<std::ffi::OsString> = words.iter().map(Into::into).collect();
        line.push(point.clone().into());
        let output = within_a_minute("an answer", move || ogive(line));
        assert_code(&output, 4);
        let errors = stderr(&output);
        let expected =
            format!("its process {pid} is stopped; continue it with \"kill -CONT {pid}\"");
        assert!(errors.contains(&expected), "{words:?}: {errors}");
    }
    drop(stopped);
    let output = ogive(["stat".into(), point.clone().into_os_string()]);
    assert_code(&output, 0);
    assert_code(&ogive(["unmount".into(), point.into_os_string()]), 0);
}
