//! The bucket as an [`Origin`]: the operations it supports, and those it refuses.

use super::*;
use super::{BucketOrigin, Directory, File, Node};
use ogive_origin::{
    Allocation, Availability, Caller, Changes, FileFlags, FileSystemStatistics, FlagsForm,
    Identity, Make, OFlags, Origin, ReadAhead, RenameFlags, Run, RunSink, Whence, XattrFlags,
};
use std::ffi::OsString;

/// Refuses operations that no store can do: with their own error on a writable mount, with `EROFS`
/// on a read-only one.
macro_rules! refused {
    ($($name:ident($($argument:ty),*) -> $result:ty = $errno:ident;)*) => {
        $(fn $name(&self, $(_: $argument),*) -> Result<$result> {
            self.writing()?;
            Err(Errno::$errno)
        })*
    };
}

impl<B: Bucket> Origin for BucketOrigin<B> {
    type Node = Node;
    type File = File;
    type Directory = Directory;

    fn root(&self) -> Result<Found<Node>> {
        let key = &self.options.prefix;
        Ok(self.found_as(key, self.directory_attributes_of(key)))
    }

    fn check_health(&self) -> Result<()> {
        self.or_errno(self.exists(&self.options.prefix)).map(drop)
    }

    fn availability(&self) -> Availability {
        self.offline_availability()
    }

    fn counters(&self, report: &mut dyn FnMut(&str, u64)) {
        report("keys_hidden", self.hidden.load(Relaxed));
        let requests = self.bucket.request_counts();
        report("origin_get", requests.get);
        report("origin_head", requests.head);
        report("origin_list", requests.list);
        report("origin_put", requests.put);
        report("origin_delete", requests.delete);
        report("origin_failed", requests.failed);
        report("origin_received_bytes", requests.received_bytes);
        report("origin_sent_bytes", requests.sent_bytes);
        if let Some(prices) = &self.cost.prices {
            report("origin_microdollars", prices.microdollars(&requests));
        }
        report("origin_names_held", self.listings.held().names());
        report("origin_objects_known", self.objects.len() as u64);
        report("origin_waiting_bytes", self.small_objects.waiting_bytes());
        report("origin_opened_with_bytes", self.small_objects.taken());
        self.cost.report(report);
        self.verifier.report(report);
        self.bucket.counters(report);
        if let Some(writing) = &self.writing {
            let (files, bytes) = writing.pending();
            report("staged_files", files);
            report("staged_bytes", bytes);
            report("staged_pieces", writing.pieces());
            report("upload_panics", writing.panics());
            report("uploads_held_bytes", writing.uploads_held_bytes());
        }
    }

    fn hidden(&self, report: &mut dyn FnMut(&str, &str)) {
        let nameless = self.nameless.lock().clone();
        for (key, why) in &nameless {
            report(key, why);
        }
    }

    fn lookup(&self, parent: &Node, name: &OsStr) -> Result<Found<Node>> {
        if !parent.is_directory() {
            return Err(Errno::NOTDIR);
        }
        if parent.is_gone() {
            return Err(Errno::STALE);
        }
        self.find(parent.key(), name)
    }

    /// Answers from the listing being read, so that a listing with attributes needs no further
    /// requests.
    fn lookup_in(&self, parent: &Directory, name: &OsStr) -> Result<Found<Node>> {
        // A staged file differs from its listing.
        let is_staged = self.key(&parent.key, name).is_ok_and(|key| self.staged_at(&key).is_some());
        let listed = name.to_str().filter(|_| !is_staged).and_then(|name| {
            let item = parent.listed(name, |snapshot| self.prefetch_metadata(snapshot, name))?;
            Some(self.found(&format!("{}{name}", parent.key), &item))
        });
        listed.unwrap_or_else(|| self.find(&parent.key, name))
    }

    /// A name always leads to its key. The next open finds out whether the object still exists.
    fn leads_to(&self, parent: &Node, name: &OsStr, node: &Node) -> Result<bool> {
        let key = node.key().strip_suffix('/').unwrap_or(node.key());
        let leads = key.strip_prefix(parent.key()).is_some_and(|rest| OsStr::new(rest) == name);
        Ok(leads && !parent.is_gone() && !node.is_gone())
    }

    fn attributes(&self, node: &Node, file: Option<&File>) -> Result<Attributes> {
        match file {
            Some(file) => Ok(self.open_attributes(file)),
            None => self.node_attributes(node),
        }
    }

    fn read_link(&self, node: &Node) -> Result<OsString> {
        self.link_target(node)
    }

    fn open(&self, node: &Node, flags: OFlags) -> Result<File> {
        self.open_file(node, flags, None)
    }

    fn open_unread(
        &self,
        node: &Node,
        flags: OFlags,
        is_cached: &dyn Fn(&Identity) -> bool,
    ) -> Result<File> {
        self.open_file(node, flags, Some(is_cached))
    }

    fn is_corrupt(&self, file: &File) -> bool {
        self.spoilt(file)
    }

    fn pinned_identity(&self, file: &File) -> Option<Identity> {
        self.vouched(file)
    }

    fn read_at(
        &self,
        file: &File,
        offset: u64,
        length_bytes: usize,
        into: &mut Vec<u8>,
    ) -> Result<()> {
        self.read(file, offset, length_bytes, into)
    }

    fn read_run<S: RunSink>(&self, file: &File, run: Run, sink: S) {
        self.run(file, run, sink);
    }

    fn reads_in_background(&self) -> bool {
        true
    }

    fn read_ahead(&self) -> ReadAhead {
        self.bucket.read_ahead()
    }

    fn may_read_ahead(&self) -> bool {
        self.may_prefetch()
    }

    fn flush(&self, file: &File) -> Result<()> {
        file.handle().map_or(Ok(()), |handle| handle.close())
    }

    fn sync(&self, file: &File, _: bool) -> Result<()> {
        file.handle().map_or(Ok(()), |handle| handle.upload())
    }

    fn write_at(&self, file: &File, offset: u64, bytes: &[u8]) -> Result<usize> {
        file.handle().ok_or(Errno::ROFS)?.write(offset, bytes)
    }

    fn append(&self, file: &File, bytes: &[u8]) -> Result<usize> {
        file.handle().ok_or(Errno::ROFS)?.append(bytes)
    }

    fn set_attributes(
        &self,
        node: &Node,
        file: Option<&File>,
        changes: &Changes,
    ) -> Result<Attributes> {
        self.change_attributes(node, file, changes)
    }

    fn make(
        &self,
        parent: &Node,
        name: &OsStr,
        what: Make<'_>,
        caller: Caller,
    ) -> Result<Found<Node>> {
        match what {
            Make::Directory { .. } => self.make_directory(parent, name),
            Make::Symlink { target } if self.options.convention.is_on() => {
                self.make_link(parent, name, target, caller)
            }
            Make::Symlink { .. } | Make::Special { .. } => {
                self.writing()?;
                Err(Errno::PERM)
            }
        }
    }

    fn create(
        &self,
        parent: &Node,
        name: &OsStr,
        flags: OFlags,
        mode: u32,
        caller: Caller,
    ) -> Result<(Found<Node>, File)> {
        self.create_file(parent, name, flags, (mode, caller))
    }

    fn unlink(&self, parent: &Node, name: &OsStr) -> Result<()> {
        self.remove_file(parent, name)
    }

    fn remove_directory(&self, parent: &Node, name: &OsStr) -> Result<()> {
        self.remove_empty_directory(parent, name)
    }

    fn rename(&self, from: (&Node, &OsStr), to: (&Node, &OsStr), flags: RenameFlags) -> Result<()> {
        self.rename_name(from, to, flags)
    }

    fn seek(&self, file: &File, offset: u64, whence: Whence) -> Result<u64> {
        self.sought(file, offset, whence)
    }

    fn flags(&self, _: &Node, _: FlagsForm) -> Result<FileFlags> {
        Err(Errno::NOTTY)
    }

    fn open_directory(&self, node: &Node) -> Result<Directory> {
        if !node.is_directory() {
            return Err(Errno::NOTDIR);
        }
        if node.is_gone() {
            return Err(Errno::STALE);
        }
        Ok(Directory::of(node.key()))
    }

    fn read_directory(
        &self,
        directory: &Directory,
        cookie: u64,
        visit: &mut dyn FnMut(DirectoryEntry<'_>) -> bool,
    ) -> Result<()> {
        self.read_entries(directory, cookie, visit)
    }

    fn directory_attributes(&self, directory: &Directory) -> Result<Attributes> {
        Ok(self.directory_attributes_of(&directory.key))
    }

    fn sync_directory(&self, _: &Directory) -> Result<()> {
        Ok(())
    }

    fn get_xattr(&self, _: &Node, _: &OsStr, _: &mut [u8]) -> Result<usize> {
        Err(Errno::OPNOTSUPP)
    }

    fn list_xattrs(&self, _: &Node, _: &mut [u8]) -> Result<usize> {
        Ok(0)
    }

    fn statistics(&self, _: &Node) -> Result<FileSystemStatistics> {
        let blocks = ROOM_BYTES / u64::from(BLOCK_BYTES);
        Ok(FileSystemStatistics {
            block_size_bytes: BLOCK_BYTES,
            fragment_size_bytes: BLOCK_BYTES,
            blocks,
            blocks_free: blocks,
            blocks_available: blocks,
            inodes: 0,
            inodes_free: 0,
            name_max_bytes: 255,
        })
    }

    fn has_access_control_lists(&self) -> bool {
        false
    }

    refused! {
        link(&Node, Option<&File>, &Node, &OsStr) -> Found<Node> = PERM;
        set_flags(&Node, FileFlags) -> () = NOTTY;
        // After `ENOSYS` the kernel stops sending these, and copies by itself.
        allocate(&File, Allocation) -> () = NOSYS;
        copy_range((&File, u64), (&File, u64), usize) -> usize = NOSYS;
        set_xattr(&Node, &OsStr, &[u8], XattrFlags) -> () = OPNOTSUPP;
        remove_xattr(&Node, &OsStr) -> () = OPNOTSUPP;
    }
}
