//! Lines in which people tell of the CPU in few words, and figures that they type in lists.
//!
//! "java eating 780%, 8 cores" binds no words as sentences do, and "RAM: 15.2/16 GB used" is no
//! tool's. What such a line says of the size of the machine, of its load and its memory is taken as
//! what was said, where no tool says it; the rest of it stays words, which `facts` understands.

use std::sync::LazyLock;

use regex::Regex;

use super::text::clean::Line;
use super::text::number;
use super::text::reading::Reading;
use crate::facts::{is_known_program, looks_like_kernel};

/// Nobody tells more of it in one line.
const MOST_BYTES: usize = 400;
/// More CPUs has no machine.
const MOST_CPUS: u32 = 4096;

fn compiled(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a constant pattern")
}

static CPU_WORD: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"(?i)\b(?:v?cpus?|cores?|processors?|io ?wait|load(?: av(?:g|erage)s?)?|idle|pegged",
        r"|maxed|user|sys|swap(?:ping)?)\b",
    ))
});
static FIGURE: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"(?i)\d|\b(?:pegged|maxed|idle|busy|full|all|one|no)\b"));
/// "a 16 core box", "8 cores", "of 4 cores": how many there are, and not how many are used.
static CORES: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"(?i)\b(?:of(?: the| its)?|has|have|with|got|on an?|an?|the|my|our) (\d{1,4})[- ]?",
        r"(?:v?cpus?|cores?)\b(?: (?:box|machine|server|host|system|vm|guest|nas|cpu|processor))?",
        r"|\b(\d{1,4})[- ]?(?:v?cpu|core)s? (?:box|machine|server|host|system|vm|guest|nas|cpu)\b",
        r"|^(\d{1,4}) (?:v?cpus?|cores?)[,;.]",
        r"|[,;(] ?(\d{1,4}) (?:v?cpus?|cores?)(?:$|[.,;)])",
    ))
});
/// Cores that somebody uses or that are busy, behind the figure.
static IN_USE: LazyLock<Regex> = LazyLock::new(|| {
    compiled(r"(?i)^ (?:are|is|at|busy|full|used|pegged|maxed|worth|for|of|to)\b")
});
static LOAD: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r"^(\d{1,6}(?:\.\d+)?)\s*[/,;| ]\s*(\d{1,6}(?:\.\d+)?)\s*[/,;| ]\s*(\d{1,6}(?:\.\d+)?)$",
    )
});
static MEMORY: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"(?i)^(\d+(?:[.,]\d+)?)\s*([KMGT]?)i?B?\s*(?:/|of|out of)\s*",
        r"(\d+(?:[.,]\d+)?)\s*([KMGT])i?B?(?:\s*(used|free|available|in use))?",
    ))
});

/// A figure of the Task Manager of Windows, as people type it: `Disk 100%`, `Memory: 94%`.
static TASK_MANAGER: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r"(?i)\b(cpu|memory|disk|gpu|network)(?: usage)?(?: at|:| is)? (\d{1,3}) ?%(?:[,;.]|$| busy| active)",
    )
});

/// Takes what people type of the Task Manager: a disk that is busy stands beside the memory or the
/// CPU there, and alone it may as well be full.
pub(crate) fn take_task_manager(lines: &[Line<'_>], reading: &mut Reading<'_>) {
    let mut disk: Option<(f64, u32)> = None;
    let mut beside = false;
    for line in lines.iter().filter(|line| line.text.len() <= MOST_BYTES) {
        for found in TASK_MANAGER.captures_iter(&line.text) {
            match (found[1].to_ascii_lowercase().as_str(), number::plain(&found[2])) {
                ("disk", Some(percent)) if percent <= 100.0 => {
                    disk = Some((percent, line.number));
                }
                ("memory" | "cpu", Some(percent)) => beside |= percent <= 100.0,
                _ => {}
            }
        }
    }
    if let Some((percent, number)) = disk.filter(|_| beside) {
        let line = Line { number, text: "".into() };
        let mut table = reading.table("iostat").scope("the disk");
        table.gauge("busy_percent", Some(percent), &line);
        reading.push(table);
    }
}

/// Whether a line is nothing but such a figure.
pub(crate) fn is_task_manager(text: &str) -> bool {
    let found = TASK_MANAGER.find(text);
    found.is_some_and(|found| found.start() == 0 && found.end() == text.len())
}

/// Whether a line that is no sentence tells of the CPU all the same.
pub(crate) fn is_telling(text: &str) -> bool {
    if text.len() > MOST_BYTES || text.contains("   ") || text.contains(['{', '}', '\t', '<']) {
        return false;
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let bare = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()).to_owned();
    let is_word = |word: &&str| {
        let word = bare(word);
        word.len() >= 2 && word.chars().all(|c| c.is_alphabetic() || "_-/".contains(c))
    };
    let named = || {
        words.iter().any(|word| {
            let word = bare(word);
            is_known_program(&word) || looks_like_kernel(&word)
        })
    };
    if is_task_manager(text) {
        return true;
    }
    words.len() >= 3
        && words.iter().filter(|word| is_word(word)).count() * 2 >= words.len()
        && FIGURE.is_match(text)
        && (CPU_WORD.is_match(text) || text.contains('%') && named())
}

/// Takes how many CPUs a line says there are, where nothing said it yet.
pub(crate) fn take_cpus(text: &str, line: &Line<'_>, reading: &mut Reading<'_>) {
    if reading.evidence.host.cpus.is_some() || text.len() > MOST_BYTES {
        return;
    }
    let found = CORES.captures_iter(text).find_map(|found| {
        let whole = found.get(0)?;
        let count = found.iter().skip(1).flatten().next()?.as_str().parse::<u32>().ok()?;
        let used = IN_USE.is_match(&text[whole.end()..]);
        (!used && (1..=MOST_CPUS).contains(&count)).then_some(count)
    });
    if let Some(count) = found {
        reading.evidence.host.cpus = Some(reading.said(count, line));
    }
}

/// Takes a typed figure of the load or of memory; `key` is in small letters.
pub(crate) fn take_note(key: &str, value: &str, line: &Line<'_>, reading: &mut Reading<'_>) {
    match key {
        "load" | "load average" | "load averages" | "loadavg" | "load avg" => {
            let Some(found) = LOAD.captures(value.trim()) else { return };
            let part = |at: usize| number::plain(&found[at]);
            if let (Some(one), Some(five), Some(fifteen)) = (part(1), part(2), part(3))
                && reading.evidence.host.load.is_none()
            {
                reading.evidence.host.load = Some(reading.said([one, five, fifteen], line));
            }
        }
        "ram" | "memory" | "mem" | "memory usage" | "ram usage" | "swap" | "swap usage" => {
            take_memory(key.starts_with("swap"), value, line, reading);
        }
        "cores" | "cpus" | "cpu cores" | "vcpus" | "cpu count" | "number of cpus" => {
            let digits = value.split_whitespace().next().unwrap_or_default();
            let count = digits.parse::<u32>().ok().filter(|count| (1..=MOST_CPUS).contains(count));
            if let Some(count) = count
                && reading.evidence.host.cpus.is_none()
            {
                reading.evidence.host.cpus = Some(reading.said(count, line));
            }
        }
        _ => {}
    }
}

/// `15.2/16 GB used`: one unit for both where the first has none.
fn take_memory(swap: bool, value: &str, line: &Line<'_>, reading: &mut Reading<'_>) {
    let Some(found) = MEMORY.captures(value.trim()) else { return };
    let unit = if found[2].is_empty() { &found[4] } else { &found[2] };
    let bytes = |digits: &str, unit: &str| {
        let digits = digits.replace(',', ".");
        number::bytes(&format!("{digits}{}", unit.to_ascii_uppercase()))
    };
    let (Some(part), Some(total)) = (bytes(&found[1], unit), bytes(&found[3], &found[4])) else {
        return;
    };
    if part > total || total <= 0.0 {
        return;
    }
    let is_free = found.get(5).is_some_and(|word| {
        matches!(word.as_str().to_ascii_lowercase().as_str(), "free" | "available")
    });
    let free = if is_free { part } else { total - part };
    let (all, left) = if swap {
        ("SwapTotal_bytes", "SwapFree_bytes")
    } else {
        ("MemTotal_bytes", "MemAvailable_bytes")
    };
    let mut table = reading.table("meminfo");
    table.gauge(all, Some(total), line);
    table.gauge(left, Some(free), line);
    reading.push(table);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::{Evidence, Number};
    use crate::read::{finish, read_bytes};

    fn read(text: &str) -> Evidence {
        let mut evidence = Evidence::default();
        read_bytes(&mut evidence, "said.txt", text.as_bytes());
        finish(&mut evidence);
        evidence
    }

    #[test]
    fn lines_of_few_words_are_told() {
        for text in [
            "java eating 780%, 8 cores",
            "load avg 45 on a 16 core box, iowait at 60%",
            "kswapd0 at 100% and swap full",
            "cpu pegged at 100%",
            "user 80 sys 15 iowait 3",
        ] {
            assert!(is_telling(text), "{text}");
        }
        for text in ["sda 12 34 56 idle", "tank 8.1T 45% ONLINE", "if (cpu > 3) { idle(); }"] {
            assert!(!is_telling(text), "{text}");
        }
    }

    #[test]
    fn the_size_of_a_machine_is_told_from_what_is_used_of_it() {
        for (text, cpus) in [
            ("java eating 780%, 8 cores\n", Some(8)),
            ("load avg 45 on a 16 core box, iowait at 60%\n", Some(16)),
            ("mysqld uses 3 of 4 cores\n", Some(4)),
            ("The server has 64 cores and 256 GB.\n", Some(64)),
            ("It burns 8 cores all day.\n", None),
            ("There are 3 cores at 100% and the rest is idle.\n", None),
            ("cores: 12\n", Some(12)),
        ] {
            assert_eq!(read(text).host.cpus.map(|cpus| cpus.value), cpus, "{text}");
        }
    }

    #[test]
    fn a_busy_disk_of_the_task_manager_is_none_that_is_full() {
        let busy = |text: &str| {
            let told = read(text);
            let mut figures = told.tables.iter().flat_map(|table| &table.figures);
            figures.find(|figure| figure.name == "busy_percent").map(|one| one.value.clone())
        };
        let whole = Some(Number::Gauge(100.0));
        assert_eq!(busy("Task Manager shows CPU 12%, Memory 94%, Disk 100%\n"), whole);
        assert_eq!(busy("Disk 100%\nMemory 94%\nSystem 25%\n"), whole);
        assert_eq!(busy("Disk 100%\n"), None);
        assert_eq!(busy("Memory 94%, and the disk is 100% full.\n"), None);
    }

    #[test]
    fn typed_figures_of_load_and_memory_are_taken() {
        let told = read("Load: 12.3 / 11.0 / 9.8\nRAM: 15.2/16 GB used\nSwap: 8/8 GB\n");
        assert_eq!(told.host.load.expect("a load").value, [12.3, 11.0, 9.8]);
        let gauge = |name: &str| {
            let mut figures = told.tables.iter().flat_map(|table| &table.figures);
            figures.find(|figure| figure.name == name).map(|figure| figure.value.clone())
        };
        assert_eq!(gauge("SwapFree_bytes"), Some(Number::Gauge(0.0)));
        assert_eq!(gauge("MemTotal_bytes"), Some(Number::Gauge(17_179_869_184.0)));
    }
}
