//! The columns of output without a heading: `ps -eo pcpu,pid,args | sort`, `ps aux | awk '{print
//! $3, $11}'`.
//!
//! The command at the prompt names the columns, so none is guessed. A command that is not fully
//! understood names none.

use crate::read::table::Format;
use crate::read::table::formats::lists::{PS_ROWS, TOP};

/// Columns of `ps aux`, `ps -ef` and Linux top, in the numbering of `awk`.
const AUX: &str = "USER PID %CPU %MEM VSZ RSS TTY STAT START TIME COMMAND";
const FULL: &str = "UID PID PPID C STIME TTY TIME CMD";
const OF_TOP: &str = "PID USER PR NI VIRT RES SHR S %CPU %MEM TIME+ COMMAND";

/// The heading that the command's output would have, and its formats.
pub(crate) fn heading(command: &str) -> Option<(String, &'static [Format])> {
    let mut parts = command.split('|').map(str::trim);
    let mut words = parts.next()?.split_whitespace().skip_while(|word| {
        matches!(*word, "sudo" | "watch" | "time" | "LC_ALL=C" | "-n" | "1" | "2" | "5")
    });
    let (whole, formats): (_, &'static [Format]) = match words.next()? {
        "top" => (OF_TOP.to_owned(), &TOP),
        "ps" => (columns_of_ps(&words.collect::<Vec<_>>())?, &PS_ROWS),
        _ => return None,
    };
    let mut names: Vec<&str> = whole.split(' ').collect();
    for part in parts {
        match part.split_whitespace().next().unwrap_or_default() {
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

/// The columns of `ps`: the list after `-o`, or those of `aux` and `-ef`.
fn columns_of_ps(words: &[&str]) -> Option<String> {
    let is_option = |word: &str| {
        let letters = word.trim_start_matches('-');
        let is_letters = letters.bytes().all(|letter| letter.is_ascii_alphabetic());
        let is_short =
            word.starts_with('-') || letters.bytes().all(|letter| b"axheo".contains(&letter));
        word == "--format" || word == "-O" || letters.ends_with('o') && is_letters && is_short
    };
    let mut names: Vec<String> = Vec::new();
    let mut is_list = false;
    for word in words {
        let is_next = std::mem::replace(&mut is_list, is_option(word));
        let joined = || {
            let (before, list) = word.split_once('o')?;
            (matches!(before, "-" | "-e" | "-A") && list.contains(',')).then_some(list)
        };
        let list =
            if is_next { Some(*word) } else { word.strip_prefix("--format=").or_else(joined) };
        let list = list.unwrap_or_default().trim_matches(['\'', '"']).split(',');
        names.extend(list.filter(|name| !name.is_empty()).map(column));
    }
    if !names.is_empty() {
        return Some(names.join(" "));
    }
    match words.first()?.trim_start_matches('-') {
        "aux" | "auxw" | "auxww" | "uax" | "axu" => Some(AUX.to_owned()),
        "ef" | "fe" | "efw" | "efww" if words[0].starts_with('-') => Some(FULL.to_owned()),
        _ => None,
    }
}

/// The heading that ps prints for a column name of `-o`.
fn column(name: &str) -> String {
    let name = name.split([':', '=']).next().unwrap_or(name);
    let heading = match name {
        "pcpu" => "%CPU",
        "pmem" => "%MEM",
        "comm" | "ucmd" | "ucomm" | "cmd" | "args" => "COMMAND",
        "state" | "s" => "STAT",
        "cputime" => "TIME",
        "lwp" | "spid" => "TID",
        "vsize" => "VSZ",
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
    fn a_command_names_its_columns() {
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
