//! Rows of processes without a heading: their cells name the columns.
//!
//! `sort`, `head`, `grep` and `awk` remove the heading of a list, and people paste single rows. The
//! columns come from the command at the prompt, or from the form of the cells. An owner, a number,
//! a share, a state, a size and a time each have a form of their own. The command follows them, or
//! stands between a number and its share. The rows are then read as a table under that heading.
//!
//! Invariants: rows with the same columns form a list. A list is read only if something shows that
//! its rows are processes. The proof is the command at the prompt, a bracketed name or a path
//! (`[kswapd0]`, `/usr/bin/java`), or a known program. A state or a time next to the share also
//! suffices. The first of two shares is of the CPU, as in every tool.

use std::collections::{BTreeMap, BTreeSet};

use super::{command_columns, wait_channel};
use crate::facts::{is_known_program, looks_like_kernel};
use crate::read::plausibility;
use crate::read::table::formats::lists::{PS_ROWS, TOP};
use crate::read::table::{Format, Table, Unit, is_branch};
use crate::read::text::clean::Line;
use crate::read::text::frame;
use crate::read::text::number;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;

/// More words than any list has before its command.
const MAX_CELLS: usize = 16;
/// This many rows with a number and a share, sorted by share, are a list, even if no program in
/// them is known.
const SORTED_ROWS: usize = 3;

/// A row whose columns were named from its cells.
#[derive(Debug, Default, Clone)]
struct Row<'t> {
    names: Vec<&'static str>,
    cells: Vec<&'t str>,
    command: &'t str,
}

/// Whether a line may be such a row; its neighbours decide whether it is one.
pub(crate) fn is_row(text: &str) -> bool {
    text.len() <= 1024 && (row(text).is_some() || is_numbers(text) || wait_channel::is_row(text))
}

/// Whether a line has two numbers before a path or a bracketed name. Only the command at the prompt
/// can say which columns the numbers are.
fn is_numbers(text: &str) -> bool {
    let mut words = text.split_whitespace();
    let mut number = || words.next().is_some_and(|word| word.parse::<u64>().is_ok());
    number() && number() && words.next().is_some_and(|word| word.starts_with(['/', '[']))
}

/// Reads consecutive rows.
pub(crate) fn read(section: &Section<'_>, reading: &mut Reading<'_>) {
    let command = section.hint.command.as_deref().unwrap_or_default();
    let mut lists: BTreeMap<String, Vec<(&Line<'_>, Row<'_>)>> = BTreeMap::new();
    let asked = command_columns::heading(command);
    let own = asked.as_ref().map(|(heading, formats)| (heading.as_str(), *formats));
    let others = read_under(own, section.lines.iter(), section, reading);
    for line in others {
        match row(line.text.trim()) {
            // The command names the columns, and this line does not fit them.
            Some(row) if own.is_none() => {
                lists.entry(row.names.join(" ")).or_default().push((line, row));
            }
            None if wait_channel::read(line, reading) => {}
            _ => reading.leave(line),
        }
    }
    let lists_processes = ["ps ", "top", "pidstat", "pcpu", "%cpu"];
    let by_command = lists_processes.iter().any(|name| command.contains(name))
        && !command.contains("rss")
        && !command.contains("mem");
    for (heading, rows) in with_whole_shares(lists) {
        let is_sure = by_command || is_list(&rows);
        // top shows current use, ps the mean over a life; only top prints hundredths of seconds.
        let is_top = |(_, row): &(&Line<'_>, Row<'_>)| {
            row.cell("TIME").is_some_and(|time| time.contains('.'))
                || row.cell("VIRT").and(row.cell("STAT")).is_some()
        };
        let is_top = command.contains("top") || rows.iter().any(is_top);
        let formats: &'static [Format] = if is_top { &TOP } else { &PS_ROWS };
        let own = is_sure.then_some((heading.as_str(), formats));
        let lines = rows.iter().map(|(line, _)| *line);
        read_under(own, lines, section, reading).into_iter().for_each(|line| reading.leave(line));
    }
}

/// Reads lines as rows under a heading that was not printed; returns the rest.
fn read_under<'a, 'l: 'a>(
    heading: Option<(&'a str, &'static [Format])>,
    lines: impl Iterator<Item = &'a Line<'l>>,
    section: &Section<'_>,
    reading: &mut Reading<'_>,
) -> Vec<&'a Line<'l>> {
    let Some((heading, formats)) = heading else { return lines.collect() };
    let mut table = Table::new(formats, section);
    table.under(heading, reading);
    let others = lines.filter(|line| !table.take(line, reading)).collect();
    table.end(reading);
    others
}

type Lists<'a, 'l, 't> = BTreeMap<String, Vec<(&'a Line<'l>, Row<'t>)>>;

/// ps prints shares from 100 on without decimals. A row with a number in the place of the other
/// rows' share gets their columns.
fn with_whole_shares<'a, 'l, 't>(lists: Lists<'a, 'l, 't>) -> Lists<'a, 'l, 't> {
    let known: BTreeSet<String> = lists.keys().cloned().collect();
    let mut found = Lists::new();
    for (line, mut row) in lists.into_values().flatten() {
        let last = row.names.iter().rposition(|name| *name == "ID");
        if let Some(at) = last.filter(|at| Unit::Whole.figure(row.cells[*at]) >= Some(100.0)) {
            let mut names = row.names.clone();
            let share = names.iter_mut().find(|name| **name == "%CPU");
            share.into_iter().for_each(|name| *name = "%MEM");
            names[at] = "%CPU";
            if known.contains(&names.join(" ")) {
                row.names = names;
            }
        }
        found.entry(row.names.join(" ")).or_default().push((line, row));
    }
    found
}

/// Whether something shows that rows with the same columns are processes.
fn is_list(rows: &[(&Line<'_>, Row<'_>)]) -> bool {
    let is_shown = rows.iter().any(|(_, row)| row.shows_process()) || is_sorted(rows);
    is_shown && !rows.iter().any(|(_, row)| row.is_ambiguous())
}

fn is_sorted(rows: &[(&Line<'_>, Row<'_>)]) -> bool {
    let ids: BTreeSet<_> = rows.iter().filter_map(|(_, row)| row.cell("PID")).collect();
    let share = |row: &Row<'_>| row.cell("%CPU").and_then(number::plain);
    let falls = rows.windows(2).all(|pair| share(&pair[0].1) >= share(&pair[1].1));
    rows.len() >= SORTED_ROWS && ids.len() == rows.len() && falls
}

impl<'t> Row<'t> {
    fn cell(&self, name: &str) -> Option<&'t str> {
        self.names.iter().position(|other| *other == name).map(|at| self.cells[at])
    }

    /// Whether the only share may be of memory, and the number before it of the CPU.
    fn is_ambiguous(&self) -> bool {
        let at = self.names.windows(2).position(|pair| pair == ["ID", "%CPU"]);
        let number = at.and_then(|at| Unit::Whole.figure(self.cells[at]));
        self.cell("%MEM").is_none()
            && number.is_some_and(|number| (100.0..=6400.0).contains(&number))
    }

    fn shows_process(&self) -> bool {
        let (name, is_kernel) = frame::thread(self.command);
        let first = name.split_whitespace().next().unwrap_or_default();
        let program = first.rsplit('/').next().unwrap_or(first).trim_end_matches(':');
        let is_known = is_known_program(program) || looks_like_kernel(program);
        // A share and a word are enough only if the word is a known program.
        let has = |name: &str| self.cell(name).is_some();
        is_known
            || has("PID")
                && (is_kernel == Some(true)
                    || self.command.starts_with('/') && first.len() > 3
                    || has("STAT")
                    || has("TIME")
                    || has("USER") && has("%MEM"))
    }

    /// The column of a word that others follow; `None` for the first word of the command.
    fn name_of(&self, word: &str, next: &str) -> Option<&'static str> {
        let has = |name: &str| self.names.contains(&name);
        let any = has("PID") || has("%CPU");
        let is_figure = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
        let is_size = || {
            let digits = word.trim_end_matches(['k', 'K', 'm', 'M', 'g', 'G', 't', 'T']);
            digits.len() + 1 == word.len() && number::plain(digits).is_some()
        };
        let is_other = || matches!(word, "?" | "-" | "rt") || word.starts_with("pts/");
        let is_nice = || word.strip_prefix('-').is_some_and(|digits| digits.parse::<u8>().is_ok());
        // An owner stands before a figure, or before a command that is recognisable as one.
        let before_command =
            || next.starts_with(['/', '[']) && has("PID") && !word.contains(['/', ':', '[']);
        let is_owner = || {
            let may_be = self.names.is_empty() || has("PID");
            !has("USER") && is_name(word) && (before_command() || is_figure(next) && may_be)
        };
        if word.parse::<u64>().is_ok() {
            Some(if has("PID") { "ID" } else { "PID" })
        } else if is_share(word) {
            Some(if has("%CPU") { "%MEM" } else { "%CPU" })
        } else if word.contains(':') && Unit::Time.figure(word).is_some() {
            Some("TIME")
        } else if is_size() {
            Some("VIRT")
        } else if any && (is_other() || is_nice()) {
            Some("NICE")
        } else if any && is_state(word) {
            Some("STAT")
        } else {
            is_owner().then_some("USER")
        }
    }
}

/// The cells of a row; `None` if the text is not a row.
fn row(text: &str) -> Option<Row<'_>> {
    let text = text.trim();
    let words: Vec<&str> = text.split_whitespace().take(4).collect();
    // `1234 java 99.9`: the share is last.
    if let [id, command, share] = words[..]
        && id.parse::<u64>().is_ok()
        && is_share(share)
        && is_name(command)
    {
        return Some(Row { names: vec!["PID", "COMMAND", "%CPU"], cells: words, command });
    }
    // `mysql 1234 312.5 51.2 /usr/sbin/mysqld --daemonize`: the command is last.
    let mut row = Row { command: text, ..Row::default() };
    while row.cells.len() < MAX_CELLS {
        let (word, behind) =
            row.command.split_once(char::is_whitespace).unwrap_or((row.command, ""));
        let next = behind.split_whitespace().next();
        let Some(name) = next.and_then(|next| row.name_of(word, next)) else { break };
        row.names.push(name);
        row.cells.push(word);
        row.command = behind.trim_start();
    }
    // `ps f` draws a tree before it.
    let undrawn = row.command.trim_start_matches(is_branch);
    let is_command = !row.command.contains(" | ") && undrawn.starts_with(['/', '[', '('])
        || is_name(undrawn.split_whitespace().next()?.trim_end_matches([':', ',']));
    // Plain words after a share are a sentence.
    let is_sentence = row.cell("PID").is_none() && row.command.contains(' ');
    if !is_command || row.cell("%CPU").is_none() || is_sentence {
        return None;
    }
    row.names.push("COMMAND");
    row.cells.push(row.command);
    Some(row)
}

/// Whether a word is a share of the CPU: it needs a decimal, because a whole number could be
/// anything.
fn is_share(word: &str) -> bool {
    let decimals = word.split_once(['.', ',']).map_or(0, |(_, behind)| behind.len());
    let share = number::plain(word).filter(|_| (1..=2).contains(&decimals));
    share.is_some_and(plausibility::is_share_of_cpus)
}

fn is_state(word: &str) -> bool {
    let mut letters = word.chars();
    letters.next().is_some_and(|first| "RSDZTtIWX".contains(first))
        && word.len() <= 5
        && letters.all(|c| "<>NLsl+".contains(c))
}

/// Whether a word may be the name of a program, a thread or an owner.
fn is_name(word: &str) -> bool {
    const UNITS: [&str; 34] = [
        "B", "KB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB", "kB", "ms", "us", "ns", "s",
        "sec", "secs", "seconds", "min", "minutes", "hours", "days", "percent", "of", "in", "to",
        "and", "or", "Hz", "kHz", "MHz", "GHz", "C", "W", "x",
    ];
    word.len() >= 2
        && word.len() <= 64
        && word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && word.chars().all(|c| c.is_ascii_alphanumeric() || "_-.+/:@#$".contains(c))
        && !UNITS.contains(&word)
}

#[cfg(test)]
mod tests {
    use crate::evidence::Evidence;
    use crate::read::{finish, read_bytes};

    /// Name and percent of every row, with `~` for a mean over a life.
    fn rows(text: &str) -> Vec<String> {
        let mut evidence = Evidence::default();
        read_bytes(&mut evidence, "rows.txt", text.as_bytes());
        finish(&mut evidence);
        let figure = |thread: &crate::evidence::Thread| match thread.cpu_percent {
            Some(now) => format!("{} {now}", thread.name),
            None => format!("{} ~{}", thread.name, thread.life_percent.unwrap_or(-1.0)),
        };
        evidence.threads.iter().map(figure).collect()
    }

    #[test]
    fn rows_are_recognised_by_their_cells() {
        for (text, expected) in [
            ("99.9 java\n", &["java ~99.9"][..]),
            ("mysql 1234 312.5 51.2 /usr/sbin/mysqld --daemonize\n", &["mysqld ~312.5"]),
            (
                "98.2 2201 root [z_rd_int]\n3.0 910 root /usr/bin/dockerd -H fd://\n",
                &["z_rd_int ~98.2", "dockerd ~3"],
            ),
            (
                "31337 1 399 12.1 qemu-system-x86\n2201 2 12.5 0.0 kswapd0\n",
                &["qemu-system-x86 ~399", "kswapd0 ~12.5"],
            ),
            ("root 12345 0.3 R z_wr_iss\n", &["z_wr_iss ~0.3"]),
            ("1234 71.4 0.3 R 123:45.67 worker\n", &["worker 71.4"]),
            ("4412 java 392.0\n", &["java ~392"]),
            (
                "11 52.0 alpha\n12 31.5 beta\n13 2.0 gamma\n",
                &["alpha ~52", "beta ~31.5", "gamma ~2"],
            ),
        ] {
            assert_eq!(rows(text), expected, "{text}");
        }
    }

    #[test]
    fn the_command_names_the_columns() {
        let text = "$ ps -eo pid,pmem,pcpu,comm --sort=-pcpu\n12 61.0 3.5 worker\n14 0.1 2.0 b1\n";
        assert_eq!(rows(text), ["worker ~3.5", "b1 ~2"]);
    }

    #[test]
    fn rows_selected_by_grep_show_where_threads_wait() {
        let text = "D    1234 io_schedule          mysqld\n 812 D+ vfs_fsync_range [nfsd]\n";
        let mut evidence = Evidence::default();
        read_bytes(&mut evidence, "rows.txt", text.as_bytes());
        let states = evidence.threads.iter().map(|one| (one.name.as_str(), one.state));
        assert!(states.eq([("mysqld", Some('D')), ("nfsd", Some('D'))]));
        assert_eq!(evidence.kernel_stacks.len(), 2);
        read_bytes(&mut evidence, "other.txt", b"1234 D some_daemon now\n");
        assert_eq!(evidence.threads.len(), 2);
    }

    #[test]
    fn ambiguous_rows_are_left_unread() {
        for text in [
            "12.5 apples\n",
            "java 780%\npython 45%\nsomething 3%\n",
            "45.0 Core0\n44.0 Core1\n",
            "1024 3.5 MB\n",
            "12 99.5 ms\n",
            "2.1.5 zfs\n",
            "99.9 percent of all java programs\n",
            "sda 12.5\nsdb 3.5\n",
            "1234 399 12.1 java\n",
            "10:00:11 1234 z_wr_iss 95% | 1235 z_wr_iss 93%\n",
            "1 0.5 alpha\n2 0.7 beta\n",
        ] {
            assert!(rows(text).is_empty(), "{text}");
        }
    }
}
