//! How far to read ahead of sequential readers, given the latency of the origin.
//!
//! The origin knows the cost and the latency of a request. The mount knows its sequential readers
//! and its memory. The origin passes its part to the mount in these types.

/// The read-ahead that an origin asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadAhead {
    /// How often a reader must continue a stream before prefetch starts.
    pub hits_min: u32,
    /// How far ahead to read first, in bytes.
    pub first_bytes: u64,
    /// How far ahead to read at most, in bytes: more would not arrive sooner.
    pub most_bytes: u64,
    /// How far ahead to read at most, as a multiple of the bytes read. It bounds the bytes that are
    /// prefetched in vain. `None`: twice as far with each read.
    pub times_read: Option<u64>,
    /// The longest run to request at once, in bytes: several shorter ones arrive faster than one
    /// longer one.
    pub run_bytes: u64,
}

impl Default for ReadAhead {
    /// An origin near by, where a request costs nothing but its time. Two hits would not be enough.
    /// If a program reads whole records at random in a file of a hundred, one in twenty of its
    /// streams would count as sequential.
    fn default() -> Self {
        Self {
            hits_min: 3,
            first_bytes: 256 << 10,
            most_bytes: u64::MAX,
            times_read: None,
            run_bytes: u64::MAX,
        }
    }
}
