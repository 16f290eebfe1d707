//! Tools that count, time or show disks.

use crate::evidence::{Number, Table};
use crate::read::lines::{FORMAT, Format};

/// Attributes of a disk: `smartctl -A`.
pub(crate) static SMARTCTL: Format = Format {
    name: "smartctl",
    heading: "ID# ATTRIBUTE_NAME",
    shapes: &[concat!(
        r"^\d+\s+(?<key>[A-Z][A-Za-z0-9_-]+)\s+0x[0-9a-f]{4}\s+\d+\s+\d+\s+(?:\d+|---)",
        r"\s+.*?\s(?<value>\d+)(?:\s+\(.*\))?$",
    )],
    table: "smart",
    bare: true,
    ..FORMAT
};

/// `pg_test_fsync`: synchronous writes per second.
pub(crate) static PG_TEST_FSYNC: Format = Format {
    name: "pg_test_fsync",
    words: "open_datasync fdatasync fsync fsync_writethrough open_sync",
    shapes: &[concat!(
        r"^(?<scope>open_datasync|fdatasync|fsync|fsync_writethrough|open_sync)",
        r"\s+(?<ops_per_s>[\d.]+)(?: ops/sec)?\s+(\d+)(?: usecs/op)?$",
    )],
    table: "pg_test_fsync",
    each: true,
    ..FORMAT
};

/// `strace -c`: the share of time of each system call. Its heading looks like a prompt.
pub(crate) static STRACE_C: Format = Format {
    name: "strace -c",
    shapes: &[
        r"^\d+[.,]\d+\s+\d+[.,]\d+\s[\d\s]+ total$",
        concat!(
            r"^(?<time_percent>\d+[.,]\d+)\s+(?<seconds>\d+[.,]\d+)\s+(?:(?<usecs_per_call>\d+)\s+)?",
            r"(?<calls>\d+)\s+(?:(?<errors>\d+)\s+)?(?<scope>[a-z_0-9]+)$",
        ),
    ],
    more: &[r"^% time|^[- ]+$"],
    table: "strace_c",
    each: true,
    ..FORMAT
};

/// The maps that bpftrace prints at its end: numbers and histograms.
pub(crate) static BPFTRACE: Format = Format {
    name: "bpftrace",
    shapes: &[
        r"^@(?<scope>\w*(?:\[.*\])?)\s*:\s*(?<value>-?\d+)?$",
        r"^(?<key>[\[(][-\d.KMGTP, ]+[)\]]|\(\.\.\., \S+\))\s+(?<value>\d+)\s+\|[@ ]*\|$",
    ],
    more: &[r"^Attaching |^\^C$"],
    table: "histogram",
    then: Some(histogram),
    ..FORMAT
};

/// Adds the total count, and the share of zeros.
fn histogram(table: &mut Table) {
    let counts = || {
        let buckets = table.figures.iter().filter(|figure| figure.name != "value");
        buckets.filter_map(|one| match one.value {
            Number::Gauge(count) => Some((one.name.starts_with("[0]"), count)),
            _ => None,
        })
    };
    let all: f64 = counts().map(|(_, count)| count).sum();
    let zeros: f64 = counts().filter(|(is_zero, _)| *is_zero).map(|(_, count)| count).sum();
    if all > 0.0 {
        table.derive("count", Some(all));
        table.derive("zero_percent", Some(zeros * 100.0 / all));
    }
}

/// DTrace: aggregations (name and count), and probes with text.
pub(crate) static DTRACE: Format = Format {
    name: "dtrace",
    heading: "CPU ID FUNCTION:NAME",
    shapes: &[
        r"^\d{4} [A-Z][a-z]{2}\s+\d+ \d\d:\d\d:\d\d$",
        concat!(
            r"^(?<dtrace_probe.cpu>\d+)\s+(?<dtrace_probe.id>\d+)",
            r"\s+(?<log>(?<dtrace_probe.scope>[^\s:]+:\S+)\s.*)$",
        ),
        r"^(?<key>\S.*?)\s{2,}(?<value>\d+)$",
        r"^dtrace:",
    ],
    table: "dtrace",
    ..FORMAT
};

/// `strace`: calls by name and error.
pub(crate) static STRACE: Format = Format {
    name: "strace",
    shapes: &[concat!(
        r"^(?:\[pid\s+\d+\]\s+|\d+\s+)?(?:\d+[:.][\d:.]+\s+)?(?<scope>[a-z_][a-z0-9_]*)\(.*\)",
        r"\s*=\s*(?:-?\d+|\?|0x[0-9a-f]+)(?:\s+(?<error>E[A-Z0-9]+)\b)?",
    )],
    more: &[r"^strace: |^\+\+\+|^---"],
    table: "strace",
    count: "calls",
    is_logged: true,
    ..FORMAT
};

/// `time` in any shell and any language: bash and `time -p`, zsh, csh, fish, GNU time with and
/// without `-v`. A bare number is the output of `| wc -l`.
pub(crate) static TIME: Format = Format {
    name: "time",
    shapes: &[
        r"^real\s+(?<run_real>(?:\d+h)?(?:\d+m)?\s*[\d.,]+s?)$",
        r"^user\s+(?<run_user>(?:\d+h)?(?:\d+m)?\s*[\d.,]+s?)$",
        r"^sys\s+(?<run_system>(?:\d+h)?(?:\d+m)?\s*[\d.,]+s?)$",
        concat!(
            r"^(?<run_command>\S.*?)\s+(?<run_user>[\d.,]+)s? user\s+(?<run_system>[\d.,]+)s? system",
            r"\s+\d+% cpu\s+(?<run_real>[\d:.,]+) total$",
        ),
        r"^(?<run_user>[\d.,]+)user (?<run_system>[\d.,]+)system (?<run_real>[\d:.,]+)elapsed",
        r"^(?<run_user>[\d.,]+)u (?<run_system>[\d.,]+)s (?<run_real>[\d:.,]+) [\d.,]+%\s",
        r"^Executed in\s+(?<run_real>[\d.,]+ (?:secs|millis|micros|mins|hours))(?:\s|$)",
        r"^usr time\s+(?<run_user>[\d.,]+ (?:secs|millis|micros|mins|hours))(?:\s|$)",
        r"^sys time\s+(?<run_system>[\d.,]+ (?:secs|millis|micros|mins|hours))(?:\s|$)",
        r#"^Command being timed: *"?(?<run_command>\S.*?)"?$"#,
    ],
    more: &[
        r"^User time \(seconds\): *(?<run_user>\S+)$",
        r"^System time \(seconds\): *(?<run_system>\S+)$",
        r"^Elapsed \(wall clock\) time[^)]*\): *(?<run_real>\S+)$",
        concat!(
            r"^(?:Percent of CPU this job got|Average|Maximum|Major|Minor|Voluntary|Involuntary|Swaps",
            r"|File system|Socket messages|Signals delivered|Page size|Exit status)[^:]*: *\S",
        ),
        r"^\d+inputs\+\d+outputs \(\d+major\+\d+minor\)pagefaults \d+swaps$|^\d+$",
    ],
    ..FORMAT
};

/// `perf stat`: counters of a command, a process or the host.
pub(crate) static PERF_STAT: Format = Format {
    name: "perf stat",
    words: "Performance",
    shapes: &[
        r"^Performance counter stats for '(?<run_command>[^']*)'",
        r"^Performance counter stats for (?<run_watched>(?:process|thread) id '\d+')",
        r"^Performance counter",
    ],
    more: &[
        r"^(?<run_real>\d+[.,]\d+)(?:\s+\+-\s+[\d.,]+)?\s+seconds time elapsed",
        r"^(?<run_user>\d+[.,]\d+)(?:\s+\+-\s+[\d.,]+)?\s+seconds user",
        r"^(?<run_system>\d+[.,]\d+)(?:\s+\+-\s+[\d.,]+)?\s+seconds sys",
        concat!(
            r"^(?<value>\d[\d., ']*)\s+(?:(?:msec|Joules|ns)\s+)?(?<key>[A-Za-z][\w./:=,-]*)",
            r"(?:.*#\s+(?<run_cpus>(?<cpus_utilized>\d+\.\d+)|\d+,\d+)\s+CPUs utilized)?",
            r"(?:.*#\s+(?<insn_per_cycle>[\d.,]+)\s+insns? per cycle)?",
        ),
        r"^<not \w+>|^#",
    ],
    table: "perf_stat",
    ..FORMAT
};

#[cfg(test)]
mod tests {
    use crate::evidence::Evidence;
    use crate::facts::Facts;
    use crate::read::{finish, read_bytes};

    fn gauge(text: &str, table: &str, scope: &str, figure: &str) -> Option<f64> {
        let mut evidence = Evidence::default();
        read_bytes(&mut evidence, "x.txt", text.as_bytes());
        finish(&mut evidence);
        Facts::new(evidence).gauge_of(table, scope, figure).ok()
    }

    #[test]
    fn the_figures_of_disks_are_read() {
        let gstat = "dT: 1.001s  w: 1.000s\n L(q)  ops/s    r/s   kBps   ms/r    w/s   kBps   \
                     ms/w   %busy Name\n   10     95     15    300  120.5     80   1000   99.1  \
                     100.2| ada3\n    0      3      1      4    0.5      2     16    0.2    0.1| \
                     ada0\n";
        assert_eq!(gauge(gstat, "iostat", "ada3", "util_percent"), Some(100.2));
        assert_eq!(gauge(gstat, "iostat", "ada", "r_await"), Some(120.5));
        let smart = "ID# ATTRIBUTE_NAME          FLAG     VALUE WORST THRESH TYPE      UPDATED  \
                     WHEN_FAILED RAW_VALUE\n197 Current_Pending_Sector  0x0032   200   200   000   \
                      Old_age   Always       -       48\n";
        assert_eq!(gauge(smart, "smart", ".*", "Current_Pending_Sector"), Some(48.0));
        let syncs = "        fdatasync                           120.5 ops/sec    8298 usecs/op\n";
        assert_eq!(gauge(syncs, "pg_test_fsync", "sync", "ops_per_s"), Some(120.5));
    }

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
        assert_eq!(gauge(calls, "strace_c", "^fsync$", "time_percent"), Some(97.5));
    }
}
