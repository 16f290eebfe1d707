//! Rows of processes that have lost their heading: columns are known by what they hold.
//!
//! `sort`, `head`, `grep` and `awk` cut the heading off a list, and people paste one row of it. An
//! owner, a number, a share, a state, a size and a time look each like itself, and the command
//! stands behind them (or, behind a number, before its share).
//!
//! Invariants: rows stand together if they have the same columns; none is read before something
//! shows that they are of processes: the command at the prompt, a dressed command (`[kswapd0]`,
//! `/usr/bin/java`), a program that people know, a state or a time beside the share. Of two shares
//! the first is of the CPU, as every tool has it.

use std::collections::{BTreeMap, BTreeSet};

use super::{picked, wait_channel};
use crate::evidence::Thread;
use crate::facts::{is_known_program, looks_like_kernel};
use crate::read::impossible;
use crate::read::table::{Table, is_branch, name_of};
use crate::read::text::clean::Line;
use crate::read::text::frame;
use crate::read::text::number;
use crate::read::text::reading::Reading;
use crate::read::text::section::Section;

/// More words than any list has before its command.
const MAX_CELLS: usize = 16;
/// Rows with a number and a share, sorted by it, from which they are a list whoever is on it.
const SORTED_ROWS: usize = 3;

/// What a row holds.
#[derive(Debug, Default, Clone, PartialEq)]
struct Row<'t> {
    /// Kinds of its cells, one letter each, by which rows stand together.
    columns: String,
    owner: bool,
    /// Whole numbers, with their column; the first is of the process.
    ids: Vec<(usize, u64)>,
    /// Shares, with their column; the first is of the CPU.
    shares: Vec<(usize, f64)>,
    state: Option<char>,
    time: Option<&'t str>,
    /// Whether sizes with a suffix stand there, as top prints them.
    sized: bool,
    command: &'t str,
}

/// Whether a line may be such a row; whether it is one its neighbours tell.
pub(crate) fn is_row(text: &str) -> bool {
    text.len() <= 1024 && (row(text).is_some() || is_numbers(text) || wait_channel::is_row(text))
}

/// Two numbers before a command that shows that it is one: what the second is of, only the command
/// at the prompt can tell.
fn is_numbers(text: &str) -> bool {
    let mut words = text.split_whitespace();
    let mut number = || words.next().is_some_and(|word| word.parse::<u64>().is_ok());
    number() && number() && words.next().is_some_and(|word| word.starts_with(['/', '[']))
}

/// Reads rows that stand one below the other.
pub(crate) fn read(section: &Section<'_>, reading: &mut Reading<'_>) {
    let command = section.hint.command.as_deref().unwrap_or_default();
    let heading = picked::heading(command);
    let mut table = heading.as_ref().map(|(names, formats)| {
        let mut table = Table::new(formats, section);
        table.under(names, reading);
        table
    });
    let mut rest: Vec<(&Line<'_>, Row<'_>)> = Vec::new();
    reading.list += 1;
    for line in section.lines {
        if table.as_mut().is_some_and(|table| table.take(line, reading)) {
            continue;
        }
        match row(line.text.trim()) {
            // What the command prints is known, and this is something else.
            Some(row) if table.is_none() => rest.push((line, row)),
            None if wait_channel::read(line, reading) => {}
            _ => reading.leave(line),
        }
    }
    if let Some(table) = table {
        table.end(reading);
    }
    let lists_processes = ["ps ", "top", "pidstat", "pcpu", "%cpu"];
    let by_command = lists_processes.iter().any(|name| command.contains(name))
        && !command.contains("rss")
        && !command.contains("mem");
    for same in by_columns(rest) {
        let rows: Vec<&Row<'_>> = same.iter().map(|(_, row)| row).collect();
        let sure = by_command || is_list(&rows);
        reading.list += 1;
        for (line, row) in &same {
            if sure {
                let thread = thread(row, command, line, reading);
                reading.evidence.threads.push(thread);
            } else {
                reading.leave(line);
            }
        }
    }
}

type Rows<'a, 'l, 't> = Vec<(&'a Line<'l>, Row<'t>)>;

/// Rows with the same columns together. From 100 on ps prints a share without its decimals: a row
/// with a number where others have a share has the columns of those.
fn by_columns<'a, 'l, 't>(rows: Rows<'a, 'l, 't>) -> Vec<Rows<'a, 'l, 't>> {
    let known: BTreeSet<String> = rows.iter().map(|(_, row)| row.columns.clone()).collect();
    let mut lists: BTreeMap<String, Rows<'a, 'l, 't>> = BTreeMap::new();
    for (line, mut row) in rows {
        let last_id = row.ids.last().copied();
        if let Some((at, share)) = last_id.filter(|_| row.ids.len() > 1) {
            let mut columns = row.columns.clone();
            columns.replace_range(at..=at, "P");
            if known.contains(&columns) && share >= 100 {
                #[expect(clippy::cast_precision_loss, reason = "a share")]
                row.shares.insert(0, (at, share as f64));
                row.ids.pop();
                row.columns = columns;
            }
        }
        lists.entry(row.columns.clone()).or_default().push((line, row));
    }
    lists.into_values().collect()
}

/// Whether something shows that rows with the same columns are of processes.
fn is_list(rows: &[&Row<'_>]) -> bool {
    let numbered = rows.iter().all(|row| !row.ids.is_empty());
    let told = rows.iter().any(|row| shows_process(row)) || numbered && is_sorted(rows);
    told && !rows.iter().any(|row| is_ambiguous(row))
}

/// Whether the number before the only share may be the share of the CPU, and that one of memory.
fn is_ambiguous(row: &Row<'_>) -> bool {
    let (Some((before, number)), [(at, _)]) = (row.ids.last(), &row.shares[..]) else {
        return false;
    };
    row.ids.len() > 1 && before + 1 == *at && (100..=6400).contains(number)
}

fn shows_process(row: &Row<'_>) -> bool {
    let (name, dressed) = frame::thread(row.command);
    let first = name.split_whitespace().next().unwrap_or_default();
    let program = first.rsplit('/').next().unwrap_or(first).trim_end_matches(':');
    let known = is_known_program(program) || looks_like_kernel(program);
    if row.ids.is_empty() {
        // A share and a word: only of a program that people know.
        return known;
    }
    let path = row.command.starts_with('/') && first.len() > 3;
    known
        || dressed == Some(true)
        || path
        || row.state.is_some()
        || row.time.is_some()
        || row.owner && row.shares.len() == 2
}

fn is_sorted(rows: &[&Row<'_>]) -> bool {
    let mut ids: Vec<u64> = rows.iter().filter_map(|row| Some(row.ids.first()?.1)).collect();
    ids.sort_unstable();
    ids.dedup();
    let falls = rows.windows(2).all(|pair| pair[0].shares[0].1 >= pair[1].shares[0].1);
    rows.len() >= SORTED_ROWS && ids.len() == rows.len() && falls
}

fn thread(row: &Row<'_>, command: &str, line: &Line<'_>, reading: &Reading<'_>) -> Thread {
    let raw = row.command.trim_start_matches(is_branch);
    let (name, dressed) = frame::thread(raw);
    let share = row.shares.first().map(|(_, share)| *share);
    // top shows what is used now, ps means over lives; hundredths of seconds are top's.
    let of_top = command.contains("top")
        || row.time.is_some_and(|time| time.contains('.'))
        || row.sized && row.state.is_some();
    Thread {
        command: name.contains(' ').then(|| name.clone()),
        id: row.ids.first().map(|(_, id)| *id),
        kernel: dressed,
        state: row.state,
        cpu_percent: share.filter(|_| of_top),
        life_percent: share.filter(|_| !of_top),
        cpu_time_s: row.time.and_then(number::cpu_seconds),
        ..reading.thread(name_of(&name, false), line)
    }
}

/// The cells of a row; `None` if it is none.
fn row(text: &str) -> Option<Row<'_>> {
    let text = text.trim();
    share_last(text).or_else(|| figures_first(text))
}

/// `1234 java 99.9`: the share stands last.
fn share_last(text: &str) -> Option<Row<'_>> {
    let words: Vec<&str> = text.split_whitespace().take(4).collect();
    let [id, name, last] = words[..] else { return None };
    let ids = vec![(0, id.parse().ok()?)];
    let shares = vec![(2, share(last)?)];
    is_name(name).then(|| Row {
        columns: "INP".to_owned(),
        ids,
        shares,
        command: name,
        ..Row::default()
    })
}

/// `mysql 1234 312.5 51.2 /usr/sbin/mysqld --daemonize`: the command stands last.
fn figures_first(text: &str) -> Option<Row<'_>> {
    let mut found = Row::default();
    let mut rest = text;
    for at in 0..MAX_CELLS {
        let word = rest.split_whitespace().next()?;
        let behind = rest[word.len()..].trim_start();
        let next = behind.split_whitespace().next();
        let kind = kind_of(word, next, at, &mut found);
        let Some(kind) = kind else { break };
        found.columns.push(kind);
        rest = behind;
    }
    found.command = rest;
    // `ps f` draws a tree before it.
    let undrawn = rest.trim_start_matches(is_branch);
    let is_command = !rest.contains(" | ") && undrawn.starts_with(['/', '[', '('])
        || is_name(undrawn.split_whitespace().next()?.trim_end_matches([':', ',']));
    // Plain words behind a share are a sentence.
    let plain = found.ids.is_empty() && rest.contains(' ');
    (is_command && !found.shares.is_empty() && !plain).then_some(found)
}

/// What a cell is, noted in the row; `None` for what begins the command.
fn kind_of<'t>(word: &'t str, next: Option<&str>, at: usize, found: &mut Row<'t>) -> Option<char> {
    let next = next?;
    if let Ok(id) = word.parse::<u64>() {
        found.ids.push((found.columns.len(), id));
        return Some('I');
    }
    if let Some(value) = share(word) {
        found.shares.push((found.columns.len(), value));
        return Some('P');
    }
    if word.contains(':') && number::cpu_seconds(word.trim_end_matches('h')).is_some() {
        found.time = Some(word);
        return Some('T');
    }
    let figure = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    let sized = word.trim_end_matches(['k', 'K', 'm', 'M', 'g', 'G', 't', 'T']);
    if figure(word) && sized.len() + 1 == word.len() && number::plain(sized).is_some() {
        found.sized = true;
        return Some('G');
    }
    let any = !found.ids.is_empty() || !found.shares.is_empty();
    if any && (matches!(word, "?" | "-" | "rt") || word.starts_with("pts/") || is_nice(word)) {
        return Some('-');
    }
    if any && is_state(word) {
        found.state = word.chars().next();
        return Some('S');
    }
    // An owner stands before a figure, or before a command that shows that it is one.
    let before_command =
        next.starts_with(['/', '[']) && !found.ids.is_empty() && !word.contains(['/', ':', '[']);
    let owner = !found.owner
        && is_name(word)
        && (before_command || figure(next) && (at == 0 || !found.ids.is_empty()));
    if owner {
        found.owner = true;
        return Some('O');
    }
    None
}

/// A share of the CPU: it has a decimal, or it could be anything.
fn share(word: &str) -> Option<f64> {
    let decimals = word.split_once(['.', ',']).map_or(0, |(_, behind)| behind.len());
    let digits = number::plain(word).filter(|_| (1..=2).contains(&decimals));
    digits.filter(|value| impossible::is_share_of_cpus(*value))
}

fn is_nice(word: &str) -> bool {
    word.strip_prefix('-').is_some_and(|digits| digits.parse::<u8>().is_ok())
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

    /// Name and percent of every row, with `~` where it is a mean over a life.
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
    fn rows_are_known_by_what_their_columns_hold() {
        for (text, wanted) in [
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
            assert_eq!(rows(text), wanted, "{text}");
        }
    }

    #[test]
    fn the_command_names_the_columns() {
        let text = "$ ps -eo pid,pmem,pcpu,comm --sort=-pcpu\n12 61.0 3.5 worker\n14 0.1 2.0 b1\n";
        assert_eq!(rows(text), ["worker ~3.5", "b1 ~2"]);
    }

    #[test]
    fn what_grep_left_of_waiting_threads_shows_where_they_wait() {
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
    fn what_may_be_anything_is_left_unread() {
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
