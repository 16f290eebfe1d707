//! One sentence about the inputs: the formats that were read, and the lines that were not.

use ogive_text::counted;

use crate::evidence::Input;

/// The most formats that are named.
const NAMED: usize = 4;

/// `Read 212 lines as top and zpool status; 9 lines were not read (first: line 3)`.
pub(super) fn reading(inputs: &[Input]) -> String {
    let unread: usize = inputs.iter().map(|input| input.unread).sum();
    let lines: usize = inputs.iter().map(|input| input.lines).sum();
    let of = match inputs.len() {
        0 | 1 => String::new(),
        several => format!(" of {several} inputs"),
    };
    let mut formats: Vec<&str> = Vec::new();
    for format in inputs.iter().flat_map(|input| &input.formats) {
        if !formats.contains(&format.as_str()) {
            formats.push(format);
        }
    }
    let read = match (lines.saturating_sub(unread), listed(&formats)) {
        (_, None) => "Read nothing".to_owned(),
        (0, Some(formats)) => format!("Read {formats}"),
        (lines, Some(formats)) => {
            format!("Read {}{of} as {formats}", counted(lines, "line", "lines"))
        }
    };
    let first = inputs.iter().find_map(|input| Some((&input.name, input.first_unread?)));
    let Some((name, line)) = first else { return read };
    let place = if inputs.len() > 1 { format!("{name}:{line}") } else { format!("line {line}") };
    let lines = counted(unread, "line was", "lines were");
    format!("{read}; {lines} not read (first: {place})")
}

/// Names with "and" before the last.
fn listed(names: &[&str]) -> Option<String> {
    let more = names.len().saturating_sub(NAMED);
    let (last, before) = names[..names.len().min(NAMED)].split_last()?;
    Some(match (before, more) {
        ([], 0) => (*last).to_owned(),
        (before, 0) => format!("{} and {last}", before.join(", ")),
        (before, more) => format!("{}, {last} and {more} more", before.join(", ")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unread_lines_are_counted_and_the_first_is_named() {
        let input = |name: &str, formats: &[&str], lines, unread, first_unread| Input {
            name: name.into(),
            formats: formats.iter().map(|&name| name.to_owned()).collect(),
            lines,
            unread,
            first_unread,
            ..Input::default()
        };
        let one = input("paste.txt", &["top", "zpool status"], 221, 9, Some(3));
        assert_eq!(
            reading(std::slice::from_ref(&one)),
            "Read 212 lines as top and zpool status; 9 lines were not read (first: line 3)"
        );
        let many = input("x", &["a", "b", "c", "d"], 1, 0, None);
        assert_eq!(
            reading(&[many, one]),
            "Read 213 lines of 2 inputs as a, b, c, d and 2 more; 9 lines were not read (first: \
             paste.txt:3)"
        );
        let none = input("said.txt", &[], 1, 1, Some(1));
        assert_eq!(reading(&[none]), "Read nothing; 1 line was not read (first: line 1)");
        assert_eq!(reading(&[input("p", &["perf.data"], 0, 0, None)]), "Read perf.data");
    }
}
