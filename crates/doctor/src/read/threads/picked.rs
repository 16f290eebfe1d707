//! Which columns a command prints whose heading was cut off: `ps -eo pcpu,pid,args | sort`,
//! `ps aux | awk '{print $3, $11}'`.
//!
//! The command is at the prompt; what it prints is named by it, so that nothing has to be guessed.
//! A command that is not understood to its end names nothing.

use crate::read::table::Format;
use crate::read::table::formats::lists::{PS, TOP as TOP_LIST};

/// Columns of `ps aux`, of `ps -ef` and of Linux top, as `awk` counts them.
const AUX: &str = "USER PID %CPU %MEM VSZ RSS TTY STAT START TIME COMMAND";
const FULL: &str = "UID PID PPID C STIME TTY TIME CMD";
const TOP: &str = "PID USER PR NI VIRT RES SHR S %CPU %MEM TIME+ COMMAND";

/// The heading that the command's output would have, and whose it is.
pub(crate) fn heading(command: &str) -> Option<(String, &'static [Format])> {
    let mut parts = command.split('|').map(str::trim);
    let first = parts.next()?;
    let (whole, formats) = printed(first)?;
    let mut names: Vec<&str> = whole.split(' ').collect();
    for part in parts {
        let program = part.split_whitespace().next().unwrap_or_default();
        match program {
            "awk" | "gawk" | "mawk" => {
                let printed = fields(part)?.into_iter().map(|at| names.get(at - 1).copied());
                names = printed.collect::<Option<_>>()?;
            }
            "sort" | "head" | "tail" | "grep" | "egrep" | "uniq" | "less" | "more" | "cat"
            | "tee" => {}
            _ => return None,
        }
    }
    Some((names.join(" "), formats))
}

/// Columns of the first command of a pipe.
fn printed(command: &str) -> Option<(String, &'static [Format])> {
    let mut words = command.split_whitespace().skip_while(|word| {
        matches!(*word, "sudo" | "watch" | "time" | "LC_ALL=C" | "-n" | "1" | "2" | "5")
    });
    match words.next()? {
        "top" => Some((TOP.to_owned(), &TOP_LIST)),
        "ps" => {
            let words: Vec<&str> = words.collect();
            let names = chosen(&words);
            let names = names.or_else(|| {
                let options = words.first().copied().unwrap_or_default();
                let of = |letters: &[&str]| letters.contains(&options.trim_start_matches('-'));
                if of(&["aux", "auxw", "auxww", "uax", "axu"]) {
                    Some(AUX.to_owned())
                } else if options.starts_with('-') && of(&["ef", "fe", "efw", "efww"]) {
                    Some(FULL.to_owned())
                } else {
                    None
                }
            });
            names.map(|names| (names, &PS[2..]))
        }
        _ => None,
    }
}

/// The names behind the option `-o` of ps.
fn chosen(words: &[&str]) -> Option<String> {
    let mut names: Vec<String> = Vec::new();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        let is_option = |word: &str| {
            matches!(word, "o" | "--format" | "-O")
                || word.starts_with('-')
                    && !word.starts_with("--")
                    && word.ends_with('o')
                    && word[1..].bytes().all(|letter| letter.is_ascii_alphabetic())
                || matches!(word, "axo" | "xo" | "axho")
        };
        let list = if is_option(word) {
            at += 1;
            words.get(at - 1).copied()?
        } else if let Some(list) = word.strip_prefix("--format=") {
            list
        } else if let Some((_, list)) = word
            .split_once('o')
            .filter(|(before, list)| matches!(*before, "-" | "-e" | "-A") && list.contains(','))
        {
            list
        } else {
            continue;
        };
        for name in list.trim_matches(['\'', '"']).split(',').filter(|name| !name.is_empty()) {
            names.push(column(name));
        }
    }
    (!names.is_empty()).then(|| names.join(" "))
}

/// What ps calls a column that was asked for.
fn column(name: &str) -> String {
    let name = name.split([':', '=']).next().unwrap_or(name);
    let heading = match name {
        "pcpu" | "%cpu" => "%CPU",
        "pmem" | "%mem" => "%MEM",
        "user" | "uname" | "euser" | "ruser" => "USER",
        "comm" | "ucmd" | "ucomm" | "cmd" | "args" | "command" => "COMMAND",
        "stat" | "state" | "s" => "STAT",
        "time" | "cputime" => "TIME",
        "tid" | "lwp" | "spid" => "TID",
        "etime" => "ELAPSED",
        "vsz" | "vsize" => "VSZ",
        "rss" | "rssize" | "rsz" => "RSS",
        other => return other.to_ascii_uppercase(),
    };
    heading.to_owned()
}

/// The fields that `awk '{print ...}'` prints, counted from 1; `None` if it does more than print.
fn fields(part: &str) -> Option<Vec<usize>> {
    let (before, print) = part.split_once("print")?;
    if before.contains("+=") || before.contains("END") {
        return None;
    }
    let print = print.split('}').next()?;
    let mut fields = Vec::new();
    for (at, _) in print.match_indices('$') {
        let digits: String =
            print[at + 1..].chars().take_while(char::is_ascii_digit).take(3).collect();
        fields.push(digits.parse().ok().filter(|field| *field > 0)?);
    }
    (!fields.is_empty() && fields.len() <= 20).then_some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_names_what_it_prints() {
        for (command, names) in [
            ("ps -eo pcpu,pid,user,args | sort -k1 -r | head -5", Some("%CPU PID USER COMMAND")),
            ("ps axo pid,%cpu,comm", Some("PID %CPU COMMAND")),
            ("ps -eopid,stat,wchan:30,cmd", Some("PID STAT WCHAN COMMAND")),
            ("ps -eo pid -o pcpu= -o comm=", Some("PID %CPU COMMAND")),
            ("ps aux | awk '{print $1, $3, $11}' | sort", Some("USER %CPU COMMAND")),
            ("top -bn1 | awk '{print $9\" \"$12}'", Some("%CPU COMMAND")),
            ("ps aux | awk '{print $44}'", None),
            ("ps aux | awk '{s+=$3} END {print s}'", None),
            ("ps aux | sed s/a/b/", None),
            ("df -h", None),
        ] {
            assert_eq!(heading(command).map(|found| found.0).as_deref(), names, "{command}");
        }
    }
}
