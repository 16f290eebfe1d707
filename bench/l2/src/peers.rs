//! Other caches on the same disk.

use crate::reads::{Ask, contents};
use crate::{Failure, RECORD};
use foyer::{
    BlockEngineConfig, DeviceBuilder as _, FsDeviceBuilder, HybridCache, HybridCacheBuilder,
    HybridCachePolicy, PsyncIoEngineConfig,
};
use ogive_l2::device::{self, AlignedBuffer, Device as _, OpenMode};
use std::path::{Path, PathBuf};
use tokio::runtime::Runtime;

/// foyer's hybrid cache with hardly any memory, so that every read comes from the disk. Values are
/// bytes, neither compressed nor sealed, but summed.
pub(crate) struct Foyer {
    runtime: Runtime,
    cache: HybridCache<u64, Vec<u8>>,
}

impl Foyer {
    /// With so many records on the disk.
    pub(crate) fn open(directory: &Path, records: u64) -> Result<Self, Failure> {
        std::fs::create_dir(directory)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let capacity =
            (records as usize * (RECORD + 8192)).next_multiple_of(16 << 20) + (128 << 20);
        let cache = runtime.block_on(async {
            let device = FsDeviceBuilder::new(directory)
                .with_capacity(capacity)
                .with_direct(true)
                .build()?;
            HybridCacheBuilder::new()
                .with_policy(HybridCachePolicy::WriteOnInsertion)
                .memory(4)
                .with_shards(1)
                .with_weighter(|_, _| 1)
                .storage()
                .with_io_engine_config(PsyncIoEngineConfig::new())
                .with_engine_config(
                    BlockEngineConfig::new(device)
                        .with_block_size(16 << 20)
                        .with_submit_queue_size_threshold(64 << 20)
                        .with_buffer_pool_size(64 << 20),
                )
                .build()
                .await
        })?;
        for number in 0..records {
            cache.insert(number, contents(number));
            // Its queue also drops records that it has no time for.
            if number % 64 == 63 {
                runtime.block_on(cache.storage().wait());
            }
        }
        runtime.block_on(cache.storage().wait());
        Ok(Self { runtime, cache })
    }
}

impl Ask for Foyer {
    fn ask(&self, number: u64) -> bool {
        let found = self.runtime.block_on(async { self.cache.get(&number).await });
        matches!(found, Ok(Some(entry)) if entry.value().len() == RECORD)
    }
}

/// The simplest cache on a disk: one file a record, opened for each read, around the page cache.
pub(crate) struct FilePerRecord(PathBuf);

impl FilePerRecord {
    /// Writes the files.
    pub(crate) fn fill(directory: &Path, records: u64) -> Result<Self, Failure> {
        let files = Self(directory.to_owned());
        for number in 0..records {
            let path = files.path(number);
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent)?;
            }
            std::fs::write(&path, contents(number))?;
        }
        rustix::fs::syncfs(std::fs::File::open(directory)?)?;
        Ok(files)
    }

    fn path(&self, number: u64) -> PathBuf {
        self.0.join(format!("{:02x}", number % 256)).join(format!("{number:016x}"))
    }
}

impl Ask for FilePerRecord {
    fn ask(&self, number: u64) -> bool {
        thread_local! {
            static BUFFER: std::cell::RefCell<AlignedBuffer> = std::cell::RefCell::default();
        }
        let file = device::FileDevice::open(&self.path(number), OpenMode::Read, true);
        BUFFER.with_borrow_mut(|buffer| {
            file.is_ok_and(|file| file.read_at(0, buffer.first(RECORD)).is_ok())
        })
    }
}
