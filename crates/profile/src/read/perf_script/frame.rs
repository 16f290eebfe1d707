//! A frame of `perf script`: an address, and the symbol, offset and module if they are known.

/// A frame of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'t> {
    /// The address of the code.
    pub address: u64,
    /// Empty for `[unknown]`.
    pub symbol: &'t str,
    /// The text in parentheses; empty without them.
    pub module: &'t str,
}

impl<'t> Frame<'t> {
    /// Reads `ffffffff83c87970 do_user_addr_fault+0xd0 ([kernel.kallsyms])`. Without symbol and
    /// module the address must have enough digits.
    pub(super) fn parse(line: &'t str) -> Option<Self> {
        let line = without_instruction(line).trim();
        let (address, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
        let rest = rest.trim();
        if rest.is_empty() && address.len() < 5 {
            return None;
        }
        let address = address_of(address)?;
        let open = [" (/", " (["].iter().filter_map(|mark| rest.rfind(mark)).max();
        let open = open.or_else(|| rest.rfind(" ("));
        let (symbol, module) = match open {
            Some(at) if rest.ends_with(')') => (&rest[..at], &rest[at + 2..rest.len() - 1]),
            _ if rest.starts_with('(') && rest.ends_with(')') => ("", &rest[1..rest.len() - 1]),
            _ => (rest, ""),
        };
        let symbol = without_offset(symbol).trim();
        let symbol = if symbol == "[unknown]" { "" } else { symbol };
        let module = without_offset(module);
        let module = module.strip_suffix(" (deleted)").unwrap_or(module);
        Some(Self { address, symbol, module })
    }

    /// Finds the frame at the end of a sample's line in a recording without call graphs. Flags, an
    /// accessed address, weights and more may precede it.
    pub(super) fn at_end(rest: &'t str) -> Option<Self> {
        let mut found = None;
        for (number, word) in rest.split_ascii_whitespace().enumerate() {
            // Text after a frame's address may be hexadecimal, but is shorter than an address.
            if address_of(word).is_some() && (number == 0 || word.len() >= 8) {
                found = Some((number, word));
            } else if found.is_some() {
                break;
            }
        }
        let (number, word) = found?;
        let frame = Self::parse(&rest[word.as_ptr() as usize - rest.as_ptr() as usize..])?;
        let certain = ["+0x", "[unknown]"].iter().any(|mark| rest.contains(mark));
        let is_alone = number == 0 && (word.len() >= 5 || certain);
        (is_alone || !frame.module.is_empty()).then_some(frame)
    }

    /// Whether it has more than an address and a word.
    pub(super) fn is_certain(&self) -> bool {
        !self.module.is_empty() || self.address >= 1 << 32
    }

    /// Whether its apparent address is the name of a program and the real address follows.
    pub(super) fn has_second_address(&self) -> bool {
        let mut words = self.symbol.split_ascii_whitespace();
        words.any(|word| word.len() >= 8 && address_of(word).is_some())
    }

    /// Whether it is kernel code.
    pub fn is_kernel(&self) -> bool {
        if self.address >= 1 << 63 {
            return true;
        }
        let brackets = self.module.starts_with('[');
        let user = ["[unknown]", "[vdso]", "[vsyscall]", "[heap]", "[stack]", "[JIT]", "[uprobes]"];
        (brackets && !user.contains(&self.module) && !self.module.starts_with("[anon"))
            || self.module.starts_with("/lib/modules/")
    }
}

/// An address: hexadecimal digits without a mark.
pub(super) fn address_of(word: &str) -> Option<u64> {
    if !word.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)) {
        return None;
    }
    u64::from_str_radix(word, 16).ok()
}

/// Removes the output of `-F insn,insnlen`.
fn without_instruction(line: &str) -> &str {
    let ends = [" ilen: ", " insn: "].iter().filter_map(|mark| line.find(mark));
    ends.min().map_or(line, |end| &line[..end])
}

fn without_offset(text: &str) -> &str {
    match text.rsplit_once("+0x") {
        Some((name, offset)) if offset.bytes().all(|byte| byte.is_ascii_hexdigit()) => name,
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(frame: Option<Frame<'_>>) -> Option<(u64, &str, &str)> {
        frame.map(|frame| (frame.address, frame.symbol, frame.module))
    }

    #[test]
    fn frames_are_read_with_blanks_and_parentheses() {
        for (line, expected) in [
            (
                "\tffffffff83c87970 do_user_addr_fault+0xd0 ([kernel.kallsyms])",
                Some((0xffff_ffff_83c8_7970, "do_user_addr_fault", "[kernel.kallsyms]")),
            ),
            (
                "  7f1 std::vector<int (*)(char)>::push(int) const+0x1 (/usr/lib/a b.so (deleted))",
                Some((0x7f1, "std::vector<int (*)(char)>::push(int) const", "/usr/lib/a b.so")),
            ),
            ("  3309d [unknown] (/usr/lib/libc.so.6)", Some((0x3309d, "", "/usr/lib/libc.so.6"))),
            ("  12 inner (inlined)", Some((0x12, "inner", "inlined"))),
            (
                "\t7f12 read+0x4 (/usr/lib/libc.so.6+0x9a4)",
                Some((0x7f12, "read", "/usr/lib/libc.so.6")),
            ),
            (
                "\t    9c51fd34 String.hashCode ([JIT app cache])",
                Some((0x9c51_fd34, "String.hashCode", "[JIT app cache]")),
            ),
            ("\tffffffff81000010", Some((0xffff_ffff_8100_0010, "", ""))),
            (
                "\tffffffff81000010 ([kernel.kallsyms])",
                Some((0xffff_ffff_8100_0010, "", "[kernel.kallsyms]")),
            ),
            ("  main.c:12", None),
            ("  dd", None),
            ("", None),
        ] {
            assert_eq!(parts(Frame::parse(line)), expected, "{line}");
        }
    }

    #[test]
    fn a_line_ends_with_its_frame() {
        for (rest, expected) in [
            ("  ffffffff81000010 copy ([k])", Some((0xffff_ffff_8100_0010, "copy", "[k]"))),
            ("   call      7f1000000010 f (/x)", Some((0x7f10_0000_0010, "f", "/x"))),
            (" 7ffd12345678  7f1000000010 f (/x)", Some((0x7f10_0000_0010, "f", "/x"))),
            ("  0 [unknown] ([unknown])", Some((0, "", "[unknown]"))),
            ("  401136 main (/b) ilen: 3 insn: 0f 1f 00", Some((0x40_1136, "main", "/b"))),
            ("   401136 main", Some((0x40_1136, "main", ""))),
            ("prev_comm=dd prev_pid=1 ==> next_comm=bc", None),
            ("call_site=ffffffff81092295 ptr=(nil)", None),
            ("8,0 W 4096 () 12345678 + 8 [dd]", None),
            ("", None),
        ] {
            assert_eq!(parts(Frame::at_end(rest)), expected, "{rest}");
        }
    }
}
