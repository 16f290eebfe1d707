//! Cuts an input into sections, each with the output of one tool.
//!
//! A paste follows a terminal session: prompts with commands, file banners, one output after the
//! other, sentences between them. A section begins at a boundary (a prompt, a banner, a Markdown
//! fence) or at a line that begins another format. It ends where the next section begins.

use super::commands::{self, Typed};
use super::detect;
use super::format::Format;
use super::table::Layout;
use super::text::boundary;
use super::text::clean::Line;
use super::text::section::{Hint, Section};

/// A section, and its format if one was recognised.
type Formatted<'a> = (Option<&'static Format>, Section<'a>);

/// Cuts `lines`; `name` is the input's name. The commands between the sections come second.
pub(crate) fn split<'a>(lines: &'a [Line<'a>], name: &str) -> (Vec<Formatted<'a>>, Vec<Typed<'a>>) {
    let mut hint = Hint { path: Some(name.to_owned()), ..Hint::default() };
    let mut typed = Vec::new();
    let mut sections = Vec::new();
    let mut start = 0;
    let mut format: Option<&'static Format> = None;
    let mut filled = false;
    let is_of_kernel = is_of_kernel(name);
    let mut rows: Option<Layout<'_>> = None;
    for (index, line) in lines.iter().enumerate() {
        if index < start || is_of_kernel && format.is_some() {
            continue;
        }
        // A row under its heading begins no format, so long lists skip the search.
        if rows.as_ref().is_some_and(|rows| rows.is_sure(&line.text)) {
            filled = true;
            continue;
        }
        if let Some(next) = boundary::hint(&line.text, &hint) {
            close(&mut sections, &lines[start..index], format, &hint);
            hint = next;
            (start, format, filled) = (index + 1, None, false);
            rows = None;
            if let Some((command, taken)) = commands::typed(&lines[index..]) {
                start = index + taken;
                hint.command = Some(command.0.clone());
                typed.push(command);
            }
            continue;
        }
        let begins = match format {
            Some(current) if detect::is_kept(current, &line.text) => None,
            _ => detect::begins(&lines[index..]),
        };
        if let Some(next) = begins {
            let continues = format.is_some_and(|current| {
                std::ptr::eq(current, next) && (current.each_line || !filled)
                    || current.takes_in(next)
            });
            if !continues {
                close(&mut sections, &lines[start..index], format, &hint);
                (start, format, filled) = (index, Some(next), false);
                rows = None;
            }
        }
        rows = format.and_then(|format| format.layout(&line.text)).or(rows);
        filled = filled || format.is_some_and(|format| format.is_filled_by(&line.text));
    }
    close(&mut sections, &lines[start.min(lines.len())..], format, &hint);
    (sections, typed)
}

/// Whether the input is one of the kernel's files in a bundle, which have a single format. Testing
/// each of their lines for other formats took most of a capture's time.
fn is_of_kernel(name: &str) -> bool {
    ["start/proc/", "end/proc/", "proc/", "start/thread-stats.txt", "end/thread-stats.txt"]
        .iter()
        .any(|place| name.starts_with(place))
}

fn close<'a>(
    sections: &mut Vec<Formatted<'a>>,
    lines: &'a [Line<'a>],
    format: Option<&'static Format>,
    hint: &Hint,
) {
    if lines.iter().any(|line| !line.text.trim().is_empty()) {
        sections.push((format, Section { lines, hint: hint.clone() }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::text::clean;

    #[test]
    fn a_kernel_file_has_one_format_even_if_a_row_looks_like_another() {
        // The row has the spacing of a module setting.
        let text =
            b"23 1 0x01 1 272 1 2\nname type data\nzil_commit_count 4 7\nzil_itx_count 4 0\n";
        let lines = clean::lines(text);
        let formats = |name: &str| -> Vec<&str> {
            let (sections, _) = split(&lines, name);
            sections.iter().map(|(format, _)| format.map_or("", |format| format.name)).collect()
        };
        assert_eq!(formats("end/proc/spl/kstat/zfs/zil"), ["kstat"]);
        assert_eq!(formats("paste.txt"), ["kstat", "module parameters"]);
    }

    /// The tests of all formats are expensive, so they run at headings, not at each row of a list
    /// or line of a drawing.
    #[test]
    fn rows_of_long_lists_are_not_tested_as_beginnings() {
        const ROWS: usize = 2_000;
        let ps = "USER PID %CPU %MEM VSZ RSS TTY STAT START TIME COMMAND";
        let ps_row = |id| format!("root {id} 0.1 0.0 1000 90 ? Sl Jan01 0:10 /usr/bin/prog --opt");
        let top = "PID USER PR NI VIRT RES SHR S %CPU %MEM TIME+ COMMAND";
        let top_row = |id| format!("{id} root 20 0 1000 90 10 S 3.2 0.0 0:10.10 prog");
        let graph = "# Children      Self  Command  Shared Object  Symbol\n 90.00%  0.10%  dd  [zfs]  [k] f";
        let graph_row = |id| format!("            |--50.00%--function_{id}");
        let rows: [(&str, &dyn Fn(usize) -> String); 3] =
            [(ps, &ps_row), (top, &top_row), (graph, &graph_row)];
        for (heading, row) in rows {
            let text: String =
                (1..=ROWS).fold(heading.to_owned(), |text, id| text + "\n" + &row(id));
            let before = detect::LINES_TESTED.get();
            let lines = clean::lines(text.as_bytes());
            let (sections, _) = split(&lines, "x");
            let tested = detect::LINES_TESTED.get() - before;
            assert_eq!(sections.len(), 1, "{heading}");
            assert!(tested < 10, "{heading}: {tested} lines");
        }
    }
}
