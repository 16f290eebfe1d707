//! Changes through the mount that are on their way to the origin.
//!
//! While a change is in flight, the origin may answer with the bytes before it, then with those
//! after it. A reader that has seen the new bytes must never get the old ones. So a load during a
//! change answers the readers that asked before, and its record is not kept:
//!
//! - A change first enters its range here. Then it invalidates the records there and dooms loads of
//!   them. Then it goes to the origin.
//! - A load first enters the cache. Then it looks for changes, then it reads. It dooms itself if it
//!   finds a change in its range.
//!
//! Whichever comes first, the other sees it. The inode's lock guards the list, which is short: one
//! range for each call in flight.

use super::Inode;
use ogive_origin::Origin;
use std::ops::Range;

/// A change that is in flight until this is dropped.
pub(crate) struct Changing<'a, O: Origin> {
    inode: &'a Inode<O>,
    range: Range<u64>,
}

impl<O: Origin> Inode<O> {
    /// Notes that these bytes are about to change.
    pub(crate) fn begin_change(&self, range: Range<u64>) -> Changing<'_, O> {
        if let Some(opened) = self.opened.lock().as_mut() {
            opened.changing.push(range.clone());
        }
        Changing { inode: self, range }
    }

    /// Whether any of these bytes are being changed.
    pub(crate) fn is_changing(&self, range: &Range<u64>) -> bool {
        let overlaps = |other: &Range<u64>| other.start < range.end && range.start < other.end;
        self.opened.lock().as_ref().is_some_and(|opened| opened.changing.iter().any(overlaps))
    }
}

impl<O: Origin> Drop for Changing<'_, O> {
    fn drop(&mut self) {
        let mut opened = self.inode.opened.lock();
        let Some(opened) = opened.as_mut() else { return };
        // Absent only if the first open of the file came after this began; another entry of the
        // same range is as good.
        if let Some(at) = opened.changing.iter().position(|range| *range == self.range) {
            opened.changing.swap_remove(at);
        }
    }
}
