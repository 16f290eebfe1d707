//! Times of commands: the time of one run, the ratio of two runs, and how the time grows.

use std::collections::BTreeMap;

use super::{Facts, Known, absent};
use crate::evidence::Timing;

impl Facts {
    /// The largest figure of the matching timed commands.
    pub fn timed(&self, command: &str, figure: impl Fn(&Timing) -> f64) -> Known<f64> {
        let pattern = self.pattern(command)?;
        let hits =
            self.evidence().timings.iter().filter(|timing| pattern.is_match(&timing.command));
        match hits.max_by(|a, b| figure(a).total_cmp(&figure(b))) {
            Some(timing) => {
                self.used(&timing.source);
                Ok(figure(timing))
            }
            None => absent("a timed command (time zfs list ...)"),
        }
    }

    /// The CPU of the most expensive run of a command divided by that of its cheapest. Both have
    /// the same program and verb (`zfs get`), with more and with less to do.
    pub fn timed_ratio(&self, command: &str) -> Known<f64> {
        let pattern = self.pattern(command)?;
        let mut runs: BTreeMap<String, Vec<&Timing>> = BTreeMap::new();
        let timings = &self.evidence().timings;
        for timing in timings.iter().filter(|timing| pattern.is_match(&timing.command)) {
            let found = pattern.find(&timing.command).map_or(0, |found| found.start());
            let verb: Vec<&str> = timing.command[found..].split_whitespace().take(2).collect();
            runs.entry(verb.join(" ")).or_default().push(timing);
        }
        let spent = |timing: &&Timing| (timing.user_s + timing.system_s).max(0.01);
        let ratios = runs.values().filter(|runs| runs.len() > 1).map(|runs| {
            runs.iter().for_each(|timing| self.used(&timing.source));
            let spent = runs.iter().map(spent);
            spent.clone().fold(0.0, f64::max) / spent.fold(f64::MAX, f64::min)
        });
        ratios.reduce(f64::max).map_or_else(|| absent("the same command timed twice"), Ok)
    }

    /// How a command's time grows: the exponent between the least and the most work, by numbers in
    /// the command's text (`zfs holds (25 snapshots)`).
    pub fn timed_growth(&self, command: &str) -> Known<f64> {
        let pattern = self.pattern(command)?;
        let mut points: Vec<(f64, f64)> = Vec::new();
        for timing in
            self.evidence().timings.iter().filter(|timing| pattern.is_match(&timing.command))
        {
            let digits =
                timing.command.split(|c: char| !c.is_ascii_digit()).find(|part| !part.is_empty());
            if let Some(amount) =
                digits.and_then(|digits| digits.parse::<f64>().ok()).filter(|amount| *amount > 0.0)
            {
                self.used(&timing.source);
                points.push((amount, (timing.user_s + timing.system_s).max(0.001)));
            }
        }
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        match (points.first(), points.last()) {
            (Some(least), Some(most)) if most.0 > least.0 => {
                Ok((most.1 / least.1).ln() / (most.0 / least.0).ln())
            }
            _ => absent("the same command timed for several sizes"),
        }
    }
}
