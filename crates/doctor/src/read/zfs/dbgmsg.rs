//! `/proc/spl/kstat/zfs/dbgmsg` read twice. ZFS's own log is a ring that reaches back for hours.
//!
//! Messages that were there at the first reading are history; only the later ones describe the
//! present, as with any counter. A single reading stays whole.

use std::collections::HashMap;

use crate::evidence::{Evidence, Statement};
use crate::read::host::{Moment, reading_of};

/// The end of the file's path.
const FILE: &str = "/spl/kstat/zfs/dbgmsg";

/// Of two readings, keeps only the messages that the second adds.
pub(crate) fn finish(evidence: &mut Evidence) {
    let moment = |input: &str| reading_of(input).0.filter(|_| input.ends_with(FILE));
    if evidence.inputs.iter().all(|input| moment(&input.name) != Some(Moment::End)) {
        return;
    }
    let mut known: HashMap<String, usize> = HashMap::new();
    let is_early = |one: &&Statement<String>| moment(&one.source.input) == Some(Moment::Start);
    for one in evidence.log.iter().filter(is_early) {
        *known.entry(one.value.clone()).or_default() += 1;
    }
    // Among equal messages, the first ones are the oldest.
    evidence.log.retain(|one| match moment(&one.source.input) {
        Some(Moment::Start) => false,
        Some(Moment::End) => match known.get_mut(&one.value).filter(|count| **count > 0) {
            Some(count) => {
                *count -= 1;
                false
            }
            None => true,
        },
        None => true,
    });
}

#[cfg(test)]
mod tests {
    use crate::evidence::Evidence;
    use crate::read::{finish, read_bytes};

    #[test]
    fn messages_older_than_the_capture_are_dropped() {
        const OLD: &str =
            "1795736586   metaslab.c:1717:spa_set_allocator(): spa allocator: dynamic";
        const DONE: &str =
            "1795736600   dsl_scan.c:3433:dsl_process_async_destroys(): freed 66 blocks";
        let log_of = |files: &[(&str, &[&str])]| {
            let mut evidence = Evidence::default();
            for (moment, lines) in files {
                let text = format!("timestamp    message\n{}\n", lines.join("\n"));
                let name = format!("{moment}/proc/spl/kstat/zfs/dbgmsg");
                read_bytes(&mut evidence, &name, text.as_bytes());
            }
            finish(&mut evidence);
            evidence.log.len()
        };
        assert_eq!(log_of(&[("start", &[OLD, DONE]), ("end", &[OLD, DONE])]), 0);
        assert_eq!(log_of(&[("end", &[OLD, DONE, DONE]), ("start", &[OLD, DONE])]), 1);
        assert_eq!(log_of(&[("start", &[OLD, DONE])]), 2);
    }
}
