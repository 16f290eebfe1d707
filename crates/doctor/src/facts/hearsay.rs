//! What sentences and the kernel's log say of who uses the CPU, without a figure.
//!
//! "All cores are busy", "arc_prune spins on a core": enough to tell that it is the CPU and whose,
//! and weaker than any tool. A soft lockup is measured by the kernel itself: one CPU was in the
//! kernel for so many seconds, for the thread that is named.

use std::sync::LazyLock;

use regex::Regex;

use super::generic::is_of_a_machine;
use super::sentences::named_threads;
use super::{Facts, is_zfs_thread};
use crate::evidence::Source;

fn compiled(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a constant pattern")
}

/// Words for work of ZFS's, and the subsystem that does it: in a sentence about the CPU they name
/// who uses it.
static WORK: LazyLock<Vec<(Regex, &'static str)>> = LazyLock::new(|| {
    [
        (r"(?i)\bmetaslabs?\b|\bmetaslab_|\bspace ?maps?\b", "metaslab"),
        (r"(?i)\bscrub(?:s|bing)?\b|\bresilver(?:s|ing)?\b", "scan"),
        (r"(?i)\bdedup\w*\b|\bddt\b", "ddt"),
        (r"(?i)\bencrypt\w*\b|\baes[-_ ]", "cipher"),
        (r"(?i)\bcompress(?:ion|ed|es|ing)\b|\bgzip\b|\bzstd\b|\blz4\b", "compress"),
        (r"(?i)\bdecompress\w*\b", "decompress"),
        (r"(?i)\bchecksums?\b|\bsha-?256\b|\bfletcher", "checksum"),
        (r"\bdbuf_|(?i)\bdbuf (?:evict|hash|cache)", "dbuf"),
        (r"(?i)\braid-?z\d? parity\b|\bparity\b", "raidz"),
        (r"\barc_|(?i)\beviction (?:from|of) the arc\b", "arc"),
    ]
    .map(|(pattern, subsystem)| (compiled(pattern), subsystem))
    .into()
});

/// All CPUs are said to be busy.
static ALL_BUSY: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"(?i)\b(?:all|every|each|most|many|[2-9] of \d+)(?: of)?(?: the| its| my| our)? ?(?:\d+ )?",
        r"(?:virtual |logical )?(?:cpus?|cores?|processors?)\b(?: [\w,-]+){0,5}? ",
        r"(?:busy|full|saturated|maxed|maximum|pegged|in the kernel|(?:100|9\d) ?(?:%|percent))",
        r"|\b(?:takes?|uses?|eats?|burns?|keeps?) (?:up )?all (?:the )?(?:\d+ )?(?:cpus?|cores?)\b",
    ))
});

/// The CPU as such is said to be busy.
static CPU_BUSY: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"(?i)\bcpu(?: usage| use| load| utili[sz]ation)?(?: is| goes| jumps| stays| was| sits",
        r"| spikes| climbs| shoots| hovers| hovering| sitting| runs| running| pegged| pinned| stuck",
        r"| maxed(?: out)?)(?: constantly| always| then| now| pegged| pinned| maxed(?: out)?)?(?: at| to| up to| around| about| near| over)?",
        r" (?:100|[5-9]\d) ?(?:%|percent)",
        r"|\b(?:100|9\d) ?(?:%|percent) (?:cpu|system|kernel|sys)\b",
        r"|\b(?:takes?|spends?) most of the cpu\b|\bcpus (?:stay|are) busy\b",
        r"|\bcpus? (?:(?:is|are) )?(?:fully |completely |all )?(?:busy|saturated|maxed|pegged|pinned)\b",
        r"|^(?:it(?:'s| is) )?(?:always |constantly )?(?:pegged|pinned|maxed(?: out)?) at (?:100|9\d) ?%",
        r"|\b(?:server|box|machine|host|nas|everything)(?: is|'s)? (?:pegged|pinned|maxed)\b",
        r"|\b\d+ (?:cpus?|cores?) (?:are |all )*(?:pegged|maxed|busy|(?:at )?(?:100|9\d) ?%)",
    ))
});

/// One CPU is said to be busy.
static ONE_BUSY: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"(?i)\b(?:one|a single|a whole|an entire|a full|a) (?:of the )?(?:cpu|core|processor)s?\b",
        r"(?: [\w,-]+){0,4}? (?:busy|full|pegged|maxed|spin\w*|(?:100|9\d) ?(?:%|percent))",
        r"|\b(?:uses?|takes?|eats?|burns?|at|needs?|keeps?|fills?|on) (?:up )?",
        r"(?:one|a|100 ?% of (?:a|one))(?: whole| full| entire| single)? (?:cpu|core)\b",
        r"|\b100 ?(?:%|percent) of (?:a|one) (?:cpu|core)\b",
    ))
});

/// No CPU is said to be busy.
static NONE_BUSY: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"(?i)\b(?:cpus?|cores?|processors?|machine|system|host|server)(?: is| are| stays?| was)?",
        r"(?: mostly| completely| nearly| almost| otherwise| all)? idle\b|\bidle (?:machine|host|system)\b",
        r"|\b(?:nothing|nobody|no (?:one|process|program|thread)) (?:runs|us(?:es|ing) (?:the |any |much )?cpu)\b",
        r"|\b(?:almost |nearly |next to )?no cpu (?:use|usage|load|time)\b|\bno busy (?:task|process|thread)",
        r"|\bcpu (?:use|usage|load)(?: is| stays| was)?(?: at| about| around| only| under| below| between 0 and)*",
        r" \d ?(?:%|percent)",
        r"|\bcpu(?: use| usage| load)?(?: is| was| stays| looks)(?: very| quite| really)? (?:low|bored",
        r"|negligible|near zero|close to zero|fine)\b|\b(?:hardly|barely) (?:any|uses any) cpu\b",
    ))
});

/// ZFS is said not to be there.
static NO_ZFS: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"(?i)\b(?:no|without) (?:open)?zfs\b(?: (?:on|here|at|in|is|module|loaded|installed)\b|[.,;]|$)",
        r"|\b(?:do|does|did)(?: not|n't) (?:use|run|have) (?:any )?(?:open)?zfs\b",
        r"|\b(?:open)?zfs (?:is|was) not (?:used|installed|loaded|here|involved)\b",
        r"|(?:^|[,;(] ?|\bis |\bit's )not (?:a )?zfs(?: (?:here|box|machine|host|system|server))?(?:[.,;)]|$)",
    ))
});

/// A sentence that tells of use of the CPU.
static USES_CPU: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"(?i)\b(?:cpus?|cores?|spins?|spinning|busy|busily|100 ?%|9\d ?%|high system time|loops?|looping",
        r"|runs? (?:all|forever|for hours|without))\b",
    ))
});

/// A sentence by which something takes the CPU: not one that merely names it.
static TAKES_CPU: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"(?i)\bcpus? (?:time )?(?:is|are) (?:in|busy|spent|high|at|used)\b",
        r"|\b(?:takes?|costs?|uses?|eats?|burns?|spends?|with) (?:up )?(?:[\w%]+ ){0,5}cpus?\b",
        r"|\bhot\b|\bat work\b|\btop of the profile\b|\btogether they take\b|% ?(?:of (?:the |all )?)?cpu\b",
    ))
});

/// What follows a name of which something is denied.
static DENIED: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"(?i)^\S*(?: threads?)? (?:(?:is|are|was|were|does|do|did|has|have)(?: not|n't)\b",
        r"|never\b|no longer\b|(?:is|are) (?:idle|gone|quiet|absent|nowhere))",
    ))
});

/// What the kernel says of a CPU that did not come back from a thread.
static LOCKUP: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"soft lockup(?: - | on |: )CPU#?(\d+) stuck for (\d+)s!?(?: \[([^\]]+?)(?::\d+)?\])?",
        r"|(?:self-detected stall on|detected stalls? on) CPUs?",
    ))
});
/// The thread that a CPU runs while it stalls: a line of the dump.
static RUNNING: LazyLock<Regex> = LazyLock::new(|| compiled(r"^(\S+)\s+R\s+running task\b"));
/// A sentence that tells of one.
static LOCKUP_TOLD: LazyLock<Regex> = LazyLock::new(|| {
    compiled(r"(?i)\b(?:soft lockups?|rcu(?:_\w+)? (?:self-detected )?stalls?)\b")
});

/// How much of the machine is said to be busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// All of it, or most.
    All,
    /// One CPU.
    One,
    /// Next to nothing of it.
    None,
}

/// A CPU that was in the kernel without an end in sight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lockup {
    /// Its number, where said.
    pub cpu: Option<String>,
    /// Seconds, where said.
    pub seconds: Option<String>,
    /// The thread it was in, where said.
    pub thread: Option<String>,
    /// Where it was read.
    pub source: Source,
}

/// Whether a sentence says of a thread that it is not: "z_wr_iss is not in top at all".
fn is_denied(name: &str, text: &str) -> bool {
    let behind = text.split_once(name).map_or("", |(_, behind)| behind);
    DENIED.is_match(behind)
}

impl Facts {
    /// How busy the machine is said to be.
    pub fn said_busy(&self) -> Option<(Said, Source)> {
        let remarks = self.evidence().remarks.iter().enumerate();
        let of_it = remarks.filter(|(_, remark)| is_of_a_machine(&remark.text));
        let texts = of_it.map(|(at, remark)| (self.affirmed_text(at), &remark.source));
        let (mut one, mut none) = (None, None);
        for (text, source) in texts {
            let one_cpu = ONE_BUSY.is_match(text);
            if ALL_BUSY.is_match(text) || !one_cpu && CPU_BUSY.is_match(text) {
                return Some((Said::All, source.clone()));
            }
            if one_cpu {
                one = one.or_else(|| Some((Said::One, source.clone())));
            } else if NONE_BUSY.is_match(text) && !text.contains("otherwise idle") {
                none = none.or_else(|| Some((Said::None, source.clone())));
            }
        }
        one.or(none)
    }

    /// Where it is said that there is no ZFS.
    pub fn said_without_zfs(&self) -> Option<Source> {
        let remarks = &self.evidence().remarks;
        remarks.iter().find(|one| NO_ZFS.is_match(&one.text)).map(|one| one.source.clone())
    }

    /// Whether the lists are of containers: they can show no thread of the kernel.
    pub fn lists_containers(&self) -> bool {
        const LISTS: [&str; 3] = ["kubectl top", "docker stats", "systemd-cgtop"];
        let inputs = &self.evidence().inputs;
        inputs.iter().any(|one| one.formats.iter().any(|name| LISTS.contains(&name.as_str())))
    }

    /// Threads of ZFS and the kernel that sentences about the use of the CPU name.
    pub fn said_users(&self) -> Vec<(String, Source)> {
        let mut users: Vec<(String, Source)> = Vec::new();
        for (at, remark) in self.evidence().remarks.iter().enumerate() {
            let text = self.affirmed_text(at);
            // Who is blocked uses no CPU.
            let blocked = remark.text.contains("blocked for more than");
            if !USES_CPU.is_match(text) || !is_of_a_machine(&remark.text) || blocked {
                continue;
            }
            for name in named_threads(text) {
                if is_denied(&name, &remark.text) {
                    continue;
                }
                if users.iter().all(|(known, _)| *known != name) {
                    users.push((name, remark.source.clone()));
                }
            }
        }
        let by_threads = users.len();
        for (at, remark) in self.evidence().remarks.iter().enumerate() {
            let text = self.affirmed_text(at);
            let takes =
                by_threads == 0 && TAKES_CPU.is_match(text) && is_of_a_machine(&remark.text);
            for (_, subsystem) in WORK.iter().filter(|(words, _)| takes && words.is_match(text)) {
                if users.iter().all(|(known, _)| known != subsystem) {
                    users.push(((*subsystem).to_owned(), remark.source.clone()));
                }
            }
        }
        // ZFS's own threads are what such reports are about; others are named as victims, too.
        users.sort_by_key(|(name, _)| !is_zfs_thread(name));
        users
    }

    /// The lockup or stall that the log or a sentence tells of: one that names its thread first.
    pub fn lockup(&self) -> Option<Lockup> {
        let logged = self.evidence().log.iter().map(|line| (line.value.as_str(), &line.source));
        let told = self.evidence().remarks.iter().map(|one| (one.text.as_str(), &one.source));
        let mut first = None;
        let mut running = logged.clone().filter_map(|(text, _)| RUNNING.captures(text.trim()));
        let running = running.next().map(|found| found[1].to_owned());
        for (text, source) in logged.chain(told) {
            let Some(found) = LOCKUP.captures(text) else { continue };
            let part = |at: usize| found.get(at).map(|part| part.as_str().to_owned());
            let lockup = Lockup {
                cpu: part(1),
                seconds: part(2),
                thread: part(3).or_else(|| running.clone()),
                source: source.clone(),
            };
            if lockup.thread.is_some() {
                return Some(lockup);
            }
            first = first.or(Some(lockup));
        }
        first.or_else(|| {
            let remark =
                self.evidence().remarks.iter().find(|one| LOCKUP_TOLD.is_match(&one.text))?;
            let thread = named_threads(&remark.text).into_iter().next();
            Some(Lockup { cpu: None, seconds: None, thread, source: remark.source.clone() })
        })
    }

    fn affirmed_text(&self, at: usize) -> &str {
        let whole = || self.evidence().remarks.get(at).map_or("", |remark| remark.text.as_str());
        self.affirmed.get(&at).map_or_else(whole, String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::{Evidence, Remark, Statement};

    fn source() -> Source {
        Source { input: "report.txt".into(), line: Some(1) }
    }

    fn facts(text: &str) -> Facts {
        let remarks = vec![Remark { key: None, text: text.to_owned(), source: source() }];
        Facts::new(Evidence { remarks, ..Evidence::default() })
    }

    #[test]
    fn sentences_tell_how_much_is_busy() {
        for (text, said) in [
            ("All cores are at 100% in the kernel.", Some(Said::All)),
            ("z_wr_iss threads take all CPUs during a backup.", Some(Said::All)),
            ("The CPU usage goes to 95% and stays.", Some(Said::All)),
            ("It uses a whole core all the time.", Some(Said::One)),
            ("A single CPU is at 100%.", Some(Said::One)),
            ("The pool is 100% full.", None),
            ("The CPUs are idle.", Some(Said::None)),
            ("CPU use is between 0 and 5%.", Some(Said::None)),
            ("It has 8 cores and 64 GB of memory.", None),
            ("cpu pegged at 100%", Some(Said::All)),
            ("The CPU is pegged at 100% since noon.", Some(Said::All)),
            ("one core is maxed out", Some(Said::One)),
            ("CPU is mostly idle, no iowait to speak of", Some(Said::None)),
            ("The CPU usage is low.", Some(Said::None)),
            ("A scrub may keep all cores busy.", None),
        ] {
            assert_eq!(facts(text).said_busy().map(|(said, _)| said), said, "{text}");
        }
    }

    #[test]
    fn sentences_name_who_uses_it() {
        let users = |text: &str| -> Vec<String> {
            facts(text).said_users().into_iter().map(|(name, _)| name).collect()
        };
        assert_eq!(users("kswapd0 and arc_prune spin on all cores."), ["arc_prune", "kswapd0"]);
        assert!(users("txg_sync waits for the disks.").is_empty());
    }

    #[test]
    fn a_lockup_names_its_thread() {
        let worker = "BUG: soft lockup - CPU#3 stuck for 26s! [kworker/3:1:812]".to_owned();
        let log = vec![Statement { value: worker, source: source() }];
        let found = Facts::new(Evidence { log, ..Evidence::default() }).lockup().expect("one");
        assert_eq!(found.thread.as_deref(), Some("kworker/3:1"));
        let line = "watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [z_wr_iss:1234]".to_owned();
        let log = vec![Statement { value: line, source: source() }];
        let found = Facts::new(Evidence { log, ..Evidence::default() }).lockup().expect("one");
        assert_eq!(found.thread.as_deref(), Some("z_wr_iss"));
        assert_eq!(found.cpu.as_deref(), Some("3"));
        assert!(facts("The disks are slow.").lockup().is_none());
    }
}
