//! `/proc/PID/stat` and `/proc/PID/task/TID/stat`: one line about a process or a thread.
//!
//! The name is in parentheses and may itself contain parentheses, blanks and line feeds, so it ends
//! at the last parenthesis. Fields are numbered as in proc_pid_stat(5).

use std::str::FromStr;

/// The kernel's `PF_EXITING` (`include/linux/sched.h`): the thread is exiting.
const EXITING: u64 = 4;

/// One line.
#[derive(Debug, Clone, Copy)]
pub struct Stat<'a> {
    before: &'a [u8],
    /// The name, at most fifteen bytes; longer for some kernel threads.
    pub name: &'a [u8],
    after: &'a [u8],
}

impl<'a> Stat<'a> {
    /// Finds the name in a line. `None` if it is missing.
    pub fn parse(line: &'a [u8]) -> Option<Self> {
        let open = line.iter().position(|byte| *byte == b'(')?;
        let close = line.iter().rposition(|byte| *byte == b')').filter(|close| *close > open)?;
        Some(Self {
            before: &line[..open],
            name: &line[open + 1..close],
            after: &line[close + 1..],
        })
    }

    /// The number of the process or thread: the last word before the name.
    pub fn number(&self) -> Option<i32> {
        words(self.before).last().and_then(parsed)
    }

    /// The state: `R`, `S`, `D`, `Z` and so on.
    pub fn state(&self) -> Option<char> {
        self.field(3)
    }

    /// The number of the parent.
    pub fn parent(&self) -> Option<i32> {
        self.field(4)
    }

    /// Whether the thread is exiting.
    pub fn is_exiting(&self) -> Option<bool> {
        self.field(9).map(|flags: u64| flags & EXITING != 0)
    }

    /// Ticks in user mode.
    pub fn user_ticks(&self) -> Option<u64> {
        self.field(14)
    }

    /// Ticks in the kernel.
    pub fn system_ticks(&self) -> Option<u64> {
        self.field(15)
    }

    /// Ticks, in user mode and in the kernel, of children that it has waited for.
    pub fn children_ticks(&self) -> Option<u64> {
        self.field::<u64>(16)?.checked_add(self.field(17)?)
    }

    /// The start time, in ticks since boot.
    pub fn start_ticks(&self) -> Option<u64> {
        self.field(22)
    }

    /// Resident pages.
    pub fn resident_pages(&self) -> Option<u64> {
        self.field(24)
    }

    /// A field after the name, which is field 2.
    fn field<T: FromStr>(&self, number: usize) -> Option<T> {
        words(self.after).nth(number.checked_sub(3)?).and_then(parsed)
    }
}

fn words(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

fn parsed<T: FromStr>(word: &[u8]) -> Option<T> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FIELDS: &str = "S 2 0 0 0 -1 2129988 0 0 0 0 30 70 5 6 20 -20 1 0 4242 9999 25 0 0\n";

    fn line(name: &[u8]) -> Vec<u8> {
        [b"317 (", name, b") ", FIELDS.as_bytes()].concat()
    }

    #[test]
    fn fields_are_found_after_any_name() {
        for name in [&b"cat"[..], b"a ) (b", b"a) S 1", b"", b"\xff\n\xfe"] {
            let line = line(name);
            let stat = Stat::parse(&line).unwrap();
            assert_eq!((stat.name, stat.number(), stat.state()), (name, Some(317), Some('S')));
            assert_eq!((stat.parent(), stat.is_exiting()), (Some(2), Some(true)));
            assert_eq!((stat.user_ticks(), stat.system_ticks()), (Some(30), Some(70)));
            assert_eq!((stat.children_ticks(), stat.start_ticks()), (Some(11), Some(4242)));
            assert_eq!(stat.resident_pages(), Some(25));
        }
    }

    #[test]
    fn the_number_is_the_last_word_before_the_name() {
        assert_eq!(Stat::parse(b"7 9 (x) R 1").unwrap().number(), Some(9));
        assert_eq!(Stat::parse(b"(x) R 1").unwrap().number(), None);
    }

    #[test]
    fn a_truncated_line_has_its_first_fields() {
        let stat = Stat::parse(b"1 (x) S").unwrap();
        assert_eq!((stat.state(), stat.parent(), stat.resident_pages()), (Some('S'), None, None));
        for wrong in [&b""[..], b"7 (cat S 1", b"7 cat) S (", b"7"] {
            assert!(Stat::parse(wrong).is_none());
        }
    }

    #[test]
    fn the_kernels_own_line_is_read() {
        let line = std::fs::read("/proc/self/stat").unwrap();
        let stat = Stat::parse(&line).unwrap();
        assert_eq!(stat.number(), i32::try_from(std::process::id()).ok());
        assert!(stat.resident_pages() > Some(0) && stat.start_ticks() > Some(0));
        assert_eq!(stat.is_exiting(), Some(false));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(line in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Some(stat) = Stat::parse(&line) {
                let _ = (stat.number(), stat.state(), stat.children_ticks());
            }
        }
    }
}
