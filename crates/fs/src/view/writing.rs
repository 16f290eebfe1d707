//! Changing the contents of files: write-through.
//!
//! The records that a change touches are invalidated before it goes to the origin, together with
//! loads of them in flight. Loads that begin while the change is in flight are not kept
//! ([`crate::inode::Changing`]). The program gets its answer when the origin has the bytes.

use super::write_target::{Target, WriteMode};
use super::{Result, View};
use crate::append_parts::AppendParts;
use crate::handle::OpenFile;
use crate::inode::Changing;
use crate::record::{Key, Version};
use ogive_origin::{Allocation, Attributes, Changes, Errno, Origin, Whence};
use std::sync::Arc;

/// A write that touches more records than this gives the file a unique version. Invalidating the
/// records one by one would take too long.
const FORGET_MAX: u64 = 1024;

impl<O: Origin> View<O> {
    /// Writes the bytes that the kernel has sent to `offset`. Returns the number of bytes that
    /// reached the origin.
    pub(crate) fn write(
        self: &Arc<Self>,
        handle: u64,
        offset: u64,
        bytes: &[u8],
        mode: WriteMode<'_>,
    ) -> Result<usize> {
        let open = self.file(handle)?;
        let length_bytes = bytes.len() as u64;
        let range = offset..offset.saturating_add(length_bytes);
        let mut turn = (mode.appends && mode.is_direct).then(|| open.append_parts.lock());
        let mut none = AppendParts::default();
        let parts = turn.as_deref_mut().unwrap_or(&mut none);
        let target = self.target(&open, &range, mode, parts)?;
        let (start, end) = match target {
            Target::At(at) => (at, at.saturating_add(length_bytes)),
            // Appended bytes go to the end that the file has then.
            Target::End => (offset, u64::MAX),
        };
        let changing = self.begin_change(&open, start, end);
        let result = match target {
            Target::At(at) => self.origin.write_at(&open.file, at, bytes),
            Target::End => self.origin.append(&open.file, bytes),
        };
        self.note_end(&open, &range, result.ok(), parts);
        if let Ok(written) = result {
            self.counters.written(written as u64);
        }
        match target {
            Target::End => self.after_append(&open, offset, length_bytes),
            // Also after an error: part of the bytes may have arrived.
            Target::At(_) => self.after_write(&open, start, end),
        }
        if start != offset {
            self.drop_pages(&open);
        }
        drop(changing);
        result
    }

    /// Prepares for a change of `offset..end`: from here on a reader that has seen the new bytes
    /// never gets the old ones.
    fn begin_change<'a>(
        &self,
        open: &'a OpenFile<O>,
        offset: u64,
        end: u64,
    ) -> Option<Changing<'a, O>> {
        let known = open.inode.contents()?;
        let record_size = self.settings.record_size_bytes;
        // Up to whole records, and from the record in which the file ends.
        let first = offset.min(known.size_bytes) / record_size;
        let last = end.saturating_sub(1).max(offset) / record_size;
        let start = first * record_size;
        let changing =
            open.inode.begin_change(start..last.saturating_add(1).saturating_mul(record_size));
        open.inode.update_contents(|contents| contents.pristine = false);
        let last = last.min(known.size_bytes / record_size);
        if last.saturating_sub(first) > FORGET_MAX {
            self.replace(open, known.size_bytes);
        } else {
            self.forget_records(known.version, first, last);
        }
        Some(changing)
    }

    /// Invalidates the records that a write of `offset..end` touched.
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
        self.forget_records(known.version, first, last);
    }

    fn forget_records(&self, version: Version, first: u64, last: u64) {
        for index in first..=last {
            self.cache.invalidate(&Key::record(version, index));
        }
    }

    /// After a write to the end of the file, wherever that was.
    fn after_append(self: &Arc<Self>, open: &Arc<OpenFile<O>>, offset: u64, length_bytes: u64) {
        let size_bytes = self.size_of(open).unwrap_or(u64::MAX);
        if size_bytes == offset.saturating_add(length_bytes) {
            return self.after_write(open, offset, size_bytes);
        }
        // Another program has appended as well.
        self.replace(open, size_bytes);
        self.drop_pages(open);
    }

    /// The kernel has put the bytes into its pages at the wrong place. It keeps those pages locked
    /// until the write is answered, so another thread drops them.
    fn drop_pages(self: &Arc<Self>, open: &OpenFile<O>) {
        let (view, number) = (self.clone(), open.inode.number);
        self.workers.request(Box::new(move || view.kernel.invalidate_pages(number)));
    }

    /// Invalidates all records of the file.
    fn replace(&self, open: &OpenFile<O>, size_bytes: u64) {
        let contents = self.versions.replaced(size_bytes);
        open.inode.update_contents(|known| *known = contents);
    }

    /// Allocates, punches or zeroes a range.
    pub(crate) fn allocate(&self, handle: u64, allocation: Allocation) -> Result<()> {
        let open = self.file(handle)?;
        let changing = self.begin_change(&open, 0, u64::MAX);
        let result = self.origin.allocate(&open.file, allocation);
        let end = allocation.offset.saturating_add(allocation.length_bytes);
        let size_bytes = open.inode.contents().map_or(end, |known| known.size_bytes.max(end));
        self.replace(&open, size_bytes);
        open.inode.update_kernel_size(|size| size.may_have_grown_to(end));
        drop(changing);
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
        let end = to_offset.saturating_add(length_bytes);
        let changing = self.begin_change(&to, to_offset, end);
        let result =
            self.origin.copy_range((&from.file, from_offset), (&to.file, to_offset), length);
        let end = to_offset.saturating_add(*result.as_ref().unwrap_or(&length) as u64);
        self.after_write(&to, to_offset, end);
        to.inode.update_kernel_size(|size| size.may_have_grown_to(end));
        drop(changing);
        result
    }

    /// Attributes of a file that is about to be changed. No program sees them.
    pub(crate) fn attributes_to_change(
        &self,
        number: u64,
        handle: Option<u64>,
    ) -> Result<Attributes> {
        let inode = self.inode(number)?;
        let open = handle.and_then(|handle| self.files.get(handle)).or_else(|| inode.any_file());
        self.origin.attributes(&inode.node, open.as_ref().map(|open| &open.file))
    }

    /// Sets the permissions of a file without a request for it, so the kernel has to ask for them
    /// again.
    pub(crate) fn set_permissions(
        &self,
        number: u64,
        handle: Option<u64>,
        permissions: u16,
    ) -> Result<()> {
        let inode = self.inode(number)?;
        let open = handle.and_then(|handle| self.files.get(handle)).or_else(|| inode.any_file());
        let changes = Changes { permissions: Some(u32::from(permissions)), ..Changes::default() };
        let file = open.as_ref().map(|open| &open.file);
        self.origin.set_attributes(&inode.node, file, &changes)?;
        self.kernel.invalidate_attributes(number);
        Ok(())
    }

    /// Makes a file durable.
    pub(crate) fn sync(&self, handle: u64, data_only: bool) -> Result<()> {
        self.origin.sync(&self.file(handle)?.file, data_only)
    }

    /// Next data or hole.
    pub(crate) fn seek(&self, handle: u64, offset: u64, whence: Whence) -> Result<u64> {
        // The kernel passes any offset of a program, and a local file system has nothing at such an
        // offset.
        if i64::try_from(offset).is_err() {
            return Err(Errno::NXIO);
        }
        self.origin.seek(&self.file(handle)?.file, offset, whence)
    }

    /// The `whence` of `lseek(2)` that FUSE passes on.
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
