//! The two directories of a mount: their real paths, and whether they may be used together.
//!
//! The process of a dead mount point ended without unmounting. Every system call there fails with
//! ENOTCONN, or ECONNABORTED if the connection was aborted. This module removes a dead mount point,
//! so that mounting again after a crash works. While the process is still exiting, a request that
//! one of its threads has half read fails with EIO (`fuse_dev_do_read` in the kernel's
//! fs/fuse/dev.c). A live mount whose source has vanished fails with EIO too. Only another request
//! after the process has ended distinguishes the two.
//!
//! Neither directory may lie inside the other. With MNT inside SRC, a walk through the mount would
//! reach MNT again, and the mount would wait for itself. With SRC inside MNT (or equal to it), the
//! mount would cover its own source. The same holds across several mounts of ogive
//! ([`check_cycle`]): two mounts that read from each other would wait for each other for ever.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use log::warn;
use ogive_origin::mount_graph::MountGraph;
use ogive_text::ShellWord;
use rustix::io::Errno;

use super::exiting_daemon;
use super::unresponsive::{self, Unresponsive};
use crate::exit::{self, Refusal};
use crate::fuse::{self, Unmount};
use crate::mountinfo::{self, MountEntry};

/// Dead mounts on one mount point that are removed at most; crashes do not leave more.
const DEAD_MOUNTS_MAX: usize = 16;

/// How often, and after which pause, to ask a mount again that answers EIO, although no exiting
/// process is visible: it may be in another name space.
const DYING_ASKED: u32 = 10;
const DYING_PAUSE: Duration = Duration::from_millis(20);
/// How often, in addition, while an exiting process is visible: for ten seconds.
const DYING_SEEN: u32 = 500;

/// Links followed when a path is resolved by hand; the kernel's own limit (path_resolution(7)).
const LINKS_MAX: usize = 40;

/// Resolves and checks SRC and MNT, in this order, and removes a dead mount at MNT.
pub(crate) fn settle(source: &Path, mount_point: &Path) -> Result<(PathBuf, PathBuf), Refusal> {
    let source = settle_source(source)?;
    repair(mount_point)?;
    let mount_point = settle_mount_point(mount_point)?;
    check_overlap(&source, &mount_point)?;
    check_cycle(&source, &mount_point)?;
    check_not_mounted(&mount_point)?;
    warn_of_contents(&mount_point);
    Ok((source, mount_point))
}

/// Resolves and checks only MNT, for a source that is not a directory, and removes a dead mount.
pub(crate) fn settle_alone(mount_point: &Path) -> Result<PathBuf, Refusal> {
    repair(mount_point)?;
    let mount_point = settle_mount_point(mount_point)?;
    check_not_mounted(&mount_point)?;
    warn_of_contents(&mount_point);
    Ok(mount_point)
}

fn warn_of_contents(mount_point: &Path) {
    if let Ok(Some(_)) = fs::read_dir(mount_point).map(|mut entries| entries.next()) {
        warn!("{} is not empty; its contents are hidden while mounted", mount_point.display());
    }
}

fn settle_source(source: &Path) -> Result<PathBuf, Refusal> {
    let refuse = |reason: &dyn std::fmt::Display| {
        Refusal::new(
            exit::SOURCE,
            format!("cannot use {} as the source: {reason}", source.display()),
        )
    };
    fs::canonicalize(source)
        // An open for reading reports both "not a directory" and "permission denied".
        .and_then(|path| fs::read_dir(&path).map(|_| path))
        .map_err(|error| match is_dead(&error) {
            true => refuse(&"it is on a dead FUSE mount")
                .hint("mount that again, or unmount it with \"umount --lazy\""),
            false => refuse(&reason(&error)),
        })
}

fn settle_mount_point(mount_point: &Path) -> Result<PathBuf, Refusal> {
    let refuse = |reason: &dyn std::fmt::Display| {
        Refusal::new(
            exit::MOUNT_POINT,
            format!("cannot mount on {}: {reason}", mount_point.display()),
        )
    };
    let path = fs::canonicalize(mount_point).map_err(|error| {
        let refusal = refuse(&reason(&error));
        match error.kind() {
            io::ErrorKind::NotFound => {
                refusal.hint(format!("create it with \"mkdir -p {}\"", word(mount_point)))
            }
            _ => refusal,
        }
    })?;
    match fs::metadata(&path) {
        Ok(metadata) if metadata.is_dir() => Ok(path),
        Ok(_) => Err(refuse(&"not a directory")),
        Err(error) => Err(refuse(&reason(&error))),
    }
}

fn check_overlap(source: &Path, mount_point: &Path) -> Result<(), Refusal> {
    let what = if source == mount_point {
        "it is the source itself"
    } else if mount_point.starts_with(source) {
        "it lies inside the source, so the mount would contain itself"
    } else if source.starts_with(mount_point) {
        "the source lies inside it, so the mount would cover its own source"
    } else {
        return Ok(());
    };
    Err(Refusal::new(
        exit::MOUNT_POINT,
        format!("cannot mount {} on {}: {what}", source.display(), mount_point.display()),
    )
    .hint("choose a mount point outside the source"))
}

/// Refuses a mount that would read from itself through other mounts of ogive.
fn check_cycle(source: &Path, mount_point: &Path) -> Result<(), Refusal> {
    let Ok(graph) = MountGraph::read() else { return Ok(()) };
    let Some(way) = graph.way_to(source, mount_point) else { return Ok(()) };
    let through: Vec<String> =
        way.iter().map(|mount| mount.mount_point.display().to_string()).collect();
    Err(Refusal::new(
        exit::MOUNT_POINT,
        format!(
            "cannot mount {} on {}: the source comes from there, through {}, so the mounts would \
             wait for each other",
            source.display(),
            mount_point.display(),
            through.join(" and ")
        ),
    )
    .hint("choose a mount point outside everything the source comes from"))
}

fn check_not_mounted(mount_point: &Path) -> Result<(), Refusal> {
    let mounts = mountinfo::read().unwrap_or_default();
    match mountinfo::topmost_at(&mounts, mount_point) {
        Some(mount) if mount.is_ogive() => Err(Refusal::new(
            exit::MOUNT_POINT,
            format!(
                "cannot mount on {0}: ogive has already mounted {1} there",
                mount_point.display(),
                mount.source.display()
            ),
        )
        .hint(format!("unmount it first with \"ogive unmount {}\"", word(mount_point)))),
        _ => Ok(()),
    }
}

/// Checks whether the file system at this path answers. It asks for statistics of the file system,
/// because the kernel never caches those; it may have attributes of a process that has ended.
fn probe(path: &Path) -> io::Result<()> {
    past_dying(|| Ok(rustix::fs::statfs(path).map(drop)?), is_any_dying)
}

fn is_any_dying() -> bool {
    exiting_daemon::any_exiting(Path::new("/proc"))
}

/// Asks again while the answer is EIO and a process is exiting, and a few times after that.
fn past_dying<T>(
    mut ask: impl FnMut() -> io::Result<T>,
    mut is_any_dying: impl FnMut() -> bool,
) -> io::Result<T> {
    let (mut asked, mut seen) = (1, 0);
    while asked < DYING_ASKED {
        match ask() {
            Err(error) if Errno::from_io_error(&error) == Some(Errno::IO) => {
                if seen < DYING_SEEN && is_any_dying() {
                    seen += 1;
                } else {
                    asked += 1;
                }
                thread::sleep(DYING_PAUSE);
            }
            answer => return answer,
        }
    }
    ask()
}

/// Whether the error is that of a mount without a process.
pub(crate) fn is_dead(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOTCONN | Errno::CONNABORTED))
}

/// Removes dead FUSE mounts at this path. Later checks handle everything else.
fn repair(mount_point: &Path) -> Result<(), Refusal> {
    for _ in 0..DEAD_MOUNTS_MAX {
        let error = match probe(mount_point) {
            Err(error) if is_dead(&error) => error,
            _ => return Ok(()),
        };
        let refuse = |reason: String| {
            Refusal::new(
                exit::MOUNT_POINT,
                format!("cannot mend {}: {reason}", mount_point.display()),
            )
        };
        let path = resolve_dead(mount_point).map_err(|e| refuse(reason(&e)))?;
        let mounts = mountinfo::read().map_err(|e| refuse(reason(&e)))?;
        let Some(dead) = mountinfo::topmost_at(&mounts, &path).filter(|mount| mount.is_fuse())
        else {
            // The dead mount is above the path, so this command does not remove it.
            return Err(
                refuse(reason(&error)).hint("it is on a dead FUSE mount; unmount that first")
            );
        };
        fuse::unmount(&path, Unmount::Detach).map_err(|e| {
            refuse(format!("its dead {} mount cannot be removed: {}", dead.fstype, reason(&e)))
                .hint(format!("run \"umount --lazy {}\" as root", word(&path)))
        })?;
        warn!("{}: removed a dead {} mount whose process had ended", path.display(), dead.fstype);
    }
    Err(Refusal::new(
        exit::MOUNT_POINT,
        format!(
            "cannot mend {}: more than {DEAD_MOUNTS_MAX} dead mounts are stacked there",
            mount_point.display()
        ),
    ))
}

/// Checks whether the process of an ogive mount answers. Statistics of the file system would wait
/// for the source; the control directory answers without it.
pub(crate) fn probe_ogive(mount_point: &Path) -> Result<io::Result<()>, Unresponsive> {
    let control = mount_point.join(".ogive/mount");
    unresponsive::ask(mount_point, move || {
        past_dying(|| fs::File::open(&control).map(drop), is_any_dying)
    })
}

/// The absolute path without links. A mount of ogive on the way is not accessed, because its source
/// may not answer; the rest of the path is taken as written.
pub(crate) fn resolve(mounts: &[MountEntry], path: &Path) -> io::Result<PathBuf> {
    let reversed = |path: &Path| -> Vec<OsString> {
        path.components().rev().map(|step| step.as_os_str().to_owned()).collect()
    };
    let mut left = reversed(&std::path::absolute(path)?);
    let (mut at, mut links) = (PathBuf::from("/"), 0);
    while let Some(step) = left.pop() {
        if step == ".." {
            at.pop();
            continue;
        }
        let next = at.join(step);
        if mountinfo::topmost_at(mounts, &next).is_some_and(MountEntry::is_ogive) {
            return Ok(left.iter().rev().fold(next, |path, step| path.join(step)));
        }
        match fs::read_link(&next) {
            Ok(_) if links == LINKS_MAX => return Err(Errno::LOOP.into()),
            Ok(target) => {
                links += 1;
                left.extend(reversed(&target));
            }
            // The path is not a link.
            Err(error) if Errno::from_io_error(&error) == Some(Errno::INVAL) => at = next,
            Err(error) => return Err(error),
        }
    }
    Ok(at)
}

/// The absolute path of a dead mount point. `canonicalize` fails there, because it accesses the last
/// step.
fn resolve_dead(path: &Path) -> io::Result<PathBuf> {
    let mut path = std::path::absolute(path)?;
    for _ in 0..LINKS_MAX {
        // A link can be read, because it is outside the mount.
        let target = match fs::read_link(&path) {
            Ok(target) => target,
            Err(_) => break,
        };
        let parent = path.parent().unwrap_or(Path::new("/"));
        path = parent.join(target);
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => Ok(fs::canonicalize(parent)?.join(name)),
        _ => Ok(path),
    }
}

/// Refuses if the mount also appeared inside its source, or inside the source of that. Propagation of
/// mount events between bind mounts can cause this.
pub(crate) fn check_propagation(source: &Path, device: (u32, u32)) -> Result<(), Refusal> {
    let graph = MountGraph::read().unwrap_or_default();
    let inside = |copy: &&Path| copy.starts_with(source) || graph.way_to(source, copy).is_some();
    match graph.mounted_at(device).find(inside) {
        Some(copy) => Err(Refusal::new(
            exit::MOUNT_POINT,
            format!(
                "cannot mount: the mount also appears at {}, inside its own source, through a \
                 shared bind mount",
                copy.display()
            ),
        )
        .hint("choose a mount point outside the source, or make the bind mount private")),
        None => Ok(()),
    }
}

/// A path in a command for the user to type.
pub(crate) fn word(path: &Path) -> ShellWord<'_> {
    ShellWord(path.as_os_str())
}

/// The system's words for an error, without Rust's "(os error 2)".
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    let mut letters = text.chars();
    match letters.next() {
        // "No such file" gets a small letter; "EOF while ..." and other capitals stay.
        Some(first) if !letters.as_str().starts_with(char::is_uppercase) => {
            first.to_lowercase().chain(letters).collect()
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn refused(source: &Path, mount_point: &Path) -> String {
        settle(source, mount_point).unwrap_err().to_string()
    }

    #[test]
    fn two_separate_directories_are_fine_and_come_back_resolved() {
        let dir = tempfile::tempdir().unwrap();
        let base = fs::canonicalize(dir.path()).unwrap();
        fs::create_dir_all(base.join("src")).unwrap();
        fs::create_dir_all(base.join("mnt")).unwrap();
        symlink("mnt", base.join("link")).unwrap();
        let settled = settle(&base.join("src/../src"), &base.join("link")).unwrap();
        assert_eq!(settled, (base.join("src"), base.join("mnt")));
    }

    #[test]
    fn an_exiting_mount_is_asked_until_it_is_dead_and_a_vanished_source_a_few_times() {
        let mut answers = vec![Errno::NOTCONN, Errno::IO, Errno::IO];
        let error =
            past_dying(|| Err::<(), _>(answers.pop().unwrap().into()), || false).unwrap_err();
        assert!(is_dead(&error) && answers.is_empty());
        // While a process is exiting, the mount is asked for as long as that takes.
        for dying in [0, 3 * DYING_ASKED] {
            let (mut asked, mut looks) = (0, 0);
            let error = past_dying(
                || {
                    asked += 1;
                    Err::<(), _>(Errno::IO.into())
                },
                || {
                    looks += 1;
                    looks <= dying
                },
            );
            assert_eq!(Errno::from_io_error(&error.unwrap_err()), Some(Errno::IO));
            assert_eq!(asked, dying + DYING_ASKED);
        }
        assert_eq!(past_dying(|| Ok(7), || true).unwrap(), 7);
    }

    #[test]
    fn missing_paths_and_files_are_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "x").unwrap();
        let missing = dir.path().join("missing");
        assert!(
            refused(&missing, dir.path()).ends_with("as the source: no such file or directory")
        );
        assert!(refused(&file, dir.path()).ends_with("as the source: not a directory"));
        let other = tempfile::tempdir().unwrap();
        assert!(
            refused(other.path(), &missing)
                .contains("no such file or directory; create it with \"mkdir -p")
        );
        assert!(refused(other.path(), &file).ends_with("not a directory"));
    }

    #[test]
    fn a_command_in_a_hint_contains_the_path_as_one_word() {
        let dir = tempfile::tempdir().unwrap();
        let missing = dir.path().join("x; rm -rf y");
        let other = tempfile::tempdir().unwrap();
        let hint = refused(other.path(), &missing);
        assert!(hint.ends_with(&format!("\"mkdir -p '{}'\"", missing.display())), "{hint}");
    }

    #[test]
    fn directories_inside_each_other_are_refused_both_ways() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("inner");
        fs::create_dir(&inner).unwrap();
        assert!(refused(dir.path(), &inner).contains("lies inside the source"));
        assert!(refused(&inner, dir.path()).contains("cover its own source"));
        assert!(refused(&inner, &inner).contains("the source itself"));
    }

    #[test]
    fn a_sibling_whose_name_begins_alike_is_not_inside() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (dir.path().join("data"), dir.path().join("data2"));
        fs::create_dir(&a).unwrap();
        fs::create_dir(&b).unwrap();
        assert!(settle(&a, &b).is_ok());
        assert!(settle(&b, &a).is_ok());
    }

    #[test]
    fn a_mount_of_ogive_is_found_without_an_access() {
        let dir = tempfile::tempdir().unwrap();
        let base = fs::canonicalize(dir.path()).unwrap();
        fs::create_dir_all(base.join("real/mnt/inside")).unwrap();
        symlink("inside", base.join("real/mnt/link")).unwrap();
        symlink("real", base.join("way")).unwrap();
        symlink("../way/mnt/", base.join("real/short")).unwrap();
        symlink("loop", base.join("loop")).unwrap();
        let point = base.join("real/mnt");
        let line = format!("9 1 0:5 / {} rw - fuse.ogive s rw\n", point.display());
        let mounts = mountinfo::parse(line.as_bytes());
        let resolve = |path: &str| resolve(&mounts, &base.join(path));
        for path in ["real/mnt", "way/mnt/", "real/short", "way/../real/./mnt"] {
            assert_eq!(resolve(path).unwrap(), point, "{path}");
        }
        // Later users would follow a link in it without a check.
        assert_eq!(resolve("way/mnt/link").unwrap(), point.join("link"));
        assert_eq!(resolve("real/short/missing/x").unwrap(), point.join("missing/x"));
        assert_eq!(resolve("way").unwrap(), base.join("real"));
        let errno = |path| Errno::from_io_error(&resolve(path).unwrap_err());
        assert_eq!(errno("missing"), Some(Errno::NOENT));
        assert_eq!(errno("loop"), Some(Errno::LOOP));
    }

    #[test]
    fn a_path_is_resolved_without_access_to_its_last_step() {
        let dir = tempfile::tempdir().unwrap();
        let base = fs::canonicalize(dir.path()).unwrap();
        symlink("gone", base.join("link")).unwrap();
        symlink(&base, base.join("dir")).unwrap();
        assert_eq!(resolve_dead(&base.join("link")).unwrap(), base.join("gone"));
        assert_eq!(resolve_dead(&base.join("dir/gone")).unwrap(), base.join("gone"));
        symlink("loop", base.join("loop")).unwrap();
        assert_eq!(resolve_dead(&base.join("loop")).unwrap(), base.join("loop"));
    }

    #[test]
    fn reasons_are_short_and_begin_small() {
        assert_eq!(reason(&Errno::NOENT.into()), "no such file or directory");
        assert_eq!(reason(&Errno::IO.into()), "input/output error");
        assert_eq!(reason(&io::Error::other("EOF reached")), "EOF reached");
    }
}
