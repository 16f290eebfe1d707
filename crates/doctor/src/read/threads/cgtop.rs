//! `systemd-cgtop`: its rows are groups of processes, named by path.
//!
//! Groups contain groups. Only a group without a visible child represents the processes in it.

use crate::read::table::{self, formats::lists::GROUPS};
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;

/// Reads `systemd-cgtop`.
pub(crate) fn read_groups(section: &Section<'_>, reading: &mut Reading<'_>) {
    let begun = reading.evidence.threads.len();
    table::read(&GROUPS, section, reading);
    let groups = reading.evidence.threads.split_off(begun);
    let path = |name: &str| name.trim_matches('/').to_owned();
    let mut paths: Vec<(u32, String)> =
        groups.iter().map(|group| (group.list, path(&group.name))).collect();
    paths.sort_unstable();
    for mut group in groups {
        // A group that is new in this report has no percent yet.
        let name = path(&group.name);
        let inner = (group.list, format!("{name}/"));
        let below = paths.partition_point(|other| *other < inner);
        let holds = paths
            .get(below)
            .is_some_and(|other| other.0 == inner.0 && other.1.starts_with(&inner.1));
        // The root contains every group. The rest of its CPU is the kernel's, which cgtop does not
        // show.
        if group.cpu_percent.is_some() && !name.is_empty() && !holds {
            group.name = name.rsplit('/').next().unwrap_or(&name).to_owned();
            reading.evidence.threads.push(group);
        }
    }
}
