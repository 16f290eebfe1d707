//! Reads everything that people save or paste into typed evidence.
//!
//! ```text
//! bytes → clean lines → sections (one tool's output each) → a reader per format → Evidence
//! ```
//!
//! The content identifies a format; `detect` has the one table of formats. A file name or a prompt
//! only helps to find the subject: which pool, or which of two snapshots. Lines that a reader
//! leaves over are tried once more as rows without a heading. Lines that no format claims are
//! counted and listed; no figure is taken from them.
//!
//! Most formats are data: tables (`table`), and formats whose lines are independent (`lines`).
//! Readers in Rust are sorted by subject: `zfs`, `profile`, `threads`, `system` (the host and its
//! kernel), and `small_tools` for output of a few lines. All of them use `text`. Above them,
//! `split` cuts sections with the help of `detect`, the only module that knows every format.
//!
//! To add a table, write an entry in `table/formats`, a row `table(&...)` in `FORMATS` of
//! `detect.rs`, and a sample in `tests/read_samples`. To add lines, write an entry in
//! `lines/formats`, a row `lines(&...)`, and a sample. Any other reader is a file in the folder of
//! its subject with `pub(crate) fn read(&Section, &mut Reading)` (`system/interrupts.rs` is a short
//! one). Its row is `format(...)`. Then run `OGIVE_UPDATE_GOLDEN=1 cargo test -p ogive-doctor
//! --test read_golden` and check the new file. A reader passes each line that it does not know to
//! `Reading::leave`. Use the table names that docs/rules.md lists for authors of rules.
//!
//! Invariants: no input panics. The limits in `text::clean` bound the memory. Each line is read or
//! reported. A missing figure is not zero.

mod commands;
mod detect;
mod format;
pub(crate) mod host;
mod lines;
mod plausibility;
mod profile;
mod small_tools;
mod split;
mod system;
mod table;
mod text;
mod threads;
mod zfs;

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

pub use text::clean::{MAX_LINE_BYTES, MAX_TEXT_BYTES};
pub(crate) use text::frame;

use crate::atlas::system_of;
use crate::evidence::{CpuUse, Evidence, Input, Number, OneCpu, Statement, Thread};
use format::Format;
use profile::folded;
use system::{log_age, proc_stat};
use text::boundary;
use text::clean::{self, Line};
use text::reading::Reading;
use text::section::{Hint, Section};
use zfs::{dbgmsg, kstat, txgs};

/// The operating system is searched in this many lines at the beginning of an input.
const LINES_FOR_SYSTEM: usize = 5000;

/// Reads one input from memory; each fact carries `name`.
///
/// If the name is a path (`start/proc/spl/kstat/zfs/tank/txgs`), it also gives the pool and the
/// snapshot of the text. Problems (binary, too large) are reported in the input's entry of
/// [`Evidence::inputs`]; usable parts are still used.
pub fn read_bytes(evidence: &mut Evidence, name: &str, bytes: &[u8]) {
    let mut input = Input { name: Arc::from(name), ..Input::default() };
    let before = facts(evidence);
    if bytes.iter().all(u8::is_ascii_whitespace) {
        input.trouble = Some("it is empty".to_owned());
    } else if clean::is_binary(&bytes[..bytes.len().min(8192)]) {
        input.trouble = Some(binary_trouble(bytes));
    } else {
        read_text(evidence, &clean::to_utf8(bytes), &mut input);
    }
    input.facts = facts(evidence).saturating_sub(before);
    evidence.inputs.push(input);
}

/// Reads an input that is text.
fn read_text(evidence: &mut Evidence, whole: &[u8], input: &mut Input) {
    let mut reading = Reading::new(evidence, Arc::clone(&input.name));
    let begun = plausibility::Begun::at(reading.evidence);
    let tables = reading.evidence.tables.len();
    let lines = clean::lines(whole);
    input.lines = lines.iter().filter(|line| !line.text.trim().is_empty()).count();
    read_lines(lines, &input.name, &mut reading, &mut input.formats);
    note_ram(tables, reading.evidence);
    plausibility::remove(begun, whole, &mut reading);
    (input.unread, input.first_unread) = (reading.unread, reading.first_unread);
    let mebibytes = [MAX_TEXT_BYTES, whole.len()].map(|bytes| bytes >> 20);
    input.trouble = (whole.len() > MAX_TEXT_BYTES)
        .then(|| format!("only the first {} MiB of {} MiB were read", mebibytes[0], mebibytes[1]));
}

/// Records the host's memory, from the first table since `begun` that has it.
fn note_ram(begun: usize, evidence: &mut Evidence) {
    let memory = evidence.tables[begun..].iter().filter(|table| table.name == "meminfo");
    let figures = memory.flat_map(|table| &table.figures);
    let total = figures.filter(|figure| figure.name == "MemTotal_bytes").find_map(|figure| {
        let Number::Gauge(bytes) = figure.value else { return None };
        Some(Statement { value: bytes as u64, source: figure.source.clone() })
    });
    if let Some(total) = total {
        evidence.host.ram_bytes.get_or_insert(total);
    }
}

/// Reads one file. Text beyond [`MAX_TEXT_BYTES`] is not read into memory.
///
/// # Errors
/// Those of opening and reading the file.
pub fn read_file(evidence: &mut Evidence, path: &Path) -> io::Result<()> {
    let file = std::fs::File::open(path)?;
    let mut bytes = Vec::new();
    // One more byte shows that the file is longer.
    file.take(MAX_TEXT_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    read_bytes(evidence, &path.to_string_lossy(), &bytes);
    Ok(())
}

/// Largest sum of the percents of all CPUs, with some rounding.
const WHOLE_PERCENT: f64 = 112.0;

/// Adds facts that need several inputs; call it once, after the last input.
pub fn finish(evidence: &mut Evidence) {
    proc_stat::finish(evidence);
    dbgmsg::finish(evidence);
    log_age::finish(evidence);
    txgs::finish(evidence);
    plausibility::remove_by_cpus(evidence);
    add_mean_of_cpus(evidence);
    add_idle_row(evidence);
}

/// A list with a row for idle time that adds up to 100 covers the machine, so its percents are of
/// all CPUs.
fn add_idle_row(evidence: &mut Evidence) {
    if !evidence.cpu.is_empty() {
        return;
    }
    let used = |thread: &Thread| thread.cpu_percent.or(thread.life_percent);
    let idle = evidence.threads.iter().find(|thread| thread.name.eq_ignore_ascii_case("idle"));
    let Some((idle, percent)) = idle.and_then(|idle| Some((idle.clone(), used(idle)?))) else {
        return;
    };
    let of_list =
        |thread: &Thread| thread.list == idle.list && thread.source.input == idle.source.input;
    let sum: f64 = evidence.threads.iter().filter(|one| of_list(one)).filter_map(used).sum();
    if !(95.0..=WHOLE_PERCENT).contains(&sum) {
        return;
    }
    for thread in evidence.threads.iter_mut().filter(|thread| of_list(thread)) {
        thread.machine_percent = used(thread);
        (thread.cpu_percent, thread.life_percent) = (None, None);
    }
    // The rows do not show whether the kernel or programs used the rest.
    let rest = 100.0 - percent;
    let none = CpuUse::none(idle.source);
    evidence.cpu.push(CpuUse { user: rest, idle: percent, is_split: false, ..none });
}

/// If only single CPUs are shown, their mean is the use of all CPUs.
fn add_mean_of_cpus(evidence: &mut Evidence) {
    let singles = &evidence.single_cpus;
    if !evidence.cpu.is_empty() || OneCpu::number(singles).is_none() {
        return;
    }
    evidence.cpu.extend(CpuUse::mean(singles.iter().map(|one| &one.used)));
}

fn read_lines(
    mut lines: Vec<Line<'_>>,
    name: &str,
    reading: &mut Reading<'_>,
    formats: &mut Vec<String>,
) {
    clean::without_comments(&mut lines);
    note_system(&lines, reading);
    let (sections, typed) = split::split(&lines, name);
    commands::take(&typed, reading);
    for (format, section) in sections {
        match format.or_else(|| whole(&section)) {
            Some(format) => {
                note_format(formats, format.name);
                format.read(&section, reading);
            }
            None => leave_all(&section, reading),
        }
        let left_over = std::mem::take(&mut reading.left_over);
        read_left_over(left_over, &section.hint, reading, formats);
    }
}

/// Records the operating system of the tools, from the first line that shows it.
fn note_system(lines: &[Line<'_>], reading: &mut Reading<'_>) {
    let mut systems =
        lines.iter().take(LINES_FOR_SYSTEM).filter_map(|line| Some((line, system_of(&line.text)?)));
    if let Some((line, system)) = systems.next() {
        let seen = reading.statement(system.to_owned(), line);
        let host = &mut reading.evidence.host;
        if host.os_seen.iter().all(|known| known.value != seen.value) {
            host.os_seen.push(seen);
        }
    }
}

/// The format that only the whole section shows.
fn whole(section: &Section<'_>) -> Option<&'static Format> {
    let start = section.lines.iter().position(|line| !line.text.trim().is_empty())?;
    let lines = &section.lines[start..];
    detect::whole(lines)
}

fn leave_all(section: &Section<'_>, reading: &mut Reading<'_>) {
    let command = section.hint.command.as_deref().unwrap_or_default();
    let path = section.hint.path.as_deref().unwrap_or_default();
    for line in section.lines {
        match &line.text {
            text if command.contains("wc -l") && small_tools::is_count(text) => {
                small_tools::read_count(command, line, reading)
            }
            _ if system::host::read_answer(command, line, reading) => {}
            _ if host::control_directory::read_by_name(path, line, reading) => {}
            _ => reading.leave(line),
        }
    }
}

/// Tries left-over lines as rows without a heading; the remaining ones are unread.
fn read_left_over(
    left_over: Vec<(u32, String)>,
    hint: &Hint,
    reading: &mut Reading<'_>,
    formats: &mut Vec<String>,
) {
    let lines: Vec<Line<'_>> = left_over
        .iter()
        .map(|(number, text)| Line { number: *number, text: text.as_str().into() })
        .collect();
    let mut start = 0;
    while start < lines.len() {
        let Some((format, end)) = run_of_rows(&lines, start) else {
            leave_unread(lines[start].number, &lines[start].text, reading);
            start += 1;
            continue;
        };
        note_format(formats, format.name);
        let section = Section { lines: &lines[start..end], hint: hint.clone() };
        format.read(&section, reading);
        // A second round with the same reader would never end, so these lines stay unread.
        for (number, text) in std::mem::take(&mut reading.left_over) {
            leave_unread(number, &text, reading);
        }
        start = end;
    }
}

/// Lists a line that no format claims. A drawn ruler is dropped.
fn leave_unread(number: u32, text: &str, reading: &mut Reading<'_>) {
    let text = text.trim_start_matches(['*', '•', '-', '–']).trim();
    if !text.bytes().all(|byte| b"-=_*#~.|+ ".contains(&byte)) {
        reading.not_understood(number, text);
    }
}

/// The format of the rows from `start` on, and their end.
fn run_of_rows(lines: &[Line<'_>], start: usize) -> Option<(&'static Format, usize)> {
    let format_of = |line: &Line<'_>| {
        if boundary::is_heading(&line.text) {
            None
        } else if folded::is_row(&line.text) {
            Some(&detect::FOLDED)
        } else {
            detect::row(&line.text)
        }
    };
    // Rows such as `c 4294967296` are recognised only by their neighbours.
    let shaped =
        lines[start..].iter().take(512).take_while(|line| kstat::has_row_shape(&line.text));
    let end = start + shaped.count();
    if let Some(known) = lines[start..end].iter().find(|line| kstat::is_known_row(&line.text))
        && let Some(format) = format_of(known)
        && format.name == "kstat"
    {
        return Some((format, end));
    }
    let format = format_of(&lines[start])?;
    let same = lines[start..]
        .iter()
        .take_while(|line| format_of(line).is_some_and(|other| std::ptr::eq(other, format)));
    Some((format, start + same.count()))
}

fn note_format(formats: &mut Vec<String>, name: &str) {
    if !formats.iter().any(|format| format == name) {
        formats.push(name.to_owned());
    }
}

/// Number of facts of all kinds.
fn facts(evidence: &Evidence) -> usize {
    let host = &evidence.host;
    let is_stated = [
        host.os.is_some(),
        host.distribution.is_some(),
        host.kernel.is_some(),
        host.zfs_version.is_some(),
        host.zfs_loaded.is_some(),
        host.cpus.is_some(),
        host.architecture.is_some(),
        host.cpu_model.is_some(),
        host.cpu_flags.is_some(),
        host.is_virtual.is_some(),
        host.numa_nodes.is_some(),
        host.ram_bytes.is_some(),
        host.uptime_s.is_some(),
        host.load.is_some(),
        host.command_line.is_some(),
        host.ogive_mount.is_some(),
    ];
    is_stated.iter().filter(|is_stated| **is_stated).count()
        + evidence.cpu.len()
        + evidence.single_cpus.len()
        + evidence.threads.len()
        + evidence.tasks.len()
        + evidence.timings.len()
        + evidence
            .profiles
            .iter()
            .map(|profile| profile.rows.len() + profile.stacks.len())
            .sum::<usize>()
        + evidence.kernel_stacks.len()
        + evidence.locks.len()
        + evidence.tables.iter().map(|table| table.figures.len()).sum::<usize>()
        + evidence.properties.len()
        + evidence.parameters.len()
        + evidence.pools.len()
        + evidence.log.len()
}

/// The kind of a binary input and how to convert it; if it is unknown, the rejected format.
fn binary_trouble(bytes: &[u8]) -> String {
    let kind = match bytes {
        [0x1f, 0x8b, ..] => " (gzip): unpack it with gunzip first",
        [0xfd, b'7', b'z', b'X', b'Z', ..] => " (xz): unpack it with xz -d first",
        [0x28, 0xb5, 0x2f, 0xfd, ..] => " (zstd): unpack it with zstd -d first",
        [b'B', b'Z', b'h', ..] => " (bzip2): unpack it with bunzip2 first",
        [b'P', b'E', b'R', b'F', b'I', b'L', b'E', b'2', ..] => " (perf.data)",
        [0x89, b'P', b'N', b'G', ..] | [0xff, 0xd8, ..] => " (a picture): paste the text instead",
        [0x7f, b'E', b'L', b'F', ..] => " (a program)",
        [b'o', b'g', b'i', b'v', b'e', b'r', b'd', b's', ..] => " (sampled reads of a mount)",
        [b'o', b'g', b'i', b'v', b'e', b't', b'r', b'c', ..] => {
            " (recorded reads of a mount): \"ogive sim\" replays them"
        }
        [b'P', b'K', ..] => " (zip): unpack it first",
        _ => {
            ", no recording (perf.data, pprof) and no archive (tar, gzip, zstd): name what a tool \
             printed, or a capture"
        }
    };
    format!("it is not text{kind}")
}
