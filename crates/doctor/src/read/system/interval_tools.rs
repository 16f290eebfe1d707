//! Tools that print a row an interval: `vmstat` (Linux, FreeBSD, illumos), `sar`, `mpstat`,
//! `iostat`, `atopsar`.
//!
//! vmstat's and iostat's first row is the average since boot. Of several rows the median goes into
//! one table; every row also goes into a table `<tool>_row`, so that no figure is lost.

use crate::evidence::{CpuUse, OneCpu};
use crate::read::text::clean::Line;
use crate::read::text::columns::{Columns, interval, median, row_under};
use crate::read::text::number;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;

struct Row<'a, 'l> {
    line: &'a Line<'l>,
    time_s: Option<f64>,
    since_boot: bool,
    values: Vec<(String, f64)>,
}

/// Puts rows into the evidence: medians of all but the first (if that one is of another kind).
fn push(
    tool: &str,
    scope: Option<&str>,
    rows: &[Row<'_, '_>],
    first_is_since_boot: bool,
    reading: &mut Reading<'_>,
) {
    let Some(last) = rows.last() else { return };
    for (index, row) in rows.iter().enumerate() {
        let mut table = reading.table(&format!("{tool}_row")).taken(row.time_s);
        table.table.scope = scope.map(str::to_owned).or_else(|| Some(format!("{}", index + 1)));
        for (name, value) in &row.values {
            put(&mut table, name, *value, row.line);
        }
        reading.push(table);
    }
    let used = if first_is_since_boot && rows.len() > 1 { &rows[1..] } else { rows };
    let mut table = reading.table(tool);
    table.table.scope = scope.map(str::to_owned);
    for (name, _) in &last.values {
        let values: Vec<f64> = used
            .iter()
            .filter_map(|row| {
                row.values.iter().find(|(other, _)| other == name).map(|(_, value)| *value)
            })
            .collect();
        if let Some(middle) = median(&values) {
            put(&mut table, name, middle, last.line);
        }
    }
    reading.push(table);
}

/// Columns that are rates by what they are called.
fn put(table: &mut crate::read::text::reading::Rows, name: &str, value: f64, line: &Line<'_>) {
    const RATES: [&str; 22] = [
        "in", "cs", "sy_calls", "si", "so", "bi", "bo", "re", "mf", "pi", "po", "fr", "sr", "de",
        "flt", "xcal", "intr", "csw", "syscl", "migr", "minf", "mjf",
    ];
    const SAR_RATES: [&str; 12] = [
        "pgpgin", "pgpgout", "fault", "majflt", "pgfree", "pgscank", "pgscand", "pgsteal", "proc",
        "cswch", "pswpin", "pswpout",
    ];
    if RATES.contains(&name) || SAR_RATES.contains(&name) || name.ends_with("_per_s") {
        table.rate(name, Some(value), line);
    } else {
        table.gauge(name, Some(value), line);
    }
}

/// Whether a line names the columns of vmstat.
pub(crate) fn is_vmstat_heading(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.first() == Some(&"r")
        && words.get(1) == Some(&"b")
        && words.contains(&"us")
        && words.contains(&"id")
        || words.first() == Some(&"kthr")
        || text.trim_start().trim_start_matches('-').starts_with("procs") && text.contains("memory")
}

/// The last columns of any vmstat that are no time.
const VMSTAT_LAST: [&str; 6] = ["id", "wa", "st", "gu", "us", "sy"];

/// Reads vmstat.
pub(crate) fn read_vmstat(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut columns: Vec<String> = Vec::new();
    let mut rows: Vec<Row<'_, '_>> = Vec::new();
    for line in section.lines {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        if words.first() == Some(&"r") && words.contains(&"us") {
            // With -t the last column is the time, under the name of its zone.
            let last = words.iter().rposition(|word| VMSTAT_LAST.contains(word));
            columns = vmstat_names(&words[..last.map_or(words.len(), |at| at + 1)]);
            continue;
        }
        if words.first().is_none_or(|word| matches!(*word, "procs" | "kthr" | "r" | "--procs--"))
            || line.text.contains("-memory-")
        {
            continue;
        }
        if columns.is_empty()
            && words.len() == 17
            && words.iter().all(|word| number::plain(word).is_some())
        {
            columns = vmstat_names(
                &"r b swpd free buff cache si so bi bo in cs us sy id wa st"
                    .split(' ')
                    .collect::<Vec<_>>(),
            );
        }
        let numbers: Vec<Option<f64>> = words.iter().map(|word| number::count(word)).collect();
        if columns.is_empty()
            || numbers.len() < columns.len()
            || numbers.iter().take(columns.len()).any(Option::is_none)
        {
            reading.leave(line);
            continue;
        }
        let values =
            columns.iter().zip(numbers).filter_map(|(name, value)| Some((name.clone(), value?)));
        rows.push(Row {
            line,
            time_s: None,
            since_boot: rows.is_empty(),
            values: values.collect(),
        });
    }
    for row in &rows {
        let value = |name: &str| {
            row.values.iter().find(|(other, _)| other == name).map(|(_, value)| *value)
        };
        let (Some(user), Some(system), Some(idle)) = (value("us"), value("sy"), value("id")) else {
            continue;
        };
        let source = reading.at(row.line);
        reading.evidence.cpu.push(CpuUse {
            user,
            system,
            idle,
            iowait: value("wa").unwrap_or(0.0),
            interrupt: 0.0,
            steal: value("st").unwrap_or(0.0),
            since_boot: row.since_boot,
            source,
        });
    }
    push("vmstat", None, &rows, true, reading);
}

/// Names by column; the second `sy` of illumos and FreeBSD is the CPU, the first the system calls.
fn vmstat_names(words: &[&str]) -> Vec<String> {
    let system_calls = words.iter().filter(|word| **word == "sy").count() > 1;
    let mut first = true;
    let name = |word: &&str| match *word {
        "sy" if system_calls && std::mem::take(&mut first) => "sy_calls".to_owned(),
        word => word.to_owned(),
    };
    words.iter().map(name).collect()
}

/// Splits the time of day off a row of the sysstat tools: `(seconds, rest)`.
fn timed(text: &str) -> Option<(Option<f64>, &str)> {
    let text = text.trim();
    let (clock, rest) = text.split_once(char::is_whitespace)?;
    let rest = rest.trim_start();
    // `Average:`, `Moyenne :`, `Durchschn.:`: a word where the time stands.
    let word = clock.trim_end_matches([':', '.']);
    let is_word = word.chars().count() >= 3 && word.chars().all(char::is_alphabetic);
    if is_word && clock.ends_with(':') {
        return Some((None, rest));
    }
    if let Some(rest) = rest.strip_prefix(": ").filter(|_| is_word) {
        return Some((None, rest.trim_start()));
    }
    for (printed, meridiem) in [("AM", "AM"), ("PM", "PM"), ("am", "AM"), ("pm", "PM")] {
        if let Some(rest) = rest.strip_prefix(printed).filter(|rest| rest.starts_with(' ')) {
            return Some((Some(number::time_of_day(&format!("{clock} {meridiem}"))?), rest));
        }
    }
    Some((Some(number::time_of_day(clock)?), rest))
}

/// Whether a line is the heading of sar: a time, then names that are rates or percentages.
pub(crate) fn is_sar_heading(text: &str) -> bool {
    // `Device:` stands where an average's name would.
    if text.contains("rrqm/s") {
        return false;
    }
    timed(text).is_some_and(|(_, rest)| {
        let words: Vec<&str> = rest.split_whitespace().collect();
        words
            .iter()
            .filter(|word| {
                word.ends_with("/s")
                    || word.starts_with('%')
                    || word.starts_with("kb")
                    || word.ends_with("-sz")
            })
            .count()
            >= 2
            && words.iter().all(|word| number::plain(word).is_none())
            && !text.contains("Command")
    })
}

fn sar_name(column: &str) -> String {
    match (column.strip_prefix('%'), column.strip_suffix("/s")) {
        (Some(name), _) => format!("{name}_percent"),
        (_, Some(name)) if SAR_PLAIN.contains(&name) => name.to_owned(),
        (_, Some(name)) => format!("{name}_per_s"),
        _ => column.to_owned(),
    }
}

/// Rates known by their bare names.
const SAR_PLAIN: [&str; 12] = [
    "pgpgin", "pgpgout", "fault", "majflt", "pgfree", "pgscank", "pgscand", "pgsteal", "proc",
    "cswch", "pswpin", "pswpout",
];

/// Reads sar (any option) and mpstat: a time, an optional CPU or device, figures.
pub(crate) fn read_sar(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut columns: Vec<&str> = Vec::new();
    let mut heading_s = None;
    let mut rows: Vec<(Option<String>, Row<'_, '_>)> = Vec::new();
    for line in section.lines {
        let text = line.text.trim();
        if text.is_empty() || text.starts_with("Linux ") || text.contains("LINUX RESTART") {
            continue;
        }
        let Some((time_s, rest)) = timed(text) else {
            reading.leave(line);
            continue;
        };
        if rest
            .split_whitespace()
            .any(|word| word.starts_with('%') || word.ends_with("/s") || word.ends_with("-sz"))
        {
            columns = rest.split_whitespace().collect();
            heading_s = time_s;
            continue;
        }
        let words: Vec<&str> = rest.split_whitespace().collect();
        if columns.is_empty() || words.len() != columns.len() {
            reading.leave(line);
            continue;
        }
        let labelled = matches!(columns[0], "CPU" | "DEV" | "IFACE" | "INTR" | "TTY");
        let scope = labelled.then(|| words[0].to_owned());
        let values = columns
            .iter()
            .zip(&words)
            .skip(usize::from(labelled))
            .filter_map(|(column, word)| Some((sar_name(column), number::plain(word)?)))
            .collect();
        // Without an interval mpstat prints its heading at the moment of its only rows.
        let since_boot = time_s.is_some() && time_s == heading_s;
        rows.push((scope, Row { line, time_s, since_boot, values }));
    }
    single_cpus(&rows, reading);
    let only_averages = rows.iter().all(|(_, row)| row.time_s.is_none());
    rows.retain(|(_, row)| only_averages || row.time_s.is_some());
    let mut scopes: Vec<Option<String>> = Vec::new();
    for (scope, row) in &rows {
        sar_cpu(scope.as_deref(), row, reading);
        sar_load(row, reading);
        if !scopes.contains(scope) {
            scopes.push(scope.clone());
        }
    }
    for scope in scopes {
        let (these, others): (Vec<_>, Vec<_>) =
            rows.into_iter().partition(|(other, _)| *other == scope);
        rows = others;
        let these: Vec<_> = these.into_iter().map(|(_, row)| row).collect();
        push("sar", scope.as_deref(), &these, false, reading);
        disk(scope.as_deref(), &these, reading);
    }
}

/// A disk of sar -d is one of iostat as well: what its columns are called is the same.
fn disk(scope: Option<&str>, rows: &[Row<'_, '_>], reading: &mut Reading<'_>) {
    let of_disk = |row: &Row<'_, '_>| row.values.iter().any(|(name, _)| name == "util_percent");
    if scope.is_some() && rows.iter().all(of_disk) {
        push("iostat", scope, rows, false, reading);
    }
}

/// `all` rows of sar -u and mpstat are the use of all CPUs.
fn sar_cpu(scope: Option<&str>, row: &Row<'_, '_>, reading: &mut Reading<'_>) {
    if let Some(used) = sar_use(row, reading).filter(|_| scope == Some("all")) {
        reading.evidence.cpu.push(used);
    }
}

/// A row of sar -q: the load, and how many wait for disks.
fn sar_load(row: &Row<'_, '_>, reading: &mut Reading<'_>) {
    let value =
        |name: &str| row.values.iter().find(|(other, _)| other == name).map(|(_, value)| *value);
    let loads = [value("ldavg-1"), value("ldavg-5"), value("ldavg-15")];
    if let [Some(one), Some(five), Some(fifteen)] = loads {
        reading.evidence.host.load = Some(reading.said([one, five, fifteen], row.line));
        let mut table = reading.table("stat");
        table.gauge("procs_blocked", value("blocked"), row.line);
        reading.push(table);
    }
}

/// The use of each CPU in the last interval, or of the average where nothing else is shown.
fn single_cpus(rows: &[(Option<String>, Row<'_, '_>)], reading: &mut Reading<'_>) {
    let begun = reading.evidence.single_cpus.len();
    for averages in [true, false] {
        for (scope, row) in rows.iter().filter(|(_, row)| row.time_s.is_none() == averages) {
            let number = scope.as_deref().filter(|scope| scope.parse::<u32>().is_ok());
            let (Some(name), Some(used)) = (number, sar_use(row, reading)) else { continue };
            let known = &mut reading.evidence.single_cpus[begun..];
            match known.iter_mut().find(|one| one.name == name) {
                Some(one) => one.used = used,
                None => reading.evidence.single_cpus.push(OneCpu { name: name.to_owned(), used }),
            }
        }
    }
}

/// A row of sar -u or mpstat as the use it tells; a row of anything else is none.
fn sar_use(row: &Row<'_, '_>, reading: &Reading<'_>) -> Option<CpuUse> {
    let value = |names: &[&str]| {
        row.values.iter().find(|(name, _)| names.contains(&name.as_str())).map(|(_, value)| *value)
    };
    let sum = |names: &[&str]| {
        row.values
            .iter()
            .filter(|(name, _)| names.contains(&name.as_str()))
            // An empty sum is minus zero, which prints as such.
            .fold(0.0, |sum, (_, value)| sum + value)
    };
    let system = value(&["system_percent", "sys_percent"])?;
    let idle = value(&["idle_percent"])?;
    Some(CpuUse {
        // What guests use is not in the user's part of these tools.
        user: sum(&[
            "user_percent",
            "usr_percent",
            "nice_percent",
            "guest_percent",
            "gnice_percent",
        ]),
        system,
        idle,
        iowait: sum(&["iowait_percent"]),
        interrupt: sum(&["irq_percent", "soft_percent"]),
        steal: sum(&["steal_percent"]),
        since_boot: row.since_boot,
        source: reading.at(row.line),
    })
}

/// Reads illumos `mpstat`: one row a CPU, `xcal` (cross calls) among the columns.
pub(crate) fn read_mpstat_illumos(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut columns: Option<Columns<'_>> = None;
    let mut all: Vec<Row<'_, '_>> = Vec::new();
    for line in section.lines {
        let text = line.text.trim();
        if text.starts_with("CPU ") && text.contains("xcal") {
            columns = Some(Columns::of(text));
            continue;
        }
        let Some((columns, cells)) = row_under(&columns, text) else {
            reading.leave(line);
            continue;
        };
        let values = columns
            .names()
            .iter()
            .zip(&cells)
            .skip(1)
            .filter_map(|(name, cell)| Some(((*name).to_owned(), number::plain(cell)?)));
        let mut table = reading.table("mpstat").scope(cells[0]);
        let values: Vec<_> = values.collect();
        for (name, value) in &values {
            put(&mut table, name, *value, line);
        }
        reading.push(table);
        all.push(Row { line, time_s: None, since_boot: false, values });
    }
    let sum = |name: &str| {
        all.iter()
            .filter_map(|row| row.values.iter().find(|(other, _)| other == name))
            .map(|(_, value)| value)
            .sum::<f64>()
    };
    if let Some(last) = all.last() {
        let (count, source) = (all.len() as f64, reading.at(last.line));
        reading.evidence.cpu.push(CpuUse {
            user: sum("usr") / count,
            system: sum("sys") / count,
            idle: sum("idl") / count,
            iowait: sum("wt") / count,
            interrupt: 0.0,
            steal: 0.0,
            since_boot: false,
            source,
        });
    }
}

fn omits_boot(command: &str) -> bool {
    let mut options = command.split_whitespace().filter(|word| word.starts_with('-'));
    options.any(|option| !option.starts_with("--") && option.contains('y'))
}

/// Whether words name the columns of iostat: the device stands first, or last with `-h`.
fn is_iostat_heading(words: &[&str]) -> bool {
    let rates = words.iter().any(|word| matches!(*word, "r/s" | "tps" | "rrqm/s" | "r/i"));
    words.iter().any(|word| matches!(*word, "device" | "Device" | "Device:"))
        || rates && words.iter().all(|word| number::plain(word).is_none())
}

/// A cell of iostat: `-h` puts a suffix behind it (`1.2k`, `12.4%`), also where the column is of
/// kilobytes already.
fn iostat_figure(column: &str, word: &str) -> Option<f64> {
    let plain = number::plain(word).or_else(|| number::percent(word));
    plain.or_else(|| {
        let kilobytes = column.contains("kB") || column.ends_with("req-sz");
        let value = word.ends_with(['k', 'M', 'G']).then(|| number::count(word)).flatten()?;
        Some(if kilobytes { value / 1000.0 } else { value })
    })
}

/// The date and time that `-t` puts above each report.
fn is_moment(words: &[&str]) -> bool {
    let date =
        |word: &str| word.bytes().all(|byte| byte.is_ascii_digit() || b"/.-".contains(&byte));
    match words {
        [day, clock, rest @ ..] => {
            date(day) && number::time_of_day(clock).is_some() && rest.len() <= 1
        }
        [one] => one.get(10..11) == Some("T") && date(&one[..10]),
        [] => false,
    }
}

/// Reads iostat (Linux, FreeBSD, illumos -xn): a row a device; `avg-cpu` lines too.
pub(crate) fn read_iostat(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut columns: Vec<&str> = Vec::new();
    // With -y the report since boot is left out.
    let omitted = section.hint.command.as_deref().is_some_and(omits_boot);
    let mut reports = 0;
    let mut cpu_next = false;
    for line in section.lines {
        let text = line.text.trim();
        let words: Vec<&str> = text.split_whitespace().collect();
        let Some(first) = words.first() else { continue };
        if first.starts_with("avg-cpu") {
            cpu_next = true;
        } else if cpu_next && words.len() == 6 {
            cpu_next = false;
            let parts: Vec<f64> = words.iter().filter_map(|word| number::percent(word)).collect();
            if let [user, nice, system, iowait, steal, idle] = parts[..] {
                let source = reading.at(line);
                let since_boot = reports == 0 && !omitted;
                reading.evidence.cpu.push(CpuUse {
                    user: user + nice,
                    system,
                    idle,
                    iowait,
                    interrupt: 0.0,
                    steal,
                    since_boot,
                    source,
                });
                reports += 1;
            }
        } else if is_iostat_heading(&words) {
            columns = words;
        } else if columns.len() == words.len()
            && words.iter().filter(|word| iostat_figure("", word).is_some()).count() + 1
                == words.len()
        {
            let device = words
                .iter()
                .find(|word| iostat_figure("", word).is_none())
                .copied()
                .unwrap_or(first);
            let mut table = reading.table("iostat").scope(device);
            for (column, word) in columns.iter().zip(&words) {
                let name = sar_name(column);
                if let Some(value) = iostat_figure(column, word) {
                    put(&mut table, &name, value, line);
                }
            }
            reading.push(table);
        } else if !text.starts_with("Linux ")
            && !text.contains("extended device statistics")
            && !is_moment(&words)
        {
            reading.leave(line);
        }
    }
}

/// Reads `atopsar -d`: a row a disk, the time only where it changes.
pub(super) fn read_atopsar(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut time_s = None;
    let mut times = Vec::new();
    for line in section.lines {
        let text = line.text.trim();
        let mut words: Vec<&str> = text.split_whitespace().collect();
        if words.contains(&"_dsk_") || words.is_empty() {
            continue;
        }
        if let Some(time) = number::time_of_day(words[0]) {
            time_s = Some(time);
            times.push(time);
            words.remove(0);
        }
        let figures: Vec<f64> =
            words.iter().skip(1).filter_map(|word| number::percent(word)).collect();
        let [busy, reads, kib_read, writes, kib_written, queue, service_ms] = figures[..] else {
            reading.leave(line);
            continue;
        };
        let mut table = reading.table("atopsar").scope(words[0]).taken(time_s);
        table.gauge("busy_percent", Some(busy), line);
        table.rate("reads", Some(reads), line);
        table.gauge("read_bytes_mean", Some(kib_read * 1024.0), line);
        table.rate("writes", Some(writes), line);
        table.gauge("write_bytes_mean", Some(kib_written * 1024.0), line);
        table.gauge("queue", Some(queue), line);
        table.gauge("service_ms", Some(service_ms), line);
        if let Some(interval_s) = interval(&times) {
            table.gauge("interval_s", Some(interval_s), line);
        }
        reading.push(table);
    }
}
