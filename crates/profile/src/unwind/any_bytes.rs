//! For tests: unwinds any bytes as a file and a stack, to try hostile ones.

use super::{Arch, Image, Place, Registers, Space, Unwinder};

/// The address of the file's mapping.
const BASE: u64 = 0x10_0000;

struct Process<'p> {
    file: &'p [u8],
}

impl Space for Process<'_> {
    fn place(&self, address: u64) -> Option<Place> {
        let offset = address.checked_sub(BASE)?;
        (offset < self.file.len() as u64).then_some(Place { file: Some((1, 1)), offset })
    }

    fn open(&mut self, _: u64) -> Option<Image> {
        Some(Image::Memory(self.file.to_vec()))
    }
}

/// Unwinds a stack in a file from registers in the kernel's order. Returns the number of functions.
pub fn unwind(file: &[u8], stack: &[u8], registers: &[u64], aarch64: bool) -> usize {
    let arch = if aarch64 { Arch::Aarch64 } else { Arch::X86_64 };
    let registers = Registers::sampled(arch, arch.sampled(), registers.iter().copied());
    let mut out = Vec::new();
    Unwinder::default().unwind(registers, stack, &mut Process { file }, &mut out);
    out.len()
}
