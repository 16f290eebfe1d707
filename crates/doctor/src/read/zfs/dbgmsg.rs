//! `/proc/spl/kstat/zfs/dbgmsg` read twice: ZFS's own log is a ring that goes back for hours.
//!
//! Messages that stood there at the first reading are history. Only those that came since are of
//! now, as with any counter. A single reading stays as it is.

use std::collections::HashMap;

use crate::evidence::{Evidence, Statement};

/// The end of the name of the file.
const FILE: &str = "/spl/kstat/zfs/dbgmsg";

/// Leaves of two readings what the second has beyond the first.
pub(crate) fn finish(evidence: &mut Evidence) {
    let side = |one: &Statement<String>| {
        let (side, path) = one.source.input.split_once('/')?;
        path.ends_with(FILE.trim_start_matches('/')).then_some(side == "end")
    };
    let of_end = evidence.log.iter().any(|one| side(one) == Some(true));
    let was_read_twice = of_end
        || evidence
            .inputs
            .iter()
            .any(|one| one.name.starts_with("end/") && one.name.ends_with(FILE));
    if !was_read_twice {
        return;
    }
    let mut known: HashMap<String, usize> = HashMap::new();
    for one in evidence.log.iter().filter(|one| side(one) == Some(false)) {
        *known.entry(one.value.clone()).or_default() += 1;
    }
    // Of equal messages the first ones are the older ones.
    evidence.log.retain(|one| match side(one) {
        Some(true) => match known.get_mut(&one.value).filter(|count| **count > 0) {
            Some(count) => {
                *count -= 1;
                false
            }
            None => true,
        },
        Some(false) => false,
        None => true,
    });
}

#[cfg(test)]
mod tests {
    use crate::evidence::Evidence;
    use crate::read::{finish, read_bytes};

    #[test]
    fn messages_of_before_the_look_are_history() {
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
