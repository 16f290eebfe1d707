//! Removes names from a capture: hosts, users, addresses, pools, data sets, paths, programs.
//!
//! A name gets the same pseudonym everywhere, so that related lines stay related. Names of kernel
//! threads, functions, counters, properties, devices and versions are evidence and stay. Free text
//! (the kernel's log, its command line) is not searched for secrets. Instead, only lines and words
//! that are evidence are kept.

mod host_names;
mod patterns;
mod profile;
mod pseudonyms;
mod public_names;
mod spellings;

use regex::Captures;

use self::patterns::{BOOT, BUILDER, COMMON_PATH, LOG, PATH, TASK, without_secrets};
use self::pseudonyms::Pseudonyms;
use super::Bundle;

pub(super) use self::host_names::Secrets;

/// Replaces names in all files, in the profile and in the notes.
pub(super) fn redact(bundle: &mut Bundle, secrets: &Secrets) {
    let mut names = Pseudonyms::new(secrets);
    for (name, content) in &bundle.files {
        names.learn(name, &String::from_utf8_lossy(content));
    }
    for (name, content) in &mut bundle.files {
        let text = String::from_utf8_lossy(content).into_owned();
        *content = file(name, &text, &mut names).into_bytes();
        *name = names.in_text(name);
    }
    if let Some(found) = &bundle.profile {
        bundle.profile = Some(profile::redacted(found, &mut names));
    }
    for note in &mut bundle.notes {
        *note = plain(note, &names);
    }
}

/// Redacts one file. Its name decides which names it may contain.
fn file(name: &str, text: &str, names: &mut Pseudonyms) -> String {
    if name.ends_with("-stats.txt") {
        return names.threads(text);
    }
    if name.ends_with("waits.txt") {
        return text.lines().map(|line| waiting(line, names) + "\n").collect();
    }
    if name.ends_with("cgroups.txt") {
        return text.lines().filter_map(|line| group(line, names)).collect();
    }
    if name.ends_with("served-mounts.txt") {
        return text.lines().map(|line| served(line) + "\n").collect();
    }
    if name.ends_with("proc/mounts") {
        return text.lines().map(|line| mount(line) + "\n").collect();
    }
    if name.ends_with("proc/cmdline") {
        let allowed = text.split_whitespace().filter(|word| BOOT.is_match(word));
        return allowed.map(|word| plain(word, names) + " ").collect::<String>() + "\n";
    }
    if name.ends_with("dmesg.txt") {
        let allowed = text.lines().filter(|line| LOG.is_match(line));
        return allowed.map(|line| log_line(line, names) + "\n").collect();
    }
    if name.ends_with(".ogive/mount") {
        return described(text, names);
    }
    if name.contains("kstat/zfs/") && name.ends_with("/reads") {
        return names.reads(text);
    }
    // Counters contain no names except those of data sets. A pool may have the name of a counter.
    let counters = name.contains("/proc/") || name.starts_with("proc/") || name.contains(".ogive/");
    let named = name.contains("objset-") || name.ends_with("dbgmsg");
    if counters && !named && !name.ends_with("proc/version") {
        return text.to_owned();
    }
    if name.ends_with("uname.txt") {
        return plain(&without_node(text), names);
    }
    if name.ends_with("proc/version") {
        return plain(&BUILDER.replace_all(text, "user@host"), names);
    }
    if name.ends_with("zpool-get.txt") {
        let rows = text.lines().filter(|line| !is_remark(line));
        return rows.map(|line| plain(line, names) + "\n").collect();
    }
    plain(text, names)
}

/// A line of the stacks of waiting threads: frames stay, and the program gets a pseudonym.
fn waiting(line: &str, names: &mut Pseudonyms) -> String {
    let Some(rest) = line.strip_prefix("== ") else { return line.to_owned() };
    let mut words = rest.split(' ');
    let program = names.program(words.next().unwrap_or_default());
    let rest: Vec<&str> = words.collect();
    format!("== {program} {}", rest.join(" "))
}

/// A line of a control group's file: the group gets a number.
fn group(line: &str, names: &mut Pseudonyms) -> Option<String> {
    let (path, figure) =
        line.split_once(':').filter(|(path, _)| is_group_file(path)).or_else(|| {
            // A group's name may contain a colon, and a figure never does.
            line.rsplit_once(':').filter(|(path, _)| is_group_file(path))
        })?;
    let (group, file) = path.rsplit_once('/')?;
    let group = names.group(group.strip_prefix("/sys/fs/cgroup").unwrap_or(group));
    Some(format!("/sys/fs/cgroup/{group}/{file}:{figure}\n"))
}

fn is_group_file(path: &str) -> bool {
    let file = path.rsplit('/').next().unwrap_or_default();
    ["cpu.", "cpuacct.", "memory.", "io."].iter().any(|start| file.starts_with(start))
}

/// A line of the served mounts: its type and its figures stay.
fn served(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let [kind, _, point, waiting, pid, state] = words[..] else { return String::new() };
    if point == "MOUNT" {
        return line.to_owned();
    }
    let kind = kind.split('.').next().unwrap_or(kind);
    format!("{kind} source /path {waiting} {pid} {state}")
}

/// `uname -a` without the host's name, which is always its second word.
fn without_node(text: &str) -> String {
    let word = |(at, word): (usize, &str)| if at == 1 { "host" } else { word }.to_owned();
    let words: Vec<String> = text.split_whitespace().enumerate().map(word).collect();
    words.join(" ") + "\n"
}

/// Whether a row of `zpool get` is a comment or a user property.
fn is_remark(row: &str) -> bool {
    let mut words = row.split_whitespace().skip(1);
    words.any(|word| word == "comment" || word.contains(':') && !word.starts_with("feature@"))
}

/// A line of the kernel's log.
fn log_line(line: &str, names: &mut Pseudonyms) -> String {
    let line = TASK.replace_all(line, |found: &Captures<'_>| {
        format!("{}{}{}", &found["before"], names.program(&found["name"]), &found["behind"])
    });
    names.in_log(&plain(&line, names))
}

/// A mount's description: its switches stay, and its paths and addresses are replaced.
fn described(text: &str, names: &Pseudonyms) -> String {
    let Ok(mut value) = serde_json::from_str(text) else { return "{}\n".to_owned() };
    without_names(&mut value, names);
    format!("{value:#}\n")
}

fn without_names(value: &mut serde_json::Value, names: &Pseudonyms) {
    match value {
        serde_json::Value::String(text) => {
            let is_switch = |c: char| c.is_ascii_alphanumeric() || "-._+".contains(c);
            let closed = names.in_text(text);
            *text = match closed.strip_prefix("/path") {
                Some(number) if number.bytes().all(|byte| byte.is_ascii_digit()) => closed,
                _ if closed.chars().all(is_switch) => closed,
                _ => "/path".to_owned(),
            };
        }
        serde_json::Value::Array(all) => all.iter_mut().for_each(|one| without_names(one, names)),
        serde_json::Value::Object(all) => {
            all.values_mut().for_each(|one| without_names(one, names));
        }
        _ => {}
    }
}

/// Replaces paths, addresses, serial numbers and known names in a text.
fn plain(text: &str, names: &Pseudonyms) -> String {
    without_secrets(without_paths(&names.in_text(text)))
}

/// Replaces paths, except those that every host has. A word one blank after a path may belong to it
/// and is removed too.
fn without_paths(text: &str) -> String {
    let replaced = PATH.replace_all(text, |found: &Captures<'_>| {
        if !COMMON_PATH.is_match(&found["path"]) {
            return format!("{}/path", &found["before"]);
        }
        let more = without_paths(&found["more"]);
        format!("{}{}{more}", &found["before"], &found["path"])
    });
    replaced.into_owned()
}

/// A line of /proc/mounts: only the type and the number of mounts are evidence.
fn mount(line: &str) -> String {
    let kind = line.split_whitespace().nth(2).unwrap_or("none");
    format!("device /path {kind} rw 0 0")
}

#[cfg(test)]
mod planted_names;
#[cfg(test)]
mod tests;
