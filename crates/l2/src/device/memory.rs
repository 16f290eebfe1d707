//! Memory as a device: for tests, and as a measure for the others.

use super::Device;
use parking_lot::RwLock;
use std::io;
use std::time::Duration;

/// A device that is gone when it is dropped.
#[derive(Debug, Default)]
pub struct MemoryDevice {
    bytes: RwLock<Vec<u8>>,
}

impl MemoryDevice {
    /// So many zeroes.
    pub fn new(len_bytes: u64) -> Self {
        Self::from_bytes(vec![0; usize::try_from(len_bytes).unwrap_or(0)])
    }

    /// A device with these contents.
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        Self { bytes: RwLock::new(bytes) }
    }

    /// A copy of the contents.
    pub fn contents(&self) -> Vec<u8> {
        self.bytes.read().clone()
    }

    /// Changes the contents behind everybody's back.
    pub fn tamper(&self, change: impl FnOnce(&mut Vec<u8>)) {
        change(&mut self.bytes.write());
    }
}

/// The requested range of a device, if it is within the device.
pub(super) fn range(len: usize, offset: u64, length: usize) -> io::Result<std::ops::Range<usize>> {
    let end = || io::Error::from(io::ErrorKind::UnexpectedEof);
    let start = usize::try_from(offset).map_err(|_| end())?;
    let stop = start.checked_add(length).ok_or_else(end)?;
    if stop > len { Err(end()) } else { Ok(start..stop) }
}

impl Device for MemoryDevice {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let bytes = self.bytes.read();
        let range = range(bytes.len(), offset, buffer.len())?;
        buffer.copy_from_slice(&bytes[range]);
        Ok(())
    }

    fn write_at(&self, offset: u64, written: &[u8]) -> io::Result<()> {
        let mut bytes = self.bytes.write();
        let range = range(bytes.len(), offset, written.len())
            .map_err(|_| io::Error::from(io::ErrorKind::StorageFull))?;
        bytes[range].copy_from_slice(written);
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }

    fn len_bytes(&self) -> io::Result<u64> {
        Ok(self.bytes.read().len() as u64)
    }

    fn set_len_bytes(&self, len_bytes: u64) -> io::Result<()> {
        let len = usize::try_from(len_bytes).map_err(|_| io::ErrorKind::StorageFull)?;
        self.bytes.write().resize(len, 0);
        Ok(())
    }

    fn discard_range(&self, offset: u64, len_bytes: u64) -> io::Result<()> {
        let mut bytes = self.bytes.write();
        let length = usize::try_from(len_bytes).map_err(|_| io::ErrorKind::UnexpectedEof)?;
        let range = range(bytes.len(), offset, length)?;
        bytes[range].fill(0);
        Ok(())
    }

    /// Memory never waits.
    fn read_within(
        &self,
        offset: u64,
        len_bytes: usize,
        _: Duration,
        meanwhile: &mut dyn FnMut(),
        take: &mut dyn FnMut(io::Result<&[u8]>),
    ) -> bool {
        meanwhile();
        let mut buffer = vec![0; len_bytes];
        let read = self.read_at(offset, &mut buffer);
        take(read.map(|()| &buffer[..]));
        true
    }

    fn engine(&self) -> &'static str {
        "memory"
    }
}
