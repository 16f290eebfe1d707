//! Kernel symbols as /proc/kallsyms prints them: `ffffffffc0bd4000 t abd_copy_off_cb\t[zfs]`.
//!
//! Only code is kept. If several names share an address, a global name wins over a weak one and a
//! weak over a local one. Then fewer leading underscores win, and then the shorter name.

use crate::model::Map;

/// Symbols at most. The code of a kernel has some 150,000.
const SYMBOLS_MAX: usize = 2_000_000;
/// A symbol reaches to the next one, but at most this far, because other memory follows the last
/// symbol of a module.
const REACH_BYTES_MAX: u64 = 1 << 20;

#[derive(Debug, Clone, Copy)]
struct Symbol {
    address: u64,
    name: u32,
    name_len: u16,
    module: u16,
    rank: u8,
}

/// A table of kernel symbols.
#[derive(Debug, Clone, Default)]
pub struct Kallsyms {
    symbols: Vec<Symbol>,
    names: String,
    modules: Vec<String>,
    /// Whether addresses are shown as zeros.
    hidden: bool,
    references: Vec<(String, u64)>,
}

impl Kallsyms {
    /// Reads the text; invalid lines are left out.
    pub fn parse(text: &[u8]) -> Self {
        let mut table = Self { modules: vec![String::new()], ..Self::default() };
        let mut modules: Map<String, u16> = Map::default();
        let (mut lines, mut zeros) = (0u64, 0u64);
        for line in text.split(|byte| *byte == b'\n') {
            let Ok(line) = std::str::from_utf8(line) else { continue };
            let mut words = line.split_ascii_whitespace();
            let (Some(address), Some(kind), Some(name)) =
                (words.next(), words.next(), words.next())
            else {
                continue;
            };
            let Ok(address) = u64::from_str_radix(address, 16) else { continue };
            lines += 1;
            zeros += u64::from(address == 0);
            // Per-CPU variables have small addresses and are not code.
            let Some(rank) = rank(kind) else { continue };
            if address == 0 || name.len() > 512 || table.symbols.len() >= SYMBOLS_MAX {
                continue;
            }
            if matches!(name, "_text" | "_stext") {
                table.references.push((name.to_owned(), address));
            }
            let module = match words.next() {
                None => 0,
                Some(module) => match modules.get(module) {
                    Some(&known) => known,
                    None => {
                        let new = u16::try_from(table.modules.len()).unwrap_or(0);
                        if new > 0 {
                            table.modules.push(module.to_owned());
                            modules.insert(module.to_owned(), new);
                        }
                        new
                    }
                },
            };
            table.add(address, name, module, rank);
        }
        table.hidden = lines > 0 && zeros == lines;
        table.sort();
        table
    }

    fn add(&mut self, address: u64, name: &str, module: u16, rank: u8) {
        let Ok(at) = u32::try_from(self.names.len()) else { return };
        self.names.push_str(name);
        let name_len = name.len() as u16;
        self.symbols.push(Symbol { address, name: at, name_len, module, rank });
    }

    fn sort(&mut self) {
        let names = &self.names;
        let text = |symbol: &Symbol| name(names, symbol);
        self.symbols.sort_unstable_by(|a, b| {
            a.address
                .cmp(&b.address)
                .then_with(|| b.rank.cmp(&a.rank))
                .then_with(|| underscores(text(a)).cmp(&underscores(text(b))))
                .then_with(|| a.name_len.cmp(&b.name_len))
                .then_with(|| text(a).cmp(text(b)))
        });
        self.symbols.dedup_by_key(|symbol| symbol.address);
    }

    /// Whether all addresses are zeros, because the reader has no permission to see them.
    pub fn is_hidden(&self) -> bool {
        self.hidden
    }

    /// The number of known functions.
    pub fn len(&self) -> usize {
        self.symbols.len()
    }

    /// Whether no function is known.
    pub fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }

    /// Whether any symbol of the kernel itself is known; a saved copy may have only modules.
    pub fn has_kernel(&self) -> bool {
        self.symbols.iter().any(|symbol| symbol.module == 0)
    }

    /// Whether symbols of a module, such as `[zfs]`, are known.
    pub fn has_module(&self, module: &str) -> bool {
        self.modules.iter().any(|known| known == module)
    }

    /// The address of a reference symbol: `_text` or `_stext`.
    pub fn reference(&self, name: &str) -> Option<u64> {
        self.references.iter().find(|(known, _)| known == name).map(|(_, address)| *address)
    }

    /// The function at an address and its module, which is empty for the kernel itself.
    pub fn find(&self, address: u64) -> Option<(&str, &str)> {
        let after = self.symbols.partition_point(|symbol| symbol.address <= address);
        let symbol = self.symbols.get(after.checked_sub(1)?)?;
        if address - symbol.address > REACH_BYTES_MAX {
            return None;
        }
        Some((name(&self.names, symbol), &self.modules[usize::from(symbol.module)]))
    }
}

fn name<'n>(names: &'n str, symbol: &Symbol) -> &'n str {
    let start = symbol.name as usize;
    &names[start..start + usize::from(symbol.name_len)]
}

fn underscores(name: &str) -> usize {
    name.len() - name.trim_start_matches('_').len()
}

/// The rank of a symbol of this type as code; `None` if it is not code. `nm(1)` lists the letters.
fn rank(kind: &str) -> Option<u8> {
    match kind {
        "T" => Some(2),
        "W" | "w" => Some(1),
        "t" => Some(0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
        ffffffff81000000 T _text\n\
        ffffffff81000000 T _stext\n\
        ffffffff81000100 t local_alias\n\
        ffffffff81000100 T __global\n\
        ffffffff81000100 T global\n\
        ffffffff81000100 W weak\n\
        ffffffff81000200 D data\n\
        nonsense\n\
        ffffffffc0bd4000 t abd_copy_off_cb\t[zfs]\n\
        ffffffffc0bd4030 t abd_copy_to_buf_off_cb\t[zfs]\n";

    #[test]
    fn the_best_of_several_names_wins() {
        let table = Kallsyms::parse(TEXT.as_bytes());
        assert_eq!(table.find(0xffff_ffff_8100_0150), Some(("global", "")));
        assert_eq!(table.find(0xffff_ffff_c0bd_4031), Some(("abd_copy_to_buf_off_cb", "[zfs]")));
        assert_eq!(table.find(0xffff_ffff_8000_0000), None);
        assert_eq!(table.find(0xffff_ffff_d000_0000), None);
        assert_eq!(table.reference("_text"), Some(0xffff_ffff_8100_0000));
        assert!(table.has_kernel() && table.has_module("[zfs]") && !table.is_hidden());
    }

    #[test]
    fn zeros_are_hidden_addresses_not_symbols() {
        let table = Kallsyms::parse(b"0000000000000000 T _text\n0000000000000000 t a\t[zfs]\n");
        assert!(table.is_hidden() && table.is_empty());
    }
}
