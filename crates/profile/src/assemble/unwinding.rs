//! Unwinds user stacks that the kernel delivers as registers and a copy of memory. This needs the
//! files of the code. A note gives the share of stacks that could not be unwound, and of those in
//! records of their own.

use std::os::unix::fs::FileExt as _;

use super::sample::SampleFields;
use super::tasks::{Mapping, Tasks};
use crate::model::{Meta, Profile, samples_of};
use crate::symbols::{Mapped, Symbols};
use crate::unwind::{Arch, End, Image, Place, Space, Unwinder};

/// Code that the kernel maps into every process.
const VDSO: &str = "[vdso]";
/// Bytes of the vDSO at most.
const VDSO_BYTES_MAX: u64 = 1 << 20;

/// Unwinds stacks and counts the outcomes.
#[derive(Debug, Default)]
pub(super) struct Unwinding {
    unwinder: Unwinder,
    addresses: Vec<u64>,
    samples: u64,
    /// Samples whose user stack is a copy that could not be unwound.
    not_unwound: u64,
    deferred: u64,
}

/// A process, as an unwinder sees it.
pub(super) struct Process<'p> {
    pub(super) pid: i32,
    pub(super) tasks: &'p Tasks,
    pub(super) symbols: &'p Symbols,
    pub(super) profile: &'p Profile,
}

impl Unwinding {
    /// Counts a sample and unwinds its copy of the stack. Returns the addresses, innermost first,
    /// and whether the stack goes on beyond the copy. `None` if the sample has no copy or it cannot
    /// be unwound.
    pub(super) fn unwind(
        &mut self,
        fields: &SampleFields<'_>,
        mut process: Process<'_>,
    ) -> Option<(&[u64], bool)> {
        self.samples += 1;
        self.deferred += u64::from(fields.is_deferred());
        let copy = fields.copy?;
        self.addresses.clear();
        let end = process.arch().map(|arch| {
            let registers = copy.registers(arch);
            self.unwinder.unwind(registers, copy.stack, &mut process, &mut self.addresses)
        });
        if self.addresses.is_empty() || end == Some(End::FileMissing) {
            self.not_unwound += 1;
        }
        let is_whole = end != Some(End::Copy);
        (!self.addresses.is_empty()).then_some((&self.addresses, !is_whole))
    }

    /// Resets the counts.
    pub(super) fn forget(&mut self) {
        (self.samples, self.not_unwound, self.deferred) = (0, 0, 0);
    }

    pub(super) fn note(&self, is_live: bool, meta: &mut Meta) {
        let not_unwound = samples_of(self.not_unwound, self.samples);
        // Some programs exit before ogive can read their maps.
        if is_live && self.not_unwound * 100 > self.samples {
            meta.note(format!(
                "{not_unwound} are of programs whose files could not be read in time, so the \
                 callers of their functions are missing"
            ));
        }
        if !is_live && self.not_unwound > 0 {
            meta.note(format!(
                "{not_unwound} have their user stack as a copy of memory (--call-graph dwarf), \
                 which was not unwound, because files with the recorded build-ids are missing \
                 here; run \"perf script -i FILE | ogive profile -\" on the machine that recorded"
            ));
        }
        if self.deferred > 0 {
            meta.note(format!(
                "{} have their user stack in a record of its own (--call-graph fp,defer), which \
                 ogive does not join; use \"perf script -i FILE | ogive profile -\"",
                samples_of(self.deferred, self.samples)
            ));
        }
    }
}

impl Process<'_> {
    fn arch(&self) -> Option<Arch> {
        match &self.profile.meta.arch {
            Some(name) => Arch::of_name(name),
            None if self.symbols.is_of_this_kernel() => Arch::native(),
            None => None,
        }
    }

    fn mapping(&self, address: u64) -> Option<(Mapping, &str)> {
        let mapping = self.tasks.find(self.pid, address)?;
        Some((mapping, self.profile.string(mapping.path)))
    }
}

impl Space for Process<'_> {
    fn place(&self, address: u64) -> Option<Place> {
        let (mapping, path) = self.mapping(address)?;
        let has_table = is_file(path) || path == VDSO;
        let file = has_table.then_some((mapping.path.0, mapping.inode));
        let offset = (address - mapping.start).saturating_add(mapping.offset);
        Some(Place { file, offset })
    }

    fn open(&mut self, address: u64) -> Option<Image> {
        let (mapping, path) = self.mapping(address)?;
        if path == VDSO {
            return vdso().filter(|_| self.symbols.is_of_this_kernel()).map(Image::Memory);
        }
        let Mapping { start, len, inode, .. } = mapping;
        self.symbols.file(&Mapped { pid: self.pid, path, inode, start, len }).map(Image::File)
    }
}

/// Whether a mapping is of a file instead of named memory.
pub(super) fn is_file(path: &str) -> bool {
    path.starts_with('/') && !path.starts_with("//") && !path.starts_with("/memfd:")
}

/// The vDSO of this process, which is the same in every process.
fn vdso() -> Option<Vec<u8>> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| line.ends_with(VDSO))?;
    let (start, end) = line.split_ascii_whitespace().next()?.split_once('-')?;
    let start = u64::from_str_radix(start, 16).ok()?;
    let len = u64::from_str_radix(end, 16).ok()?.checked_sub(start)?;
    let mut bytes = vec![0; usize::try_from(len.min(VDSO_BYTES_MAX)).ok()?];
    std::fs::File::open("/proc/self/mem").ok()?.read_exact_at(&mut bytes, start).ok()?;
    Some(bytes)
}
