//! Takes back the effects of a lost answer.
//!
//! A thread that died, or got `EIO` because the request took too long, never learns of a file that
//! was opened for it. So it never closes the file. Nor has the kernel counted the references to
//! inodes in the lost answer. So both are taken back here. Changes of the origin stay. As with
//! interrupted NFS mounts (`nfs(5)`, `soft` and `intr`), a caller that gets an error cannot know
//! whether the change was made.

use super::Session;
use super::opcodes::Gift;
use super::protocol::u64_at;
use super::reply::{ENTRY_BYTES, listed_inodes};
use super::request::Request;
use crate::inode_number::Numbers;
use ogive_origin::Origin;

impl<O: Origin> Session<O> {
    /// Takes back the references and handles of this undelivered answer.
    pub(super) fn take_back(&self, request: &Request, answer: &[u8]) {
        let inode = || u64_at(answer, 0);
        let handle = |at| u64_at(answer, at);
        match request.rules.gift {
            Gift::Nothing => {}
            Gift::Inode => self.forget_one(inode()),
            Gift::Inodes => listed_inodes(answer).for_each(|node| self.forget_one(node)),
            Gift::File if request.is_control() => self.control.release(handle(0)),
            Gift::File => self.view.undo_open(handle(0)),
            Gift::Created => {
                self.view.undo_open(handle(ENTRY_BYTES));
                self.forget_one(inode());
            }
            Gift::Directory if request.is_control() => {}
            Gift::Directory => self.view.undo_open_directory(handle(0)),
        }
    }

    fn forget_one(&self, node: u64) {
        if node != 0 && !Numbers::is_control(node) {
            self.view.forget(node, 1);
        }
    }
}
