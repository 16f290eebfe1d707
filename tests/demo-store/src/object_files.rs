//! Objects in the files of a directory.
//!
//! # Layout
//! `objects/` has one file for each object. Its name is the hash of the key, so any key can be
//! stored, and a new object replaces the old one atomically. A file begins with a line of JSON, its
//! [`Head`], followed by the bytes. `parts/` has unfinished files and is emptied at each start.
//!
//! # Invariants
//! - An object whose write was acknowledged is on disk, with its name.
//! - A condition and the change that it allows are one step: other changes of the same key wait.
//! - A reader has one file open, so it reads one object even if the key is changed.
//!
//! # Locks
//! The lock of the state is a leaf. It is held across the rename or removal of a file, so that HEAD
//! and GET agree, and across no other I/O. A change of a key first enters the key in `changing`.

use ogive_private::{create_directories, create_new};
use parking_lot::{Condvar, Mutex};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime};

/// The longest first line of a file.
const HEAD_BYTES_MAX: u64 = 64 << 10;
/// How many multipart uploads may be in progress.
const UPLOADS_MAX: usize = 1000;

/// Why a request is refused.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    #[error("there is no such object")]
    NotFound,
    #[error("the condition does not hold")]
    ConditionFailed,
    #[error("there is no such upload")]
    UnknownUpload,
    #[error("a part is missing, or was replaced")]
    InvalidPart,
    #[error("too many uploads are in progress")]
    TooMany,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The metadata that a client stored with an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ClientMetadata {
    /// User-defined metadata, by name.
    pub(super) metadata: BTreeMap<String, String>,
    /// HTTP headers.
    #[serde(default, rename = "words")]
    pub(super) headers: HttpHeaders,
}

/// The HTTP headers that are stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HttpHeaders {
    pub(super) content_type: Option<String>,
    pub(super) content_encoding: Option<String>,
    pub(super) content_disposition: Option<String>,
    pub(super) cache_control: Option<String>,
}

/// The description of an object, without its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) key: String,
    /// Its ETag without quotes: random, so that no two objects ever have the same.
    pub(super) etag: String,
    /// When it was written, in seconds since 1970.
    pub(super) modified: u64,
    #[serde(flatten)]
    pub(super) beside: ClientMetadata,
    #[serde(skip)]
    pub(super) size_bytes: u64,
}

impl Head {
    fn new(key: &str, beside: ClientMetadata) -> io::Result<Self> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let key = key.to_owned();
        // Unlike an MD5, which clients would verify.
        let etag = format!("{}-1", random()?);
        Ok(Self { key, etag, modified: now.as_secs(), beside, size_bytes: 0 })
    }

    pub(super) fn modified(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(self.modified)
    }
}

/// The condition of a change, on the existing object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    Anything,
    Absent,
    Present,
    Tag(String),
}

impl Expected {
    fn holds(&self, there: Option<&Head>) -> bool {
        match self {
            Self::Anything => true,
            Self::Absent => there.is_none(),
            Self::Present => there.is_some(),
            Self::Tag(etag) => there.is_some_and(|there| there.etag == *etag),
        }
    }
}

/// A random name, as 32 hexadecimal digits.
pub(super) fn random() -> io::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

/// A multipart upload in progress.
#[derive(Debug)]
struct Unfinished {
    key: String,
    began: SystemTime,
    beside: ClientMetadata,
    parts: BTreeMap<u16, Part>,
}

#[derive(Debug)]
struct Part {
    etag: String,
    file: Scratch,
}

#[derive(Debug, Default)]
struct State {
    objects: BTreeMap<String, Head>,
    uploads: HashMap<String, Unfinished>,
    changing: HashSet<String>,
}

/// A file being written. Its drop deletes it, unless it was renamed to its final name.
#[derive(Debug)]
pub(super) struct Scratch {
    path: PathBuf,
    file: File,
    size_bytes: u64,
}

impl Scratch {
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.size_bytes += bytes.len() as u64;
        Ok(())
    }

    /// Appends a range of another file.
    pub(super) fn append(&mut self, file: &File, from: u64, bytes: u64) -> io::Result<()> {
        let mut source = file.try_clone()?;
        source.seek(SeekFrom::Start(from))?;
        let copied = io::copy(&mut source.take(bytes), &mut self.file)?;
        self.size_bytes += copied;
        if copied == bytes { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // After the rename there is nothing to delete. Leftovers are deleted at the next start.
        let _ = fs::remove_file(&self.path);
    }
}

/// An object being written.
#[derive(Debug)]
pub(super) struct Draft {
    head: Head,
    pub(super) file: Scratch,
    body_at: u64,
}

/// An object being read.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) head: Head,
    pub(super) file: File,
    /// Where its bytes begin.
    pub(super) body_at: u64,
}

/// A page of a listing.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) objects: Vec<Head>,
    pub(super) prefixes: Vec<String>,
    /// The last key or prefix, if more follow.
    pub(super) more_after: Option<String>,
}

/// The objects of a store.
#[derive(Debug)]
pub(super) struct Objects {
    root: PathBuf,
    state: Mutex<State>,
    changed: Condvar,
    next: AtomicU64,
}

/// The permission to change a key, until it is dropped.
struct Changing<'a> {
    objects: &'a Objects,
    key: &'a str,
}

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        self.objects.state.lock().changing.remove(self.key);
        self.objects.changed.notify_all();
    }
}

impl Objects {
    /// Opens the objects in a directory, which no other process uses.
    pub(super) fn open(root: &Path) -> io::Result<Self> {
        let parts = root.join("parts");
        match fs::remove_dir_all(&parts) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        create_directories(&root.join("objects"))?;
        create_directories(&parts)?;
        let mut state = State::default();
        for entry in fs::read_dir(root.join("objects"))? {
            let path = entry?.path();
            match read_head(File::open(&path)?) {
                Ok(open) if file_of(root, &open.head.key) == path => {
                    state.objects.insert(open.head.key.clone(), open.head);
                }
                Ok(_) => {
                    eprintln!("{} does not have the name of its key: left alone", path.display())
                }
                Err(error) => eprintln!("{} is not an object: {error}", path.display()),
            }
        }
        Ok(Self {
            root: root.to_owned(),
            state: Mutex::new(state),
            changed: Condvar::new(),
            next: AtomicU64::new(0),
        })
    }

    pub(super) fn scratch(&self) -> io::Result<Scratch> {
        let path = self.root.join("parts").join(self.next.fetch_add(1, Relaxed).to_string());
        let file = create_new(&path)?;
        Ok(Scratch { path, file, size_bytes: 0 })
    }

    pub(super) fn head(&self, key: &str) -> Result<Head, Refusal> {
        self.state.lock().objects.get(key).cloned().ok_or(Refusal::NotFound)
    }

    pub(super) fn read(&self, key: &str) -> Result<Open, Refusal> {
        match File::open(file_of(&self.root, key)) {
            Ok(file) => Ok(read_head(file)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Refusal::NotFound),
            Err(error) => Err(error.into()),
        }
    }

    /// Starts to write an object.
    pub(super) fn draft(&self, key: &str, beside: ClientMetadata) -> Result<Draft, Refusal> {
        let head = Head::new(key, beside)?;
        let mut line = serde_json::to_vec(&head).map_err(io::Error::other)?;
        line.push(b'\n');
        let mut file = self.scratch()?;
        file.write(&line)?;
        Ok(Draft { head, file, body_at: line.len() as u64 })
    }

    /// Makes an object visible, if the condition holds.
    pub(super) fn put(&self, draft: Draft, wanted: &Expected) -> Result<Head, Refusal> {
        let Draft { mut head, file, body_at } = draft;
        head.size_bytes = file.size_bytes - body_at;
        file.file.sync_data()?;
        let changing = self.change(&head.key, wanted)?;
        {
            let mut state = self.state.lock();
            fs::rename(&file.path, file_of(&self.root, &head.key))?;
            state.objects.insert(head.key.clone(), head.clone());
        }
        self.sync_names()?;
        drop(changing);
        Ok(head)
    }

    /// Removes an object, if the condition holds. A missing object counts as removed.
    pub(super) fn delete(&self, key: &str, wanted: &Expected) -> Result<(), Refusal> {
        let _changing = self.change(key, wanted)?;
        if self.head(key).is_err() {
            return Ok(());
        }
        {
            let mut state = self.state.lock();
            fs::remove_file(file_of(&self.root, key))?;
            state.objects.remove(key);
        }
        Ok(self.sync_names()?)
    }

    /// Waits for the permission to change a key, then checks the condition.
    fn change<'a>(&'a self, key: &'a str, wanted: &Expected) -> Result<Changing<'a>, Refusal> {
        let mut state = self.state.lock();
        while state.changing.contains(key) {
            self.changed.wait(&mut state);
        }
        if !wanted.holds(state.objects.get(key)) {
            return Err(Refusal::ConditionFailed);
        }
        state.changing.insert(key.to_owned());
        Ok(Changing { objects: self, key })
    }

    fn sync_names(&self) -> io::Result<()> {
        File::open(self.root.join("objects"))?.sync_all()
    }

    /// The keys and common prefixes with a prefix, after `after`, in the order of keys.
    pub(super) fn list(
        &self,
        prefix: &str,
        delimiter: Option<&str>,
        after: Option<&str>,
        max: usize,
    ) -> Page {
        let state = self.state.lock();
        let mut page = Page::default();
        let mut last: Option<String> = after.map(str::to_owned);
        // Keys with this prefix were listed as a common prefix.
        let mut common = last.clone().filter(|last| {
            last.len() > prefix.len()
                && delimiter.is_some_and(|delimiter| last.ends_with(delimiter))
        });
        let first = match after {
            Some(after) if after >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix),
        };
        for (key, head) in state.objects.range::<str, _>((first, Bound::Unbounded)) {
            let Some(rest) = key.strip_prefix(prefix) else { break };
            if common.as_ref().is_some_and(|common| key.starts_with(common)) {
                continue;
            }
            if page.objects.len() + page.prefixes.len() == max {
                page.more_after = last;
                break;
            }
            let end = delimiter.and_then(|delimiter| Some(rest.find(delimiter)? + delimiter.len()));
            match end {
                Some(end) => {
                    let folder = key[..prefix.len() + end].to_owned();
                    page.prefixes.push(folder.clone());
                    common = Some(folder.clone());
                    last = Some(folder);
                }
                None => {
                    page.objects.push(head.clone());
                    last = Some(key.clone());
                }
            }
        }
        page
    }

    /// Begins a multipart upload. Returns its id.
    pub(super) fn upload(&self, key: &str, beside: ClientMetadata) -> Result<String, Refusal> {
        let id = random()?;
        let (key, began, parts) = (key.to_owned(), SystemTime::now(), BTreeMap::new());
        let upload = Unfinished { key, began, beside, parts };
        let mut state = self.state.lock();
        if state.uploads.len() >= UPLOADS_MAX {
            return Err(Refusal::TooMany);
        }
        state.uploads.insert(id.clone(), upload);
        Ok(id)
    }

    /// Stores a part. Returns its ETag.
    pub(super) fn part(&self, id: &str, number: u16, file: Scratch) -> Result<String, Refusal> {
        let etag = random()?;
        let part = Part { etag: etag.clone(), file };
        let mut state = self.state.lock();
        let upload = state.uploads.get_mut(id).ok_or(Refusal::UnknownUpload)?;
        let replaced = upload.parts.insert(number, part);
        drop(state);
        drop(replaced);
        Ok(etag)
    }

    /// Makes the object of an upload visible, if the condition holds. The upload ends in any case.
    pub(super) fn complete(
        &self,
        id: &str,
        parts: &[(u16, String)],
        wanted: &Expected,
    ) -> Result<Head, Refusal> {
        let upload = self.state.lock().uploads.remove(id).ok_or(Refusal::UnknownUpload)?;
        let mut draft = self.draft(&upload.key, upload.beside)?;
        for (number, etag) in parts {
            let part = upload.parts.get(number).filter(|part| part.etag == *etag);
            let file = &part.ok_or(Refusal::InvalidPart)?.file;
            draft.file.append(&file.file, 0, file.size_bytes)?;
        }
        self.put(draft, wanted)
    }

    /// Keys, ids and start times of uploads in progress whose keys have a prefix.
    pub(super) fn uploads(&self, prefix: &str) -> Vec<(String, String, SystemTime)> {
        let state = self.state.lock();
        let in_progress = state.uploads.iter().filter(|(_, upload)| upload.key.starts_with(prefix));
        let listed = in_progress.map(|(id, upload)| (upload.key.clone(), id.clone(), upload.began));
        let mut found: Vec<_> = listed.collect();
        found.sort();
        found
    }

    /// Numbers, ETags and sizes of the parts of an upload.
    pub(super) fn parts(&self, id: &str) -> Result<Vec<(u16, String, u64)>, Refusal> {
        let state = self.state.lock();
        let parts = state.uploads.get(id).ok_or(Refusal::UnknownUpload)?.parts.iter();
        Ok(parts.map(|(number, part)| (*number, part.etag.clone(), part.file.size_bytes)).collect())
    }

    pub(super) fn abort(&self, id: &str) -> Result<(), Refusal> {
        let gone = self.state.lock().uploads.remove(id);
        gone.map(drop).ok_or(Refusal::UnknownUpload)
    }
}

/// The file of an object.
fn file_of(root: &Path, key: &str) -> PathBuf {
    root.join("objects").join(blake3::hash(key.as_bytes()).to_hex().as_str())
}

fn read_head(file: File) -> io::Result<Open> {
    let mut line = Vec::new();
    let mut reader = BufReader::new(file);
    (&mut reader).take(HEAD_BYTES_MAX).read_until(b'\n', &mut line)?;
    let mut head: Head = serde_json::from_slice(&line)?;
    let (file, body_at) = (reader.into_inner(), line.len() as u64);
    head.size_bytes = file.metadata()?.len().saturating_sub(body_at);
    Ok(Open { head, file, body_at })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt as _;
    use std::sync::Arc;

    fn put(objects: &Objects, key: &str, body: &str, wanted: &Expected) -> Result<Head, Refusal> {
        let mut draft = objects.draft(key, ClientMetadata::default())?;
        draft.file.write(body.as_bytes())?;
        objects.put(draft, wanted)
    }

    fn body(objects: &Objects, key: &str) -> String {
        let open = objects.read(key).unwrap();
        let mut bytes = vec![0; open.head.size_bytes as usize];
        open.file.read_exact_at(&mut bytes, open.body_at).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn any_key_is_stored_and_found_by_the_next_process() {
        let root = tempfile::tempdir().unwrap();
        let keys = ["a", "a/b", "a//b", "../up", "\n", &"x".repeat(1024), "ü/ ", "."];
        let objects = Objects::open(root.path()).unwrap();
        for key in keys {
            put(&objects, key, key, &Expected::Absent).unwrap();
        }
        let scratch = objects.scratch().unwrap();
        std::mem::forget(scratch);
        drop(objects);
        let objects = Objects::open(root.path()).unwrap();
        for key in keys {
            assert_eq!(body(&objects, key), key);
            assert_eq!(objects.head(key).unwrap(), objects.read(key).unwrap().head);
        }
        assert_eq!(fs::read_dir(root.path().join("parts")).unwrap().count(), 0);
        assert!(!root.path().join("up").exists() && !root.path().join("../up").exists());
    }

    #[test]
    fn a_condition_that_does_not_hold_changes_nothing() {
        let root = tempfile::tempdir().unwrap();
        let objects = Objects::open(root.path()).unwrap();
        let stale = put(&objects, "k", "one", &Expected::Absent).unwrap();
        put(&objects, "k", "two", &Expected::Tag(stale.etag.clone())).unwrap();
        for wanted in [Expected::Absent, Expected::Tag(stale.etag)] {
            assert!(matches!(put(&objects, "k", "three", &wanted), Err(Refusal::ConditionFailed)));
            assert!(matches!(objects.delete("k", &wanted), Err(Refusal::ConditionFailed)));
        }
        assert_eq!(body(&objects, "k"), "two");
        assert!(matches!(
            put(&objects, "l", "", &Expected::Present),
            Err(Refusal::ConditionFailed)
        ));
        objects.delete("k", &Expected::Present).unwrap();
        assert!(matches!(objects.read("k"), Err(Refusal::NotFound)));
        objects.delete("k", &Expected::Anything).unwrap();
    }

    #[test]
    fn one_of_many_creations_of_an_object_succeeds() {
        let root = tempfile::tempdir().unwrap();
        let objects = Arc::new(Objects::open(root.path()).unwrap());
        let made: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    let objects = Arc::clone(&objects);
                    scope.spawn(move || {
                        let done = |number: usize| {
                            put(&objects, &number.to_string(), "x", &Expected::Absent).is_ok()
                        };
                        (0..20).filter(|number| done(*number)).count()
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(made, 20);
    }

    #[test]
    fn pages_of_any_size_make_up_the_listing() {
        let root = tempfile::tempdir().unwrap();
        let objects = Objects::open(root.path()).unwrap();
        for key in ["a", "b/", "b/1", "b/2", "b0", "c/d/e", "c/x", "d"] {
            put(&objects, key, "", &Expected::Anything).unwrap();
        }
        let all = |prefix: &str, delimiter, max| {
            let (mut found, mut after): (Vec<String>, Option<String>) = (Vec::new(), None);
            loop {
                let page = objects.list(prefix, delimiter, after.as_deref(), max);
                let keys = page.objects.iter().map(|head| head.key.clone());
                let mut names: Vec<_> = keys.chain(page.prefixes).collect();
                assert!(names.len() <= max);
                names.sort();
                found.extend(names);
                match page.more_after {
                    Some(last) => after = Some(last),
                    None => return found,
                }
            }
        };
        for max in [1, 2, 3, 100] {
            assert_eq!(all("", Some("/"), max), ["a", "b/", "b0", "c/", "d"], "{max}");
            assert_eq!(all("b/", Some("/"), max), ["b/", "b/1", "b/2"], "{max}");
            assert_eq!(all("c/", Some("/"), max), ["c/d/", "c/x"], "{max}");
            assert_eq!(all("", None, max).len(), 8, "{max}");
            assert!(all("none/", Some("/"), max).is_empty());
        }
    }

    #[test]
    fn an_upload_joins_its_parts_and_ends_when_it_is_completed() {
        let root = tempfile::tempdir().unwrap();
        let objects = Objects::open(root.path()).unwrap();
        let part = |id: &str, number, text: &str| {
            let mut file = objects.scratch().unwrap();
            file.write(text.as_bytes()).unwrap();
            objects.part(id, number, file).unwrap()
        };
        let id = objects.upload("k", ClientMetadata::default()).unwrap();
        let (two, lost) = (part(&id, 2, "two"), part(&id, 1, "lost"));
        let one = part(&id, 1, "one");
        assert!(matches!(objects.read("k"), Err(Refusal::NotFound)));
        let parts = [(1, one), (2, two)];
        objects.complete(&id, &parts, &Expected::Absent).unwrap();
        assert_eq!(body(&objects, "k"), "onetwo");
        let again = objects.complete(&id, &parts, &Expected::Anything);
        assert!(matches!(again, Err(Refusal::UnknownUpload)));
        let id = objects.upload("k", ClientMetadata::default()).unwrap();
        part(&id, 1, "new");
        let wrong = objects.complete(&id, &[(1, lost)], &Expected::Anything);
        assert!(matches!(wrong, Err(Refusal::InvalidPart)));
        let id = objects.upload("k", ClientMetadata::default()).unwrap();
        let etag = part(&id, 3, "three");
        assert_eq!(objects.parts(&id).unwrap(), [(3, etag, 5)]);
        assert_eq!(objects.uploads("k")[0].1, id);
        assert!(objects.uploads("l").is_empty());
        objects.abort(&id).unwrap();
        assert!(objects.uploads("").is_empty() && objects.parts(&id).is_err());
        assert_eq!(fs::read_dir(root.path().join("parts")).unwrap().count(), 0);
    }
}
