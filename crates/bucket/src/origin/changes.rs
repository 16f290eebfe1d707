//! Changes through [`ogive_origin::Origin`]: what each operation does to keys.

use super::BucketOrigin;
use super::directory::Item;
use super::nodes::Node;
use super::open_file::File;
use super::posix::Posix;
use super::writing::Chmod;
use super::writing::OpenMode;
use crate::key_rules::NAME_BYTES_MAX;
use crate::{Bucket, ObjectMetadata};
use ogive_origin::{
    Attributes, Caller, Changes, Errno, FileKind, Found, OFlags, RenameFlags, Result, SetTime, Time,
};
use std::ffi::OsStr;

impl<B: Bucket> BucketOrigin<B> {
    /// The key of a new name in a directory. The stored key ends with `end`, which is a slash for a
    /// directory.
    pub(super) fn key_to_make(&self, parent: &Node, name: &OsStr, end: &str) -> Result<String> {
        self.writing()?;
        if !parent.is_directory() {
            return Err(Errno::NOTDIR);
        }
        if parent.is_gone() {
            return Err(Errno::STALE);
        }
        if name.len() > NAME_BYTES_MAX {
            return Err(Errno::NAMETOOLONG);
        }
        let key = format!("{}{}", parent.key(), name.to_str().ok_or(Errno::INVAL)?);
        let stored = format!("{key}{end}");
        self.bucket.key_rules().creatable(&stored).map_err(|error| self.errno(&error))?;
        Ok(key)
    }

    /// The item that a name leads to now, staged or in the store.
    pub(super) fn look_up_current(&self, key: &str) -> Result<Option<Item>> {
        match self.staged_at(key) {
            Some(staged) => Ok(Some(Item::File(staged))),
            None => self.look_up(key),
        }
    }

    /// Creates and opens a file.
    pub(super) fn create_file(
        &self,
        parent: &Node,
        name: &OsStr,
        flags: OFlags,
        (mode, caller): (u32, Caller),
    ) -> Result<(Found<Node>, File)> {
        let key = self.key_to_make(parent, name, "")?;
        if self.or_errno(self.exists(&format!("{key}/")))? {
            return Err(if flags.contains(OFlags::EXCL) { Errno::EXIST } else { Errno::ISDIR });
        }
        let is_new = flags.contains(OFlags::EXCL);
        let convention = self.options.convention;
        let posix = Posix {
            permissions: Some((mode & !caller.umask & 0o7777) as u16),
            kind: Some(FileKind::Regular),
            user: Some(caller.user),
            group: Some(caller.group),
            modified: Some(Time::now()),
            ..Posix::default()
        };
        let kept =
            convention.is_on().then(|| convention.write(&ObjectMetadata::default(), &posix, false));
        let handle = self.writing()?.create(&key, is_new, OpenMode::of(flags), kept)?;
        let node = self.nodes.node(&key);
        let file = self.file(&node, handle);
        let found = self.found_as(&key, self.open_attributes(&file));
        Ok((found, file))
    }

    /// Makes a directory.
    pub(super) fn make_directory(&self, parent: &Node, name: &OsStr) -> Result<Found<Node>> {
        let key = self.key_to_make(parent, name, "/")?;
        if self.look_up_current(&key)?.is_some() {
            return Err(Errno::EXIST);
        }
        self.writing()?.make_directory(&format!("{key}/"))?;
        self.found(&key, &Item::Directory)
    }

    /// Removes the name of a file.
    pub(super) fn remove_file(&self, parent: &Node, name: &OsStr) -> Result<()> {
        let key = self.key_to_remove(parent, name)?;
        if self.or_errno(self.exists(&format!("{key}/")))? {
            return Err(Errno::ISDIR);
        }
        self.writing()?.remove(&key)?;
        self.nodes.lose(&key);
        Ok(())
    }

    fn key_to_remove(&self, parent: &Node, name: &OsStr) -> Result<String> {
        self.writing()?;
        if parent.is_gone() {
            return Err(Errno::STALE);
        }
        self.key(parent.key(), name)
    }

    /// Removes an empty directory.
    pub(super) fn remove_empty_directory(&self, parent: &Node, name: &OsStr) -> Result<()> {
        let key = self.key_to_remove(parent, name)?;
        if self.staged_at(&key).is_some() {
            return Err(Errno::NOTDIR);
        }
        let directory = format!("{key}/");
        match self.writing()?.remove_directory(&directory) {
            Ok(()) => {
                self.nodes.lose_below(&directory);
                Ok(())
            }
            Err(Errno::NOENT) if self.look_up_current(&key)?.is_some() => Err(Errno::NOTDIR),
            Err(errno) => Err(errno),
        }
    }

    /// Renames a file or a directory.
    pub(super) fn rename_name(
        &self,
        (from_parent, from_name): (&Node, &OsStr),
        (to_parent, to_name): (&Node, &OsStr),
        flags: RenameFlags,
    ) -> Result<()> {
        if !(flags - RenameFlags::NOREPLACE).is_empty() {
            return Err(Errno::INVAL);
        }
        let is_new = flags.contains(RenameFlags::NOREPLACE);
        let from = self.key_to_remove(from_parent, from_name)?;
        let source = self.look_up_current(&from)?.ok_or(Errno::NOENT)?;
        let end = if source == Item::Directory { "/" } else { "" };
        let to = self.key_to_make(to_parent, to_name, end)?;
        if from == to {
            return Ok(());
        }
        let target = self.look_up_current(&to)?;
        if is_new && target.is_some() {
            return Err(Errno::EXIST);
        }
        let writing = self.writing()?;
        match (source, target) {
            (Item::Directory, Some(Item::File(_))) => Err(Errno::NOTDIR),
            (Item::File(_), Some(Item::Directory)) => Err(Errno::ISDIR),
            (Item::File(_), _) => {
                writing.rename((&from, &to), is_new)?;
                self.nodes.lose(&from);
                self.nodes.lose(&to);
                Ok(())
            }
            (Item::Directory, _) => {
                let (from, to) = (format!("{from}/"), format!("{to}/"));
                let renamed = writing.rename_directory(&from, &to);
                // Also after an error: a part of the directory may have been renamed.
                self.nodes.lose_below(&from);
                self.nodes.lose_below(&to);
                renamed
            }
        }
    }

    /// Changes the size and, with a metadata convention, the other attributes. Without a convention
    /// a store has no other attributes: a change to the current value succeeds, and so does setting
    /// the time of a file with pending changes to now. `--chmod` decides whether any other change
    /// is refused or ignored.
    pub(super) fn change_attributes(
        &self,
        node: &Node,
        file: Option<&File>,
        changes: &Changes,
    ) -> Result<Attributes> {
        let writing = self.writing()?;
        let open = file.and_then(File::handle);
        let before = match file {
            Some(file) => self.open_attributes(file),
            None => self.node_attributes(node)?,
        };
        let is_now = |time: Option<SetTime>| time.is_none_or(|time| time == SetTime::Now);
        let is_staged = changes.size_bytes.is_some()
            || open.is_some_and(super::writing::Handle::is_changed)
            || self.staged_at(node.key()).is_some();
        let has_times = changes.accessed.is_some() || changes.modified.is_some();
        let is_refused = changes
            .permissions
            // The kernel sends the file type as well.
            .is_some_and(|mode| mode & 0o7777 != u32::from(before.permissions))
            || changes.user.is_some_and(|user| user != before.user)
            || changes.group.is_some_and(|group| group != before.group)
            || (has_times && !(is_staged && is_now(changes.accessed) && is_now(changes.modified)));
        if is_refused {
            if self.options.convention.is_on() && !node.is_directory() {
                return self.note_attributes(node, file, changes);
            }
            if writing.chmod() == Chmod::Refuse {
                return Err(Errno::PERM);
            }
        }
        let Some(size) = changes.size_bytes else { return Ok(before) };
        if let (Some(file), Some(handle)) = (file, open) {
            handle.resize(size)?;
            return Ok(self.open_attributes(file));
        }
        if node.is_directory() {
            return Err(Errno::ISDIR);
        }
        if node.is_gone() {
            return Err(Errno::STALE);
        }
        let mode = OpenMode { writes: true, ..OpenMode::default() };
        let handle = writing.open(node.key(), mode)?;
        handle.resize(size)?;
        // If other writers have the file open, their close uploads it.
        if !handle.has_writers_besides() {
            handle.close()?;
        }
        Ok(self.file_attributes(&handle.look().object))
    }

    /// Changes mode, owner or times in the object's metadata, by the convention.
    fn note_attributes(
        &self,
        node: &Node,
        file: Option<&File>,
        changes: &Changes,
    ) -> Result<Attributes> {
        if node.is_gone() && file.is_none() {
            return Err(Errno::STALE);
        }
        if changes.size_bytes.is_some() {
            let size = Changes { size_bytes: changes.size_bytes, ..Changes::default() };
            self.change_attributes(node, file, &size)?;
        }
        let time = |set: SetTime| match set {
            SetTime::Now => Time::now(),
            SetTime::To(time) => time,
        };
        // The file type does not change.
        let before = match file {
            Some(file) => self.open_attributes(file),
            None => self.node_attributes(node)?,
        };
        let posix = Posix {
            permissions: Some(
                changes.permissions.map_or(before.permissions, |mode| (mode & 0o7777) as u16),
            ),
            kind: Some(before.kind),
            user: changes.user,
            group: changes.group,
            modified: changes.modified.map(time),
            accessed: changes.accessed.map(time),
            ..Posix::default()
        };
        let writing = self.writing()?;
        let handle = file.and_then(File::handle);
        let object = match handle {
            Some(handle) => {
                handle.update_metadata(&posix)?;
                handle.look().object
            }
            None => writing.update_metadata(node.key(), &posix)?.look().object,
        };
        Ok(self.file_attributes(&object))
    }
}
