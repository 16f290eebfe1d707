//! Reads and writes: where bytes change hands, and on which thread.

use super::answer::answer_written;
use super::{Session, refuse};
use crate::view::{Read, Result, View};
use fuser::{ReplyData, ReplyWrite};
use ogive_origin::Origin;
use std::sync::Arc;

impl<O: Origin> Session<O> {
    /// Answers a read at once if the cache can.
    pub(super) fn read_cached(
        &self,
        handle: u64,
        offset: u64,
        length_bytes: u64,
        reply: ReplyData,
    ) {
        match self.view.begin_read(handle, offset, length_bytes) {
            Err(errno) => reply.error(refuse(errno)),
            Ok(read) if read.is_complete() => {
                self.view.finish_read(&read, |bytes| reply.data(bytes));
            }
            Ok(read) => {
                let left = self.view.complete_from_second_level(read, reply, answer_read);
                let Some((mut read, reply)) = left else { return };
                self.run(reply, move |view, reply| {
                    let completed = view.complete_read(&mut read);
                    answer_read(view, &read, completed, reply);
                })
            }
        }
    }

    /// Writes here or elsewhere. Not by way of [`Session::run`]: the bytes need to be copied only
    /// if they leave this thread.
    pub(super) fn write_through(&self, handle: u64, offset: u64, bytes: &[u8], reply: ReplyWrite) {
        match self.leave.try_take() {
            Some(_leave) => answer_written(self.view.write(handle, offset, bytes), reply),
            None => {
                let (view, bytes) = (self.view.clone(), bytes.to_vec());
                self.view.workers.request(Box::new(move || {
                    answer_written(view.write(handle, offset, &bytes), reply);
                }));
            }
        }
    }
}

fn answer_read<O: Origin>(
    view: &Arc<View<O>>,
    read: &Read<O>,
    completed: Result<()>,
    reply: ReplyData,
) {
    match completed {
        Ok(()) => view.finish_read(read, |bytes| reply.data(bytes)),
        Err(errno) => reply.error(refuse(errno)),
    }
}
