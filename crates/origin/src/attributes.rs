//! What an origin says about an object: its attributes, and the part of them that is its version.

use std::time::{Duration, SystemTime};
use xxhash_rust::xxh3::Xxh3;

/// A point in time as file systems keep it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time {
    /// Seconds since 1970-01-01T00:00:00Z; negative before.
    pub seconds: i64,
    /// Nanoseconds within the second, `0..1_000_000_000`.
    pub nanoseconds: u32,
}

impl Time {
    /// The current time of this host's real-time clock.
    pub fn now() -> Self {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        Self { seconds: now.tv_sec, nanoseconds: now.tv_nsec as u32 }
    }

    /// This time later by `duration`; saturates at the end of time.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        let nanoseconds = self.nanoseconds + duration.subsec_nanos();
        Self {
            seconds: self
                .seconds
                .saturating_add(i64::try_from(duration.as_secs()).unwrap_or(i64::MAX))
                .saturating_add(i64::from(nanoseconds / 1_000_000_000)),
            nanoseconds: nanoseconds % 1_000_000_000,
        }
    }
}

impl From<Time> for SystemTime {
    /// Times that `SystemTime` cannot hold become the epoch.
    fn from(time: Time) -> Self {
        let nanoseconds = Duration::from_nanos(u64::from(time.nanoseconds));
        let whole = Duration::from_secs(time.seconds.unsigned_abs());
        let second = if time.seconds >= 0 {
            SystemTime::UNIX_EPOCH.checked_add(whole)
        } else {
            SystemTime::UNIX_EPOCH.checked_sub(whole)
        };
        second.and_then(|second| second.checked_add(nanoseconds)).unwrap_or(SystemTime::UNIX_EPOCH)
    }
}

impl From<SystemTime> for Time {
    fn from(time: SystemTime) -> Self {
        match time.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(since) => Self {
                seconds: i64::try_from(since.as_secs()).unwrap_or(i64::MAX),
                nanoseconds: since.subsec_nanos(),
            },
            Err(before) => {
                let before = before.duration();
                let seconds = i64::try_from(before.as_secs()).unwrap_or(i64::MAX);
                match before.subsec_nanos() {
                    0 => Self { seconds: -seconds, nanoseconds: 0 },
                    nanoseconds => {
                        Self { seconds: -seconds - 1, nanoseconds: 1_000_000_000 - nanoseconds }
                    }
                }
            }
        }
    }
}

/// What kind of object a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// A regular file: the only kind with records.
    Regular,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A named pipe.
    Pipe,
    /// A Unix-domain socket.
    Socket,
    /// A character device.
    CharacterDevice,
    /// A block device.
    BlockDevice,
}

impl FileKind {
    /// The kind in the `S_IFMT` bits of a mode, or `None` if they name none.
    pub fn from_mode(mode: u32) -> Option<Self> {
        use rustix::fs::FileType;
        Self::from_file_type(FileType::from_raw_mode(mode))
    }

    pub(crate) fn from_file_type(file_type: rustix::fs::FileType) -> Option<Self> {
        use rustix::fs::FileType;
        Some(match file_type {
            FileType::RegularFile => Self::Regular,
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Symlink,
            FileType::Fifo => Self::Pipe,
            FileType::Socket => Self::Socket,
            FileType::CharacterDevice => Self::CharacterDevice,
            FileType::BlockDevice => Self::BlockDevice,
            _ => return None,
        })
    }
}

/// Attributes of an object, as `fstat(2)` gives them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Device that holds the object.
    pub device: u64,
    /// Inode number on that device.
    pub inode: u64,
    /// Kind of the object.
    pub kind: FileKind,
    /// Permission bits, set-id and sticky bits: the low 12 bits of the mode.
    pub permissions: u16,
    /// Number of names.
    pub links: u32,
    /// Owner.
    pub user: u32,
    /// Group.
    pub group: u32,
    /// Device number of a device node.
    pub special_device: u64,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Allocated blocks of 512 bytes.
    pub blocks: u64,
    /// Preferred I/O size in bytes.
    pub block_size_bytes: u32,
    /// Last access.
    pub accessed: Time,
    /// Last modification of the contents.
    pub modified: Time,
    /// Last change of contents or attributes. Unlike `modified` nobody can set it.
    pub changed: Time,
}

impl Attributes {
    /// The part of the attributes that changes when the contents may have.
    ///
    /// `generation` tells two objects apart that had the same inode number one after the other.
    pub fn identity(&self, generation: u64) -> Identity {
        Identity {
            device: self.device,
            inode: self.inode,
            generation,
            size_bytes: self.size_bytes,
            modified: self.modified,
            changed: self.changed,
        }
    }
}

/// An object and the version of its contents, as far as the origin lets them be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// Device that holds the object.
    pub device: u64,
    /// Inode number on that device.
    pub inode: u64,
    /// Generation of the inode number.
    pub generation: u64,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Last modification of the contents.
    pub modified: Time,
    /// Last change of contents or attributes.
    pub changed: Time,
}

impl Identity {
    /// Whether a later change of the object is bound to change the identity too.
    ///
    /// A change made within the same tick of the origin's clock as the previous one leaves all
    /// times as they were (git calls such an entry "racily clean"). An identity read at `now` is
    /// settled once its times lie further back than `window`, which therefore has to exceed the
    /// clock's tick, the difference between this host's clock and the origin's, and the longest
    /// single `write(2)` (file systems stamp the time first and copy the bytes afterwards).
    /// Times in the future are never settled.
    pub fn is_settled(&self, now: Time, window: Duration) -> bool {
        self.modified.max(self.changed).after(window) < now
    }

    /// 128-bit digest (XXH3) of the identity and of `salt`, in a fixed byte order.
    pub fn digest(&self, salt: u64) -> u128 {
        let mut hasher = Xxh3::with_seed(salt);
        for word in [
            self.device,
            self.inode,
            self.generation,
            self.size_bytes,
            self.modified.seconds as u64,
            u64::from(self.modified.nanoseconds),
            self.changed.seconds as u64,
            u64::from(self.changed.nanoseconds),
        ] {
            hasher.update(&word.to_le_bytes());
        }
        hasher.digest128()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn identity(changed: Time) -> Identity {
        Identity { device: 1, inode: 2, generation: 3, size_bytes: 4, modified: changed, changed }
    }

    #[test]
    fn an_identity_settles_only_after_the_window() {
        let changed = Time { seconds: 100, nanoseconds: 999_999_999 };
        let window = Duration::from_millis(2);
        let settled_after = Time { seconds: 101, nanoseconds: 1_999_999 };
        assert!(!identity(changed).is_settled(changed, window));
        assert!(!identity(changed).is_settled(settled_after, window));
        assert!(
            identity(changed).is_settled(Time { seconds: 101, nanoseconds: 2_000_000 }, window)
        );
        assert!(!identity(Time { seconds: 1 << 40, nanoseconds: 0 }).is_settled(changed, window));
    }

    #[test]
    fn every_field_changes_the_digest() {
        let base = identity(Time { seconds: 5, nanoseconds: 6 });
        let variants = [
            Identity { device: 9, ..base },
            Identity { inode: 9, ..base },
            Identity { generation: 9, ..base },
            Identity { size_bytes: 9, ..base },
            Identity { modified: Time { seconds: 9, nanoseconds: 6 }, ..base },
            Identity { modified: Time { seconds: 5, nanoseconds: 9 }, ..base },
            Identity { changed: Time { seconds: 9, nanoseconds: 6 }, ..base },
            Identity { changed: Time { seconds: 5, nanoseconds: 9 }, ..base },
        ];
        for variant in variants {
            assert_ne!(variant.digest(0), base.digest(0), "{variant:?}");
        }
        assert_ne!(base.digest(0), base.digest(1));
        assert_eq!(base.digest(7), base.digest(7));
    }

    proptest! {
        #[test]
        fn times_survive_the_way_to_system_time_and_back(
            seconds in -10_000_000_000i64..10_000_000_000, nanoseconds in 0u32..1_000_000_000
        ) {
            let time = Time { seconds, nanoseconds };
            prop_assert_eq!(Time::from(SystemTime::from(time)), time);
        }
    }
}
