//! Where the time of a program's system calls goes, as `strace -c` counts it.

use std::sync::LazyLock;

use regex::Regex;

use crate::read::text::number;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;

static CALLS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^\s*(\d+[.,]\d+)\s+(\d+[.,]\d+)\s+(\d+\s+)?(\d+)\s+(?:(\d+)\s+)?([a-z_0-9]+)\s*$")
        .expect("a constant pattern")
});

/// Whether a line is a row of `strace -c`, whose heading looks like a prompt: `% time`.
pub(crate) fn is_call_row(text: &str) -> bool {
    CALLS.is_match(text)
}

/// Reads `strace -c`: the part of the time that each system call took.
pub(crate) fn read_calls(section: &Section<'_>, reading: &mut Reading<'_>) {
    for line in section.lines {
        let text = line.text.trim();
        let rule = text.bytes().all(|byte| byte == b'-' || byte == b' ');
        if rule || text.starts_with("% time") || text.ends_with(" total") {
            continue;
        }
        let Some(found) = CALLS.captures(text) else {
            reading.leave(line);
            continue;
        };
        let mut table = reading.table("strace_c").scope(&found[6]);
        let decimal = |text: &str| number::plain(&text.replace(',', "."));
        table.gauge("time_percent", decimal(&found[1]), line);
        table.gauge("seconds", decimal(&found[2]), line);
        let of = |at: usize| found.get(at).and_then(|cell| number::plain(cell.as_str()));
        table.gauge("usecs_per_call", of(3), line);
        table.gauge("calls", of(4), line);
        table.gauge("errors", of(5), line);
        reading.push(table);
    }
}

#[cfg(test)]
mod tests {
    use crate::evidence::Evidence;
    use crate::facts::Facts;
    use crate::read::{finish, read_bytes};

    #[test]
    fn the_share_of_each_call_is_read() {
        let calls = concat!(
            "% time     seconds  usecs/call     calls    errors syscall\n",
            "------ ----------- ----------- --------- --------- ----------------\n",
            " 97.50   12.345678        2300      5367        12 fsync\n",
            "  2.50    0.300000           3    100000           read\n",
            "------ ----------- ----------- --------- --------- ----------------\n",
            "100.00   12.645678                105367        12 total\n",
        );
        let mut evidence = Evidence::default();
        read_bytes(&mut evidence, "x.txt", calls.as_bytes());
        finish(&mut evidence);
        let share = Facts::new(evidence).gauge_of("strace_c", "^fsync$", "time_percent");
        assert_eq!(share.ok(), Some(97.5));
    }
}
