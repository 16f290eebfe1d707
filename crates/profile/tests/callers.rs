//! Samples callers in a program without frame pointers: this test itself.

#![allow(clippy::unwrap_used, reason = "a failure to start a thread fails the test")]

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ogive_profile::live::{self, CallGraph, LiveError, Request, Target};

static DONE: AtomicBool = AtomicBool::new(false);

/// Calls itself to a depth, then works until `DONE` is set.
#[inline(never)]
fn descend_with_room(depth: u64) -> u64 {
    let room = black_box([depth; 5]);
    if depth > 0 {
        return descend_with_room(depth - 1).wrapping_add(room[0]);
    }
    let mut sum = 0u64;
    while !DONE.load(Ordering::Relaxed) {
        sum = black_box(sum.wrapping_mul(31).wrapping_add(room[1]));
    }
    sum
}

#[test]
fn programs_without_frame_pointers_have_callers() {
    let worker = std::thread::Builder::new().name("descends".to_owned());
    let worker = worker.spawn(|| descend_with_room(12)).unwrap();
    let own = i32::try_from(std::process::id()).unwrap();
    let request = Request {
        target: Target::Processes(vec![own]),
        hertz: 499,
        duration: Duration::from_millis(400),
        call_graph: CallGraph::Dwarf,
        ..Request::default()
    };
    let sampled = live::sample(&request, &AtomicBool::new(false), &mut |_, _| {});
    DONE.store(true, Ordering::Relaxed);
    worker.join().unwrap();
    let profile = match sampled {
        Ok(profile) => profile,
        Err(LiveError::Denied { .. }) => return,
        Err(error) => panic!("{error}"),
    };
    // This user may not lock enough memory for copies of stacks.
    if profile.meta.notes.iter().any(|note| note.contains("copies of stacks")) {
        return;
    }
    let (mut samples, mut whole) = (0, 0);
    for sample in profile.samples() {
        if profile.thread(sample.thread).name == "descends" {
            let functions = profile.stack(sample.stack).map(|frame| profile.frame(frame).symbol);
            let depth = functions.filter(|symbol| symbol.contains("descend_with_room")).count();
            samples += 1;
            whole += u32::from(depth == 13);
        }
    }
    assert!(samples > 0 && whole * 10 >= samples * 9, "{whole} of {samples}");
}
