//! Symbolises programs and libraries with blazesym, and generated code with the maps that runtimes
//! write (`/tmp/perf-PID.map`, Linux `tools/perf/Documentation/jit-interface.txt`).
//!
//! Demangling a name costs more than finding it, and a function has many addresses, so each name is
//! demangled once.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{Input, Symbolizer};
use hashbrown::HashMap;

use super::NAMES_MAX;
use super::files::{Files, Mapped};
use crate::model::{Map, Reason};

/// Bytes of a perf map at most.
const PERF_MAP_BYTES_MAX: u64 = 256 << 20;
/// Files kept open at most; functions of further ones get no name.
const FILES_MAX: usize = 10_000;

#[derive(Debug)]
enum File {
    /// The file's path, and the number of further addresses without a symbol for which its debug
    /// information is tried.
    Good(PathBuf, u8),
    Bad(Reason),
}

/// Tries before debug information is given up, because reading it is expensive.
const DEBUG_TRIES: u8 = 3;

type PerfMap = BTreeMap<u64, (u64, String)>;

/// A path and an inode, as a borrowed key.
#[derive(Hash)]
struct Key<'k>(&'k str, u64);

impl Key<'_> {
    fn owned(&self) -> (String, u64) {
        (self.0.to_owned(), self.1)
    }
}

impl hashbrown::Equivalent<(String, u64)> for Key<'_> {
    fn equivalent(&self, known: &(String, u64)) -> bool {
        (self.0, self.1) == (known.0.as_str(), known.1)
    }
}

/// Symbols of user space.
pub(super) struct UserSymbols {
    symbolizer: Symbolizer,
    files: Files,
    /// Files by path and inode. A file in a container may have the same path as another file.
    cache: HashMap<(String, u64), File>,
    /// Names in files, with their demangled forms.
    demangled: Map<String, Box<str>>,
    perf_maps: HashMap<i32, Option<PerfMap>>,
}

impl std::fmt::Debug for UserSymbols {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UserSymbols").field("files", &self.cache.len()).finish_non_exhaustive()
    }
}

impl UserSymbols {
    pub(super) fn new(files: Files) -> Self {
        let symbolizer = Symbolizer::builder()
            .enable_auto_reload(false)
            .enable_code_info(false)
            .enable_inlined_fns(false)
            .enable_demangling(false)
            .build();
        Self {
            symbolizer,
            files,
            cache: HashMap::new(),
            demangled: Map::default(),
            perf_maps: HashMap::new(),
        }
    }

    /// The function at an offset of a file. `build_id` is the recorded one, if the recording has
    /// it.
    pub(super) fn name(
        &mut self,
        mapped: &Mapped<'_>,
        offset: u64,
        address: u64,
        build_id: Option<&[u8]>,
    ) -> Result<&str, Reason> {
        let path = mapped.path;
        if path == "//anon" || path.starts_with("[anon") || path.starts_with("/memfd:") {
            return self.generated(mapped.pid, address);
        }
        if !path.starts_with('/') {
            return Err(Reason::NoMapping);
        }
        self.look_up(mapped, offset, build_id)
    }

    /// The mapped file, if it certainly is that one.
    pub(super) fn file(&self, mapped: &Mapped<'_>, build_id: Option<&[u8]>) -> Option<PathBuf> {
        let found = self.files.find(mapped, build_id).ok().filter(|found| found.is_certain);
        found.map(|found| found.path)
    }

    fn look_up(
        &mut self,
        mapped: &Mapped<'_>,
        offset: u64,
        build_id: Option<&[u8]>,
    ) -> Result<&str, Reason> {
        let key = Key(mapped.path, mapped.inode);
        if !self.cache.contains_key(&key) {
            if self.cache.len() >= FILES_MAX {
                return Err(Reason::FileMissing);
            }
            let file = match self.files.find(mapped, build_id) {
                Ok(found) => File::Good(found.path, DEBUG_TRIES),
                Err(reason) => File::Bad(reason),
            };
            self.cache.insert(key.owned(), file);
        }
        let (file, tries) = match &self.cache[&key] {
            File::Good(file, tries) => (file.clone(), *tries),
            File::Bad(reason) => return Err(*reason),
        };
        // The symbol table comes first: it suffices for names and is small.
        match symbol(&self.symbolizer, &file, offset, false) {
            Ok(Some(name)) => return Ok(demangled(&mut self.demangled, &name)),
            Ok(None) if tries == 0 => return Err(Reason::Stripped),
            Ok(None) => {}
            Err(()) => {
                // The file is damaged or not ELF, so later tries would fail too.
                self.cache.insert(key.owned(), File::Bad(Reason::FileMissing));
                return Err(Reason::FileMissing);
            }
        }
        if let Ok(Some(name)) = symbol(&self.symbolizer, &file, offset, true) {
            return Ok(demangled(&mut self.demangled, &name));
        }
        self.cache.insert(key.owned(), File::Good(file, tries - 1));
        Err(Reason::Stripped)
    }

    fn generated(&mut self, pid: i32, address: u64) -> Result<&str, Reason> {
        let map = self.perf_maps.entry(pid).or_insert_with(|| {
            perf_map(Path::new(&format!("/tmp/perf-{pid}.map"))).filter(|map| !map.is_empty())
        });
        let map = map.as_ref().ok_or(Reason::NoMapping)?;
        let (start, (size, name)) = map.range(..=address).next_back().ok_or(Reason::NoMapping)?;
        if address - start < *size { Ok(name) } else { Err(Reason::NoMapping) }
    }
}

/// The mangled name at an offset. With `debug`, debug information in or next to the file is used.
fn symbol<'s>(
    symbolizer: &'s Symbolizer,
    file: &Path,
    offset: u64,
    debug: bool,
) -> Result<Option<Cow<'s, str>>, ()> {
    let mut elf = Elf::new(file);
    elf.debug_syms = debug;
    let found = symbolizer.symbolize_single(&Source::Elf(elf), Input::FileOffset(offset));
    let symbolized = found.map_err(|_| ())?;
    Ok(symbolized.into_sym().map(|symbol| symbol.name))
}

/// The demangled name.
fn demangled<'n>(known: &'n mut Map<String, Box<str>>, name: &str) -> &'n str {
    if known.len() >= NAMES_MAX {
        known.clear();
    }
    known.entry_ref(name).or_insert_with(|| demangle(name).unwrap_or_else(|| name.into()))
}

/// Tries Rust first: older Rust names are valid C++ names with a checksum at the end.
fn demangle(name: &str) -> Option<Box<str>> {
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return Some(format!("{rust:#}").into());
    }
    let cpp = cpp_demangle::Symbol::new(name).ok()?;
    cpp.demangle().ok().map(String::into_boxed_str)
}

/// Reads a perf map: `START SIZE name`, in hexadecimal. Anyone can write to the directory, so the
/// file must be regular and not a link.
fn perf_map(path: &Path) -> Option<PerfMap> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file = std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
        .ok()?;
    let data = file.metadata().ok()?;
    if !data.is_file() || data.nlink() != 1 {
        return None;
    }
    let mut text = Vec::new();
    std::io::Read::read_to_end(&mut std::io::Read::take(file, PERF_MAP_BYTES_MAX), &mut text)
        .ok()?;
    Some(parse_perf_map(&text))
}

fn parse_perf_map(text: &[u8]) -> PerfMap {
    let mut map = PerfMap::new();
    for line in String::from_utf8_lossy(text).lines() {
        let mut words = line.splitn(3, ' ');
        let (Some(start), Some(size), Some(name)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        let number = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
        if let (Some(start), Some(size)) = (number(start), number(size)) {
            // Later lines replace earlier ones, because code moves.
            map.insert(start, (size, name.to_owned()));
        }
    }
    map
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn perf_maps_name_generated_code() {
        let map = parse_perf_map(b"7f00 20 LazyCompile:~main\nbad\n0x8000 10 with blanks in it\n");
        assert_eq!(map[&0x7f00], (0x20, "LazyCompile:~main".to_owned()));
        assert_eq!(map[&0x8000].1, "with blanks in it");
        assert_eq!(map.len(), 2);
    }

    #[test]
    fn names_are_demangled() {
        let mut known = Map::default();
        for (name, shown) in [
            ("_RNvC6_123foo3bar", "123foo::bar"),
            ("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write"),
            ("_ZN3foo3barEi", "foo::bar(int)"),
            ("read", "read"),
            ("_ZN", "_ZN"),
        ] {
            for _ in 0..2 {
                assert_eq!(demangled(&mut known, name), shown);
            }
        }
        assert_eq!(known.len(), 5);
    }

    #[test]
    fn own_functions_have_names_and_other_builds_are_refused() {
        let own = std::env::current_exe().unwrap();
        let own = own.to_str().unwrap();
        let mut symbols = UserSymbols::new(Files::new(false, Vec::new()));
        let wrong = [7u8; 20];
        for (path, build_id, reason) in [
            (own, Some(&wrong[..]), Reason::BuildDiffers),
            ("/dev/zero", None, Reason::FileMissing),
            ("[heap]", None, Reason::NoMapping),
        ] {
            let mapped = Mapped { pid: 1, path, inode: 0, start: 0, len: 1 };
            assert_eq!(symbols.name(&mapped, 0x1000, 0, build_id), Err(reason), "{path}");
        }
    }
}
