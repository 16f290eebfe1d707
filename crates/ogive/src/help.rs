//! The sections below the options: examples, exit codes, environment, files.
//!
//! They are data, so `--help` and the man page of a subcommand show the same text. The argument
//! structs describe the options themselves.

use std::fmt::Write as _;

use clap::builder::styling::{AnsiColor, Effects, Styles};

use crate::exit::EXIT_CODES;

/// How help looks on a terminal that shows colours; elsewhere clap leaves the styles out.
pub(crate) const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Yellow.on_default().effects(Effects::BOLD))
    .usage(AnsiColor::Yellow.on_default().effects(Effects::BOLD))
    .literal(AnsiColor::Green.on_default().effects(Effects::BOLD))
    .placeholder(AnsiColor::Cyan.on_default());

/// A titled part of a help text or man page.
pub(crate) struct Section {
    pub(crate) title: &'static str,
    pub(crate) items: Vec<Item>,
}

/// One item of a section: a term and its meaning, or a command and its effect.
pub(crate) struct Item {
    pub(crate) term: String,
    pub(crate) meaning: &'static str,
}

/// A section of terms.
pub(crate) fn terms(title: &'static str, rows: &[(&str, &'static str)]) -> Section {
    let items =
        rows.iter().map(|(term, meaning)| Item { term: (*term).to_owned(), meaning }).collect();
    Section { title, items }
}

/// A section of examples: command, meaning.
pub(crate) fn examples(rows: &[(&str, &'static str)]) -> Section {
    terms("Examples", rows)
}

/// The table of exit codes.
pub(crate) fn exit_codes() -> Section {
    let items =
        EXIT_CODES.iter().map(|(code, meaning)| Item { term: code.to_string(), meaning }).collect();
    Section { title: "Exit codes", items }
}

/// The sections as clap prints them after the options.
pub(crate) fn render(sections: &[Section]) -> clap::builder::StyledStr {
    let (header, literal) = (STYLES.get_header(), STYLES.get_literal());
    let mut out = String::new();
    for (number, section) in sections.iter().enumerate() {
        if number > 0 {
            out.push('\n');
        }
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{header}{}:{header:#}", section.title);
        for Item { term, meaning } in &section.items {
            let _ = writeln!(out, "  {literal}{term}{literal:#}\n          {meaning}");
        }
    }
    out.truncate(out.trim_end().len());
    out.into()
}
