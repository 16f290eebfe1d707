//! The sicknesses: the source, the options and the expected rule of each.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::ValueEnum;
use ogive_fs::MountOptions;
use ogive_l2::Cipher;

use super::Stop;
use crate::bench::second_level;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// The sicknesses, and health.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Sickness {
    /// 4 KiB reads of records of 1 MiB
    LargeRecords,
    /// Inodes that the kernel cannot release, and a table that is full of them
    Pinned,
    /// A cache that is smaller than the working set
    SmallArc,
    /// Streams that end as soon as prefetch has begun
    Prefetch,
    /// A slow source
    SlowSource,
    /// A slow second level
    SlowL2,
    /// A cache that holds the working set
    Healthy,
}

impl Sickness {
    /// Its name on the command line.
    pub(super) fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// The rule that the doctor must put first; none for health.
    pub(super) fn expect(self) -> Option<&'static str> {
        match self {
            Self::LargeRecords => Some("ogive-record-amplification"),
            Self::Pinned => Some("ogive-prune-futile"),
            Self::SmallArc => Some("ogive-arc-too-small"),
            Self::Prefetch => Some("ogive-prefetch-wasted"),
            Self::SlowSource => Some("ogive-origin-slow"),
            Self::SlowL2 => Some("ogive-l2-slow"),
            Self::Healthy => None,
        }
    }

    /// The problem, in one sentence.
    pub(super) fn story(self) -> &'static str {
        match self {
            Self::LargeRecords => "4 KiB are read at random places of 256 MiB in records of 1 MiB",
            Self::Pinned => "thousands of files are held, but the limit is a thousand inodes",
            Self::SmallArc => "12 MiB are read at random through a cache of 8 MiB",
            Self::Prefetch => {
                "512 KiB are read from random places of many files, then the stream ends"
            }
            Self::SlowSource => "the source runs for one millisecond in two hundred",
            Self::SlowL2 => {
                "the device of the second level runs for one millisecond in two hundred"
            }
            Self::Healthy => "24 MiB are read through a cache of 64 MiB",
        }
    }

    /// The number of files of the source, and their bytes.
    fn files(self) -> (u64, u64) {
        match self {
            Self::LargeRecords => (8, 32 * MIB),
            Self::Pinned => (8_000, 16),
            Self::SmallArc => (12, MIB),
            Self::Prefetch => (32, 16 * MIB),
            Self::SlowSource => (64, 4 * MIB),
            // So many that the ghosts, which cover at most twice the memory, hit few misses: many
            // ghost hits would be another sickness.
            Self::SlowL2 => (16, 12 * MIB),
            Self::Healthy => (24, MIB),
        }
    }

    /// Whether it needs a slow mount below it.
    pub(super) fn slows(self) -> bool {
        matches!(self, Self::SlowSource | Self::SlowL2)
    }

    /// Makes the files, of bytes that do not compress.
    pub(super) fn fill_source(self, source: &Path, stop: &Stop) -> Result<()> {
        let (files, file_bytes) = self.files();
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut block = vec![0_u8; usize::try_from(file_bytes.min(MIB)).unwrap_or(1 << 20)];
        for number in 0..files {
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            let path = source.join(format!("file-{number}"));
            let mut file =
                File::create(&path).with_context(|| format!("cannot make {}", path.display()))?;
            for _ in 0..file_bytes / block.len() as u64 {
                for word in block.as_chunks_mut::<8>().0 {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    *word = state.to_le_bytes();
                }
                file.write_all(&block)
                    .with_context(|| format!("cannot write {}", path.display()))?;
            }
        }
        Ok(())
    }

    /// Options of the mount. All bypass the page cache, so that each read goes to ogive.
    pub(super) fn options(
        self,
        source: &Path,
        mount_point: &Path,
        work: &Path,
        slow: Option<&Path>,
    ) -> Result<MountOptions> {
        let common = MountOptions {
            source: match (self, slow) {
                (Self::SlowSource, Some(slow)) => slow.to_owned(),
                _ => source.to_owned(),
            },
            mount_point: mount_point.to_owned(),
            direct_io: true,
            arc_min_bytes: Some(2 * MIB),
            racy_window: Some(Duration::from_millis(50)),
            release_memory: crate::allocator::release_memory,
            ..MountOptions::default()
        };
        let options = match self {
            Self::LargeRecords => MountOptions {
                arc_max_bytes: Some(32 * MIB),
                arc_min_bytes: Some(16 * MIB),
                record_size_bytes: 1 << 20,
                prefetch_max_bytes: 0,
                ..common
            },
            Self::Pinned => MountOptions {
                arc_max_bytes: Some(16 * MIB),
                inode_limit: 1_000,
                metadata_ttl: Duration::ZERO,
                ..common
            },
            Self::SmallArc => MountOptions {
                arc_max_bytes: Some(8 * MIB),
                record_size_bytes: 16 << 10,
                prefetch_max_bytes: 0,
                ..common
            },
            Self::Prefetch => MountOptions { arc_max_bytes: Some(32 * MIB), ..common },
            Self::SlowSource => {
                MountOptions { arc_max_bytes: Some(16 * MIB), prefetch_max_bytes: 0, ..common }
            }
            Self::SlowL2 => {
                let directory = slow.unwrap_or(work);
                MountOptions {
                    arc_max_bytes: Some(4 * MIB),
                    second_level: Some(second_level::options(
                        &directory.join("second-level"),
                        Cipher::Gcm,
                        256 * MIB,
                    )?),
                    ..common
                }
            }
            Self::Healthy => MountOptions { arc_max_bytes: Some(64 * MIB), ..common },
        };
        Ok(options)
    }

    /// Bytes of one read of the load.
    pub(super) fn read_bytes(self) -> u64 {
        match self {
            Self::LargeRecords => 4 * KIB,
            Self::SmallArc => 16 * KIB,
            _ => 128 * KIB,
        }
    }
}
