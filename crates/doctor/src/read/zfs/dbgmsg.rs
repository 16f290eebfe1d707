//! `/proc/spl/kstat/zfs/dbgmsg` read twice: ZFS's own log is a ring that goes back for hours.
//!
//! Messages that stood there at the first reading are history. Only those that came since are of
//! now, as with any counter. A single reading stays as it is.

use std::collections::HashMap;

use crate::evidence::{Evidence, Statement};
use crate::read::host::{Moment, reading_of};

/// The end of the name of the file.
const FILE: &str = "/spl/kstat/zfs/dbgmsg";

/// Leaves of two readings what the second has beyond the first.
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
    // Of equal messages the first ones are the older ones.
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
