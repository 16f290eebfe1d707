//! Results as replies, and what a reply tells the kernel to believe.

use super::convert;
use super::refuse;
use crate::view::{OpenedFile, Result, Told, View};
use fuser::{FopenFlags, Generation, ReplyAttr, ReplyEmpty, ReplyEntry, ReplyWrite, ReplyXattr};
use ogive_origin::{FileKind, Origin};
use std::time::Duration;

/// Longest extended attribute, of `linux/limits.h` (`XATTR_SIZE_MAX`).
pub(super) const XATTR_MAX_BYTES: usize = 65_536;

/// What the kernel should know of a file that was opened.
pub(super) fn opened_flags<O: Origin>(view: &View<O>, opened: &OpenedFile) -> FopenFlags {
    let mut flags = FopenFlags::empty();
    if view.settings.direct_io {
        flags |= FopenFlags::FOPEN_DIRECT_IO;
    }
    if opened.keep_pages {
        flags |= FopenFlags::FOPEN_KEEP_CACHE;
    }
    if !opened.writable {
        flags |= FopenFlags::FOPEN_NOFLUSH;
    }
    flags
}

pub(super) fn answer(result: Result<()>, reply: ReplyEmpty) {
    match result {
        Ok(()) => reply.ok(),
        Err(errno) => reply.error(refuse(errno)),
    }
}

pub(super) fn answer_written(result: Result<usize>, reply: ReplyWrite) {
    match result {
        // Never more than was asked for, which the kernel counts in 32 bits.
        Ok(written) => reply.written(u32::try_from(written).unwrap_or(u32::MAX)),
        Err(errno) => reply.error(refuse(errno)),
    }
}

pub(super) fn answer_entry<O: Origin>(view: &View<O>, result: Result<Told>, reply: ReplyEntry) {
    match result {
        Ok(told) => {
            let ttl = view.settings.metadata_ttl;
            let attributes = convert::attributes(&told);
            let generation = Generation(told.generation);
            reply.entry_with_ttls(&ttl, &name_ttl(view, &told), &attributes, generation);
        }
        Err(errno) => reply.error(refuse(errno)),
    }
}

/// How long the kernel may follow a name without asking. Opening a file is checked
/// ([`View::open`]), but nobody is asked when a symbolic link is followed.
pub(super) fn name_ttl<O: Origin>(view: &View<O>, told: &Told) -> Duration {
    match told.attributes.kind {
        FileKind::Symlink => Duration::ZERO,
        _ => view.settings.metadata_ttl,
    }
}

pub(super) fn answer_attributes<O: Origin>(view: &View<O>, result: Result<Told>, reply: ReplyAttr) {
    match result {
        Ok(told) => reply.attr(&view.settings.metadata_ttl, &convert::attributes(&told)),
        Err(errno) => reply.error(refuse(errno)),
    }
}

/// Answers with a length, or with as many bytes as there is room for.
pub(super) fn answer_xattr(
    size: u32,
    read: impl FnOnce(&mut [u8]) -> Result<usize>,
    reply: ReplyXattr,
) {
    let mut bytes = vec![0; (size as usize).min(XATTR_MAX_BYTES)];
    match read(&mut bytes) {
        Ok(length) if size == 0 => reply.size(u32::try_from(length).unwrap_or(u32::MAX)),
        Ok(length) => reply.data(&bytes[..length.min(bytes.len())]),
        Err(errno) => reply.error(refuse(errno)),
    }
}
