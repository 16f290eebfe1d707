//! Finds the file that is mapped in a process. Its path comes first, if it leads to the same file.
//! Otherwise the file is found as the process sees it, in another mount namespace or deleted.
//!
//! Paths come from recordings and from other users' processes. Only regular files are opened, and a
//! file that certainly differs from the mapped one is never used.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::model::Reason;

/// A part of a file in a process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mapped<'m> {
    pub(crate) pid: i32,
    pub(crate) path: &'m str,
    /// 0 if unknown.
    pub(crate) inode: u64,
    pub(crate) start: u64,
    pub(crate) len: u64,
}

/// The places to search for files.
#[derive(Debug)]
pub(super) struct Files {
    /// Whether to look into the process itself, which must be running.
    live: bool,
    roots: Vec<PathBuf>,
}

/// A file that was found.
pub(super) struct FoundFile {
    pub(super) path: PathBuf,
    /// Whether there is proof that it is the mapped file.
    pub(super) is_certain: bool,
}

impl Files {
    pub(super) fn new(live: bool, roots: Vec<PathBuf>) -> Self {
        Self { live, roots }
    }

    /// Finds a file. `build_id` is the recorded one, if the recording has it.
    pub(super) fn find(
        &self,
        mapped: &Mapped<'_>,
        build_id: Option<&[u8]>,
    ) -> Result<FoundFile, Reason> {
        if self.live { of_now(mapped) } else { self.recorded(mapped, build_id) }
    }

    fn recorded(&self, mapped: &Mapped<'_>, build_id: Option<&[u8]>) -> Result<FoundFile, Reason> {
        let inside = mapped.path.trim_start_matches('/');
        let mut places: Vec<PathBuf> = self.roots.iter().map(|root| root.join(inside)).collect();
        places.push(PathBuf::from(mapped.path));
        let mut reason = Reason::FileMissing;
        for path in places {
            let Some(inode) = inode(&path) else { continue };
            let Some(expected) = build_id.filter(|id| !id.is_empty()) else {
                let is_certain = mapped.inode != 0 && inode == mapped.inode;
                return Ok(FoundFile { path, is_certain });
            };
            match blazesym::helper::read_elf_build_id(&path) {
                Ok(Some(found)) if same_build(&found, expected) => {
                    return Ok(FoundFile { path, is_certain: true });
                }
                Ok(Some(_)) => reason = Reason::BuildDiffers,
                _ => {}
            }
        }
        Err(reason)
    }
}

/// Finds a file of a process that may still run.
fn of_now(mapped: &Mapped<'_>) -> Result<FoundFile, Reason> {
    let Mapped { pid, path, start, len, .. } = *mapped;
    let is_same = |place: &Path| inode(place).is_some_and(|found| found == mapped.inode);
    let here = PathBuf::from(path);
    let inside = PathBuf::from(format!("/proc/{pid}/root/{}", path.trim_start_matches('/')));
    // The mapped file itself, even if its path has changed. Only root may open it.
    let end = start.saturating_add(len);
    let itself = PathBuf::from(format!("/proc/{pid}/map_files/{start:x}-{end:x}"));
    let found = [&here, &inside].into_iter().find(|place| is_same(place));
    let found = found.or_else(|| Some(&itself).filter(|place| inode(place).is_some()));
    // Some file systems show other inode numbers in maps than in stat(2).
    let found = found.or_else(|| Some(&inside).filter(|place| inode(place).is_some()));
    let path = found.ok_or(Reason::FileMissing)?.clone();
    Ok(FoundFile { path, is_certain: true })
}

/// The inode of a regular file.
fn inode(path: &Path) -> Option<u64> {
    std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file).map(|data| data.ino())
}

/// Recorders pad build-ids with zeros to 20 bytes.
pub(super) fn same_build(a: &[u8], b: &[u8]) -> bool {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    !short.is_empty() && long.starts_with(short) && long[short.len()..].iter().all(|b| *b == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapped(path: &str, inode: u64) -> Mapped<'_> {
        let pid = i32::try_from(std::process::id()).unwrap_or(-1);
        Mapped { pid, path, inode, start: 0, len: 1 }
    }

    #[test]
    fn a_path_to_another_file_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("program");
        std::fs::write(&path, "one").unwrap();
        let ino = std::fs::metadata(&path).unwrap().ino();
        let text = path.to_str().unwrap();
        let recorded = Files::new(false, Vec::new());
        for (inode, is_certain) in [(ino, true), (ino + 1, false), (0, false)] {
            let found = recorded.find(&mapped(text, inode), None).unwrap();
            assert_eq!((found.path, found.is_certain), (path.clone(), is_certain), "{inode}");
        }
        let live = Files::new(true, Vec::new());
        assert_eq!(live.find(&mapped(text, ino), None).ok().unwrap().path, path);
        let gone = Mapped { pid: 0, ..mapped(text, ino + 1) };
        assert_eq!(live.find(&gone, None).err(), Some(Reason::FileMissing));
        assert_eq!(live.find(&mapped("/dev/zero", 0), None).err(), Some(Reason::FileMissing));
    }

    #[test]
    fn build_ids_may_be_padded() {
        assert!(same_build(&[1, 2], &[1, 2, 0, 0]) && !same_build(&[1, 2], &[1, 2, 3]));
    }
}
