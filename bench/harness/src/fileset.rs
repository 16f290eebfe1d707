//! The files that are read: made once, the same bytes every time.
//!
//! Data files hold bytes of a fixed pseudo-random sequence, which do not compress and have no
//! duplicates. A complete set has a mark file with its description; a set without the right mark is
//! created again.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{Context, Result};
use crate::random::Random;
use crate::session::Session;

/// The least age of a set before it is read. A file with a recent change may change again within the
/// same tick of the clock. So for two seconds ogive reads it again at each open, which is not to be
/// measured here.
const AGE: Duration = Duration::from_secs(5);
/// Files in each folder of a tree.
pub const FILES_PER_FOLDER: usize = 1000;

/// `count` data files of `bytes` each in a set called `name`: the set's folder.
pub fn data(session: &Session, name: &str, count: usize, bytes: u64) -> Result<PathBuf> {
    build(session, name, &format!("{count} files of {bytes} bytes"), |folder| {
        let mut block = vec![0; 1 << 20];
        for index in 0..count {
            let path = data_file(folder, index);
            let mut random = Random::new(index as u64 + 1);
            let mut file = create(&path)?;
            let mut left = bytes;
            while left > 0 {
                random.fill(&mut block);
                let length = block.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                file.write_all(&block[..length])
                    .context(|| format!("cannot write {}", path.display()))?;
                left -= length as u64;
            }
        }
        Ok(())
    })
}

/// Path of data file `index` below `root`.
pub fn data_file(root: &Path, index: usize) -> PathBuf {
    root.join(format!("data.{index}"))
}

/// A tree of `files` empty files, [`FILES_PER_FOLDER`] a folder: its root.
pub fn tree(session: &Session, files: usize) -> Result<PathBuf> {
    build(session, &format!("tree-{files}"), &format!("{files} empty files"), |folder| {
        for first in (0..files).step_by(FILES_PER_FOLDER) {
            let sub = tree_folder(folder, first);
            fs::create_dir(&sub).context(|| format!("cannot make {}", sub.display()))?;
            for index in first..files.min(first + FILES_PER_FOLDER) {
                create(&tree_file(folder, index))?;
            }
        }
        Ok(())
    })
}

/// Path of file `index` of a tree below `root`.
pub fn tree_file(root: &Path, index: usize) -> PathBuf {
    tree_folder(root, index).join(format!("file-{index:07}"))
}

fn tree_folder(root: &Path, index: usize) -> PathBuf {
    root.join(format!("folder-{:04}", index / FILES_PER_FOLDER))
}

fn create(path: &Path) -> Result<File> {
    File::create(path).context(|| format!("cannot make {}", path.display()))
}

/// The folder is returned only once its mark exists. The mark is next to the folder, so that a walk
/// of the set finds only its files.
fn build(
    session: &Session,
    name: &str,
    holds: &str,
    fill: impl FnOnce(&Path) -> Result<()>,
) -> Result<PathBuf> {
    let sets = session.folder("sets")?;
    let folder = sets.join(name);
    let mark = sets.join(format!("{name}.complete"));
    if fs::read_to_string(&mark).is_ok_and(|text| text == holds) {
        return Ok(folder);
    }
    eprintln!("  making {name}: {holds}");
    let _ = fs::remove_file(&mark);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).context(|| format!("cannot make {}", folder.display()))?;
    fill(&folder)?;
    nix::unistd::sync();
    std::thread::sleep(AGE);
    fs::write(&mark, holds).context(|| format!("cannot write {}", mark.display()))?;
    Ok(folder)
}
