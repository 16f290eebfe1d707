//! Files of a mount's control directory (`MNT/.ogive`) from which no rule needs a fact: `memory`,
//! `objects`, `l2`, `hidden`, `reclaim`, `prune`. Their lines are claimed, so none counts as unread.
//!
//! Files of one value are recognised by their names: `arc_max`, parameters of modules, and the
//! capture's own `zfs-module.txt`.

use crate::read::lines::{FORMAT, Format, set_once};
use crate::read::text::clean::Line;
use crate::read::text::number;
use crate::read::text::reading::Reading;

/// `memory`: the sources of memory pressure. `/proc/meminfo`, `/proc/pressure` and the limits of
/// groups have their figures.
pub(crate) static MEMORY: Format = Format {
    name: "ogive memory",
    words: "memory memory: stall",
    shapes: &[concat!(
        r"^(?:memory of the machine|cgroup v[12] memory|stall time \(PSI\)): .*\(/.*\)$",
        r"|^no source of memory pressure$",
    )],
    ..FORMAT
};

/// Whether lines are `objects` or `l2`, in JSON.
pub(crate) fn begins_json(lines: &[Line<'_>]) -> bool {
    /// The key in the second line, and one of the last keys.
    const MARKS: [(&str, &str); 2] =
        [("\"directories\": [", "\"sampled_one_in\""), ("\"devices\": [", "\"padding_bytes\"")];
    let text = |at: usize| lines.get(at).map_or("", |line| line.text.trim());
    let is_marked = |(second, last): &(&str, &str)| {
        text(1).starts_with(second) && lines.iter().any(|line| line.text.contains(last))
    };
    match text(0) {
        // There is no second level.
        "{}" => lines.iter().skip(1).all(|line| line.text.trim().is_empty()),
        "{" => MARKS.iter().any(is_marked),
        _ => false,
    }
}

/// Reads a line that only the name of its file explains; `false` if it explains nothing.
pub(crate) fn read_by_name(path: &str, line: &Line<'_>, reading: &mut Reading<'_>) -> bool {
    let text = line.text.trim();
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    let is_value = line.number == 1 && number::plain(text).is_some();
    let is_count = || text.split_once(' ').is_some_and(|(_, count)| number::plain(count).is_some());
    match name {
        "zfs-module.txt" if text == "zfs module: not loaded" => {
            let loaded = reading.statement(false, line);
            set_once(&mut reading.evidence.host.zfs_loaded, loaded);
        }
        "arc_max" if is_value => reading.parameter("ogive.arc_max_bytes", text, line),
        // The outcome of the last request.
        "reclaim" | "prune" if is_count() => {}
        // A name, a tab, and why programs do not see it.
        "hidden" if text.contains('\t') => {}
        _ if is_value && directory.ends_with("/parameters") => reading.parameter(name, text, line),
        _ => return false,
    }
    true
}
