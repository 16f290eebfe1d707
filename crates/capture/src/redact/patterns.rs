//! The regular expressions of redaction, and the replacements of the secrets that they find.

use std::sync::LazyLock;

use regex::{Captures, Regex};

type Pattern = LazyLock<Regex>;

/// Makes a static of each pattern, compiled at its first use.
macro_rules! patterns {
    ($($(#[$meaning:meta])* $name:ident = $pattern:literal;)*) => {
        $($(#[$meaning])* pub(super) static $name: Pattern = LazyLock::new(|| {
            Regex::new($pattern).expect("the pattern is a constant that a test compiles")
        });)*

        #[cfg(test)]
        const ALL: &[&Pattern] = &[$(&$name),*];
    };
}

patterns! {
    /// Lines of the kernel's log that are evidence.
    LOG = r"(?i)\b(zfs|spl|zio|vdev|zvol|arc_|txg|dbuf|icp)|I/O error|blk_update_request|blocked for more than|soft lockup|hard LOCKUP|rcu.*(stall|detected)|Call Trace|</?TASK>|\+0x[0-9a-f]+/0x|page allocation failure|Out of memory|oom-kill|medium error|hard resetting link|link is slow|(ata|nvme)\d.*(reset|timeout|error)|clocksource|AVX|xsave|fpu";
    /// Words of the kernel's command line that are evidence.
    BOOT = r"^(init_on_(alloc|free)|mitigations|spectre|spec_store|transparent_hugepage|hugepages?(z|sz)?|default_hugepagesz|isolcpus|nohz|rcu_nocbs|numa|cgroup|systemd\.unified|elevator|preempt|nosmt|maxcpus|clearcpuid|noxsave|nosimd|intel_pstate|processor\.max_cstate|idle|zfs\.|spl\.|icp\.)";
    /// A program's name in the kernel's log, with the words before and after it.
    TASK = r"(?P<before>\btask |\bComm: |\bcomm: |\bprocess \d+ \(|stuck for \d+s! \[)(?P<name>.+?)(?P<behind>:\d+|\)| Not tainted| Tainted|$)";
    /// The user and the host that built a kernel. The host's name may have no dot.
    BUILDER = r"[^\s()@]+@[^\s()@]+";
    /// An absolute path after a character that can precede one, and the words after it that may
    /// belong to it. Columns are two blanks apart, so no path extends over them.
    PATH = r#"(?m)(?P<before>^|[\s"'=(,\[<:])(?P<path>/[^\s"';,)\]]+)(?P<more>(?: [^\s"';,)\]]+)*)"#;
    /// Paths that are the same on every host.
    COMMON_PATH = r"^/(proc|sys/(module|kernel|fs/cgroup)|lib/modules|usr/src/(zfs|linux)|etc/(zfs|dkms|default)|var/lib/dkms|dev/(sd|nvme|vd|xvd|zd|dm-|md|ada|da|nvd|ram|loop)[a-z0-9]*$)";
    /// An address of a server or a bucket.
    URL = r#"\b[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>]+"#;
    /// Addresses in messages that every host has.
    COMMON_URL = r"^https?://(openzfs\.github\.io|openzfs\.org|zfsonlinux\.org|illumos\.org)/";
    /// A user at a host with a domain.
    MAIL = r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+";
    /// An identity of a disk, a file system or a machine.
    UUID = r"(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b";
    /// A serial number of a disk, as in `/dev/disk/by-id`.
    SERIAL = r"\b(ata|scsi|nvme|wwn|usb|virtio|dm-uuid|lvm-pv-uuid|md-uuid|eui|naa)[-.][A-Za-z0-9_.:+-]{6,}";
    /// An IPv4, IPv6 or MAC address.
    ADDRESS = r"(?i)\b(?:\d{1,3}\.){3}\d{1,3}\b|\b(?:[0-9a-f]{1,4}:){4,7}[0-9a-f]{1,4}\b|\b(?:[0-9a-f]{1,4}:){1,6}(?::[0-9a-f]{1,4})+\b|\b(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}\b";
    /// A release of ZFS that looks like an IPv4 address. No host's address begins with 0.
    RELEASE = r"^0\.";
}

/// The secrets of free text: the pattern, the matches that are public, and the replacement of all
/// others. The order matters, because a later pattern also matches parts of an earlier one.
static SECRETS: [(&Pattern, Option<&Pattern>, &str); 5] = [
    (&URL, Some(&COMMON_URL), "address"),
    (&MAIL, None, "user@host"),
    (&UUID, None, "uuid"),
    (&SERIAL, None, "$1-disk"),
    (&ADDRESS, Some(&RELEASE), "address"),
];

/// Replaces addresses, serial numbers and identities.
pub(super) fn without_secrets(mut text: String) -> String {
    for (secret, public, replacement) in SECRETS {
        let replaced = secret.replace_all(&text, |found: &Captures<'_>| {
            let mut written = String::new();
            match public {
                Some(public) if public.is_match(&found[0]) => written.push_str(&found[0]),
                _ => found.expand(replacement, &mut written),
            }
            written
        });
        if let std::borrow::Cow::Owned(replaced) = replaced {
            text = replaced;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        for pattern in ALL {
            LazyLock::force(pattern);
        }
    }
}
