//! Commands that people typed at prompts.
//!
//! A command names the subject of its output (`text::boundary`). A command that sets something is
//! evidence itself.

use super::text::boundary;
use super::text::clean::Line;
use super::text::reading::Reading;
use super::zfs::commands;

/// A command with the line of its prompt; lines joined by backslashes are one command.
pub(crate) type Typed<'a> = (String, &'a Line<'a>);

/// The command that begins at the first of `lines` and how many lines it takes.
pub(crate) fn typed<'a>(lines: &'a [Line<'a>]) -> Option<(Typed<'a>, usize)> {
    let line = lines.first()?;
    let mut behind = lines[1..].iter();
    let command = commands::joined(&boundary::command(&line.text)?, &mut behind);
    let taken = lines.len() - behind.len();
    Some(((command, line), taken))
}

/// Adds the settings of these commands to the evidence.
pub(crate) fn take(typed: &[Typed<'_>], reading: &mut Reading<'_>) {
    for (command, line) in typed {
        commands::take(command, line, reading);
    }
}
