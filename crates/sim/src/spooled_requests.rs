//! Requests that are spooled to an unnamed file and read again. Traces from standard input need
//! this, and so does MIN, which needs the future.
//!
//! The future is computed backwards, a chunk at a time. A table holds the last request of each key,
//! seen from the end. Memory is one chunk and that table. The file takes 16 bytes per request, 24
//! with the future, in the directory of temporary files (`TMPDIR`).

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::FileExt as _;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::policy::Request;

const REQUEST_BYTES: usize = 16;
const NEXT_BYTES: usize = 8;
/// Requests that are processed at a time.
const CHUNK: u64 = 1 << 18;

/// A spool that is written.
#[derive(Debug)]
pub(crate) struct SpoolWriter {
    file: BufWriter<File>,
    requests: u64,
}

/// A spool that is read.
#[derive(Debug)]
pub(crate) struct Spool {
    requests: File,
    next_uses: Option<File>,
    len: u64,
    at: u64,
    buffer: Vec<u8>,
}

impl SpoolWriter {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { file: BufWriter::with_capacity(1 << 20, tempfile::tempfile()?), requests: 0 })
    }

    pub(crate) fn write(&mut self, requests: &[Request]) -> io::Result<()> {
        for request in requests {
            let mut bytes = [0; REQUEST_BYTES];
            bytes[..8].copy_from_slice(&request.key.to_le_bytes());
            bytes[8..].copy_from_slice(&request.bytes.to_le_bytes());
            self.file.write_all(&bytes)?;
        }
        self.requests += requests.len() as u64;
        Ok(())
    }

    /// Starts reading, with the future on request.
    pub(crate) fn finish(self, with_future: bool) -> io::Result<Spool> {
        let requests = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        let buffer = Vec::new();
        let mut spool = Spool { requests, next_uses: None, len: self.requests, at: 0, buffer };
        if with_future {
            spool.look_ahead()?;
        }
        Ok(spool)
    }
}

impl Spool {
    fn look_ahead(&mut self) -> io::Result<()> {
        let file = tempfile::tempfile()?;
        let mut used: HashMap<u64, u64, FixedState> =
            HashMap::with_hasher(FixedState::with_seed(0));
        let mut end = self.len;
        let mut chunk = Vec::new();
        let mut bytes = Vec::new();
        while end > 0 {
            let start = end.saturating_sub(CHUNK);
            chunk.clear();
            self.read_at(start, end - start, &mut chunk)?;
            bytes.resize(chunk.len() * NEXT_BYTES, 0);
            for (position, request) in chunk.iter().enumerate().rev() {
                let next_use = used.insert(request.key, start + position as u64);
                let next_use = next_use.unwrap_or(u64::MAX).to_le_bytes();
                bytes[position * NEXT_BYTES..][..NEXT_BYTES].copy_from_slice(&next_use);
            }
            file.write_all_at(&bytes, start * NEXT_BYTES as u64)?;
            end = start;
        }
        self.next_uses = Some(file);
        Ok(())
    }

    fn read_at(&mut self, start: u64, count: u64, into: &mut Vec<Request>) -> io::Result<()> {
        self.buffer.resize(count as usize * REQUEST_BYTES, 0);
        self.requests.read_exact_at(&mut self.buffer, start * REQUEST_BYTES as u64)?;
        let long = |bytes: &[u8]| bytes.iter().rev().fold(0, |n, byte| (n << 8) | u64::from(*byte));
        into.extend(
            self.buffer
                .chunks_exact(REQUEST_BYTES)
                .map(|bytes| Request::new(long(&bytes[..8]), long(&bytes[8..]))),
        );
        if let Some(next_uses) = &self.next_uses {
            self.buffer.resize(count as usize * NEXT_BYTES, 0);
            next_uses.read_exact_at(&mut self.buffer, start * NEXT_BYTES as u64)?;
            let from = into.len() - count as usize;
            for (request, bytes) in
                into[from..].iter_mut().zip(self.buffer.chunks_exact(NEXT_BYTES))
            {
                request.next_use = long(bytes);
            }
        }
        Ok(())
    }

    /// Appends requests up to `limit`; none at the end.
    pub(crate) fn read(&mut self, requests: &mut Vec<Request>, limit: usize) -> io::Result<()> {
        let room = limit.saturating_sub(requests.len()) as u64;
        let count = room.min(self.len - self.at);
        if count > 0 {
            self.read_at(self.at, count, requests)?;
            self.at += count;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_back_with_their_future() {
        let keys: Vec<u64> = (0..600_000_u64).map(|n| n * n % 1009).collect();
        let requests: Vec<Request> = keys.iter().map(|&key| Request::new(key, key + 1)).collect();
        let mut writer = SpoolWriter::new().unwrap();
        requests.chunks(7777).for_each(|chunk| writer.write(chunk).unwrap());
        let mut spool = writer.finish(true).unwrap();
        let mut read = Vec::new();
        loop {
            let before = read.len();
            spool.read(&mut read, before + 100_000).unwrap();
            if read.len() == before {
                break;
            }
        }
        assert_eq!(read.len(), requests.len());
        let mut used = std::collections::HashMap::new();
        for (position, request) in read.iter().enumerate().rev() {
            let next = used.insert(request.key, position as u64).unwrap_or(u64::MAX);
            assert_eq!(*request, Request { next_use: next, ..requests[position] });
        }
    }
}
