//! Changing the contents of files: write-through.
//!
//! The origin has the bytes before anything else happens. Then the records that they touch are
//! forgotten, together with loads of them that are under way, and only then the program is told.

use super::{Result, View};
use crate::handle::OpenFile;
use crate::record::Key;
use ogive_origin::{Allocation, Errno, Origin, Whence};
use std::sync::Arc;

/// A write that touches more records than this gives the file a version of a kind instead of
/// forgetting them one by one.
const FORGET_MAX: u64 = 1024;

impl<O: Origin> View<O> {
    /// Writes, and returns the number of bytes that reached the origin.
    pub(crate) fn write(self: &Arc<Self>, handle: u64, offset: u64, bytes: &[u8]) -> Result<usize> {
        let open = self.file(handle)?;
        let result = self.origin.write_at(&open.file, offset, bytes);
        if let Ok(written) = result {
            self.counters.written(written as u64);
        }
        if open.append {
            self.after_append(&open, offset, bytes.len() as u64);
        } else {
            // Also after an error: part of the bytes may have arrived.
            self.after_write(&open, offset, offset.saturating_add(bytes.len() as u64));
        }
        result
    }

    /// Forgets what a write of `offset..end` made untrue.
    fn after_write(&self, open: &OpenFile<O>, offset: u64, end: u64) {
        let ticket = self.versions.ticket();
        let mut known = None;
        open.inode.update_contents(|contents| {
            known = Some(*contents);
            contents.ticket = ticket;
            contents.pristine = false;
            contents.size_bytes = contents.size_bytes.max(end);
        });
        let Some(known) = known else { return };
        // A write beyond the end also changes the record in which the file ended.
        let first = offset.min(known.size_bytes) / self.settings.record_size_bytes;
        let last = end.saturating_sub(1).max(offset) / self.settings.record_size_bytes;
        if last - first > FORGET_MAX {
            return self.replace(open, end.max(known.size_bytes));
        }
        for index in first..=last {
            self.cache.invalidate(&Key::record(known.version, index));
        }
    }

    /// After a write that went wherever the end of the file was.
    fn after_append(self: &Arc<Self>, open: &Arc<OpenFile<O>>, offset: u64, length_bytes: u64) {
        let size_bytes = match self.origin.attributes(&open.inode.node, Some(&open.file)) {
            Ok(attributes) => attributes.size_bytes,
            Err(_) => u64::MAX,
        };
        if size_bytes == offset.saturating_add(length_bytes) {
            return self.after_write(open, offset, size_bytes);
        }
        // Somebody else has appended as well, so the kernel has put the bytes into its pages at
        // the wrong place. It holds those pages until this write is answered.
        self.replace(open, size_bytes);
        let (view, number) = (self.clone(), open.inode.number);
        self.workers.request(Box::new(move || view.kernel.invalidate_pages(number)));
    }

    /// Leaves no record of the file valid.
    fn replace(&self, open: &OpenFile<O>, size_bytes: u64) {
        let contents = self.versions.replaced(size_bytes);
        open.inode.update_contents(|known| *known = contents);
    }

    /// Allocates, punches or zeroes a range.
    pub(crate) fn allocate(&self, handle: u64, allocation: Allocation) -> Result<()> {
        let open = self.file(handle)?;
        let result = self.origin.allocate(&open.file, allocation);
        let end = allocation.offset.saturating_add(allocation.length_bytes);
        let size_bytes = open.inode.contents().map_or(end, |known| known.size_bytes.max(end));
        self.replace(&open, size_bytes);
        result
    }

    /// Copies a range within the origin.
    pub(crate) fn copy_range(
        &self,
        (from, from_offset): (u64, u64),
        (to, to_offset): (u64, u64),
        length_bytes: u64,
    ) -> Result<usize> {
        let (from, to) = (self.file(from)?, self.file(to)?);
        let length = usize::try_from(length_bytes).unwrap_or(usize::MAX);
        let result =
            self.origin.copy_range((&from.file, from_offset), (&to.file, to_offset), length);
        let end = to_offset.saturating_add(*result.as_ref().unwrap_or(&length) as u64);
        self.after_write(&to, to_offset, end);
        result
    }

    /// Makes a file durable.
    pub(crate) fn sync(&self, handle: u64, data_only: bool) -> Result<()> {
        self.origin.sync(&self.file(handle)?.file, data_only)
    }

    /// Next data or hole.
    pub(crate) fn seek(&self, handle: u64, offset: u64, whence: Whence) -> Result<u64> {
        self.origin.seek(&self.file(handle)?.file, offset, whence)
    }

    /// `whence` of `lseek(2)` that FUSE hands on.
    pub(crate) fn whence(whence: i32) -> Result<Whence> {
        /// `SEEK_DATA` and `SEEK_HOLE` of `linux/fs.h`.
        const SEEK_DATA: i32 = 3;
        const SEEK_HOLE: i32 = 4;
        match whence {
            SEEK_DATA => Ok(Whence::Data),
            SEEK_HOLE => Ok(Whence::Hole),
            _ => Err(Errno::INVAL),
        }
    }
}
