//! Random operations that mostly make sense.
//!
//! The generator looks at the mirror (never at the mount) to find existing names. So most
//! operations succeed, and the others fail in as many ways as the calls have. The same seed over
//! the same mirror gives the same operations.

use std::path::{Path, PathBuf};

use crate::access::SLOTS;
use crate::operation::{
    AllocateKind, AttributeRule, FileKind, LockKind, Moment, OpenMode, Operation, RenameKind,
    SpecialKind,
};

/// Names of a directory level; few, so that operations meet.
const NAMES: [&str; 14] = [
    "alpha",
    "beta",
    "gamma",
    "delta",
    "epsilon",
    "zeta",
    "eta",
    "theta",
    "iota",
    "kappa",
    "a name with spaces",
    "ünïcödé",
    ".hidden",
    "x",
];

/// Attribute names: user and trusted ones, and one that no file has.
const ATTRIBUTES: [&str; 5] =
    ["user.one", "user.two", "user.a.longer.name.of.an.attribute", "trusted.ogive", "user.never"];

/// The known state of the mirror: every path below the root with its kind, sorted.
pub type Known = Vec<(PathBuf, FileKind)>;

/// Makes operations from a seed.
#[derive(Debug)]
pub struct Generator {
    random: fastrand::Rng,
    /// Begins every name directly below the root, so that threads can share a root.
    prefix: String,
    file_bytes_max: u64,
    /// Permissions that no file gets.
    permissions_without: u32,
    /// How deep directories nest.
    depth_max: usize,
}

impl Generator {
    /// A generator whose files stay below `file_bytes_max` and whose names in the root directory
    /// begin with `prefix`.
    #[must_use]
    pub fn new(seed: u64, prefix: String, file_bytes_max: u64) -> Generator {
        let random = fastrand::Rng::with_seed(seed);
        Generator { random, prefix, file_bytes_max, permissions_without: 0, depth_max: 4 }
    }

    /// The same operations, but permissions come without these bits.
    #[must_use]
    pub fn without_permissions(self, bits: u32) -> Generator {
        Generator { permissions_without: bits, ..self }
    }

    /// The random numbers, for decisions that belong to the driver but must follow the seed.
    pub fn random(&mut self) -> &mut fastrand::Rng {
        &mut self.random
    }

    /// The next operation.
    pub fn next(&mut self, known: &Known) -> Operation {
        match self.random.u32(0..100) {
            0..42 => self.on_contents(known),
            42..52 => self.on_slots(),
            52..76 => self.on_names(known),
            76..98 => self.on_attributes(known),
            _ => self.rare(known),
        }
    }

    fn on_contents(&mut self, known: &Known) -> Operation {
        let path = self.existing(known, FileKind::Regular);
        let offset = self.offset();
        let length = self.length();
        let page_offset = offset & !4095;
        let seed = self.random.u64(..);
        let slot = self.slot();
        match self.random.u32(0..20) {
            0..4 => Operation::Open {
                slot,
                path: if self.random.u32(0..3) == 0 { self.fresh(known) } else { path },
                mode: self.open_mode(),
                permissions: self.permissions(),
            },
            4..8 => Operation::ReadWhole { path },
            8 => Operation::DirectWrite {
                path,
                block: offset / 4096,
                blocks: length / 4096 + 1,
                seed,
            },
            9..11 => {
                Operation::DirectRead { path, block: offset / 4096, blocks: length / 4096 + 1 }
            }
            11 | 12 => Operation::TruncatePath { path, size: offset },
            13 => Operation::SeekHoles { path },
            14 | 15 => Operation::MapRead { path, offset: page_offset, length: length.max(1) },
            16..18 => Operation::MapWriteShared { path, offset: page_offset, length, seed },
            18 => Operation::MapWritePrivate { path, offset: page_offset, length, seed },
            _ => Operation::StatusOpen { slot },
        }
    }

    fn on_slots(&mut self) -> Operation {
        let slot = self.slot();
        let offset = self.offset();
        let length = self.length();
        let seed = self.random.u64(..);
        match self.random.u32(0..24) {
            0..7 => Operation::Write { slot, offset, length, seed },
            7..10 => Operation::WriteHere { slot, length, seed },
            10..14 => Operation::Read { slot, offset, length },
            14 | 15 => Operation::TruncateOpen { slot, size: offset },
            16 => Operation::Synchronize { slot, data_only: self.random.bool() },
            17..21 => Operation::Allocate {
                slot,
                kind: self.one_of(&[
                    AllocateKind::Plain,
                    AllocateKind::KeepSize,
                    AllocateKind::PunchHole,
                    AllocateKind::ZeroRange,
                ]),
                offset,
                length: length as u64,
            },
            21..23 => Operation::CopyRange {
                from: slot,
                from_offset: offset,
                to: self.slot(),
                to_offset: self.offset(),
                length,
            },
            _ => Operation::Close { slot },
        }
    }

    fn on_names(&mut self, known: &Known) -> Operation {
        let any = self.any(known);
        match self.random.u32(0..24) {
            0..5 => Operation::Rename {
                from: any,
                to: if self.random.bool() { self.fresh(known) } else { self.any(known) },
                kind: self.one_of(&[
                    RenameKind::Plain,
                    RenameKind::Plain,
                    RenameKind::NoReplace,
                    RenameKind::Exchange,
                ]),
            },
            5..7 => Operation::Link { from: any, to: self.fresh(known) },
            7 => {
                Operation::SymbolicLink { target: self.link_target(known), path: self.fresh(known) }
            }
            8 => Operation::ReadLink { path: self.existing(known, FileKind::Link) },
            9..12 => Operation::Unlink { path: any },
            12..15 => Operation::MakeDirectory {
                path: self.fresh(known),
                permissions: self.permissions() | 0o700,
            },
            15 | 16 => {
                let path = self.existing(known, FileKind::Directory);
                let root = path.as_os_str().is_empty();
                Operation::RemoveDirectory { path: if root { any } else { path } }
            }
            17 => Operation::MakeSpecial {
                path: self.fresh(known),
                kind: self.one_of(&[
                    SpecialKind::Fifo,
                    SpecialKind::Socket,
                    SpecialKind::NullDevice,
                ]),
                permissions: self.permissions(),
            },
            _ => {
                let path = self.existing(known, FileKind::Directory);
                // The shared root holds other threads' names; it is compared with the trees.
                if path.as_os_str().is_empty() && !self.prefix.is_empty() {
                    Operation::Status { path: any, follow: false }
                } else {
                    Operation::ReadDirectory { path }
                }
            }
        }
    }

    fn on_attributes(&mut self, known: &Known) -> Operation {
        let path = self.any(known);
        let name = self.one_of(&ATTRIBUTES).to_owned();
        let seed = self.random.u64(..);
        match self.random.u32(0..22) {
            0..6 => Operation::Status { path, follow: self.random.bool() },
            6 => Operation::Access { path, mode: self.random.u32(0..8) },
            7..9 => Operation::ChangeMode { path, permissions: self.permissions() },
            9 | 10 => Operation::ChangeOwner { path, user: self.owner(), group: self.owner() },
            11..14 => Operation::SetTimes {
                path,
                accessed: self.moment(),
                modified: self.moment(),
                follow: self.random.bool(),
            },
            14..17 => Operation::SetAttribute {
                path,
                name,
                length: self.random.usize(0..600),
                seed,
                rule: self.one_of(&[
                    AttributeRule::Any,
                    AttributeRule::Create,
                    AttributeRule::Replace,
                ]),
            },
            17..19 => Operation::GetAttribute { path, name },
            19 => Operation::ListAttributes { path },
            20 => Operation::RemoveAttribute { path, name },
            _ => Operation::FileSystemStatus,
        }
    }

    fn rare(&mut self, known: &Known) -> Operation {
        const KINDS: [LockKind; 3] = [LockKind::Flock, LockKind::Process, LockKind::OpenFile];
        if self.random.u32(0..8) == 0 {
            let files = self.random.usize(100..400) * 2;
            return Operation::CrowdDirectory { path: self.fresh(known), files };
        }
        Operation::LockConflict {
            path: self.existing(known, FileKind::Regular),
            held: self.one_of(&KINDS),
            tried: self.one_of(&KINDS),
            exclusive: self.random.bool(),
        }
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.random.usize(0..choices.len())]
    }

    fn slot(&mut self) -> usize {
        self.random.usize(0..SLOTS)
    }

    /// Offsets are mostly near record and page borders, where bugs are likely.
    fn offset(&mut self) -> u64 {
        let any = self.random.u64(0..self.file_bytes_max);
        match self.random.u32(0..6) {
            0 => 0,
            1 => any & !4095,
            2 => any & !0x1_ffff,
            3 => (any | 0x1_ffff).min(self.file_bytes_max - 1),
            4 => any % 20_000,
            _ => any,
        }
    }

    fn length(&mut self) -> usize {
        match self.random.u32(0..8) {
            0 => self.random.usize(0..3),
            1 => 4096 * self.random.usize(1..9),
            2 => 131_072,
            3 => self.random.usize(100_000..300_000),
            _ => self.random.usize(1..20_000),
        }
    }

    fn permissions(&mut self) -> u32 {
        let all = [0o644, 0o600, 0o755, 0o444, 0o4755, 0o2755, 0o1777, 0o000, 0o666];
        self.one_of(&all) & !self.permissions_without
    }

    fn owner(&mut self) -> Option<u32> {
        self.one_of(&[None, Some(0), Some(1), Some(1000), Some(65534)])
    }

    /// A time before [`crate::operation::CLOCK_STARTS_SECONDS`].
    fn moment(&mut self) -> Moment {
        (self.random.i64(1..999_999_999), self.random.u32(0..1_000_000_000))
    }

    fn open_mode(&mut self) -> OpenMode {
        let kind = self.random.u32(0..8);
        OpenMode {
            read: kind != 1,
            write: kind != 0,
            append: kind == 2 || kind == 3,
            create: self.random.u32(0..4) != 0,
            exclusive: self.random.u32(0..8) == 0,
            truncate: self.random.u32(0..6) == 0,
        }
    }

    fn existing(&mut self, known: &Known, kind: FileKind) -> PathBuf {
        let count = known.iter().filter(|(_, found)| *found == kind).count();
        if count == 0 || self.random.u32(0..30) == 0 {
            return self.fresh(known);
        }
        let chosen = self.random.usize(0..count);
        let mut of_kind = known.iter().filter(|(_, found)| *found == kind);
        of_kind.nth(chosen).map_or_else(PathBuf::new, |(path, _)| path.clone())
    }

    /// Any name except the root's. The root must not be removed or renamed, and other threads may
    /// share it.
    fn any(&mut self, known: &Known) -> PathBuf {
        if known.is_empty() || self.random.u32(0..20) == 0 {
            return self.fresh(known);
        }
        let path = known[self.random.usize(0..known.len())].0.clone();
        if path.as_os_str().is_empty() { self.fresh(known) } else { path }
    }

    /// A name that may or may not exist, in a directory that does.
    fn fresh(&mut self, known: &Known) -> PathBuf {
        let directories: Vec<&PathBuf> = known
            .iter()
            .filter(|(path, kind)| {
                *kind == FileKind::Directory && path.components().count() < self.depth_max
            })
            .map(|(path, _)| path)
            .collect();
        let parent = match directories.len() {
            0 => PathBuf::new(),
            count => directories[self.random.usize(0..count)].clone(),
        };
        let mut name = self.one_of(&NAMES).to_owned();
        match self.random.u32(0..60) {
            // 255 bytes are allowed, 256 are not.
            0 => name = "n".repeat(255),
            1 => name = "n".repeat(256),
            2 => name = format!("{name}/below"),
            _ => {}
        }
        if parent.as_os_str().is_empty() {
            name.insert_str(0, &self.prefix);
        }
        parent.join(name)
    }

    fn link_target(&mut self, known: &Known) -> PathBuf {
        match self.random.u32(0..4) {
            0 => PathBuf::from("nowhere"),
            1 => PathBuf::from(self.one_of(&NAMES)),
            _ => {
                let path = self.any(known);
                path.file_name().map_or_else(|| PathBuf::from("."), PathBuf::from)
            }
        }
    }
}

/// Every path below `root` whose first name begins with `prefix`, sorted; the root itself is the
/// empty path. Names that can no longer be read are left out.
#[must_use]
pub fn look(root: &Path, prefix: &str) -> Known {
    let mut known = vec![(PathBuf::new(), FileKind::Directory)];
    let mut waiting = vec![PathBuf::new()];
    while let Some(directory) = waiting.pop() {
        let Ok(names) = crate::directory_entries::read_directory(&root.join(&directory)) else {
            continue;
        };
        for (name, kind) in names {
            let Ok(name) = String::from_utf8(name) else {
                continue;
            };
            if directory.as_os_str().is_empty() && !name.starts_with(prefix) {
                continue;
            }
            let path = directory.join(name);
            if kind == FileKind::Directory {
                waiting.push(path.clone());
            }
            known.push((path, kind));
        }
    }
    known.sort();
    known
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_decides_the_operations() {
        let known = vec![(PathBuf::new(), FileKind::Directory), ("a".into(), FileKind::Regular)];
        let list = |seed| -> Vec<Operation> {
            let mut generator = Generator::new(seed, String::new(), 1 << 20);
            (0..500).map(|_| generator.next(&known)).collect()
        };
        assert_eq!(list(1), list(1));
        assert_ne!(list(1), list(2));
    }

    #[test]
    fn operations_survive_the_log() {
        let known = vec![(PathBuf::new(), FileKind::Directory), ("a".into(), FileKind::Regular)];
        let mut generator = Generator::new(3, "p-".into(), 1 << 20);
        for _ in 0..2000 {
            let operation = generator.next(&known);
            let line = serde_json::to_string(&operation).unwrap();
            assert_eq!(serde_json::from_str::<Operation>(&line).unwrap(), operation);
        }
    }
}
