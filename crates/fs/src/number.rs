//! Inode numbers of the view.
//!
//! FUSE names an inode by a *node id*, and programs see a number in `st_ino`. Tools remember the
//! latter (git's index, tar's incremental lists, hard-link detection), so it has to be the origin's
//! own wherever that is possible, and the same after every remount. The node id is the same number,
//! but for a *later* object: one that the origin gave the number of another which the kernel still
//! knows. Were it to have that node id, too, the kernel would take the known inode for bad, and
//! everybody who has it open would get `EIO` (`fuse_stale_inode` of `fs/fuse/fuse_i.h`).
//!
//! | range | inodes |
//! |---|---|
//! | 1 | the root of the view, as FUSE demands |
//! | up to `0xdfff_…` | the origin's number, for objects on the root's device |
//! | `0xe000_…` to `0xefff_…` | 12 bits of device index, 48 bits of the number there |
//! | `0xf000_…` to `0xf7ff_…` | numbers that fit nowhere else, handed out one by one |
//! | `0xf800_…` up | node ids of later objects; never shown |
//! | the last 256 | the control directory and its files |
//!
//! The lock guards the two small tables of devices and odd numbers, and nothing is called under
//! it.

use hashbrown::HashMap;
use parking_lot::{Mutex, RwLock};

/// The root of the view.
pub(crate) const ROOT: u64 = 1;
/// First number of the control directory's inodes.
pub(crate) const CONTROL_FIRST: u64 = u64::MAX - 0xff;

/// First node id of later objects.
pub(crate) const LATER_FIRST: u64 = 0xf800 << 48;

const OTHER_DEVICES_FIRST: u64 = 0xe000 << 48;
const ODD_FIRST: u64 = 0xf000 << 48;
const DEVICES_MAX: usize = 0x1000;
const NUMBER_BITS: u32 = 48;

/// Maps an origin's (device, inode) to the number of the view.
#[derive(Debug)]
pub(crate) struct Numbers {
    root: RwLock<(u64, u64)>,
    others: Mutex<Others>,
}

#[derive(Debug, Default)]
struct Others {
    devices: Vec<u64>,
    odd: HashMap<(u64, u64), u64>,
}

impl Numbers {
    /// `root` is the device and inode number of the origin's root.
    pub(crate) fn new(root: (u64, u64)) -> Self {
        Self { root: RwLock::new(root), others: Mutex::default() }
    }

    /// Notes that the origin's root is another object now.
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
        let mut others = self.others.lock();
        let index = match others.devices.iter().position(|known| *known == device) {
            Some(index) => index,
            None => {
                others.devices.push(device);
                others.devices.len() - 1
            }
        };
        if device != root.0 && index < DEVICES_MAX && inode >> NUMBER_BITS == 0 {
            return OTHER_DEVICES_FIRST | (index as u64) << NUMBER_BITS | inode;
        }
        let next = ODD_FIRST + others.odd.len() as u64;
        *others.odd.entry((device, inode)).or_insert(next)
    }

    /// Whether this number belongs to the control directory.
    pub(crate) fn is_control(number: u64) -> bool {
        number >= CONTROL_FIRST
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::seeded;
    use proptest::prelude::*;
    use std::collections::HashMap;

    #[test]
    fn numbers_of_the_root_device_are_the_origins_own() {
        let numbers = Numbers::new((8, 2));
        assert_eq!(numbers.of(8, 2), ROOT);
        assert_eq!(numbers.of(8, 77), 77);
        assert_ne!(numbers.of(8, 1), ROOT);
        assert_ne!(numbers.of(9, 2), ROOT);
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
