//! How far to read ahead of sequential readers, given the latency of the origin.
//!
//! The origin knows the cost and the latency of a request. The mount knows its sequential readers
//! and its memory. The origin passes its part to the mount in these types.

/// The read-ahead that an origin asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadAhead {
    /// How often a reader must go on where it stood before anything is read ahead of it.
    pub hits_min: u32,
    /// How far ahead it is read first, in bytes.
    pub first_bytes: u64,
    /// How far ahead it is read at most, in bytes: more would not arrive sooner.
    pub most_bytes: u64,
    /// How far ahead it is read at most, in times what it has read: what was read ahead in vain is
    /// no more than that. `None`: twice as far with each read.
    pub times_read: Option<u64>,
    /// The longest run that is asked for at once, in bytes: several shorter ones arrive faster than
    /// one that is longer.
    pub run_bytes: u64,
}

impl Default for ReadAhead {
    /// An origin near by, where a request costs nothing but its time. With two hits one in twenty
    /// streams of a program that reads whole records at random in a file of a hundred would be
    /// taken for sequential.
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
