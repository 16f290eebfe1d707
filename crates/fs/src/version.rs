//! Which version of a file's contents is current, and when it stops being so.
//!
//! The engine's keys start with a version. A wrong version serves stale bytes. A version that
//! changes too often throws a warm cache away. The rules, each of which `docs/coherence.md` turns
//! into a promise:
//!
//! 1. *Opening* a file reads its identity from the origin. A *settled* identity (see
//!    [`Identity::is_settled`]) determines the version. An unchanged file has the same version at
//!    the next open, after the kernel forgot it, and after a restart.
//! 2. An identity that is not settled cannot vouch for the contents at the next open. The version
//!    is unique, and the next open gets another.
//! 3. A *write through the mount* keeps the version while the file stays open. It invalidates
//!    exactly the records it touched, after the origin has the bytes. A later open finds another
//!    identity, and so another version. A change behind the mount between two of our writes looks
//!    like ours, and must not be lost.
//! 4. A change of the whole file (truncation, allocation, a copied range) gives a unique version at
//!    once.
//!
//! With `sole_writer` the user promises that no other program changes the origin behind the mount.
//! A file once opened then keeps its version until rule 4.
//!
//! # Races between opening and changing
//!
//! The identity is read without a lock. Before it decides the version, a newer event may do so: a
//! later open, a write or a truncation through the mount. So each decision and each change draws a
//! ticket, and an open draws its own before it reads the identity. If it finds a later ticket than
//! its own, it takes a unique version, which is always right, if cold. Only if it arrives at the
//! current version itself has it missed nothing.
//!
//! # What makes versions unforeseeable
//!
//! All versions are keyed hashes under one secret ([`VersionSecret`]), because a writer to the
//! origin chooses most fields of an identity. The second level keeps the secret, sealed, so that
//! the next mount finds its records. Without a second level the secret lasts for this mount alone.
//!
//! The state is small and always used under the inode's lock; nothing is called while it is held.

use crate::record::Version;
use ogive_origin::{Identity, Time, VersionSecret};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The version and size of a file that has been opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Contents {
    /// Start of the keys of its records.
    pub(crate) version: Version,
    /// Largest size known to this mount, in bytes.
    pub(crate) size_bytes: u64,
    /// Ticket of the last decision or change.
    pub(crate) ticket: u64,
    /// The version is that of a settled identity, and nothing was written through the mount since.
    /// So the second level's records of this version are valid for a reader.
    pub(crate) pristine: bool,
}

/// The decision at the open of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opened {
    /// The contents from now on.
    pub(crate) contents: Contents,
    /// The kernel's pages belong to this version and may stay.
    pub(crate) keep_pages: bool,
}

/// Decides versions; shared by all inodes of a mount.
#[derive(Debug)]
pub(crate) struct Versions {
    racy_window: Duration,
    sole_writer: bool,
    /// Numbers the tickets and the unique versions.
    next: AtomicU64,
    /// Separates them from the unique versions of other mounts with the same secret.
    salt: u64,
    secret: VersionSecret,
}

impl Versions {
    pub(crate) fn new(
        racy_window: Duration,
        sole_writer: bool,
        salt: u64,
        secret: VersionSecret,
    ) -> Self {
        Self { racy_window, sole_writer, next: AtomicU64::new(1), salt, secret }
    }

    /// Whether a version is the one that a settled identity gives.
    pub(crate) fn stands_for(&self, version: Version, identity: &Identity) -> bool {
        identity.digest(&self.secret) == version
    }

    /// The version of this identity. It is always the same if the identity is settled at `now`,
    /// unique otherwise.
    pub(crate) fn of(&self, identity: &Identity, now: Time) -> (Version, bool) {
        if identity.is_settled(now, self.racy_window) {
            (identity.digest(&self.secret), true)
        } else {
            (self.one_of_a_kind(), false)
        }
    }

    /// Whether only this mount changes the origin.
    pub(crate) fn is_sole_writer(&self) -> bool {
        self.sole_writer
    }

    /// A number larger than all before. An open draws it before it reads the identity; a change
    /// draws it after it was made.
    pub(crate) fn ticket(&self) -> u64 {
        self.next.fetch_add(1, Ordering::SeqCst)
    }

    /// Contents of a file that is being opened. `identity` was read at `now` or later, by an open
    /// that drew `ticket`.
    pub(crate) fn open(
        &self,
        known: Option<Contents>,
        identity: &Identity,
        now: Time,
        ticket: u64,
    ) -> Opened {
        if let (true, Some(known)) = (self.sole_writer, known) {
            let size_bytes = identity.size_bytes.max(known.size_bytes);
            return Opened { contents: Contents { size_bytes, ..known }, keep_pages: true };
        }
        let (mut version, settled) = self.of(identity, now);
        let same = settled && known.is_some_and(|known| known.version == version);
        let latest = known.map_or(0, |known| known.ticket);
        let mut pristine = settled && known.is_none_or(|known| known.pristine || !same);
        if latest > ticket && !same {
            version = self.one_of_a_kind();
            pristine = false;
        }
        let ticket = ticket.max(latest);
        let contents = Contents { version, size_bytes: identity.size_bytes, ticket, pristine };
        Opened { contents, keep_pages: same }
    }

    /// Contents after a change that leaves no record valid.
    pub(crate) fn replaced(&self, size_bytes: u64) -> Contents {
        let (version, ticket) = (self.one_of_a_kind(), self.ticket());
        Contents { version, size_bytes, ticket, pristine: false }
    }

    /// A version that no key has had so far.
    pub(crate) fn one_of_a_kind(&self) -> Version {
        let number = self.ticket();
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.salt.to_le_bytes());
        bytes[8..].copy_from_slice(&number.to_le_bytes());
        // Shorter than any identity, so it never equals the message of one.
        self.secret.digest(&bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ogive_origin::Tag;

    const WINDOW: Duration = Duration::from_secs(2);

    fn at(seconds: i64) -> Time {
        Time { seconds, nanoseconds: 5 }
    }

    fn identity(size_bytes: u64, changed: i64) -> Identity {
        let changed = at(changed);
        Identity {
            device: 1,
            inode: 2,
            generation: 3,
            size_bytes,
            modified: changed,
            changed,
            tag: Tag::Times,
        }
    }

    fn versions(sole_writer: bool) -> Versions {
        Versions::new(WINDOW, sole_writer, 42, VersionSecret::new([1; 32]))
    }

    /// Opens as a program would without interference.
    fn open(versions: &Versions, known: Option<Contents>, identity: Identity, now: Time) -> Opened {
        versions.open(known, &identity, now, versions.ticket())
    }

    #[test]
    fn an_unchanged_settled_file_keeps_its_version_and_its_pages() {
        let versions = versions(false);
        let first = open(&versions, None, identity(9, 100), at(200));
        assert!(!first.keep_pages, "the kernel may have other pages");
        let second = open(&versions, Some(first.contents), identity(9, 100), at(201));
        assert_eq!(second.contents.version, first.contents.version);
        assert!(second.keep_pages);
        let restarted = Versions::new(WINDOW, false, 43, VersionSecret::new([1; 32]));
        let elsewhere = open(&restarted, None, identity(9, 100), at(300));
        assert_eq!(elsewhere.contents.version, first.contents.version, "also after a restart");
        let stranger = Versions::new(WINDOW, false, 43, VersionSecret::new([2; 32]));
        let elsewhere = open(&stranger, None, identity(9, 100), at(300));
        assert_ne!(elsewhere.contents.version, first.contents.version, "without the secret");
    }

    #[test]
    fn a_changed_file_gets_another_version_and_loses_its_pages() {
        let versions = versions(false);
        let first = open(&versions, None, identity(9, 100), at(200));
        for changed in [identity(10, 100), identity(9, 101)] {
            let second = open(&versions, Some(first.contents), changed, at(300));
            assert_ne!(second.contents.version, first.contents.version);
            assert!(!second.keep_pages);
        }
    }

    #[test]
    fn two_changes_within_one_tick_are_distinguished() {
        let versions = versions(false);
        let first = open(&versions, None, identity(9, 100), at(100));
        let second = open(&versions, Some(first.contents), identity(9, 100), at(101));
        assert_ne!(second.contents.version, first.contents.version);
        assert!(!second.keep_pages);
        // The first settled open must not trust records that were loaded before it was settled.
        let third = open(&versions, Some(second.contents), identity(9, 100), at(200));
        assert_ne!(third.contents.version, second.contents.version);
        assert!(!third.keep_pages);
    }

    #[test]
    fn an_open_overtaken_by_a_change_takes_a_unique_version() {
        let versions = versions(false);
        let cached = open(&versions, None, identity(9, 100), at(200)).contents;
        // A program has the file open under a unique version, as after an unsettled open.
        let current = versions.replaced(9);
        let ticket = versions.ticket();
        // The identity is read; then a write through the mount completes.
        let written = Contents { ticket: versions.ticket(), ..current };
        let opened = versions.open(Some(written), &identity(9, 100), at(300), ticket);
        assert_ne!(opened.contents.version, cached.version, "these records miss the write");
        assert_ne!(opened.contents.version, current.version, "these may miss a change behind us");
        assert_eq!(opened.contents.ticket, written.ticket);
    }

    #[test]
    fn only_a_settled_version_without_writes_is_pristine() {
        let versions = versions(false);
        assert!(!open(&versions, None, identity(9, 100), at(100)).contents.pristine, "unsettled");
        let first = open(&versions, None, identity(9, 100), at(200)).contents;
        let again = open(&versions, Some(first), identity(9, 100), at(201)).contents;
        assert!(first.pristine && again.pristine);
        // A write through the mount keeps the version. An open that arrives at it all the same,
        // because it read the identity before, must not trust its records.
        let written = Contents { pristine: false, ticket: versions.ticket(), ..first };
        let same = open(&versions, Some(written), identity(9, 100), at(202)).contents;
        assert!(same.version == first.version && !same.pristine);
        assert!(open(&versions, Some(written), identity(9, 150), at(300)).contents.pristine);
        assert!(!versions.replaced(9).pristine);
        let sole = super::tests::versions(true);
        let first = open(&sole, None, identity(9, 100), at(200)).contents;
        let written = Contents { pristine: false, ..first };
        assert!(!open(&sole, Some(written), identity(9, 150), at(300)).contents.pristine);
    }

    #[test]
    fn programs_that_open_an_unchanged_file_at_the_same_time_share_its_version() {
        let versions = versions(false);
        let first = open(&versions, None, identity(9, 100), at(200)).contents;
        let (early, late) = (versions.ticket(), versions.ticket());
        let second = versions.open(Some(first), &identity(9, 100), at(201), late);
        let third = versions.open(Some(second.contents), &identity(9, 100), at(201), early);
        assert!(second.keep_pages && third.keep_pages);
        assert_eq!(third.contents.version, first.version);
    }

    #[test]
    fn a_sole_writer_keeps_its_version_whatever_the_times_say() {
        let versions = versions(true);
        let first = open(&versions, None, identity(9, 100), at(100));
        let second = open(&versions, Some(first.contents), identity(20, 150), at(150));
        assert_eq!(second.contents.version, first.contents.version);
        assert_eq!(second.contents.size_bytes, 20);
        assert!(second.keep_pages);
    }
}
