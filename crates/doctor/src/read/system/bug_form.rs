//! The table at the head of OpenZFS's own form for reports: distribution, kernel, architecture and
//! versions, with bars around the cells or a colon between them.
//!
//! Every year's form has other words for the same rows. What is left empty says nothing, and a
//! version that names none (`latest`) is left.

use std::sync::LazyLock;

use regex::Regex;

use super::host;
use crate::read::text::clean::Line;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;

static ROW: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"^(?:[|*-]\s*)?\**(Distribution Name|Distribution Version|Linux Kernel|Kernel Version|",
        r"Kernel|Architecture|OpenZFS Version|ZFS Version|SPL Version|Type)\**",
        r"\s*(\||:\**\s)\s*(.*?)\s*\|?$",
    ))
    .expect("a constant pattern")
});

/// A row's key and value; the words `Architecture:` and `Type:` also stand in other lists.
fn row(text: &str) -> Option<(&'static str, String)> {
    let found = ROW.captures(text.trim())?;
    let keys = [
        "Distribution Name",
        "Distribution Version",
        "Linux Kernel",
        "Kernel Version",
        "Kernel",
        "Architecture",
        "OpenZFS Version",
        "ZFS Version",
        "SPL Version",
        "Type",
    ];
    let key = keys.into_iter().find(|key| *key == &found[1])?;
    let bars = found[2].starts_with('|');
    let told = match key {
        "Type" => bars && found[3].contains("ersion"),
        "Kernel" | "Architecture" => bars,
        _ => true,
    };
    told.then(|| (key, found[3].trim_matches(['`', '*']).trim().to_owned()))
}

/// Whether a line is a row of the form.
pub(crate) fn is_row(text: &str) -> bool {
    row(text).is_some()
}

/// Reads the form.
pub(crate) fn read(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut name: Option<(String, &Line<'_>)> = None;
    let mut version = None;
    for line in section.lines {
        let Some((key, value)) = row(&line.text) else {
            reading.leave(line);
            continue;
        };
        if value.is_empty() || value.starts_with("<!--") {
            continue;
        }
        match key {
            "Type" => {}
            "Distribution Name" => name = Some((value, line)),
            "Distribution Version" => version = Some(value),
            "Architecture" => host::said_architecture(&value, line, reading),
            "SPL Version" => {}
            "Linux Kernel" | "Kernel Version" | "Kernel" => kernel(&value, line, reading),
            _ => zfs_version(&value, line, reading),
        }
    }
    let Some((name, line)) = name else { return };
    if name.to_lowercase().contains("freebsd") {
        let system = reading.said("freebsd".to_owned(), line);
        host::set(&mut reading.evidence.host.os, system);
    }
    let whole = version.map_or(name.clone(), |version| format!("{name} {version}"));
    let whole = reading.said(whole, line);
    host::set(&mut reading.evidence.host.distribution, whole);
}

fn kernel(value: &str, line: &Line<'_>, reading: &mut Reading<'_>) {
    let bare = value.strip_prefix("Linux ").or_else(|| value.strip_prefix("FreeBSD "));
    let bare = bare.unwrap_or(value).trim().to_owned();
    if !bare.starts_with(|c: char| c.is_ascii_digit()) {
        reading.leave(line);
        return;
    }
    let release = bare.split_whitespace().next().unwrap_or(&bare).to_owned();
    let freebsd = value.starts_with("FreeBSD")
        || ["-RELEASE", "-STABLE", "-CURRENT"].iter().any(|mark| release.contains(mark));
    let system = if freebsd { "freebsd" } else { "linux" };
    let system = reading.said(system.to_owned(), line);
    host::set(&mut reading.evidence.host.os, system);
    let release = reading.said(release, line);
    host::set(&mut reading.evidence.host.kernel, release);
}

fn zfs_version(value: &str, line: &Line<'_>, reading: &mut Reading<'_>) {
    let bare = value.trim_start_matches("zfs-").trim_start_matches("kmod-");
    let bare = bare.strip_prefix('v').unwrap_or(bare);
    if bare.starts_with(|c: char| c.is_ascii_digit()) {
        let version = reading.said(bare.to_owned(), line);
        host::set(&mut reading.evidence.host.zfs_version, version);
    } else {
        reading.leave(line);
    }
}
