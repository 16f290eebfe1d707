//! A request as it arrived (`include/uapi/linux/fuse.h`, protocol 7.42).
//!
//! A request is a header, the fixed arguments of its operation ([`super::arguments`]), and a
//! payload: names, bytes to write. From the device they come in one piece, in a ring each has a
//! place of its own.

use super::arguments::{Arguments, EXTENDED_FLAGS_BYTES};
use super::opcodes::{self, Effect, Rules, Sender};
use super::operation::Operation;
use super::protocol::{Header, opcode, u32_at, u64_at};
use crate::inode_number::Numbers;
use ogive_origin::{FileFlags, FlagsForm};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// Longest value of an extended attribute, and list of their names, of `linux/limits.h`
/// (`XATTR_SIZE_MAX`, `XATTR_LIST_MAX`).
pub(super) const XATTR_MAX_BYTES: usize = 65_536;
/// More than any answer needs except listings, extended attributes and link targets.
const SMALL_ANSWER_BYTES: usize = 256;
/// Longest target of a symbolic link (`PATH_MAX`).
const LINK_MAX_BYTES: usize = 4096;

/// The additional length of the long form of `SETXATTR`'s arguments.
const LONG_SET_XATTR_BYTES: usize = 8;

/// A request whose lengths agree with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) unique: u64,
    pub(super) node: u64,
    /// The requester.
    pub(super) user: u32,
    pub(super) group: u32,
    pub(super) thread: u32,
    pub(super) operation: Operation,
    /// The rules of its opcode.
    pub(super) rules: Rules,
    /// Length of the part after the fixed arguments.
    pub(super) payload_bytes: usize,
}

impl Request {
    /// Reads a request with these fixed arguments and this payload length.
    pub(super) fn new(header: &Header, arguments: &[u8], payload_bytes: usize) -> Self {
        let Header { opcode, unique, node, user, group, thread, .. } = *header;
        let has_length = |dialect| fixed_bytes(opcode, dialect) == Some(arguments.len());
        let is_whole = |operation| match operation {
            Operation::Write { to, .. } => to.length_bytes as usize == payload_bytes,
            _ => true,
        };
        let (operation, rules) = match opcodes::of(opcode) {
            None => (Operation::Unknown, Rules::OF_REFUSED),
            Some(row) if has_length(Dialect::SHORT) || has_length(Dialect::LONG) => {
                (Arguments(arguments).operation(opcode), row.rules)
            }
            Some(_) => (Operation::Malformed, Rules::OF_REFUSED),
        };
        let (operation, rules) = match is_whole(operation) {
            true => (operation, rules),
            false => (Operation::Malformed, Rules::OF_REFUSED),
        };
        Self { unique, node, user, group, thread, operation, rules, payload_bytes }
    }

    /// Reads a request in one piece, and returns where its payload begins. `None` if its lengths
    /// contradict each other.
    pub(super) fn parse(message: &[u8], dialect: Dialect) -> Option<(Self, usize)> {
        let header = Header::parse(message)?;
        let after = message.get(super::protocol::REQUEST_HEADER_BYTES..)?;
        if header.total_bytes != message.len() {
            return None;
        }
        let fixed_bytes = fixed_bytes(header.opcode, dialect).unwrap_or(0);
        let arguments = after.get(..fixed_bytes).unwrap_or(after);
        let payload_bytes = after.len() - arguments.len();
        let mut request = Self::new(&header, arguments, payload_bytes);
        if let (false, Operation::Flags { .. } | Operation::SetFlags { .. }) =
            (dialect.checked_flags, request.operation)
        {
            request.operation = Operation::Control;
        }
        Some((request, message.len() - payload_bytes))
    }

    /// Whether it is about the control directory.
    pub(super) fn is_control(&self) -> bool {
        Numbers::is_control(self.node)
    }

    /// Whether a user may send it to a mount that serves its owner alone.
    pub(super) fn may_be_sent_by(&self, user: u32, owner: u32) -> bool {
        let is_by_handle =
            matches!(self.operation, Operation::SetAttributes { handle: Some(_), .. });
        match self.rules.sender {
            Sender::Owner => user == owner,
            Sender::AnyUser => true,
            Sender::ByHandle => user == owner || is_by_handle,
        }
    }

    /// Whether it must be carried out even if no program waits for its answer any more.
    pub(super) fn ends_something(&self) -> bool {
        self.rules.effect == Effect::Ends
    }

    /// How many bytes an answer may need.
    pub(super) fn answer_max_bytes(&self) -> usize {
        match self.operation {
            Operation::List(wanted) | Operation::ListWithAttributes(wanted) => {
                wanted.length_bytes as usize
            }
            Operation::GetXattr { size_bytes } | Operation::ListXattrs { size_bytes } => {
                (size_bytes as usize).clamp(SMALL_ANSWER_BYTES, XATTR_MAX_BYTES)
            }
            Operation::ReadLink => LINK_MAX_BYTES,
            Operation::Read { from, .. } => from.length_bytes as usize,
            _ => SMALL_ANSWER_BYTES,
        }
    }
}

/// The negotiated form of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dialect {
    /// Extended attributes are set with FUSE's own flags (`FUSE_SETXATTR_EXT`).
    pub(super) long_set_xattr: bool,
    /// The kernel checks the right to set flags before it asks. It does so since Linux 5.13,
    /// protocol 7.33, and so certainly with 7.34.
    pub(super) checked_flags: bool,
}

impl Dialect {
    const SHORT: Self = Self { long_set_xattr: false, checked_flags: true };
    const LONG: Self = Self { long_set_xattr: true, checked_flags: true };
}

/// Length of the fixed arguments of an opcode; `None` if it has no row.
fn fixed_bytes(opcode: u32, dialect: Dialect) -> Option<usize> {
    let has_long_form = opcode == opcode::SETXATTR && dialect.long_set_xattr;
    let more_bytes = if has_long_form { LONG_SET_XATTR_BYTES } else { 0 };
    opcodes::of(opcode).map(|row| row.arguments_bytes + more_bytes)
}

/// The inodes whose references the kernel gives back, and how many of each.
pub(super) fn forgotten(payload: &[u8], count: u32) -> impl Iterator<Item = (u64, u64)> {
    payload.chunks_exact(16).take(count as usize).map(|one| (u64_at(one, 0), u64_at(one, 8)))
}

/// The names in a payload, each of which ends with a zero byte. `None` if there are not exactly
/// `N`, or one is empty.
pub(super) fn names<const N: usize>(payload: &[u8]) -> Option<[OsString; N]> {
    let mut rest = payload;
    let mut names = [const { OsString::new() }; N];
    for name in &mut names {
        let length = rest.iter().position(|byte| *byte == 0).filter(|length| *length > 0)?;
        *name = OsStr::from_bytes(&rest[..length]).to_owned();
        rest = &rest[length + 1..];
    }
    rest.is_empty().then_some(names)
}

/// The name at the beginning of a payload and the bytes after it. `None` if those are not
/// `size_bytes`.
pub(super) fn name_and_value(payload: &[u8], size_bytes: u32) -> Option<(OsString, &[u8])> {
    let length = payload.iter().position(|byte| *byte == 0).filter(|length| *length > 0)?;
    let value = &payload[length + 1..];
    (value.len() == size_bytes as usize)
        .then(|| (OsStr::from_bytes(&payload[..length]).to_owned(), value))
}

/// The flags in a payload; `None` if there are fewer bytes.
pub(super) fn flags(payload: &[u8], form: FlagsForm) -> Option<FileFlags> {
    match form {
        FlagsForm::Plain => payload.first_chunk().map(|b| FileFlags::Plain(u32::from_ne_bytes(*b))),
        FlagsForm::Extended if payload.len() < EXTENDED_FLAGS_BYTES as usize => None,
        FlagsForm::Extended => {
            Some(FileFlags::Extended(std::array::from_fn(|field| u32_at(payload, 4 * field))))
        }
    }
}

#[cfg(test)]
mod tests;
