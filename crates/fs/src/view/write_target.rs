//! Where the bytes of a write belong.
//!
//! The kernel sends two things with each write: the flags that the file has at that moment, and an
//! offset. With `O_APPEND` the offset is the end of the file as the kernel knows it; the bytes
//! belong at the real end. Two kinds of write are ambiguous:
//!
//! - `RWF_APPEND` appends to a file without `O_APPEND`. It looks like a write at the end, and is
//!   one unless another program has appended behind the mount. Then the system call of the waiting
//!   program is looked up ([`WriteMode::one_appends`]). If it is not visible, the write stays at
//!   its offset.
//! - A large append past the page cache comes in parts, in any order ([`AppendParts`]). The bounds
//!   of the kernel's size ([`KernelSize`](crate::inode::KernelSize)) show whether a part has
//!   overtaken others.
//!
//! `RWF_NOAPPEND` is not recognized: such a write is appended like any to a file with `O_APPEND`.

use super::{Result, View};
use crate::append_parts::{AppendParts, end_before};
use crate::handle::OpenFile;
use ogive_origin::Origin;
use std::ops::Range;

/// How a program writes.
#[derive(Clone, Copy)]
pub(crate) struct WriteMode<'a> {
    /// The file has `O_APPEND` at this moment.
    pub(crate) appends: bool,
    /// The write bypasses the page cache.
    pub(crate) is_direct: bool,
    /// Whether this write alone appends (`RWF_APPEND`); looked up only where it matters.
    pub(crate) one_appends: &'a dyn Fn() -> bool,
}

#[cfg(test)]
impl WriteMode<'static> {
    /// To a file without the flag, by a program whose system call is not visible.
    pub(crate) const IN_PLACE: Self =
        Self { appends: false, is_direct: false, one_appends: &|| false };
    /// To a file with the flag.
    pub(crate) const APPENDS: Self = Self { appends: true, ..Self::IN_PLACE };
}

/// Where bytes belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    At(u64),
    End,
}

impl<O: Origin> View<O> {
    /// Where a write belongs that the kernel has sent to `range`. `parts` are those of its file.
    pub(super) fn target(
        &self,
        open: &OpenFile<O>,
        range: &Range<u64>,
        mode: WriteMode<'_>,
        parts: &mut AppendParts,
    ) -> Result<Target> {
        let target = match mode.appends {
            true => self.target_of_appender(open, range, mode, parts)?,
            false => self.target_of_writer(open, range.start, mode),
        };
        if target == Target::End {
            // The kernel's offset is the end that it knows.
            open.inode.update_kernel_size(|size| size.appends_at(range.start));
        }
        Ok(target)
    }

    fn target_of_appender(
        &self,
        open: &OpenFile<O>,
        range: &Range<u64>,
        mode: WriteMode<'_>,
        parts: &mut AppendParts,
    ) -> Result<Target> {
        if let Some(place) = parts.place(range) {
            return Ok(Target::At(place));
        }
        // Parts that are still expected belong to a write that has failed.
        parts.give_up();
        let kernel_size = open.inode.kernel_size();
        let sizes = kernel_size.least()..=kernel_size.greatest();
        let early = mode.is_direct.then(|| end_before(range.start, &sizes)).flatten();
        Ok(match early {
            Some(end) => Target::At(parts.come_early(range, (end, self.size_of(open)?))),
            None => Target::End,
        })
    }

    /// A write at the old end of a file that has grown behind the mount may be meant for its new
    /// end.
    fn target_of_writer(&self, open: &OpenFile<O>, start: u64, mode: WriteMode<'_>) -> Target {
        let kernel_size = open.inode.kernel_size();
        let may_end_there = [kernel_size.least(), kernel_size.greatest()].contains(&start);
        let is_longer = || self.origin.local_size(&open.file).is_some_and(|size| size > start);
        match may_end_there && is_longer() && (mode.one_appends)() {
            true => Target::End,
            false => Target::At(start),
        }
    }

    /// Notes the end of the file that the kernel will know once this write is answered. `written`
    /// is `None` if the write failed.
    pub(super) fn note_end(
        &self,
        open: &OpenFile<O>,
        range: &Range<u64>,
        written: Option<usize>,
        parts: &mut AppendParts,
    ) {
        let end = range.start.saturating_add(written.unwrap_or(0) as u64);
        if parts.are_expected() && end < range.end {
            // The rest failed: the kernel counts the bytes before the first failure.
            let reached = parts.give_up().unwrap_or(end);
            open.inode.update_kernel_size(|size| size.may_have_grown_to(reached));
        } else if let Some(end) = parts.take_end() {
            open.inode.update_kernel_size(|size| size.has_written_to(end));
        } else if !parts.are_expected() && written.is_some() {
            open.inode.update_kernel_size(|size| size.has_written_to(end));
        }
    }
}
