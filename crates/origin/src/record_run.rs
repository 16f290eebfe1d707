//! A run: records of one file that are read one after the other, and the sink that takes them.

use crate::{Errno, Origin, Result};
use std::ops::ControlFlow;

/// Records of one file, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Number of the first record, which begins at so many times the size of a record.
    pub first: u64,
    /// How many records.
    pub records: u64,
    /// Size of a record in bytes.
    pub record_size_bytes: usize,
    /// Size of the file in bytes as far as it is known, `u64::MAX` if it is not. The file may have
    /// another size by now: this says only how much room to make.
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

    /// The buffer size for the record at `start`: one byte more than the file is known to have
    /// there, because reading less proves the end. At most a record.
    pub fn room_bytes(&self, start: u64) -> usize {
        let left = self.size_bytes.saturating_sub(start).saturating_add(1);
        usize::try_from(left)
            .map_or(self.record_size_bytes, |left| left.min(self.record_size_bytes))
    }
}

/// Takes the records of a run. It may be called by a thread that other runs wait for, so it must
/// not block: not on the load of another record, not on the origin. It may ask an origin that reads
/// in the background for another run, so no lock of the origin's is held while it is called.
pub trait RunSink: Send + 'static {
    /// The next record is about to be asked for by the calling thread, which has room for it. Not
    /// called by an origin that reads in the background.
    fn asks(&mut self) {}

    /// A record of the run has come: `record_size_bytes`, or fewer where the file ends. After
    /// `Break` no more is wanted; the run ends without an error.
    fn record(&mut self, index: u64, bytes: Vec<u8>) -> ControlFlow<()>;

    /// The run has ended, and no more records come. Called once; a sink that is dropped without it
    /// belongs to a run that was given up, as after a panic.
    fn end(self, result: Result<()>);
}

/// Reads a run of an origin that reads one record at a time.
///
/// # Errors
/// Of the first record that cannot be read.
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
