//! A probe on this host: its command, and whether its output was given.

use super::slots::{self, Names};
use super::system;
use crate::facts::Facts;
use crate::rule::{Probe, probe};

/// The command of a probe on this host; `None` where nothing of it can be run here, or where a
/// name in it is not known. `pools` says whether it may be about pools.
pub(crate) fn command(
    probe: &Probe,
    facts: &Facts,
    pools: bool,
    names: &Names<'_>,
) -> Option<String> {
    if probe.pool && !pools {
        return None;
    }
    // One disk or program is looked at; where several are meant, the first is.
    slots::fill(probe.run(&system(facts))?, facts, names).ok()?.into_iter().next()
}

/// Whether the output of a probe was given.
pub(crate) fn is_given(probe: &Probe, facts: &Facts) -> bool {
    let evidence = facts.evidence();
    let given = probe.given(&system(facts));
    if given.is_empty() {
        let is_shown = |wanted: &String| evidence.tables.iter().any(|table| table.name == *wanted);
        return probe.tables.iter().any(is_shown);
    }
    given.iter().any(|wanted| match wanted.as_str() {
        // A table without callers answers less than one with them.
        "callers" => facts.profile_kind().1,
        // Counters of Windows may be those of all CPUs alone.
        "programs" => !evidence.threads.is_empty(),
        // Nor does a list of processes tell what one of threads would.
        "kernel-threads" => evidence
            .threads
            .iter()
            .any(|thread| thread.name != "kernel" && thread.kernel == Some(true)),
        wanted => {
            let format = |known: &String| known.as_str() == wanted;
            evidence.inputs.iter().any(|input| input.formats.iter().any(format))
        }
    })
}

/// The probes of a rule on this host whose output was not given: each with its command.
pub(crate) fn asked(ids: &[String], facts: &Facts, of_zfs: bool) -> Vec<(&'static Probe, String)> {
    let pools = slots::has_pool(facts).unwrap_or(of_zfs);
    let names = Names::default();
    let all = ids.iter().filter_map(|id| probe(id));
    all.filter(|probe| !is_given(probe, facts))
        .filter_map(|probe| Some((probe, command(probe, facts, pools, &names)?)))
        .collect()
}

/// The commands of a rule's probes whose output was not given, as one text; empty where there is
/// none.
pub(crate) fn for_host(ids: &[String], facts: &Facts, of_zfs: bool) -> String {
    let all = asked(ids, facts, of_zfs);
    all.into_iter().map(|(_, run)| run).collect::<Vec<_>>().join("; ")
}
