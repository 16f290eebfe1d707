//! The process that serves a mount, from its first check to its end.
//!
//! Order matters. All checks that can refuse the mount, and the signal handlers, come before the
//! kernel mounts anything. Any later failure unmounts again, so no error leaves a mount behind.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use log::warn;
use ogive_bucket::Renewal;
use ogive_fs::{Mount, MountOptions, Unmounter};
use ogive_l2::{Cipher, KeySource};
use ogive_metrics::path_label;
use ogive_origin::Origin;
use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit};
use sd_notify::NotifyState;

use super::background;
use super::bucket::OpenBucket;
use super::metrics::Endpoint;
use super::otlp::Sender;
use super::paths;
use super::plan::Plan;
use super::signals::{Ending, Hangup, Target};
use crate::exit::{self, Refusal};
use crate::l2::key::KeyArgs;
use crate::logger;
use crate::{fuse, mountinfo};

/// Mounts, serves, and returns after the unmount.
pub(crate) fn serve(mut plan: Plan) -> Result<()> {
    if plan.ready_on_stdout {
        background::leave_session()?;
    }
    let (source, mount_point) = match &plan.bucket {
        Some(_) => {
            let mount_point = paths::settle_alone(&plan.options.mount_point)?;
            (plan.options.source.clone(), mount_point)
        }
        None => paths::settle(&plan.options.source, &plan.options.mount_point)?,
    };
    fuse::check_available(plan.options.allow_other)?;
    check_root_only(&plan, fuse::is_root())?;
    if let Some(path) = &mut plan.log_file {
        // The file is reopened by its name after this process has changed its directory.
        *path =
            std::path::absolute(&*path).context("cannot find the absolute path of the log file")?;
    }
    let log_file = plan.log_file.as_deref().map(background::open_log_file).transpose()?;
    plan.options.source.clone_from(&source);
    plan.options.mount_point.clone_from(&mount_point);
    settle_process()?;

    let stage = plan.bucket.as_ref().and_then(|bucket| bucket.stage.as_ref());
    if let Some(stage) = stage {
        stage.check_outside(&mount_point)?;
    }
    let stage_key = fetch_keys(stage.is_some(), &mut plan.options, plan.key.as_ref())?;

    let bind = |address| Endpoint::bind(address, &mount_point, plan.pprof);
    let endpoint = plan.metrics.map(bind).transpose()?;
    let name = path_label(&mount_point);
    let otlp = plan.otlp.as_ref().map(|receiver| Sender::new(receiver, name)).transpose()?;
    let metrics = Metrics { endpoint, otlp };
    let ending = Ending::catch().context("cannot catch signals")?;
    match &plan.bucket {
        Some(bucket) => {
            let opened = bucket.open(&stage_key)?;
            if plan.options.second_level.is_none() {
                stage_key.forget();
            }
            let options = plan.options.clone();
            match opened {
                OpenBucket::Store(origin) => {
                    let renewal = origin.bucket().renewal();
                    let mount = Mount::of(origin, options)?;
                    attend(mount, &plan, &source, ending, metrics, log_file, renewal)
                }
                OpenBucket::Web(origin) => {
                    let mount = Mount::of(origin, options)?;
                    attend(mount, &plan, &source, ending, metrics, log_file, None)
                }
            }
        }
        None => {
            let mount = Mount::start(plan.options.clone())?;
            attend(mount, &plan, &source, ending, metrics, log_file, None)
        }
    }
}

/// Fetches the key, which the second level and the stage share: a passphrase is typed once. Returns
/// the key of the stage. A stage is always sealed, even if the second level is not.
fn fetch_keys(
    has_stage: bool,
    options: &mut MountOptions,
    key: Option<&KeyArgs>,
) -> Result<KeySource> {
    let (second_level, Some(key)) = (&mut options.second_level, key) else {
        return Ok(KeySource::None);
    };
    let cipher = second_level.as_ref().and_then(|level| level.cipher);
    let fetched = key.fetch(cipher.filter(|_| !has_stage))?;
    if let Some(second_level) = second_level {
        let is_open = cipher == Some(Cipher::Off);
        second_level.key = if is_open { KeySource::None } else { fetched.clone() };
    }
    Ok(if has_stage { fetched } else { KeySource::None })
}

/// The exporters of the counters of a mount.
struct Metrics {
    endpoint: Option<Endpoint>,
    otlp: Option<Sender>,
}

/// Runs a mount from the moment when the kernel has it to its end.
fn attend<O: Origin>(
    mount: Mount<O>,
    plan: &Plan,
    source: &Path,
    ending: Ending,
    metrics: Metrics,
    log_file: Option<File>,
    renewal: Option<Renewal>,
) -> Result<()> {
    let mount_point = plan.options.mount_point.clone();
    let unmounter = mount.unmounter();
    if let Some(endpoint) = metrics.endpoint {
        let served = endpoint.serve(mount.kstats()).context("cannot serve metrics");
        unmount_on_error(&unmounter, served)?;
    }
    let device = device_at(&mount_point);
    let hangup = match plan.ready_on_stdout || plan.log_file.is_some() || !is_at_terminal() {
        true => Hangup::Reopens(plan.log_file.clone(), renewal.map(Arc::new)),
        false => Hangup::Ends,
    };
    let target = Target { unmounter: unmounter.clone(), mount_point, device };
    unmount_on_error(&unmounter, finish_start(plan, source, &target, log_file))?;
    // From here on, messages go to the log file.
    if let Some(otlp) = metrics.otlp {
        let started =
            otlp.start(mount.kstats()).context("cannot start the thread that sends counters");
        unmount_on_error(&unmounter, started)?;
    }
    unmount_on_error(
        &unmounter,
        ending.watch(target, hangup).context("cannot start the thread that waits for signals"),
    )?;

    let summary = mount.wait()?;
    notify(NotifyState::Stopping);
    logger::print(&summary);
    Ok(())
}

/// The last steps between the kernel's mount and the report that it is there.
fn finish_start(plan: &Plan, source: &Path, target: &Target, log_file: Option<File>) -> Result<()> {
    if let Some(device) = target.device
        && plan.bucket.is_none()
    {
        paths::check_propagation(source, device)?;
    }
    // Once the kernel has the name, no other program can create it in the root first.
    let _ = plan.options.mount_point.join(&plan.options.control_name).symlink_metadata();
    if plan.ready_on_stdout {
        background::announce().context("the command that started the mount has ended")?;
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

/// Whether a terminal shows the messages as they come.
fn is_at_terminal() -> bool {
    std::io::IsTerminal::is_terminal(&std::io::stderr())
}

/// Notifies systemd, if it asked for that. A failure is no reason to stop serving.
fn notify(state: NotifyState<'_>) {
    if let Err(reason) = sd_notify::notify(&[state]) {
        warn!("cannot notify systemd through NOTIFY_SOCKET: {reason}");
    }
}

/// Prepares the process for a life of months. It pins no directory, masks no mode bits (the kernel
/// has applied the caller's mask already), and may open as many files as its limit allows. Its
/// memory is mostly records, so it grows by huge pages.
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

/// Flags that fusermount3 sets only for root.
fn check_root_only(plan: &Plan, root: bool) -> Result<(), Refusal> {
    let asked = [(plan.options.dev, "--dev"), (plan.options.suid, "--suid")];
    match asked.iter().find(|(is_asked, _)| *is_asked && !root) {
        Some((_, flag)) => Err(Refusal::new(
            exit::USAGE,
            format!("cannot mount with {flag}: only root can set it"),
        )
        .hint("run as root, or leave the option out")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_for_root_are_refused_by_name() {
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
            bucket: None,
            key: None,
            foreground: true,
            ready_on_stdout: false,
            log_file: None,
            log_format: crate::logger::Style::Plain,
            metrics: None,
            otlp: None,
            pprof: false,
            verbosity: log::LevelFilter::Warn,
        }
    }
}
