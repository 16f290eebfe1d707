//! Promise: holds that are forgotten again and again end the program. They never free a value that
//! another hold reads.
//!
//! Two thousand million holds take too long to make. So the test begins with the count of pins near
//! its end. An overflow ends the process, so each case runs in a process of its own: this test
//! program again, with the case in a variable.

use super::{Cache, Hold};
use crate::policy::{Access, Kind};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

const CASE: &str = "OGIVE_ARC_TEST_PINS";
const DEMAND: Access = Access::Demand;
const SIGABRT: i32 = 6;
/// Holds that are still allowed for an entry that has nearly too many.
const LEFT: u64 = 3;

type Pin = fn(&Cache<u64, u64>, &Hold<u64, u64>);

/// Every way to one hold more.
const WAYS: [(&str, Pin); 4] = [
    ("get", |cache, _| std::mem::forget(cache.get(&1, DEMAND))),
    ("get_cached_only", |cache, _| std::mem::forget(cache.get_cached_only(&1, DEMAND))),
    ("get_or_load", |cache, _| {
        let load = || Err::<(u64, u64), ()>(());
        std::mem::forget(cache.get_or_load(&1, Kind::Data, DEMAND, load));
    }),
    ("clone", |_, hold| std::mem::forget(hold.clone())),
];

/// The process of one case: takes as many holds as are allowed, and `more`.
fn forget_holds(way: Pin, more: u64) {
    let cache: Cache<u64, u64> = Cache::builder(100).sublists(1).build();
    let hold = cache.insert(1, 77, 1, Kind::Data, DEMAND);
    hold.entry().meta.forget_pins_but(LEFT);
    for _ in 0..LEFT + more {
        way(&cache, &hold);
    }
    // If the count were one pin short, this would drop the value.
    assert!(cache.invalidate(&1), "the entry is live: nothing has run into its state");
    assert_eq!(*hold, 77);
    // Dropping them would wait for the forgotten holds.
    std::mem::forget((hold, cache));
}

#[test]
fn holds_that_are_forgotten_without_end_end_the_program() {
    if let Ok(case) = std::env::var(CASE) {
        let (name, more) = case.split_once(' ').expect("a way and a number");
        let (_, way) = WAYS.iter().find(|(way, _)| *way == name).expect("one of the ways");
        forget_holds(*way, more.parse().expect("a number"));
        return;
    }
    let name = "cache::pin_overflow::holds_that_are_forgotten_without_end_end_the_program";
    let run = |case: String| {
        let mut program = Command::new(std::env::current_exe().expect("this program"));
        program.args(["--exact", name]).env(CASE, case);
        program.output().expect("it runs").status
    };
    for (way, _) in WAYS {
        assert!(run(format!("{way} 0")).success(), "{way}: as many holds as there may be");
        assert_eq!(run(format!("{way} 2")).signal(), Some(SIGABRT), "{way}: more than that");
    }
}
