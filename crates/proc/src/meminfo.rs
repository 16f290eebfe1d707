//! `/proc/meminfo`: the memory of the machine (proc_meminfo(5)).

/// Name and bytes of each line, in the file's order. The kernel writes KiB; lines without a number
/// are left out.
pub fn rows(text: &str) -> impl Iterator<Item = (&str, u64)> {
    text.lines().filter_map(|line| {
        let (name, rest) = line.split_once(':')?;
        let kib: u64 = rest.split_ascii_whitespace().next()?.parse().ok()?;
        Some((name, kib.saturating_mul(1024)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kibibytes_become_bytes_and_invalid_lines_are_left_out() {
        let text = "MemTotal:  100 kB\nMemFree: much\nodd\nSwapFree:\nSwapTotal: 8 kB\nSla";
        let rows: Vec<_> = rows(text).collect();
        assert_eq!(rows, [("MemTotal", 102_400), ("SwapTotal", 8192)]);
    }
}
