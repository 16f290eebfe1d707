//! The profile between the two snapshots.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use ogive_profile::{Mode, Profile};

/// Samples all CPUs for a while, or waits as long where that is not allowed.
pub(super) fn take(notes: &mut Vec<String>, duration: Duration) -> Option<Profile> {
    notes.push("no samples".to_owned());
    std::thread::sleep(duration);
    None
}

/// A profile as folded stacks: thread, frames from the root to the leaf, weight. Kernel frames are
/// written as `module`symbol`, so that a reader knows whose they are.
pub(super) fn folded(profile: &Profile) -> String {
    let mut stacks: BTreeMap<String, u64> = BTreeMap::new();
    for sample in profile.samples() {
        let mut line = profile.thread(sample.thread).name.replace([';', ' '], "_");
        let frames: Vec<_> = profile.stack(sample.stack).collect();
        for id in frames.into_iter().rev() {
            let frame = profile.frame(id);
            let symbol = if frame.symbol.is_empty() { "[unknown]" } else { frame.symbol };
            let _ = write!(line, ";{}", symbol.replace(';', ":"));
            if frame.mode == Mode::Kernel {
                let module = frame.module_name().trim_start_matches('[').trim_end_matches(']');
                let _ = write!(line, "_[{}]", if module.starts_with("kernel") { "k" } else { module });
            }
        }
        *stacks.entry(line).or_default() += u64::from(sample.count.max(1));
    }
    let mut text = String::new();
    for (stack, weight) in stacks {
        let _ = writeln!(text, "{stack} {weight}");
    }
    text
}
