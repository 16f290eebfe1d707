//! The heading of a process in `spindump` of macOS: its name, and its CPU time during the
//! recording.
//!
//! The value stays in seconds of CPU, because the length of the recording is printed elsewhere.

use crate::evidence::Thread;
use crate::pattern::Pattern;
use crate::read::text::number;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;

static PROCESS: Pattern = Pattern::new(r"^Process:\s+(\S.*?) \[(\d+)\]$");
static CPU_TIME: Pattern = Pattern::new(r"^CPU Time:\s+(?:(\d+)m)?([\d.]+)s\b");
/// Other lines of the heading; they are not used.
static OTHER: Pattern = Pattern::new(concat!(
    r"^(?:UUID|Path|Codesigning ID|Identifier|Version|Is First Party|Beta Identifier|Parent|UID",
    r"|Shared Cache|Architecture|Memory Limit|Jetsam Priority|Footprint|Time Since Fork|Note",
    r"|Num samples|Num threads|Responsible|Sudden Term|Start time|End time|Fan speed):\s",
));

/// Whether a line begins a process.
pub(crate) fn begins(text: &str) -> bool {
    PROCESS.is_match(text)
}

/// Whether a line belongs to such a heading.
pub(crate) fn is_of(text: &str) -> bool {
    let text = text.trim();
    OTHER.is_match(text) || CPU_TIME.is_match(text)
}

/// Reads the headings of processes. Their threads and stacks are left over.
pub(crate) fn read(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut process: Option<Thread> = None;
    reading.list += 1;
    for line in section.lines {
        let text = line.text.trim();
        if let Some(found) = PROCESS.captures(text) {
            reading.evidence.threads.extend(process.take());
            let thread = reading.thread(found[1].to_owned(), line);
            process = Some(Thread { id: found[2].parse().ok(), ..thread });
        } else if let Some(found) = CPU_TIME.captures(text) {
            let part = |at: usize| found.get(at).and_then(|part| number::plain(part.as_str()));
            let seconds = part(1).unwrap_or(0.0) * 60.0 + part(2).unwrap_or(0.0);
            if let Some(process) = &mut process {
                process.cpu_time_s = Some(seconds);
                process.source = reading.at(line);
            }
        } else if let Some(name) = text.strip_prefix("Architecture:") {
            let architecture = reading.statement(name.trim().to_owned(), line);
            reading.evidence.host.architecture.get_or_insert(architecture);
        } else if !OTHER.is_match(text) {
            reading.leave(line);
        }
    }
    reading.evidence.threads.extend(process);
}
