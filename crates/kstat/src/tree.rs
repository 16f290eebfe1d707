//! Writes kstats as a tree of files with the layout of `/proc` on a host with OpenZFS.
//!
//! OpenZFS's tools and metrics exporters have paths such as `spl/kstat/zfs/arcstats` built in. A
//! mount of ogive shows such a tree itself. Here several mounts become one tree in an ordinary
//! directory. Each file is the sum ([`crate::sum`]) over all mounts, and each mount is also a pool
//! with its own reads and writes.
//!
//! Invariants: a reader sees the old or the new file and never a part of one. Each is written to a
//! temporary file and renamed. Files of a mount that has gone are removed, and nothing else in the
//! directory is touched. The caller ensures that one process writes at a time.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::arcstats::{self, ARCSTATS, REMOVED_ROWS};
use crate::files::{COMPANIONS, OBJSET, POOL};
use crate::kstat::Kstat;
use crate::source::{Source, SourceError};
use crate::{limits, sum};

/// The directory of OpenZFS's kstats below `/proc` or a tree with its layout.
pub const BELOW_PROC: &str = "spl/kstat/zfs";

/// The file with a pool's state, which is one word.
const STATE: &str = "state";

/// One mount of many: its name as a pool, and the directory of its kstats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The name of its directory in the tree: without `/`, and neither `.` nor `..`.
    pub name: String,
    /// The directory of its own kstats: `MNT/.ogive/proc/spl/kstat/zfs`.
    pub directory: PathBuf,
}

/// A tree could not be read or written.
#[derive(Debug, Error)]
pub enum TreeError {
    /// A member cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A file or directory of the tree cannot be written.
    #[error("cannot write {}: {error}", .path.display())]
    Write {
        /// The path.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
}

/// A tree in a directory.
#[derive(Debug, Clone)]
pub struct Tree {
    zfs: PathBuf,
}

impl Tree {
    /// The tree below `proc`, which replaces `/proc`.
    pub fn new(proc: &Path) -> Self {
        Self { zfs: proc.join(BELOW_PROC) }
    }

    /// Writes the present counters of the members, and removes former members.
    ///
    /// # Errors
    /// A member cannot be read, and then nothing is written; or a file of the tree cannot be
    /// written.
    pub fn write(&self, members: &[Member]) -> Result<(), TreeError> {
        let sources: Vec<_> =
            members.iter().map(|member| Source::directory(&member.directory)).collect();
        let of_all = |name: &str| -> Result<Vec<Kstat>, SourceError> {
            sources.iter().map(|source| source.kstat(name)).collect()
        };
        let mut files = vec![(self.zfs.join(ARCSTATS.name), arcstats(&of_all(ARCSTATS.name)?))];
        for table in COMPANIONS {
            let rows = sum::rows(table, &of_all(table.name)?);
            files.push((self.zfs.join(table.name), rows.to_text()));
        }
        for member in members {
            for name in [OBJSET.name, STATE] {
                let path = member.directory.join(POOL).join(name);
                let text = read(&path).map_err(|error| SourceError::Read { path, error })?;
                files.push((self.zfs.join(&member.name).join(name), text));
            }
        }
        files.iter().try_for_each(|(path, text)| {
            replace(path, text).map_err(|error| TreeError::Write { path: path.clone(), error })
        })?;
        self.remove_pools(|name| members.iter().any(|member| member.name == name));
        Ok(())
    }

    /// Removes the files of [`Tree::write`], so that no program takes old figures for present ones.
    pub fn remove(&self) {
        self.remove_pools(|_| false);
        for name in COMPANIONS.map(|table| table.name).into_iter().chain([ARCSTATS.name]) {
            let _ = fs::remove_file(self.zfs.join(name));
        }
        // Directories with other content stay.
        let mut directory = Some(self.zfs.as_path());
        for _ in Path::new(BELOW_PROC).components() {
            let Some(empty) = directory else { break };
            let _ = fs::remove_dir(empty);
            directory = empty.parent();
        }
    }

    /// Removes the directories of other pools: only the files that are written here, and the
    /// directory if it is then empty.
    fn remove_pools(&self, is_kept: impl Fn(&str) -> bool) {
        for entry in fs::read_dir(&self.zfs).into_iter().flatten().flatten() {
            let is_pool = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_pool && !entry.file_name().to_str().is_some_and(&is_kept) {
                for name in [OBJSET.name, STATE] {
                    let _ = fs::remove_file(entry.path().join(name));
                }
                let _ = fs::remove_dir(entry.path());
            }
        }
    }
}

/// The pool name of a mount point: `/mnt/fast` becomes `mnt-fast`. Different paths may give one
/// name, so the name differs from those in `taken`.
pub fn pool_name(mount_point: &Path, taken: &[Member]) -> String {
    let text = mount_point.to_string_lossy();
    let plain: String = text
        .trim_matches('/')
        .chars()
        .map(|c| match c {
            '/' => '-',
            c if c.is_alphanumeric() || "-_.:".contains(c) => c,
            _ => '_',
        })
        .collect();
    // A leading dot would hide the name, or make it `.` or `..`.
    let plain = match plain.trim_start_matches('.') {
        "" => "root".to_owned(),
        name => name.to_owned(),
    };
    let is_free = |name: &String| taken.iter().all(|member| member.name != *name);
    let numbered = (2_u64..).map(|number| format!("{plain}-{number}"));
    std::iter::once(plain.clone()).chain(numbered).find(is_free).unwrap_or(plain)
}

fn arcstats(of_all: &[Kstat]) -> String {
    let mut rows = sum::rows(&ARCSTATS, of_all);
    let total = |name: &str| {
        let values = of_all.iter().filter_map(|kstat| kstat.get(name)?.as_integer());
        u64::try_from(values.fold(0, i128::saturating_add)).unwrap_or(u64::MAX)
    };
    arcstats::append_removed_rows(&mut rows, REMOVED_ROWS.map(|field| total(field.name)));
    rows.to_text()
}

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(limits::MAX_INPUT_BYTES as u64).read_to_string(&mut text)?;
    Ok(text)
}

/// Replaces a file or creates it. Every user may read it.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    DirBuilder::new().recursive(true).mode(0o755).create(directory)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = directory.join(format!(".{name}.{}", std::process::id()));
    // An earlier process with the same number may have been killed and left it.
    let _ = fs::remove_file(&temporary);
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o644)
        .open(&temporary)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;
    use crate::named;

    fn taken(names: &[&str]) -> Vec<Member> {
        let member = |name: &&str| Member { name: (*name).into(), directory: PathBuf::new() };
        names.iter().map(member).collect()
    }

    #[test]
    fn every_mount_point_has_its_own_name_of_one_plain_component() {
        let name = |path: &str, others: &[&str]| pool_name(Path::new(path), &taken(others));
        assert_eq!(name("/mnt/fast", &[]), "mnt-fast");
        assert_eq!(name("/mnt-fast", &["mnt-fast", "mnt-fast-2"]), "mnt-fast-3");
        assert_eq!(name("/", &[]), "root");
        for hostile in ["/..", "/...", "/../..", "/a\nb", "/ \"x\" {y=\"z\"}", "/\u{202e}"] {
            let name = name(hostile, &[]);
            assert_eq!(Path::new(&name).components().count(), 1, "{hostile:?}: {name}");
            assert!(!name.starts_with('.') && !name.contains(['\n', '"', ' ']), "{name}");
        }
    }

    /// A directory with the kstats of a mount.
    fn member(base: &Path, name: &str, hits: u64) -> Member {
        let directory = base.join(name);
        fs::create_dir_all(directory.join(POOL)).unwrap();
        let mut rows = ARCSTATS.rows(1, 2);
        rows.set("hits", hits).unwrap();
        arcstats::append_removed_rows(&mut rows, [5, 6, 7, 8]);
        fs::write(directory.join("arcstats"), rows.to_text()).unwrap();
        for table in COMPANIONS {
            fs::write(directory.join(table.name), table.rows(1, 2).to_text()).unwrap();
        }
        let dataset = crate::files::dataset(&format!("/srv/{name}"), &OBJSET.rows(1, 2));
        fs::write(directory.join(POOL).join(OBJSET.name), dataset).unwrap();
        fs::write(directory.join(POOL).join(STATE), "ONLINE\n").unwrap();
        Member { name: name.to_owned(), directory }
    }

    #[test]
    fn a_tree_sums_its_members_and_drops_former_ones() {
        let base = tempfile::tempdir().unwrap();
        let members = [member(base.path(), "one", 3), member(base.path(), "two", 4)];
        let proc = base.path().join("proc");
        let tree = Tree::new(&proc);
        tree.write(&members).unwrap();
        let zfs = proc.join(BELOW_PROC);
        let all =
            named::parse("zfs", "arcstats", &fs::read(zfs.join("arcstats")).unwrap()).unwrap();
        let row = |name: &str| all.get(name).unwrap().as_integer().unwrap();
        assert_eq!((row("hits"), row("p"), row("arc_meta_min")), (7, 10, 16));
        assert!(fs::read_to_string(zfs.join("two/objset-0x1")).unwrap().contains("/srv/two"));

        fs::write(zfs.join("mine"), "not the tree's").unwrap();
        tree.write(&members[..1]).unwrap();
        assert!(zfs.join("one/state").exists() && !zfs.join("two").exists());
        tree.remove();
        let left: Vec<_> = fs::read_dir(&zfs).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, ["mine"]);
        fs::remove_file(zfs.join("mine")).unwrap();
        tree.remove();
        assert!(!proc.join("spl").exists() && proc.exists());
    }

    #[test]
    fn an_unreadable_member_leaves_the_tree_unchanged() {
        let base = tempfile::tempdir().unwrap();
        let good = member(base.path(), "one", 3);
        let tree = Tree::new(&base.path().join("proc"));
        let gone = Member { name: "gone".into(), directory: base.path().join("gone") };
        let error = tree.write(&[good, gone]).unwrap_err().to_string();
        assert!(error.contains("gone/arcstats"), "{error}");
        assert!(!base.path().join("proc").exists());
    }
}
