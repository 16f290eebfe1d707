//! Heads of arbitrary bytes, for the fuzz target.

use super::head::{self, HEAD_BYTES, Head};
use crate::session::protocol::REQUEST_HEADER_BYTES;
use crate::session::request::Request;

/// The place of the fixed arguments and of the payload's length.
const ARGUMENTS: std::ops::Range<usize> = 128..256;
const PAYLOAD_LENGTH_AT: usize = 272;

/// A head with these bytes as the request's header. The last four are the payload's length as well.
/// `None` if there are too few bytes.
pub(crate) fn any_head(bytes: &[u8]) -> Option<Head> {
    let header: &[u8; REQUEST_HEADER_BYTES] = bytes.first_chunk()?;
    let mut head = [0; HEAD_BYTES];
    head[..REQUEST_HEADER_BYTES].copy_from_slice(header);
    head[PAYLOAD_LENGTH_AT..PAYLOAD_LENGTH_AT + 4].copy_from_slice(&header[36..]);
    Some(head)
}

/// Puts in as many bytes as fit.
pub(crate) fn put_arguments(head: &mut Head, arguments: &[u8]) {
    let length = arguments.len().min(ARGUMENTS.len());
    head[ARGUMENTS][..length].copy_from_slice(&arguments[..length]);
}

/// Makes the lengths agree.
pub(crate) fn put_lengths(head: &mut Head, arguments_bytes: usize, payload_bytes: usize) {
    let total = (REQUEST_HEADER_BYTES + arguments_bytes + payload_bytes) as u32;
    head[..4].copy_from_slice(&total.to_ne_bytes());
    let payload = (payload_bytes as u32).to_ne_bytes();
    head[PAYLOAD_LENGTH_AT..PAYLOAD_LENGTH_AT + 4].copy_from_slice(&payload);
}

/// Reads a request as a ring does.
pub(crate) fn read_head(head: &Head, capacity_bytes: usize) -> Option<Request> {
    head::request(head, capacity_bytes)
}
