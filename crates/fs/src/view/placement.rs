//! Where the bytes of a write belong.
//!
//! The kernel says with each write which flags its file has at that moment, and a place. Of a file
//! with `O_APPEND` the place is where the kernel believes that the file ends; the bytes belong
//! where it really ends. Three things that a program can do look like something else:
//!
//! - `RWF_NOAPPEND` writes elsewhere than at the end of a file with `O_APPEND`. The place tells it:
//!   it is not where the kernel believes that the file ends ([`KernelSize`](crate::inode::KernelSize)).
//! - `RWF_APPEND` appends to a file without the flag. That looks like a write at the end, and is
//!   one unless somebody has appended behind the mount.
//! - A large write past the page cache comes in parts, in any order ([`Parts`]).
//!
//! Where the place leaves it open, the system call of the program that waits is looked at
//! ([`OneWrite`]). What is still open then is appended, so that no byte of others is lost.

use super::{Result, View};
use crate::handle::OpenFile;
use crate::parts::{Parts, end_before};
use ogive_origin::Origin;
use std::ops::Range;

/// How a program writes.
#[derive(Clone, Copy)]
pub(crate) struct WriteMode<'a> {
    /// Its file has `O_APPEND` at this moment.
    pub(crate) appends: bool,
    /// It writes past the page cache.
    pub(crate) is_direct: bool,
    /// What its system call says; asked only where it matters.
    pub(crate) one_write: &'a dyn Fn() -> OneWrite,
}

#[cfg(test)]
impl WriteMode<'static> {
    /// To a file without the flag, by a program that cannot be seen.
    pub(crate) const IN_PLACE: Self =
        Self { appends: false, is_direct: false, one_write: &|| OneWrite::Unknown };
    /// To one with it.
    pub(crate) const APPENDS: Self = Self { appends: true, ..Self::IN_PLACE };
}

/// What a write says of itself, beside the flags of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OneWrite {
    /// `RWF_APPEND`.
    Appends,
    /// `RWF_NOAPPEND`.
    StaysInPlace,
    /// Nothing.
    AsItsFile,
    /// The system call cannot be seen, or is no write.
    Unknown,
}

/// Where bytes belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    At(u64),
    End,
}

impl<O: Origin> View<O> {
    /// Where a write belongs that the kernel has sent to `range`; `parts` are those of its file.
    pub(super) fn target(
        &self,
        open: &OpenFile<O>,
        range: &Range<u64>,
        mode: WriteMode<'_>,
        parts: &mut Parts,
    ) -> Result<Target> {
        let target = match mode.appends {
            true => self.target_of_appender(open, range, mode, parts)?,
            false => self.target_of_writer(open, range.start, mode),
        };
        if target == Target::End {
            // So the kernel has just said where it takes the end to be.
            open.inode.believe(|believed| believed.appends_at(range.start));
        }
        Ok(target)
    }

    fn target_of_appender(
        &self,
        open: &OpenFile<O>,
        range: &Range<u64>,
        mode: WriteMode<'_>,
        parts: &mut Parts,
    ) -> Result<Target> {
        let (start, believed) = (range.start, open.inode.kernel_size());
        if let Some(place) = parts.place(range) {
            return Ok(Target::At(place));
        }
        // Of a write that has failed, or that a program did not make to append.
        parts.give_up();
        let size = self.origin.size_at_hand(&open.file);
        if believed.is_exactly(start) && size.is_none_or(|size| size == start) {
            return Ok(Target::End);
        }
        let told = (mode.one_write)();
        if told == OneWrite::StaysInPlace {
            return Ok(Target::At(start));
        }
        let sizes = believed.least()..=believed.greatest();
        let early = mode.is_direct.then(|| end_before(start, &sizes)).flatten();
        if let Some(end) = early {
            return Ok(Target::At(parts.come_early(range, (end, self.size_of(open)?))));
        }
        let has_room = || size.is_none_or(|size| size <= start);
        let is_elsewhere = start < believed.least() || (start > believed.greatest() && has_room());
        let stays = told == OneWrite::Unknown && is_elsewhere;
        Ok(if stays { Target::At(start) } else { Target::End })
    }

    /// What is written at the end of a file that somebody else has made longer may be meant for its
    /// new end.
    fn target_of_writer(&self, open: &OpenFile<O>, start: u64, mode: WriteMode<'_>) -> Target {
        let believed = open.inode.kernel_size();
        let may_end_there = [believed.least(), believed.greatest()].contains(&start);
        let is_longer = || self.origin.size_at_hand(&open.file).is_some_and(|size| size > start);
        match may_end_there && is_longer() && (mode.one_write)() == OneWrite::Appends {
            true => Target::End,
            false => Target::At(start),
        }
    }

    /// So much of a write to `range` has been made, or none: where the kernel believes that the
    /// file ends once it has been told.
    pub(super) fn note_end(
        &self,
        open: &OpenFile<O>,
        range: &Range<u64>,
        written: Option<usize>,
        parts: &mut Parts,
    ) {
        let end = range.start.saturating_add(written.unwrap_or(0) as u64);
        if parts.are_expected() && end < range.end {
            // What is left of it is none: the kernel counts what came before the first that failed.
            let reached = parts.give_up().unwrap_or(end);
            open.inode.believe(|believed| believed.may_have_grown_to(reached));
        } else if let Some(end) = parts.take_end() {
            open.inode.believe(|believed| believed.has_written_to(end));
        } else if !parts.are_expected() && written.is_some() {
            open.inode.believe(|believed| believed.has_written_to(end));
        }
    }
}
