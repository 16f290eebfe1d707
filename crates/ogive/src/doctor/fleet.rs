//! `ogive doctor` over many captures: each is a host.
//!
//! Each thread reads one capture after another and keeps only its answer, so memory does not grow
//! with the size of the captures. An unreadable capture is reported and stops nothing.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, Result};
use ogive_doctor::bundle::{self, Loader};
use ogive_doctor::fleet::{Fleet, Host, Unread};
use ogive_doctor::report;
use ogive_doctor::rule::RuleSet;

use super::args::DoctorArgs;
use super::{print, style};
use crate::exit;

/// At most so much of one capture is unpacked. With one thread for each processor this bounds the
/// memory.
const CAPTURE_BYTES_MAX: u64 = 256 << 20;
/// More threads would need too much memory at once.
const THREADS_MAX: usize = 16;

/// Whether the paths are a fleet: by the option, or because they are several captures.
pub(super) fn is_fleet(args: &DoctorArgs) -> bool {
    args.fleet
        || args.paths.len() > 1
            && args.paths.iter().filter(|path| bundle::is_capture(path)).nth(1).is_some()
}

/// Diagnoses all hosts.
pub(super) fn run(rules: &RuleSet, args: &DoctorArgs) -> Result<u8> {
    let (hosts, unread) = diagnosed(rules, &args.paths);
    let fleet = Fleet::new(hosts, unread);
    match &args.html {
        Some(path) if path.as_os_str() == "-" => print(&report::fleet_html(&fleet))?,
        Some(path) => {
            ogive_private::write(path, report::fleet_html(&fleet))
                .with_context(|| format!("cannot write {}", path.display()))?;
            print(&format!("{}\n", fleet.sentence()))?;
        }
        None if args.json => print(&format!("{:#}\n", report::fleet_json(&fleet)))?,
        None => print(&report::fleet(&fleet, args.long, style()))?,
    }
    Ok(if fleet.ill() > 0 {
        exit::CAUSE_FOUND
    } else if fleet.hosts.is_empty() {
        exit::FAILURE
    } else if fleet.without_answer() > 0 || !fleet.unread.is_empty() {
        exit::EVIDENCE
    } else if fleet.open() > 0 {
        exit::CAUSE_OPEN
    } else {
        exit::SUCCESS
    })
}

fn diagnosed(rules: &RuleSet, paths: &[PathBuf]) -> (Vec<Host>, Vec<Unread>) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    let next = AtomicUsize::new(0);
    let done = Mutex::new((Vec::new(), Vec::new()));
    let names = names(paths);
    std::thread::scope(|scope| {
        for _ in 0..threads.min(paths.len()) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let (Some(path), Some(name)) = (paths.get(at), names.get(at)) else { break };
                    let outcome = host(rules, name, path);
                    // A thread that panicked has left only complete entries.
                    let mut done = done.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    match outcome {
                        Ok(host) => done.0.push(host),
                        Err(unread) => done.1.push(unread),
                    }
                }
            });
        }
    });
    done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn host(rules: &RuleSet, name: &str, path: &Path) -> Result<Host, Unread> {
    let unread = |reason: String| Unread { name: name.to_owned(), reason };
    let mut loader = Loader::limited(CAPTURE_BYTES_MAX);
    loader.add_path(path).map_err(|error| unread(error.to_string()))?;
    let evidence = loader.read().evidence;
    if evidence.inputs.iter().all(|input| input.formats.is_empty()) {
        let trouble = evidence.inputs.iter().find_map(|input| input.trouble.clone());
        let unknown = || "no known format was found in it".to_owned();
        return Err(unread(trouble.unwrap_or_else(unknown)));
    }
    Ok(Host::diagnosed(rules, name, evidence))
}

/// File names without the endings of captures, or whole paths where two names are equal.
fn names(paths: &[PathBuf]) -> Vec<String> {
    let short = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_else(|| path.display().to_string());
        let ends = [".tar.zst", ".tar.gz", ".tar", ".ogive"];
        ends.iter().find_map(|end| name.strip_suffix(end)).map_or(name.clone(), str::to_owned)
    };
    let mut seen = std::collections::BTreeMap::new();
    for path in paths {
        *seen.entry(short(path)).or_insert(0_u32) += 1;
    }
    let alone = |name: &String| seen.get(name) == Some(&1);
    let full = |path: &PathBuf| path.display().to_string();
    paths.iter().map(|path| Some(short(path)).filter(alone).unwrap_or_else(|| full(path))).collect()
}
