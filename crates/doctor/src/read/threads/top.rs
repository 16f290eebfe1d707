//! `top` and `top -H` of Linux (old and new headings, any column order), FreeBSD (`top -SH`) and
//! illumos, htop's rows where they are pasted with a heading.
//!
//! The first page of `top -n1` on old Linux shows averages since boot; which page it is cannot be
//! seen, so only a page that says so by idle threads below a busy heading is marked elsewhere.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::{htop, top_cpu};
use crate::evidence::{OneCpu, Statement};
use crate::read::system::{load, memory};
use crate::read::table::formats::lists::TOP;
use crate::read::table::{Layout, Table};
use crate::read::text::clean::Line;
use crate::read::text::number;
use crate::read::text::reading::{Reading, Rows};
use crate::read::text::section::Section;

static TASKS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(\d+)\s+(total|running|sleeping|stopped|zombie|processes|threads|starting|waiting|lock|on cpu)").expect("a constant pattern")
});
static MEMORY_PART: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(\d[\d.,]*\+?)\s*([KMGTkmgt]?)(?:i?B)?\+?\s*(total|used|free|buffers|cached|buff/cache|avail|Active|Inact|Laundry|Wired|Buf|Free|Total|Used|Inuse|phys mem|free mem|total swap|free swap)")
        .expect("a constant pattern")
});
static MEMORY: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(?:(KiB|MiB|GiB|TiB|Ki|Mi|Gi)\s+)?(Mem|Swap|Memory|ARC)\s*:\s*(.*)$")
        .expect("a constant pattern")
});
/// `Tâches: 231 total,   1 en cours, 230 en veille,   0 arrêté,   0 zombie`
static TASKS_BY_PLACE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^\p{L}+\s*[:：]\s*(\d+) [^,\d]+,\s+(\d+) [^,\d]+,\s+(\d+) [^,\d]+,\s+(\d+) [^,\d]+,\s+(\d+) \S+$")
        .expect("a constant pattern")
});
/// `MiB Spch:  15911,9 gesamt,   1234,5 frei,   4567,8 belegt,  10109,6 Puff/Cache`
static MEMORY_BY_PLACE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^([KMG]iB) \p{L}+\s*[:：]\s*(\d+(?:[.,]\d)?)\+? [^,\d]+,\s*(\d+(?:[.,]\d)?)\+? [^,\d]+,\s*(\d+(?:[.,]\d)?)\+? [^,\d]+([,.])\s*(\d+(?:[.,]\d)?)\+? \S+")
        .expect("a constant pattern")
});
/// The columns of rows that have lost their heading.
static BARE: LazyLock<Layout<'static>> = LazyLock::new(|| Layout::bare(&TOP[0]));

/// Whether a line is a row of Linux top in its usual order.
pub(crate) fn is_row(text: &str) -> bool {
    const STATES: [&str; 9] = ["R", "S", "D", "Z", "T", "t", "I", "W", "X"];
    BARE.cut(text).is_some_and(|row| {
        BARE.cell(&row.cells, &["S"]).is_some_and(|state| STATES.contains(&state))
    })
}

static SUMMARY: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"^top - \d|^last pid:|^(?:Tasks|Threads):\s+\d+ total|^%?C[Pp][Uu]\(s\)\D*\d.*\p{L}|^%?Cpu\s?\d+\s*:|^CPU \d+:\s+[\d.]+% user|^(?:[KMGT]iB )?(?:Mem|Swap)\s*:\s*\d.*(?:total|used|free)|^(?:CPU|CPU states?):\s+[\d.]+% (?:user|idle)|^load averages:.*;|^(?:Mem|Memory): \d+[KMG]";
    Regex::new(pattern).expect("a constant pattern")
});
static DATA: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^\s*\d+\s+\S+\s+\S+\s+\S+\s+\S+").expect("a constant pattern"));

/// Whether a line is one of those above the list.
pub(crate) fn is_summary(text: &str) -> bool {
    SUMMARY.is_match(text)
}

/// Whether a line looks like one of the list.
pub(crate) fn is_data(text: &str) -> bool {
    DATA.is_match(text)
}

/// Reads one page or several.
pub(crate) fn read(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut table = Table::new(&TOP, section);
    let (mut singles, mut page_begins) = (Vec::new(), Vec::new());
    let whole_before = reading.evidence.cpu.len();
    let mut memory = reading.table("meminfo");
    let mut tasks = reading.table("top");
    for line in section.lines {
        let text = line.text.trim();
        if text.is_empty() {
            continue;
        }
        let worded = !text.starts_with(|c: char| c.is_ascii_digit());
        if text.starts_with("top - ")
            || text.starts_with("last pid:")
            || text.starts_with("load averages:")
        {
            load::heading(line, reading);
            page_begins.push(singles.len());
            if let Some(pid) = text
                .strip_prefix("last pid:")
                .and_then(|rest| rest.split([';', ' ']).find(|word| !word.is_empty()))
            {
                tasks.gauge("last_pid", number::plain(pid), line);
            }
        } else if top_cpu::read(line, &mut singles, reading) {
            // It is where it belongs.
        } else if worded && by_place(text, line, &mut memory, &mut tasks) {
            // In a language of which the words are not known.
        } else if text.starts_with("Tasks:")
            || text.starts_with("Threads:")
            || text.contains(" processes:")
            || text.contains(" threads:")
            || worded && TASKS.captures_iter(text).count() >= 4
        {
            for found in TASKS.captures_iter(text) {
                tasks.gauge(
                    &format!("tasks_{}", found[2].replace(' ', "_")),
                    number::plain(&found[1]),
                    line,
                );
            }
        } else if let Some(found) = MEMORY.captures(text) {
            let (unit, what) = (found.get(1).map(|unit| unit.as_str()), &found[2]);
            memory_line(unit, what, &found[3], line, &mut memory, &mut tasks);
        } else if !table.take(line, reading) {
            reading.leave(line);
        }
    }
    table.end(reading);
    close_cpus(singles, &page_begins, whole_before, reading);
    memory::ram(&memory, reading);
    reading.push(memory);
    reading.push(tasks);
}

/// The CPUs that were shown one by one; without a line that sums them up they are it, on pages that
/// have them all.
fn close_cpus(
    singles: Vec<OneCpu>,
    page_begins: &[usize],
    whole_before: usize,
    reading: &mut Reading<'_>,
) {
    let mut known: Vec<&str> = singles.iter().map(|cpu| cpu.name.as_str()).collect();
    known.sort_unstable();
    known.dedup();
    let cpus = known.len();
    let pages = pages(&singles, page_begins);
    let whole = pages.into_iter().filter(|page| page.len() == cpus);
    let means: Vec<_> = whole.filter_map(htop::mean_of_all).collect();
    if let Some(mean) = means.last()
        && reading.evidence.host.cpus.is_none()
    {
        let source = mean.source.clone();
        reading.evidence.host.cpus = Some(Statement { value: cpus as u32, source });
    }
    if reading.evidence.cpu.len() == whole_before {
        reading.evidence.cpu.extend(means);
    }
    reading.evidence.single_cpus.extend(singles);
}

/// The CPUs of each page: a new one begins below a heading, and where a CPU is shown again. A page
/// that was cut off takes nothing from the next.
fn pages<'c>(singles: &'c [OneCpu], begins: &[usize]) -> Vec<&'c [OneCpu]> {
    let (mut pages, mut start) = (Vec::new(), 0);
    let mut shown = BTreeSet::new();
    for (at, cpu) in singles.iter().enumerate() {
        if shown.contains(cpu.name.as_str()) || begins.contains(&at) {
            pages.push(&singles[start..at]);
            start = at;
            shown.clear();
        }
        shown.insert(cpu.name.as_str());
    }
    pages.push(&singles[start..]);
    pages
}

/// Reads a line of tasks or memory whose words are of another language, by the places of its
/// figures; whether it was one.
fn by_place(text: &str, line: &Line<'_>, memory: &mut Rows, tasks: &mut Rows) -> bool {
    if TASKS.captures_iter(text).count() >= 4 || MEMORY_PART.captures_iter(text).count() >= 4 {
        return false;
    }
    if let Some(found) = TASKS_BY_PLACE.captures(text) {
        let names = ["total", "running", "sleeping", "stopped", "zombie"];
        for (at, name) in names.iter().enumerate() {
            tasks.gauge(&format!("tasks_{name}"), number::plain(&found[at + 1]), line);
        }
        return true;
    }
    let Some(found) = MEMORY_BY_PLACE.captures(text) else { return false };
    let unit = match &found[1] {
        "MiB" => 1_048_576.0,
        "GiB" => 1_073_741_824.0,
        _ => 1024.0,
    };
    let bytes = |at: usize| number::plain(&found[at]).map(|value| value * unit);
    // Behind what is used of the swap stands a full stop in all languages.
    if &found[5] == "." {
        memory.gauge("SwapTotal_bytes", bytes(2), line);
        memory.gauge("SwapFree_bytes", bytes(3), line);
        memory.gauge("MemAvailable_bytes", bytes(6), line);
    } else {
        memory.gauge("MemTotal_bytes", bytes(2), line);
        memory.gauge("MemFree_bytes", bytes(3), line);
        tasks.gauge("mem_used_bytes", bytes(4), line);
        tasks.gauge("mem_buff_cache_bytes", bytes(6), line);
    }
    true
}

/// Whether a line names the columns of a process list of top.
pub(crate) fn is_heading(text: &str) -> bool {
    TOP[0].is_heading(text)
}

fn memory_line(
    unit: Option<&str>,
    what: &str,
    text: &str,
    line: &Line<'_>,
    memory: &mut Rows,
    tasks: &mut Rows,
) {
    let unit_bytes = match unit {
        Some("MiB" | "Mi") => 1_048_576.0,
        Some("GiB" | "Gi") => 1_073_741_824.0,
        Some("TiB" | "Ti") => 1_099_511_627_776.0,
        _ => 1024.0,
    };
    for found in MEMORY_PART.captures_iter(text) {
        let scale = match found[2].to_ascii_uppercase().as_str() {
            "K" => 1024.0,
            "M" => 1_048_576.0,
            "G" => 1_073_741_824.0,
            "T" => 1_099_511_627_776.0,
            _ => unit_bytes,
        };
        let bytes = number::plain(found[1].trim_end_matches('+')).map(|value| value * scale);
        let name = found[3].to_lowercase();
        let proc_name = match (what, name.as_str()) {
            ("Swap", "total") => "SwapTotal_bytes",
            ("Swap", "free") => "SwapFree_bytes",
            (_, "avail") => "MemAvailable_bytes",
            ("Mem", "total") => "MemTotal_bytes",
            ("Mem", "free") => "MemFree_bytes",
            ("Mem", "buffers") => "Buffers_bytes",
            (_, "cached") => "Cached_bytes",
            _ => "",
        };
        if proc_name.is_empty() {
            tasks.gauge(
                &format!("{}_{}_bytes", what.to_lowercase(), name.replace(['/', ' '], "_")),
                bytes,
                line,
            );
        } else {
            // Digits that top itself cut off (`26418534+`) are at least seven of the true ones.
            memory.gauge(proc_name, bytes, line);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::evidence::Evidence;
    use crate::read::{finish, read_bytes};

    fn page(users: &[(usize, f64)]) -> String {
        let mut text =
            "top - 10:11:01 up 1 day,  2 users,  load average: 1.0, 1.0, 1.0\n".to_owned();
        for (cpu, user) in users {
            let idle = 100.0 - user;
            text += &format!(
                "%Cpu{cpu}  : {user:.1} us,  0.0 sy,  0.0 ni, {idle:.1} id,  0.0 wa,  0.0 hi,  \
                 0.0 si,  0.0 st\n"
            );
        }
        text
    }

    #[test]
    fn a_page_that_was_cut_off_takes_no_cpu_of_the_next() {
        let means = |pages: &[&[(usize, f64)]]| -> Vec<f64> {
            let text: String = pages.iter().map(|users| page(users)).collect();
            let mut evidence = Evidence::default();
            read_bytes(&mut evidence, "top.txt", text.as_bytes());
            finish(&mut evidence);
            evidence.cpu.iter().map(|used| used.user.round()).collect()
        };
        let (low, high) = ([(0, 10.0), (1, 20.0), (2, 30.0)], [(0, 70.0), (1, 80.0), (2, 90.0)]);
        assert_eq!(means(&[&low, &high]), [20.0, 80.0]);
        // The first page has lost its end, the next one its beginning, or both have.
        assert_eq!(means(&[&low[..2], &high, &low]), [80.0, 20.0]);
        assert_eq!(means(&[&low, &high[1..], &high]), [20.0, 80.0]);
        assert_eq!(means(&[&low[..1], &high[1..], &low]), [20.0]);
    }
}
