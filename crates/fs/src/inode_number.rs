//! Inode numbers of the view.
//!
//! FUSE names an inode by a *node id*, and programs see a number in `st_ino`. Tools remember the
//! number (git's index, tar's incremental lists, hard-link detection). So it is the origin's own
//! number wherever possible, and the same after every remount.
//!
//! The node id is the same number, except for a *later* object. That is an object with a number
//! that the origin reused while the kernel still knows the earlier object. With the earlier node
//! id, the kernel would mark the earlier inode as bad. Every program that has it open would get
//! `EIO` (`fuse_stale_inode` of `fs/fuse/fuse_i.h`).
//!
//! | range | inodes |
//! |---|---|
//! | 1 | the root of the view, as FUSE demands |
//! | up to `0xdfff_…` | the origin's number, for objects on the root's device |
//! | `0xe000_…` to `0xefff_…` | 12 bits of device index, 48 bits of the number there |
//! | `0xf000_…` to `0xf7ff_…` | digests of device and number, for all other objects |
//! | `0xf800_…` up | node ids of later objects; never shown |
//! | the last 256 | the control directory and its files |
//!
//! A digest needs no memory, and is the same after a remount. Among a million objects the chance
//! that two share a digest is one in a million; the two would then be one object. The table of
//! devices has [`DEVICES_MAX`] rows, each for as long as the mount lives.
//!
//! The lock guards the table of devices, and nothing is called under it.

use ogive_origin::VersionSecret;
use parking_lot::{Mutex, RwLock};

/// The root of the view.
pub(crate) const ROOT: u64 = 1;
/// First number of the control directory's inodes.
pub(crate) const CONTROL_FIRST: u64 = u64::MAX - 0xff;

/// First node id of later objects.
pub(crate) const LATER_FIRST: u64 = 0xf800 << 48;

const OTHER_DEVICES_FIRST: u64 = 0xe000 << 48;
const ODD_FIRST: u64 = 0xf000 << 48;
/// Bits of a digest.
const ODD_BITS: u32 = 59;
/// Devices with a range of their own.
const DEVICES_MAX: usize = 0x1000;
const NUMBER_BITS: u32 = 48;

/// Maps an origin's (device, inode) to the number of the view.
#[derive(Debug)]
pub(crate) struct Numbers {
    root: RwLock<(u64, u64)>,
    devices: Mutex<Vec<u64>>,
}

impl Numbers {
    /// `root` is the device and inode number of the origin's root.
    pub(crate) fn new(root: (u64, u64)) -> Self {
        Self { root: RwLock::new(root), devices: Mutex::default() }
    }

    /// Sets the origin's new root object.
    pub(crate) fn set_root(&self, root: (u64, u64)) {
        *self.root.write() = root;
    }

    /// Number of the object in the view.
    pub(crate) fn of(&self, device: u64, inode: u64) -> u64 {
        let root = *self.root.read();
        if (device, inode) == root {
            return ROOT;
        }
        if device == root.0 && inode > ROOT && inode < OTHER_DEVICES_FIRST {
            return inode;
        }
        if device != root.0
            && inode >> NUMBER_BITS == 0
            && let Some(index) = self.index(device)
        {
            return OTHER_DEVICES_FIRST | (index as u64) << NUMBER_BITS | inode;
        }
        odd(device, inode)
    }

    /// The row of a device in the table; `None` if the table is full.
    fn index(&self, device: u64) -> Option<usize> {
        let mut devices = self.devices.lock();
        let known = devices.iter().position(|known| *known == device);
        if known.is_some() || devices.len() >= DEVICES_MAX {
            return known;
        }
        devices.push(device);
        Some(devices.len() - 1)
    }

    /// Whether this number belongs to the control directory.
    pub(crate) fn is_control(number: u64) -> bool {
        number >= CONTROL_FIRST
    }
}

/// The number of an object without a range. The key of the digest is no secret: the number has to
/// be the same after a remount.
fn odd(device: u64, inode: u64) -> u64 {
    let message = [device.to_le_bytes(), inode.to_le_bytes()].concat();
    let digest = VersionSecret::new([0; 32]).digest(&message);
    ODD_FIRST | (digest >> (u128::BITS - ODD_BITS)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::seeded;
    use proptest::prelude::*;
    use std::collections::{HashMap, HashSet};

    #[test]
    fn numbers_of_the_root_device_are_the_origins_own() {
        let numbers = Numbers::new((8, 2));
        assert_eq!(numbers.of(8, 2), ROOT);
        assert_eq!(numbers.of(8, 77), 77);
        assert_ne!(numbers.of(8, 1), ROOT);
        assert_ne!(numbers.of(9, 2), ROOT);
    }

    #[test]
    fn digests_are_the_same_after_a_remount_and_take_no_memory() {
        let objects = [(8, 1), (8, u64::MAX), (9, 1 << 48), (9, ODD_FIRST)];
        let numbers = Numbers::new((8, 2));
        let before = objects.map(|(device, inode)| numbers.of(device, inode));
        assert!(before.iter().all(|number| (ODD_FIRST..LATER_FIRST).contains(number)));
        assert!(numbers.devices.lock().is_empty());
        let again = Numbers::new((8, 2));
        let mut after = objects;
        after.reverse();
        let mut after = after.map(|(device, inode)| again.of(device, inode));
        after.reverse();
        assert_eq!(before, after);
    }

    #[test]
    fn devices_beyond_the_table_have_digests() {
        let numbers = Numbers::new((8, 2));
        let first = 1000;
        let devices = first..first + 2 * DEVICES_MAX as u64;
        let given: HashSet<u64> = devices.map(|device| numbers.of(device, 7)).collect();
        assert_eq!(given.len(), 2 * DEVICES_MAX);
        assert_eq!(given.iter().filter(|given| **given < ODD_FIRST).count(), DEVICES_MAX);
        assert_eq!(numbers.devices.lock().len(), DEVICES_MAX);
        assert_eq!(numbers.of(first, 9), OTHER_DEVICES_FIRST | 9);
    }

    proptest! {
        #![proptest_config(seeded())]

        #[test]
        fn no_two_objects_share_a_number(objects in prop::collection::vec(
            (0u64..6, prop_oneof![0u64..40, any::<u64>(), (ODD_FIRST..ODD_FIRST + 9)]), 1..300)
        ) {
            let numbers = Numbers::new((3, 5));
            let mut seen = HashMap::new();
            for object in objects {
                let number = numbers.of(object.0, object.1);
                prop_assert_eq!(numbers.of(object.0, object.1), number);
                prop_assert!(!Numbers::is_control(number));
                prop_assert_eq!(*seen.entry(number).or_insert(object), object);
            }
        }
    }
}
