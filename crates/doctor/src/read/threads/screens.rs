//! Tools that show a list with meters around it, and the first lines of their output.

use super::meters::{Meters, has_meter};
use crate::pattern::Pattern;
use crate::read::table::formats::lists::{PS, TOP};
use crate::read::table::formats::systems::{BTOP, BUSYBOX, HTOP, MACOS_TOP};
use crate::read::table::{self, Format};
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;

fn read(formats: &'static [Format], section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut meters = Meters::new(reading);
    table::read_with(formats, section, reading, |line, reading| meters.take(line, reading));
    meters.end(reading);
}

/// Reads `top` of Linux, FreeBSD and illumos.
pub(crate) fn read_top(section: &Section<'_>, reading: &mut Reading<'_>) {
    read(&TOP, section, reading);
}

/// Reads `htop` and `glances`.
pub(crate) fn read_htop(section: &Section<'_>, reading: &mut Reading<'_>) {
    read(&HTOP, section, reading);
}

/// Reads `btop` and `bpytop`.
pub(crate) fn read_btop(section: &Section<'_>, reading: &mut Reading<'_>) {
    read(&BTOP, section, reading);
}

/// Reads `top` of busybox.
pub(crate) fn read_busybox(section: &Section<'_>, reading: &mut Reading<'_>) {
    read(&BUSYBOX, section, reading);
}

/// Reads `top` of macOS.
pub(crate) fn read_macos(section: &Section<'_>, reading: &mut Reading<'_>) {
    read(&MACOS_TOP, section, reading);
}

/// Whether a line names the columns of top.
pub(crate) fn is_top_heading(text: &str) -> bool {
    TOP[0].is_heading(text) && !PS.iter().any(|format| format.is_heading(text))
}

/// Whether a line begins a screen of htop.
pub(crate) fn begins_htop(text: &str) -> bool {
    text.starts_with("Tasks: ") && text.contains(" thr") || HTOP[0].begins(text) || has_meter(text)
}

/// Whether a line begins a screen of btop.
pub(crate) fn begins_btop(text: &str) -> bool {
    text.contains("cpu┌") && text.contains("menu") || BTOP[0].begins(text)
}

/// Whether a line begins a page of busybox top.
pub(crate) fn begins_busybox(text: &str) -> bool {
    text.starts_with("Mem: ") && text.contains("K used, ") && text.contains("K free")
        || text.starts_with("CPU") && (text.contains("% usr") || text.contains("%usr"))
        || text.contains("%VSZ") && is_busybox_heading(text)
}

/// Whether a line names the columns of busybox top.
pub(crate) fn is_busybox_heading(text: &str) -> bool {
    BUSYBOX[0].is_heading(text)
}

/// Whether a line begins a page of macOS top.
pub(crate) fn begins_macos(text: &str) -> bool {
    text.starts_with("Processes: ") && text.contains(" total, ")
        || text.starts_with("CPU usage: ") && text.contains("% idle")
        || text.starts_with("Load Avg: ")
        || MACOS_TOP[0].begins(text)
}

/// Whether a line begins a page of top: a line above the list, or the heading.
pub(crate) fn begins_top(text: &str) -> bool {
    SUMMARY.is_match(text) || is_top_heading(text)
}

static SUMMARY: Pattern = Pattern::new(concat!(
    r"^top - \d|^last pid:|^(?:Tasks|Threads):\s+\d+ total|^%?C[Pp][Uu]\(s\)\D*\d.*\p{L}",
    r"|^%?Cpu\s?\d+\s*:|^CPU \d+:\s+[\d.]+% user|^(?:CPU|CPU states?):\s+[\d.]+% (?:user|idle)",
    r"|^(?:[KMGT]iB )?(?:Mem|Swap)\s*:\s*\d.*(?:total|used|free)|^load averages:.*;",
    r"|^(?:Mem|Memory): \d+[KMG]",
));
