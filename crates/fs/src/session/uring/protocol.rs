//! What a request looks like in a ring (`include/uapi/linux/fuse.h`, protocol 7.42).
//!
//! The kernel splits what it writes in one piece to a reader of the device: the header of every
//! request, the fixed arguments of its operation, and whatever follows (names, bytes to write) come
//! in buffers of their own. [`Head`] is `struct fuse_uring_req_header`: 128 bytes for the header of
//! the request and later of its answer, 128 for the fixed arguments, then
//! `struct fuse_uring_ent_in_out`. Numbers are in the processor's byte order.
//!
//! Nothing here trusts a length it reads.

/// `sizeof(struct fuse_uring_req_header)`.
pub(super) const HEAD_BYTES: usize = 288;
/// `sizeof(struct fuse_in_header)`.
pub(super) const REQUEST_HEADER_BYTES: usize = 40;
/// `sizeof(struct fuse_out_header)`.
pub(super) const ANSWER_HEADER_BYTES: usize = 16;
/// Where the fixed arguments of the operation begin, and how many bytes they have.
const ARGUMENTS_AT: usize = 128;
const ARGUMENTS_MAX_BYTES: usize = 128;
/// Where `struct fuse_uring_ent_in_out` has the number to commit with and the payload's length.
const COMMIT_NUMBER_AT: usize = 264;
const PAYLOAD_LENGTH_AT: usize = 272;

/// `FUSE_IO_URING_CMD_REGISTER`.
pub(super) const COMMAND_REGISTER: u32 = 1;
/// `FUSE_IO_URING_CMD_COMMIT_AND_FETCH`.
pub(super) const COMMAND_COMMIT_AND_FETCH: u32 = 2;

const OPCODE_INIT: u32 = 26;
const OPCODE_DESTROY: u32 = 38;

/// The head of a request, and of its answer.
pub(super) type Head = [u8; HEAD_BYTES];

/// `struct fuse_uring_cmd_req`, as it stands in a submission queue entry of 128 bytes.
pub(super) fn command(commit_number: u64, queue: u16) -> [u8; 80] {
    let mut bytes = [0; 80];
    bytes[8..16].copy_from_slice(&commit_number.to_ne_bytes());
    bytes[16..18].copy_from_slice(&queue.to_ne_bytes());
    bytes
}

/// Lengths of the fixed arguments and of the payload of a request whose payload stands in a buffer
/// of `capacity_bytes`; `None` if they contradict each other.
pub(super) fn lengths(head: &Head, capacity_bytes: usize) -> Option<(usize, usize)> {
    let payload_bytes = u32_at(head, PAYLOAD_LENGTH_AT) as usize;
    let total_bytes = u32_at(head, 0) as usize;
    let arguments_bytes =
        total_bytes.checked_sub(REQUEST_HEADER_BYTES)?.checked_sub(payload_bytes)?;
    let fits = payload_bytes <= capacity_bytes && arguments_bytes <= ARGUMENTS_MAX_BYTES;
    fits.then_some((arguments_bytes, payload_bytes))
}

/// The header of a request, `struct fuse_in_header`.
pub(super) fn header(head: &Head) -> &[u8] {
    &head[..REQUEST_HEADER_BYTES]
}

/// The fixed arguments of a request, which are this long ([`lengths`]).
pub(super) fn arguments(head: &Head, length_bytes: usize) -> &[u8] {
    &head[ARGUMENTS_AT..][..length_bytes]
}

pub(super) fn opcode(head: &Head) -> u32 {
    u32_at(head, 4)
}

/// Number of the inode that the request is about.
pub(super) fn node(head: &Head) -> u64 {
    u64_at(head, 16)
}

/// User, group and thread that ask.
pub(super) fn caller(head: &Head) -> (u32, u32, u32) {
    (u32_at(head, 24), u32_at(head, 28), u32_at(head, 32))
}

/// Number of the request, which its answer must bear.
pub(super) fn unique(head: &Head) -> u64 {
    u64_at(head, 8)
}

/// Number by which the kernel finds the request when it is committed.
pub(super) fn commit_number(head: &Head) -> u64 {
    u64_at(head, COMMIT_NUMBER_AT)
}

/// Writes the header of an answer: `payload_bytes` of the payload buffer, or a positive error
/// number and nothing.
pub(super) fn answer(head: &mut Head, result: Result<u32, i32>) {
    let unique = unique(head);
    let (error, payload_bytes) = match result {
        Ok(payload_bytes) => (0, payload_bytes),
        Err(error) => (-error, 0),
    };
    let total_bytes = payload_bytes.saturating_add(ANSWER_HEADER_BYTES as u32);
    head[..ANSWER_HEADER_BYTES].copy_from_slice(&answer_header(total_bytes, error, unique));
    head[PAYLOAD_LENGTH_AT..PAYLOAD_LENGTH_AT + 4].copy_from_slice(&payload_bytes.to_ne_bytes());
}

fn answer_header(total_bytes: u32, error: i32, unique: u64) -> [u8; ANSWER_HEADER_BYTES] {
    let mut bytes = [0; ANSWER_HEADER_BYTES];
    bytes[..4].copy_from_slice(&total_bytes.to_ne_bytes());
    bytes[4..8].copy_from_slice(&error.to_ne_bytes());
    bytes[8..].copy_from_slice(&unique.to_ne_bytes());
    bytes
}

/// The header of an answer that came in one piece of `message_bytes`: to which request, and the
/// length of its payload or a positive error number. `None` if it is none.
pub(super) fn parse_answer(
    header: &[u8; ANSWER_HEADER_BYTES],
    message_bytes: usize,
) -> Option<(u64, Result<usize, i32>)> {
    let payload_bytes = message_bytes.checked_sub(ANSWER_HEADER_BYTES)?;
    let error = i32::from_ne_bytes(u32_at(header, 4).to_ne_bytes());
    if u32_at(header, 0) as usize != message_bytes || error > 0 {
        return None;
    }
    let result = if error == 0 { Ok(payload_bytes) } else { Err(error.checked_neg()?) };
    Some((u64_at(header, 8), result))
}

/// `FUSE_INIT` in one piece, from a kernel that offers nothing: a session that is handed its
/// requests has nothing to negotiate.
pub(super) fn init_message() -> Vec<u8> {
    const PROTOCOL: [u32; 4] = [7, 42, 1 << 17, 0];
    let mut arguments = [0; 64];
    for (bytes, number) in arguments.chunks_exact_mut(4).zip(PROTOCOL) {
        bytes.copy_from_slice(&number.to_ne_bytes());
    }
    message(OPCODE_INIT, &arguments)
}

/// `FUSE_DESTROY` in one piece: ends the thread that reads it.
pub(super) fn destroy_message() -> Vec<u8> {
    message(OPCODE_DESTROY, &[])
}

fn message(opcode: u32, arguments: &[u8]) -> Vec<u8> {
    let total_bytes = (REQUEST_HEADER_BYTES + arguments.len()) as u32;
    let mut bytes = Vec::with_capacity(total_bytes as usize);
    bytes.extend_from_slice(&total_bytes.to_ne_bytes());
    bytes.extend_from_slice(&opcode.to_ne_bytes());
    // No request of the kernel has this number.
    bytes.extend_from_slice(&u64::MAX.to_ne_bytes());
    bytes.resize(REQUEST_HEADER_BYTES, 0);
    bytes.extend_from_slice(arguments);
    bytes
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().copied().map_or(0, u32::from_ne_bytes)
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..].first_chunk().copied().map_or(0, u64::from_ne_bytes)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What the kernel writes for a request with these fixed arguments and this much payload.
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
    fn answers_bear_the_number_of_their_request() {
        let mut bytes = head(15, &[0; 40], 0);
        answer(&mut bytes, Ok(10));
        assert_eq!(bytes[..16], answer_header(26, 0, 7));
        assert_eq!(u32_at(&bytes, 272), 10);
        answer(&mut bytes, Err(5));
        assert_eq!(bytes[..16], answer_header(16, -5, 7));
        assert_eq!((u32_at(&bytes, 272), commit_number(&bytes)), (0, 8));
        let header = bytes.first_chunk().unwrap();
        assert_eq!(parse_answer(header, 16), Some((7, Err(5))));
    }

    #[test]
    fn commands_name_request_and_queue() {
        let bytes = command(0x0102, 3);
        assert_eq!((u64_at(&bytes, 8), u32_at(&bytes, 16)), (0x0102, 3));
        assert_eq!(init_message().len(), 104);
        assert_eq!(u32_at(&destroy_message(), 0), 40);
    }

    proptest! {
        #[test]
        fn an_answer_leaves_the_number_to_commit_with(bytes in proptest::collection::vec(any::<u8>(), HEAD_BYTES)) {
            let mut head: Head = bytes.try_into().unwrap();
            let number = commit_number(&head);
            answer(&mut head, Ok(17));
            prop_assert_eq!(commit_number(&head), number);
        }

        #[test]
        fn any_header_is_an_answer_or_none(header in any::<[u8; 16]>(), length in 0usize..64) {
            if let Some((_, Err(error))) = parse_answer(&header, length) {
                prop_assert!(error > 0);
            }
            if length < 16 {
                prop_assert!(parse_answer(&header, length).is_none());
            }
        }

        #[test]
        fn answers_survive_the_bridge(unique in any::<u64>(), length in 0usize..64) {
            let header = answer_header(16 + length as u32, 0, unique);
            prop_assert_eq!(parse_answer(&header, 16 + length), Some((unique, Ok(length))));
        }
    }
}
