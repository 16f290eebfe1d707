//! The profile between the two snapshots.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use ogive_profile::live::{self, Request};
use ogive_profile::roles::Roles;
use ogive_profile::write::{self, Output, Page};
use ogive_profile::{Profile, symbols};

use super::apart::HERE;

/// Finding the names of functions behind the samples may take as long.
const NAMES_LIMIT: Duration = Duration::from_secs(60);

/// Samples all CPUs for a while, or waits as long where that is not allowed.
pub(super) fn take(notes: &mut Vec<String>, duration: Duration) -> Option<Profile> {
    let begun = Instant::now();
    let own = i32::try_from(std::process::id()).ok();
    let request = Request { duration, leave_out: own, ..Request::default() };
    // Programs are read for the names of their functions, which may hang.
    let work = move || live::sample(&request, &AtomicBool::new(false), &mut |_, _| {});
    let limit = duration + NAMES_LIMIT;
    let result = match HERE.done(limit, work) {
        Ok(result) => result,
        Err(gone) => {
            notes.push(gone.note("taking samples of stacks", limit));
            return None;
        }
    };
    // The two snapshots are as far apart as was asked for, whether there are samples or not.
    std::thread::sleep(duration.saturating_sub(begun.elapsed()));
    match result {
        Ok(profile) => {
            notes.extend(profile.meta.notes.iter().cloned());
            // Missing names of user programs are no question of ZFS's.
            let matters = |line: &String| {
                ["zfs", "spl", "kallsyms", ".ko", "module"].iter().any(|word| line.contains(word))
                    && !line.contains("user code")
            };
            notes.extend(symbols::advice(&profile).into_iter().filter(matters));
            Some(profile)
        }
        Err(error) => {
            notes.push(format!("no samples of stacks: {error}"));
            None
        }
    }
}

/// A profile in a form of `ogive profile`: folded stacks for people, pprof for programs.
pub(super) fn written(profile: &Profile, output: Output) -> std::io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let view = profile.view();
    let roles = Roles::bundled();
    write::write(
        &mut out,
        output,
        &Page { title: "ogive capture", view: &view, baseline: None, roles: &roles },
    )?;
    Ok(out)
}
