//! The process of the ogive mount in question. A host may have several mounts, and each has a
//! process called `ogive`, unless its program has another name.

use crate::evidence::Evidence;

/// The process name of a mount.
const PROGRAM: &str = "ogive";
/// A thread that each mount has. Its name proves that a process number is of the same process
/// table: a mount in a container knows its number there.
const MOUNT_THREAD: &str = "fuse_session";

/// The process number of the mount in question.
fn own(evidence: &Evidence) -> Option<u64> {
    let pid = evidence.parameters.iter().find(|one| one.name == "ogive.pid")?;
    pid.value.parse().ok()
}

/// Whether a process has the thread of a mount.
fn is_mount(evidence: &Evidence, process: u64) -> bool {
    let mut tasks = evidence.tasks.iter();
    let mut threads = evidence.threads.iter();
    tasks.any(|task| task.process == Some(process) && task.name == MOUNT_THREAD)
        || threads.any(|one| one.process == Some(process) && one.name == MOUNT_THREAD)
}

/// The name for a process, if its program's name misleads: `ogive` for the mount in question, and
/// program and number for another mount.
pub(crate) fn clear_name(evidence: &Evidence, process: u64, name: &str) -> Option<String> {
    let own = own(evidence)?;
    if process == own {
        return (name != PROGRAM && is_mount(evidence, own)).then(|| PROGRAM.to_owned());
    }
    (name == PROGRAM).then(|| format!("{PROGRAM} (pid {process})"))
}

/// Names the process of the mount in question `ogive`, and gives other mounts names of their own.
pub(crate) fn finish(evidence: &mut Evidence) {
    if own(evidence).is_none() {
        return;
    }
    let names = evidence.threads.iter().map(|thread| {
        let process = thread.process.or(thread.id).filter(|_| thread.children_of.is_none());
        // The threads of a process take the name of its first thread.
        let first = process.filter(|_| thread.id.is_none() || thread.id == process);
        first.and_then(|process| clear_name(evidence, process, &thread.name))
    });
    let names: Vec<Option<String>> = names.collect();
    for (thread, name) in evidence.threads.iter_mut().zip(names) {
        thread.name = name.unwrap_or_else(|| std::mem::take(&mut thread.name));
    }
}
