//! An origin for tests of what never asks it anything.

use ogive_origin::{
    Allocation, Attributes, Caller, Changes, DirectoryEntry, Errno, FileKind, FileSystemStatistics,
    Found, Make, OFlags, Origin, RenameFlags, Result, Time, Whence, XattrFlags,
};
use std::ffi::{OsStr, OsString};

/// A node that is only compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FakeNode {
    pub(crate) number: u64,
    /// Which object of this number it is.
    pub(crate) life: u64,
}

/// An origin that has nothing: every operation is refused.
pub(crate) struct FakeOrigin;

/// An empty regular file.
pub(crate) fn found(number: u64, life: u64) -> Found<FakeNode> {
    let never = Time::default();
    let attributes = Attributes {
        device: 1,
        inode: number,
        kind: FileKind::Regular,
        permissions: 0o644,
        links: 1,
        user: 0,
        group: 0,
        special_device: 0,
        size_bytes: 0,
        blocks: 0,
        block_size_bytes: 4096,
        accessed: never,
        modified: never,
        changed: never,
    };
    Found { node: FakeNode { number, life }, attributes, generation: life }
}

/// Refuses an operation.
macro_rules! refused {
    ($($name:ident($($argument:ty),*) -> $result:ty;)*) => {
        $(fn $name(&self, $(_: $argument),*) -> Result<$result> { Err(Errno::NOSYS) })*
    };
}

impl Origin for FakeOrigin {
    type Node = FakeNode;
    type File = ();
    type Directory = ();

    refused! {
        root() -> Found<FakeNode>;
        lookup(&FakeNode, &OsStr) -> Found<FakeNode>;
        lookup_in(&(), &OsStr) -> Found<FakeNode>;
        leads_to(&FakeNode, &OsStr, &FakeNode) -> bool;
        attributes(&FakeNode, Option<&()>) -> Attributes;
        set_attributes(&FakeNode, Option<&()>, &Changes) -> Attributes;
        read_link(&FakeNode) -> OsString;
        make(&FakeNode, &OsStr, Make<'_>, Caller) -> Found<FakeNode>;
        create(&FakeNode, &OsStr, OFlags, u32, Caller) -> (Found<FakeNode>, ());
        link(&FakeNode, Option<&()>, &FakeNode, &OsStr) -> Found<FakeNode>;
        unlink(&FakeNode, &OsStr) -> ();
        remove_directory(&FakeNode, &OsStr) -> ();
        rename((&FakeNode, &OsStr), (&FakeNode, &OsStr), RenameFlags) -> ();
        open(&FakeNode, OFlags) -> ();
        read_at(&(), u64, usize, &mut Vec<u8>) -> ();
        write_at(&(), u64, &[u8]) -> usize;
        flush(&()) -> ();
        sync(&(), bool) -> ();
        allocate(&(), Allocation) -> ();
        seek(&(), u64, Whence) -> u64;
        copy_range((&(), u64), (&(), u64), usize) -> usize;
        open_directory(&FakeNode) -> ();
        read_directory(&(), u64, &mut dyn FnMut(DirectoryEntry<'_>) -> bool) -> ();
        directory_attributes(&()) -> Attributes;
        sync_directory(&()) -> ();
        get_xattr(&FakeNode, &OsStr, &mut [u8]) -> usize;
        set_xattr(&FakeNode, &OsStr, &[u8], XattrFlags) -> ();
        list_xattrs(&FakeNode, &mut [u8]) -> usize;
        remove_xattr(&FakeNode, &OsStr) -> ();
        statistics(&FakeNode) -> FileSystemStatistics;
    }

    fn has_access_control_lists(&self) -> bool {
        false
    }
}
