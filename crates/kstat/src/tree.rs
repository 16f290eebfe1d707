//! Kstats as a tree of files, laid out as `/proc` is on a host with OpenZFS.
//!
//! OpenZFS's tools and exporters of metrics have paths such as `spl/kstat/zfs/arcstats` built in.
//! A mount of ogive shows itself as such a tree; here several of them become one, in an ordinary
//! directory: each file is what [`crate::sum`] makes of all of them, and each mount is a pool
//! besides, with what is read and written there.
//!
//! Invariants: a reader sees a file as it was or as it is, never a part of one, since each is
//! written beside its place and renamed. What was written of a mount that has gone is taken away.
//! Nothing else in the directory is touched. One writer at a time is the caller's care.

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

/// Where kstats of OpenZFS stand below `/proc`, or below a tree in its likeness.
pub const BELOW_PROC: &str = "spl/kstat/zfs";

/// The file of a pool that holds its state in a word.
const STATE: &str = "state";

/// One mount of many: its name as a pool, and the directory of its kstats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The name of its directory in the tree: without `/`, and neither `.` nor `..`.
    pub name: String,
    /// Where its own kstats are: `MNT/.ogive/proc/spl/kstat/zfs`.
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
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// A tree in a directory.
#[derive(Debug, Clone)]
pub struct Tree {
    zfs: PathBuf,
}

impl Tree {
    /// The tree below `proc`, which takes the place of `/proc`.
    pub fn new(proc: &Path) -> Self {
        Self { zfs: proc.join(BELOW_PROC) }
    }

    /// Writes what the members tell at this moment; members before who are none now go.
    ///
    /// # Errors
    /// [`TreeError`]: of a member that cannot be read, before anything is written.
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

    /// Takes away what [`Tree::write`] made, so that nobody takes old figures for present ones.
    pub fn remove(&self) {
        self.remove_pools(|_| false);
        for name in COMPANIONS.map(|table| table.name).into_iter().chain([ARCSTATS.name]) {
            let _ = fs::remove_file(self.zfs.join(name));
        }
        // Directories that hold something else stay.
        let mut directory = Some(self.zfs.as_path());
        for _ in Path::new(BELOW_PROC).components() {
            let Some(empty) = directory else { break };
            let _ = fs::remove_dir(empty);
            directory = empty.parent();
        }
    }

    /// Removes the directories of pools, but for some: only files that are written here, and the
    /// directory if it is empty then.
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

/// A name for a pool that stands for what is mounted at a path: `/mnt/fast` becomes `mnt-fast`.
/// Paths that differ may have one name; `taken` are those that others have.
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
    // A name that begins with a point would be hidden, or be a directory of every directory.
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

/// Puts a file in the place of the one that is there, if one is. Everybody may read it.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    DirBuilder::new().recursive(true).mode(0o755).create(directory)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = directory.join(format!(".{name}.{}", std::process::id()));
    // One of a process before this that had the same number and was killed.
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
    fn every_mount_point_gives_a_name_of_its_own_that_is_one_plain_component() {
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

    /// A directory that tells what a mount does.
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
    fn a_tree_sums_its_members_up_and_lets_go_of_those_that_went() {
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
    fn a_member_that_cannot_be_read_leaves_the_tree_as_it_was() {
        let base = tempfile::tempdir().unwrap();
        let good = member(base.path(), "one", 3);
        let tree = Tree::new(&base.path().join("proc"));
        let gone = Member { name: "gone".into(), directory: base.path().join("gone") };
        let error = tree.write(&[good, gone]).unwrap_err().to_string();
        assert!(error.contains("gone/arcstats"), "{error}");
        assert!(!base.path().join("proc").exists());
    }
}
