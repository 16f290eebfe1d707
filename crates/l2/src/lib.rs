//! A sealed second level of a cache, on an SSD that needs no trust.
//!
//! Records that leave memory are compressed, sealed and written to a log of large segments, on a
//! file or block device. A miss in memory reads them from there. The level survives restarts, clean
//! or not. A device that is torn, stale, swapped, stolen or gone makes misses, never wrong bytes.
//! It knows nothing of files or of the first level.
//!
//! | module | idea |
//! |---|---|
//! | [`mod@format`] | the contents of a device, byte for byte (`docs/l2-format.md`) |
//! | [`device`] | where the bytes go |
//! | `cipher` | seals, and the keys they are made with |
//! | `compression` | fewer bytes, where it pays |
//! | `padding` | lengths that tell less |
//! | [`index`] | which records are where, in eight bytes each |
//! | `admission` | which records are worth the wear of an SSD |
//! | `store` | one device: write, reclaim, recover |
//! | `readers` | the threads that read and unseal |
//! | `tier` | all of it together: [`Tier`] |
//! | `health` | when to leave a device alone |
//! | `clock` | the time by which that is decided |
//!
//! `unsafe` is in `device::uring`, in the two functions that lend the kernel a buffer, and in
//! `cipher::locked_page`, which locks the pages of keys.

#![deny(unsafe_code)]

mod admission;
mod cipher;
mod clock;
mod compression;
mod counters;
pub mod device;
pub mod format;
mod health;
pub mod index;
mod padding;
mod readers;
#[cfg(test)]
#[path = "../../../tests/skipped.rs"]
mod skipped;
mod store;
mod tier;

pub use admission::{Admission, Offered, WriteLimits};
pub use cipher::{
    Cipher, MasterKey, Passphrase, Purpose, Seal, SecretError, SegmentKey, derive_from_passphrase,
    nonce,
};
pub use clock::Clock;
pub use compression::{Compression, Compressor, Decompressor, Stored};
pub use counters::Counts;
pub use format::KdfParameters;
pub use padding::Padding;
pub use readers::READER_NAME;
pub use store::{
    DeviceError, Discarded, FormatPolicy, KDF_WORK_MAX_KIB, KeySource, OpenOptions, SharedBytes,
    StoreOptions, Usage, Verification, change_key, discard, format_device, format_device_from,
    read_superblock, verify,
};
pub use tier::{DeviceInUse, Removed, Tier, TierOptions};
