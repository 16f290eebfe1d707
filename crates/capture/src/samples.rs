//! Takes the profile between the two snapshots.

use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::time::Duration;

use ogive_profile::live::{self, Request};
use ogive_profile::roles::Roles;
use ogive_profile::write::{self, Output, Page};
use ogive_profile::{Profile, symbols};

use super::detached::{Gone, HERE};

/// The time limit for finding the functions' names after sampling.
const NAMES_LIMIT: Duration = Duration::from_secs(60);

/// Sampling in progress.
pub(super) struct Sampling {
    result: Result<mpsc::Receiver<Result<Profile, live::LiveError>>, Gone>,
    limit: Duration,
}

/// Starts to sample all CPUs.
pub(super) fn begin(duration: Duration) -> Sampling {
    let own = i32::try_from(std::process::id()).ok();
    let request = Request { duration, leave_out: own, ..Request::default() };
    let (send, receive) = mpsc::sync_channel(1);
    // Symbolising reads programs, which may hang.
    let work = move || {
        // The receiver is gone after the limit.
        let _ = send.send(live::sample(&request, &AtomicBool::new(false), &mut |_, _| {}));
    };
    Sampling { result: HERE.start(work).map(|()| receive), limit: duration + NAMES_LIMIT }
}

/// Waits for the symbolised profile; `None` if sampling is not allowed.
pub(super) fn end(sampling: Sampling, notes: &mut Vec<String>) -> Option<Profile> {
    let Sampling { result, limit } = sampling;
    let received =
        result.and_then(|receive| receive.recv_timeout(limit).map_err(|_| Gone::TooLong));
    let result = match received {
        Ok(result) => result,
        Err(gone) => {
            notes.push(gone.note("taking samples of stacks", limit));
            return None;
        }
    };
    match result {
        Ok(profile) => {
            notes.extend(profile.meta.notes.iter().cloned());
            // ZFS's problems do not depend on the names of user programs.
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

/// A profile in a format of `ogive profile`: folded stacks for people, pprof for programs.
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
