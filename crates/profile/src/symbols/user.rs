//! Names in programs and libraries, by blazesym; and in generated code, by the maps that runtimes
//! write (`/tmp/perf-PID.map`, Linux `tools/perf/Documentation/jit-interface.txt`).
//!
//! Reading a mangled name costs more than finding it, and a function has many addresses: each name
//! is read once.
//!
//! Paths come out of recordings: only regular files are opened, and a file whose build-id is not
//! the recorded one is not used.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{Input, Symbolizer};
use hashbrown::HashMap;

use super::NAMES_MAX;
use crate::model::{Map, Reason};

/// Bytes of a perf map at most.
const PERF_MAP_BYTES_MAX: u64 = 256 << 20;
/// Files kept open at most; further ones are not named.
const FILES_MAX: usize = 10_000;

#[derive(Debug)]
enum File {
    /// Where it is, and how many more addresses without a symbol its debug information is asked
    /// for.
    Good(PathBuf, u8),
    Bad(Reason),
}

/// Debug information that has no name for so many addresses is not asked again: reading it is dear.
const DEBUG_TRIES: u8 = 3;

type PerfMap = BTreeMap<u64, (u64, String)>;

/// Names in user space.
pub(super) struct UserSymbols {
    symbolizer: Symbolizer,
    files: HashMap<String, File>,
    /// Names as files have them, and as people read them.
    demangled: Map<String, Box<str>>,
    perf_maps: HashMap<i32, Option<PerfMap>>,
    /// Look into the root directory of the process: only for processes of now.
    live: bool,
    roots: Vec<PathBuf>,
}

impl std::fmt::Debug for UserSymbols {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UserSymbols").field("files", &self.files.len()).finish_non_exhaustive()
    }
}

impl UserSymbols {
    pub(super) fn new(live: bool, roots: Vec<PathBuf>) -> Self {
        let symbolizer = Symbolizer::builder()
            .enable_auto_reload(false)
            .enable_code_info(false)
            .enable_inlined_fns(false)
            .enable_demangling(false)
            .build();
        Self {
            symbolizer,
            files: HashMap::new(),
            demangled: Map::default(),
            perf_maps: HashMap::new(),
            live,
            roots,
        }
    }

    /// The function at an offset of a file. `build_id` is the recorded one, if there is one.
    pub(super) fn name(
        &mut self,
        pid: i32,
        path: &str,
        offset: u64,
        address: u64,
        build_id: Option<&[u8]>,
    ) -> Result<&str, Reason> {
        if path == "//anon" || path.starts_with("[anon") || path.starts_with("/memfd:") {
            return self.generated(pid, address);
        }
        if !path.starts_with('/') {
            return Err(Reason::NoMapping);
        }
        self.look_up(pid, path, offset, build_id)
    }

    fn look_up(
        &mut self,
        pid: i32,
        path: &str,
        offset: u64,
        build_id: Option<&[u8]>,
    ) -> Result<&str, Reason> {
        if !self.files.contains_key(path) {
            if self.files.len() >= FILES_MAX {
                return Err(Reason::FileMissing);
            }
            let file = self.check(pid, path, build_id);
            self.files.insert(path.to_owned(), file);
        }
        let (file, tries) = match &self.files[path] {
            File::Good(file, tries) => (file.clone(), *tries),
            File::Bad(reason) => return Err(*reason),
        };
        // The symbol table first: it is enough for names, and small.
        match symbol(&self.symbolizer, &file, offset, false) {
            Ok(Some(name)) => return Ok(demangled(&mut self.demangled, &name)),
            Ok(None) if tries == 0 => return Err(Reason::Stripped),
            Ok(None) => {}
            Err(()) => {
                // Not an ELF file, or a damaged one; it will not get better.
                self.files.insert(path.to_owned(), File::Bad(Reason::FileMissing));
                return Err(Reason::FileMissing);
            }
        }
        if let Ok(Some(name)) = symbol(&self.symbolizer, &file, offset, true) {
            return Ok(demangled(&mut self.demangled, &name));
        }
        self.files.insert(path.to_owned(), File::Good(file, tries - 1));
        Err(Reason::Stripped)
    }

    fn check(&self, pid: i32, path: &str, build_id: Option<&[u8]>) -> File {
        let inside = path.trim_start_matches('/');
        let mut places: Vec<PathBuf> = self.roots.iter().map(|root| root.join(inside)).collect();
        places.push(PathBuf::from(path));
        if self.live && pid > 0 {
            // A container's files are seen through its process.
            places.push(PathBuf::from(format!("/proc/{pid}/root/{inside}")));
        }
        let mut reason = Reason::FileMissing;
        for place in places {
            if !std::fs::metadata(&place).is_ok_and(|data| data.is_file()) {
                continue;
            }
            let Some(wanted) = build_id.filter(|id| !id.is_empty()) else {
                return File::Good(place, DEBUG_TRIES);
            };
            match blazesym::helper::read_elf_build_id(&place) {
                Ok(Some(found)) if same_build(&found, wanted) => {
                    return File::Good(place, DEBUG_TRIES);
                }
                Ok(Some(_)) => reason = Reason::BuildDiffers,
                _ => {}
            }
        }
        File::Bad(reason)
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

/// The name at an offset, as the file has it; with `debug`, of debug information in the file or
/// beside it.
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

/// A name as people read it.
fn demangled<'n>(known: &'n mut Map<String, Box<str>>, name: &str) -> &'n str {
    if known.len() >= NAMES_MAX {
        known.clear();
    }
    known.entry_ref(name).or_insert_with(|| demangle(name).unwrap_or_else(|| name.into()))
}

/// Rust's names first: older ones are C++'s, too, with a checksum at their end.
fn demangle(name: &str) -> Option<Box<str>> {
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return Some(format!("{rust:#}").into());
    }
    let cpp = cpp_demangle::Symbol::new(name).ok()?;
    cpp.demangle().ok().map(String::into_boxed_str)
}

/// Recorders pad build-ids with zeros to 20 bytes.
pub(super) fn same_build(a: &[u8], b: &[u8]) -> bool {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    !short.is_empty() && long.starts_with(short) && long[short.len()..].iter().all(|b| *b == 0)
}

/// Reads a perf map: `START SIZE name`, in hexadecimal. The directory is everybody's, so the file
/// must be a regular one and no link.
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
            // Later lines replace earlier ones: code moves.
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
    fn names_are_shown_as_people_read_them() {
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
        let mut symbols = UserSymbols::new(false, Vec::new());
        let wrong = [7u8; 20];
        assert_eq!(symbols.name(1, own, 0x1000, 0, Some(&wrong)), Err(Reason::BuildDiffers));
        assert_eq!(symbols.name(1, "/dev/zero", 1, 0, None), Err(Reason::FileMissing));
        assert_eq!(symbols.name(1, "[heap]", 1, 0, None), Err(Reason::NoMapping));
        assert!(same_build(&[1, 2], &[1, 2, 0, 0]) && !same_build(&[1, 2], &[1, 2, 3]));
    }
}
