//! The policies ogive's is compared with, each as its paper prints it.

mod classic;
mod lirs;
mod s3_fifo;
mod tiny_lfu;
mod two_lists;

pub use classic::{Clock, Fifo, Lru, Sieve};
pub use lirs::Lirs;
pub use s3_fifo::S3Fifo;
pub use tiny_lfu::WTinyLfu;
pub use two_lists::{Arc, TwoQ};

/// A replacement policy over dense numbers, entries of one size.
pub trait Replacement {
    /// A request: whether it was a hit.
    fn access(&mut self, number: u32) -> bool;

    /// What a policy has to tell about itself at the end of a replay.
    fn tell(&self) -> String {
        String::new()
    }
}
