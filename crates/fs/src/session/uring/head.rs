//! The layout of a request in a slot of a ring (`include/uapi/linux/fuse.h`, protocol 7.42).
//!
//! A reader of the device gets a request in one piece. In a ring the kernel splits it into three
//! buffers: the header, the fixed arguments of its operation, and the rest (names, bytes to write).
//! [`Head`] is `struct fuse_uring_req_header`: 128 bytes for the header of the request and later of
//! its answer, 128 for the fixed arguments, then `struct fuse_uring_ent_in_out`. Numbers are in the
//! processor's byte order.
//!
//! This module trusts no length that it reads.

use crate::session::protocol::{self, ANSWER_HEADER_BYTES, Header, REQUEST_HEADER_BYTES};
use crate::session::request::Request;

/// `sizeof(struct fuse_uring_req_header)`.
pub(super) const HEAD_BYTES: usize = 288;
/// Offset of the operation's fixed arguments, and their room in bytes.
const ARGUMENTS_AT: usize = 128;
const ARGUMENTS_MAX_BYTES: usize = 128;
/// Offset in `struct fuse_uring_ent_in_out` of the commit number and the payload's length.
const COMMIT_NUMBER_AT: usize = 264;
const PAYLOAD_LENGTH_AT: usize = 272;

/// `FUSE_IO_URING_CMD_REGISTER`.
pub(super) const COMMAND_REGISTER: u32 = 1;
/// `FUSE_IO_URING_CMD_COMMIT_AND_FETCH`.
pub(super) const COMMAND_COMMIT_AND_FETCH: u32 = 2;

/// The head of a request, and of its answer.
pub(super) type Head = [u8; HEAD_BYTES];

/// `struct fuse_uring_cmd_req`, as it stands in a submission queue entry of 128 bytes.
pub(super) fn command(commit_number: u64, queue: u16) -> [u8; 80] {
    let mut bytes = [0; 80];
    bytes[8..16].copy_from_slice(&commit_number.to_ne_bytes());
    bytes[16..18].copy_from_slice(&queue.to_ne_bytes());
    bytes
}

/// Lengths of the fixed arguments and of the payload of a request, whose payload buffer has
/// `capacity_bytes`; `None` if they contradict each other.
fn lengths(head: &Head, capacity_bytes: usize) -> Option<(usize, usize)> {
    let payload_bytes = protocol::u32_at(head, PAYLOAD_LENGTH_AT) as usize;
    let total_bytes = protocol::u32_at(head, 0) as usize;
    let arguments_bytes =
        total_bytes.checked_sub(REQUEST_HEADER_BYTES)?.checked_sub(payload_bytes)?;
    let fits = payload_bytes <= capacity_bytes && arguments_bytes <= ARGUMENTS_MAX_BYTES;
    fits.then_some((arguments_bytes, payload_bytes))
}

/// Reads a request whose payload buffer has `capacity_bytes`; `None` if its lengths contradict each
/// other.
pub(super) fn request(head: &Head, capacity_bytes: usize) -> Option<Request> {
    let (arguments_bytes, payload_bytes) = lengths(head, capacity_bytes)?;
    let header = Header::parse(head)?;
    Some(Request::new(&header, &head[ARGUMENTS_AT..][..arguments_bytes], payload_bytes))
}

/// The number by which the kernel finds the request when its slot is committed.
pub(super) fn commit_number(head: &Head) -> u64 {
    protocol::u64_at(head, COMMIT_NUMBER_AT)
}

/// Gives an empty head the numbers of a request that its answer needs.
pub(super) fn identify(head: &mut Head, unique: u64, commit_number: u64) {
    head[8..16].copy_from_slice(&unique.to_ne_bytes());
    head[COMMIT_NUMBER_AT..COMMIT_NUMBER_AT + 8].copy_from_slice(&commit_number.to_ne_bytes());
}

/// Writes the header of an answer: `payload_bytes` of the payload buffer, or a positive error
/// number alone.
pub(super) fn answer(head: &mut Head, result: Result<u32, i32>) {
    let unique = protocol::u64_at(head, 8);
    head[..ANSWER_HEADER_BYTES].copy_from_slice(&protocol::answer_header(unique, result));
    let payload_bytes = result.unwrap_or(0);
    head[PAYLOAD_LENGTH_AT..PAYLOAD_LENGTH_AT + 4].copy_from_slice(&payload_bytes.to_ne_bytes());
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::seed::seeded;
    use proptest::prelude::*;

    /// The head of a request with these fixed arguments and this much payload, as the kernel writes
    /// it.
    pub(in super::super) fn head(opcode: u32, arguments: &[u8], payload_bytes: u32) -> Head {
        let mut head = [0; HEAD_BYTES];
        let total = 40 + arguments.len() as u32 + payload_bytes;
        head[..4].copy_from_slice(&total.to_ne_bytes());
        head[4..8].copy_from_slice(&opcode.to_ne_bytes());
        head[8..16].copy_from_slice(&7u64.to_ne_bytes());
        head[16..24].copy_from_slice(&99u64.to_ne_bytes());
        for (at, number) in [(24, 1u32), (28, 2), (32, 3)] {
            head[at..at + 4].copy_from_slice(&number.to_ne_bytes());
        }
        head[128..128 + arguments.len()].copy_from_slice(arguments);
        head[264..272].copy_from_slice(&8u64.to_ne_bytes());
        head[272..276].copy_from_slice(&payload_bytes.to_ne_bytes());
        head
    }

    #[test]
    fn answers_carry_the_number_of_their_request() {
        let mut bytes = head(15, &[0; 40], 0);
        answer(&mut bytes, Ok(10));
        assert_eq!(bytes[..16], protocol::answer_header(7, Ok(10)));
        assert_eq!(protocol::u32_at(&bytes, 272), 10);
        answer(&mut bytes, Err(5));
        assert_eq!(bytes[..16], protocol::answer_header(7, Err(5)));
        assert_eq!((protocol::u32_at(&bytes, 272), commit_number(&bytes)), (0, 8));
    }

    #[test]
    fn commands_name_request_and_queue() {
        let bytes = command(0x0102, 3);
        assert_eq!((protocol::u64_at(&bytes, 8), protocol::u32_at(&bytes, 16)), (0x0102, 3));
    }

    proptest! {
        #![proptest_config(seeded())]

        #[test]
        fn an_answer_leaves_the_number_to_commit_with(bytes in proptest::collection::vec(any::<u8>(), HEAD_BYTES)) {
            let mut head: Head = bytes.try_into().unwrap();
            let number = commit_number(&head);
            answer(&mut head, Ok(17));
            prop_assert_eq!(commit_number(&head), number);
        }

        #[test]
        fn no_head_reaches_beyond_its_buffers(bytes in proptest::collection::vec(any::<u8>(), HEAD_BYTES),
            small in any::<bool>(), opcode in 0u32..60, payload in 0u32..8192, total in 0u32..8192) {
            let mut head: Head = bytes.try_into().unwrap();
            if small {
                head[..4].copy_from_slice(&total.to_ne_bytes());
                head[4..8].copy_from_slice(&opcode.to_ne_bytes());
                head[272..276].copy_from_slice(&payload.to_ne_bytes());
            }
            if let Some(request) = request(&head, 4096) {
                prop_assert!(request.payload_bytes <= 4096);
            }
        }
    }
}
