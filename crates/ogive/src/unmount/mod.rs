//! `ogive unmount`: unmounts, or names the programs that use the mount.

pub(crate) mod daemon;
mod pending_uploads;
pub(crate) mod users;

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use clap::{Args, ValueHint};
use rustix::io::Errno;

use self::daemon::Daemon;
use crate::exit::{self, Refusal};
use crate::fuse::{self, Unmount};
use crate::help::{self, Section};
use crate::mount::paths;
use crate::mountinfo::{self, MountEntry};
use crate::value::Span;

/// How often, and after which pause, to try again if no program is found on the mount.
const CLOSING_TRIES: u32 = 10;
const CLOSING_PAUSE: Duration = Duration::from_millis(50);
/// How long to wait for the process to end without `--wait`.
const WAIT: Duration = Duration::from_secs(30);
/// How often to look how many files are still to be uploaded.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Unmount, and wait until the process behind the mount has ended
///
/// Works for root and for the user who mounted (through fusermount3). If programs still use the
/// mount, the command names them and changes nothing. umount(8) works as well; it does not wait.
#[derive(Debug, Args)]
#[command(visible_alias = "umount", after_long_help = help::render(&sections()))]
pub(crate) struct UnmountArgs {
    /// The mount point
    #[arg(value_name = "MNT", value_hint = ValueHint::DirPath)]
    pub(crate) mount_point: PathBuf,

    /// Detach the mount even if it is in use; it ends when the last program closes its files
    ///
    /// The command does not wait for that. It also detaches a mount whose process does not answer.
    #[arg(short, long)]
    pub(crate) lazy: bool,

    /// How long to wait for the process to end after the unmount; 0 does not wait (default: 30s, or
    /// until the files of a bucket are uploaded)
    #[arg(long, value_name = "TIME", conflicts_with = "lazy")]
    pub(crate) wait: Option<Span>,
}

/// The sections after the options.
pub(crate) fn sections() -> Vec<Section> {
    vec![
        help::examples(&[
            (
                "ogive unmount /mnt/fast",
                "Unmount; if programs use it, name them and exit with code 6.",
            ),
            ("ogive unmount --lazy /mnt/fast", "Unmount now, even if programs use it."),
        ]),
        help::exit_codes(),
    ]
}

/// Runs the subcommand.
pub(crate) fn run(args: &UnmountArgs) -> Result<()> {
    let mounts = mountinfo::read().context("cannot read /proc/self/mountinfo")?;
    let mount = find(&mounts, &args.mount_point)?;
    let path = &mount.mount_point;
    if args.lazy {
        // The mount itself is not accessed, because it may not answer.
        return fuse::unmount(path, Unmount::Detach)
            .map_err(|error| refuse(&mounts, path, &error).into());
    }
    let daemon = Daemon::find(path, mount.device.1);
    let stage = daemon.as_ref().and_then(|daemon| pending_uploads::stage_of(daemon.pid()));
    let result = retry_while_unused(
        || fuse::unmount(path, Unmount::Plain),
        || {
            mountinfo::below(&mounts, path).next().is_none()
                && users::find(Path::new("/proc"), path).let_go_soon(&path.join(".ogive"))
        },
    );
    result.map_err(|error| refuse(&mounts, path, &error))?;
    let Some(daemon) = daemon.filter(|_| args.wait.is_none_or(|wait| !wait.0.is_zero())) else {
        return Ok(());
    };
    let wait = args.wait.unwrap_or(Span(WAIT));
    let has_ended = match &stage {
        Some(stage) => wait_for_uploads(&daemon, stage, args.wait.map(|wait| wait.0))?,
        None => daemon.wait(wait.0)?,
    };
    if let Some(stage) = stage
        && pending_uploads::count(&stage) > 0
    {
        return Err(left_in(path, &stage, has_ended).into());
    }
    if !has_ended {
        return Err(Refusal::new(
            exit::FAILURE,
            format!(
                "{} is unmounted, but process {} did not end within {}",
                path.display(),
                daemon.pid(),
                wait
            ),
        )
        .hint(
            "a container or service may still have the mount, or the process waits for its \
         source; \"--wait TIME\" waits longer",
        )
        .into());
    }
    Ok(())
}

/// Waits for a process that uploads, and says how far it is. Without a limit: it ends by itself,
/// when it has tried to upload each file.
fn wait_for_uploads(daemon: &Daemon, stage: &Path, at_most: Option<Duration>) -> Result<bool> {
    let began = Instant::now();
    let mut printed = 0;
    loop {
        let left = at_most.map(|most| most.saturating_sub(began.elapsed()));
        if daemon.wait(left.unwrap_or(LOOK_AGAIN).min(LOOK_AGAIN))? {
            return Ok(true);
        }
        let pending = pending_uploads::count(stage);
        if pending != printed && pending > 0 {
            let files = ogive_text::counted(pending, "file is", "files are");
            eprintln!("{files} still to be uploaded");
        }
        printed = pending;
        if left.is_some_and(|left| left.is_zero()) || (pending == 0 && began.elapsed() > WAIT) {
            return Ok(false);
        }
    }
}

/// The error for files that were not uploaded.
fn left_in(path: &Path, stage: &Path, has_ended: bool) -> Refusal {
    let (pending, word) = (pending_uploads::count(stage), paths::word(stage));
    let (stage, path) = (stage.display(), path.display());
    match has_ended {
        true => Refusal::new(
            exit::FAILURE,
            format!(
                "{path} is unmounted, but {} could not be uploaded and stayed in {stage}",
                ogive_text::counted(pending, "file", "files")
            ),
        )
        .hint(format!("mount the bucket with --stage {word} again, which uploads them")),
        false => Refusal::new(
            exit::FAILURE,
            format!(
                "{path} is unmounted, and {} still being uploaded",
                ogive_text::counted(pending, "file is", "files are")
            ),
        )
        .hint(format!("\"--wait TIME\" waits longer; files that are not uploaded stay in {stage}")),
    }
}

/// Tries again for a while if no program is found on a busy mount, because the kernel closes the
/// files of an ended program a moment later. It also tries again if programs only read counters,
/// because they close each file at once.
fn retry_while_unused(
    unmount: impl Fn() -> io::Result<()>,
    is_used_by_nobody: impl Fn() -> bool,
) -> io::Result<()> {
    for _ in 0..CLOSING_TRIES {
        match unmount() {
            Err(error) if Errno::from_io_error(&error) == Some(Errno::BUSY) => {
                if !is_used_by_nobody() {
                    return Err(error);
                }
            }
            done => return done,
        }
        std::thread::sleep(CLOSING_PAUSE);
    }
    unmount()
}

/// The mount that was meant. It is not touched, since it may not answer.
fn find<'a>(mounts: &'a [MountEntry], mount_point: &Path) -> Result<&'a MountEntry, Refusal> {
    let refuse = |reason: &str| {
        Refusal::new(
            exit::MOUNT_POINT,
            format!("cannot unmount {}: {reason}", mount_point.display()),
        )
    };
    let real =
        paths::resolve(mounts, mount_point).map_err(|error| refuse(&paths::reason(&error)))?;
    match mountinfo::topmost_at(mounts, &real) {
        Some(mount) if mount.is_ogive() => Ok(mount),
        Some(mount) => Err(refuse(&format!(
            "a file system of type {} is mounted there, not ogive",
            mount.fstype
        ))
        .hint(format!("unmount it with \"umount {}\"", paths::word(mount_point)))),
        None => Err(refuse("nothing is mounted there")
            .hint("\"findmnt --types fuse.ogive\" lists ogive's mounts")),
    }
}

fn refuse(mounts: &[MountEntry], path: &Path, error: &io::Error) -> Refusal {
    if Errno::from_io_error(error) != Some(Errno::BUSY) {
        let reason = paths::reason(error);
        return Refusal::new(exit::FAILURE, format!("cannot unmount {}: {reason}", path.display()));
    }
    if let Some(inner) = mountinfo::below(mounts, path).last() {
        let inner = inner.mount_point.display();
        return Refusal::new(
            exit::BUSY,
            format!("cannot unmount {}: {inner} is mounted inside it", path.display()),
        )
        .hint("unmount that first");
    }
    let users = users::find(Path::new("/proc"), path);
    Refusal::new(exit::BUSY, format!("cannot unmount {}: in use{users}", path.display()))
        .hint("end these programs, or use \"--lazy\" to unmount when they end")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::fs;

    #[test]
    fn only_mounts_of_ogive_are_taken() {
        let dir = tempfile::tempdir().unwrap();
        let path = fs::canonicalize(dir.path()).unwrap();
        let line = |fstype: &str| format!("9 1 0:5 / {} rw - {fstype} src rw\n", path.display());
        let ogive = mountinfo::parse(line("fuse.ogive").as_bytes());
        assert_eq!(find(&ogive, &path).unwrap().mount_point, path);
        let slash = PathBuf::from(format!("{}/", path.display()));
        assert_eq!(find(&ogive, &slash).unwrap().mount_point, path);
        let elsewhere = tempfile::tempdir().unwrap();
        let link = elsewhere.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert_eq!(find(&ogive, &link).unwrap().mount_point, path);

        let tmpfs = mountinfo::parse(line("tmpfs").as_bytes());
        assert!(
            find(&tmpfs, &path).unwrap_err().to_string().contains("a file system of type tmpfs")
        );
        assert!(find(&[], &path).unwrap_err().to_string().contains("nothing is mounted there"));
        assert!(find(&[], &path.join("no")).unwrap_err().to_string().contains("no such file"));
    }

    #[test]
    fn files_of_an_ended_program_are_waited_for() {
        let busy = || Err(Errno::BUSY.into());
        let tries = Cell::new(0);
        let ends_at = |last| {
            tries.set(0);
            let unmount = || {
                tries.set(tries.get() + 1);
                if tries.get() < last { busy() } else { Ok(()) }
            };
            retry_while_unused(unmount, || true)
        };
        ends_at(3).unwrap();
        assert_eq!(tries.get(), 3);
        ends_at(u32::MAX).unwrap_err();
        assert_eq!(tries.get(), CLOSING_TRIES + 1, "not for ever");
        retry_while_unused(busy, || false).unwrap_err();
        let denied = retry_while_unused(|| Err(Errno::PERM.into()), || true);
        assert_eq!(Errno::from_io_error(&denied.unwrap_err()), Some(Errno::PERM));
    }

    #[test]
    fn a_mount_inside_is_named_without_a_search_for_programs() {
        let text = b"9 1 0:5 / /m rw - fuse.ogive s rw\n10 9 0:6 / /m/in rw - tmpfs t rw\n";
        let refusal = refuse(&mountinfo::parse(text), Path::new("/m"), &Errno::BUSY.into());
        assert!(refusal.to_string().contains("/m/in is mounted inside it"), "{refusal}");
        let other = refuse(&[], Path::new("/m"), &Errno::PERM.into());
        assert_eq!(other.to_string(), "cannot unmount /m: operation not permitted");
    }
}
