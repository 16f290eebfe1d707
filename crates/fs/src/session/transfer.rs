//! Reads and writes: where bytes change hands, and on which thread.

use super::answer::answer_written;
use super::{Session, refuse};
use fuser::{ReplyData, ReplyWrite};
use ogive_origin::Origin;

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
            Ok(mut read) => {
                self.run(reply, move |view, reply| match view.complete_read(&mut read) {
                    Ok(()) => view.finish_read(&read, |bytes| reply.data(bytes)),
                    Err(errno) => reply.error(refuse(errno)),
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
