//! `ogive doctor`: where the CPU went, and why.
//!
//! `ogive-doctor` has the logic, and `ogive-capture` observes the host. This module chooses the
//! input and prints the answer.

pub(crate) mod args;
mod compare;
mod fleet;

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use ogive_capture::Subject;
use ogive_doctor::bundle::{Loaded, Loader};
use ogive_doctor::diagnose::VerdictKind;
use ogive_doctor::report::{self, Style};
use ogive_doctor::rule::{self, RuleSet};
use ogive_profile::Profile;
use ogive_profile::roles::Roles;
use ogive_profile::write::{self, Output, Page};

use self::args::DoctorArgs;
use crate::capture;
use crate::exit::{self, Refusal};
use crate::mount::paths;
use crate::mountinfo;
use crate::profile::progress::Progress;
use crate::stat;

/// Runs the subcommand and returns the exit code.
pub(crate) fn run(args: &DoctorArgs) -> Result<u8> {
    let mut rules = RuleSet::bundled().context("cannot use the built-in rules")?;
    if let Some(directory) = &args.rules {
        rules.add_directory(directory).context("cannot use the rules")?;
    }
    if args.list {
        return print(&report::list(&rules)).map(|()| exit::SUCCESS);
    }
    if let Some(cause) = &args.explain {
        return explain(&rules, cause);
    }
    if args.lint {
        return lint(&rules);
    }
    if args.compare {
        return compare::run(&rules, args);
    }
    if fleet::is_fleet(args) {
        return fleet::run(&rules, args);
    }
    let (loaded, looking_percent) = load(args)?;
    let flame_graph = args.html.as_ref().and(loaded.profile.as_ref()).and_then(flame_graph);
    let mut diagnosis = ogive_doctor::diagnose(&rules, loaded.evidence);
    diagnosis.overview.looking_percent = looking_percent;
    match &args.html {
        Some(path) => {
            write_page(path, &report::html(&diagnosis, flame_graph.as_deref()), &diagnosis)?
        }
        None if args.json => print(&format!("{:#}\n", report::json(&diagnosis)))?,
        None if args.long => print(&report::text(&diagnosis, style()))?,
        None => print(&report::short(&diagnosis, style()))?,
    }
    Ok(match diagnosis.verdict.kind {
        VerdictKind::Cause => exit::CAUSE_FOUND,
        VerdictKind::Open => exit::CAUSE_OPEN,
        VerdictKind::Insufficient => exit::EVIDENCE,
        _ => exit::SUCCESS,
    })
}

/// The evidence of files, a mount, or this host; and the cost of observing it, in percent of one CPU.
fn load(args: &DoctorArgs) -> Result<(Loaded, Option<f64>)> {
    args.paths.iter().try_for_each(|path| check_answers(path))?;
    if let [path] = args.paths.as_slice()
        && let Some(mount_point) = ogive_mount(path)
    {
        stat::check_alive("cannot diagnose", &mount_point)?;
        check_readable(&mount_point)?;
        return Ok(live(&Subject::Mount(mount_point), args));
    }
    if args.paths.is_empty() {
        return Ok(live(&Subject::Host, args));
    }
    let mut loader = Loader::new();
    for path in &args.paths {
        loader.add_path(path).map_err(|error| Refusal::new(exit::FAILURE, error.to_string()))?;
    }
    let what = args.paths.first().map_or_else(String::new, |path| path.display().to_string());
    let mut progress = Progress::bytes(&what, None);
    let loaded = loader.read_telling(&mut |bytes| progress.add(bytes));
    progress.end();
    let looking_percent = loaded.looking_percent;
    Ok((loaded, looking_percent))
}

/// Refuses a mount whose counters this user may not read: the answer would be about the host alone.
fn check_readable(mount_point: &Path) -> Result<(), Refusal> {
    let file = mount_point.join(".ogive/arcstats");
    match std::fs::File::open(&file) {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            let what = format!("cannot diagnose {}: {error}", mount_point.display());
            Err(Refusal::new(exit::MOUNT_POINT, what).hint(stat::AS_MOUNTING_USER))
        }
        _ => Ok(()),
    }
}

/// A mount does not answer if its daemon or server is silent for so long.
const SILENT_AFTER: Duration = Duration::from_secs(1);

/// Refuses a path on a mount that does not answer, because a read there would hang. Mounts of ogive
/// are checked through their control directory instead.
fn check_answers(path: &Path) -> Result<(), Refusal> {
    let (Ok(whole), Ok(mounts)) = (std::path::absolute(path), mountinfo::read()) else {
        return Ok(());
    };
    let mount = whole.ancestors().find_map(|above| mountinfo::topmost_at(&mounts, above));
    let is_served = |mount: &&mountinfo::MountEntry| {
        mount.is_fuse() && !mount.is_ogive() || mount.fstype.starts_with("nfs")
    };
    let Some(mount) = mount.filter(is_served) else { return Ok(()) };
    let (send, receive) = std::sync::mpsc::sync_channel(1);
    let asked = std::thread::Builder::new().name("ogive-asks".into()).spawn(move || {
        // A late answer has no receiver.
        let _ = send.send(std::fs::metadata(&whole).is_ok());
    });
    if asked.is_err() || receive.recv_timeout(SILENT_AFTER).is_ok() {
        return Ok(());
    }
    let point = mount.mount_point.display();
    let what = format!("cannot read {}: the mount {point} does not answer", path.display());
    let hint = "\"sudo ogive doctor\" observes this host and names what hangs";
    Err(Refusal::new(exit::MOUNT_POINT, what).hint(hint))
}

fn live(subject: &Subject, args: &DoctorArgs) -> (Loaded, Option<f64>) {
    capture::say_looking(args.duration);
    let look = ogive_capture::look(subject, args.duration);
    for note in &look.notes {
        log::warn!("{note}");
        eprintln_line(&format!("ogive: {note}"));
    }
    (look.loaded, look.looking_percent)
}

/// The mount point, if the path is on a mount of ogive and names a directory.
fn ogive_mount(path: &Path) -> Option<PathBuf> {
    let mounts = mountinfo::read().ok()?;
    let real = paths::resolve(&mounts, path).ok()?;
    let mount = mountinfo::topmost_at(&mounts, &real)?;
    mount.is_ogive().then(|| mount.mount_point.clone())
}

fn explain(rules: &RuleSet, cause: &str) -> Result<u8> {
    if let Some(rule) = rules.get(cause) {
        return print(&report::explain(rule)).map(|()| exit::SUCCESS);
    }
    let near: Vec<&str> =
        rules.iter().map(|rule| rule.text.id.as_str()).filter(|id| id.contains(cause)).collect();
    let hint = if near.is_empty() {
        "\"ogive doctor --list\" lists them".to_owned()
    } else {
        format!("did you mean {}?", near.join(" or "))
    };
    Err(Refusal::new(exit::USAGE, format!("there is no cause called {cause}")).hint(hint).into())
}

fn lint(rules: &RuleSet) -> Result<u8> {
    let faults = rule::lint(rules);
    if faults.is_empty() {
        print(&format!("{} rules, nothing wrong\n", rules.len()))?;
        return Ok(exit::SUCCESS);
    }
    print(&(faults.join("\n") + "\n"))?;
    Ok(exit::FAILURE)
}

fn style() -> Style {
    let terminal = std::io::stdout().is_terminal();
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let measured =
        rustix::termios::tcgetwinsize(std::io::stdout()).ok().map(|size| usize::from(size.ws_col));
    let width = columns.or(measured.filter(|width| *width > 0)).unwrap_or(100).clamp(60, 160);
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    Style { width, colour: terminal && !plain }
}

fn print(text: &str) -> Result<()> {
    std::io::stdout().lock().write_all(text.as_bytes()).context("cannot write the answer")
}

fn eprintln_line(text: &str) {
    // With standard error closed, there is nowhere to report to.
    let _ = writeln!(std::io::stderr().lock(), "{}", ogive_text::one_line(text));
}

fn write_page(path: &Path, page: &str, diagnosis: &ogive_doctor::Diagnosis) -> Result<()> {
    if path.as_os_str() == "-" {
        return print(page);
    }
    ogive_private::write(path, page).with_context(|| format!("cannot write {}", path.display()))?;
    print(&format!("{}\n", diagnosis.verdict.sentence))
}

/// The flame graph of a profile as a page.
fn flame_graph(profile: &Profile) -> Option<String> {
    let view = profile.busy();
    let roles = Roles::bundled();
    let page = Page { title: "ogive doctor", view: &view, baseline: None, roles: &roles };
    let mut out = Vec::new();
    write::write(&mut out, Output::Html, &page).ok()?;
    String::from_utf8(out).ok()
}
