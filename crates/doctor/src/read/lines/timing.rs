//! Commands that were timed.
//!
//! The command is at the prompt, or on a line of the tool. Commas in these figures are decimal
//! marks: no tool separates thousands of seconds.

use crate::evidence::{Thread, Timing};
use crate::read::text::clean::Line;
use crate::read::text::number;
use crate::read::text::reading::Reading;
use crate::read::text::word_lists;

/// One run while it is read.
#[derive(Default)]
pub(super) struct Run {
    /// The command at the prompt.
    typed: String,
    command: Option<String>,
    /// The thread or process that was watched.
    watched: Option<String>,
    real_s: Option<f64>,
    user_s: Option<f64>,
    system_s: Option<f64>,
}

impl Run {
    /// A run of a command, without the words that time it.
    pub(super) fn of(typed: &str) -> Self {
        let is_timing = |word: &&str| {
            word_lists::has("sudo time gtime -p -v -l", word.rsplit('/').next().unwrap_or(word))
        };
        let words: Vec<&str> = typed.split_whitespace().skip_while(is_timing).collect();
        Self { typed: words.join(" "), ..Self::default() }
    }

    /// Takes a part; once all three times are there, it adds the run to the evidence.
    pub(super) fn take(
        &mut self,
        part: &str,
        cell: &str,
        line: &Line<'_>,
        reading: &mut Reading<'_>,
    ) {
        match part {
            "command" => {
                let typed = std::mem::take(&mut self.typed);
                *self = Self { typed, command: Some(cell.to_owned()), ..Self::default() };
            }
            "watched" => {
                self.watched = Some(cell.replace('\'', "").replace(" id ", " "));
                reading.list += 1;
            }
            "cpus" => {
                if let (Some(name), Some(cpus)) = (&self.watched, clock(cell)) {
                    let thread = reading.thread(name.clone(), line);
                    let thread = Thread { cpu_percent: Some(cpus * 100.0), ..thread };
                    reading.evidence.threads.push(thread);
                }
            }
            "real" => self.real_s = clock(cell),
            "user" => self.user_s = clock(cell),
            _ => self.system_s = clock(cell),
        }
        if let (Some(real_s), Some(user_s), Some(system_s)) =
            (self.real_s, self.user_s, self.system_s)
        {
            let command = self.command.take().unwrap_or_else(|| self.typed.clone());
            let source = reading.at(line);
            reading.evidence.timings.push(Timing { command, real_s, user_s, system_s, source });
            (self.real_s, self.user_s, self.system_s) = (None, None, None);
        }
    }
}

/// `4.012`, `1:04.1`, `0m4.012s`, `12,5 millis`, in seconds.
fn clock(text: &str) -> Option<f64> {
    if text.contains(':') {
        return number::cpu_seconds(text);
    }
    let (mut seconds, mut rest) = (0.0, text.trim());
    while !rest.is_empty() {
        let end = rest.find(|c: char| c.is_alphabetic() || c == ' ').unwrap_or(rest.len());
        let figure = number::plain(&rest[..end].replace(',', "."))?;
        rest = rest[end..].trim_start();
        let end = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
        seconds += figure
            * match &rest[..end] {
                "h" | "hours" => 3600.0,
                "m" | "mins" => 60.0,
                "millis" => 1e-3,
                "micros" => 1e-6,
                _ => 1.0,
            };
        rest = rest[end..].trim_start();
    }
    Some(seconds)
}
