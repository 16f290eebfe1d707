//! `ogive bucket`: the versions of files that a stage keeps after a conflict.

use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::{Args, Subcommand, ValueHint};
use ogive_bucket::journal::{self, Conflict};
use ogive_text::{Bytes, counted, one_line};

use crate::exit::{self, Refusal};
use crate::help::{self, Section};
use crate::l2::key::KeyArgs;

/// List and save files whose upload to a bucket met a conflict
///
/// If another client overwrites the object while a file is written through the mount, the object
/// stays as the other client left it. The stage keeps your version, sealed, until you delete it
/// with this command.
#[derive(Debug, Args)]
#[command(after_long_help = help::render(&sections()))]
pub(crate) struct BucketArgs {
    #[command(subcommand)]
    command: BucketCommand,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
enum BucketCommand {
    /// List the kept files, or copy them to a directory; works while the mount is running
    Conflicts {
        /// The directory of --stage
        #[arg(value_name = "STAGE", value_hint = ValueHint::DirPath)]
        stage: PathBuf,

        /// Copy all of them below this directory, by the names of the objects
        ///
        /// Nothing is overwritten: if a name is taken, .1, .2 and so on are appended.
        #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
        export: Option<PathBuf>,

        /// Delete the copied files from the stage
        #[arg(long, requires = "export")]
        delete: bool,

        #[command(flatten)]
        key: KeyArgs,
    },
}

/// The sections after the list of commands.
pub(crate) fn sections() -> Vec<Section> {
    vec![
        help::examples(&[
            ("ogive bucket conflicts /var/lib/stage", "List the files with a conflict."),
            (
                "ogive bucket conflicts /var/lib/stage --export /tmp/mine --delete",
                "Save your versions, and delete them from the stage.",
            ),
        ]),
        help::exit_codes(),
    ]
}

/// Runs the subcommand.
pub(crate) fn run(args: &BucketArgs) -> Result<()> {
    let BucketCommand::Conflicts { stage, export, delete, key } = &args.command;
    if !stage.join("identity").exists() {
        let text = format!("{} is not a staging journal", stage.display());
        return Err(Refusal::new(exit::USAGE, text).hint("name the directory of --stage").into());
    }
    let fetched = key.fetch(None)?;
    let master = journal::master_key(stage, &fetched, key.kdf_work_max_kib())?;
    fetched.forget();
    let conflicts = journal::conflicts(stage, &master)?;
    if conflicts.is_empty() {
        println!("no file in {} has a conflict", stage.display());
        return Ok(());
    }
    for conflict in conflicts {
        let text = describe(&conflict);
        let Some(directory) = export else {
            let text = format!("{text}, in {}", conflict.path().display());
            println!("{}", one_line(&text));
            continue;
        };
        let (file, path) = create(directory, conflict.key())?;
        conflict.copy_to(&file, &path)?;
        // Before its only other copy is deleted.
        sync_names(directory, &path)
            .with_context(|| format!("cannot sync {}", directory.display()))?;
        let text = format!("{text}, copied to {}", path.display());
        println!("{}", one_line(&text));
        if *delete {
            conflict.delete()?;
        }
    }
    Ok(())
}

/// A conflict in a line: its name, its size, and its missing bytes.
fn describe(conflict: &Conflict) -> String {
    let missing: u64 = conflict.missing().iter().map(|range| range.end - range.start).sum();
    let (key, size) = (conflict.key(), Bytes(conflict.size()));
    match missing {
        0 => format!("{key}: {size}, all of it"),
        missing => format!(
            "{key}: {size}, of which {} missing (unchanged from the earlier object) and read as zeros",
            counted(missing, "byte is", "bytes are")
        ),
    }
}

/// The path of a key's copy, always below the directory.
fn place(directory: &Path, key: &str) -> PathBuf {
    let names = Path::new(key).components().filter_map(|part| match part {
        Component::Normal(name) => Some(name),
        _ => None,
    });
    names.fold(directory.to_owned(), |path, name| path.join(name))
}

/// A new file for a key.
fn create(directory: &Path, key: &str) -> Result<(File, PathBuf)> {
    let first = place(directory, key);
    let context = || format!("cannot create {}", first.display());
    let parent = first.parent().unwrap_or(directory);
    ogive_private::create_directories(parent).with_context(context)?;
    for number in 0_u32.. {
        let mut path = first.clone().into_os_string();
        if number > 0 {
            path.push(format!(".{number}"));
        }
        let path = PathBuf::from(path);
        match ogive_private::create_new(&path) {
            Ok(file) => return Ok((file, path)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error).with_context(context),
        }
    }
    anyhow::bail!("no name is free for {}", first.display())
}

/// Makes the name of a file durable, and the names of the directories above it.
fn sync_names(directory: &Path, path: &Path) -> io::Result<()> {
    let mut above = path.ancestors().skip(1).take_while(|above| above.starts_with(directory));
    above.try_for_each(|above| File::open(above)?.sync_all())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_stays_below_the_directory_and_overwrites_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        assert_eq!(place(path, "../../a/./b"), path.join("a/b"));
        assert_eq!(place(path, "/etc/passwd"), path.join("etc/passwd"));
        let names = [0, 1, 2].map(|_| create(path, "d/a").unwrap().1);
        assert_eq!(names, ["d/a", "d/a.1", "d/a.2"].map(|name| path.join(name)));
        sync_names(path, &names[0]).unwrap();
    }
}
