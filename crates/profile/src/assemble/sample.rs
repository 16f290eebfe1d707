//! The fields of a `PERF_RECORD_SAMPLE` that a profile needs: all up to the call chain.
//!
//! Decoded here and not by the library for two reasons: a chain's length is outside input and must
//! not overflow when multiplied, and what follows the chain (dumps of stacks and registers) need
//! not be looked at. The order of fields is that of `perf_event_open(2)`.

use linux_perf_event_reader::{CpuMode, ReadFormat, RecordParseInfo, SampleFormat};

use crate::model::Mode;
use crate::read::perf_data::{Bytes, Record};

/// Values of a read group at most.
const GROUP_MAX: u64 = 4096;

/// What a sample says.
#[derive(Debug)]
pub(super) struct SampleFields<'b> {
    pub(super) ip: Option<u64>,
    pub(super) pid: i32,
    pub(super) tid: i32,
    pub(super) time_ns: Option<u64>,
    pub(super) cpu: Option<u32>,
    pub(super) period: Option<u64>,
    pub(super) mode: Mode,
    chain: Bytes<'b>,
}

impl<'b> SampleFields<'b> {
    /// `None` for a record that is too short for its own description.
    pub(super) fn parse(record: Record<'b>, parse: &RecordParseInfo) -> Option<Self> {
        let mut bytes = Bytes::new(record.body, parse.endian);
        let format = parse.sample_format;
        let has = |flag: SampleFormat| format.contains(flag);
        if has(SampleFormat::IDENTIFIER) {
            bytes.u64()?;
        }
        let ip = if has(SampleFormat::IP) { Some(bytes.u64()?) } else { None };
        let (pid, tid) =
            if has(SampleFormat::TID) { (bytes.i32()?, bytes.i32()?) } else { (-1, -1) };
        let time_ns = if has(SampleFormat::TIME) { Some(bytes.u64()?) } else { None };
        for flag in [SampleFormat::ADDR, SampleFormat::ID, SampleFormat::STREAM_ID] {
            if has(flag) {
                bytes.u64()?;
            }
        }
        let cpu = if has(SampleFormat::CPU) {
            let cpu = bytes.u32()?;
            bytes.u32()?;
            Some(cpu)
        } else {
            None
        };
        let period = if has(SampleFormat::PERIOD) { Some(bytes.u64()?) } else { None };
        if has(SampleFormat::READ) {
            skip_counts(&mut bytes, parse.read_format)?;
        }
        let mut chain = Bytes::new(&[], parse.endian);
        if has(SampleFormat::CALLCHAIN) {
            let len = usize::try_from(bytes.u64()?).ok()?.checked_mul(8)?;
            chain.bytes = bytes.take(len)?;
        }
        let mode = match CpuMode::from_misc(record.misc) {
            CpuMode::Kernel | CpuMode::GuestKernel => Mode::Kernel,
            CpuMode::User | CpuMode::GuestUser => Mode::User,
            _ => Mode::Unknown,
        };
        Some(Self { ip, pid, tid, time_ns, cpu, period, mode, chain })
    }

    /// Addresses of the chain, leaf first, with context marks among them.
    pub(super) fn chain(&self) -> impl Iterator<Item = u64> + use<'b> {
        let mut chain = self.chain;
        std::iter::from_fn(move || chain.u64())
    }
}

/// Steps over a `read_format` in a sample.
fn skip_counts(bytes: &mut Bytes<'_>, format: ReadFormat) -> Option<()> {
    let group = format.contains(ReadFormat::GROUP);
    let first = bytes.u64()?;
    for flag in [ReadFormat::TOTAL_TIME_ENABLED, ReadFormat::TOTAL_TIME_RUNNING] {
        if format.contains(flag) {
            bytes.u64()?;
        }
    }
    // PERF_FORMAT_ID and PERF_FORMAT_LOST each add a number to a value.
    let extra = (format.bits() >> 2 & 1) + (format.bits() >> 4 & 1);
    let numbers = if group {
        if first > GROUP_MAX {
            return None;
        }
        first * (1 + extra)
    } else {
        extra
    };
    for _ in 0..numbers {
        bytes.u64()?;
    }
    Some(())
}

/// What a context mark says about the addresses after it; `None` for an address.
/// `enum perf_callchain_context` of `include/uapi/linux/perf_event.h`.
pub(super) fn context(address: u64) -> Option<Mode> {
    match address.cast_signed() {
        -128 | -2176 => Some(Mode::Kernel),
        -512 | -2560 | -640 => Some(Mode::User),
        -4095..0 => Some(Mode::Unknown),
        _ => None,
    }
}
