//! `/proc/PID/status`: the pending signals of a process or a thread (proc_pid_status(5)).

/// The bit of SIGKILL in a mask of signals.
const SIGKILL: u64 = 1 << 8;

/// Whether SIGKILL is pending for this thread; `None` if the file does not have the mask.
pub fn is_thread_killed(status: &[u8]) -> Option<bool> {
    mask(status, b"SigPnd:").map(|pending| pending & SIGKILL != 0)
}

/// Whether SIGKILL is pending for this thread or for its whole process; `None` if the file does not
/// have the masks.
pub fn is_killed(status: &[u8]) -> Option<bool> {
    let pending = mask(status, b"SigPnd:")? | mask(status, b"ShdPnd:")?;
    Some(pending & SIGKILL != 0)
}

/// A mask of signals, in hexadecimal.
fn mask(status: &[u8], name: &[u8]) -> Option<u64> {
    let value = status.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(name))?;
    u64::from_str_radix(std::str::from_utf8(value).ok()?.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sigkill_is_distinguished_from_other_signals() {
        let status = |own, shared| format!("Name:\tx\nSigPnd:\t{own}\nShdPnd:\t{shared}\n");
        let killed = |own, shared| is_killed(status(own, shared).as_bytes());
        let none = "0000000000000000";
        assert_eq!(killed(none, none), Some(false));
        assert_eq!(killed("0000000000000100", none), Some(true));
        assert_eq!(killed(none, "0000000000000100"), Some(true));
        // SIGALRM and SIGCHLD.
        assert_eq!(killed("0000000000002000", "0000000000010000"), Some(false));
        assert_eq!(killed("x", none), None);
        let shared = status(none, "0000000000000100");
        assert_eq!(is_thread_killed(shared.as_bytes()), Some(false));
        assert_eq!(is_killed(b"Name:\t\xff\n"), None);
    }
}
