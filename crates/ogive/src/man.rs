//! `ogive man` (hidden): the man pages, from the same descriptions as the help texts.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::{Args, CommandFactory as _};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::cli::{self, Cli};
use crate::help::{self, Section};
use crate::{
    bench, bucket, capture, doctor, kstat, l2, locks, mount, profile, sim, size, stat, threads,
    top, unmount, watch,
};

/// Write the man pages
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct ManArgs {
    /// Write every page into this directory instead of the first to standard output
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

/// Runs the subcommand.
pub(crate) fn run(args: &ManArgs) -> Result<()> {
    let pages = pages()?;
    match &args.out {
        Some(directory) => {
            for (name, page) in pages {
                let path = directory.join(name);
                fs::write(&path, page)
                    .with_context(|| format!("cannot write {}", path.display()))?;
            }
        }
        None => {
            for (_, page) in pages.iter().take(1) {
                std::io::stdout().lock().write_all(page)?;
            }
        }
    }
    Ok(())
}

/// Every page: file name and text.
pub(crate) fn pages() -> Result<Vec<(String, Vec<u8>)>> {
    let mut top = Cli::command().disable_help_subcommand(true);
    // Gives the subcommands their full names, "ogive mount".
    top.build();
    let mut all = vec![("ogive.1".to_owned(), page(top.clone(), "ogive", &cli::sections())?)];
    for command in top.get_subcommands().filter(|command| !command.is_hide_set()) {
        let sections = match command.get_name() {
            "mount" => mount::args::sections(),
            "unmount" => unmount::sections(),
            "stat" => stat::args::sections(),
            "kstat" => kstat::sections(),
            "doctor" => doctor::args::sections(),
            "capture" => capture::args::sections(),
            "profile" => profile::args::sections(),
            "threads" => threads::sections(),
            "locks" => locks::sections(),
            "top" => top::sections(),
            "watch" => watch::args::sections(),
            "sim" => sim::args::sections(),
            "size" => size::sections(),
            "l2" => l2::sections(),
            "bucket" => bucket::sections(),
            "bench" => bench::sections(),
            _ => Vec::new(),
        };
        let name = format!("ogive-{}", command.get_name());
        let text = page(command.clone(), &name, &sections)?;
        all.push((format!("{name}.1"), text));
        for part in command.get_subcommands().filter(|part| part.get_name() != "help") {
            let name = format!("{name}-{}", part.get_name());
            let text = page(part.clone(), &name, &[help::exit_codes()])?;
            all.push((format!("{name}.1"), text));
        }
    }
    all.push(("mount.ogive.8".to_owned(), mount8_page()?));
    Ok(all)
}

/// The page of mount.ogive, which has no clap command.
fn mount8_page() -> Result<Vec<u8>> {
    let mut out = title("mount.ogive", 8, "System Administration");
    let mut roff = Roff::default();
    roff.control("SH", ["NAME"]);
    roff.text([roman(
        "mount.ogive - mount a directory through the cache, for mount(8) and fstab(5)",
    )]);
    roff.control("SH", ["SYNOPSIS"]);
    roff.text([bold("mount.ogive"), roman(" SRC MNT [-sfnvrw] [-o options]")]);
    roff.to_writer(&mut out)?;
    for section in mount::mount_helper::sections() {
        render(&section).to_writer(&mut out)?;
    }
    see_also("mount.ogive").to_writer(&mut out)?;
    Ok(out)
}

/// The title line. It has no date, because each build would then differ.
fn title(name: &str, section: u8, manual: &str) -> Vec<u8> {
    format!(
        ".TH {} {section} \"\" \"ogive {}\" \"{manual}\"\n",
        name.to_uppercase(),
        env!("CARGO_PKG_VERSION")
    )
    .into_bytes()
}

fn page(mut command: clap::Command, name: &str, sections: &[Section]) -> Result<Vec<u8>> {
    let usage = command.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").to_owned();
    let subcommands = command.has_subcommands();
    let man = Man::new(command.name(name.to_owned()).display_name(name.to_owned()));
    let mut out = title(name, 1, "User Commands");
    man.render_name_section(&mut out)?;
    // One line with [OPTIONS], instead of every option.
    let mut synopsis = Roff::default();
    synopsis.control("SH", ["SYNOPSIS"]);
    synopsis.text([roman(usage)]);
    synopsis.to_writer(&mut out)?;
    man.render_description_section(&mut out)?;
    man.render_options_section(&mut out)?;
    if subcommands {
        man.render_subcommands_section(&mut out)?;
    }
    for section in sections {
        render(section).to_writer(&mut out)?;
    }
    see_also(name).to_writer(&mut out)?;
    Ok(out)
}

fn render(section: &Section) -> Roff {
    let mut roff = Roff::default();
    roff.control("SH", [section.title.to_uppercase().as_str()]);
    for item in &section.items {
        roff.control("TP", []);
        roff.text([bold(item.term.as_str())]);
        roff.text([roman(item.meaning)]);
    }
    roff
}

fn see_also(name: &str) -> Roff {
    let pages = [
        "ogive(1)",
        "ogive-doctor(1)",
        "ogive-mount(1)",
        "ogive-sim(1)",
        "ogive-stat(1)",
        "ogive-top(1)",
        "ogive-unmount(1)",
        "ogive-watch(1)",
        "fstab(5)",
        "mount(8)",
        "umount(8)",
    ];
    let own = format!("{name}(1)");
    let others: Vec<&str> = pages.into_iter().filter(|page| *page != own).collect();
    let mut roff = Roff::default();
    roff.control("SH", ["SEE ALSO"]);
    roff.text([roman(others.join(", "))]);
    roff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_visible_subcommand_has_a_page_with_its_exit_codes() {
        let pages = pages().unwrap();
        let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            [
                "ogive.1",
                "ogive-mount.1",
                "ogive-unmount.1",
                "ogive-stat.1",
                "ogive-kstat.1",
                "ogive-doctor.1",
                "ogive-capture.1",
                "ogive-profile.1",
                "ogive-threads.1",
                "ogive-locks.1",
                "ogive-top.1",
                "ogive-watch.1",
                "ogive-sim.1",
                "ogive-size.1",
                "ogive-l2.1",
                "ogive-l2-status.1",
                "ogive-l2-add.1",
                "ogive-l2-remove.1",
                "ogive-l2-verify.1",
                "ogive-l2-format.1",
                "ogive-l2-rekey.1",
                "ogive-l2-discard.1",
                "ogive-l2-destroy.1",
                "ogive-bucket.1",
                "ogive-bucket-conflicts.1",
                "ogive-bench.1",
                "ogive-bench-seal.1",
                "ogive-bench-sick.1",
                "ogive-completions.1",
                "mount.ogive.8"
            ]
        );
        for (name, page) in &pages {
            let text = String::from_utf8_lossy(page);
            let (plain, part) = (name == "ogive-completions.1", name.matches('-').count() > 1);
            assert!(plain || text.contains(".SH \"EXIT CODES\""), "{name}");
            assert!(plain || part || text.contains(".SH EXAMPLES"), "{name}");
            assert!(!text.contains('\u{1b}'), "{name} has terminal colours in it");
        }
    }
}
