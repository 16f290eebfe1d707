//! Unwinds stacks by handmade tables, also damaged ones.

use super::*;
use crate::seed::seeded;
use proptest::prelude::*;

/// The address of the file's mapping, the offset of its code in file and address space, and its
/// length.
const BASE: u64 = 0x5555_0000_0000;
const CODE: u64 = 0x1000;
const LEN: u64 = 0x4000;
/// Memory without a file.
const GENERATED: u64 = 0x7f00_0000_0000;
const STACK: u64 = 0x7fff_0000_0000;

/// One function: its offset in the code, its length and its instructions.
type Function<'f> = (u64, u64, &'f [u8]);

/// `.eh_frame` of functions whose frame address is, by default, the stack pointer plus 8, with the
/// return address below it. On aarch64 it is the stack pointer itself.
fn eh_frame(arch: Arch, functions: &[Function<'_>]) -> Vec<u8> {
    let (return_address, initial): (u8, &[u8]) = match arch {
        Arch::X86_64 => (16, &[0x0c, 7, 8, 0x90, 1]),
        Arch::Aarch64 => (30, &[0x0c, 31, 0]),
    };
    let mut section = Vec::new();
    let mut add = |body: &[u8]| {
        let len = body.len().next_multiple_of(8) + 4;
        section.extend((len as u32).to_le_bytes());
        section.extend(body);
        // DW_CFA_nop.
        section.resize(section.len() + len - body.len(), 0);
    };
    // Number, version, augmentation, factors of code and data, then plain addresses.
    let head = [0, 0, 0, 0, 1, b'z', b'R', 0, 1, 0x78, return_address, 1, 0];
    add(&[&head[..], initial].concat());
    let mut at = head.len().next_multiple_of(8);
    at = 8 + (head.len() + initial.len()).next_multiple_of(8).max(at);
    for (start, len, instructions) in functions {
        let mut body = (at as u32 + 4).to_le_bytes().to_vec();
        body.extend((CODE + start).to_le_bytes());
        body.extend(len.to_le_bytes());
        body.push(0);
        body.extend(*instructions);
        add(&body);
        at += 8 + body.len().next_multiple_of(8);
    }
    section.extend([0; 4]);
    section
}

/// An ELF file with one segment and the section.
fn elf(arch: Arch, eh_frame: &[u8]) -> Vec<u8> {
    let names = b"\0.eh_frame\0.shstrtab\0";
    let (sections, segments) = (0x5000u64, 64u64);
    let machine = if arch == Arch::X86_64 { 62u16 } else { 183 };
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0".to_vec();
    file.extend(machine.to_le_bytes());
    file.extend(1u32.to_le_bytes());
    for number in [0, segments, sections] {
        file.extend(u64::to_le_bytes(number));
    }
    file.extend(0u32.to_le_bytes());
    for number in [64u16, 56, 1, 64, 3, 2] {
        file.extend(number.to_le_bytes());
    }
    file.extend(1u32.to_le_bytes());
    file.extend(5u32.to_le_bytes());
    for number in [CODE, CODE, CODE, LEN, LEN, 0x1000] {
        file.extend(number.to_le_bytes());
    }
    file.resize(0x5000, 0);
    let contents = sections + 3 * 64;
    let mut section = |name: u32, kind: u32, address: u64, at: u64, len: usize| {
        file.extend(name.to_le_bytes());
        file.extend(kind.to_le_bytes());
        for number in [2, address, at, len as u64, 0, 8, 0] {
            file.extend(u64::to_le_bytes(number));
        }
    };
    section(0, 0, 0, 0, 0);
    section(1, 1, 0x9000, contents + names.len() as u64, eh_frame.len());
    section(11, 3, 0, contents, names.len());
    file.extend(names);
    file.extend(eh_frame);
    file
}

/// A process with one file and generated code.
struct Process {
    file: Option<Vec<u8>>,
}

impl Space for Process {
    fn place(&self, address: u64) -> Option<Place> {
        if (BASE + CODE..BASE + CODE + LEN).contains(&address) {
            return Some(Place { file: Some((1, 1)), offset: address - BASE });
        }
        (GENERATED..GENERATED + 0x1000)
            .contains(&address)
            .then_some(Place { file: None, offset: 0 })
    }

    fn open(&mut self, _: u64) -> Option<Image> {
        self.file.clone().map(Image::Memory)
    }
}

/// Registers by their numbers.
fn registers(arch: Arch, values: &[(u16, u64)]) -> Registers {
    let mut registers = Registers::none(arch);
    for (number, value) in values {
        registers.set(*number, Some(*value));
    }
    registers
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The offsets of the addresses in the code, and the end.
fn unwind(file: Vec<u8>, registers: Registers, stack: &[u64]) -> (Vec<u64>, End) {
    let mut out = Vec::new();
    let mut process = Process { file: Some(file) };
    let end = Unwinder::default().unwind(registers, &words(stack), &mut process, &mut out);
    (out.into_iter().map(|at| at.wrapping_sub(BASE + CODE)).collect(), end)
}

/// The address at an offset of the code.
fn code(offset: u64) -> u64 {
    BASE + CODE + offset
}

/// DW_CFA_undefined of the return address: the outermost function.
const OUTERMOST: &[u8] = &[0x07, 16];

fn x86(functions: &[Function<'_>]) -> Vec<u8> {
    elf(Arch::X86_64, &eh_frame(Arch::X86_64, functions))
}

#[test]
fn tables_lead_to_callers_without_frame_pointers() {
    // The second function pushed a register and reserved memory: 32 bytes to the frame's address.
    let file = x86(&[(0, 16, &[]), (16, 16, &[0x44, 0x0e, 32, 0x86, 2]), (64, 16, OUTERMOST)]);
    let start = registers(Arch::X86_64, &[(7, STACK), (16, code(3)), (6, 77)]);
    let stack = [code(25), 1, 2, 0x1234, code(70), 3];
    let (found, end) = unwind(file.clone(), start.clone(), &stack);
    assert_eq!((found, end), (vec![3, 24, 69], End::Outermost));
    let (found, end) = unwind(file.clone(), start.clone(), &stack[..3]);
    assert_eq!((found, end), (vec![3, 24], End::Copy), "the stack is longer than the copy");
    let (found, end) = unwind(file, start.clone(), &[0x1234]);
    assert_eq!((found, end), (vec![3], End::Outermost), "the address has no code");
    let mut out = Vec::new();
    let end =
        Unwinder::default().unwind(start, &words(&stack), &mut Process { file: None }, &mut out);
    assert_eq!((out, end), (vec![code(3)], End::FileMissing));
}

#[test]
fn a_missing_file_is_tried_again() {
    let file = x86(&[(0, 16, &[]), (64, 16, OUTERMOST)]);
    let start = registers(Arch::X86_64, &[(7, STACK), (16, code(3))]);
    let mut unwinder = Unwinder::default();
    let mut unwind = |file| {
        let stack = words(&[code(70)]);
        unwinder.unwind(start.clone(), &stack, &mut Process { file }, &mut Vec::new())
    };
    assert_eq!(unwind(None), End::FileMissing);
    assert_eq!(unwind(Some(file)), End::Outermost);
    assert_eq!(unwind(None), End::Outermost, "the result is remembered");
}

#[test]
fn frame_pointers_lead_through_generated_code() {
    let file = x86(&[(64, 16, OUTERMOST)]);
    let start = registers(Arch::X86_64, &[(7, STACK), (6, STACK + 16), (16, GENERATED + 8)]);
    let stack = [9, 9, STACK + 32, GENERATED + 0x100, 0, code(70)];
    let (found, end) = unwind(file.clone(), start, &stack);
    let second = (GENERATED + 0xff).wrapping_sub(BASE + CODE);
    assert_eq!((&found[1..], end), (&[second, 69][..], End::Outermost));
    // Assembler without a table: the caller's address is on top of the stack.
    let start = registers(Arch::X86_64, &[(7, STACK), (6, 1), (16, code(0x200))]);
    assert_eq!(unwind(file, start, &[code(70)]), (vec![0x200, 69], End::Outermost));
}

#[test]
fn the_link_register_leads_from_the_innermost_function_only() {
    // stp x29, x30, [sp, #-16]!
    let frame: &[u8] = &[0x0e, 16, 0x9d, 2, 0x9e, 1];
    let eh_frame = eh_frame(Arch::Aarch64, &[(0, 16, &[]), (16, 16, frame), (32, 16, &[])]);
    let file = elf(Arch::Aarch64, &eh_frame);
    let signed = 0x00a5_0000_0000_0000;
    let start = registers(Arch::Aarch64, &[(31, STACK), (32, code(4)), (30, signed | code(24))]);
    let (found, end) = unwind(file, start, &[0, signed | code(40), 0]);
    assert_eq!((found, end), (vec![4, 23, 39], End::Outermost));
}

#[test]
fn expressions_read_the_stack_and_terminate() {
    // DW_OP_breg6 -8, DW_OP_deref: a stack that was realigned.
    let aligned: &[u8] = &[0x0f, 3, 0x76, 0x78, 0x06];
    let file = x86(&[(0, 16, aligned), (64, 16, OUTERMOST)]);
    let start = registers(Arch::X86_64, &[(7, STACK), (6, STACK + 16), (16, code(3))]);
    let stack = [0, STACK + 40, 0, 0, code(70)];
    assert_eq!(unwind(file, start.clone(), &stack), (vec![3, 69], End::Outermost));
    // DW_OP_skip -3 loops forever.
    let file = x86(&[(0, 16, &[0x0f, 3, 0x2f, 0xfd, 0xff])]);
    assert_eq!(unwind(file, start, &stack), (vec![3], End::Outermost));
}

#[test]
fn a_table_is_searched_by_its_own_index() {
    let file = std::fs::read("/proc/self/exe").unwrap();
    let Some(arch) = Arch::native() else { return };
    let table = Table::read(&file[..], arch).unwrap();
    let mut context = UnwindContext::new();
    let (mut rules, mut uncovered) = (0, 0);
    for offset in (0..file.len() as u64).step_by(4096 / 3) {
        match table.find(offset, &mut context, &mut { WORK_MAX }) {
            Found::Rule(_) => rules += 1,
            Found::Uncovered => uncovered += 1,
            Found::TooCostly => panic!("no entry is that long"),
        }
    }
    assert!(rules > 100 && uncovered > 100, "{rules} {uncovered}");
    assert!(table.size() > 10_000 && Table::read(&b"\x7fELF"[..], arch).is_none());
}

proptest! {
    #![proptest_config(seeded())]

    #[test]
    fn unwinding_hostile_files_and_stacks_terminates(
        instructions in proptest::collection::vec(any::<u8>(), 0..40),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..20),
        stack in proptest::collection::vec(
            prop_oneof![any::<u64>(), (0..LEN).prop_map(code), (0..512u64).prop_map(|at| STACK + at * 8)],
            0..200,
        ),
        values in proptest::collection::vec((0..34u16, any::<u64>()), 0..10),
        x86 in any::<bool>(),
    ) {
        let arch = if x86 { Arch::X86_64 } else { Arch::Aarch64 };
        let functions = [(0, LEN / 2, &instructions[..]), (LEN / 2, LEN / 2, &instructions[..])];
        let mut file = elf(arch, &eh_frame(arch, &functions));
        let (head, len) = (64 + 56, file.len());
        for (at, byte) in damage {
            // The headers of the file and of its sections, and the table.
            let at = at.index(head + len - 0x5000);
            file[if at < head { at } else { at - head + 0x5000 }] = byte;
        }
        let mut start = registers(arch, &values);
        start.set(arch.stack_pointer(), Some(STACK));
        let counter = if arch == Arch::X86_64 { 16 } else { 32 };
        start.set(counter, Some(code(8)));
        let mut out = Vec::new();
        let mut process = Process { file: Some(file) };
        Unwinder::default().unwind(start, &words(&stack), &mut process, &mut out);
        prop_assert!(!out.is_empty() && out.len() <= DEPTH_MAX);
    }
}
