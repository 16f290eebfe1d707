//! The progress bar of a replay.
//!
//! It appears only on a terminal, and counts compressed bytes if the files have a known size.

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ogive_sim::Progress;

/// A bar, or nothing.
pub(crate) struct Watch {
    bar: Option<ProgressBar>,
}

impl Watch {
    /// A bar for these traces, if standard error is a terminal.
    pub(crate) fn new(traces: &[PathBuf], quiet: bool) -> Self {
        if quiet || !io::stderr().is_terminal() {
            return Self { bar: None };
        }
        let sizes = traces.iter().map(|path| std::fs::metadata(path).map(|data| data.len()).ok());
        let (bar, template) = match sizes.sum::<Option<u64>>() {
            Some(bytes) => (
                ProgressBar::new(bytes),
                "{msg} {wide_bar} {bytes}/{total_bytes} {elapsed} (left: {eta})",
            ),
            None => (ProgressBar::new_spinner(), "{spinner} {msg} {bytes} {elapsed}"),
        };
        let style = ProgressStyle::with_template(template);
        bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(5));
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self { bar: Some(bar) }
    }

    /// Shows the progress. Always continues, because an interruption ends the process.
    pub(crate) fn show(&self, progress: Progress) -> bool {
        if let Some(bar) = &self.bar {
            let Progress { pass, bytes, requests } = progress;
            bar.set_message(format!("pass {pass}, {requests} requests"));
            bar.set_position(bytes);
        }
        true
    }

    /// Removes the bar.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
