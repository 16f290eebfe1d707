//! A device for tests that does everything a medium may do to its users.
//!
//! It keeps what was flushed and, separately, every write since. A power cut applies any subset of
//! the sectors of those writes in any order: sectors of 512 bytes are what a write is torn into.

use super::Device;
use super::memory::range;
use parking_lot::Mutex;
use std::io;
use std::time::Duration;

/// What tears.
const SECTOR_BYTES: usize = 512;

/// What goes wrong, with its probability in thousandths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// A read fails with EIO.
    pub read_error: u32,
    /// A write fails with EIO, having written a part.
    pub write_error: u32,
    /// A write fails with ENOSPC, having written nothing.
    pub no_space: u32,
    /// A bit of what is read is another.
    pub flip: u32,
    /// Each read and write takes so long.
    pub delay: Duration,
}

/// A medium at its worst.
#[derive(Debug)]
pub struct CrashDevice {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// What a reader sees.
    live: Vec<u8>,
    /// What survives for certain.
    durable: Vec<u8>,
    /// Writes since the last flush.
    pending: Vec<(usize, Vec<u8>)>,
    faults: Faults,
    random: Random,
}

/// SplitMix64 (Steele, Lea and Flood, OOPSLA '14): the same seed, the same disasters.
#[derive(Clone, Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    fn thousandths(&mut self, chance: u32) -> bool {
        chance > 0 && self.below(1000) < chance as usize
    }
}

impl CrashDevice {
    /// So many zeroes; the seed decides all that goes wrong.
    pub fn new(len_bytes: u64, seed: u64) -> Self {
        let bytes = vec![0; usize::try_from(len_bytes).unwrap_or(0)];
        Self::from_bytes(bytes, seed)
    }

    /// A device on which these bytes are safe.
    pub fn from_bytes(bytes: Vec<u8>, seed: u64) -> Self {
        let state = State {
            live: bytes.clone(),
            durable: bytes,
            pending: Vec::new(),
            faults: Faults::default(),
            random: Random(seed),
        };
        Self { state: Mutex::new(state) }
    }

    /// From now on these things go wrong.
    pub fn set_faults(&self, faults: Faults) {
        self.state.lock().faults = faults;
    }

    /// Contents after a power cut at this moment: what was flushed, and of what was written since
    /// any sectors, the later write of a sector not always winning. `kept` is the chance of a
    /// sector in thousandths.
    pub fn power_cut(&self, kept: u32) -> Vec<u8> {
        let mut state = self.state.lock();
        let mut image = state.durable.clone();
        let mut pending = state.pending.clone();
        // A device may finish writes in any order.
        for last in (1..pending.len()).rev() {
            let other = state.random.below(last + 1);
            if state.random.thousandths(500) {
                pending.swap(last, other);
            }
        }
        for (start, bytes) in &pending {
            for (number, sector) in bytes.chunks(SECTOR_BYTES).enumerate() {
                if state.random.thousandths(kept) {
                    let at = start + number * SECTOR_BYTES;
                    image[at..at + sector.len()].copy_from_slice(sector);
                }
            }
        }
        image
    }

    /// What a reader would see.
    pub fn contents(&self) -> Vec<u8> {
        self.state.lock().live.clone()
    }

    /// Changes the contents behind everybody's back.
    pub fn tamper(&self, change: impl FnOnce(&mut Vec<u8>)) {
        change(&mut self.state.lock().live);
    }

    fn pause(&self) {
        let delay = self.state.lock().faults.delay;
        if !delay.is_zero() {
            std::thread::sleep(delay);
        }
    }
}

fn input_output_error() -> io::Error {
    rustix::io::Errno::IO.into()
}

impl Device for CrashDevice {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.pause();
        let mut state = self.state.lock();
        let chances = state.faults;
        if state.random.thousandths(chances.read_error) {
            return Err(input_output_error());
        }
        let range = range(state.live.len(), offset, buffer.len())?;
        buffer.copy_from_slice(&state.live[range]);
        if state.random.thousandths(chances.flip) && !buffer.is_empty() {
            let (byte, bit) = (state.random.below(buffer.len()), state.random.below(8));
            buffer[byte] ^= 1 << bit;
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.pause();
        let mut state = self.state.lock();
        let chances = state.faults;
        if state.random.thousandths(chances.no_space) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let failed = state.random.thousandths(chances.write_error);
        let length = if failed { state.random.below(bytes.len()) } else { bytes.len() };
        let range = range(state.live.len(), offset, length)
            .map_err(|_| io::Error::from(io::ErrorKind::StorageFull))?;
        state.live[range.clone()].copy_from_slice(&bytes[..length]);
        state.pending.push((range.start, bytes[..length].to_vec()));
        if failed { Err(input_output_error()) } else { Ok(()) }
    }

    fn flush(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        for (start, bytes) in std::mem::take(&mut state.pending) {
            // What was truncated away meanwhile is not written any more.
            if let Some(there) = state.durable.get_mut(start..start + bytes.len()) {
                there.copy_from_slice(&bytes);
            }
        }
        Ok(())
    }

    fn len_bytes(&self) -> io::Result<u64> {
        Ok(self.state.lock().live.len() as u64)
    }

    fn set_len_bytes(&self, len_bytes: u64) -> io::Result<()> {
        let len = usize::try_from(len_bytes).map_err(|_| io::ErrorKind::StorageFull)?;
        let mut state = self.state.lock();
        state.live.resize(len, 0);
        state.durable.resize(len, 0);
        state.pending.retain(|(start, bytes)| start + bytes.len() <= len);
        Ok(())
    }

    fn read_within(
        &self,
        offset: u64,
        len_bytes: usize,
        patience: Duration,
        meanwhile: &mut dyn FnMut(),
        take: &mut dyn FnMut(io::Result<&[u8]>),
    ) -> bool {
        meanwhile();
        if self.state.lock().faults.delay > patience {
            std::thread::sleep(patience);
            take(Err(io::ErrorKind::TimedOut.into()));
            return true;
        }
        let mut buffer = vec![0; len_bytes];
        let read = self.read_at(offset, &mut buffer);
        take(read.map(|()| &buffer[..]));
        true
    }

    fn engine(&self) -> &'static str {
        "crash"
    }
}
