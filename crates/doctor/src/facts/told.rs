//! How busy the host is, out of sentences: "the CPUs are 95% idle", "the load goes to 50".
//!
//! It is asked only where no tool shows it, and only by rules: what is said of the machine in the
//! answer stays with what was measured. A figure of a disk or of memory is none of the CPU.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

use super::generic::is_of_a_machine;
use super::{Facts, Known, absent};
use crate::evidence::Remark;

/// How one state of the CPU is told: the figure before its name, and behind it.
struct StateNames {
    state: &'static str,
    before: Regex,
    behind: Regex,
}

fn compiled(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a constant pattern")
}

static STATES: LazyLock<[StateNames; 4]> = LazyLock::new(|| {
    let told = |state: &'static str, name: &str, weak: &str| StateNames {
        state,
        before: compiled(&format!(
            concat!(
                r"(?i)(\d+(?:\.\d+)?) ?(?:%|percent) ",
                r"(?:of (?:all |the )*(?:cpus?|cores?) (?:is |are )?)?(?:in )?(?:{})\b",
            ),
            name
        )),
        behind: compiled(&format!(
            concat!(
                r"(?i)\b(?:{})(?: time)?:?",
                r"(?: (?:is|are|at|of|about|around|over|under|for|stays?))*",
                r" (\d+(?:\.\d+)?) ?(?:%|percent)",
            ),
            weak
        )),
    };
    [
        told("idle", "idle", "idle"),
        told(
            "iowait",
            r"(?:i/?o[ -]?)?wait(?:ing)?|wa",
            r"io[ -]?wait|i/o wait|wait(?:ing)?(?: for (?:i/?o|disks?))?",
        ),
        told("system", "system|sys|sy|kernel", "system|sys|kernel"),
        told("user", "user(?: space)?|usr|us", "user(?: space)?"),
    ]
});

/// States as top names them: `37.5 wa`.
static SHORT: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"\b(\d+(?:[.,]\d+)?)(?: ?%)? ?(us|sy|id|wa|st|si|hi)\b"));

/// States in a row, with or without signs: `user 80 sys 15 iowait 3`, `80 user, 15 sys`.
static NAME_FIRST: LazyLock<Regex> = LazyLock::new(|| {
    compiled(&format!(r"(?i)\b({STATE_NAMES})\s*[:=]?\s*(\d+(?:\.\d+)?)\s*%?(?:[\s,;/|]|$)"))
});
static FIGURE_FIRST: LazyLock<Regex> =
    LazyLock::new(|| compiled(&format!(r"(?i)\b(\d+(?:\.\d+)?)\s*%?\s*({STATE_NAMES})\b")));
const STATE_NAMES: &str = "user|usr|us|system|sys|sy|nice|ni|idle|id|io ?wait|wait|wa|io|steal|st\
    |soft ?irq|irq|si|hi";

/// All CPUs together, in a row of figures: `CPU usage: 97%`, `CPU 97%, Memory 94%`.
static BUSY: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"(?i)(?:^|[,;|:] ?|\bshows? )(?:total |overall |average |avg )?(?:cpu|processor)",
        r"(?: usage| use| load| util\w*)?(?::| =)? ?~?(\d+(?:\.\d+)?) ?%(?: used| busy)?\s*(?:[,;|(]|$)",
    ))
});

/// What only the Task Manager of Windows has beside the CPU.
static TASK_MANAGER: LazyLock<Regex> = LazyLock::new(|| {
    compiled(r"(?i)\b(?:memory|disk)(?::| at)? \d{1,3} ?%(?:[,;]|$)|\btask manager\b")
});

fn short_state(name: &str) -> &'static str {
    match name {
        "us" => "user",
        "sy" => "system",
        "id" => "idle",
        "wa" => "iowait",
        "st" => "steal",
        _ => "interrupt",
    }
}

/// Whose figures are none of the CPU's, and whose are: who was named last before a figure has it.
static NAMED: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"(?i)\b(?:(disks?|drives?|devices?|ssds?|hdds?|vdevs?|network|links?|memory)",
        r"|cpus?|cores?|processors?|machine|host|server|system)\b",
    ))
});
/// "idle 597% of 8 CPUs": all CPUs together are 800.
static OF_CPUS: LazyLock<Regex> = LazyLock::new(|| compiled(r"(?i)\b(\d+) (?:cpus?|cores?)\b"));

static LOAD: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"(?i)\bload(?: av(?:g|erage)s?)?\b(?: (?:of|on) (?:a|an|the) (?:\w+ )?(?:\w+))?",
        r"(?: (?:is|was|are|at|of|to|about|around|over|above|near|nearly|up|goes|went|rises|rose",
        r"|climbs|close|under|below|stays|stands|jumps|grows|reaches|by|more|than|then|constantly|always))*",
        r":? (\d+(?:\.\d+)?)(?:[.,;:)]|\s|$)",
    ))
});
/// A figure before such a word counts something else.
static UNIT: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"(?i)^(?:%|percent|[kMGT]i?B\b",
        r"|[a-z]*(?:guests|vms|jobs|seconds|minutes|hours|ms|times|files|clients)\b)",
    ))
});

/// The words of a remark, its key before them.
fn words_of(remark: &Remark) -> Cow<'_, str> {
    match &remark.key {
        Some(key) => Cow::Owned(format!("{key}: {}", remark.text)),
        None => Cow::Borrowed(&remark.text),
    }
}

/// A state out of a row of two or more of them, which together are no more than the whole.
fn in_a_row(text: &str, wanted: &str) -> Option<f64> {
    let named = NAME_FIRST.captures_iter(text).map(|found| (found[1].to_owned(), found[2].parse()));
    let mut row: Vec<(String, Result<f64, _>)> = named.collect();
    if row.len() < 2 {
        let figures = FIGURE_FIRST.captures_iter(text);
        row = figures.map(|found| (found[2].to_owned(), found[1].parse())).collect();
    }
    let parts: Vec<(&str, f64)> = row
        .iter()
        .filter_map(|(name, value)| Some((long_state(name), *value.as_ref().ok()?)))
        .collect();
    let distinct = parts.iter().any(|(name, _)| *name != parts[0].0);
    let sum: f64 = parts.iter().map(|(_, value)| value).sum();
    let own: Vec<f64> =
        parts.iter().filter(|(name, _)| *name == wanted).map(|(_, value)| *value).collect();
    (distinct && sum <= 103.0 && !own.is_empty()).then(|| own.iter().sum())
}

fn long_state(name: &str) -> &'static str {
    match name.to_ascii_lowercase().replace(' ', "").as_str() {
        "user" | "usr" | "us" | "nice" | "ni" => "user",
        "system" | "sys" | "sy" => "system",
        "idle" | "id" => "idle",
        "steal" | "st" => "steal",
        "iowait" | "wait" | "wa" | "io" => "iowait",
        _ => "interrupt",
    }
}

impl Facts {
    /// Percent of all CPUs in a state, as a tool shows it, or else as a sentence tells it.
    pub fn cpu_or_told(&self, state: &str) -> Known<f64> {
        self.cpu(state).or_else(|missing| {
            if !self.evidence().cpu.is_empty() {
                return Err(missing);
            }
            match state {
                "busy" => {
                    if let Some(percent) = self.told_busy() {
                        return Ok(percent);
                    }
                    Ok((100.0 - self.told_cpu("idle")? - self.told_cpu("iowait").unwrap_or(0.0))
                        .max(0.0))
                }
                _ => self.told_cpu(state).map_err(|_| missing),
            }
        })
    }

    fn told_cpu(&self, state: &str) -> Known<f64> {
        let told = STATES.iter().find(|told| told.state == state);
        for remark in self.evidence().remarks.iter().filter(|one| is_of_a_machine(&one.text)) {
            let text = &*words_of(remark);
            // There "System" is a process.
            if TASK_MANAGER.is_match(text) {
                continue;
            }
            if let Some(percent) = in_a_row(text, state) {
                self.used(&remark.source);
                return Ok(percent);
            }
            let found = told
                .into_iter()
                .flat_map(|told| [&told.before, &told.behind])
                .find_map(|pattern| pattern.captures(text))
                .or_else(|| SHORT.captures_iter(text).find(|one| short_state(&one[2]) == state));
            let Some(found) = found else { continue };
            let at = found.get(1).expect("the pattern has a group");
            let named = NAMED.captures_iter(&text[..at.start()]).last();
            if named.is_some_and(|name| name.get(1).is_some()) {
                continue;
            }
            let Ok(mut percent) = at.as_str().replace(',', ".").parse::<f64>() else { continue };
            if percent > 100.0 {
                let cpus = OF_CPUS.captures(text).and_then(|found| found[1].parse::<f64>().ok());
                let Some(cpus) = cpus.or_else(|| self.ncpu().ok()) else { continue };
                percent /= cpus.max(1.0);
            }
            if (0.0..=100.5).contains(&percent) {
                self.used(&remark.source);
                return Ok(percent);
            }
        }
        absent("CPU use by state (vmstat 1 10)")
    }

    /// What is said of all CPUs together.
    fn told_busy(&self) -> Option<f64> {
        let remarks = self.evidence().remarks.iter();
        for remark in remarks.filter(|one| is_of_a_machine(&one.text)) {
            let Some(found) = BUSY.captures(&words_of(remark)).map(|found| found[1].parse()) else {
                continue;
            };
            if let Some(percent) = found.ok().filter(|percent| (0.0..=100.5).contains(percent)) {
                self.used(&remark.source);
                return Some(percent);
            }
        }
        None
    }

    /// Load average of one minute, as a tool shows it, or else as a sentence tells it.
    pub fn load_or_told(&self) -> Known<f64> {
        self.load1().or_else(|missing| {
            for remark in &self.evidence().remarks {
                let text = &*words_of(remark);
                let Some(found) = LOAD.captures(text) else { continue };
                let at = found.get(1).expect("the pattern has a group");
                if UNIT.is_match(text[at.end()..].trim_start()) {
                    continue;
                }
                if let Ok(load) = at.as_str().parse::<f64>() {
                    self.used(&remark.source);
                    return Ok(load);
                }
            }
            Err(missing)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::{Evidence, Remark, Source};

    fn facts(text: &str) -> Facts {
        let source = Source { input: "report.txt".into(), line: Some(1) };
        let remarks = vec![Remark { key: None, text: text.to_owned(), source }];
        Facts::new(Evidence { remarks, ..Evidence::default() })
    }

    #[test]
    fn figures_of_the_cpu_are_read_and_those_of_disks_are_not() {
        for (text, state, percent) in [
            ("The CPUs are 95% idle.", "idle", Some(95.0)),
            ("CPU idle is about 90 percent while it happens.", "idle", Some(90.0)),
            ("system 3%, user 1%, idle 597%, wait 199% of 8 CPUs", "iowait", Some(24.875)),
            ("The machine shows 40% iowait all day.", "iowait", Some(40.0)),
            ("System time is at 38%.", "system", Some(38.0)),
            ("The disks are 60% idle.", "idle", None),
            ("The disk is 100% busy while the CPUs are 92% idle.", "idle", Some(92.0)),
            ("An idle machine has 6% system time.", "idle", None),
            ("user 80 sys 15 iowait 3", "system", Some(15.0)),
            ("80% user, 15% sys, 5% idle", "user", Some(80.0)),
            ("user 800 sys 150 iowait 3", "system", None),
            ("CPU usage 97%", "busy", Some(97.0)),
            ("CPU 12%, Memory 94%, Disk 100%", "busy", Some(12.0)),
            ("CPU usage 970%", "busy", None),
            ("A thread may keep the CPU 97%, which can be much.", "busy", None),
            ("The pool is 60% full.", "idle", None),
        ] {
            assert_eq!(facts(text).cpu_or_told(state).ok(), percent, "{text}");
        }
        let busy = facts("wait 30% and 60% idle").cpu_or_told("busy").unwrap();
        assert!((busy - 10.0).abs() < 1e-9, "{busy}");
    }

    #[test]
    fn a_load_is_read_where_it_is_one() {
        for (text, load) in [
            ("The load goes to 50.", Some(50.0)),
            ("The load of a host is over 200, with 2300 processes.", Some(200.0)),
            ("Load average: 70.52, 65.26, 58.57", Some(70.52)),
            ("The load stays at 12 while nothing runs.", Some(12.0)),
            ("At a load of 5 guests it is slow.", None),
            ("load avg 45 on a 16 core box, iowait at 60%", Some(45.0)),
            ("The load is at 90% of the CPUs.", None),
            ("Loading 20 files takes long.", None),
        ] {
            assert_eq!(facts(text).load_or_told().ok(), load, "{text}");
        }
    }
}
