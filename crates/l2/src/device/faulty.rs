//! A device for tests that does everything a medium may do to its users.
//!
//! It keeps what was flushed and, separately, every write since. A power cut applies any subset of
//! the sectors of those writes, in any order. Writes are torn into sectors of 512 bytes.
//!
//! Its faults depend on its seed and on the requests, never on timing. Its time is played
//! ([`FaultyDevice::clock`]). A request that hangs continues when the fault is removed.

use super::Device;
use super::memory::range;
use crate::clock::Clock;
use parking_lot::{Condvar, Mutex};
use std::io;
use std::time::{Duration, Instant};

/// The unit into which writes are torn.
const SECTOR_BYTES: usize = 512;

/// Faults, with their probability in thousandths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// A read fails with EIO.
    pub read_error: u32,
    /// A write fails with EIO, having written a part.
    pub write_error: u32,
    /// A write fails with ENOSPC, having written nothing.
    pub no_space: u32,
    /// Reads return one wrong bit.
    pub flip: u32,
    /// Each read and write takes so long by the device's clock.
    pub delay: Duration,
    /// Reads and writes do not come back until this is taken away again.
    pub hangs: bool,
}

/// A medium at its worst.
#[derive(Debug)]
pub struct FaultyDevice {
    state: Mutex<State>,
    /// The faults are others now.
    changed: Condvar,
    clock: Clock,
}

#[derive(Debug)]
struct State {
    /// The contents that a reader sees.
    live: Vec<u8>,
    /// The contents that certainly survive.
    durable: Vec<u8>,
    /// Writes since the last flush.
    pending: Vec<Write>,
    /// Writes that are still to come before the power goes.
    cut_in: Option<u64>,
    /// The durable contents and the pending writes when the power went.
    at_cut: Option<(Vec<u8>, Vec<Write>)>,
    faults: Faults,
    /// Reads and writes that hang.
    hanging: usize,
    random: Random,
}

/// Where a write begins, and its bytes.
type Write = (usize, Vec<u8>);

impl State {
    /// Takes down what the medium has if the power goes now.
    fn note_cut(&mut self) {
        if self.cut_in == Some(0) {
            self.cut_in = None;
            self.at_cut = Some((self.durable.clone(), self.pending.clone()));
        }
    }
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

impl FaultyDevice {
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
            cut_in: None,
            at_cut: None,
            faults: Faults::default(),
            hanging: 0,
            random: Random(seed),
        };
        Self { state: Mutex::new(state), changed: Condvar::new(), clock: Clock::played() }
    }

    /// The clock by which reads and writes take their time.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// From now on these things go wrong.
    pub fn set_faults(&self, faults: Faults) {
        self.state.lock().faults = faults;
        self.changed.notify_all();
    }

    /// How many reads and writes hang.
    pub fn hanging(&self) -> usize {
        self.state.lock().hanging
    }

    /// Cuts the power after this many more writes. The writer does not notice:
    /// [`FaultyDevice::power_cut`] leaves the contents of that moment.
    pub fn cut_after(&self, writes: u64) {
        let mut state = self.state.lock();
        (state.cut_in, state.at_cut) = (Some(writes), None);
        state.note_cut();
    }

    /// Contents after a power cut, at the moment that [`FaultyDevice::cut_after`] says or, if that
    /// was not reached, now. They are the flushed bytes, and any sectors of the writes since. The
    /// later write of a sector does not always win. `kept` is the chance of a sector in
    /// thousandths.
    pub fn power_cut(&self, kept: u32) -> Vec<u8> {
        let mut state = self.state.lock();
        state.cut_in = None;
        let at_cut = state.at_cut.take();
        let (mut image, mut pending) =
            at_cut.unwrap_or_else(|| (state.durable.clone(), state.pending.clone()));
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

    /// The contents that a reader would see.
    pub fn contents(&self) -> Vec<u8> {
        self.state.lock().live.clone()
    }

    /// Changes the contents behind everybody's back.
    pub fn tamper(&self, change: impl FnOnce(&mut Vec<u8>)) {
        change(&mut self.state.lock().live);
    }

    /// Takes the time that a read or write takes; false if it hangs, and still does so then.
    fn pause(&self, deadline: Option<Instant>) -> bool {
        let mut state = self.state.lock();
        self.clock.advance(state.faults.delay);
        while state.faults.hangs {
            state.hanging += 1;
            let is_late = match deadline {
                Some(deadline) => self.changed.wait_until(&mut state, deadline).timed_out(),
                None => {
                    self.changed.wait(&mut state);
                    false
                }
            };
            state.hanging -= 1;
            if is_late {
                return false;
            }
        }
        true
    }

    fn read_now(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
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
}

fn input_output_error() -> io::Error {
    rustix::io::Errno::IO.into()
}

impl Device for FaultyDevice {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.pause(None);
        self.read_now(offset, buffer)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.pause(None);
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
        state.cut_in = state.cut_in.map(|writes| writes.saturating_sub(1));
        state.note_cut();
        if failed { Err(input_output_error()) } else { Ok(()) }
    }

    fn flush(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        for (start, bytes) in std::mem::take(&mut state.pending) {
            // Bytes beyond the new end are not written any more.
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
        let started = self.clock.now();
        let deadline = Instant::now().checked_add(patience);
        if !self.pause(deadline) || self.clock.now() - started > patience {
            take(Err(io::ErrorKind::TimedOut.into()));
            return true;
        }
        let mut buffer = vec![0; len_bytes];
        let read = self.read_now(offset, &mut buffer);
        take(read.map(|()| &buffer[..]));
        true
    }

    fn engine(&self) -> &'static str {
        "crash"
    }
}
