//! Registers of a thread in user space by their DWARF numbers, and the mapping from the kernel's
//! numbers.
//!
//! A register with an unknown value is absent. An absent register is never read as 0.

/// All DWARF numbers are below this on both processors.
const COUNT: usize = 34;
/// Bits of a user address on aarch64; higher bits may hold a pointer signature.
const ADDRESS_BITS_AARCH64: u32 = 48;

/// Processors whose stacks can be unwound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arch {
    X86_64,
    Aarch64,
}

impl Arch {
    /// The processor by the name that uname(2) and recordings use.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        match name {
            "x86_64" | "amd64" => Some(Self::X86_64),
            "aarch64" | "arm64" => Some(Self::Aarch64),
            _ => None,
        }
    }

    /// The processor of this machine.
    pub(crate) fn native() -> Option<Self> {
        Self::of_name(std::env::consts::ARCH)
    }

    /// The registers to request from the kernel: `enum perf_event_x86_regs` and
    /// `perf_event_arm_regs` of Linux `arch/*/include/uapi/asm/perf_regs.h`.
    pub(crate) fn sampled(self) -> u64 {
        match self {
            // AX to IP, R8 to R15.
            Self::X86_64 => 0x00ff_01ff,
            // X0 to X29, LR, SP, PC.
            Self::Aarch64 => 0x1_ffff_ffff,
        }
    }

    /// The DWARF number of a register by the kernel's number.
    fn dwarf(self, bit: u32) -> Option<u16> {
        /// AX, BX, CX, DX, SI, DI, BP, SP, IP.
        const X86: [u16; 9] = [0, 3, 2, 1, 4, 5, 6, 7, 16];
        match (self, bit) {
            (Self::X86_64, 0..=8) => Some(X86[bit as usize]),
            (Self::X86_64, 16..=23) => Some(bit as u16 - 8),
            (Self::Aarch64, 0..=32) => Some(bit as u16),
            _ => None,
        }
    }

    pub(super) fn stack_pointer(self) -> u16 {
        if self == Self::X86_64 { 7 } else { 31 }
    }

    pub(super) fn frame_pointer(self) -> u16 {
        if self == Self::X86_64 { 6 } else { 29 }
    }

    /// The register that holds the return address in unwind tables: on aarch64 the link register.
    pub(super) fn return_address(self) -> u16 {
        if self == Self::X86_64 { 16 } else { 30 }
    }

    /// The program counter.
    fn program_counter(self) -> u16 {
        if self == Self::X86_64 { 16 } else { 32 }
    }

    /// The callee-saved registers, and those that lead to the caller.
    pub(super) fn kept(self) -> impl Iterator<Item = u16> {
        let (own, rest) = match self {
            Self::X86_64 => ([3, 6, 7], 12..=16),
            Self::Aarch64 => ([29, 30, 31], 19..=28),
        };
        own.into_iter().chain(rest)
    }

    /// An address of code without its pointer signature.
    pub(super) fn code(self, address: u64) -> u64 {
        match self {
            Self::X86_64 => address,
            Self::Aarch64 => address & ((1 << ADDRESS_BITS_AARCH64) - 1),
        }
    }

    /// `e_machine` of an ELF file.
    pub(super) fn is_machine(self, machine: u16) -> bool {
        machine == if self == Self::X86_64 { 62 } else { 183 }
    }
}

/// Values of registers.
#[derive(Debug, Clone)]
pub(crate) struct Registers {
    pub(super) arch: Arch,
    values: [u64; COUNT],
    known: u64,
}

impl Registers {
    /// No value is known.
    pub(super) fn none(arch: Arch) -> Self {
        Self { arch, values: [0; COUNT], known: 0 }
    }

    /// The registers of a sample: one value for each bit of the mask, in the order of bits.
    pub(crate) fn sampled(arch: Arch, mask: u64, values: impl Iterator<Item = u64>) -> Self {
        let mut registers = Self::none(arch);
        let bits = (0..64).filter(|bit| mask >> bit & 1 == 1);
        for (bit, value) in bits.zip(values) {
            if let Some(number) = arch.dwarf(bit) {
                registers.set(number, Some(value));
            }
        }
        registers
    }

    pub(super) fn get(&self, number: u16) -> Option<u64> {
        let value = self.values.get(usize::from(number))?;
        (self.known >> number & 1 == 1).then_some(*value)
    }

    pub(super) fn set(&mut self, number: u16, value: Option<u64>) {
        let Some(place) = self.values.get_mut(usize::from(number)) else { return };
        match value {
            Some(value) => {
                *place = value;
                self.known |= 1 << number;
            }
            None => self.known &= !(1 << number),
        }
    }

    pub(super) fn stack_pointer(&self) -> Option<u64> {
        self.get(self.arch.stack_pointer())
    }

    pub(super) fn program_counter(&self) -> Option<u64> {
        self.get(self.arch.program_counter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sampled_registers_are_found_by_dwarf_number() {
        let x86 = Registers::sampled(Arch::X86_64, 0x00ff_01ff, 100..);
        let values = [0, 3, 7, 16, 8, 15].map(|number| x86.get(number));
        assert_eq!(values, [100, 101, 107, 108, 109, 116].map(Some));
        assert_eq!((x86.stack_pointer(), x86.program_counter()), (Some(107), Some(108)));
        let arm = Registers::sampled(Arch::Aarch64, Arch::Aarch64.sampled(), 100..);
        assert_eq!((arm.get(29), arm.get(30)), (Some(129), Some(130)));
        assert_eq!((arm.stack_pointer(), arm.program_counter()), (Some(131), Some(132)));
        let few = Registers::sampled(Arch::X86_64, 1 << 7 | 1 << 9, 100..);
        assert_eq!(
            (few.stack_pointer(), few.program_counter(), few.get(99)),
            (Some(100), None, None)
        );
    }
}
