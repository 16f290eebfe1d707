//! The table of opcodes: the rules that apply to an operation before its handler runs.
//!
//! Each opcode has a row:
//!
//! - the length of its fixed arguments
//! - the users that may send it
//! - whether it may wait for the origin
//! - its effect
//! - the references or handles that its answer gives the kernel
//! - the answer of the control directory
//!
//! [`super::arguments`] reads its arguments, and [`super::dispatch`] has its handler, both in the
//! same order. An opcode without a row is answered `ENOSYS`.

use super::protocol::opcode;
use ogive_origin::Errno;

/// One row.
pub(super) struct Row {
    /// Length of the fixed arguments.
    pub(super) arguments_bytes: usize,
    pub(super) rules: Rules,
}

/// The rules of an opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rules {
    pub(super) sender: Sender,
    pub(super) wait: Wait,
    pub(super) effect: Effect,
    pub(super) gift: Gift,
    pub(super) control: ControlAnswer,
}

/// Which users may send it, if the mount serves its owner alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sender {
    /// The mount's owner.
    Owner,
    /// Any user with a descriptor, or the kernel on its own: before it reads or finds the end of a
    /// file, it asks for attributes.
    AnyUser,
    /// Any user if the request names an open file; the owner otherwise.
    ByHandle,
}

/// Whether it may have to wait for the origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// It is answered where it arrived.
    Never,
    /// It is carried out where it arrived, and has no answer.
    OneWay,
    /// It waits, unless it is about the control directory.
    Outside,
    /// It waits, unless its answer is known where it arrived ([`super::exchange`]).
    Unknown,
    /// It waits, also in the control directory: it makes the kernel do work that may wait.
    Always,
}

/// Its effect beyond the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// It makes, removes or moves a name.
    Names,
    /// It ends something, so it is carried out even if no program waits for the answer any more.
    /// Otherwise an open file would never be closed.
    Ends,
    Other,
}

/// The references or handles in its answer, which are taken back if the answer is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gift {
    Nothing,
    /// A reference to an inode.
    Inode,
    /// References to the inodes of a listing.
    Inodes,
    /// An open file.
    File,
    /// A reference to an inode, and an open file of it.
    Created,
    /// An open directory.
    Directory,
}

/// The answer of the control directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ControlAnswer {
    /// The result of the handler.
    Served,
    /// Success without an effect.
    Done,
    Refused(Errno),
}

use ControlAnswer::{Done, Refused, Served};
use Effect::{Ends, Names, Other};
use Gift::{Created, Directory, File, Inode, Inodes, Nothing};
use Sender::{AnyUser, ByHandle, Owner};
use Wait::{Always, Never, OneWay, Outside, Unknown};

impl Rules {
    /// The rules of a refused request: an opcode without a row, or malformed arguments.
    pub(super) const OF_REFUSED: Self = row(0, Owner, Never, Other, Nothing, Served).rules;
}

/// The row of an opcode.
#[rustfmt::skip]
pub(super) fn of(opcode: u32) -> Option<Row> {
    use opcode::*;
    Some(match opcode {
        // opcode            bytes, sender,  wait,    effect, gift,      control
        LOOKUP          => row( 0, Owner,    Unknown, Other, Inode,     Served),
        FORGET          => row( 8, AnyUser,  OneWay,  Ends,  Nothing,   Served),
        GETATTR         => row(16, AnyUser,  Outside, Other, Nothing,   Served),
        SETATTR         => row(88, ByHandle, Outside, Other, Nothing,   Served),
        READLINK        => row( 0, Owner,    Outside, Other, Nothing,   Served),
        SYMLINK         => row( 0, Owner,    Outside, Names, Inode,     Served),
        MKNOD           => row(16, Owner,    Outside, Names, Inode,     Served),
        MKDIR           => row( 8, Owner,    Outside, Names, Inode,     Served),
        UNLINK          => row( 0, Owner,    Outside, Names, Nothing,   Served),
        RMDIR           => row( 0, Owner,    Outside, Names, Nothing,   Served),
        RENAME          => row( 8, Owner,    Outside, Names, Nothing,   Served),
        LINK            => row( 8, Owner,    Outside, Names, Inode,     Served),
        OPEN            => row( 8, Owner,    Unknown, Other, File,      Served),
        READ            => row(40, AnyUser,  Unknown, Other, Nothing,   Served),
        WRITE           => row(40, AnyUser,  Always,  Other, Nothing,   Served),
        STATFS          => row( 0, Owner,    Always,  Other, Nothing,   Served),
        RELEASE         => row(24, AnyUser,  Outside, Ends,  Nothing,   Served),
        FSYNC           => row(16, AnyUser,  Outside, Other, Nothing,   Done),
        SETXATTR        => row( 8, Owner,    Outside, Other, Nothing,   Refused(Errno::NOTSUP)),
        GETXATTR        => row( 8, Owner,    Unknown, Other, Nothing,   Refused(Errno::NODATA)),
        LISTXATTR       => row( 8, Owner,    Outside, Other, Nothing,   Refused(Errno::NOTSUP)),
        REMOVEXATTR     => row( 0, Owner,    Outside, Other, Nothing,   Refused(Errno::NOTSUP)),
        FLUSH           => row(24, AnyUser,  Outside, Ends,  Nothing,   Served),
        OPENDIR         => row( 8, Owner,    Outside, Other, Directory, Served),
        READDIR         => row(40, AnyUser,  Outside, Other, Nothing,   Served),
        RELEASEDIR      => row(24, AnyUser,  Outside, Ends,  Nothing,   Done),
        FSYNCDIR        => row(16, AnyUser,  Outside, Other, Nothing,   Done),
        ACCESS          => row( 8, Owner,    Outside, Other, Nothing,   Done),
        CREATE          => row(16, Owner,    Outside, Names, Created,   Served),
        INTERRUPT       => row( 8, Owner,    OneWay,  Other, Nothing,   Served),
        DESTROY         => row( 0, AnyUser,  Never,   Other, Nothing,   Served),
        IOCTL           => row(32, Owner,    Unknown, Other, Nothing,   Refused(Errno::NOTTY)),
        NOTIFY_REPLY    => row(40, AnyUser,  Never,   Other, Nothing,   Served),
        BATCH_FORGET    => row( 8, AnyUser,  OneWay,  Ends,  Nothing,   Served),
        FALLOCATE       => row(32, AnyUser,  Outside, Other, Nothing,   Refused(Errno::NOTSUP)),
        READDIRPLUS     => row(40, AnyUser,  Outside, Other, Inodes,    Served),
        RENAME2         => row(16, Owner,    Outside, Names, Nothing,   Served),
        LSEEK           => row(24, AnyUser,  Outside, Other, Nothing,   Refused(Errno::INVAL)),
        COPY_FILE_RANGE => row(56, AnyUser,  Outside, Other, Nothing,   Refused(Errno::XDEV)),
        _ => return None,
    })
}

const fn row(
    arguments_bytes: usize,
    sender: Sender,
    wait: Wait,
    effect: Effect,
    gift: Gift,
    control: ControlAnswer,
) -> Row {
    Row { arguments_bytes, rules: Rules { sender, wait, effect, gift, control } }
}
