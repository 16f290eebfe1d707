//! The options of a mount.

use super::MountError;
use crate::second_level::SecondLevelOptions;
use ogive_origin::TrustTimes;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// The longest source name in the table of mounts, in bytes.
const NAME_BYTES_MAX: usize = 4095;

/// Longer than any mount; the kernel computes with it without overflow.
const FOREVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// A cache must have room for a few records of each list. Otherwise every read evicts the record
/// before.
pub const RECORDS_MIN: u64 = 16;

/// Smallest and largest record.
const RECORD_BYTES: std::ops::RangeInclusive<u32> = 4 << 10..=1 << 20;
/// With a smaller window, two changes could fall into one tick of the origin's clock.
const RACY_WINDOW: Duration = Duration::from_secs(2);

/// How the ARC treats a record that the kernel's page cache has taken over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Caching {
    /// It stays in the ARC like any other, even if it displaces the page cache.
    Inclusive,
    /// It is evicted first when memory is needed. A record that the page cache asks for again
    /// stays. If it was evicted already, that costs one more read of the origin.
    #[default]
    Exclusive,
}

/// The transport of requests from the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// Through io_uring where that is worth it and the kernel offers it, otherwise through the
    /// device.
    #[default]
    Auto,
    /// Through io_uring, or the mount fails.
    Uring,
    /// One by one, through the device.
    Device,
}

/// Options of a mount.
#[derive(Clone, Debug)]
pub struct MountOptions {
    /// Directory to mount.
    pub source: PathBuf,
    /// Where to mount it.
    pub mount_point: PathBuf,
    /// Refuse every change.
    pub read_only: bool,
    /// Let other users in (permissions still apply).
    pub allow_other: bool,
    /// Mode bits and access lists of the source decide for other users, even where a server or
    /// another program has rules of its own.
    pub trust_permissions: bool,
    /// Reads bypass the kernel's page cache, so that the ARC caches alone.
    pub direct_io: bool,
    /// The kernel reads and writes the files of the source itself, where it can: its page cache
    /// alone has their bytes.
    pub passthrough: bool,
    /// How the ARC shares memory with a page cache above it.
    pub caching: Caching,
    /// The rule that chooses the records to evict.
    pub policy: ogive_arc::Policy,
    /// Largest size of the cache in bytes; half of the memory if `None`.
    pub arc_max_bytes: Option<u64>,
    /// Size below which memory pressure does not shrink it; a 32nd of the memory if `None`.
    pub arc_min_bytes: Option<u64>,
    /// Size of a record in bytes: a power of two from 4 KiB to 1 MiB.
    pub record_size_bytes: u32,
    /// How long names and attributes are cached without asking the origin.
    pub metadata_ttl: Duration,
    /// How long the absence of a name is cached without asking the origin.
    pub negative_ttl: Duration,
    /// The age from which a time proves that no other change followed; 2 s if `None`.
    pub racy_window: Option<Duration>,
    /// Whether to trust the times of the source's file system.
    pub trust_times: TrustTimes,
    /// Only this mount changes the source.
    pub sole_writer: bool,
    /// Nothing changes the source while it is mounted, not even this mount: everything is cached
    /// until the end. Implies `read_only` and `sole_writer`; the TTLs have no meaning then.
    pub immutable: bool,
    /// Threads that receive requests; 0: by the number of processors.
    pub threads: usize,
    /// The transport of requests from the kernel.
    pub transport: Transport,
    /// How long a program waits for the source before it gets `EIO`; for ever if `None`.
    pub origin_timeout: Option<Duration>,
    /// Threads that wait for the origin, at most; 0: 32.
    pub origin_threads: usize,
    /// How far ahead of a sequential reader to read, in bytes; 0: not at all.
    pub prefetch_max_bytes: u64,
    /// The number of inodes above which the kernel is asked to forget some; 0: by the size of the
    /// cache.
    pub inode_limit: u64,
    /// Name of the control directory in the root; empty: none.
    pub control_name: OsString,
    /// Let device nodes work.
    pub dev: bool,
    /// Let set-user-id programs work.
    pub suid: bool,
    /// Let programs be executed.
    pub exec: bool,
    /// Reads change no access times in the source.
    pub no_atime: bool,
    /// Listing directories changes no access times in the source.
    pub no_diratime: bool,
    /// Serve no mounts below the source, but the source's own directories under them.
    pub one_file_system: bool,
    /// Source name in the table of mounts; the source's path if `None`.
    pub name: Option<OsString>,
    /// The second level on SSDs, if any.
    pub second_level: Option<SecondLevelOptions>,
    /// Gives freed memory of the process back to the system. Only the program that chose the
    /// allocator can do that, so it passes this function.
    pub release_memory: fn(),
}

impl Default for MountOptions {
    fn default() -> Self {
        Self {
            source: PathBuf::new(),
            mount_point: PathBuf::new(),
            read_only: false,
            allow_other: false,
            trust_permissions: false,
            direct_io: false,
            passthrough: false,
            caching: Caching::default(),
            policy: ogive_arc::Policy::default(),
            arc_max_bytes: None,
            arc_min_bytes: None,
            record_size_bytes: 128 << 10,
            metadata_ttl: Duration::from_secs(1),
            negative_ttl: Duration::from_secs(1),
            racy_window: None,
            trust_times: TrustTimes::default(),
            sole_writer: false,
            immutable: false,
            threads: 0,
            transport: Transport::default(),
            origin_timeout: None,
            origin_threads: 0,
            prefetch_max_bytes: 8 << 20,
            inode_limit: 0,
            control_name: ".ogive".into(),
            dev: false,
            suid: false,
            exec: true,
            no_atime: false,
            no_diratime: false,
            one_file_system: false,
            name: None,
            second_level: None,
            release_memory: || {},
        }
    }
}

impl MountOptions {
    pub(super) fn racy_window(&self) -> Duration {
        self.racy_window.unwrap_or(RACY_WINDOW)
    }

    /// These options with all implied values.
    ///
    /// # Errors
    /// [`MountError::Option`] for an invalid value.
    pub(super) fn checked(self) -> Result<Self, MountError> {
        self.check()?;
        if !self.immutable {
            return Ok(self);
        }
        let (metadata_ttl, negative_ttl) = (FOREVER, FOREVER);
        Ok(Self {
            read_only: true,
            sole_writer: true,
            trust_times: TrustTimes::Unchanging,
            metadata_ttl,
            negative_ttl,
            ..self
        })
    }

    /// # Errors
    /// [`MountError::Option`] for an invalid value.
    fn check(&self) -> Result<(), MountError> {
        let wrong = |option, reason: String| Err(MountError::Option { option, reason });
        let record = self.record_size_bytes;
        if !RECORD_BYTES.contains(&record) || !record.is_power_of_two() {
            let reason = format!("{record} bytes: give a power of two from 4 KiB to 1 MiB");
            return wrong("recordsize", reason);
        }
        let name = self.control_name.as_encoded_bytes();
        if name.contains(&b'/') || name == b"." || name == b".." || name.len() > 255 {
            let reason = format!("{:?}: give a plain file name", self.control_name);
            return wrong("control-name", reason);
        }
        if let Some(name) = &self.name {
            let bytes = name.as_encoded_bytes();
            // A reader of the table of mounts would read the mount point as an empty name.
            if bytes.is_empty() || bytes.contains(&0) || bytes.len() > NAME_BYTES_MAX {
                let reason = format!(
                    "of {} bytes: give one of 1 to {NAME_BYTES_MAX} without NUL, or leave it out",
                    bytes.len()
                );
                return wrong("name", reason);
            }
        }
        if let (true, Some((option, why))) = (self.passthrough, self.contradicts_passthrough()) {
            return wrong("passthrough", format!("it cannot go with {option}: {why}"));
        }
        if let (Some(max), Some(min)) = (self.arc_max_bytes, self.arc_min_bytes)
            && min > max
        {
            let reason = format!("{min} bytes is more than arc-max, {max} bytes");
            return wrong("arc-min", reason);
        }
        Ok(())
    }
}

impl MountOptions {
    /// The first option that has no effect, or a wrong one, where the kernel reads and writes files
    /// itself, with the reason.
    pub fn contradicts_passthrough(&self) -> Option<(&'static str, &'static str)> {
        if self.direct_io {
            Some(("direct-io", "there is no other cache for these files than the page cache"))
        } else if self.second_level.is_some() {
            Some(("l2", "what the kernel reads itself never comes to a second level"))
        } else if self.sole_writer && !self.immutable {
            Some((
                "sole-writer",
                "what the kernel writes itself is not seen, as if others wrote it",
            ))
        } else if self.no_atime {
            Some(("no-atime", "the kernel reads as the source is mounted; mount that with noatime"))
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt as _;

    #[test]
    fn impossible_options_are_refused_by_name() {
        let refused = |change: fn(&mut MountOptions)| {
            let mut options = MountOptions::default();
            change(&mut options);
            options.check().unwrap_err().to_string()
        };
        assert!(MountOptions::default().check().is_ok());
        assert!(refused(|o| o.record_size_bytes = 100_000).contains("recordsize"));
        assert!(refused(|o| o.record_size_bytes = 2 << 20).contains("recordsize"));
        assert!(refused(|o| o.record_size_bytes = 0).contains("recordsize"));
        assert!(refused(|o| o.control_name = "a/b".into()).contains("control-name"));
        assert!(refused(|o| o.control_name = "..".into()).contains("control-name"));
        assert!(refused(|o| o.name = Some("".into())).contains("--name of 0 bytes"));
        assert!(refused(|o| o.name = Some("x".repeat(4096).into())).contains("1 to 4095"));
        let name = Some(OsString::from_vec(b"a,ro\n\xff".to_vec()));
        assert!(MountOptions { name, ..MountOptions::default() }.checked().is_ok());
        let through = refused(|o| (o.passthrough, o.direct_io) = (true, true));
        assert!(through.contains("passthrough") && through.contains("direct-io"), "{through}");
        assert!(refused(|o| (o.passthrough, o.no_atime) = (true, true)).contains("no-atime"));
        assert!(refused(|o| (o.passthrough, o.sole_writer) = (true, true)).contains("sole-writer"));
        let fixed = MountOptions { passthrough: true, immutable: true, ..MountOptions::default() };
        assert!(fixed.checked().is_ok());
        assert!(
            refused(|o| (o.arc_max_bytes, o.arc_min_bytes) = (Some(1), Some(2)))
                .contains("arc-min")
        );
    }
}
