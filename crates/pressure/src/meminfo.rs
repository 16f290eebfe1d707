//! The machine's memory from `/proc/meminfo`.
//!
//! `MemAvailable` (Linux 3.14) is the kernel's own estimate of the memory that programs can take
//! without swapping. It is the free pages above the low watermarks, plus the page cache and
//! reclaimable slab that the system can do without (`si_mem_available()` in `mm/show_mem.c`).

use ogive_proc::meminfo;

/// The fields used, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Meminfo {
    pub(crate) total_bytes: u64,
    pub(crate) free_bytes: u64,
    pub(crate) available_bytes: u64,
    pub(crate) swap_total_bytes: u64,
    pub(crate) swap_free_bytes: u64,
}

impl Meminfo {
    /// `None` without `MemTotal`. Without `MemAvailable`, free memory replaces it, which is too
    /// little but never too much.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (mut total, mut free, mut available) = (None, None, None);
        let (mut swap_total, mut swap_free) = (None, None);
        for (name, bytes) in meminfo::rows(text) {
            let field = match name {
                "MemTotal" => &mut total,
                "MemFree" => &mut free,
                "MemAvailable" => &mut available,
                "SwapTotal" => &mut swap_total,
                "SwapFree" => &mut swap_free,
                _ => continue,
            };
            *field = Some(bytes);
        }
        Some(Self {
            total_bytes: total?,
            free_bytes: free.unwrap_or(0),
            available_bytes: available.or(free).unwrap_or(0),
            swap_total_bytes: swap_total.unwrap_or(0),
            swap_free_bytes: swap_free.unwrap_or(0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kibibytes_become_bytes_and_a_missing_estimate_falls_back_to_free() {
        let text = "MemTotal:  100 kB\nMemFree: 10 kB\nMemAvailable:  60 kB\nHugePages_Total: 0\n\
                    SwapTotal: 8 kB\nSwapFree: 4 kB\n";
        let meminfo = Meminfo::parse(text).unwrap();
        assert_eq!(meminfo.total_bytes, 102_400);
        assert_eq!((meminfo.free_bytes, meminfo.available_bytes), (10_240, 61_440));
        assert_eq!((meminfo.swap_total_bytes, meminfo.swap_free_bytes), (8192, 4096));
        let old = Meminfo::parse("MemTotal: 100 kB\nMemFree: 10 kB\n").unwrap();
        assert_eq!(old.available_bytes, 10_240);
        assert_eq!(Meminfo::parse("MemFree: 10 kB\n"), None);
        assert_eq!(Meminfo::parse("MemTotal: much\n"), None);
    }
}
