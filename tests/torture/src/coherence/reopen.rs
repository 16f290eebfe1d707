//! Close-to-open: after a change behind the mount, a fresh open and read shows the new bytes.
//!
//! Every promise first reads the old bytes through the mount, often more than once, so that every
//! cache holds them. Then it changes the source. The kernel has seen the opened name before, so the
//! open reaches the mount, which must notice that the name means another file now. Two things never
//! reach the mount: a walk *through* a name, and a name that the kernel remembers as missing. They
//! are promised only after the time for which names stay valid.

use std::path::Path;

use anyhow::{Context, Result, bail};
use rustix::fs::{CWD, RenameFlags};
use rustix::io::Errno;

use super::{Promise, Round, expect_bytes};
use crate::attributes::{modified_of, restore_modified};
use crate::bytes::filled;
use crate::contents::read_whole;

/// The promises of this module.
pub const PROMISES: &[Promise] = &[
    Promise {
        name: "same-size",
        says: "other bytes of the same size are seen",
        round: same_size,
        rounds_percent: 100,
    },
    Promise {
        name: "same-tick",
        says: "the second of two changes within one clock tick is seen",
        round: same_tick,
        rounds_percent: 100,
    },
    Promise {
        name: "time-restored",
        says: "a change is seen although the modification time was set back after it",
        round: time_restored,
        rounds_percent: 100,
    },
    Promise {
        name: "replaced-by-rename",
        says: "another file of the same size and time that took the name is seen",
        round: replaced_by_rename,
        rounds_percent: 100,
    },
    Promise {
        name: "number-reused",
        says: "a new file that got the inode number of the old one is seen",
        round: number_reused,
        rounds_percent: 100,
    },
    Promise {
        name: "exchanged",
        says: "two files that exchanged their names are seen",
        round: exchanged,
        rounds_percent: 100,
    },
    Promise {
        name: "truncated-and-extended",
        says: "a file that was emptied and got its old size back is all zeros",
        round: truncated_and_extended,
        rounds_percent: 100,
    },
    Promise {
        name: "grown-and-shrunk",
        says: "appended bytes are seen, and truncated bytes are not",
        round: grown_and_shrunk,
        rounds_percent: 100,
    },
    Promise {
        name: "file-to-directory",
        says: "a file replaced by a directory, and a directory by a file, are seen",
        round: file_to_directory,
        rounds_percent: 5,
    },
    Promise {
        name: "link-retargeted",
        says: "an open through a symbolic link follows its present target",
        round: link_retargeted,
        rounds_percent: 100,
    },
    Promise {
        name: "through-hard-link",
        says: "a change made through one name is seen through the other",
        round: through_hard_link,
        rounds_percent: 100,
    },
    Promise {
        name: "created-behind",
        says: "a file created after a failed lookup can be opened once names expire",
        round: created_behind,
        rounds_percent: 5,
    },
    Promise {
        name: "removed-behind",
        says: "a file removed behind the mount cannot be opened",
        round: removed_behind,
        rounds_percent: 50,
    },
    Promise {
        name: "sparse-far-away",
        says: "a change 5 GiB into a sparse file is seen",
        round: sparse_far_away,
        rounds_percent: 25,
    },
    Promise {
        name: "size-by-fstat",
        says: "fstat after an open gives the present size",
        round: size_by_fstat,
        rounds_percent: 100,
    },
];

/// Makes a file in the source and reads it through the mount until every cache has it.
fn warm(round: &mut Round, name: &str, size: usize) -> Result<Vec<u8>> {
    let (mount, source) = round.paths(name);
    let bytes = round.bytes(size);
    std::fs::write(&source, &bytes)?;
    for _ in 0..round.random.usize(1..4) {
        round.pause();
        expect_bytes(&mount, &bytes, "before any change")?;
    }
    Ok(bytes)
}

/// Overwrites part of a file in place, in the source and in `bytes`.
fn overwrite(round: &mut Round, source: &Path, bytes: &mut [u8]) -> Result<()> {
    let start = round.random.usize(0..bytes.len());
    let end = bytes.len().min(start + round.random.usize(1..9000));
    let new = round.bytes(end - start);
    bytes[start..end].copy_from_slice(&new);
    use std::os::unix::fs::FileExt;
    std::fs::OpenOptions::new().write(true).open(source)?.write_all_at(&new, start as u64)?;
    Ok(())
}

fn same_size(round: &mut Round) -> Result<()> {
    let (mount, source) = round.paths("file");
    let size = round.size();
    let mut bytes = warm(round, "file", size)?;
    for _ in 0..4 {
        round.pause();
        overwrite(round, &source, &mut bytes)?;
        expect_bytes(&mount, &bytes, "after other bytes of the same size")?;
    }
    Ok(())
}

/// Change, read, change, read without a pause. Many of these pairs share one tick, so size,
/// modification time and change time are equal before and after the second change.
fn same_tick(round: &mut Round) -> Result<()> {
    let (mount, source) = round.paths("file");
    let mut bytes = warm(round, "file", 4096)?;
    for number in 0..30 {
        let at = round.random.usize(0..bytes.len());
        bytes[at] = bytes[at].wrapping_add(1);
        use std::os::unix::fs::FileExt;
        let file = std::fs::OpenOptions::new().write(true).open(&source)?;
        file.write_all_at(&bytes[at..=at], at as u64)?;
        drop(file);
        expect_bytes(&mount, &bytes, &format!("after quick change {number}"))?;
    }
    Ok(())
}

fn time_restored(round: &mut Round) -> Result<()> {
    let (mount, source) = round.paths("file");
    let size = round.size();
    let mut bytes = warm(round, "file", size)?;
    for _ in 0..4 {
        let modified = modified_of(&source)?;
        round.pause();
        overwrite(round, &source, &mut bytes)?;
        restore_modified(&source, modified)?;
        expect_bytes(&mount, &bytes, "after the modification time was set back")?;
    }
    Ok(())
}

fn replaced_by_rename(round: &mut Round) -> Result<()> {
    let (mount, source) = round.paths("file");
    let size = round.size();
    warm(round, "file", size)?;
    for _ in 0..3 {
        let modified = modified_of(&source)?;
        let replacement = source.with_extension("new");
        let bytes = round.bytes(size);
        std::fs::write(&replacement, &bytes)?;
        restore_modified(&replacement, modified)?;
        round.pause();
        std::fs::rename(&replacement, &source)?;
        expect_bytes(&mount, &bytes, "after another file took the name")?;
    }
    Ok(())
}

/// Many file systems give a new file the number of the one just removed.
fn number_reused(round: &mut Round) -> Result<()> {
    let (mount, source) = round.paths("file");
    let size = round.size();
    warm(round, "file", size)?;
    for _ in 0..3 {
        let modified = modified_of(&source)?;
        round.pause();
        std::fs::remove_file(&source)?;
        let bytes = round.bytes(size);
        std::fs::write(&source, &bytes)?;
        restore_modified(&source, modified)?;
        expect_bytes(&mount, &bytes, "after the file was removed and created again")?;
    }
    Ok(())
}

fn exchanged(round: &mut Round) -> Result<()> {
    let size = round.size();
    let first = warm(round, "first", size)?;
    let second = warm(round, "second", size)?;
    let (mount_first, source_first) = round.paths("first");
    let (mount_second, source_second) = round.paths("second");
    round.pause();
    rustix::fs::renameat_with(CWD, &source_first, CWD, &source_second, RenameFlags::EXCHANGE)?;
    expect_bytes(&mount_first, &second, "first after the exchange")?;
    expect_bytes(&mount_second, &first, "second after the exchange")
}

fn truncated_and_extended(round: &mut Round) -> Result<()> {
    let (mount, source) = round.paths("file");
    let size = round.size();
    let mut bytes = warm(round, "file", size)?;
    round.pause();
    let cut = round.random.usize(0..size);
    let file = std::fs::OpenOptions::new().write(true).open(&source)?;
    file.set_len(cut as u64)?;
    file.set_len(size as u64)?;
    bytes[cut..].fill(0);
    expect_bytes(&mount, &bytes, "after it was cut and extended again")
}

fn grown_and_shrunk(round: &mut Round) -> Result<()> {
    let (mount, source) = round.paths("file");
    let size = round.size();
    let mut bytes = warm(round, "file", size)?;
    for _ in 0..3 {
        round.pause();
        let more = round.size();
        bytes.extend(round.bytes(more));
        std::fs::write(&source, &bytes)?;
        expect_bytes(&mount, &bytes, "after it grew")?;
        round.pause();
        let keep = round.random.usize(0..bytes.len());
        bytes.truncate(keep);
        std::fs::OpenOptions::new().write(true).open(&source)?.set_len(keep as u64)?;
        expect_bytes(&mount, &bytes, "after it shrank")?;
    }
    Ok(())
}

fn file_to_directory(round: &mut Round) -> Result<()> {
    let (mount, source) = round.paths("name");
    let size = round.size();
    warm(round, "name", size)?;
    round.pause();
    std::fs::remove_file(&source)?;
    std::fs::create_dir(&source)?;
    std::fs::write(source.join("inner"), b"inner bytes")?;
    match read_whole(&mount) {
        Err(Errno::ISDIR) => {}
        other => bail!("reading what is a directory now gave {:?}", other.map(|b| b.len())),
    }
    // While a name is valid, the kernel walks through it without a lookup.
    round.wait_for_names();
    expect_bytes(&mount.join("inner"), b"inner bytes", "inside the new directory")?;
    round.pause();
    std::fs::remove_dir_all(&source)?;
    std::fs::write(&source, b"a file again")?;
    expect_bytes(&mount, b"a file again", "after the directory became a file")
}

fn link_retargeted(round: &mut Round) -> Result<()> {
    let size = round.size();
    let first = warm(round, "first", size)?;
    let second = warm(round, "second", size)?;
    let (mount, source) = round.paths("link");
    std::os::unix::fs::symlink("first", &source)?;
    expect_bytes(&mount, &first, "through the link")?;
    round.pause();
    std::fs::remove_file(&source)?;
    std::os::unix::fs::symlink("second", &source)?;
    expect_bytes(&mount, &second, "through the retargeted link")
}

fn through_hard_link(round: &mut Round) -> Result<()> {
    let size = round.size();
    let mut bytes = warm(round, "first", size)?;
    let (mount_first, source_first) = round.paths("first");
    let (mount_second, source_second) = round.paths("second");
    std::fs::hard_link(&source_first, &source_second)?;
    expect_bytes(&mount_second, &bytes, "through the second name")?;
    round.pause();
    overwrite(round, &source_second, &mut bytes)?;
    expect_bytes(&mount_first, &bytes, "through the first name")?;
    expect_bytes(&mount_second, &bytes, "through the second name, changed")
}

fn created_behind(round: &mut Round) -> Result<()> {
    let (mount, source) = round.paths("late");
    match read_whole(&mount) {
        Err(Errno::NOENT) => {}
        other => bail!("reading a missing file gave {:?}", other.map(|b| b.len())),
    }
    let bytes = round.bytes(5000);
    std::fs::write(&source, &bytes)?;
    round.wait_for_names();
    expect_bytes(&mount, &bytes, "made after it was missing")
}

fn removed_behind(round: &mut Round) -> Result<()> {
    let (mount, source) = round.paths("file");
    let size = round.size();
    warm(round, "file", size)?;
    round.pause();
    std::fs::remove_file(&source)?;
    match read_whole(&mount) {
        Err(Errno::NOENT) => Ok(()),
        other => bail!("reading a removed file gave {:?}", other.map(|b| b.len())),
    }
}

fn sparse_far_away(round: &mut Round) -> Result<()> {
    use std::os::unix::fs::FileExt;
    const FAR: u64 = 5 << 30;
    let (mount, source) = round.paths("sparse");
    let file = std::fs::File::create(&source)?;
    for seed in 0..3 {
        let bytes = filled(seed, 10_000);
        file.write_all_at(&bytes, FAR)?;
        round.pause();
        let mut got = vec![0; bytes.len()];
        let opened = std::fs::File::open(&mount)?;
        opened.read_exact_at(&mut got, FAR).context("far into the file")?;
        super::same_bytes(&got, &bytes, "5 GiB into the file")?;
        opened.read_exact_at(&mut got, FAR / 2).context("in the hole")?;
        super::same_bytes(&got, &vec![0; bytes.len()], "in the hole")?;
    }
    Ok(())
}

fn size_by_fstat(round: &mut Round) -> Result<()> {
    let (mount, source) = round.paths("file");
    warm(round, "file", 10_000)?;
    for _ in 0..5 {
        let size = round.random.u64(0..300_000);
        round.pause();
        std::fs::OpenOptions::new().write(true).open(&source)?.set_len(size)?;
        let length = std::fs::File::open(&mount)?.metadata()?.len();
        if length != size {
            bail!("fstat after open gives {length} bytes, the source has {size}");
        }
    }
    Ok(())
}
