//! A run: records of one file that are read one after the other, and the sink that takes them.

use crate::{Errno, Origin, Result};
use std::ops::ControlFlow;

/// Records of one file, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Number of the first record, which begins at this multiple of the record size.
    pub first: u64,
    /// How many records.
    pub records: u64,
    /// Size of a record in bytes.
    pub record_size_bytes: usize,
    /// Known size of the file in bytes, or `u64::MAX`. The present size may differ: this only sets
    /// the size of buffers.
    pub size_bytes: u64,
    /// Whether a program waits for one of its records.
    pub is_demanded: bool,
}

impl Run {
    /// Where a record begins, in bytes.
    ///
    /// # Errors
    /// `EFBIG` if no file is that long.
    pub fn start_of(&self, index: u64) -> Result<u64> {
        index.checked_mul(self.record_size_bytes as u64).ok_or(Errno::FBIG)
    }

    /// The buffer size for the record at `start`: one byte more than the file's known bytes there,
    /// because a shorter read proves the end. At most a record.
    pub fn room_bytes(&self, start: u64) -> usize {
        let left = self.size_bytes.saturating_sub(start).saturating_add(1);
        usize::try_from(left)
            .map_or(self.record_size_bytes, |left| left.min(self.record_size_bytes))
    }
}

/// Takes the records of a run. Other runs may wait for the calling thread, so it must not block:
/// not on the load of another record, not on the origin. It may request another run of an origin
/// that reads in the background. So the origin holds no lock while it calls this.
pub trait RunSink: Send + 'static {
    /// The calling thread is about to request the next record, and has room for it. Not called by
    /// an origin that reads in the background.
    fn asks(&mut self) {}

    /// A record of the run has arrived: `record_size_bytes`, or fewer where the file ends. After
    /// `Break` no more records are needed, and the run ends without an error.
    fn record(&mut self, index: u64, bytes: Vec<u8>) -> ControlFlow<()>;

    /// The run has ended, and no more records come. Called once. A sink that is dropped without
    /// this call belongs to a run that was given up, for example by a panic.
    fn end(self, result: Result<()>);
}

/// Reads a run of an origin that reads one record at a time.
///
/// # Errors
/// The error of the first record that cannot be read.
pub(crate) fn read_one_by_one<O: Origin + ?Sized>(
    origin: &O,
    file: &O::File,
    run: Run,
    sink: &mut impl RunSink,
) -> Result<()> {
    for index in run.first..run.first.saturating_add(run.records) {
        let start = run.start_of(index)?;
        let mut bytes = Vec::with_capacity(run.room_bytes(start));
        sink.asks();
        origin.read_at(file, start, run.record_size_bytes, &mut bytes)?;
        let is_last = bytes.len() < run.record_size_bytes;
        if sink.record(index, bytes).is_break() || is_last {
            break;
        }
    }
    Ok(())
}
