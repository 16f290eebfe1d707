//! The process of the ogive mount in question. A host may have several mounts, and each has a
//! process called `ogive`.

use crate::evidence::Evidence;

/// The process name of a mount.
const PROGRAM: &str = "ogive";

/// The process number of the mount in question.
fn own(evidence: &Evidence) -> Option<u64> {
    let pid = evidence.parameters.iter().find(|one| one.name == "ogive.pid")?;
    pid.value.parse().ok()
}

/// The name for the process of another mount: program and number.
pub(crate) fn other_mount(evidence: &Evidence, process: u64, name: &str) -> Option<String> {
    let own = own(evidence).filter(|_| name == PROGRAM)?;
    (process != own).then(|| format!("{PROGRAM} (pid {process})"))
}

/// Gives the processes of other mounts names of their own.
pub(crate) fn finish(evidence: &mut Evidence) {
    if own(evidence).is_none() {
        return;
    }
    let mut threads = std::mem::take(&mut evidence.threads);
    for thread in &mut threads {
        let process = thread.process.or(thread.id).filter(|_| thread.children_of.is_none());
        // The threads of a process take the name of its first thread.
        let first = process.filter(|_| thread.id.is_none() || thread.id == process);
        if let Some(other) = first.and_then(|process| other_mount(evidence, process, &thread.name))
        {
            thread.name = other;
        }
    }
    evidence.threads = threads;
}
