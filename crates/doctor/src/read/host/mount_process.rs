//! The process of the ogive mount in question. A host may have several mounts, and each has a
//! process called `ogive`.

use crate::evidence::Evidence;

/// What the process of a mount is called.
const PROGRAM: &str = "ogive";

/// The number of the process of the mount that is asked about.
fn own(evidence: &Evidence) -> Option<u64> {
    let pid = evidence.parameters.iter().find(|one| one.name == "ogive.pid")?;
    pid.value.parse().ok()
}

/// What a process is called where it is of another mount: its name and its number.
pub(crate) fn other_mount(evidence: &Evidence, process: u64, name: &str) -> Option<String> {
    let own = own(evidence).filter(|_| name == PROGRAM)?;
    (process != own).then(|| format!("{PROGRAM} (pid {process})"))
}

/// Tells the processes of other mounts apart, by name.
pub(crate) fn finish(evidence: &mut Evidence) {
    if own(evidence).is_none() {
        return;
    }
    let mut threads = std::mem::take(&mut evidence.threads);
    for thread in &mut threads {
        let process = thread.process.or(thread.id).filter(|_| thread.children_of.is_none());
        // Its threads are told by the name of its first.
        let first = process.filter(|_| thread.id.is_none() || thread.id == process);
        if let Some(other) = first.and_then(|process| other_mount(evidence, process, &thread.name))
        {
            thread.name = other;
        }
    }
    evidence.threads = threads;
}
