//! Turns addresses into names. Kernel addresses are looked up in kallsyms first and in the files of
//! modules second, user addresses in the files of programs. If a name is missing, the result is the
//! reason, and [`advice()`] has the remedy.
//!
//! A name is only given if it is known to be right. Symbols of this machine name a recording only
//! if this kernel made it in this boot, which the address of `_text` proves. Files are used only if
//! their build-id is the recorded one.

pub mod advice;
mod files;
mod kallsyms;
mod module;
mod user;

use std::path::PathBuf;

use crate::model::{Map, Reason};

pub use advice::{System, advice, advice_for};
pub(crate) use files::Mapped;
use files::{Files, same_build};
pub use kallsyms::Kallsyms;
pub use module::{ModuleFile, candidates};
use user::UserSymbols;

/// Names of addresses remembered at most.
const NAMES_MAX: usize = 2_000_000;
/// Build-ids remembered at most.
const BUILD_IDS_MAX: usize = 100_000;

/// The allowed sources of names.
#[derive(Debug, Clone, Default)]
pub struct SymbolOptions {
    /// A copy of /proc/kallsyms from the machine and boot of the profile.
    pub kallsyms: Option<Vec<u8>>,
    /// Whether this machine's kallsyms, modules and files may be used.
    pub local: bool,
    /// Whether the processes of the profile still run.
    pub live: bool,
    /// Directories to search for modules and programs before those of this machine. For programs
    /// each acts as a root directory.
    pub roots: Vec<PathBuf>,
}

/// The name of a kernel address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) symbol: String,
    pub(crate) module: String,
}

/// All sources of names for one profile.
#[derive(Debug)]
pub(crate) struct Symbols {
    options: SymbolOptions,
    kallsyms: Option<Kallsyms>,
    /// Whether `kallsyms` is this machine's, which needs proof.
    kallsyms_local: bool,
    /// Whether the proof was found.
    proven: bool,
    no_kallsyms: Reason,
    release: String,
    is_of_this_kernel: bool,
    added: std::collections::BTreeMap<u64, (u64, String)>,
    modules: Map<String, Result<ModuleFile, Reason>>,
    build_ids: Map<String, Vec<u8>>,
    user: Option<UserSymbols>,
    notes: Vec<String>,
}

impl Symbols {
    pub(crate) fn new(options: SymbolOptions) -> Self {
        let given = options.kallsyms.as_deref().map(Kallsyms::parse);
        Self {
            kallsyms: given,
            kallsyms_local: false,
            proven: false,
            no_kallsyms: Reason::ModuleUnknown,
            release: String::new(),
            is_of_this_kernel: false,
            added: std::collections::BTreeMap::new(),
            modules: Map::default(),
            build_ids: Map::default(),
            user: None,
            notes: Vec::new(),
            options,
        }
    }

    /// Sets the kernel release of the profile, and loads this machine's symbols if it runs that
    /// release.
    pub(crate) fn set_release(&mut self, release: &str) {
        release.clone_into(&mut self.release);
        let here = rustix::system::uname().release().to_string_lossy().into_owned();
        let same = release.is_empty() || release == here;
        self.is_of_this_kernel = self.options.local && same;
        if self.is_of_this_kernel {
            self.user =
                Some(UserSymbols::new(Files::new(self.options.live, self.options.roots.clone())));
            if release.is_empty() {
                self.release = here;
            }
            if self.kallsyms.is_none() {
                self.load_kallsyms();
            }
            return;
        }
        if !self.options.roots.is_empty() {
            self.user = Some(UserSymbols::new(Files::new(false, self.options.roots.clone())));
        }
        if self.options.local {
            self.notes.push(format!(
                "recorded on kernel {release}, this is {here}: this machine's symbols are not used"
            ));
        }
        self.no_kallsyms = Reason::OtherKernel;
    }

    fn load_kallsyms(&mut self) {
        match std::fs::read("/proc/kallsyms") {
            Ok(text) => {
                let table = Kallsyms::parse(&text);
                if table.is_hidden() {
                    self.no_kallsyms = Reason::KallsymsHidden;
                } else {
                    self.kallsyms = Some(table);
                    self.kallsyms_local = true;
                }
            }
            Err(_) => self.no_kallsyms = Reason::KallsymsHidden,
        }
    }

    /// Sets the recorded address of a kernel reference symbol. This machine's table is dropped if
    /// its address differs, because that is another boot or another kernel.
    pub(crate) fn set_kernel_reference(&mut self, path: &str, start: u64, offset: u64) {
        let Some(name) = path.strip_prefix("[kernel.kallsyms]") else { return };
        let Some(table) = &self.kallsyms else { return };
        let Some(ours) = table.reference(name) else { return };
        // The recorder stores the reference symbol's address in the field of the file offset.
        let theirs = if offset == 0 { start } else { offset };
        self.proven = ours == theirs || ours == start;
        if self.kallsyms_local && !self.options.live && !self.proven {
            self.notes.push(
                "the kernel had another address in the recording (another boot): kernel \
                 symbols of this machine are not used; save /proc/kallsyms beside a recording"
                    .to_owned(),
            );
            self.kallsyms = None;
            self.no_kallsyms = Reason::OtherKernel;
        }
    }

    /// Adds the recorded build-id of a file.
    pub(crate) fn add_build_id(&mut self, path: &str, id: &[u8]) {
        if self.build_ids.len() < BUILD_IDS_MAX && id.iter().any(|byte| *byte != 0) {
            self.build_ids.insert(path.to_owned(), id.to_vec());
        }
    }

    /// Adds a symbol that appeared during the recording: a BPF program, a trampoline.
    pub(crate) fn add_kernel_symbol(&mut self, address: u64, len: u64, name: &str) {
        if self.added.len() < NAMES_MAX {
            self.added.insert(address, (len, name.to_owned()));
        }
    }

    /// The name of a kernel address; `map` is its module (name, path, start).
    pub(crate) fn kernel(
        &mut self,
        address: u64,
        map: Option<(&str, &str, u64)>,
    ) -> Result<Named, Reason> {
        if let Some((start, (len, name))) = self.added.range(..=address).next_back()
            && address - start < *len
        {
            return Ok(Named { symbol: name.clone(), module: "[bpf]".to_owned() });
        }
        let is_module = map.is_some_and(|(name, ..)| name != "[kernel.kallsyms]");
        let mut reason = self.no_kallsyms;
        let usable = self.options.live || self.proven || !self.kallsyms_local;
        if let Some(table) = self.kallsyms.as_ref().filter(|_| usable) {
            let covered = match map {
                Some((name, ..)) if is_module => table.has_module(name),
                _ => true,
            };
            if let Some((symbol, module)) = table.find(address).filter(|_| covered)
                && (!is_module || map.is_some_and(|(name, ..)| name == module))
            {
                let module = if module.is_empty() { "[kernel.kallsyms]" } else { module };
                return Ok(Named { symbol: symbol.to_owned(), module: module.to_owned() });
            }
            reason = match map {
                _ if !covered => Reason::ModuleUnknown,
                _ if !table.has_kernel() => Reason::OtherKernel,
                _ => Reason::NoMapping,
            };
        }
        let Some((name, path, start)) = map.filter(|_| is_module) else { return Err(reason) };
        match self.module(name, path) {
            Ok(file) => match file.find(address.saturating_sub(start)) {
                Some(symbol) => Ok(Named { symbol: symbol.to_owned(), module: name.to_owned() }),
                None if file.is_stripped() => Err(Reason::Stripped),
                None => Err(Reason::NoMapping),
            },
            Err(reason) => Err(*reason),
        }
    }

    /// The file of a module, if it is available and the right one.
    fn module(&mut self, name: &str, path: &str) -> &Result<ModuleFile, Reason> {
        if !self.modules.contains_key(name) {
            let file = self.find_module(name, path);
            self.modules.insert(name.to_owned(), file);
        }
        &self.modules[name]
    }

    fn find_module(&self, name: &str, path: &str) -> Result<ModuleFile, Reason> {
        let recorded = self.build_ids.get(name).or_else(|| self.build_ids.get(path));
        let loaded = if self.options.live { loaded_build_id(name) } else { None };
        let expected = loaded.as_ref().or(recorded);
        let mut places = Vec::new();
        if self.options.local || !self.options.roots.is_empty() {
            places = candidates(name, &self.release, &self.options.roots);
            if self.options.local && path.starts_with("/lib/modules/") && !path.contains("..") {
                places.push(PathBuf::from(path));
            }
            if !self.options.local {
                places.retain(|place| self.options.roots.iter().any(|r| place.starts_with(r)));
            }
        }
        let mut reason = match self.no_kallsyms {
            Reason::OtherKernel => Reason::OtherKernel,
            _ => Reason::FileMissing,
        };
        for place in places {
            let Ok(file) = ModuleFile::read(&place) else { continue };
            match (expected, &file.build_id) {
                (Some(expected), Some(found)) if !same_build(expected, found) => {
                    reason = Reason::BuildDiffers;
                }
                // Without a recorded build-id only the file of the running kernel's own module is
                // certain.
                (None, _) if !self.options.live && self.options.roots.is_empty() => {}
                _ if file.is_stripped() => reason = Reason::Stripped,
                _ => return Ok(file),
            }
        }
        Err(reason)
    }

    /// The name at an offset of a program's file.
    pub(crate) fn user(
        &mut self,
        mapped: &Mapped<'_>,
        offset: u64,
        address: u64,
    ) -> Result<&str, Reason> {
        let Some(user) = &mut self.user else {
            return Err(if mapped.path.starts_with('/') {
                Reason::FileMissing
            } else {
                Reason::NoMapping
            });
        };
        let build_id = self.build_ids.get(mapped.path).map(Vec::as_slice);
        user.name(mapped, offset, address, build_id)
    }

    /// A program's file, if it is available and certainly the mapped one.
    pub(crate) fn file(&self, mapped: &Mapped<'_>) -> Option<std::fs::File> {
        let build_id = self.build_ids.get(mapped.path).map(Vec::as_slice);
        let path = self.user.as_ref()?.file(mapped, build_id)?;
        std::fs::File::open(path).ok()
    }

    /// Whether the profile is of the kernel that runs here.
    pub(crate) fn is_of_this_kernel(&self) -> bool {
        self.is_of_this_kernel
    }

    /// Whether the processes of the profile still run.
    pub(crate) fn is_live(&self) -> bool {
        self.options.live
    }

    pub(crate) fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}

/// The build-id of a loaded module: an ELF note in sysfs.
fn loaded_build_id(name: &str) -> Option<Vec<u8>> {
    let name = name.trim_matches(['[', ']']);
    if name.contains(['/', '.']) {
        return None;
    }
    let note = std::fs::read(format!("/sys/module/{name}/notes/.note.gnu.build-id")).ok()?;
    // Name length, descriptor length, type, "GNU\0", descriptor.
    let id = note.get(16..)?;
    (id.len() <= 64).then(|| id.to_vec())
}
