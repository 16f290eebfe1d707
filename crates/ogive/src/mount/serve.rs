//! The process that serves a mount, from its first check to its last word.
//!
//! Order matters: everything that can be refused is refused before the kernel mounts anything;
//! signals are caught before; and whatever fails afterwards unmounts again, so no error leaves a
//! mount behind.

use std::fs::File;
use std::path::Path;

use anyhow::{Context as _, Result};
use log::warn;
use ogive_fs::{Mount, Unmounter};
use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit};
use sd_notify::NotifyState;

use super::background;
use super::paths;
use super::plan::Plan;
use super::signals::{Ending, Target};
use crate::exit::{self, Refusal};
use crate::messages;
use crate::{fuse, mountinfo};

/// Mounts, serves, and returns after the unmount.
pub(crate) fn serve(mut plan: Plan) -> Result<()> {
    if plan.ready_on_stdout {
        background::leave_session()?;
    }
    let (source, mount_point) = paths::settle(&plan.options.source, &plan.options.mount_point)?;
    fuse::check_available(plan.options.allow_other)?;
    check_root_only(&plan, fuse::is_root())?;
    let log_file = open_log_file(plan.log_file.as_deref())?;
    plan.options.source.clone_from(&source);
    plan.options.mount_point.clone_from(&mount_point);
    settle_process()?;

    if let (Some(second_level), Some(key)) = (&mut plan.options.second_level, &plan.key) {
        second_level.key = key.fetch(second_level.cipher)?;
    }

    let ending = Ending::catch().context("cannot catch signals")?;
    let mount = Mount::start(plan.options.clone())?;
    let unmounter = mount.unmounter();
    let device = device_at(&mount_point);
    let target = Target { unmounter: unmounter.clone(), mount_point, device };
    unmount_on_error(&unmounter, finish_start(&plan, &source, &target, log_file))?;
    unmount_on_error(
        &unmounter,
        ending.watch(target).context("cannot start the thread that waits for signals"),
    )?;

    let summary = mount.wait()?;
    notify(NotifyState::Stopping);
    messages::print(&summary);
    Ok(())
}

/// What remains between the kernel's mount and telling everybody that it is there.
fn finish_start(plan: &Plan, source: &Path, target: &Target, log_file: Option<File>) -> Result<()> {
    if let Some(device) = target.device {
        paths::check_propagation(source, device)?;
    }
    if plan.ready_on_stdout {
        background::announce().context("the command that asked for the mount has gone")?;
    }
    if plan.ready_on_stdout || log_file.is_some() {
        background::redirect_messages(log_file).context("cannot redirect messages")?;
    }
    notify(NotifyState::Ready);
    Ok(())
}

fn unmount_on_error(unmounter: &Unmounter, result: Result<()>) -> Result<()> {
    result.inspect_err(|_| {
        if let Err(reason) = unmounter.unmount() {
            warn!("cannot unmount again after an error: {reason}");
        }
    })
}

/// Tells systemd, where it asked to be told. Not being able to is no reason to stop serving.
fn notify(state: NotifyState<'_>) {
    if let Err(reason) = sd_notify::notify(&[state]) {
        warn!("cannot tell systemd through NOTIFY_SOCKET: {reason}");
    }
}

fn open_log_file(path: Option<&Path>) -> Result<Option<File>> {
    path.map(|path| {
        File::options()
            .append(true)
            .create(true)
            .open(path)
            .map_err(|error| {
                let reason = paths::reason(&error);
                Refusal::new(
                    exit::FAILURE,
                    format!("cannot open the log file {}: {reason}", path.display()),
                )
            })
            .map_err(anyhow::Error::from)
    })
    .transpose()
}

/// Makes the process one that may live for months: it pins no directory, masks no mode bits (the
/// kernel has applied the caller's mask already) and may have as many files open as it is allowed
/// to. Its memory is mostly records, so it grows by huge pages.
fn settle_process() -> Result<()> {
    crate::allocator::use_huge_pages();
    rustix::process::chdir("/").context("cannot change to the root directory")?;
    rustix::process::umask(Mode::empty());
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(reason) = rustix::process::setrlimit(Resource::Nofile, raised) {
        warn!("cannot raise the limit on open files: {reason}");
    }
    Ok(())
}

fn device_at(mount_point: &Path) -> Option<(u32, u32)> {
    let mounts = mountinfo::read().ok()?;
    mountinfo::topmost_at(&mounts, mount_point)
        .filter(|mount| mount.is_ogive())
        .map(|mount| mount.device)
}

/// Flags that fusermount3 sets for nobody but root.
fn check_root_only(plan: &Plan, root: bool) -> Result<(), Refusal> {
    let asked = [(plan.options.dev, "--dev"), (plan.options.suid, "--suid")];
    match asked.iter().find(|(is_asked, _)| *is_asked && !root) {
        Some((_, flag)) => Err(Refusal::new(
            exit::USAGE,
            format!("cannot mount with {flag}: only root can set it"),
        )
        .hint("run as root or leave it out")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_root_can_set_is_refused_by_its_name() {
        let mut plan = plan();
        assert!(check_root_only(&plan, false).is_ok());
        plan.options.suid = true;
        assert!(check_root_only(&plan, true).is_ok());
        let refusal = check_root_only(&plan, false).unwrap_err().to_string();
        assert!(refusal.contains("--suid"), "{refusal}");
    }

    fn plan() -> Plan {
        Plan {
            options: ogive_fs::MountOptions::default(),
            key: None,
            foreground: true,
            ready_on_stdout: false,
            log_file: None,
            verbosity: log::LevelFilter::Warn,
        }
    }

    #[test]
    fn a_log_file_is_appended_to_and_an_impossible_one_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        std::fs::write(&path, "old\n").unwrap();
        use std::io::Write as _;
        open_log_file(Some(&path)).unwrap().unwrap().write_all(b"new\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "old\nnew\n");
        let error = open_log_file(Some(&dir.path().join("no/log"))).unwrap_err().to_string();
        assert!(
            error.contains("cannot open the log file") && error.contains("no such file"),
            "{error}"
        );
        assert!(open_log_file(None).unwrap().is_none());
    }
}
