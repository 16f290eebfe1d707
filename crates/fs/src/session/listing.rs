//! Listing directories: the view's, and the control directory.

use super::answer::name_ttl;
use super::convert;
use super::{Session, refuse};
use crate::number::Numbers;
use fuser::{Generation, INodeNo, ReplyDirectory, ReplyDirectoryPlus};
use ogive_origin::{FileKind, Origin};
use std::time::Duration;

impl<O: Origin> Session<O> {
    /// Names, numbers and kinds from `cookie` on, as many as the reply has room for.
    pub(super) fn list(&self, number: u64, handle: u64, cookie: u64, mut reply: ReplyDirectory) {
        if Numbers::is_control(number) {
            for (position, (name, number, kind)) in
                self.control.entries().into_iter().enumerate().skip(cookie as usize)
            {
                if reply.add(INodeNo(number), position as u64 + 1, convert::kind(kind), name) {
                    break;
                }
            }
            return reply.ok();
        }
        self.run(reply, move |view, mut reply| {
            let result = view.read_directory(handle, cookie, false, &mut |entry| {
                // Without a kind the kernel's protocol has no "unknown"; programs that care ask.
                let kind = convert::kind(entry.kind.unwrap_or(FileKind::Regular));
                !reply.add(INodeNo(entry.number), entry.cookie, kind, entry.name)
            });
            match result {
                Ok(()) => reply.ok(),
                Err(errno) => reply.error(refuse(errno)),
            }
        });
    }

    /// The same with attributes; the kernel counts a reference to each entry it takes.
    pub(super) fn list_with_attributes(
        &self,
        number: u64,
        handle: u64,
        cookie: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        if Numbers::is_control(number) {
            for (position, (name, number, _)) in
                self.control.entries().into_iter().enumerate().skip(cookie as usize)
            {
                let Some(attributes) = self.control_attributes(number) else {
                    continue;
                };
                let (ttl, generation) = (Duration::ZERO, Generation(0));
                let next = position as u64 + 1;
                if reply.add(INodeNo(number), next, name, &ttl, &attributes, generation) {
                    break;
                }
            }
            return reply.ok();
        }
        self.run(reply, move |view, mut reply| {
            let result = view.read_directory(handle, cookie, true, &mut |entry| {
                let (name, next) = (entry.name, entry.cookie);
                let full = match entry.told {
                    Some(told) => {
                        let ttl = name_ttl(view, &told);
                        let attributes = convert::attributes(&told);
                        let (number, generation) =
                            (INodeNo(told.number), Generation(told.generation));
                        reply.add(number, next, name, &ttl, &attributes, generation)
                    }
                    None => {
                        // Listed without being looked up: no attributes to believe, no reference.
                        let attributes = fuser::FileAttr {
                            ino: INodeNo(entry.number),
                            kind: convert::kind(entry.kind.unwrap_or(FileKind::Regular)),
                            ..convert::absent()
                        };
                        let none = Duration::ZERO;
                        reply.add(INodeNo(0), next, name, &none, &attributes, Generation(0))
                    }
                };
                !full
            });
            match result {
                Ok(()) => reply.ok(),
                Err(errno) => reply.error(refuse(errno)),
            }
            view.keep_inode_limit();
        });
    }
}
