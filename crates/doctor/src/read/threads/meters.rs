//! The header that `top`, `htop`, `btop` and similar tools draw around a list: load, CPUs, tasks
//! and memory, in words or as meters.
//!
//! Words are translated, but their order is not. If a line of Linux top has unknown words, its
//! figures are read by position. A meter of a CPU does not separate user from system, so its value
//! counts as user. The CPUs of a page are all CPUs of the host only if their numbers start at 0 or
//! 1 without a gap.

use std::collections::BTreeSet;

use regex::Captures;

use crate::evidence::{CpuUse, OneCpu, Statement};
use crate::pattern::Pattern;
use crate::read::lines;
use crate::read::lines::formats::host as formats;
use crate::read::table::{cpu, is_drawn, is_moment};
use crate::read::text::clean::Line;
use crate::read::text::number;
use crate::read::text::reading::{Reading, Rows};

/// A figure, its unit and its word: `6.7 us`, `8123M Inact`, `12.5% user`, `4G free swap`.
static PART: Pattern = Pattern::new(
    r"(\d[\d.,]*)\+?\s*(?:([KMGTkmgt])(?:i?B)?\b\+?|%)?\s*(\p{L}[\p{L}/]*(?: (?:mem|swap|cpu)\b)?)",
);
static LABEL: Pattern = Pattern::new(r"^(?:([KMGT]i)B?\s+)?(\p{L}+)\s*[:：]\s*\d");
static ALL_TASKS: Pattern = Pattern::new(r"Tasks: (\d+)(?:[,;]|$)");
/// `Mem[||||3.20G/15.6G]`
static MEMORY_METER: Pattern = Pattern::new(concat!(
    r"(Mem|Swp)\s{0,3}\[[^\]\[/]*?(\d+(?:[.,]\d+)?)\s*([KMGT]?)B?\s*/",
    r"\s*(\d+(?:[.,]\d+)?)\s*([KMGT]?)B?"
));
/// `0[|||| 20.4%]` of htop, `C0 95%` of btop.
static CPU_METER: Pattern = Pattern::new(
    r"(?:(CPU|Avg|\d{1,4})\s{0,3}\[[^\]\[%]*?|\bC(PU|\d{1,4})\s+)(\d+(?:[.,]\d+)?)\s*%",
);
static CPU: Pattern = Pattern::new(
    r"^(?:Load Avg:.*\s)?(?:%?C[Pp][Uu]\s?(?:\(s\)|(\d+))?\s*:|CPU (?:states?|usage):|\d+ CPUs?:)\s*(.*)$",
);
/// A second CPU on the same line.
static NEXT_CPU: Pattern = Pattern::new(r"\s%?Cpu\s?\d+\s*:");
/// Newer versions print user and system time: `45.3/10.0  55[||||`.
static GRAPH: Pattern = Pattern::new(r"^(\d+(?:[.,]\d+)?)\s*/\s*(\d+(?:[.,]\d+)?)\s+\d+\s*\[");
static LOAD: Pattern = Pattern::new(concat!(
    r"(?i)\bload av(?:era)?ge?:\s+(\d+[.,]\d+),?\s+(\d+[.,]\d+),?\s+(\d+[.,]\d+)",
    r"(?:\s+(\d+)/(\d+)\s+(\d+)$)?"
));
static UPTIME: Pattern = Pattern::new(r"Uptime: (?:(\d+) days?(?:\(!\))?, )?(\d+):(\d\d):(\d\d)");

/// Words for the states of tasks, and for kinds of memory.
const TASKS: &str = "total|running|sleeping|stopped|stuck|zombie|processes|threads|starting|waiting\
                     |lock|on cpu|thr|kthr";
const MEMORY: &str = "total|used|free|buff/cache|buffers|buff|cached|avail|active|inact|laundry\
                      |wired|buf|inuse|phys mem|free mem|total swap|free swap";
/// An English line has this many known words.
const KNOWN_WORDS: usize = 4;
/// The parts of a CPU's use add up to more than this, unless the line is damaged.
const LEAST_PERCENT: f64 = 50.0;

/// Whether a line has a meter of htop: memory, or a CPU that is in use.
pub(crate) fn has_meter(text: &str) -> bool {
    let is_full = |found: Captures<'_>| {
        let inner = found[0].split_once('[').map_or("", |(_, inner)| inner).trim_start();
        inner.starts_with(['|', '#', '*', '■'])
    };
    text.contains('[')
        && (MEMORY_METER.is_match(text) || CPU_METER.captures_iter(text).any(is_full))
}

/// A figure of a line, with the word after it.
struct Part<'t> {
    figure: &'t str,
    unit: Option<&'t str>,
    word: String,
}

impl Part<'_> {
    fn value(&self) -> Option<f64> {
        number::plain(self.figure)
    }

    /// The figure in bytes. top may cut its last digits (`26418534+`); the others are used.
    fn bytes(&self, unit: &str) -> Option<f64> {
        number::bytes(&format!("{}{}", self.figure, self.unit.unwrap_or(unit)))
    }

    fn is_of(&self, words: &str) -> bool {
        words.split('|').any(|word| word == self.word)
    }
}

fn parts<'t>(text: &'t str) -> Vec<Part<'t>> {
    let part = |found: Captures<'t>| Part {
        figure: found.get(1).map_or("", |figure| figure.as_str()),
        unit: found.get(2).map(|unit| unit.as_str()),
        word: found[3].to_lowercase(),
    };
    PART.captures_iter(text).map(part).collect()
}

/// The meters around a list.
pub(crate) struct Meters {
    memory: Rows,
    tasks: Rows,
    /// Single CPUs, and the places in this list where pages begin.
    singles: Vec<OneCpu>,
    pages: Vec<usize>,
    /// Number of earlier facts about all CPUs.
    known: usize,
}

impl Meters {
    /// Before the first line.
    pub(crate) fn new(reading: &Reading<'_>) -> Self {
        Self {
            memory: reading.table("meminfo"),
            tasks: reading.table("top"),
            singles: Vec::new(),
            pages: Vec::new(),
            known: reading.evidence.cpu.len(),
        }
    }

    /// Reads a line; `false` if it is not a meter.
    pub(crate) fn take(&mut self, line: &Line<'_>, reading: &mut Reading<'_>) -> bool {
        let undrawn = line.text.replace(is_drawn, " ");
        let text = undrawn.trim();
        // Borders contain names of boxes and keys.
        let is_border = line.text.contains(['┌', '└', '╭', '╰', '┐', '┘']);
        if text.is_empty() || is_border || is_moment(text) {
            return true;
        }
        if ["top - ", "last pid:", "load averages:"].iter().any(|begin| text.starts_with(begin)) {
            lines::note(&formats::UPTIME, line, reading);
            self.pages.push(self.singles.len());
            let rest = text.strip_prefix("last pid:").unwrap_or_default();
            let pid = rest.split([';', ' ']).find(|word| !word.is_empty());
            self.tasks.gauge("last_pid", pid.and_then(number::plain), line);
            return true;
        }
        let is_drawn = self.drawn(text, line, reading);
        let is_words =
            self.cpus(text, line, reading) || self.memory(text, line) || self.tasks(text, line);
        let is_load = load_and_uptime(text, line, reading);
        is_drawn || is_words || is_load
    }

    /// Adds the meters to the evidence.
    pub(crate) fn end(mut self, reading: &mut Reading<'_>) {
        let names: BTreeSet<&str> = self.singles.iter().map(|cpu| cpu.name.as_str()).collect();
        let cpus = names.len();
        let pages = self.pages().into_iter().filter(|page| page.len() == cpus);
        let means: Vec<CpuUse> = pages.filter_map(mean_of_all).collect();
        if reading.evidence.cpu.len() == self.known {
            if let Some(mean) = means.last() {
                let (value, source) = (cpus as u32, mean.source.clone());
                reading.evidence.host.cpus.get_or_insert(Statement { value, source });
            }
            reading.evidence.cpu.extend(means);
        }
        reading.evidence.single_cpus.append(&mut self.singles);
        reading.push(self.memory);
        reading.push(self.tasks);
    }

    /// The CPUs of each page. A page begins below a heading, and where the number of a CPU repeats.
    /// An incomplete page takes no CPU of the next one.
    fn pages(&self) -> Vec<&[OneCpu]> {
        let (mut pages, mut start) = (Vec::new(), 0);
        let mut shown = BTreeSet::new();
        for (at, cpu) in self.singles.iter().enumerate() {
            if shown.contains(cpu.name.as_str()) || self.pages.contains(&at) {
                pages.push(&self.singles[start..at]);
                start = at;
                shown.clear();
            }
            shown.insert(cpu.name.as_str());
        }
        pages.push(&self.singles[start..]);
        pages
    }

    /// Uses of CPUs in words: of all together, or of one or two.
    fn cpus(&mut self, text: &str, line: &Line<'_>, reading: &mut Reading<'_>) -> bool {
        let mut rest = text;
        let mut any = false;
        while let Some(found) = CPU.captures(rest) {
            let end = NEXT_CPU.find(&found[2]).map_or(found[2].len(), |next| next.start());
            let (this, behind) = found[2].split_at(end);
            let is_linux = found.get(1).is_some() || rest.starts_with('%') || rest.contains("(s)");
            let Some(used) = cpu_use(this, is_linux, reading.at(line)) else { break };
            match found.get(1) {
                Some(name) => self.singles.push(OneCpu { name: name.as_str().to_owned(), used }),
                None => reading.evidence.cpu.push(used),
            }
            any = true;
            rest = rest[rest.len() - behind.len()..].trim_start();
        }
        any
    }

    /// Reads drawn meters.
    fn drawn(&mut self, text: &str, line: &Line<'_>, reading: &mut Reading<'_>) -> bool {
        let mut any = false;
        for found in CPU_METER.captures_iter(text) {
            let Some(percent) = number::plain(&found[3]) else { continue };
            let used = reading.busy(percent, line);
            match found.get(1).or(found.get(2)).map_or("", |label| label.as_str()) {
                "CPU" | "Avg" | "PU" => reading.evidence.cpu.push(used),
                name => self.singles.push(OneCpu { name: name.to_owned(), used }),
            }
            any = true;
        }
        for found in MEMORY_METER.captures_iter(text) {
            // `1234/7890MB`: both figures have one unit.
            let unit = if found[3].is_empty() { &found[5] } else { &found[3] };
            let used = number::bytes(&format!("{}{unit}", &found[2]));
            let total = number::bytes(&format!("{}{}", &found[4], &found[5]));
            let is_swap = &found[1] == "Swp";
            let names = if is_swap {
                ("SwapTotal_bytes", "swap_used_bytes")
            } else {
                ("MemTotal_bytes", "mem_used_bytes")
            };
            self.memory.gauge(names.0, total, line);
            self.tasks.gauge(names.1, used, line);
            any = true;
        }
        any
    }

    fn tasks(&mut self, text: &str, line: &Line<'_>) -> bool {
        let (parts, label) = (parts(text), LABEL.captures(text));
        let known = parts.iter().filter(|part| part.is_of(TASKS)).count();
        let all = ALL_TASKS.captures(text).and_then(|found| number::plain(&found[1]));
        let is_plain = label.is_some_and(|label| label.get(1).is_none());
        let is_tasks =
            ["Tasks:", "Threads:", "Processes:"].iter().any(|word| text.starts_with(word))
                || [" processes:", " threads:"].iter().any(|word| text.contains(word))
                || is_plain && known >= KNOWN_WORDS;
        let by_place = ["total", "running", "sleeping", "stopped", "zombie"];
        if is_plain && known < KNOWN_WORDS && parts.len() == by_place.len() {
            for (part, name) in parts.iter().zip(by_place) {
                self.tasks.gauge(&format!("tasks_{name}"), part.value(), line);
            }
            return true;
        }
        if !is_tasks && all.is_none() {
            return false;
        }
        self.tasks.gauge("tasks_total", all, line);
        for part in parts.iter().filter(|part| part.is_of(TASKS)) {
            let name = match part.word.as_str() {
                "thr" => "threads",
                "kthr" => "kernel_threads",
                name => name,
            };
            self.tasks.gauge(&format!("tasks_{}", name.replace(' ', "_")), part.value(), line);
        }
        true
    }

    fn memory(&mut self, text: &str, line: &Line<'_>) -> bool {
        let Some(label) = LABEL.captures(text) else { return false };
        let (unit, what) = (label.get(1).map(|unit| unit.as_str()), &label[2]);
        let mut parts = parts(text);
        let known = parts.iter().filter(|part| part.is_of(MEMORY)).count();
        let is_by_place = unit.is_some() && known < KNOWN_WORDS && parts.len() == KNOWN_WORDS;
        // In every language, a full stop follows the used swap.
        let what = match what {
            _ if is_by_place && text.contains(". ") => "Swap",
            _ if is_by_place => "Mem",
            "Mem" | "Swap" | "Memory" | "ARC" => what,
            _ => return false,
        };
        if is_by_place {
            let last = if what == "Swap" { "avail" } else { "buff/cache" };
            for (part, word) in parts.iter_mut().zip(["total", "free", "used", last]) {
                part.word = word.to_owned();
            }
        }
        parts.retain(|part| part.is_of(MEMORY));
        for part in &parts {
            let bytes = part.bytes(unit.unwrap_or("K"));
            let name = match (what, part.word.as_str()) {
                ("Swap", "total") => "SwapTotal_bytes",
                ("Swap", "free") => "SwapFree_bytes",
                (_, "avail") => "MemAvailable_bytes",
                ("Mem", "total") => "MemTotal_bytes",
                ("Mem", "free") => "MemFree_bytes",
                ("Mem", "buffers" | "buff") => "Buffers_bytes",
                (_, "cached") => "Cached_bytes",
                (_, word) => {
                    let word = word.replace(['/', ' '], "_");
                    let name = format!("{}_{word}_bytes", what.to_lowercase());
                    self.tasks.gauge(&name, bytes, line);
                    continue;
                }
            };
            self.memory.gauge(name, bytes, line);
        }
        // In busybox, used and free add up to the total.
        let part = |word: &str| parts.iter().find(|part| part.word == word)?.bytes("K");
        if what == "Mem" && part("total").is_none() {
            let all = part("used").zip(part("free")).map(|(used, free)| used + free);
            self.memory.gauge("MemTotal_bytes", all, line);
        }
        true
    }
}

/// The load and the time since boot, in a line of meters.
fn load_and_uptime(text: &str, line: &Line<'_>, reading: &mut Reading<'_>) -> bool {
    let figure = |found: &Captures<'_>, at: usize| {
        found.get(at).and_then(|part| number::plain(&part.as_str().replace(',', ".")))
    };
    let load = LOAD.captures(text);
    if let Some(found) = &load {
        let part = |at: usize| figure(found, at).unwrap_or_default();
        reading.evidence.host.load = Some(reading.statement([part(1), part(2), part(3)], line));
        let mut table = reading.table("loadavg");
        for (at, name) in ["running", "threads", "last_pid"].iter().enumerate() {
            table.gauge(name, figure(found, at + 4), line);
        }
        reading.push(table);
    }
    let uptime = UPTIME.captures(text);
    if let Some(found) = &uptime {
        let part = |at: usize| figure(found, at).unwrap_or_default();
        let seconds = part(1) * 86_400.0 + part(2) * 3600.0 + part(3) * 60.0 + part(4);
        reading.evidence.host.uptime_s = Some(reading.statement(seconds, line));
    }
    load.is_some() || uptime.is_some()
}

/// The use of CPUs in a text such as `0.1 us, 49.8 sy, ...` or `8.0% user, ... 60.1% idle`.
fn cpu_use(text: &str, is_linux: bool, source: crate::evidence::Source) -> Option<CpuUse> {
    let mut used = CpuUse::none(source);
    if let Some(found) = GRAPH.captures(text) {
        used.user = number::plain(&found[1])?;
        used.system = number::plain(&found[2])?;
        used.idle = (100.0 - used.user - used.system).max(0.0);
        return Some(used);
    }
    let mut parts = parts(text);
    let is_known = |part: &Part<'_>| cpu::part(&mut used.clone(), &part.word).is_some();
    // Translated words keep their order.
    if is_linux && !parts.iter().all(is_known) && (7..=8).contains(&parts.len()) {
        let words = ["us", "sy", "ni", "id", "wa", "hi", "si", "st"];
        parts.iter_mut().zip(words).for_each(|(part, word)| part.word = word.to_owned());
    }
    for found in &parts {
        if let Some(part) = cpu::part(&mut used, &found.word) {
            *part += found.value().unwrap_or(0.0);
        }
    }
    (cpu::sum(used.clone()) > LEAST_PERCENT).then_some(used)
}

/// The mean of single CPUs, if they are all CPUs: numbers from 0 or 1 on without a gap. A single
/// CPU may be a selection.
fn mean_of_all(cpus: &[OneCpu]) -> Option<CpuUse> {
    let mut numbers: Vec<usize> = cpus.iter().filter_map(|cpu| cpu.name.parse().ok()).collect();
    numbers.sort_unstable();
    let first = *numbers.first().filter(|first| **first <= 1)?;
    let is_all = numbers.len() > 1
        && numbers.len() == cpus.len()
        && numbers.iter().enumerate().all(|(at, number)| first + at == *number);
    let source = cpus.last()?.used.source.clone();
    let mean = CpuUse::mean(cpus.iter().map(|cpu| &cpu.used)).filter(|_| is_all)?;
    Some(CpuUse { source, ..mean })
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
    fn an_incomplete_page_takes_no_cpu_of_the_next_page() {
        let means = |pages: &[&[(usize, f64)]]| -> Vec<f64> {
            let text: String = pages.iter().map(|users| page(users)).collect();
            let mut evidence = Evidence::default();
            read_bytes(&mut evidence, "top.txt", text.as_bytes());
            finish(&mut evidence);
            evidence.cpu.iter().map(|used| used.user.round()).collect()
        };
        let (low, high) = ([(0, 10.0), (1, 20.0), (2, 30.0)], [(0, 70.0), (1, 80.0), (2, 90.0)]);
        assert_eq!(means(&[&low, &high]), [20.0, 80.0]);
        // The end of the first page is missing, the beginning of the next, or both.
        assert_eq!(means(&[&low[..2], &high, &low]), [80.0, 20.0]);
        assert_eq!(means(&[&low, &high[1..], &high]), [20.0, 80.0]);
        assert_eq!(means(&[&low[..1], &high[1..], &low]), [20.0]);
    }
}
