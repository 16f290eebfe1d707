//! `ogive stat`: arcstat's lines, from an ogive mount or from OpenZFS in the kernel.
//!
//! `ogive-kstat` has the figures and their layout. This module chooses the source, the times and
//! the output.

pub(crate) mod args;
pub(crate) mod cached_files;

use std::io::{self, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use ogive_kstat::arcstat::{COLUMNS, Columns, Layout, Report, Snapshot};
use ogive_kstat::{Source, tree};
use signal_hook::consts::{SIGINT, SIGTERM};

use self::args::{Choice, Selection, StatArgs};
use crate::exit::{self, Refusal};
use crate::logger;
use crate::mount::{paths, unresponsive};
use crate::mountinfo::{self, MountEntry};

/// OpenZFS's kstats on Linux.
const KERNEL_KSTATS: &str = "/proc/spl/kstat/zfs";

/// Runs the subcommand.
pub(crate) fn run(args: &StatArgs) -> Result<()> {
    if args.list {
        return list(&mut io::stdout().lock());
    }
    let selection = Selection::new(args)?;
    if args.objects {
        let control = match control(args.kstat.as_deref(), selection.mount_point.as_deref())? {
            Some(control) => control,
            None => return Err(nothing_mounted().into()),
        };
        return cached_files::run(args, &selection, &control, &stop_on_signal()?);
    }
    let source = Arc::new(source(args.kstat.as_deref(), selection.mount_point.as_deref())?);
    let mut before = snapshot(&source)?;
    let columns = match selection.columns {
        Choice::These(columns) => columns,
        Choice::Usual if before.has_costs() => Columns::default().with_costs(),
        Choice::Usual => Columns::default(),
        Choice::All if before.has_costs() => Columns::all(before.has_l2()).with_costs(),
        Choice::All => Columns::all(before.has_l2()),
    };
    let mut lines = Lines::new(args, columns)?;
    let stop = stop_on_signal()?;
    lines.print(&Report::since_start(&before))?;

    let start = Instant::now();
    let mut printed = 1;
    while selection.count.is_none_or(|count| printed < count) {
        // The times are relative to the start, so that the time of printing does not add up.
        let due = start + selection.interval.mul_f64(printed as f64);
        if waited_for_signal(&stop, due) {
            break;
        }
        let now = snapshot(&source)?;
        let seconds = now.seconds_since(&before).unwrap_or(selection.interval.as_secs_f64());
        lines.print(&Report::between(&before, &now, seconds))?;
        before = now;
        printed += 1;
    }
    Ok(())
}

/// Prints the meaning of each column.
fn list(out: &mut dyn Write) -> Result<()> {
    let width = COLUMNS.iter().map(|column| column.name.len()).max().unwrap_or(0);
    for column in COLUMNS {
        writeln!(out, "{:>width$} : {}", column.name, column.description)?;
    }
    Ok(())
}

/// SIGINT and SIGTERM end the lines, with the last one whole and with exit code 0.
pub(crate) fn stop_on_signal() -> Result<Receiver<()>> {
    let (sender, receiver) = mpsc::channel();
    let mut signals =
        signal_hook::iterator::Signals::new([SIGINT, SIGTERM]).context("cannot catch signals")?;
    thread::Builder::new()
        .name("ogive-signals".into())
        .spawn(move || signals.forever().try_for_each(|_| sender.send(())))
        .context("cannot start the thread that waits for signals")?;
    Ok(receiver)
}

/// Sleeps until a moment. Returns whether a signal arrived first.
pub(crate) fn waited_for_signal(stop: &Receiver<()>, until: Instant) -> bool {
    let left = until.saturating_duration_since(Instant::now());
    match stop.recv_timeout(left) {
        Ok(()) => true,
        Err(RecvTimeoutError::Timeout) => false,
        Err(RecvTimeoutError::Disconnected) => {
            thread::sleep(
                until.saturating_duration_since(Instant::now()).min(Duration::from_secs(86_400)),
            );
            false
        }
    }
}

/// The present figures. A mount may hang between two lines.
fn snapshot(source: &Arc<Source>) -> Result<Snapshot> {
    let mount_point = source.path().parent().unwrap_or(Path::new("/")).to_owned();
    let own = Arc::clone(source);
    let answer = unresponsive::ask(&mount_point, move || own.snapshot());
    let cannot = format!("{SHOW} {}", mount_point.display());
    answer.map_err(|silent| silent.refusal(&cannot))?.context("cannot show statistics")
}

/// The source of the figures.
fn source(kstat: Option<&Path>, mount_point: Option<&Path>) -> Result<Source> {
    match control(kstat, mount_point)? {
        Some(directory) => Ok(Source::directory(directory)),
        None if Path::new(KERNEL_KSTATS).exists() => {
            logger::print(&"statistics of OpenZFS in this kernel; no ogive mount exists");
            Ok(Source::kernel())
        }
        None => Err(nothing_mounted().into()),
    }
}

fn nothing_mounted() -> Refusal {
    Refusal::new(
        exit::MOUNT_POINT,
        "cannot show statistics: no ogive mount exists, and this kernel has no OpenZFS",
    )
    .hint("mount something with \"ogive mount SRC MNT\"")
}

/// The directory with the files of a mount: the named one, or the only one.
fn control(kstat: Option<&Path>, mount_point: Option<&Path>) -> Result<Option<PathBuf>> {
    if let Some(directory) = kstat {
        return Ok(Some(kstats(directory)));
    }
    let mounts = mountinfo::read().context("cannot read /proc/self/mountinfo")?;
    let mount_point = match mount_point {
        Some(path) => named_mount(&mounts, path)?,
        None => match only_mount(&mounts)? {
            Some(path) => {
                // On standard error, because programs may read the lines.
                let only = path.display();
                logger::print(&format!("statistics of {only}, the only mount of ogive"));
                path
            }
            None => return Ok(None),
        },
    };
    check_alive(SHOW, &mount_point)?;
    warn_of_source(&mount_point);
    Ok(Some(mount_point.join(".ogive")))
}

/// The directory with the kstats in a named directory: itself, or the one below it that `ogive
/// kstat --dir` writes.
fn kstats(directory: &Path) -> PathBuf {
    let below = directory.join(tree::BELOW_PROC);
    let has = |directory: &Path| directory.join("arcstats").exists();
    if !has(directory) && has(&below) { below } else { directory.to_owned() }
}

/// The mount point of the ogive mount that contains a path.
pub(crate) fn named_mount(mounts: &[MountEntry], path: &Path) -> Result<PathBuf, Refusal> {
    let refuse = |reason: &str| {
        Refusal::new(
            exit::MOUNT_POINT,
            format!("cannot show statistics of {}: {reason}", path.display()),
        )
    };
    let real = paths::resolve(mounts, path).map_err(|error| refuse(&paths::reason(&error)))?;
    // A directory inside a mount means that mount.
    real.ancestors()
        .find_map(|ancestor| mountinfo::topmost_at(mounts, ancestor))
        .filter(|mount| mount.is_ogive())
        .map(|mount| mount.mount_point.clone())
        .ok_or_else(|| {
            refuse("it is not on a mount of ogive")
                .hint("\"findmnt --types fuse.ogive\" lists them")
        })
}

/// Refuses a mount whose process has gone or hangs; `cannot` begins the message.
pub(crate) fn check_alive(cannot: &str, mount_point: &Path) -> Result<(), Refusal> {
    let cannot = format!("{cannot} {}", mount_point.display());
    match paths::probe_ogive(mount_point).map_err(|silent| silent.refusal(&cannot))? {
        Err(error) if paths::is_dead(&error) => {
            Err(Refusal::new(exit::MOUNT_POINT, format!("{cannot}: its process has gone"))
                .hint("mount it again, which takes the dead mount away"))
        }
        _ => Ok(()),
    }
}

/// The beginning of [`check_alive`]'s message.
pub(crate) const SHOW: &str = "cannot show statistics of";
/// The next step where a control file refuses this user.
pub(crate) const AS_MOUNTING_USER: &str = "run it as the user who mounted";

/// Reports a missing source, because its figures would look like those of an idle mount. Also
/// reports a source that is hardly cached, because its figures would look like those of a bad
/// cache.
fn warn_of_source(mount_point: &Path) {
    let text = std::fs::read_to_string(mount_point.join(".ogive/mount")).unwrap_or_default();
    let mount: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    if let Some(error) = mount["source_gone"]["error"].as_str() {
        let source = mount["source"].as_str().unwrap_or_default();
        let point = mount_point.display();
        let meanwhile = match mount["source_gone"]["shows_stale"].as_bool() {
            Some(true) => "cached answers are shown until it answers again",
            _ => "programs get errors until the same file system is back",
        };
        logger::print(&format!("the source {source} of {point} has gone: {error}; {meanwhile}"));
    }
    for doubted in mount["times_doubted"].as_array().into_iter().flatten() {
        let said = |key: &str| doubted[key].as_str().unwrap_or_default();
        logger::print(&format!(
            "contents of {} are not kept between opens: {} (see --trust-times of ogive mount)",
            said("file_system"),
            said("why")
        ));
    }
}

/// The visible ogive mounts.
pub(crate) fn visible(mounts: &[MountEntry]) -> Vec<&Path> {
    mounts
        .iter()
        .filter(|mount| {
            mount.is_ogive() && mountinfo::topmost_at(mounts, &mount.mount_point) == Some(mount)
        })
        .map(|mount| mount.mount_point.as_path())
        .collect()
}

/// The only ogive mount; `None` without one, and an error with a list if there are several.
fn only_mount(mounts: &[MountEntry]) -> Result<Option<PathBuf>, Refusal> {
    let visible = visible(mounts);
    match visible[..] {
        [] => Ok(None),
        [one] => Ok(Some(one.to_owned())),
        _ => {
            let list: Vec<String> = visible.iter().map(|path| path.display().to_string()).collect();
            Err(Refusal::new(
                exit::USAGE,
                format!("cannot show statistics: several ogive mounts exist: {}", list.join(", ")),
            )
            .hint("name one, as in \"ogive stat MNT\""))
        }
    }
}

/// The output of the lines.
fn output(args: &StatArgs) -> Result<Box<dyn Write>> {
    Ok(match &args.output {
        Some(path) => Box::new(
            ogive_private::create(path)
                .with_context(|| format!("cannot write {}", path.display()))?,
        ),
        None => Box::new(io::stdout()),
    })
}

/// The output of the lines and their form.
struct Lines {
    out: Box<dyn Write>,
    form: Form,
    terminal: bool,
}

enum Form {
    Table(Layout),
    Json(Columns),
}

impl Lines {
    fn new(args: &StatArgs, columns: Columns) -> Result<Self> {
        let form = if args.json {
            Form::Json(columns)
        } else {
            Form::Table(Layout::new(columns).separator(&args.separator).raw_numbers(args.raw))
        };
        let terminal = args.output.is_none() && io::stdout().is_terminal();
        Ok(Self { out: output(args)?, form, terminal })
    }

    /// Prints one line, and the header before it if it is due, in one write.
    fn print(&mut self, report: &Report<'_>) -> Result<()> {
        let time = jiff::Zoned::now().strftime("%H:%M:%S").to_string();
        let text = match &mut self.form {
            Form::Table(layout) => {
                if self.terminal
                    && let Ok(size) = rustix::termios::tcgetwinsize(io::stdout())
                {
                    layout.set_terminal_rows(size.ws_row);
                }
                layout.line(report, &time)
            }
            Form::Json(columns) => {
                let mut line = serde_json::to_string(&report.record(columns, &time))?;
                line.push('\n');
                line
            }
        };
        self.out
            .write_all(text.as_bytes())
            .and_then(|()| self.out.flush())
            .context("cannot write statistics")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mounts(points: &[(&str, &str)]) -> Vec<MountEntry> {
        let text: String = points
            .iter()
            .map(|(path, fstype)| format!("9 1 0:5 / {path} rw - {fstype} src rw\n"))
            .collect();
        mountinfo::parse(text.as_bytes())
    }

    #[test]
    fn without_a_name_the_only_mount_is_shown() {
        assert_eq!(only_mount(&mounts(&[("/", "ext4")])).unwrap(), None);
        let one = mounts(&[("/", "ext4"), ("/m", "fuse.ogive")]);
        assert_eq!(only_mount(&one).unwrap(), Some("/m".into()));
        let covered = mounts(&[("/a", "fuse.ogive"), ("/a", "tmpfs"), ("/b", "fuse.ogive")]);
        assert_eq!(only_mount(&covered).unwrap(), Some("/b".into()));
        let error = only_mount(&mounts(&[("/a", "fuse.ogive"), ("/b", "fuse.ogive")])).unwrap_err();
        assert!(error.to_string().contains("/a, /b"), "{error}");
    }

    #[test]
    fn a_directory_inside_a_mount_means_the_mount() {
        let dir = tempfile::tempdir().unwrap();
        let base = std::fs::canonicalize(dir.path()).unwrap();
        std::fs::create_dir_all(base.join("m/inner")).unwrap();
        let point = base.join("m");
        let mounts = mounts(&[("/", "ext4"), (point.to_str().unwrap(), "fuse.ogive")]);
        assert_eq!(named_mount(&mounts, &base.join("m/inner")).unwrap(), point);
        assert!(
            named_mount(&mounts, &base)
                .unwrap_err()
                .to_string()
                .contains("not on a mount of ogive")
        );
    }

    #[test]
    fn the_list_names_every_column_with_its_meaning() {
        let mut out = Vec::new();
        list(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.lines().count(), COLUMNS.len());
        assert!(text.lines().any(|line| line.trim_start().starts_with("hit% : ")), "{text}");
    }
}
