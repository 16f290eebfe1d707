//! Reads the files of kernel modules: `.ko`, and `.ko.zst`, `.ko.xz`, `.ko.gz`, which DKMS and
//! distributions ship and perf cannot all read. They are recognised by content and decompressed in
//! memory.
//!
//! A module's file is relocatable: a symbol is a section and an offset. `/sys/module/M/sections`
//! has the sections' addresses while the module is loaded. Otherwise they follow from the kernel's
//! layout rule (Linux `kernel/module/main.c`, `layout_sections`): executable sections first, in the
//! file's order, each aligned, without those for initialisation.

use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use object::{Object as _, ObjectSection as _, ObjectSymbol as _, SectionFlags, SymbolKind};

use crate::read::decompress;

/// A module with debug information is some 100 MiB.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Functions of one module by offset from the start of its code.
#[derive(Debug, Clone, Default)]
pub struct ModuleFile {
    functions: Vec<(u64, u64, String)>,
    /// The build-id, if the file has one.
    pub build_id: Option<Vec<u8>>,
    /// Whether it has debug information (lines, inlined functions).
    pub has_debug: bool,
}

impl ModuleFile {
    /// Reads a file, compressed or not.
    ///
    /// # Errors
    ///
    /// The file cannot be read or decompressed, is over 1 GiB, or is not an ELF file.
    pub fn read(path: &Path) -> io::Result<Self> {
        let file = std::fs::OpenOptions::new()
            .read(true)
            // A name from a recording may be a pipe or a device, so the open must not block.
            .custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed())
            .open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        let mut bytes = Vec::new();
        io::Read::read_to_end(&mut io::Read::take(file, FILE_BYTES_MAX), &mut bytes)?;
        Self::parse(&decompress(&bytes, FILE_BYTES_MAX)?)
    }

    /// Reads an ELF file from memory.
    ///
    /// # Errors
    ///
    /// The bytes are not an ELF file.
    pub fn parse(bytes: &[u8]) -> io::Result<Self> {
        let invalid = |error: object::Error| io::Error::new(io::ErrorKind::InvalidData, error);
        let file = object::File::parse(bytes).map_err(invalid)?;
        let mut starts = hashbrown::HashMap::new();
        let mut at = 0u64;
        for section in file.sections() {
            let name = section.name().unwrap_or_default();
            let SectionFlags::Elf { sh_flags } = section.flags() else { continue };
            let code = u64::from(object::elf::SHF_ALLOC | object::elf::SHF_EXECINSTR);
            if sh_flags & code != code || name.starts_with(".init") {
                continue;
            }
            let align = section.align().max(1);
            at = at.checked_next_multiple_of(align).unwrap_or(at);
            starts.insert(section.index(), at);
            at = at.saturating_add(section.size());
        }
        let mut functions: Vec<(u64, u64, String)> = file
            .symbols()
            .filter(|symbol| matches!(symbol.kind(), SymbolKind::Text | SymbolKind::Unknown))
            .filter_map(|symbol| {
                let start = starts.get(&symbol.section_index()?)?;
                let name = symbol.name().ok().filter(|name| is_function(name))?;
                let offset = start.checked_add(symbol.address())?;
                Some((offset, symbol.size(), name.to_owned()))
            })
            .collect();
        functions.sort_unstable_by(|a, b| (a.0, b.1, &a.2).cmp(&(b.0, a.1, &b.2)));
        functions.dedup_by_key(|function| function.0);
        let has_debug = file.section_by_name(".debug_info").is_some();
        let build_id = file.build_id().ok().flatten().map(<[u8]>::to_vec);
        Ok(Self { functions, build_id, has_debug })
    }

    /// Whether it has no function name at all.
    pub fn is_stripped(&self) -> bool {
        self.functions.is_empty()
    }

    /// The number of functions with a name.
    pub fn len(&self) -> usize {
        self.functions.len()
    }

    /// Whether no function has a name.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// The function at an offset from the start of the module's code.
    pub fn find(&self, offset: u64) -> Option<&str> {
        let after = self.functions.partition_point(|(start, ..)| *start <= offset);
        let (start, size, name) = self.functions.get(after.checked_sub(1)?)?;
        (*size == 0 || offset - start < *size).then_some(name.as_str())
    }
}

/// Whether a symbol is a function instead of a mark of the compiler or of objtool.
fn is_function(name: &str) -> bool {
    !name.is_empty() && !name.starts_with(['.', '$']) && !name.starts_with("__pfx_")
}

/// Possible files of a module for a kernel release, best first: the places of distributions, DKMS
/// and debug packages.
pub fn candidates(module: &str, release: &str, extra: &[PathBuf]) -> Vec<PathBuf> {
    let name = module.trim_matches(['[', ']']);
    // Names from recordings must not contain a path.
    let plain = |text: &str| {
        !text.is_empty()
            && text != ".."
            && text.chars().all(|c| c.is_ascii_alphanumeric() || "._+-~".contains(c))
    };
    if !plain(name) || !plain(release) {
        return Vec::new();
    }
    let modules = Path::new("/lib/modules").join(release);
    let mut roots: Vec<PathBuf> = extra.to_vec();
    for below in ["updates/dkms", "extra", "updates", "weak-updates", "kernel"] {
        roots.push(modules.join(below));
    }
    roots.push(Path::new("/usr/lib/debug/lib/modules").join(release));
    let mut found = Vec::new();
    for root in &roots {
        search(root, name, 0, &mut 20_000, &mut found);
    }
    found
}

/// Searches a directory, with limits on depth and on the number of entries.
fn search(at: &Path, name: &str, depth: u32, left: &mut u32, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(at) else { return };
    for entry in entries.flatten() {
        *left = left.saturating_sub(1);
        if *left == 0 || found.len() >= 16 {
            return;
        }
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            if depth < 8 {
                search(&entry.path(), name, depth + 1, left, found);
            }
            continue;
        }
        let file = entry.file_name().to_string_lossy().replace('-', "_");
        let stem = file.split(".ko").next().unwrap_or_default();
        if file.contains(".ko") && stem == name {
            found.push(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::write;
    use std::io::Write as _;

    /// A relocatable file that begins with a section for initialisation, as modules do.
    fn module() -> Vec<u8> {
        let mut file = write::Object::new(
            object::BinaryFormat::Elf,
            object::Architecture::X86_64,
            object::Endianness::Little,
        );
        let mut section = |name: &str, len: usize| {
            let id = file.add_section(Vec::new(), name.into(), object::SectionKind::Text);
            file.append_section_data(id, &vec![0x90; len], 16);
            id
        };
        let init = section(".init.text", 64);
        let text = section(".text", 100);
        let unlikely = section(".text.unlikely", 32);
        let mut symbol = |name: &str, section, value, size| {
            file.add_symbol(write::Symbol {
                name: name.into(),
                value,
                size,
                kind: SymbolKind::Text,
                scope: object::SymbolScope::Compilation,
                weak: false,
                section: write::SymbolSection::Section(section),
                flags: object::SymbolFlags::None,
            });
        };
        symbol("init_module", init, 0, 64);
        symbol("arc_evict", text, 0, 40);
        symbol("arc_prune", text, 48, 20);
        symbol("arc_panic", unlikely, 0, 32);
        file.write().unwrap()
    }

    #[test]
    fn functions_are_found_at_the_kernels_layout() {
        let module = ModuleFile::parse(&module()).unwrap();
        assert_eq!(module.find(0), Some("arc_evict"));
        assert_eq!(module.find(39), Some("arc_evict"));
        assert_eq!(module.find(45), None);
        assert_eq!(module.find(50), Some("arc_prune"));
        // 100 bytes of text, aligned to 16.
        assert_eq!(module.find(112), Some("arc_panic"));
        assert_eq!(module.find(200), None);
        assert!(!module.is_stripped() && !module.has_debug);
    }

    #[test]
    fn compressed_modules_are_recognised_by_content() {
        let plain = module();
        let dir = tempfile::tempdir().unwrap();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&plain).unwrap();
        let mut xz = xz2::write::XzEncoder::new(Vec::new(), 1);
        xz.write_all(&plain).unwrap();
        for (name, bytes) in [
            ("zfs.ko", plain.clone()),
            ("zfs.ko.zst", zstd::encode_all(&plain[..], 3).unwrap()),
            ("zfs.ko.xz", xz.finish().unwrap()),
            ("zfs.ko.gz", gzip.finish().unwrap()),
        ] {
            let path = dir.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(ModuleFile::read(&path).unwrap().find(50), Some("arc_prune"), "{name}");
        }
        let release = "6.1.0-test";
        let found = candidates("[zfs]", release, &[dir.path().to_owned()]);
        assert_eq!(found.len(), 4);
        assert_eq!(candidates("[../zfs]", release, &[dir.path().to_owned()]).len(), 0);
    }

    #[test]
    fn a_file_of_another_kind_is_an_error() {
        assert!(ModuleFile::parse(b"not an ELF file").is_err());
        assert!(ModuleFile::read(Path::new("/dev/null")).is_err());
        assert!(ModuleFile::read(Path::new("/nonexistent/zfs.ko")).is_err());
    }
}
