//! What would prove a cause that is near: the figure that was not shown, and what it would have to
//! be, in words of a person.
//!
//! A sign's condition is read part by part. A part that compares something with something else, and
//! of which one side was not shown, is said with its direction: "arc_meta_used (arcstats) more than
//! 95% of arc_meta_limit (now 12 GiB)". Other parts are said by the name of what was not shown.

use std::sync::LazyLock;

use regex::Regex;

use super::native;
use super::weigh::Weighed;
use crate::atlas;
use crate::expression::{Answer, Environment, Expression, Format};
use crate::facts::Facts;
use crate::rule::{Rule, SignKind};

/// So many names of functions or threads stand in one phrase.
const MAX_NAMES: usize = 4;
/// So many facts that would tell are named.
const MAX_FACTS: usize = 3;
/// So many things are named.
const MAX_NAMED: usize = 2;

fn compiled(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a constant pattern")
}

static COMPARED: LazyLock<Regex> = LazyLock::new(|| {
    compiled(r#"^(?P<left>(?P<ask>\w+)\((?P<of>.*)\)) (?P<how>>=?|<=?) (?P<right>[^<>=]+)$"#)
});
static TABLE: LazyLock<Regex> =
    LazyLock::new(|| compiled(r#"^"(?P<table>\w+)\.(?P<figure>[^"]+)"$"#));
static OF_SCOPE: LazyLock<Regex> =
    LazyLock::new(|| compiled(r#"^"(?P<table>\w+)", r?"[^"]*", "(?P<figure>[^"]+)"$"#));
static NAMES: LazyLock<Regex> =
    LazyLock::new(|| compiled(r#"^(?:role|subsystem)\("(?P<names>[^"]+)"\)$"#));

/// What the strongest signs that were not shown would have to show, of those that the command
/// shows.
pub(super) fn expected(
    rule: &Rule,
    best: &Weighed,
    run: &str,
    environment: &Environment,
) -> Vec<String> {
    let mut all: Vec<(String, String)> = Vec::new();
    let measured = |at: &&usize| rule.signs[**at].kind != SignKind::Words;
    for at in best.open.iter().filter(measured) {
        let source = rule.signs[*at].when.source();
        let said = parts(source)
            .into_iter()
            .filter(|part| is_shown_by(part, run))
            .find_map(|part| of_part(part, environment));
        // The first is of the strongest sign.
        if let Some(said) = said.filter(|said| all.iter().all(|(known, _)| *known != said.0)) {
            all.push(said);
        }
        if all.len() == MAX_NAMED {
            break;
        }
    }
    all.into_iter().map(|(what, how)| format!("{what} is {how}")).collect()
}

/// What rules that look at the subsystem looked for and did not find.
pub(super) fn would_tell(weighed: &[(&Rule, Weighed)], subsystem: &str, facts: &Facts) -> String {
    let system = native::system(facts);
    let words = |fact: &String| in_words(fact, &system);
    let whole = subsystem.split('/').next().unwrap_or(subsystem);
    let looks = |rule: &Rule, name: &str| {
        rule.expressions().iter().any(|(_, expression)| expression.source().contains(name))
    };
    let mut told: Vec<String> = Vec::new();
    // Those that name the very subsystem first, then those of the whole that it is part of.
    for name in [format!("\"{subsystem}"), format!("\"{whole}")] {
        for (_, own) in weighed.iter().filter(|(rule, _)| looks(rule, &name)) {
            for fact in own.not_known.iter().filter_map(words) {
                if told.len() < MAX_FACTS && !told.contains(&fact) {
                    told.push(fact);
                }
            }
        }
    }
    match told.is_empty() {
        true => String::new(),
        false => format!(" These facts would tell: {}.", told.join("; ")),
    }
}

/// What was not shown, in words; `None` for what only a program understands.
pub(super) fn in_words(fact: &str, system: &str) -> Option<String> {
    static FIGURE: LazyLock<Regex> = LazyLock::new(|| {
        compiled(r"^(?P<table>[a-z_0-9]+)\.(?P<figure>[A-Za-z_0-9.]+)(?P<rest> .*)?$")
    });
    if fact.starts_with("figures like ") || fact.contains(r"\.") {
        return None;
    }
    Some(match FIGURE.captures(fact) {
        Some(found) => {
            // "of" a pattern says nothing to a person.
            let rest = found.name("rest").map_or("", |rest| rest.as_str());
            let rest = if rest.starts_with(" of ") { "" } else { rest };
            format!("{}{rest}", figure_words(&found["table"], &found["figure"]))
        }
        // How to get it is said in brackets, for Linux.
        None if native::is_foreign(fact, system) => fact.split(" (").next()?.to_owned(),
        None => fact.to_owned(),
    })
}

/// The parts of a condition between `&&` and `||`, those in brackets too.
fn parts(source: &str) -> Vec<&str> {
    let (mut all, mut start, mut depth, mut quote) = (Vec::new(), 0, 0_usize, None);
    let bytes = source.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match (bytes[at], quote) {
            (letter, Some(open)) if letter == open => quote = None,
            (_, Some(_)) => {}
            (letter @ (b'"' | b'\''), None) => quote = Some(letter),
            (b'(', None) => {
                // A bracket that no name stands before holds parts of its own.
                let of_function = at > 0 && bytes[at - 1].is_ascii_alphanumeric();
                if depth == 0 && !of_function {
                    start = at + 1;
                } else {
                    depth += 1;
                }
            }
            (b')', None) if depth > 0 => depth -= 1,
            (b')' | b'&' | b'|', None) if depth == 0 => {
                all.push(source[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    all.push(source[start..].trim());
    all.retain(|part| !part.is_empty());
    all
}

/// What one part would have to show; nothing where it is known, or cannot be said.
fn of_part(part: &str, environment: &Environment) -> Option<(String, String)> {
    let whole = Expression::compile(part).ok()?;
    if environment.evaluate(&whole).ok()?.0 != Answer::NotKnown {
        return None;
    }
    // Sums and differences are no figure that has a name.
    let found = COMPARED.captures(part).filter(|found| !found["of"].contains(") "))?;
    let (left, format) = quantity(&found["ask"], &found["of"])?;
    let how = if found["how"].starts_with('>') { "more than" } else { "less than" };
    let value = |source: &str| {
        let expression = Expression::compile(source).ok()?;
        environment.number(&expression).ok().flatten()
    };
    // Times are in nanoseconds where their figures say so.
    let unit = if format == Format::Seconds { 1e-9 } else { 1.0 };
    let now = value(&found["left"])
        .map_or_else(String::new, |now| format!("here {}", format.write(now * unit)));
    let left = match (now.as_str(), left.strip_suffix(')')) {
        ("", _) => left,
        (now, Some(open)) => format!("{open}; {now})"),
        (now, None) => format!("{left} ({now})"),
    };
    let right = match found["right"].trim().parse::<f64>() {
        Ok(number) => limit(number * unit, format),
        Err(_) => against(found["right"].trim(), format, unit, &value)?,
    };
    Some((left, format!("{how} {right}")))
}

/// Whether a command shows what a part of a condition asks for.
fn is_shown_by(part: &str, run: &str) -> bool {
    let Some(found) = COMPARED.captures(part) else { return false };
    let has = |tools: &[&str]| tools.iter().any(|tool| run.contains(tool));
    match &found["ask"] {
        "thread_cpu" | "thread_max" | "comm_share" | "waiting" => {
            has(&["top -", "prstat", "ps ", "pidstat"])
        }
        "self_share" | "kernel_self_share" | "stack_share" | "spinning" => {
            has(&["perf ", "dtrace", "lockstat", "spindump"])
        }
        "zfs_share" | "process_share" | "user_share" => has(&["perf ", "top -", "prstat"]),
        "cpu" => has(&["vmstat", "top -", "mpstat", "iostat", "prstat"]),
        "arc" => has(&["arcstat", "arc_summary"]),
        "load1" => has(&["loadavg", "uptime", "top -"]),
        "prop_max" | "prop_min" => run.contains(found["of"].trim_matches('"')),
        "param" => has(&["/parameters/", "sysctl"]),
        _ => {
            let table = found["of"].trim_start_matches('"').split(['.', '"']).next().unwrap_or("");
            match table {
                "iostat" => has(&["iostat -", "gstat"]),
                "zpool_iostat" => has(&["zpool iostat"]),
                "arcstat" | "arcstats" => has(&["arcstat", "arc_summary"]),
                "strace_c" => has(&["strace"]),
                "meminfo" => has(&["free ", "meminfo"]),
                "smart" => has(&["smartctl"]),
                name => run.contains(name),
            }
        }
    }
}

fn limit(number: f64, format: Format) -> String {
    if number == 0.0 && format != Format::Percent { "0".to_owned() } else { format.write(number) }
}

/// What it is compared with: a part of another figure.
fn against(
    right: &str,
    format: Format,
    unit: f64,
    value: &impl Fn(&str) -> Option<f64>,
) -> Option<String> {
    static PART: LazyLock<Regex> =
        LazyLock::new(|| compiled(r"^(?:(?P<times>[0-9.]+) \* )?(?P<ask>\w+)\((?P<of>.*)\)$"));
    let found = PART.captures(right)?;
    let (name, _) = quantity(&found["ask"], &found["of"])?;
    let times = match found.name("times").map(|times| times.as_str().parse::<f64>()) {
        None => String::new(),
        Some(Ok(times)) if times < 1.0 => format!("{:.0}% of ", times * 100.0),
        Some(Ok(times)) => format!("{} times ", Format::Number.write(times)),
        Some(Err(_)) => return None,
    };
    let now =
        value(right).map_or_else(String::new, |now| format!(", {}", format.write(now * unit)));
    Some(format!("{times}{name}{now}"))
}

/// What a question of the language is about, and how its answer is written.
fn quantity(ask: &str, of: &str) -> Option<(String, Format)> {
    let format = |figure: &str| match figure {
        bytes if bytes.ends_with("_bytes") || is_size(bytes) => Format::Bytes,
        percent if percent.ends_with("percent") || percent == "frag" => Format::Percent,
        time if time.contains("_ns") => Format::Seconds,
        _ => Format::Count,
    };
    let table = || {
        let found = TABLE.captures(of).or_else(|| OF_SCOPE.captures(of))?;
        let (table, figure) = (found["table"].to_owned(), found["figure"].to_owned());
        Some((figure_words(&table, &figure), format(&figure)))
    };
    match ask {
        "gauge" | "gauge_of" | "gauge_max" | "gauge_min" | "gauge_sum" => table(),
        "rate" => table().map(|(name, _)| (name, Format::Rate)),
        "delta" => table().map(|(name, format)| (format!("growth of {name}"), format)),
        "arc" => Some((
            match of.trim_matches('"') {
                "size" => "the size of the ARC",
                "c" => "the target of the ARC",
                "c_max" => "the limit of the ARC",
                "c_min" => "the least size of the ARC",
                _ => return None,
            }
            .to_owned(),
            Format::Bytes,
        )),
        "ram_bytes" => Some(("RAM".to_owned(), Format::Bytes)),
        "cpu" => Some((format!("{} time of the CPUs", of.trim_matches('"')), Format::Percent)),
        "load1" => Some(("the load average".to_owned(), Format::Number)),
        "thread_cpu" | "thread_max" | "comm_share" => {
            Some((format!("the CPU of {}", threads(of)?), Format::Percent))
        }
        "self_share" | "kernel_self_share" | "stack_share" => {
            Some((format!("the profile's part in {}", functions(of)?), Format::Percent))
        }
        "prop_max" | "prop_min" => Some((of.trim_matches('"').to_owned(), Format::Number)),
        "param" => Some((of.trim_matches('"').to_owned(), Format::Number)),
        "zfs_share" => Some(("ZFS's part of the busy CPU".to_owned(), Format::Percent)),
        "process_share" => Some(("programs' part of the busy CPU".to_owned(), Format::Percent)),
        "user_share" => Some(("user space's part of the busy CPU".to_owned(), Format::Percent)),
        "spinning" => Some(("the profile's part that spins for locks".to_owned(), Format::Percent)),
        "waiting" => Some(("the number of threads in state D".to_owned(), Format::Count)),
        _ => None,
    }
}

/// Sizes that arcstats have without a unit in their names.
fn is_size(figure: &str) -> bool {
    matches!(figure, "size" | "c" | "c_min" | "c_max" | "dnode_size" | "hdr_size" | "l2_hdr_size")
        || figure.starts_with("arc_meta")
        || figure.ends_with("_limit")
        || figure.contains("evictable")
        || figure == "arc_need_free"
}

/// A figure with the table that it stands in.
fn figure_words(table: &str, figure: &str) -> String {
    let name = figure.trim_end_matches("_bytes").replace("_ns", "");
    format!("{name} ({table})")
}

/// Threads by what they do, or by their names.
fn threads(of: &str) -> Option<String> {
    if let Some(found) = NAMES.captures(of) {
        let first = found["names"].split(',').next().unwrap_or("").trim().to_owned();
        return Some(match atlas::role_does(&first) {
            Some(does) => format!("the thread that {does}"),
            None => format!("the threads of {first}"),
        });
    }
    plain_names(of)
}

/// Functions by what they do, or by their names.
fn functions(of: &str) -> Option<String> {
    if let Some(found) = NAMES.captures(of) {
        let first = found["names"].split(',').next().unwrap_or("").trim().to_owned();
        return Some(match atlas::does(&first) {
            Some(does) => format!("{first} ({does})"),
            None => first,
        });
    }
    plain_names(of)
}

/// The names that a simple pattern stands for.
fn plain_names(of: &str) -> Option<String> {
    let pattern = of.trim_start_matches('r').trim_matches('"');
    let names = pattern.trim_start_matches('^').trim_end_matches('$');
    let names = names.trim_start_matches('(').trim_end_matches(')');
    let plain = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let names: Vec<&str> = names.split('|').collect();
    // A long list says less than the title of the cause.
    let few = names.len() <= MAX_NAMES;
    few.then_some(())?;
    names.iter().all(|name| plain(name)).then(|| names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Evidence;
    use crate::facts::Facts;
    use crate::read::{finish, read_bytes};

    fn said(part: &str, arcstats: &str) -> Option<String> {
        let mut evidence = Evidence::default();
        let text = format!("13 1 0x01 2 96 1 2\nname type data\n{arcstats}");
        read_bytes(&mut evidence, "arcstats", text.as_bytes());
        finish(&mut evidence);
        let (what, how) = of_part(part, &Environment::new(Facts::new(evidence)))?;
        Some(format!("{what} is {how}"))
    }

    #[test]
    fn a_figure_is_said_with_its_direction_and_what_is_known_of_it() {
        let part = r#"gauge("arcstats.arc_meta_used") > 0.95 * gauge("arcstats.arc_meta_limit")"#;
        assert_eq!(
            said(part, "arc_meta_used 4 4294967296\nsize 4 9\n").as_deref(),
            Some(
                "arc_meta_used (arcstats; here 4 GiB) is more than 95% of arc_meta_limit (arcstats)"
            )
        );
        assert_eq!(
            said(part, "arc_meta_limit 4 4294967296\nsize 4 9\n").as_deref(),
            Some("arc_meta_used (arcstats) is more than 95% of arc_meta_limit (arcstats), 3.8 GiB")
        );
        let rate = r#"rate("arcstats.arc_prune") > 5.0"#;
        assert_eq!(
            said(rate, "size 4 9\n").as_deref(),
            Some("arc_prune (arcstats) is more than 5/s")
        );
        let threads = r#"thread_cpu("^(arc_prune|arc_evict)") > 40.0"#;
        assert_eq!(
            said(threads, "size 4 9\n").as_deref(),
            Some("the CPU of arc_prune, arc_evict is more than 40%")
        );
        assert_eq!(said("ogive()", "size 4 9\n"), None);
    }

    #[test]
    fn brackets_and_quotes_are_not_torn_apart() {
        assert_eq!(
            parts(r#"a("x && y") > 1.0 && (b() < 2.0 || c(d("z")) > 3.0)"#),
            [r#"a("x && y") > 1.0"#, "b() < 2.0", r#"c(d("z")) > 3.0"#]
        );
    }
}
