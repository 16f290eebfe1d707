//! Passes each record that is read to a recording or a sampling, if either is on.
//!
//! Without either, a read costs one relaxed load for both. The file `trace` records everything
//! ([`Recording`]). The files `objects` and `reads` *sample* while a program reads them. A hash
//! selects the records that are counted; the others cost only that hash ([`Sampling`]). A sampling
//! has a lease. It ends with the first sampled record after the lease, so no thread wakes up for
//! it.
//!
//! The lock of the sampling is a leaf.

use crate::record::Version;
use crate::recording::Recording;
use crate::sampling::{Event, Picked, Sampled, Sampling};
use ogive_kstat::trace::Access;
use ogive_origin::Errno;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Instant;

/// Bits of the active observers.
const RECORDS: u8 = 1;
const SAMPLES: u8 = 2;

/// The observers of a mount.
#[derive(Debug, Default)]
pub(crate) struct Observers {
    on: AtomicU8,
    recording: Recording,
    /// Bits of a record's hash that are zero if it is sampled.
    mask: AtomicU64,
    /// A leaf lock. The bit of samples changes under it.
    sampling: Mutex<Option<Box<Sampling>>>,
}

impl Observers {
    /// Whether any observer is active.
    #[inline(always)]
    pub(crate) fn are_active(&self) -> bool {
        self.on.load(Ordering::Relaxed) != 0
    }

    /// Starts a recording.
    ///
    /// # Errors
    /// `EBUSY` if one is running.
    pub(crate) fn start_recording(&self, record_size_bytes: u64) -> Result<(), Errno> {
        self.recording.start(record_size_bytes)?;
        self.on.fetch_or(RECORDS, Ordering::Relaxed);
        Ok(())
    }

    /// Ends the recording; reads that were not taken out are lost.
    pub(crate) fn stop_recording(&self) {
        self.on.fetch_and(!RECORDS, Ordering::Relaxed);
        self.recording.stop();
    }

    /// Takes whole records out of the recording, at most this many bytes.
    pub(crate) fn take_recorded(&self, length_bytes: u32) -> Vec<u8> {
        self.recording.take(length_bytes)
    }

    /// The samples so far. Starts or continues the sampling until the end of a lease from now.
    pub(crate) fn sampled(&self, now: Instant) -> Sampled {
        self.sampling(now, |sampling| sampling.sampled(now))
    }

    /// The last sampled reads, one by one, in the format of `ogive_kstat::sampled_reads`. Starts or
    /// continues the sampling like [`Self::sampled`]. `reads` counts all records that programs have
    /// asked for since the mount.
    pub(crate) fn sampled_reads(&self, now: Instant, reads: u64) -> Vec<u8> {
        self.sampling(now, |sampling| sampling.reads(now, reads))
    }

    /// Reads the sampling; starts one if none is running.
    fn sampling<T>(&self, now: Instant, look: impl FnOnce(&mut Sampling) -> T) -> T {
        let mut sampling = self.sampling.lock();
        sampling.take_if(|sampling| sampling.is_over(now));
        let sampling = sampling.get_or_insert_with(|| Box::new(Sampling::new(now)));
        sampling.renew(now);
        self.mask.store(sampling.mask(), Ordering::Relaxed);
        self.on.fetch_or(SAMPLES, Ordering::Relaxed);
        look(sampling)
    }

    /// A program has read a record. Called only with active observers.
    #[cold]
    pub(crate) fn read(&self, version: Version, index: u64, bytes: usize) {
        let on = self.on.load(Ordering::Relaxed);
        if on & RECORDS != 0 {
            self.recording.note(version, index, bytes, Access::Demand);
        }
        if on & SAMPLES != 0 {
            let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
            self.sample(version, index, Event::Read(bytes));
        }
    }

    /// A record is about to be read ahead. Called only with active observers.
    #[cold]
    pub(crate) fn read_ahead(&self, version: Version, index: u64, bytes: usize) {
        if self.on.load(Ordering::Relaxed) & RECORDS != 0 {
            self.recording.note(version, index, bytes, Access::Prefetch);
        }
    }

    /// A record that a program needs has to be loaded, or was loaded.
    pub(crate) fn loads(&self, version: Version, index: u64, event: Event) {
        if self.on.load(Ordering::Relaxed) & SAMPLES != 0 {
            self.sample(version, index, event);
        }
    }

    fn sample(&self, version: Version, index: u64, event: Event) {
        let hash = crate::sampling::hash(version, index);
        if hash & self.mask.load(Ordering::Relaxed) != 0 {
            return;
        }
        let mut sampling = self.sampling.lock();
        // The sampling may have ended meanwhile.
        let Some(now) = sampling.as_mut() else { return };
        match now.note(hash, version, event, Instant::now()) {
            Picked::Counted => {}
            Picked::LessFromNowOn => self.mask.store(now.mask(), Ordering::Relaxed),
            Picked::Over => {
                *sampling = None;
                self.on.fetch_and(!SAMPLES, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::LEASE;
    use std::time::Duration;

    #[test]
    fn there_is_no_observer_before_the_first_question_and_after_the_lease() {
        let observers = Observers::default();
        assert!(!observers.are_active());
        // The lease began so long ago that the next sampled record ends it.
        let long_ago = Instant::now().checked_sub(2 * LEASE).unwrap();
        assert!(observers.sampled(long_ago).counts.is_empty());
        assert!(observers.are_active());
        observers.read(7, 0, 4096);
        assert!(!observers.are_active(), "the lease was over");
        assert!(observers.sampling.lock().is_none(), "nothing of it is kept");

        let now = Instant::now() + Duration::from_secs(3600);
        observers.sampled(now);
        observers.read(7, 0, 4096);
        observers.loads(7, 0, Event::Miss);
        assert_eq!(observers.sampled(now).counts[&7].reads, 1);
        let later = now + LEASE + Duration::from_secs(1);
        assert!(observers.sampled(later).counts.is_empty(), "that is another sampling");
    }

    #[test]
    fn a_recording_and_a_sampling_do_not_end_each_other() {
        let observers = Observers::default();
        observers.start_recording(4096).unwrap();
        observers.sampled(Instant::now() + Duration::from_secs(3600));
        observers.stop_recording();
        assert!(observers.are_active(), "there is a sampling");
        observers.read(7, 0, 4096);
        assert!(observers.take_recorded(4096).is_empty());
        let long_ago = Instant::now().checked_sub(2 * LEASE).unwrap();
        observers.start_recording(4096).unwrap();
        observers.sampling.lock().as_mut().unwrap().renew(long_ago);
        observers.read(7, 0, 4096);
        assert!(observers.are_active(), "there is a recording");
        observers.stop_recording();
        assert!(!observers.are_active());
    }
}
