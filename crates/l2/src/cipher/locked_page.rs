//! Memory for secrets: a page that is not swapped out, is left out of core dumps, and is wiped.
//!
//! Locked pages count against a limit of the process (`ulimit -l`). When the limit is reached, the
//! secret is kept without a lock, and a warning says once that it may be swapped out.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Once;
use zeroize::Zeroize as _;

const PAGE_BYTES: usize = 4096;

/// A page of its own, so that nothing else is locked or left out with it.
#[repr(C, align(4096))]
struct Page([u8; PAGE_BYTES]);

/// A secret of this many bytes.
pub(super) struct LockedPage<const LENGTH: usize> {
    page: Box<Page>,
    is_locked: bool,
}

impl<const LENGTH: usize> fmt::Debug for LockedPage<LENGTH> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LockedPage([redacted])")
    }
}

impl<const LENGTH: usize> LockedPage<LENGTH> {
    /// Zeroes, to be filled with a secret where they are.
    pub(super) fn zeroed() -> Self {
        const { assert!(LENGTH <= PAGE_BYTES) };
        let page = Box::new(Page([0; PAGE_BYTES]));
        let mut guarded = Self { page, is_locked: false };
        match guarded.protect() {
            Ok(()) => guarded.is_locked = true,
            Err(errno) => {
                static ONCE: Once = Once::new();
                ONCE.call_once(|| {
                    log::warn!("keys of the second level may be swapped out: {errno}");
                });
            }
        }
        guarded
    }

    #[cfg(target_os = "linux")]
    #[expect(unsafe_code, reason = "the calls take addresses")]
    fn protect(&mut self) -> rustix::io::Result<()> {
        use rustix::mm::{Advice, madvise, mlock};
        let start = (&raw mut *self.page).cast();
        // SAFETY: the whole page belongs to this value alone until it is dropped. The advice
        // changes core dumps, not its contents.
        unsafe { madvise(start, PAGE_BYTES, Advice::LinuxDontDump)? };
        // SAFETY: as above; locking changes only whether it may be swapped out.
        unsafe { mlock(start, PAGE_BYTES) }
    }

    #[cfg(target_os = "linux")]
    #[expect(unsafe_code, reason = "the calls take addresses")]
    fn release(&mut self) {
        use rustix::mm::{Advice, madvise, munlock};
        let start = (&raw mut *self.page).cast();
        // SAFETY: the page is still ours, and holds nothing any more. The next owner of the memory
        // finds it as any other.
        let _ = unsafe { madvise(start, PAGE_BYTES, Advice::LinuxDoDump) };
        if self.is_locked {
            // SAFETY: as above; it was locked by us.
            let _ = unsafe { munlock(start, PAGE_BYTES) };
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn protect(&mut self) -> rustix::io::Result<()> {
        Err(rustix::io::Errno::NOSYS)
    }

    #[cfg(not(target_os = "linux"))]
    fn release(&mut self) {}
}

impl<const LENGTH: usize> Deref for LockedPage<LENGTH> {
    type Target = [u8; LENGTH];

    fn deref(&self) -> &[u8; LENGTH] {
        self.page.0.first_chunk().expect("a page is longer")
    }
}

impl<const LENGTH: usize> DerefMut for LockedPage<LENGTH> {
    fn deref_mut(&mut self) -> &mut [u8; LENGTH] {
        self.page.0.first_chunk_mut().expect("a page is longer")
    }
}

impl<const LENGTH: usize> Drop for LockedPage<LENGTH> {
    fn drop(&mut self) {
        self.page.0.zeroize();
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The flags of the mapping that holds an address, as the kernel has them.
    fn flags_of(address: usize) -> Vec<String> {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut inside = false;
        for line in maps.lines() {
            let range = line.split_once(' ').and_then(|(range, _)| range.split_once('-'));
            let bounds = range.and_then(|(start, end)| {
                let number = |text| usize::from_str_radix(text, 16).ok();
                Some(number(start)?..number(end)?)
            });
            if let Some(bounds) = bounds {
                inside = bounds.contains(&address);
            } else if let (true, Some(flags)) = (inside, line.strip_prefix("VmFlags:")) {
                return flags.split_whitespace().map(str::to_owned).collect();
            }
        }
        Vec::new()
    }

    #[test]
    fn a_secret_is_locked_and_left_out_of_dumps_as_long_as_it_lives() {
        let mut secret = LockedPage::<32>::zeroed();
        secret.fill(7);
        let address = &raw const *secret.page as usize;
        let flags = flags_of(address);
        assert!(flags.iter().any(|flag| flag == "dd"), "left out of dumps: {flags:?}");
        assert_eq!(secret.is_locked, flags.iter().any(|flag| flag == "lo"), "{flags:?}");
        assert_eq!(*secret, [7; 32]);
        assert!(!format!("{secret:?}").contains('7'));
        drop(secret);
        assert!(!flags_of(address).iter().any(|flag| flag == "dd" || flag == "lo"));
    }
}
