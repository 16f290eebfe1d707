//! The unwind table of a program or library: `.eh_frame` with its index `.eh_frame_hdr`, or
//! `.debug_frame`.
//!
//! Only these sections are read. The file is untrusted: every offset and length is checked, and the
//! bytes read for one stack have a bound.

use gimli::{
    BaseAddresses, DebugFrame, EhFrame, LittleEndian, UnwindContext, UnwindSection, Vendor,
};
use object::elf::{FileHeader64, ProgramHeader64, SHF_COMPRESSED, SHT_NOBITS, SectionHeader64};
use object::read::elf::{FileHeader as _, ProgramHeader as _, SectionHeader as _};
use object::{Endianness, ReadRef};

use super::registers::Arch;
use super::rule::{Bytes, Rule};

/// Bytes of one section at most. The largest programs have 20 MB.
const SECTION_BYTES_MAX: u64 = 64 << 20;
/// Headers of segments and of sections at most; programs have 40.
const HEADS_MAX: usize = 4096;
/// Entries at most of an index that is built here, because the file has none.
const INDEX_MAX: usize = 2_000_000;
/// Bytes at most of the part that entries share, while an index is built. It has 20 or 30.
const COMMON_BYTES_MAX: usize = 4096;

/// A segment: its offset in the file, its length there, and its address.
#[derive(Debug, Clone, Copy)]
struct Segment {
    offset: u64,
    len: u64,
    address: u64,
}

/// The section that the table is in.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    EhFrame,
    DebugFrame,
}

/// A table.
#[derive(Debug)]
pub(super) struct Table {
    arch: Arch,
    kind: Kind,
    segments: Vec<Segment>,
    pub(super) section: Vec<u8>,
    header: Vec<u8>,
    bases: BaseAddresses,
    /// First address and position of each entry, if the file has no index.
    index: Vec<(u64, u64)>,
}

/// The result of looking up an address.
pub(super) enum Found {
    Rule(Box<Rule>),
    /// No entry has the address.
    Uncovered,
    /// Reading the entry would exceed the work that is left.
    TooCostly,
}

impl Table {
    /// Reads the table of a file.
    pub(super) fn read<'d>(data: impl ReadRef<'d>, arch: Arch) -> Option<Self> {
        let head = FileHeader64::<Endianness>::parse(data).ok()?;
        let endian = head.endian().ok()?;
        if endian != Endianness::Little || !arch.is_machine(head.e_machine(endian)) {
            return None;
        }
        // Files may be sparse, so the bytes read have a bound whatever the length.
        let heads = head.phnum(endian, data).ok()?.max(head.shnum(endian, data).ok()?);
        if heads > HEADS_MAX {
            return None;
        }
        let programs = head.program_headers(endian, data).ok()?;
        let loaded =
            programs.iter().filter(|segment| segment.p_type(endian) == object::elf::PT_LOAD);
        let segments = loaded.map(|loaded| segment(loaded, endian)).collect();
        let sections = head.sections(endian, data).ok()?;
        let bytes = |name: &[u8]| {
            let (_, section) = sections.section_by_name(endian, name)?;
            section_bytes(section, endian, data)
        };
        let mut bases = BaseAddresses::default();
        if let Some((_, text)) = sections.section_by_name(endian, b".text") {
            bases = bases.set_text(text.sh_addr(endian));
        }
        let (kind, section, header) = match bytes(b".eh_frame") {
            Some((address, section)) => {
                bases = bases.set_eh_frame(address);
                (Kind::EhFrame, section, bytes(b".eh_frame_hdr"))
            }
            None => (Kind::DebugFrame, bytes(b".debug_frame")?.1, None),
        };
        let header = header.filter(|(_, header)| is_sorted_table(header));
        let header = header.map(|(address, header)| {
            bases = std::mem::take(&mut bases).set_eh_frame_hdr(address);
            header
        });
        let mut table = Self {
            arch,
            kind,
            segments,
            section,
            header: header.unwrap_or_default(),
            bases,
            index: Vec::new(),
        };
        let rows = table.header.get(8..12).and_then(|count| count.try_into().ok());
        let rows = rows.map_or(0, u32::from_le_bytes) as usize;
        table.header.truncate(rows.saturating_mul(8).saturating_add(12));
        if table.header.is_empty() {
            table.index = match kind {
                Kind::EhFrame => table.entries(&table.eh_frame()),
                Kind::DebugFrame => table.entries(&table.debug_frame()),
            };
        }
        Some(table)
    }

    /// Bytes in memory.
    pub(super) fn size(&self) -> usize {
        self.section.len() + self.header.len() + self.index.len() * 16
    }

    fn eh_frame(&self) -> EhFrame<Bytes<'_>> {
        let mut section = EhFrame::new(&self.section, LittleEndian);
        section.set_address_size(8);
        section.set_vendor(self.vendor());
        section
    }

    fn debug_frame(&self) -> DebugFrame<Bytes<'_>> {
        let mut section = DebugFrame::new(&self.section, LittleEndian);
        section.set_address_size(8);
        section.set_vendor(self.vendor());
        section
    }

    fn vendor(&self) -> Vendor {
        if self.arch == Arch::Aarch64 { Vendor::AArch64 } else { Vendor::Default }
    }

    /// The rule for code at an offset of the file. The bytes read are subtracted from `left`.
    pub(super) fn find(
        &self,
        offset: u64,
        context: &mut UnwindContext<usize>,
        left: &mut usize,
    ) -> Found {
        let within = |s: &&Segment| offset.checked_sub(s.offset).is_some_and(|at| at < s.len);
        let Some(segment) = self.segments.iter().find(within) else { return Found::Uncovered };
        let address = (offset - segment.offset).wrapping_add(segment.address);
        let Some(entry) = self.entry(address) else { return Found::Uncovered };
        match self.kind {
            Kind::EhFrame => self.row(&self.eh_frame(), entry, address, context, left),
            Kind::DebugFrame => self.row(&self.debug_frame(), entry, address, context, left),
        }
    }

    /// The position in the section of the last entry that begins at or before an address.
    fn entry(&self, address: u64) -> Option<usize> {
        let place = if self.header.is_empty() {
            let after = self.index.partition_point(|(start, _)| *start <= address);
            self.index.get(after.checked_sub(1)?)?.1
        } else {
            let base = self.bases.eh_frame_hdr.section?;
            let rows = self.header.get(12..)?.chunks_exact(8);
            let row = |at: usize| -> Option<(u64, u64)> {
                let row = rows.clone().nth(at)?;
                let number = |bytes: &[u8]| bytes.try_into().ok().map(i32::from_le_bytes);
                let near = |offset: i32| base.wrapping_add_signed(i64::from(offset));
                Some((near(number(&row[..4])?), near(number(&row[4..])?)))
            };
            let (mut low, mut high) = (0, rows.len());
            while low < high {
                let middle = low + (high - low) / 2;
                if row(middle)?.0 <= address {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            let (_, entry) = row(low.checked_sub(1)?)?;
            entry.wrapping_sub(self.bases.eh_frame.section?)
        };
        usize::try_from(place).ok().filter(|place| *place < self.section.len())
    }

    /// First address and position of each entry, in the order of addresses.
    fn entries<'s, S: UnwindSection<Bytes<'s>>>(&'s self, section: &S) -> Vec<(u64, u64)> {
        let mut found = Vec::new();
        let mut entries = section.entries(&self.bases);
        while let Ok(Some(entry)) = entries.next() {
            let gimli::CieOrFde::Fde(entry) = entry else { continue };
            let place = entry.offset();
            if found.len() >= INDEX_MAX {
                break;
            }
            if self.lengths(place).is_some_and(|(_, common)| common <= COMMON_BYTES_MAX)
                && let Ok(entry) = entry.parse(S::cie_from_offset)
            {
                found.push((entry.initial_address(), place as u64));
            }
        }
        found.sort_unstable();
        found
    }

    /// The length of an entry and of the part that it shares. Checked before reading, because the
    /// cost of reading grows with them.
    fn lengths(&self, entry: usize) -> Option<(usize, usize)> {
        let number = |at: usize| {
            let bytes = self.section.get(at..at.checked_add(4)?)?;
            bytes.try_into().ok().map(u32::from_le_bytes).map(|number| number as usize)
        };
        let pointer = number(entry.checked_add(4)?)?;
        let common = match self.kind {
            Kind::EhFrame => entry.checked_add(4)?.checked_sub(pointer)?,
            Kind::DebugFrame => pointer,
        };
        Some((number(entry)?, number(common)?))
    }

    fn row<'s, S>(
        &'s self,
        section: &S,
        entry: usize,
        address: u64,
        context: &mut UnwindContext<usize>,
        left: &mut usize,
    ) -> Found
    where
        S: UnwindSection<Bytes<'s>>,
    {
        let Some((own, common)) = self.lengths(entry) else { return Found::Uncovered };
        let Some(rest) = left.checked_sub(own.saturating_add(common)) else {
            return Found::TooCostly;
        };
        *left = rest;
        let fde = section.fde_from_offset(&self.bases, S::Offset::from(entry), S::cie_from_offset);
        let Some(fde) = fde.ok().filter(|fde| fde.contains(address)) else {
            return Found::Uncovered;
        };
        match fde.unwind_info_for_address(section, &self.bases, context, address) {
            Ok(row) => Found::Rule(Box::new(Rule::new(
                row,
                self.arch,
                fde.cie().return_address_register().0,
                fde.cie().encoding(),
                fde.is_signal_trampoline(),
            ))),
            Err(_) => Found::Uncovered,
        }
    }
}

fn segment(header: &ProgramHeader64<Endianness>, endian: Endianness) -> Segment {
    Segment {
        offset: header.p_offset(endian),
        len: header.p_filesz(endian),
        address: header.p_vaddr(endian),
    }
}

/// Address and bytes of a section, if it exists and is not compressed.
fn section_bytes<'d>(
    section: &SectionHeader64<Endianness>,
    endian: Endianness,
    data: impl ReadRef<'d>,
) -> Option<(u64, Vec<u8>)> {
    let packed = section.sh_flags(endian) & u64::from(SHF_COMPRESSED) != 0;
    let absent = section.sh_type(endian) == SHT_NOBITS;
    if packed || absent || section.sh_size(endian) > SECTION_BYTES_MAX {
        return None;
    }
    let bytes = section.data(endian, data).ok()?;
    (!bytes.is_empty()).then(|| (section.sh_addr(endian), bytes.to_vec()))
}

/// Whether a `.eh_frame_hdr` has the form that linkers write: version 1, and a sorted table of
/// pairs of 32-bit offsets from the header.
fn is_sorted_table(header: &[u8]) -> bool {
    matches!(header, [1, 0x1b | 0x3b | 0x0b | 0x03, 0x03, 0x3b, _, _, _, _, _, _, _, _, _, ..])
}
