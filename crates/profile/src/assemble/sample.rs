//! Decodes the fields of a `PERF_RECORD_SAMPLE` for a profile: all up to the call chain, the branch
//! stack, and the copy of the user's stack.
//!
//! The library's decoder is not used, because a chain's length is outside input and must not
//! overflow when multiplied. It also does not know the number of lost samples among the counts, and
//! damage after the chain must not harm the chain. The order of fields is that of
//! `perf_event_open(2)`.

use linux_perf_event_reader::{BranchSampleFormat, CpuMode, RecordParseInfo, SampleFormat};

use super::events::Event;
use crate::model::Mode;
use crate::read::perf_data::{Bytes, Record};
use crate::unwind::{Arch, Registers};

/// Counts of a group at most.
const GROUP_MAX: u64 = 4096;

/// `enum perf_event_read_format` of `include/uapi/linux/perf_event.h`.
mod read_format {
    pub(super) const TOTAL_TIME_ENABLED: u64 = 1;
    pub(super) const TOTAL_TIME_RUNNING: u64 = 1 << 1;
    pub(super) const ID: u64 = 1 << 2;
    pub(super) const GROUP: u64 = 1 << 3;
    pub(super) const LOST: u64 = 1 << 4;
}

/// `PERF_SAMPLE_REGS_ABI_64`.
const REGISTERS_64_BIT: u64 = 2;

/// `PERF_CONTEXT_USER_DEFERRED`: the user's part is in a later record, which the number after this
/// mark identifies.
const USER_DEFERRED: i64 = -640;

/// The fields of a sample.
#[derive(Debug)]
pub(super) struct SampleFields<'b> {
    pub(super) ip: Option<u64>,
    pub(super) pid: i32,
    pub(super) tid: i32,
    pub(super) time_ns: Option<u64>,
    pub(super) cpu: Option<u32>,
    pub(super) period: Option<u64>,
    pub(super) mode: Mode,
    /// The counts and numbers of the group's events, if the record has the numbers.
    pub(super) counts: Option<Counts<'b>>,
    chain: Bytes<'b>,
    /// From, to and flags of the user's calls, innermost first, if the processor recorded them.
    branches: Option<Bytes<'b>>,
    /// The user's registers and a copy of the user's stack.
    pub(super) copy: Option<Copied<'b>>,
}

/// The registers and the stack memory that unwinding starts from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Copied<'b> {
    /// A bit for each register that follows.
    mask: u64,
    registers: Bytes<'b>,
    pub(super) stack: &'b [u8],
}

impl<'b> Copied<'b> {
    /// The registers, as the kernel numbers them.
    pub(super) fn registers(&self, arch: Arch) -> Registers {
        let mut values = self.registers;
        Registers::sampled(arch, self.mask, std::iter::from_fn(move || values.u64()))
    }
}

/// The counts of events at the time of a sample.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counts<'b> {
    /// The count and the number of one event.
    alone: Option<(u64, u64)>,
    /// The counts of a group's events.
    group: Bytes<'b>,
    /// Whether each count is followed by the number of lost samples.
    lost: bool,
}

impl<'b> SampleFields<'b> {
    /// `None` for a record that is shorter than its description.
    pub(super) fn parse(record: Record<'b>, event: &Event) -> Option<Self> {
        let parse = &event.parse;
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
        let counts = if has(SampleFormat::READ) {
            Counts::parse(&mut bytes, event.read_format)?
        } else {
            None
        };
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
        let (branches, copy) = after_chain(&mut bytes, parse);
        Some(Self { ip, pid, tid, time_ns, cpu, period, mode, counts, chain, branches, copy })
    }

    /// Addresses of the chain, leaf first, with context marks among them.
    pub(super) fn chain(&self) -> impl Iterator<Item = u64> + use<'b> {
        let mut chain = self.chain;
        std::iter::from_fn(move || chain.u64().filter(|address| !is_deferred(*address)))
    }

    /// Whether the user's part of the stack is in another record.
    pub(super) fn is_deferred(&self) -> bool {
        let mut chain = self.chain;
        std::iter::from_fn(|| chain.u64()).any(is_deferred)
    }

    /// The user's part of the chain after the call from this address.
    pub(super) fn chain_after(&self, call: u64) -> impl Iterator<Item = u64> + use<'b> {
        let user = self.chain().skip_while(|address| context(*address) != Some(Mode::User));
        let rest = user.skip_while(move |address| address.wrapping_sub(1) != call).skip(1);
        rest.take_while(|address| context(*address).is_none())
    }

    /// The user's calls from the branch stack, innermost first: the target of the last call, then
    /// the origin of each. As in perf, they replace the user's part of the chain.
    pub(super) fn recorded_calls(&self) -> Option<impl Iterator<Item = u64> + use<'b>> {
        let mut entries = self.branches?;
        let (_, mut innermost) = (entries.u64()?, entries.u64());
        let mut entries = self.branches?;
        Some(std::iter::from_fn(move || {
            innermost.take().or_else(|| {
                let from = entries.u64()?;
                let (_to, _flags) = (entries.u64()?, entries.u64()?);
                Some(from)
            })
        }))
    }
}

fn is_deferred(address: u64) -> bool {
    address.cast_signed() == USER_DEFERRED
}

/// The branch stack and the copy of the user's stack. Damaged parts are treated as missing.
fn after_chain<'b>(
    bytes: &mut Bytes<'b>,
    parse: &RecordParseInfo,
) -> (Option<Bytes<'b>>, Option<Copied<'b>>) {
    let format = parse.sample_format;
    let mut branches = None;
    let copy = (|| {
        if format.contains(SampleFormat::RAW) {
            let len = bytes.u32()?;
            bytes.take(usize::try_from(len).ok()?)?;
        }
        if format.contains(SampleFormat::BRANCH_STACK) {
            let len = usize::try_from(bytes.u64()?).ok()?.checked_mul(24)?;
            if parse.branch_sample_format.contains(BranchSampleFormat::HW_INDEX) {
                bytes.u64()?;
            }
            let entries = Bytes::new(bytes.take(len)?, bytes.endian);
            let calls = parse.branch_sample_format.contains(BranchSampleFormat::CALL_STACK);
            branches = (calls && len > 0).then_some(entries);
        }
        // 0 is a kernel thread, 1 is a 32-bit program.
        let mut registers = Bytes::new(&[], bytes.endian);
        let has_registers = format.contains(SampleFormat::REGS_USER);
        let abi = if has_registers { bytes.u64()? } else { 0 };
        if abi != 0 {
            let values = bytes.take(usize::from(parse.user_regs_count) * 8)?;
            if abi == REGISTERS_64_BIT {
                registers.bytes = values;
            }
        }
        if !format.contains(SampleFormat::STACK_USER) {
            return None;
        }
        let len = usize::try_from(bytes.u64()?).ok()?;
        let stack = bytes.take(len)?;
        if len == 0 {
            return None;
        }
        // How much of the copy is stack.
        let used = usize::try_from(bytes.u64()?).ok().filter(|used| *used > 0)?;
        let stack = stack.get(..used).unwrap_or(stack);
        Some(Copied { mask: parse.sample_regs_user, registers, stack })
    })();
    (branches, copy)
}

impl<'b> Counts<'b> {
    /// Decodes a `read_format` of a sample; `Some(None)` if it has no numbers of events.
    fn parse(bytes: &mut Bytes<'b>, format: u64) -> Option<Option<Self>> {
        let has = |flag: u64| format & flag != 0;
        let (is_group, has_id) = (has(read_format::GROUP), has(read_format::ID));
        let lost = has(read_format::LOST);
        let first = bytes.u64()?;
        for flag in [read_format::TOTAL_TIME_ENABLED, read_format::TOTAL_TIME_RUNNING] {
            if has(flag) {
                bytes.u64()?;
            }
        }
        if !is_group {
            let id = if has_id { Some(bytes.u64()?) } else { None };
            if lost {
                bytes.u64()?;
            }
            let group = Bytes::new(&[], bytes.endian);
            return Some(id.map(|id| Self { alone: Some((first, id)), group, lost }));
        }
        if first > GROUP_MAX {
            return None;
        }
        let len = first * 8 * (1 + u64::from(has_id) + u64::from(lost));
        let group = Bytes::new(bytes.take(usize::try_from(len).ok()?)?, bytes.endian);
        Some(has_id.then_some(Self { alone: None, group, lost }))
    }

    /// The count and the number of each event.
    pub(super) fn iter(mut self) -> impl Iterator<Item = (u64, u64)> + use<'b> {
        std::iter::from_fn(move || {
            self.alone.take().or_else(|| {
                let counted = (self.group.u64()?, self.group.u64()?);
                if self.lost {
                    self.group.u64()?;
                }
                Some(counted)
            })
        })
    }
}

/// The mode of the addresses after a context mark; `None` for an address. See `enum
/// perf_callchain_context` of `include/uapi/linux/perf_event.h`.
pub(super) fn context(address: u64) -> Option<Mode> {
    match address.cast_signed() {
        -128 | -2176 => Some(Mode::Kernel),
        -512 | -2560 | USER_DEFERRED => Some(Mode::User),
        -4095..0 => Some(Mode::Unknown),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Meta;
    use crate::read::perf_data::Attribute;
    use linux_perf_event_reader::Endianness::LittleEndian;

    const READ: u64 = 1 << 4;
    const CALLCHAIN: u64 = 1 << 5;
    const BRANCH_STACK: u64 = 1 << 11;
    const STACK_USER: u64 = 1 << 13;
    const CALL_STACK: u64 = 1 << 11;

    /// Calls `f` with an event that has these fields and a sample of these numbers.
    fn with_sample<T>(
        (sample_type, read_format, branches): (u64, u64, u64),
        numbers: &[u64],
        look: impl Fn(Option<SampleFields<'_>>) -> T,
    ) -> T {
        let mut bytes = Vec::new();
        bytes.extend(0u32.to_le_bytes());
        bytes.extend(80u32.to_le_bytes());
        for number in [0, 1, sample_type, read_format, 0, 0, 0, 0, branches] {
            bytes.extend(u64::to_le_bytes(number));
        }
        let attribute = Attribute::parse(&bytes, LittleEndian).unwrap();
        let mut events = super::super::events::Events::default();
        events.add(&attribute, LittleEndian, &mut Meta::default());
        let body: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        let record = Record { kind: 9, misc: 2, event: 0, body: &body };
        look(SampleFields::parse(record, events.get(0).unwrap()))
    }

    #[test]
    fn the_chain_is_found_after_counts_in_every_form() {
        let (times, id, group, lost) = (3, 1 << 2, 1 << 3, 1 << 4);
        let chain = [2, 0x10, 0x20];
        for (read_format, counts, expected) in [
            (0, &[70][..], None),
            (id, &[70, 7], Some(vec![(70, 7)])),
            (id | lost, &[70, 7, 0], Some(vec![(70, 7)])),
            (id | lost | times, &[70, 1, 2, 7, 0], Some(vec![(70, 7)])),
            (group | id, &[2, 70, 7, 80, 8], Some(vec![(70, 7), (80, 8)])),
            (
                group | id | lost | times,
                &[2, 1, 2, 70, 7, 0, 80, 8, 3],
                Some(vec![(70, 7), (80, 8)]),
            ),
            (group | lost, &[2, 70, 0, 80, 0], None),
        ] {
            let numbers = [counts, &chain].concat();
            with_sample((READ | CALLCHAIN, read_format, 0), &numbers, |fields| {
                let fields = fields.unwrap();
                let found = fields.counts.map(|counts| counts.iter().collect::<Vec<_>>());
                assert_eq!(found, expected, "{read_format}");
                assert_eq!(fields.chain().collect::<Vec<_>>(), [0x10, 0x20], "{read_format}");
            });
            with_sample((READ | CALLCHAIN, read_format, 0), &numbers[..1], |fields| {
                assert!(fields.is_none(), "{read_format}");
            });
        }
    }

    #[test]
    fn recorded_calls_and_copied_stacks_are_decoded() {
        let user = (-512i64).cast_unsigned();
        let numbers = [2, user, 0x10, 2, 0x21, 0x20, 0, 0x31, 0x30, 0];
        with_sample((CALLCHAIN | BRANCH_STACK, 0, CALL_STACK), &numbers, |fields| {
            let calls: Vec<u64> = fields.unwrap().recorded_calls().unwrap().collect();
            assert_eq!(calls, [0x20, 0x21, 0x31]);
        });
        with_sample((CALLCHAIN | BRANCH_STACK, 0, 0), &numbers, |fields| {
            assert!(fields.unwrap().recorded_calls().is_none(), "these are jumps");
        });
        with_sample((CALLCHAIN | STACK_USER, 0, 0), &[0, 8, 1, 8], |fields| {
            assert_eq!(fields.unwrap().copy.map(|copy| copy.stack.len()), Some(8));
        });
        with_sample((CALLCHAIN | STACK_USER, 0, 0), &[0, 0], |fields| {
            assert!(fields.unwrap().copy.is_none(), "a kernel thread has no copy");
        });
        let deferred = [3, 0x10, USER_DEFERRED.cast_unsigned(), 77];
        with_sample((CALLCHAIN, 0, 0), &deferred, |fields| {
            let fields = fields.unwrap();
            assert!(fields.is_deferred());
            assert_eq!(fields.chain().collect::<Vec<_>>(), [0x10], "77 is not an address");
        });
    }
}
