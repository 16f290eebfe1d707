//! Fields of fixed width in a header or a record.

/// The bytes of a field. The caller ensures that `bytes` is long enough.
pub(crate) fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut field = [0; N];
    field.copy_from_slice(&bytes[at..at + N]);
    field
}
