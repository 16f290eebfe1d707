//! `ogive completions`: scripts that complete the command line in a shell.

use std::io::Write as _;

use anyhow::Result;
use clap::{Args, Command, CommandFactory as _};
use clap_complete::Shell;

use crate::cli::Cli;

/// Print the completion script for a shell
///
/// Packages install these scripts. Without a package, write the output to the directory that the
/// shell searches: ~/.local/share/bash-completion/completions/ogive for bash,
/// ~/.config/fish/completions/ogive.fish for fish, and _ogive in a directory of $fpath for zsh.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

/// Runs the subcommand.
pub(crate) fn run(args: &CompletionsArgs) -> Result<()> {
    std::io::stdout().lock().write_all(&script(args.shell))?;
    Ok(())
}

/// The script for a shell.
pub(crate) fn script(shell: Shell) -> Vec<u8> {
    let mut out = Vec::new();
    let mut command = visible(&Cli::command()).version(env!("CARGO_PKG_VERSION"));
    clap_complete::generate(shell, &mut command, "ogive", &mut out);
    out
}

/// The command without hidden options, which some generators would offer.
fn visible(command: &Command) -> Command {
    let name = command.get_name().to_owned();
    let aliases: Vec<String> = command.get_visible_aliases().map(str::to_owned).collect();
    Command::new(name)
        .visible_aliases(aliases)
        .about(command.get_about().cloned().unwrap_or_default())
        .args(command.get_arguments().filter(|argument| !argument.is_hide_set()))
        .subcommands(command.get_subcommands().filter(|inner| !inner.is_hide_set()).map(visible))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_offered_and_hidden_ones_are_not() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = String::from_utf8(script(shell)).unwrap();
            assert!(script.contains("recordsize") && script.contains("umount"), "{shell}");
            assert!(
                !script.contains("ready-on-stdout") && !script.contains("Write the man pages"),
                "{shell}"
            );
        }
    }
}
