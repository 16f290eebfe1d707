//! Answers as they stand in a payload (`include/uapi/linux/fuse.h`, protocol 7.42).
//!
//! Attributes come as the protocol library wants them, so that what the kernel is told is the same
//! whichever way a request came.

use fuser::{FileAttr, FileType, FopenFlags};
use ogive_origin::Time;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

/// `sizeof(struct fuse_entry_out)`.
const ENTRY_BYTES: usize = 128;
/// `sizeof(struct fuse_dirent)`, without the name.
const LISTED_BYTES: usize = 24;
/// What an entry of a listing is rounded up to.
const LISTED_ALIGNMENT: usize = 8;

/// How long and under which generation the kernel may believe in a name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Believed {
    pub(super) name: Duration,
    pub(super) attributes: Duration,
    pub(super) generation: u64,
}

impl Believed {
    /// Nothing is believed.
    pub(super) const NONE: Self =
        Self { name: Duration::ZERO, attributes: Duration::ZERO, generation: 0 };
}

/// An answer that grows in the buffer it is to stand in. What finds no room is left out.
pub(super) struct Reply<'a> {
    bytes: &'a mut [u8],
    length: usize,
}

impl<'a> Reply<'a> {
    pub(super) fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes, length: 0 }
    }

    /// Bytes of the answer.
    pub(super) fn length(&self) -> usize {
        self.length
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        if let Some(room) =
            self.bytes.get_mut(self.length..).and_then(|room| room.get_mut(..bytes.len()))
        {
            room.copy_from_slice(bytes);
            self.length += bytes.len();
        }
    }

    pub(super) fn u32(&mut self, number: u32) {
        self.bytes(&number.to_ne_bytes());
    }

    pub(super) fn u64(&mut self, number: u64) {
        self.bytes(&number.to_ne_bytes());
    }

    /// `struct fuse_attr_out`.
    pub(super) fn attributes(&mut self, valid: Duration, attributes: &FileAttr) {
        self.u64(valid.as_secs());
        self.u32(valid.subsec_nanos());
        self.u32(0);
        self.attribute_fields(attributes);
    }

    /// `struct fuse_entry_out`: an inode and its attributes. The kernel counts a reference to it.
    pub(super) fn entry(&mut self, believed: Believed, attributes: &FileAttr) {
        self.entry_of(attributes.ino.0, believed, attributes);
    }

    fn entry_of(&mut self, node: u64, believed: Believed, attributes: &FileAttr) {
        self.u64(node);
        self.u64(believed.generation);
        self.u64(believed.name.as_secs());
        self.u64(believed.attributes.as_secs());
        self.u32(believed.name.subsec_nanos());
        self.u32(believed.attributes.subsec_nanos());
        self.attribute_fields(attributes);
    }

    /// `struct fuse_attr`.
    fn attribute_fields(&mut self, attributes: &FileAttr) {
        let times = [attributes.atime, attributes.mtime, attributes.ctime].map(Time::from);
        self.u64(attributes.ino.0);
        self.u64(attributes.size);
        self.u64(attributes.blocks);
        times.iter().for_each(|time| self.u64(time.seconds as u64));
        times.iter().for_each(|time| self.u32(time.nanoseconds));
        self.u32(type_bits(attributes.kind) | u32::from(attributes.perm));
        self.u32(attributes.nlink);
        self.u32(attributes.uid);
        self.u32(attributes.gid);
        self.u32(attributes.rdev);
        self.u32(attributes.blksize);
        self.u32(0);
    }

    /// `struct fuse_open_out`.
    pub(super) fn opened(&mut self, handle: u64, flags: FopenFlags) {
        self.u64(handle);
        self.u32(flags.bits());
        self.u32(0);
    }

    /// `struct fuse_dirent`; false if there is no room for it. `cookie` is where to go on.
    pub(super) fn listed(
        &mut self,
        number: u64,
        cookie: u64,
        kind: FileType,
        name: &OsStr,
    ) -> bool {
        let has_room = self.has_room(LISTED_BYTES, name);
        if has_room {
            self.u64(number);
            self.u64(cookie);
            self.u32(name.len() as u32);
            self.u32(type_bits(kind) >> 12);
            self.bytes(name.as_bytes());
            self.bytes(&[0; LISTED_ALIGNMENT][..padding(LISTED_BYTES + name.len())]);
        }
        has_room
    }

    /// `struct fuse_direntplus`; false if there is no room for it. With `believed` the kernel counts
    /// a reference to the inode; without, it has to look the name up itself.
    pub(super) fn listed_with_attributes(
        &mut self,
        believed: Option<Believed>,
        cookie: u64,
        attributes: &FileAttr,
        name: &OsStr,
    ) -> bool {
        let has_room = self.has_room(ENTRY_BYTES + LISTED_BYTES, name);
        if has_room {
            let node = believed.map_or(0, |_| attributes.ino.0);
            self.entry_of(node, believed.unwrap_or(Believed::NONE), attributes);
            self.listed(attributes.ino.0, cookie, attributes.kind, name);
        }
        has_room
    }

    fn has_room(&self, fixed_bytes: usize, name: &OsStr) -> bool {
        let length = fixed_bytes + name.len();
        self.bytes.len() - self.length >= length + padding(length)
    }
}

fn padding(length: usize) -> usize {
    length.next_multiple_of(LISTED_ALIGNMENT) - length
}

/// The `S_IFMT` bits of a mode.
fn type_bits(kind: FileType) -> u32 {
    match kind {
        FileType::NamedPipe => 0o010_000,
        FileType::CharDevice => 0o020_000,
        FileType::Directory => 0o040_000,
        FileType::BlockDevice => 0o060_000,
        FileType::RegularFile => 0o100_000,
        FileType::Symlink => 0o120_000,
        FileType::Socket => 0o140_000,
    }
}

#[cfg(test)]
mod tests {
    use super::super::protocol::{u32_at, u64_at};
    use super::*;
    use fuser::INodeNo;
    use std::time::SystemTime;

    fn attributes() -> FileAttr {
        let at = |seconds, nanoseconds| SystemTime::from(Time { seconds, nanoseconds });
        FileAttr {
            ino: INodeNo(11),
            size: 12,
            blocks: 13,
            atime: at(-14, 17),
            mtime: at(15, 18),
            ctime: at(16, 19),
            crtime: SystemTime::UNIX_EPOCH,
            kind: FileType::Directory,
            perm: 0o755,
            nlink: 21,
            uid: 22,
            gid: 23,
            rdev: 24,
            blksize: 25,
            flags: 0,
        }
    }

    const BELIEVED: Believed =
        Believed { name: Duration::new(1, 2), attributes: Duration::new(3, 4), generation: 5 };

    fn check_attributes(bytes: &[u8]) {
        let large: Vec<u64> = (0..6).map(|at| u64_at(bytes, at * 8)).collect();
        assert_eq!(large, [11, 12, 13, (-14i64) as u64, 15, 16]);
        let small: Vec<u32> = (0..10).map(|at| u32_at(bytes, 48 + at * 4)).collect();
        assert_eq!(small, [17, 18, 19, 0o040_755, 21, 22, 23, 24, 25, 0]);
        assert_eq!(bytes.len(), 88);
    }

    #[test]
    fn attributes_stand_where_the_kernel_looks() {
        let mut buffer = [0xff; 200];
        let mut reply = Reply::new(&mut buffer);
        reply.attributes(Duration::new(3, 4), &attributes());
        assert_eq!(reply.length(), 104);
        assert_eq!((u64_at(&buffer, 0), u32_at(&buffer, 8), u32_at(&buffer, 12)), (3, 4, 0));
        check_attributes(&buffer[16..104]);
    }

    #[test]
    fn an_entry_stands_where_the_kernel_looks() {
        let mut buffer = [0xff; 200];
        let mut reply = Reply::new(&mut buffer);
        reply.entry(BELIEVED, &attributes());
        reply.opened(6, FopenFlags::FOPEN_KEEP_CACHE);
        assert_eq!(reply.length(), ENTRY_BYTES + 16);
        let large: Vec<u64> = (0..4).map(|at| u64_at(&buffer, at * 8)).collect();
        assert_eq!(large, [11, 5, 1, 3]);
        assert_eq!((u32_at(&buffer, 32), u32_at(&buffer, 36)), (2, 4));
        check_attributes(&buffer[40..128]);
        assert_eq!((u64_at(&buffer, 128), u32_at(&buffer, 136), u32_at(&buffer, 140)), (6, 2, 0));
    }

    #[test]
    fn entries_of_a_listing_begin_at_multiples_of_eight() {
        let mut buffer = [0xff; 80];
        let mut reply = Reply::new(&mut buffer);
        assert!(reply.listed(1, 7, FileType::RegularFile, OsStr::new("abc")));
        assert_eq!(reply.length(), 32);
        assert!(reply.listed(2, 8, FileType::Symlink, OsStr::new("12345678")));
        assert_eq!(reply.length(), 64);
        assert!(!reply.listed(3, 9, FileType::Symlink, OsStr::new("a")), "there is no room");
        assert_eq!(reply.length(), 64);
        assert_eq!((u64_at(&buffer, 0), u64_at(&buffer, 8)), (1, 7));
        assert_eq!((u32_at(&buffer, 16), u32_at(&buffer, 20)), (3, 8));
        assert_eq!(buffer[24..32], *b"abc\0\0\0\0\0");
        assert_eq!((u64_at(&buffer, 32), u32_at(&buffer, 52)), (2, 10));
        assert_eq!(buffer[64..], [0xff; 16]);
    }

    #[test]
    fn what_was_not_looked_up_has_no_inode_but_a_number_to_show() {
        let mut buffer = [0xff; 320];
        let mut reply = Reply::new(&mut buffer);
        let name = OsStr::new("name");
        assert!(reply.listed_with_attributes(None, 7, &attributes(), name));
        assert!(reply.listed_with_attributes(Some(BELIEVED), 8, &attributes(), name));
        assert!(!reply.listed_with_attributes(Some(BELIEVED), 9, &attributes(), name));
        assert_eq!(reply.length(), 320);
        assert_eq!((u64_at(&buffer, 0), u64_at(&buffer, 128), u64_at(&buffer, 136)), (0, 11, 7));
        assert_eq!((u64_at(&buffer, 160), u64_at(&buffer, 288), u64_at(&buffer, 296)), (11, 11, 8));
        assert_eq!(buffer[312..316], *b"name");
    }

    #[test]
    fn bytes_without_room_are_left_out() {
        let mut buffer = [0; 4];
        let mut reply = Reply::new(&mut buffer);
        reply.bytes(b"12345");
        assert_eq!(reply.length(), 0);
        reply.bytes(b"1234");
        assert_eq!((reply.length(), buffer), (4, *b"1234"));
    }
}
