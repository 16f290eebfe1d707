//! `time` in any shell and any language: bash and `time -p`, zsh, csh, fish, GNU time with and
//! without `-v`.
//!
//! The command is at the prompt or, where the tool prints it, on the line. Commas in these figures
//! are decimal marks: no `time` divides thousands.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::text::clean::Line;
use super::text::number;
use super::text::reading::Reading;
use super::text::section::Section;
use crate::evidence::Timing;

fn compiled(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a constant pattern")
}

static ZSH: LazyLock<Regex> = LazyLock::new(|| {
    compiled(r"^(\S.*?)\s+([\d.,]+)s? user\s+([\d.,]+)s? system\s+(\d+)% cpu\s+([\d:.,]+) total$")
});
static GNU: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"^([\d.,]+)user ([\d.,]+)system ([\d:.,]+)elapsed"));
static GNU_REST: LazyLock<Regex> = LazyLock::new(|| {
    compiled(r"^\d+inputs\+\d+outputs \(\d+major\+\d+minor\)pagefaults \d+swaps$")
});
static CSH: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"^([\d.,]+)u ([\d.,]+)s ([\d:.,]+) [\d.,]+%\s"));
static BASH: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"^(real|user|sys)\s+(?:(\d+)h)?(?:(\d+)m)?\s*([\d.,]+)s?$"));
static FISH: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r"^(Executed in|usr time|sys time)\s+([\d.,]+) (secs|millis|micros|mins|hours)(?:\s|$)",
    )
});
static VERBOSE: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"^(Command being timed|User time \(seconds\)|System time \(seconds\)|",
        r"Percent of CPU this job got|Elapsed \(wall clock\) time[^)]*\)|",
        r"(?:Average|Maximum|Major|Minor|Voluntary|Involuntary|Swaps|File system|Socket messages|",
        r"Signals delivered|Page size|Exit status)[^:]*): *(\S.*)$",
    ))
});

/// Whether a line is a result of `time`.
pub(crate) fn is_time(text: &str) -> bool {
    let text = text.trim();
    [&*BASH, &*ZSH, &*GNU, &*CSH, &*FISH].iter().any(|shape| shape.is_match(text))
        || text.starts_with("Command being timed:")
}

/// Whether a line belongs to a result that has begun.
pub(crate) fn is_of(text: &str) -> bool {
    let text = text.trim();
    is_time(text) || VERBOSE.is_match(text) || GNU_REST.is_match(text)
}

/// What was timed, without the words that time it.
fn timed(command: &str) -> String {
    let mut words = command.split_whitespace().peekable();
    while let Some(word) = words.peek() {
        let name = word.rsplit('/').next().unwrap_or(word);
        if !(matches!(name, "sudo" | "time" | "gtime") || matches!(*word, "-p" | "-v" | "-l")) {
            break;
        }
        words.next();
    }
    words.collect::<Vec<_>>().join(" ")
}

/// What is known of one run.
#[derive(Default)]
struct Run {
    command: Option<String>,
    real_s: Option<f64>,
    user_s: Option<f64>,
    system_s: Option<f64>,
}

impl Run {
    /// Takes the run into the evidence once all three times are there.
    fn end(&mut self, command: &str, line: &Line<'_>, reading: &mut Reading<'_>) {
        let (Some(real_s), Some(user_s), Some(system_s)) =
            (self.real_s, self.user_s, self.system_s)
        else {
            return;
        };
        let command = self.command.take().unwrap_or_else(|| command.to_owned());
        let source = reading.at(line);
        reading.evidence.timings.push(Timing { command, real_s, user_s, system_s, source });
        *self = Run::default();
    }
}

fn decimal(text: &str) -> Option<f64> {
    number::plain(&text.replace(',', "."))
}

/// `4.012`, `1:04.1`, `1:02:03`.
fn clock(text: &str) -> Option<f64> {
    decimal(text).or_else(|| number::cpu_seconds(text))
}

/// Reads `time`.
pub(crate) fn read(section: &Section<'_>, reading: &mut Reading<'_>) {
    let command = timed(section.hint.command.as_deref().unwrap_or_default());
    let mut run = Run::default();
    for line in section.lines {
        let text = line.text.trim();
        if let Some(found) = ZSH.captures(text) {
            run = Run {
                command: Some(found[1].to_owned()),
                real_s: clock(&found[5]),
                user_s: clock(&found[2]),
                system_s: clock(&found[3]),
            };
        } else if let Some(found) = GNU.captures(text).or_else(|| CSH.captures(text)) {
            run = Run {
                command: None,
                real_s: clock(&found[3]),
                user_s: clock(&found[1]),
                system_s: clock(&found[2]),
            };
        } else if let Some(found) = BASH.captures(text) {
            bash(&found, &mut run);
        } else if let Some(found) = FISH.captures(text) {
            fish(&found, &mut run);
        } else if let Some(found) = VERBOSE.captures(text) {
            verbose(&found[1], &found[2], &mut run);
        } else if !GNU_REST.is_match(text) && number::plain(text).is_none() {
            // A bare number is what `| wc -l` printed.
            reading.leave(line);
        }
        run.end(&command, line, reading);
    }
}

fn bash(found: &Captures<'_>, run: &mut Run) {
    let part = |at: usize, seconds: f64| {
        found.get(at).and_then(|cell| decimal(cell.as_str())).unwrap_or(0.0) * seconds
    };
    let seconds = part(2, 3600.0) + part(3, 60.0) + part(4, 1.0);
    match &found[1] {
        "real" => run.real_s = Some(seconds),
        "user" => run.user_s = Some(seconds),
        _ => run.system_s = Some(seconds),
    }
}

fn fish(found: &Captures<'_>, run: &mut Run) {
    let unit = match &found[3] {
        "hours" => 3600.0,
        "mins" => 60.0,
        "millis" => 1e-3,
        "micros" => 1e-6,
        _ => 1.0,
    };
    let seconds = decimal(&found[2]).map(|value| value * unit);
    match &found[1] {
        "Executed in" => run.real_s = seconds,
        "usr time" => run.user_s = seconds,
        _ => run.system_s = seconds,
    }
}

/// A line of `time -v`; what it says of memory is not asked for.
fn verbose(key: &str, value: &str, run: &mut Run) {
    if key.starts_with("Command") {
        *run = Run { command: Some(value.trim_matches('"').to_owned()), ..Run::default() };
    } else if key.starts_with("User") {
        run.user_s = decimal(value);
    } else if key.starts_with("System time") {
        run.system_s = decimal(value);
    } else if key.starts_with("Elapsed") {
        run.real_s = clock(value);
    }
}
