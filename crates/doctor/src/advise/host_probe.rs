//! A probe on this host: its command, and whether its output is in the evidence.

use super::slots::{self, Names};
use super::system;
use crate::facts::Facts;
use crate::rule::{Probe, probe};

/// The command of a probe on this host; `None` where the host cannot run it, or where a name in it
/// is unknown. `pools` allows probes about pools.
pub(crate) fn command(
    probe: &Probe,
    facts: &Facts,
    pools: bool,
    names: &Names<'_>,
) -> Option<String> {
    if probe.pool && !pools {
        return None;
    }
    // A probe looks at one disk or program; of several it takes the first.
    slots::fill(probe.run(&system(facts))?, facts, names).ok()?.into_iter().next()
}

/// Whether the output of a probe is in the evidence.
pub(crate) fn is_given(probe: &Probe, facts: &Facts) -> bool {
    let evidence = facts.evidence();
    let given = probe.given(&system(facts));
    if given.is_empty() {
        let is_shown = |name: &String| evidence.tables.iter().any(|table| table.name == *name);
        return probe.tables.iter().any(is_shown);
    }
    given.iter().any(|name| match name.as_str() {
        // A table without callers answers less than one with them.
        "callers" => facts.profile_kind().1,
        // Counters of Windows may be only those of all CPUs.
        "programs" => !evidence.threads.is_empty(),
        // A list of processes shows less than one of threads.
        "kernel-threads" => evidence
            .threads
            .iter()
            .any(|thread| thread.name != "kernel" && thread.kernel == Some(true)),
        name => {
            let format = |known: &String| known.as_str() == name;
            evidence.inputs.iter().any(|input| input.formats.iter().any(format))
        }
    })
}

/// The probes of a rule on this host without output in the evidence, each with its command.
pub(crate) fn asked(ids: &[String], facts: &Facts, of_zfs: bool) -> Vec<(&'static Probe, String)> {
    let pools = slots::has_pool(facts).unwrap_or(of_zfs);
    let names = Names::default();
    let all = ids.iter().filter_map(|id| probe(id));
    all.filter(|probe| !is_given(probe, facts))
        .filter_map(|probe| Some((probe, command(probe, facts, pools, &names)?)))
        .collect()
}

/// The commands of a rule's probes without output in the evidence, as one text; empty without any.
pub(crate) fn for_host(ids: &[String], facts: &Facts, of_zfs: bool) -> String {
    let all = asked(ids, facts, of_zfs);
    all.into_iter().map(|(_, run)| run).collect::<Vec<_>>().join("; ")
}
