//! Random operations on a mount and on a model in memory. Every reader sees the last write, the
//! store has the last closed contents, and a kill loses nothing that was acknowledged.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

const PATHS: [&str; 5] = ["a", "b", "d/x", "d/y", "e/z"];
const BYTES: u64 = 4000;

#[derive(Debug, Clone)]
enum Step {
    Open(usize, bool),
    Write(usize, u64, usize, u8),
    Append(usize, usize, u8),
    Resize(usize, u64),
    Sync(usize),
    Close(usize),
    Truncate(usize, u64),
    Remove(usize),
    Rename(usize, usize),
    Kill,
}

fn step() -> impl Strategy<Value = Step> {
    let (path, file) = (0..PATHS.len(), any::<usize>());
    prop_oneof![
        4 => (path.clone(), any::<bool>()).prop_map(|(path, cut)| Step::Open(path, cut)),
        8 => (file, 0..BYTES, 1..900_usize, any::<u8>())
            .prop_map(|(file, at, bytes, seed)| Step::Write(file, at, bytes, seed)),
        2 => (any::<usize>(), 1..900_usize, any::<u8>())
            .prop_map(|(file, bytes, seed)| Step::Append(file, bytes, seed)),
        2 => (any::<usize>(), 0..BYTES).prop_map(|(file, size)| Step::Resize(file, size)),
        3 => any::<usize>().prop_map(Step::Sync),
        4 => any::<usize>().prop_map(Step::Close),
        1 => (path.clone(), 0..BYTES).prop_map(|(path, size)| Step::Truncate(path, size)),
        2 => path.clone().prop_map(Step::Remove),
        2 => (path.clone(), path).prop_map(|(from, to)| Step::Rename(from, to)),
        1 => Just(Step::Kill),
    ]
}

/// A file of the model, shared by all its open handles.
#[derive(Debug, Default, Clone)]
struct Plain {
    bytes: Vec<u8>,
    /// The contents in the store; `None` before the first upload.
    stored: Option<Vec<u8>>,
    /// Some bytes may only be in the store: once the name is gone they cannot be read.
    is_unnamed: bool,
}

#[derive(Default)]
struct Model {
    files: Vec<Plain>,
    names: BTreeMap<&'static str, usize>,
}

impl Model {
    fn write(&mut self, file: usize, at: usize, bytes: &[u8]) {
        let old = &mut self.files[file].bytes;
        old.resize(old.len().max(at + bytes.len()), 0);
        old[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn sync(&mut self, file: usize) {
        let file = &mut self.files[file];
        if !file.is_unnamed {
            file.stored = Some(file.bytes.clone());
        }
    }

    fn unname(&mut self, path: &str) -> Option<usize> {
        let file = self.names.remove(path)?;
        self.files[file].is_unnamed = true;
        Some(file)
    }
}

fn check(m: &Mounted, bucket: &MemoryBucket, model: &Model, open: &[(usize, File)]) {
    for path in PATHS {
        let file = model.names.get(path).map(|file| &model.files[*file]);
        assert_eq!(m.read(path).ok().as_ref(), file.map(|file| &file.bytes), "{path}");
        let size = m.find(path).ok().map(|found| found.attributes.size_bytes);
        assert_eq!(size, file.map(|file| file.bytes.len() as u64), "{path}");
        let known = file.and_then(|file| file.stored.as_ref());
        assert_eq!(stored(bucket, path).as_ref(), known, "{path} in the store");
    }
    for directory in ["d", "e"] {
        let listed = m.names(directory);
        let below = model.names.keys().filter_map(|path| path.strip_prefix(directory));
        assert_eq!(listed, below.map(|path| path[1..].to_owned()).collect::<Vec<_>>());
    }
    for (file, handle) in open {
        let file = &model.files[*file];
        match m.read_file(handle) {
            Ok(bytes) => assert_eq!(bytes, file.bytes),
            Err(errno) => assert!(file.is_unnamed && errno == Errno::STALE, "{errno}"),
        }
    }
}

/// A mount, its model, and the files that are open in it.
struct World {
    bucket: MemoryBucket,
    m: Mounted,
    ttl: Duration,
    model: Model,
    open: Vec<(usize, File)>,
}

impl World {
    fn pick(&self, number: usize) -> Option<&(usize, File)> {
        self.open.get(number % self.open.len().max(1))
    }

    /// Applies a step to an open file.
    fn by_file(&mut self, step: &Step) -> Option<()> {
        match step {
            Step::Open(path, cut) => {
                let path = PATHS[*path];
                let cut = if *cut { OFlags::TRUNC } else { OFlags::empty() };
                let (_, handle) = self.m.create(path, OFlags::RDWR | cut).unwrap();
                let files = &mut self.model.files;
                let file = *self.model.names.entry(path).or_insert_with(|| {
                    files.push(Plain::default());
                    files.len() - 1
                });
                if !cut.is_empty() {
                    files[file].bytes.clear();
                }
                self.open.push((file, handle));
            }
            Step::Write(number, at, bytes, seed) => {
                let (file, handle) = self.pick(*number)?;
                let (file, bytes) = (*file, pattern(*bytes, *seed));
                assert_eq!(self.m.write_at(handle, *at, &bytes).unwrap(), bytes.len());
                self.model.write(file, *at as usize, &bytes);
            }
            Step::Append(number, bytes, seed) => {
                let file = self.pick(*number)?.0;
                let (path, _) = self.model.names.iter().find(|(_, named)| **named == file)?;
                let handle = self.m.open(path, OFlags::WRONLY | OFlags::APPEND).unwrap();
                let bytes = pattern(*bytes, *seed);
                self.m.append(&handle, &bytes).unwrap();
                let end = self.model.files[file].bytes.len();
                self.model.write(file, end, &bytes);
                self.m.flush(&handle).unwrap();
                self.model.sync(file);
            }
            Step::Resize(number, size) => {
                let (file, handle) = self.pick(*number)?;
                let (file, root) = (*file, self.m.find("").unwrap().node);
                let changes = Changes { size_bytes: Some(*size), ..Changes::default() };
                self.m.set_attributes(&root, Some(handle), &changes).unwrap();
                self.model.files[file].bytes.resize(*size as usize, 0);
            }
            Step::Sync(number) => {
                let (file, handle) = self.pick(*number)?;
                let file = *file;
                self.m.sync(handle, false).unwrap();
                self.model.sync(file);
            }
            Step::Close(number) => {
                self.pick(*number)?;
                let (file, handle) = self.open.swap_remove(number % self.open.len());
                self.m.flush(&handle).unwrap();
                self.model.sync(file);
            }
            _ => {}
        }
        Some(())
    }

    /// Applies a step to a name.
    fn by_name(&mut self, step: &Step) -> Option<()> {
        match step {
            Step::Truncate(path, size) => {
                let file = self.model.names.get(PATHS[*path]).copied()?;
                self.m.truncate(PATHS[*path], *size).unwrap();
                self.model.files[file].bytes.resize(*size as usize, 0);
                if !self.open.iter().any(|(other, _)| *other == file) {
                    self.model.sync(file);
                }
            }
            Step::Remove(path) => {
                let result = self.m.unlink(PATHS[*path]);
                assert_eq!(result.is_ok(), self.model.unname(PATHS[*path]).is_some());
            }
            Step::Rename(from, to) => {
                let (from, to) = (PATHS[*from], PATHS[*to]);
                let result = self.m.rename(from, to);
                assert_eq!(result.is_ok(), self.model.names.contains_key(from));
                if result.is_ok() && from != to {
                    self.model.unname(to);
                    let file = self.model.names.remove(from)?;
                    self.model.names.insert(to, file);
                    self.model.sync(file);
                }
            }
            _ => {}
        }
        Some(())
    }

    fn kill(mut self) -> Self {
        self.open.drain(..).for_each(std::mem::forget);
        let m = self.m.killed(&self.bucket, self.ttl);
        for file in self.model.names.clone().into_values() {
            self.model.sync(file);
        }
        assert_eq!(m.logs(), 0);
        Self { m, ..self }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn files_are_what_was_written_to_them(
        steps in prop::collection::vec(step(), 1..60),
        believes in any::<bool>(),
    ) {
        let ttl = if believes { LONG } else { Duration::ZERO };
        let bucket = MemoryBucket::new();
        for marker in ["d/", "e/"] {
            bucket.foreign_put(marker, "");
        }
        let (m, model, open) = (mount(&bucket, ttl), Model::default(), Vec::new());
        let mut world = World { bucket: bucket.clone(), m, ttl, model, open };
        for step in &steps {
            if matches!(step, Step::Kill) {
                world = world.kill();
            }
            // A step on a missing file or name does nothing.
            let _ = (world.by_file(step), world.by_name(step));
            check(&world.m, &bucket, &world.model, &world.open);
        }
        prop_assert_eq!(world.m.conflicts(), 0);
        let open = std::mem::take(&mut world.open);
        for (file, handle) in open {
            world.m.flush(&handle).unwrap();
            world.model.sync(file);
        }
        check(&world.m, &bucket, &world.model, &[]);
        prop_assert_eq!(world.m.logs(), 0);
        // Uploads of a killed mount are left to the store's lifecycle rules.
        let was_killed = steps.iter().any(|step| matches!(step, Step::Kill));
        prop_assert!(was_killed || bucket.open_uploads() == 0);
    }
}
