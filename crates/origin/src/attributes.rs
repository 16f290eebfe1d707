//! The attributes of an object, and the part of them that is its version.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::time::{Duration, SystemTime};
use zeroize::Zeroize;

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
                let seconds = 0_i64.saturating_sub_unsigned(before.as_secs());
                match before.subsec_nanos() {
                    0 => Self { seconds, nanoseconds: 0 },
                    nanoseconds => Self {
                        seconds: seconds.saturating_sub(1),
                        nanoseconds: 1_000_000_000 - nanoseconds,
                    },
                }
            }
        }
    }
}

/// The kind of an object.
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
    /// Last change of contents or attributes. Unlike `modified`, no program can set it.
    pub changed: Time,
    /// The tag of the contents, if times are not enough.
    pub tag: Tag,
}

/// How an origin distinguishes the contents of an object from others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Tag {
    /// By its times, as file systems do.
    #[default]
    Times,
    /// By this digest of what the origin calls them, such as a strong ETag: equal digests are equal
    /// contents, however young they are.
    Contents(u128),
    /// No tag: it is unknown whether the contents are the same as a moment ago.
    Nothing,
}

impl Attributes {
    /// The part of the attributes that changes when the contents may have.
    ///
    /// `generation` distinguishes two objects that had the same inode number one after the other.
    pub fn identity(&self, generation: u64) -> Identity {
        Identity {
            device: self.device,
            inode: self.inode,
            generation,
            size_bytes: self.size_bytes,
            modified: self.modified,
            changed: self.changed,
            tag: self.tag,
        }
    }
}

/// An object and the version of its contents, as far as the origin reveals them.
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
    /// The tag of the contents, if times are not enough.
    pub tag: Tag,
}

impl Identity {
    /// Whether a later change of the object is bound to change the identity too.
    ///
    /// A change within the same tick of the origin's clock as the previous one leaves all times
    /// unchanged (git calls such an entry "racily clean"). An identity read at `now` is settled
    /// once its times are older than `window`. File systems set the time first and copy the bytes
    /// afterwards. So `window` must exceed the clock's tick, the difference between this host's
    /// clock and the origin's, and the longest single `write(2)`. Times in the future are never
    /// settled. If the origin has a tag of the contents, times do not matter.
    pub fn is_settled(&self, now: Time, window: Duration) -> bool {
        match self.tag {
            Tag::Times => self.modified.max(self.changed).after(window) < now,
            Tag::Contents(_) => true,
            Tag::Nothing => false,
        }
    }

    /// The version of contents with this identity: the first 16 bytes of its keyed BLAKE3 hash.
    ///
    /// A user with write access to the origin can choose sizes and times, and also which of their
    /// files to name. Without a secret, or with a hash made for speed alone, that user could
    /// construct a file with the version of another user's file. It would then read that file's
    /// records.
    pub fn digest(&self, secret: &VersionSecret) -> u128 {
        let words = [
            self.device,
            self.inode,
            self.generation,
            self.size_bytes,
            self.modified.seconds as u64,
            self.changed.seconds as u64,
            u64::from(self.modified.nanoseconds) << 32 | u64::from(self.changed.nanoseconds),
        ];
        let mut bytes = [0; 56];
        for (place, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *place = word.to_le_bytes();
        }
        let Tag::Contents(tag) = self.tag else { return secret.digest(&bytes) };
        let mut tagged = [0; 72];
        tagged[..56].copy_from_slice(&bytes);
        tagged[56..].copy_from_slice(&tag.to_le_bytes());
        secret.digest(&tagged)
    }

    /// A number that distinguishes this identity from others of the same object within this
    /// process. It names nothing: a user who constructs two equal ones only confuses their own
    /// file.
    pub fn fingerprint(&self) -> u64 {
        static SEEDS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        SEEDS.hash_one(self)
    }
}

/// The secret that makes versions unpredictable. Wiped when dropped; never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct VersionSecret([u8; 32]);

impl VersionSecret {
    /// The secret with these bytes, which must be random.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The first 16 bytes of the keyed BLAKE3 hash of a message. Messages of different kinds must
    /// have different lengths: an identity has 56 bytes, with a tag 72.
    pub fn digest(&self, message: &[u8]) -> u128 {
        let hash = blake3::keyed_hash(&self.0, message);
        let (half, _) = hash.as_bytes().split_at(16);
        u128::from_le_bytes(half.try_into().expect("half of 32 bytes"))
    }
}

impl fmt::Debug for VersionSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("VersionSecret([redacted])")
    }
}

impl Drop for VersionSecret {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::seeded;
    use proptest::prelude::*;

    fn identity(changed: Time) -> Identity {
        Identity {
            device: 1,
            inode: 2,
            generation: 3,
            size_bytes: 4,
            modified: changed,
            changed,
            tag: Tag::Times,
        }
    }

    #[test]
    fn a_tag_of_the_contents_settles_an_identity_at_once_and_nothing_never() {
        let now = Time { seconds: 100, nanoseconds: 0 };
        let window = Duration::from_secs(2);
        let tagged = |tag| Identity { tag, ..identity(now) };
        assert!(tagged(Tag::Contents(1)).is_settled(now, window));
        let later = now.after(Duration::from_secs(1 << 40));
        assert!(!tagged(Tag::Nothing).is_settled(later, window));
        assert!(tagged(Tag::Times).is_settled(later, window));
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
            Identity { tag: Tag::Contents(0), ..base },
            Identity { tag: Tag::Contents(9), ..base },
        ];
        let secret = VersionSecret::new([7; 32]);
        for variant in variants {
            assert_ne!(variant.digest(&secret), base.digest(&secret), "{variant:?}");
            assert_ne!(variant.fingerprint(), base.fingerprint(), "{variant:?}");
        }
        assert_ne!(base.digest(&secret), base.digest(&VersionSecret::new([8; 32])));
        assert_eq!(base.digest(&secret), base.digest(&VersionSecret::new([7; 32])));
        assert_eq!(base.fingerprint(), base.fingerprint());
        assert!(!format!("{secret:?}").contains('7'), "a secret is never shown");
    }

    /// Two files with the same XXH3-128 without a secret. A time that equals a constant of XXH3
    /// makes one factor of a product zero, and the other factor is then free. Two sums remain, and
    /// one can repair the change of the other.
    #[test]
    fn files_made_to_collide_without_a_secret_have_different_versions() {
        let unkeyed = |identity: &Identity| {
            let words = [
                identity.device,
                identity.inode,
                identity.generation,
                identity.size_bytes,
                identity.modified.seconds as u64,
                u64::from(identity.modified.nanoseconds),
                identity.changed.seconds as u64,
                u64::from(identity.changed.nanoseconds),
            ];
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            twox_hash::XxHash3_128::oneshot(&bytes)
        };
        // Bytes 48 and 16 of XXH3's default secret (xxhash.h, XXH3_kSecret). The seconds of
        // modification and of change are multiplied by them.
        const MODIFIED: u64 = 0x8e24_43f7_7446_08b8;
        const CHANGED: u64 = 0xdb97_9083_e96d_d4de;
        let forged = |modified_ns: u64, changed_ns: u64| Identity {
            modified: Time { seconds: MODIFIED as i64, nanoseconds: modified_ns as u32 },
            changed: Time { seconds: CHANGED as i64, nanoseconds: changed_ns as u32 },
            ..identity(Time::default())
        };
        let folded = |a: u64, b: u64| {
            let product = u128::from(a) * u128::from(b);
            product as u64 ^ (product >> 64) as u64
        };
        // XXH3's first accumulator, as far as it depends on the nanoseconds. It uses bytes 32, 40,
        // 0 and 8 of the secret, and the prime by which the length is multiplied.
        let before = 64_u64
            .wrapping_mul(0x9e37_79b1_85eb_ca87)
            .wrapping_add(folded(3 ^ 0x78e5_c0cc_4ee6_79cb, 4 ^ 0x2172_ffcc_7dd0_5a82));
        let between = folded(1 ^ 0xbe4b_a423_396c_feb8, 2 ^ 0x1cad_21f7_2c81_017c);
        let sum =
            |modified_ns: u64| (before ^ MODIFIED.wrapping_add(modified_ns)).wrapping_add(between);
        let (modified_ns, changed_ns) = (1000, 500_000_000);
        let pairs = (modified_ns + 1..modified_ns + 1000).filter_map(|other_ns| {
            let repaired = sum(modified_ns) ^ sum(other_ns) ^ CHANGED.wrapping_add(changed_ns);
            let repaired_ns = repaired.wrapping_sub(CHANGED);
            (repaired_ns < 1_000_000_000)
                .then(|| (forged(modified_ns, changed_ns), forged(other_ns, repaired_ns)))
        });
        let pairs: Vec<_> = pairs.collect();
        assert!(pairs.len() > 10, "{} pairs", pairs.len());
        let secret = VersionSecret::new([7; 32]);
        for (one, other) in pairs {
            assert!(one != other && unkeyed(&one) == unkeyed(&other), "{one:?} and {other:?}");
            assert_ne!(one.digest(&secret), other.digest(&secret), "{one:?} and {other:?}");
        }
    }

    proptest! {
        #![proptest_config(seeded())]

        #[test]
        fn times_survive_the_way_to_system_time_and_back(
            seconds in prop_oneof![any::<i64>(), -3i64..3, Just(i64::MIN), Just(i64::MAX)],
            nanoseconds in prop_oneof![Just(0), 0u32..1_000_000_000]
        ) {
            let time = Time { seconds, nanoseconds };
            prop_assert_eq!(Time::from(SystemTime::from(time)), time);
        }
    }
}
