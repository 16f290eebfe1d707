//! Unwinds user stacks from registers and a copy of the stack memory, by the unwind tables that
//! compilers write for exceptions. So programs without frame pointers have callers.
//!
//! Where the tables have no entry, the frame pointer is followed. Every step must lead to
//! executable code and up the stack, so unwinding always ends.
//!
//! A table is read once per file, and rules are cached by file and offset, so that short-lived
//! programs share them. The bytes of tables, the rules and the work for one stack have bounds,
//! however hostile files and stacks are. One thread uses the unwinder; there are no locks.

pub(crate) mod any_bytes;
mod registers;
mod rule;
mod table;

use std::fs::File;
use std::rc::Rc;

use gimli::UnwindContext;
use object::ReadCache;

use crate::model::Map;
pub(crate) use registers::{Arch, Registers};
use rule::{Memory, Rule};
use table::{Found, Table};

/// Frames of one stack at most.
const DEPTH_MAX: usize = 1024;
/// Bytes of tables read for one stack at most. An entry has some 50.
const WORK_MAX: usize = 256 << 10;
/// Expressions evaluated for one stack at most. A stack with a signal has some 20.
const EXPRESSIONS_MAX: u32 = 256;
/// Bytes of tables held at most; then all are dropped.
const TABLES_BYTES_MAX: usize = 256 << 20;
/// Files remembered at most.
const FILES_MAX: usize = 50_000;
/// How often the unwinder tries to open a missing file.
const MISSING_TRIES: u8 = 8;
/// Rules remembered at most. One has 400 bytes.
const RULES_MAX: usize = 100_000;

/// The key of a mapped file: the number of its path, and its inode.
pub(crate) type FileKey = (u32, u64);

/// The place of code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// The file; `None` for memory without a file.
    pub(crate) file: Option<FileKey>,
    pub(crate) offset: u64,
}

/// The bytes of a file.
#[derive(Debug)]
pub(crate) enum Image {
    File(File),
    Memory(Vec<u8>),
}

/// The address space of a stack.
pub(crate) trait Space {
    /// The place of the executable code at an address.
    fn place(&self, address: u64) -> Option<Place>;
    /// The file of the code, if it is available and certainly the mapped one.
    fn open(&mut self, address: u64) -> Option<Image>;
}

/// The reason why unwinding ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The outermost function, or a function whose caller cannot be found.
    Outermost,
    /// The stack is longer than its copy.
    Copy,
    /// The file of the code is missing or is another one.
    FileMissing,
}

/// Unwinds stacks.
#[derive(Debug)]
pub(crate) struct Unwinder {
    tables: Map<FileKey, TableState>,
    tables_bytes: usize,
    rules: Map<(FileKey, u64), Option<Rc<Rule>>>,
    context: UnwindContext<usize>,
}

#[derive(Debug, Clone)]
enum TableState {
    Loaded(Rc<Table>),
    /// The file has no table.
    None,
    /// The file cannot be opened in one process, but may be in another. This many tries are left.
    Missing(u8),
}

/// The unwind information for an address.
enum Lookup {
    Rule(Rc<Rule>, Rc<Table>),
    Nothing,
    TooCostly,
    Missing,
}

impl Default for Unwinder {
    fn default() -> Self {
        Self {
            tables: Map::default(),
            tables_bytes: 0,
            rules: Map::default(),
            context: UnwindContext::new(),
        }
    }
}

impl Unwinder {
    /// The addresses of a stack, innermost first: the current one, then that of each call.
    pub(crate) fn unwind(
        &mut self,
        mut registers: Registers,
        stack: &[u8],
        space: &mut impl Space,
        out: &mut Vec<u64>,
    ) -> End {
        let (Some(mut at), Some(start)) = (registers.program_counter(), registers.stack_pointer())
        else {
            return End::Outermost;
        };
        let arch = registers.arch;
        let mut memory = Memory::new(start, stack, EXPRESSIONS_MAX);
        let mut left = WORK_MAX;
        let mut is_exact = true;
        for depth in 0..DEPTH_MAX {
            // A caller's address is the one after its call, which may be in another function.
            let inside = at.wrapping_sub(u64::from(!is_exact));
            out.push(inside);
            let (known, is_file) = match space.place(inside) {
                Some(Place { file: Some(file), offset }) => {
                    (self.look_up(arch, file, offset, inside, space, &mut left), true)
                }
                Some(_) => (Lookup::Nothing, false),
                None => return End::Outermost,
            };
            memory.is_exceeded = false;
            let caller = match &known {
                Lookup::Missing => return End::FileMissing,
                Lookup::TooCostly => return End::Outermost,
                Lookup::Rule(rule, _) if rule.is_outermost => return End::Outermost,
                Lookup::Rule(rule, table) => rule.apply(&registers, &table.section, &mut memory),
                // Code in a file but in no table is assembler, which seldom sets up a frame.
                Lookup::Nothing if is_exact && is_file => without_frame(&registers, &mut memory)
                    .filter(|caller| leads_on(caller, space))
                    .or_else(|| by_frame_pointer(&registers, &mut memory)),
                Lookup::Nothing => by_frame_pointer(&registers, &mut memory),
            };
            let is_signal = matches!(&known, Lookup::Rule(rule, _) if rule.is_signal);
            let caller = caller.filter(|caller| {
                let (before, after) = (registers.stack_pointer(), caller.stack_pointer());
                // Only the innermost function may use no stack.
                after > before || (depth == 0 && after == before)
            });
            let next = caller.as_ref().and_then(|caller| caller.get(arch.return_address()));
            let (Some(mut caller), Some(next)) = (caller, next.map(|next| arch.code(next))) else {
                return if memory.is_exceeded { End::Copy } else { End::Outermost };
            };
            if next == 0 || space.place(next.wrapping_sub(u64::from(!is_signal))).is_none() {
                return End::Outermost;
            }
            // On x86-64 it has a register of its own; on aarch64 the caller has saved it.
            caller.set(arch.return_address(), (arch == Arch::X86_64).then_some(next));
            (registers, at, is_exact) = (caller, next, is_signal);
        }
        End::Outermost
    }

    fn look_up(
        &mut self,
        arch: Arch,
        file: FileKey,
        offset: u64,
        address: u64,
        space: &mut impl Space,
        left: &mut usize,
    ) -> Lookup {
        let table = match self.tables.get(&file) {
            None => self.read(arch, file, address, space, MISSING_TRIES),
            Some(TableState::Missing(tries @ 1..)) => {
                let tries = *tries;
                self.read(arch, file, address, space, tries)
            }
            Some(table) => table.clone(),
        };
        let table = match table {
            TableState::Loaded(table) => table,
            TableState::None => return Lookup::Nothing,
            TableState::Missing(_) => return Lookup::Missing,
        };
        let known = match self.rules.get(&(file, offset)) {
            Some(rule) => rule.clone(),
            None => {
                let rule = match table.find(offset, &mut self.context, left) {
                    Found::Rule(rule) => Some(Rc::from(rule)),
                    Found::Uncovered => None,
                    Found::TooCostly => return Lookup::TooCostly,
                };
                if self.rules.len() >= RULES_MAX {
                    self.rules.clear();
                }
                self.rules.insert((file, offset), rule.clone());
                rule
            }
        };
        known.map_or(Lookup::Nothing, |rule| Lookup::Rule(rule, table))
    }

    fn read(
        &mut self,
        arch: Arch,
        file: FileKey,
        address: u64,
        space: &mut impl Space,
        tries: u8,
    ) -> TableState {
        let table = match space.open(address) {
            None => TableState::Missing(tries - 1),
            Some(image) => {
                let table = match image {
                    Image::File(file) => Table::read(&ReadCache::new(file), arch),
                    Image::Memory(bytes) => Table::read(&bytes[..], arch),
                };
                table.map_or(TableState::None, |table| TableState::Loaded(Rc::new(table)))
            }
        };
        if let TableState::Loaded(table) = &table {
            self.tables_bytes += table.size();
        }
        if self.tables_bytes > TABLES_BYTES_MAX || self.tables.len() >= FILES_MAX {
            self.tables.clear();
            self.tables_bytes = 0;
        }
        self.tables.insert(file, table.clone());
        table
    }
}

/// The caller of a function that has not changed stack and registers.
fn without_frame(registers: &Registers, memory: &mut Memory<'_>) -> Option<Registers> {
    let arch = registers.arch;
    let stack = registers.stack_pointer()?;
    let mut caller = registers.clone();
    if arch == Arch::X86_64 {
        caller.set(arch.return_address(), Some(memory.word(stack)?));
        caller.set(arch.stack_pointer(), stack.checked_add(8));
    }
    Some(caller)
}

/// The caller by the frame pointer. On both processors it points to the caller's frame pointer, and
/// the return address follows.
fn by_frame_pointer(registers: &Registers, memory: &mut Memory<'_>) -> Option<Registers> {
    let arch = registers.arch;
    let frame = registers.get(arch.frame_pointer())?;
    if frame % 8 != 0 || frame < registers.stack_pointer()? {
        return None;
    }
    let mut caller = Registers::none(arch);
    caller.set(arch.frame_pointer(), Some(memory.word(frame)?));
    caller.set(arch.return_address(), Some(memory.word(frame.checked_add(8)?)?));
    caller.set(arch.stack_pointer(), frame.checked_add(16));
    Some(caller)
}

/// Whether a return address leads to code.
fn leads_on(caller: &Registers, space: &impl Space) -> bool {
    let arch = caller.arch;
    let next = caller.get(arch.return_address()).map(|next| arch.code(next));
    next.and_then(|next| space.place(next.checked_sub(1)?)).is_some()
}

#[cfg(test)]
mod tests;
