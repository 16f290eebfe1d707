//! The stage, which makes a bucket writable, and the messages for a store that cannot be written to
//! safely.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, ValueEnum, ValueHint};
use ogive_bucket::journal::{self, Journal, Opened};
use ogive_bucket::staged::{Durable, Options, RENAME_MAX, StagedError, Uploads};
use ogive_bucket::{BucketError, Chmod, Promises, RemoteBucket, WriteOptions, probe};
use ogive_l2::KeySource;

use crate::exit::{self, Refusal};
use crate::l2::key::absolute;

const HEADING: &str = "Bucket options";

/// Options for writing to a bucket.
#[derive(Clone, Debug, Args)]
pub(crate) struct StageArgs {
    /// Make the bucket writable: keep writes in this directory until they are uploaded
    ///
    /// The directory is on a local disk, with space for the files that are open for writing. Its
    /// contents are encrypted with the key of --key-file or --passphrase and survive kill -9; the
    /// next mount uploads them. It belongs to one bucket and prefix, and to one mount at a time. It
    /// is created if it does not exist. Without this option a bucket is read-only.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = HEADING,
        value_parser = absolute())]
    pub(crate) stage: Option<PathBuf>,

    /// With --stage: when close(2) returns
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = Close::Upload,
        help_heading = HEADING)]
    pub(crate) close: Close,

    /// With --stage: how many objects a directory may have to be renamed
    ///
    /// Stores cannot rename: each object is copied inside the store, and the old one is deleted. A
    /// directory with more objects is refused with EXDEV, and mv(1) copies it.
    #[arg(long, value_name = "NUMBER", default_value_t = RENAME_MAX, help_heading = HEADING)]
    pub(crate) rename_max: usize,

    /// With --stage: what happens to a mode, owner or time that cannot be stored
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = SetMode::Refuse,
        help_heading = HEADING)]
    pub(crate) chmod: SetMode,
}

/// The choices of `--chmod`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SetMode {
    /// The change fails with EPERM
    Refuse,
    /// The change is silently ignored, for programs that insist, such as rsync -a and tar
    Ignore,
}

/// The choices of `--close`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Close {
    /// Once the store has the file
    Upload,
    /// Once the stage has the file, safe from a power cut; the upload follows soon. This is weaker:
    /// other clients do not see the file before, the loss of the disk loses it, and a conflict with
    /// another client is only logged. fsync(2) still waits for the upload
    Journal,
}

impl StageArgs {
    /// The first of these options that was given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let given = [
            (self.stage.is_some(), "--stage"),
            (self.close != Close::Upload, "--close"),
            (self.rename_max != RENAME_MAX, "--rename-max"),
            (self.chmod != SetMode::Refuse, "--chmod"),
        ];
        given.into_iter().find_map(|(is_given, option)| is_given.then_some(option))
    }
}

/// A stage and its options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stage {
    path: PathBuf,
    durable: Durable,
    rename_max: usize,
    chmod: Chmod,
    kdf_work_max_kib: u64,
    uploads_max_bytes: u64,
}

/// Uploads may use this fraction of the cache's size, in separate memory, within these bounds.
const UPLOADS_SHARE: u64 = 8;
const UPLOADS_MIN_BYTES: u64 = 64 << 20;
const UPLOADS_MAX_BYTES: u64 = 1 << 30;

impl Stage {
    /// The stage of the options; `None` without one.
    ///
    /// # Errors
    /// Promises about the source that contradict writing to a bucket.
    pub(crate) fn new(
        args: &StageArgs,
        (read_only, sole_writer, immutable): (bool, bool, bool),
        kdf_work_max_kib: u64,
    ) -> Result<Option<Self>, Refusal> {
        let usage = |what: &str| Refusal::new(exit::USAGE, format!("cannot mount: {what}"));
        let Some(path) = &args.stage else {
            return match args.given() {
                Some(option) => Err(usage(&format!("{option} needs --stage"))
                    .hint("give a directory with --stage, or leave the option out")),
                None => Ok(None),
            };
        };
        if immutable {
            return Err(usage("--immutable and --stage contradict each other")
                .hint("leave one of them out"));
        }
        if sole_writer {
            return Err(usage(
                "--sole-writer trusts the cache without a request, but with --stage each open must \
                 find out which object it may overwrite",
            )
            .hint("leave --sole-writer out"));
        }
        if read_only {
            return Err(usage("--read-only refuses the changes that --stage allows").hint(
                "leave one of them out; a writable mount uploads the files that are still in a \
                 stage",
            ));
        }
        let durable = match args.close {
            Close::Upload => Durable::Store,
            Close::Journal => Durable::Journal,
        };
        let chmod = match args.chmod {
            SetMode::Refuse => Chmod::Refuse,
            SetMode::Ignore => Chmod::Ignore,
        };
        let (path, rename_max) = (path.clone(), args.rename_max);
        let uploads_max_bytes = UPLOADS_MIN_BYTES;
        Ok(Some(Self { path, durable, rename_max, chmod, kdf_work_max_kib, uploads_max_bytes }))
    }

    /// Bounds the memory of uploads by a share of the cache's.
    pub(crate) fn bound_uploads(&mut self, arc_max_bytes: u64) {
        let share = arc_max_bytes / UPLOADS_SHARE;
        self.uploads_max_bytes = share.clamp(UPLOADS_MIN_BYTES, UPLOADS_MAX_BYTES);
    }

    /// Refuses a stage inside the mount.
    pub(crate) fn check_outside(&self, mount_point: &Path) -> Result<(), Refusal> {
        // Resolve the links in the existing part of the path.
        let real = self.path.ancestors().find_map(|there| {
            let rest = self.path.strip_prefix(there).ok()?;
            Some(std::fs::canonicalize(there).ok()?.join(rest))
        });
        if real.is_none_or(|real| !real.starts_with(mount_point)) {
            return Ok(());
        }
        let (path, mount) = (self.path.display(), mount_point.display());
        let text = format!("cannot mount: the stage {path} is inside the mount point {mount}");
        Err(Refusal::new(exit::USAGE, text).hint("use a directory outside of it"))
    }

    /// The options for writing files.
    pub(crate) fn options(&self) -> WriteOptions {
        let (rename_max, close, chmod) = (self.rename_max, self.durable, self.chmod);
        let uploads = Uploads::new(self.uploads_max_bytes);
        WriteOptions { staged: Options { uploads, ..Options::default() }, rename_max, close, chmod }
    }

    /// Opens the journal, or creates one.
    pub(crate) fn open(&self, source: &str, key: &KeySource) -> Result<Opened, Refusal> {
        if let Ok(text) = std::fs::canonicalize(&self.path)
            && is_in_memory(&text)
        {
            log::warn!("{} is in memory: its contents do not survive a power cut", text.display());
        }
        journal::master_key(&self.path, key, self.kdf_work_max_kib)
            .and_then(|master| Journal::open(&self.path, source, &master, Default::default()))
            .map_err(|error| Refusal::new(exit::FAILURE, format!("cannot mount: {error}")))
    }

    /// Probes the store, and logs which writes are refused because it ignores conditions. Aborts
    /// the uploads that an earlier mount left.
    pub(crate) fn prepare(
        &self,
        bucket: &RemoteBucket,
        prefix: &str,
        opened: &mut Opened,
    ) -> Result<(), BucketError> {
        let promises = probe(bucket, prefix)?;
        bucket.believe(promises);
        bucket.note_uploads(&opened.journal);
        let left = bucket.abort_stale(std::mem::take(&mut opened.uploads));
        if left > 0 {
            let uploads = ogive_text::counted(left, "unfinished upload", "unfinished uploads");
            log::warn!("aborted {uploads} of an earlier mount");
        }
        for refused in refused(&promises, &self.options().staged) {
            log::warn!("{refused}");
        }
        Ok(())
    }
}

/// Whether a directory is in memory: on tmpfs or ramfs.
fn is_in_memory(path: &Path) -> bool {
    const TMPFS: i64 = 0x0102_1994;
    const RAMFS: i64 = 0x8584_58f6;
    #[expect(clippy::unnecessary_cast, reason = "its type differs by target")]
    rustix::fs::statfs(path).is_ok_and(|found| [TMPFS, RAMFS].contains(&(found.f_type as i64)))
}

/// The writes that are refused because the store ignores conditions.
fn refused(promises: &Promises, options: &Options) -> Vec<String> {
    let largest = crate::value::Size(options.put_instead_max_bytes);
    let mut refused = Vec::new();
    if !promises.upload_create {
        refused.push(format!(
            "the store ignores If-None-Match at the end of a multipart upload: new files over \
             {largest} are refused (EFBIG), and so are renames of directories (EXDEV)"
        ));
    }
    if !promises.upload_overwrite {
        refused.push(format!(
            "the store ignores If-Match at the end of a multipart upload: changes to files larger \
             than {largest} are refused (EFBIG), and so are renames over existing files (EXDEV)"
        ));
    }
    if !promises.delete {
        refused.push(
            "the store ignores If-Match of DELETE: if another client overwrites an object right \
             before its removal, the new object is removed"
                .to_owned(),
        );
    }
    refused
}

/// The message for a bucket that cannot be mounted writable.
pub(crate) fn refusal(error: &StagedError, of_bucket: impl Fn(&BucketError) -> Refusal) -> Refusal {
    match error {
        StagedError::Bucket(error @ BucketError::Unsupported { .. }) => {
            Refusal::new(exit::SOURCE, format!("cannot mount: {error}"))
                .hint("mount without --stage for read-only access")
        }
        StagedError::Bucket(error) => of_bucket(error),
        error => Refusal::new(exit::FAILURE, format!("cannot mount: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(path: &str) -> Stage {
        let (durable, chmod) = (Durable::Store, Chmod::Refuse);
        Stage {
            path: path.into(),
            durable,
            rename_max: 1,
            chmod,
            kdf_work_max_kib: 1,
            uploads_max_bytes: UPLOADS_MIN_BYTES,
        }
    }

    #[test]
    fn a_stage_inside_the_mount_is_refused_even_through_a_link() {
        let directory = tempfile::tempdir().unwrap();
        let real = std::fs::canonicalize(directory.path()).unwrap();
        let (mount, link) = (real.join("mnt"), real.join("link"));
        std::fs::create_dir(&mount).unwrap();
        std::os::unix::fs::symlink(&mount, &link).unwrap();
        for inside in [mount.clone(), mount.join("a/b"), link.join("a")] {
            let refusal = stage(inside.to_str().unwrap()).check_outside(&mount);
            assert!(refusal.unwrap_err().to_string().contains("is inside"), "{}", inside.display());
        }
        for outside in [real.join("stage"), real.join("mnt2"), real.clone()] {
            stage(outside.to_str().unwrap()).check_outside(&mount).unwrap();
        }
    }

    #[test]
    fn uploads_have_a_share_of_the_caches_memory() {
        let mut stage = stage("/stage");
        for (cache, uploads) in [(64 << 20, 64 << 20), (2 << 30, 256 << 20), (1 << 40, 1 << 30)] {
            stage.bound_uploads(cache);
            assert_eq!(stage.uploads_max_bytes, uploads);
        }
    }

    #[test]
    fn ignored_conditions_are_reported_with_the_refused_writes() {
        let options = Options::default();
        assert!(refused(&Promises::ALL, &options).is_empty());
        let moto = Promises { upload_overwrite: false, ..Promises::ALL };
        let messages = refused(&moto, &options);
        assert!(messages.len() == 1 && messages[0].contains("larger than 64M"), "{messages:?}");
        assert_eq!(refused(&Promises::NONE, &options).len(), 3);
    }
}
