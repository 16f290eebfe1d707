//! Lines between two outputs that describe the next one: prompts with their commands, banners of
//! files, dates, Markdown fences.

use std::borrow::Cow;

use super::number;
use super::section::Hint;
use super::word_lists;
use crate::pattern::Pattern;

static PROMPT: Pattern = Pattern::new(
    r"^\s*(?:\[?[\w.-]+@[\w.-]+[^#$%>]{0,80}[#$%>]|[A-Za-z][\w.-]{0,29}(?::[^#$%>\s]{0,60})?[#$%]|[#$%])\s+(\S.*)$",
);
/// Prompts of shells that draw one: `❯ zpool list`, `➜  ~ zpool list`.
static DRAWN_PROMPT: Pattern =
    Pattern::new(r"^\s*(?:\S{1,40}\s+)?[\u{276f}\u{279c}\u{03bb}]\s+(?:~\S*\s+)?(\S.*)$");
/// `PS C:\Users\me> Get-Process`, `C:\>tasklist /v`.
static WINDOWS_PROMPT: Pattern = Pattern::new(r"^(?:PS )?[A-Z]:\\[^>|]{0,80}>\s*([A-Za-z]\S.*)$");
static BANNER: Pattern = Pattern::new(r"^==> (.+) <==$");
static TIME_BANNER: Pattern = Pattern::new(r"^=+ ?t ?= ?(\d+(?:\.\d+)?)\b");
static DATE: Pattern = Pattern::new(
    r"^\s*(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? .{0,20}?(\d{1,2}:\d\d:\d\d)(?: [AP]M)?(?: [A-Z+0-9:]+)?(?: \d{4})?\s*$",
);
static NAME_BANNER: Pattern = Pattern::new(
    r"^(?:={3,}|-{3,}|#{3,}|\*{3,})\s*([\w./ |-]{2,80}?)\s*(?:={3,}|-{3,}|#{3,}|\*{3,}):?$",
);

/// The first words of commands whose output people paste. After a bare `#` or `$` only these make a
/// prompt: `# Overhead  Command` is a heading of perf.
const COMMANDS: &str = "sudo cat grep egrep zgrep head tail sort awk sed watch while for time \
     date echo ls uname \
     uptime free top htop ps pidstat vmstat mpstat iostat sar iotop atop atopsar zfs zpool \
     zdb arcstat arcstat.py zarcstat arc_summary arc_summary.py zarcsummary arc_summary.pl \
     dbufstat perf sysctl dmesg journalctl modinfo lsmod lscpu nproc lsblk mount df kstat \
     prstat lockstat plockstat dtrace bpftrace procstat strace truss ogive slabtop numastat \
     numactl udevadm mdb sample cp rm dd zilstat kubectl docker podman systemd-cgtop glances \
     btop busybox powermetrics spindump pbpaste procinfo nmon dstat collectl tasklist \
     typeperf wmic dool turbostat bpytop";

/// First words of commands without a reader; they record what was done.
const OTHER_COMMANDS: &str = "rsync scp ssh make tar mkdir mv chmod chown apt apt-get dnf yum \
     pacman pkg systemctl \
     service virsh qm pct fio bonnie++ iperf iperf3 modprobe rmmod insmod kldload git cd curl \
     wget find du tee pv zstd gzip lz4 md5sum sha256sum openssl swapon swapoff w arch \
     cryptsetup mdadm smartctl hdparm nvme lspci dmidecode ethtool ip ifconfig netstat \
     nfsstat ss lsof kill stress stress-ng sysbench pgbench mysql psql iozone sync sleep \
     python python3 bash sh cpupower ipmitool sensors umount exportfs smbstatus nice ionice \
     taskset less";

/// The ones among them that may begin an English sentence after a `#`.
const ALSO_ENGLISH: &str = "make find sync service sleep nice kill less";

/// The subject of the text after the boundary, if `text` is a boundary.
pub(crate) fn hint(text: &str, before: &Hint) -> Option<Hint> {
    let line = text.trim_end();
    let first = line.trim_start().bytes().next()?;
    if line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~~") {
        return Some(before.clone());
    }
    if let Some(path) = BANNER.captures(line) {
        return Some(Hint { path: Some(path[1].to_owned()), time_s: before.time_s, command: None });
    }
    if let Some(time) = TIME_BANNER.captures(line) {
        return Some(Hint { time_s: number::plain(&time[1]), ..before.clone() });
    }
    if first.is_ascii_uppercase()
        && let Some(date) = DATE.captures(line)
    {
        return Some(Hint { time_s: number::time_of_day(&date[1]), ..before.clone() });
    }
    let command = prompt(line)?;
    let path = argument_path(&command).or_else(|| before.path.clone());
    Some(Hint { path, command: Some(command.into_owned()), time_s: before.time_s })
}

/// The command at the prompt, if the line is one.
pub(crate) fn command(text: &str) -> Option<String> {
    prompt(text.trim_end()).map(Cow::into_owned)
}

/// The word of a command that names its program.
fn program(command: &str) -> Option<&str> {
    let words = command.split_whitespace();
    let mut names = words.map(|word| word.rsplit('/').next().unwrap_or(word).trim_end_matches(';'));
    names.find(|word| !matches!(*word, "sudo" | "doas") && !word.contains('='))
}

/// The command after a prompt.
fn prompt(line: &str) -> Option<Cow<'_, str>> {
    if !line.contains(['#', '$', '%', '>', '\u{276f}', '\u{279c}', '\u{3bb}']) {
        return None;
    }
    if let Some(command) = WINDOWS_PROMPT.captures(line).and_then(|found| found.get(1)) {
        return Some(Cow::Borrowed(command.as_str()));
    }
    let drawn = DRAWN_PROMPT.captures(line);
    let command = drawn.as_ref().or(PROMPT.captures(line).as_ref())?.get(1)?.as_str();
    let word = program(command)?;
    // `# perf version : 6.1` is a line of a perf header.
    let known = word_lists::has(COMMANDS, word) && !command.contains(" : ");
    let has_host = line.trim_start().starts_with(|c: char| c.is_alphanumeric() || c == '[')
        && line.contains('@');
    (known || has_host || is_other(command, word)).then_some(Cow::Borrowed(command))
}

/// Whether a command runs some other program, and is not a comment that begins like one.
fn is_other(command: &str, word: &str) -> bool {
    if command.contains(" : ") {
        return false;
    }
    let mut rest = command.split_whitespace().skip(1);
    let plain = |word: &str| word.starts_with('-') || word.contains(['/', '=', '|', '>']);
    command.starts_with("./")
        || word_lists::has(OTHER_COMMANDS, word)
            && (!word_lists::has(ALSO_ENGLISH, word) || rest.any(plain))
}

/// The file that a command prints: the last argument of `cat` and similar commands that is a path.
fn argument_path(command: &str) -> Option<String> {
    let first = command.split('|').next().unwrap_or(command);
    let mut words = first.split_whitespace();
    let prints =
        words.any(|word| matches!(word, "cat" | "head" | "tail" | "more" | "less" | "grep"));
    let path = words.rfind(|word| word.starts_with('/'))?;
    prints.then(|| path.to_owned())
}

/// Whether a line is a heading that people put above an output; it is not part of the output.
pub(crate) fn is_heading(text: &str) -> bool {
    NAME_BANNER.is_match(text.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_are_distinguished_from_headings() {
        for (line, command) in [
            ("# arcstat 1", "arcstat 1"),
            ("$ top -H -b -n1", "top -H -b -n1"),
            ("root@host:~# cat /proc/spl/kstat/zfs/arcstats", "cat /proc/spl/kstat/zfs/arcstats"),
            ("[root@host ~]# zpool list", "zpool list"),
            ("user@host /tank $ sudo zfs get all tank", "sudo zfs get all tank"),
            ("host# sysctl vfs.zfs", "sysctl vfs.zfs"),
            (r"PS C:\Users\me> Get-Process", "Get-Process"),
            (r"C:\>tasklist /v", "tasklist /v"),
        ] {
            assert_eq!(prompt(line).as_deref(), Some(command), "{line}");
        }
        for line in [
            "# Overhead  Command",
            "# Total Lost Samples: 0",
            "#",
            "  50.00%  [k] x",
            "$",
            "@freed[a > b]: #",
        ] {
            assert_eq!(prompt(line), None, "{line}");
        }
        let hint = hint("# cat /proc/meminfo", &Hint::default());
        assert_eq!(hint.and_then(|hint| hint.path).as_deref(), Some("/proc/meminfo"));
    }

    #[test]
    fn dates_and_banners_carry_time() {
        let time = |line| hint(line, &Hint::default()).and_then(|hint| hint.time_s);
        assert_eq!(time("Fri Nov 20 11:24:54 UTC 2026"), Some(41_094.0));
        assert_eq!(time("== t=2647.14"), Some(2647.14));
        assert_eq!(time("Fridays are slow at 11:24:54 because of scrubs"), None);
    }
}
