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
/// Where `struct fuse_read_in`, which requests to list a directory share, has its size.
const READ_SIZE_AT: usize = 16;
/// `sizeof(struct fuse_read_in)` and `sizeof(struct fuse_write_in)`.
const TRANSFER_ARGUMENTS_BYTES: usize = 40;

/// `FUSE_IO_URING_CMD_REGISTER`.
pub(super) const COMMAND_REGISTER: u32 = 1;
/// `FUSE_IO_URING_CMD_COMMIT_AND_FETCH`.
pub(super) const COMMAND_COMMIT_AND_FETCH: u32 = 2;

const OPCODE_READ: u32 = 15;
const OPCODE_WRITE: u32 = 16;
const OPCODE_INIT: u32 = 26;
const OPCODE_READDIR: u32 = 28;
const OPCODE_DESTROY: u32 = 38;
const OPCODE_READDIRPLUS: u32 = 44;

/// The head of a request, and of its answer.
pub(super) type Head = [u8; HEAD_BYTES];

/// `struct fuse_uring_cmd_req`, as it stands in a submission queue entry of 128 bytes.
pub(super) fn command(commit_number: u64, queue: u16) -> [u8; 80] {
    let mut bytes = [0; 80];
    bytes[8..16].copy_from_slice(&commit_number.to_ne_bytes());
    bytes[16..18].copy_from_slice(&queue.to_ne_bytes());
    bytes
}

/// What a request asks for, as far as a ring has to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Read(Transfer),
    Write(Transfer),
    /// Listing a directory: the answer is as long as the request allows.
    List,
    Other,
}

/// Which bytes of which open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Transfer {
    pub(super) handle: u64,
    pub(super) offset: u64,
    pub(super) length_bytes: u32,
}

/// A request whose lengths agree with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) unique: u64,
    pub(super) node: u64,
    pub(super) operation: Operation,
    /// Length of the fixed arguments.
    arguments_bytes: usize,
    /// Length of what follows them.
    pub(super) payload_bytes: usize,
}

impl Request {
    /// Reads a head whose payload stands in a buffer of `capacity_bytes`; `None` if the lengths in
    /// it contradict each other.
    pub(super) fn parse(head: &Head, capacity_bytes: usize) -> Option<Self> {
        let payload_bytes = u32_at(head, PAYLOAD_LENGTH_AT) as usize;
        let total_bytes = u32_at(head, 0) as usize;
        let arguments_bytes =
            total_bytes.checked_sub(REQUEST_HEADER_BYTES)?.checked_sub(payload_bytes)?;
        if payload_bytes > capacity_bytes || arguments_bytes > ARGUMENTS_MAX_BYTES {
            return None;
        }
        let transfer = || {
            (arguments_bytes == TRANSFER_ARGUMENTS_BYTES).then(|| Transfer {
                handle: u64_at(head, ARGUMENTS_AT),
                offset: u64_at(head, ARGUMENTS_AT + 8),
                length_bytes: u32_at(head, ARGUMENTS_AT + READ_SIZE_AT),
            })
        };
        let operation = match u32_at(head, 4) {
            OPCODE_READ => Operation::Read(transfer()?),
            OPCODE_WRITE => Operation::Write(
                transfer().filter(|transfer| transfer.length_bytes as usize == payload_bytes)?,
            ),
            OPCODE_READDIR | OPCODE_READDIRPLUS => transfer().map(|_| Operation::List)?,
            _ => Operation::Other,
        };
        Some(Self {
            unique: unique(head),
            node: u64_at(head, 16),
            operation,
            arguments_bytes,
            payload_bytes,
        })
    }

    /// The header and the fixed arguments of this request: with the payload after them, what a
    /// reader of the device would have read.
    pub(super) fn pieces<'a>(&self, head: &'a Head) -> [&'a [u8]; 2] {
        let arguments = ARGUMENTS_AT..ARGUMENTS_AT + self.arguments_bytes;
        [&head[..REQUEST_HEADER_BYTES], &head[arguments]]
    }
}

/// Number of the request, which its answer must bear.
pub(super) fn unique(head: &Head) -> u64 {
    u64_at(head, 8)
}

/// Number by which the kernel finds the request when it is committed.
pub(super) fn commit_number(head: &Head) -> u64 {
    u64_at(head, COMMIT_NUMBER_AT)
}

/// Lets a request to list a directory ask for no more than `max_bytes`.
pub(super) fn limit_listing(head: &mut Head, max_bytes: u32) {
    let at = ARGUMENTS_AT + READ_SIZE_AT;
    let size = u32_at(head, at).min(max_bytes);
    head[at..at + 4].copy_from_slice(&size.to_ne_bytes());
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

/// An answer in one piece, as it would be written to the device: which request, and its payload or
/// a positive error number. `None` if it is none.
pub(super) fn parse_answer(message: &[u8]) -> Option<(u64, Result<&[u8], i32>)> {
    let (header, payload) = message.split_first_chunk::<ANSWER_HEADER_BYTES>()?;
    let error = i32::from_ne_bytes(u32_at(header, 4).to_ne_bytes());
    if u32_at(header, 0) as usize != message.len() || error > 0 {
        return None;
    }
    let result = if error == 0 { Ok(payload) } else { Err(error.checked_neg()?) };
    Some((u64_at(header, 8), result))
}

/// `struct fuse_write_out`.
pub(super) fn written(bytes: u32) -> [u8; 8] {
    let mut answer = [0; 8];
    answer[..4].copy_from_slice(&bytes.to_ne_bytes());
    answer
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

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().copied().map_or(0, u32::from_ne_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..].first_chunk().copied().map_or(0, u64::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What the kernel writes for a request with these fixed arguments and this much payload.
    fn head(opcode: u32, arguments: &[u8], payload_bytes: u32) -> Head {
        let mut head = [0; HEAD_BYTES];
        let total = 40 + arguments.len() as u32 + payload_bytes;
        head[..4].copy_from_slice(&total.to_ne_bytes());
        head[4..8].copy_from_slice(&opcode.to_ne_bytes());
        head[8..16].copy_from_slice(&7u64.to_ne_bytes());
        head[16..24].copy_from_slice(&99u64.to_ne_bytes());
        head[128..128 + arguments.len()].copy_from_slice(arguments);
        head[264..272].copy_from_slice(&8u64.to_ne_bytes());
        head[272..276].copy_from_slice(&payload_bytes.to_ne_bytes());
        head
    }

    fn transfer(handle: u64, offset: u64, size: u32) -> Vec<u8> {
        let mut arguments = [handle.to_ne_bytes(), offset.to_ne_bytes()].concat();
        arguments.extend_from_slice(&size.to_ne_bytes());
        arguments.resize(40, 0);
        arguments
    }

    #[test]
    fn a_read_says_what_it_wants() {
        let head = head(15, &transfer(3, 8192, 4096), 0);
        let request = Request::parse(&head, 1 << 20).unwrap();
        let wanted = Transfer { handle: 3, offset: 8192, length_bytes: 4096 };
        assert_eq!(request.operation, Operation::Read(wanted));
        assert_eq!((request.unique, request.node, commit_number(&head)), (7, 99, 8));
    }

    #[test]
    fn a_write_must_bring_the_bytes_it_speaks_of() {
        let arguments = transfer(3, 0, 512);
        assert!(Request::parse(&head(16, &arguments, 512), 512).is_some());
        assert!(Request::parse(&head(16, &arguments, 511), 512).is_none());
        assert!(Request::parse(&head(16, &arguments, 512), 511).is_none());
    }

    #[test]
    fn the_pieces_of_a_request_are_what_the_device_would_give() {
        // LOOKUP has no fixed arguments: the name alone, as payload.
        let lookup = head(1, &[], 5);
        let request = Request::parse(&lookup, 4096).unwrap();
        assert_eq!(request.operation, Operation::Other);
        assert_eq!(request.pieces(&lookup).map(<[u8]>::len), [40, 0]);
        let listing = head(44, &transfer(1, 0, 1 << 20), 0);
        let request = Request::parse(&listing, 4096).unwrap();
        assert_eq!(request.operation, Operation::List);
        assert_eq!(request.pieces(&listing).map(<[u8]>::len), [40, 40]);
    }

    #[test]
    fn a_listing_is_limited_and_a_small_one_is_not() {
        let mut large = head(28, &transfer(1, 0, 1 << 20), 0);
        limit_listing(&mut large, 65536);
        assert_eq!(u32_at(&large, 128 + 16), 65536);
        limit_listing(&mut large, 1 << 20);
        assert_eq!(u32_at(&large, 128 + 16), 65536);
    }

    #[test]
    fn answers_bear_the_number_of_their_request() {
        let mut bytes = head(15, &transfer(1, 0, 10), 0);
        answer(&mut bytes, Ok(10));
        assert_eq!(bytes[..16], answer_header(26, 0, 7));
        assert_eq!(u32_at(&bytes, 272), 10);
        answer(&mut bytes, Err(5));
        assert_eq!(bytes[..16], answer_header(16, -5, 7));
        assert_eq!((u32_at(&bytes, 272), commit_number(&bytes)), (0, 8));
        assert_eq!(parse_answer(&bytes[..16]), Some((7, Err(5))));
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
        fn no_head_leads_out_of_its_buffers(bytes in proptest::collection::vec(any::<u8>(), HEAD_BYTES),
            small in any::<bool>(), opcode in 0u32..60, payload in 0u32..8192, total in 0u32..8192) {
            let mut head: Head = bytes.try_into().unwrap();
            if small {
                head[..4].copy_from_slice(&total.to_ne_bytes());
                head[4..8].copy_from_slice(&opcode.to_ne_bytes());
                head[272..276].copy_from_slice(&payload.to_ne_bytes());
            }
            if let Some(request) = Request::parse(&head, 4096) {
                let length: usize = request.pieces(&head).iter().map(|piece| piece.len()).sum();
                prop_assert_eq!(length + request.payload_bytes, u32_at(&head, 0) as usize);
                prop_assert!(request.payload_bytes <= 4096);
            }
            let number = commit_number(&head);
            answer(&mut head, Ok(17));
            prop_assert_eq!(commit_number(&head), number);
        }

        #[test]
        fn any_message_is_an_answer_or_none(message in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Some((_, Err(error))) = parse_answer(&message) {
                prop_assert!(error > 0);
            }
            if message.len() < 16 {
                prop_assert!(parse_answer(&message).is_none());
            }
        }

        #[test]
        fn answers_survive_the_bridge(unique in any::<u64>(), payload in proptest::collection::vec(any::<u8>(), 0..64)) {
            let mut message = answer_header(16 + payload.len() as u32, 0, unique).to_vec();
            message.extend_from_slice(&payload);
            prop_assert_eq!(parse_answer(&message), Some((unique, Ok(&payload[..]))));
        }
    }
}
