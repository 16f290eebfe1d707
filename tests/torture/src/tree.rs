//! A whole tree as one value, and the differences of two trees.
//!
//! There are two comparisons. A mount and its source show the same files, so everything must be
//! equal, modification times to the nanosecond ([`Times::Exact`]). A mount and a mirror hold copies
//! made at different moments, so times from the clock differ. Only times set by an operation can be
//! compared ([`Times::SetByHand`]).
//!
//! Hard links are compared by the first name of each file, never by inode numbers.

use std::collections::{BTreeMap, HashMap};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use rustix::io::Errno;

use crate::attributes::{comparable, get_attribute, list_attributes, modified};
use crate::bytes::digest;
use crate::contents::read_whole;
use crate::directory_entries::read_directory;
use crate::operation::{Attributes, FileKind, Moment};

/// Which modification times are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Times {
    /// All, to the nanosecond.
    Exact,
    /// Only those that lie before [`crate::operation::CLOCK_STARTS_SECONDS`] on either side.
    SetByHand,
}

/// One file of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The result of `lstat`.
    pub attributes: Attributes,
    /// The modification time.
    pub modified: Moment,
    /// XXH3 of the contents of a regular file.
    pub contents: Option<u64>,
    /// Where a symbolic link points to.
    pub target: Option<Vec<u8>>,
    /// Extended attributes by name, with the XXH3 of their values.
    pub extended: BTreeMap<String, u64>,
    /// The first name, in the order of the walk, of the same file.
    pub first_name: PathBuf,
}

/// All files below a root, by relative path; the root itself is the empty path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tree {
    /// The files.
    pub nodes: BTreeMap<PathBuf, Node>,
}

/// Reads the tree below `root`, contents included.
///
/// # Errors
/// Any failing call, with its path.
pub fn read(root: &Path) -> anyhow::Result<Tree> {
    let mut tree = Tree::default();
    let mut first_names = HashMap::new();
    let mut waiting = vec![PathBuf::new()];
    while let Some(relative) = waiting.pop() {
        let full = root.join(&relative);
        let node = read_node(&full, &relative, &mut first_names)
            .with_context(|| format!("cannot read {}", full.display()))?;
        if node.attributes.kind == FileKind::Directory {
            let names = permitted(read_directory(&full), Vec::new())
                .with_context(|| format!("cannot list {}", full.display()))?;
            // The last one pushed is walked first, so names are pushed in reverse order.
            for (name, _) in names.iter().rev() {
                waiting.push(relative.join(std::ffi::OsStr::from_bytes(name)));
            }
        }
        tree.nodes.insert(relative, node);
    }
    Ok(tree)
}

/// Unreadable parts are left out, because an ordinary user cannot read them on either side.
fn permitted<T>(result: Result<T, Errno>, instead: T) -> Result<T, Errno> {
    match result {
        Err(Errno::ACCESS) => Ok(instead),
        other => other,
    }
}

fn read_node(
    full: &Path,
    relative: &Path,
    first_names: &mut HashMap<u64, PathBuf>,
) -> anyhow::Result<Node> {
    let status = rustix::fs::lstat(full)?;
    let attributes = comparable(&status);
    let contents = match attributes.kind {
        FileKind::Regular => {
            Some(permitted(read_whole(full).map(|bytes| digest(&bytes)), 0).context("read")?)
        }
        _ => None,
    };
    let target = match attributes.kind {
        FileKind::Link => Some(rustix::fs::readlink(full, Vec::new())?.into_bytes()),
        _ => None,
    };
    let mut extended = BTreeMap::new();
    for name in list_attributes(full).context("listxattr")? {
        let value = get_attribute(full, &name).map(|value| digest(&value));
        extended
            .insert(name.clone(), permitted(value, 0).with_context(|| format!("getxattr {name}"))?);
    }
    let first_name =
        first_names.entry(status.st_ino).or_insert_with(|| relative.to_path_buf()).clone();
    Ok(Node { attributes, modified: modified(&status), contents, target, extended, first_name })
}

/// Everything in which two trees differ, one line each; empty when they agree.
#[must_use]
pub fn differences(left: &Tree, right: &Tree, times: Times) -> Vec<String> {
    let mut found = Vec::new();
    for (path, node) in &left.nodes {
        match right.nodes.get(path) {
            Some(other) => node_differences(path, node, other, times, &mut found),
            None => found.push(format!("{}: only on the left", path.display())),
        }
    }
    for path in right.nodes.keys() {
        if !left.nodes.contains_key(path) {
            found.push(format!("{}: only on the right", path.display()));
        }
    }
    found
}

fn node_differences(path: &Path, left: &Node, right: &Node, times: Times, found: &mut Vec<String>) {
    let mut tell = |what: &str, one: String, other: String| {
        if one != other {
            found.push(format!("{}: {what}: {one} / {other}", path.display()));
        }
    };
    tell("attributes", format!("{:?}", left.attributes), format!("{:?}", right.attributes));
    tell("contents", format!("{:016x?}", left.contents), format!("{:016x?}", right.contents));
    tell("target", format!("{:?}", left.target), format!("{:?}", right.target));
    tell("extended", format!("{:x?}", left.extended), format!("{:x?}", right.extended));
    tell("hard link of", format!("{:?}", left.first_name), format!("{:?}", right.first_name));
    if times == Times::Exact {
        tell("modified", format!("{:?}", left.modified), format!("{:?}", right.modified));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn sample() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("d")).unwrap();
        std::fs::write(root.path().join("d/a"), b"contents").unwrap();
        std::fs::hard_link(root.path().join("d/a"), root.path().join("d/b")).unwrap();
        symlink("a", root.path().join("d/l")).unwrap();
        set_attribute(root.path(), b"value");
        root
    }

    fn set_attribute(root: &Path, value: &[u8]) {
        let none = rustix::fs::XattrFlags::empty();
        rustix::fs::setxattr(root.join("d/a"), "user.a", value, none).unwrap();
    }

    fn set_modified(path: &Path, seconds: i64) {
        crate::attributes::restore_modified(path, (seconds, 5)).unwrap();
    }

    #[test]
    fn two_copies_differ_only_in_times_of_the_clock() {
        let (left, right) = (sample(), sample());
        set_modified(&left.path().join("d/a"), 2_000_000_000);
        let (left, right) = (read(left.path()).unwrap(), read(right.path()).unwrap());
        assert_eq!(left.nodes.len(), 5);
        assert_eq!(differences(&left, &right, Times::SetByHand), Vec::<String>::new());
        assert!(!differences(&left, &right, Times::Exact).is_empty());
    }

    #[test]
    fn every_difference_is_found() {
        type Lie = (&'static str, fn(&Path));
        let lies: [Lie; 8] = [
            ("contents", |root| std::fs::write(root.join("d/a"), b"c0ntents").unwrap()),
            ("only on the right", |root| std::fs::write(root.join("d/c"), b"").unwrap()),
            ("only on the left", |root| std::fs::remove_file(root.join("d/l")).unwrap()),
            ("set_modified", |root| set_modified(&root.join("d/a"), 5)),
            ("mode", |root| {
                rustix::fs::chmod(root.join("d"), rustix::fs::Mode::from_raw_mode(0o700)).unwrap();
            }),
            ("extended", |root| set_attribute(root, b"other")),
            ("target", |root| {
                std::fs::remove_file(root.join("d/l")).unwrap();
                symlink("b", root.join("d/l")).unwrap();
            }),
            ("hard link of", |root| {
                std::fs::remove_file(root.join("d/b")).unwrap();
                std::fs::write(root.join("d/b"), b"contents").unwrap();
            }),
        ];
        let truth = sample();
        let truth = read(truth.path()).unwrap();
        for (word, lie) in lies {
            let liar = sample();
            lie(liar.path());
            let found = differences(&truth, &read(liar.path()).unwrap(), Times::SetByHand);
            assert!(found.iter().any(|line| line.contains(word)), "{word} not in {found:?}");
        }
    }
}
