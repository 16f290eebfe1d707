//! Extracts all figures of evidence and of a case's facts, so that they can be compared.

use ogive_doctor::evidence::{Evidence, Number};
use serde_json::Value;

/// Figures, sorted.
pub(crate) struct Figures(Vec<f64>);

/// Factors between units of the facts and of the evidence.
const SCALES: [f64; 7] = [1.0, 1024.0, 1_048_576.0, 1_073_741_824.0, 1000.0, 60.0, 1e9];

impl Figures {
    /// Whether a figure is present, in its own unit or the evidence's.
    pub(crate) fn has(&self, value: f64) -> bool {
        SCALES.iter().any(|scale| self.near(value * scale))
    }

    fn near(&self, value: f64) -> bool {
        let slack = value.abs() * 1e-6 + 0.005;
        let at = self.0.partition_point(|known| *known < value - slack);
        self.0.get(at).is_some_and(|known| *known <= value + slack)
    }
}

/// Every number in a text, even if a unit follows it.
fn of_text(text: &str, into: &mut Vec<f64>) {
    let is_part = |c: char| c.is_ascii_digit() || c == '.';
    for word in text.split(|c: char| !is_part(c)) {
        into.extend(word.trim_matches('.').parse::<f64>().ok());
    }
    for word in text.split(|c: char| !c.is_ascii_hexdigit()) {
        into.extend(u64::from_str_radix(word, 16).ok().map(|value| value as f64));
    }
}

/// Figures of the evidence.
pub(crate) fn of_evidence(evidence: &Evidence) -> Figures {
    let mut all = Vec::new();
    for table in &evidence.tables {
        of_text(table.scope.as_deref().unwrap_or(""), &mut all);
        all.extend(table.age_s);
        all.extend(table.taken_ns.map(|taken| taken as f64 / 1e9));
        for figure in &table.figures {
            match &figure.value {
                Number::Gauge(value) | Number::Counter(value) | Number::Rate(value) => {
                    all.push(*value)
                }
                Number::Text(text) => of_text(text, &mut all),
            }
        }
    }
    for thread in &evidence.threads {
        all.extend(
            [
                thread.cpu_percent,
                thread.life_percent,
                thread.cpu_time_s,
                thread.id.map(|id| id as f64),
            ]
            .into_iter()
            .flatten(),
        );
    }
    for used in &evidence.cpu {
        all.extend([used.user, used.system, used.idle, used.iowait, used.interrupt, used.steal]);
    }
    for profile in &evidence.profiles {
        all.extend(profile.samples.map(|samples| samples as f64));
        all.extend(profile.stacks.iter().map(|stack| stack.weight));
        for row in &profile.rows {
            all.extend(row.self_percent);
            all.extend(row.total_percent);
            all.extend(row.chains.iter().map(|chain| chain.percent));
        }
    }
    all.extend(evidence.kernel_stacks.iter().map(|stack| stack.count as f64));
    for lock in &evidence.locks {
        all.extend(
            [lock.count.map(|count| count as f64), lock.wait_ns, lock.percent]
                .into_iter()
                .flatten(),
        );
    }
    for timing in &evidence.timings {
        all.extend([timing.real_s, timing.user_s, timing.system_s]);
    }
    let host = &evidence.host;
    all.extend(host.load.as_ref().map(|load| load.value).into_iter().flatten());
    all.extend(host.uptime_s.as_ref().map(|up| up.value));
    all.extend(host.cpus.as_ref().map(|cpus| f64::from(cpus.value)));
    all.extend(host.ram_bytes.as_ref().map(|bytes| bytes.value as f64));
    let texts = (evidence.log.iter().map(|line| &line.value))
        .chain(evidence.not_understood.iter().map(|line| &line.value))
        .chain(evidence.properties.iter().map(|property| &property.value))
        .chain(evidence.parameters.iter().map(|parameter| &parameter.value))
        .chain(evidence.pools.iter().map(|line| &line.text))
        .chain(evidence.timings.iter().map(|timing| &timing.command));
    for text in texts {
        of_text(text, &mut all);
    }
    all.sort_by(f64::total_cmp);
    Figures(all)
}

/// Keys of the facts that no file is rendered from, or whose figures have no meaning (memory
/// columns of a process, offsets in functions, numbers of terminals).
const NOT_RENDERED: [&str; 32] = [
    "other",
    "threads_reported",
    "report",
    "arcstats_meta",
    "arcstats_rate",
    "pr",
    "ni",
    "virt",
    "res",
    "shr",
    "mem_pct",
    "users",
    "off",
    "len",
    "row",
    "ppid",
    "vsz",
    "rss",
    "c",
    "freq_hz",
    "lost",
    "drop",
    "event_count",
    "order",
    "tty",
    "rounded",
    "g",
    "q",
    "line",
    "timing",
    "slab_note",
    "arcstats_rounded",
];

/// Whether the reader keeps another figure than the printed one. Parts of the entry above in call
/// graphs are multiplied out, time stamps of logs are removed, and the CPU share of `time` is a
/// quotient.
fn is_converted(path: &str) -> bool {
    path.contains("/stacks/") && path.ends_with("/pct")
        || path.starts_with("/dbgmsg/") && path.ends_with("/ts")
        || path.starts_with("/time/") && path.ends_with("/cpu_pct")
}

/// Figures of the facts, each with its path.
pub(crate) fn of_facts(facts: &Value) -> Vec<(String, f64)> {
    let mut found = Vec::new();
    let mut open = vec![(String::new(), facts)];
    while let Some((path, value)) = open.pop() {
        match value {
            Value::Number(number) if !is_converted(&path) => {
                found.extend(number.as_f64().map(|number| (path, number)));
            }
            Value::Array(items) => {
                open.extend(
                    items.iter().enumerate().map(|(at, item)| (format!("{path}/{at}"), item)),
                );
            }
            Value::Object(fields) => {
                for (key, field) in fields {
                    let skipped = NOT_RENDERED.contains(&key.as_str())
                        && !path.contains("vmstat")
                        && !path.contains("arcstats");
                    if !skipped {
                        open.push((format!("{path}/{key}"), field));
                    }
                }
            }
            _ => {}
        }
    }
    found
}
