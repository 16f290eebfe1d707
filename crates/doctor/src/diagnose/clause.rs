//! Lines of advice, cut into clauses, and put together from those that are kept.
//!
//! What a line says stands in clauses: sentences, and their parts between semicolons. A clause is
//! the least that can be left out; commands in backquotes and what stands in brackets are whole.

/// The line made of those clauses of which `change` makes anything; `None` where it is of none.
pub(super) fn kept(line: &str, mut change: impl FnMut(&str) -> Option<String>) -> Option<String> {
    let line = line.trim();
    let mut out = String::new();
    // Whether a sentence ended since the last clause that was kept.
    let mut ended = false;
    let mut last_is_kept = false;
    for clause in cut(line) {
        last_is_kept = false;
        if let Some(text) = change(clause.text) {
            if out.is_empty() {
                out = if clause.begins { text } else { capitalised(&text) };
            } else {
                out.push_str(if ended { ". " } else { "; " });
                out.push_str(&if ended && !clause.begins { capitalised(&text) } else { text });
            }
            ended = false;
            last_is_kept = true;
        }
        ended |= clause.ends;
    }
    if !last_is_kept && !out.is_empty() && line.ends_with('.') && !out.ends_with('.') {
        out.push('.');
    }
    (!out.is_empty()).then_some(out)
}

struct Clause<'a> {
    text: &'a str,
    /// Whether a sentence begins with it.
    begins: bool,
    /// Whether one ends with it.
    ends: bool,
}

fn cut(line: &str) -> Vec<Clause<'_>> {
    let (mut clauses, mut start, mut begins) = (Vec::new(), 0, true);
    let (mut in_command, mut depth) = (false, 0_usize);
    for (at, letter) in line.char_indices() {
        match letter {
            '`' => in_command = !in_command,
            _ if in_command => {}
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ';' | '.' if depth == 0 => {
                let Some(behind) = line[at + 1..].strip_prefix(' ') else { continue };
                let sentence = letter == '.';
                // "e.g. an eighth" is one clause.
                if sentence && behind.starts_with(|c: char| c.is_lowercase()) {
                    continue;
                }
                clauses.push(Clause { text: line[start..at].trim(), begins, ends: sentence });
                (start, begins) = (at + 1, sentence);
            }
            _ => {}
        }
    }
    clauses.push(Clause { text: line[start..].trim(), begins, ends: true });
    clauses
}

/// The parts of a command between semicolons, except those in braces and quotes and of a loop.
pub(super) fn outside_braces(command: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth, mut quoted) = (Vec::new(), 0, 0_usize, false);
    let mut loops = 0_usize;
    for (at, letter) in command.char_indices() {
        match letter {
            '\'' => quoted = !quoted,
            _ if quoted => {}
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ';' => {
                let behind = command[at + 1..].trim_start();
                let begun = command[start..at].trim_start();
                loops += usize::from(begun.starts_with("for ") || begun.starts_with("while "));
                if behind.starts_with("done") {
                    loops = 0;
                } else if depth == 0 && loops == 0 && command[at + 1..].starts_with(' ') {
                    parts.push(command[start..at].trim());
                    start = at + 1;
                }
            }
            _ => {}
        }
    }
    parts.push(command[start..].trim());
    parts
}

/// With a large first letter, unless the first word is a name or a command.
fn capitalised(text: &str) -> String {
    let first = text.split(' ').next().unwrap_or("");
    if first.is_empty() || !first.chars().all(|c| c.is_ascii_lowercase() || c == ',') {
        return text.to_owned();
    }
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |one| one.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::kept;

    #[test]
    fn a_clause_goes_with_its_punctuation_and_the_rest_stays_a_sentence() {
        let line = "Look at X: `a; b` (c; d), e.g. now; stop it. `run y`; wait for 2.1.3. Done.";
        let without = |words: &[&str]| {
            kept(line, |text| {
                (!words.iter().any(|word| text.contains(word))).then(|| text.to_owned())
            })
        };
        assert_eq!(without(&[]).as_deref(), Some(line));
        assert_eq!(without(&["Look"]).as_deref(), Some("Stop it. `run y`; wait for 2.1.3. Done."));
        assert_eq!(
            without(&["stop", "run"]).as_deref(),
            Some("Look at X: `a; b` (c; d), e.g. now. Wait for 2.1.3. Done.")
        );
        assert_eq!(without(&["Look", "wait", "Done"]).as_deref(), Some("Stop it. `run y`."));
        assert_eq!(without(&["Look", "stop", "run", "wait", "Done"]), None);
    }
}
