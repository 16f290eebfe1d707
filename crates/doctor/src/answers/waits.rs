//! The target of the machine's wait and the evidence for it: requests to disks, swapped pages,
//! stalled tasks, a saturated disk, threads in uninterruptible sleep.
//!
//! Measurements of the whole machine come before those of single threads.

use super::cpu::{Cpu, IOWAIT_PERCENT, Wait};
use super::percent;
use crate::evidence::{KernelStack, Number, Source, Thread};
use crate::facts::{Facts, Known, without_number};
use crate::pattern::Pattern;

/// From this percent of its time a busy disk is a limit.
const DISK_BUSY_PERCENT: f64 = 85.0;
/// Names of the mean number of outstanding requests, and the least of a disk that is a limit.
const QUEUES: [&str; 2] = ["aqu-sz", "avgqu-sz"];
const SHORTEST_QUEUE: f64 = 0.8;
/// Swapped pages, KiB a second, from which they matter.
const SWAP_RATE: f64 = 200.0;
/// Swapped pages in an interval of atop, from which they matter.
const SWAPPED_PAGES: f64 = 1000.0;
/// Percent of the time with a stalled task, from which it matters.
const STALL_PERCENT: f64 = 15.0;
/// A free part of the memory, or of swap, that is as good as none.
const NO_MEMORY_PART: f64 = 0.05;
/// The most sleepers that are named.
const MOST_NAMED: usize = 3;
/// From this many threads in uninterruptible sleep on, the machine waits.
const SLEEPERS: f64 = 3.0;

/// A hung task in the kernel's log: `INFO: task txg_sync:1234 blocked for more than 120 seconds`.
static HUNG: Pattern = Pattern::new(r"task (\S+?):\d+ blocked for more than");

/// A wait, and the evidence for it.
pub(super) struct Waiting {
    /// The target of the wait, if known.
    pub(super) wait: Option<Wait>,
    /// The text of the fact that shows it.
    pub(super) proof: String,
    /// The source of that fact.
    pub(super) source: Option<Source>,
    /// Whether it is a measurement of the machine, not of single threads.
    pub(super) of_machine: bool,
}

impl Waiting {
    fn of_machine(wait: Wait, proof: String, source: Option<Source>) -> Self {
        Self { wait: Some(wait), proof, source, of_machine: true }
    }

    fn of_threads(wait: Option<Wait>, proof: String, source: Option<Source>) -> Self {
        Self { wait, proof, source, of_machine: false }
    }
}

/// The target of the machine's wait, and the evidence for it.
pub(super) fn waits(facts: &Facts, iowait: Option<f64>) -> Option<Waiting> {
    if let Some(iowait) = iowait.filter(|iowait| *iowait >= IOWAIT_PERCENT) {
        let device = busy_disk(facts).map(|(name, _, _)| format!(" ({name} is busy)"));
        let proof = format!(
            "{} of the CPUs' time is I/O wait{}{}",
            percent(iowait),
            device.unwrap_or_default(),
            sleepers_named(facts).map(|names| format!("; {names} in D")).unwrap_or_default()
        );
        let reclaims = facts.thread_max("^kswapd").is_ok_and(|percent| percent >= 30.0);
        let stalls = || stalls(facts).filter(|one| one.wait == Some(Wait::Memory));
        return Some(match swaps(facts).or_else(stalls) {
            Some(memory) => {
                let proof = format!("{}, {proof}", memory.proof);
                Waiting::of_machine(Wait::Memory, proof, memory.source)
            }
            None if reclaims => Waiting::of_machine(Wait::Memory, proof, None),
            None => Waiting::of_machine(Wait::Disks, proof, None),
        });
    }
    swaps(facts)
        .or_else(|| stalls(facts))
        .or_else(|| no_memory(facts))
        .or_else(|| {
            let (name, busy, source) = busy_disk(facts)?;
            let proof = format!("the disk {name} is busy for {} of the time", percent(busy));
            // It proves nothing about CPUs without states.
            let of_machine = iowait.is_some();
            Some(Waiting { wait: Some(Wait::Disks), proof, source: Some(source), of_machine })
        })
        .or_else(|| resync(facts))
        .or_else(|| sleepers(facts))
}

fn swaps(facts: &Facts) -> Option<Waiting> {
    let sum = |names: [&str; 2], rate: &dyn Fn(&str) -> Known<f64>| -> f64 {
        names.into_iter().filter_map(|name| rate(name).ok()).sum()
    };
    let kib = sum(["vmstat.si", "vmstat.so"], &|name| facts.rate(name));
    let kib = kib.max(4.0 * sum(["sar.pswpin", "sar.pswpout"], &|name| facts.rate(name)));
    let pages = sum(["swin", "swout"], &|name| facts.gauge_of("atop", "pag", name));
    let proof = match () {
        () if kib >= SWAP_RATE => format!("{kib:.0} KiB a second are swapped in and out"),
        () if pages >= SWAPPED_PAGES => format!("{pages:.0} pages were swapped in and out"),
        () => return None,
    };
    Some(Waiting::of_machine(Wait::Memory, proof, None))
}

fn stalls(facts: &Facts) -> Option<Waiting> {
    const FIGURES: [&str; 4] =
        ["full_avg10_percent", "some_avg10_percent", "full_avg60_percent", "some_avg60_percent"];
    [(Wait::Memory, "memory"), (Wait::Disks, "^io")].into_iter().find_map(|(wait, scope)| {
        let shown =
            FIGURES.into_iter().filter_map(|one| facts.gauge_of("pressure", scope, one).ok());
        let most = shown.into_iter().find(|value| *value >= STALL_PERCENT)?;
        let proof = format!("for {} of the time tasks stall for {}", percent(most), wait.name());
        Some(Waiting::of_machine(wait, proof, None))
    })
}

/// Memory that is almost used up, and swap that is full.
fn no_memory(facts: &Facts) -> Option<Waiting> {
    let [total, available, swap, free] = ["MemTotal", "MemAvailable", "SwapTotal", "SwapFree"]
        .map(|name| facts.gauge(&format!("meminfo.{name}_bytes")).ok());
    let short = available? <= NO_MEMORY_PART * total?;
    let full = swap.filter(|swap| *swap > 0.0)? * NO_MEMORY_PART >= free?;
    let proof = "memory and swap are full".to_owned();
    (short && full).then_some(Waiting::of_machine(Wait::Memory, proof, None))
}

/// Work of Linux's own RAID on all of an array.
fn resync(facts: &Facts) -> Option<Waiting> {
    let tables = facts.evidence().tables.iter().filter(|table| table.name == "mdstat");
    tables.into_iter().find_map(|table| {
        let action = table.figures.iter().find(|figure| figure.name == "action")?;
        let Number::Text(word) = &action.value else { return None };
        let array = table.scope.as_deref().unwrap_or("an array");
        let proof = format!("a {word} of {array} is running and keeps its disks busy");
        Some(Waiting::of_threads(Some(Wait::Disks), proof, Some(action.source.clone())))
    })
}

/// The busiest disk, if it is a limit.
fn busy_disk(facts: &Facts) -> Option<(String, f64, Source)> {
    let mut best: Option<(String, f64, Source)> = None;
    let disks =
        facts.evidence().tables.iter().filter(|t| matches!(t.name.as_str(), "iostat" | "atopsar"));
    for table in disks {
        let busy = table.figures.iter().find(|figure| {
            matches!(figure.name.as_str(), "util_percent" | "b_percent" | "busy_percent" | "%b")
        });
        let Some(figure) = busy else { continue };
        let Number::Gauge(value) = figure.value else { continue };
        // A disk that serves many requests at once is "busy" with one request at a time.
        let queue = table.figures.iter().find(|figure| QUEUES.contains(&figure.name.as_str()));
        if let Some(Number::Gauge(queue)) = queue.map(|figure| &figure.value)
            && *queue < SHORTEST_QUEUE
        {
            continue;
        }
        if value >= DISK_BUSY_PERCENT && best.as_ref().is_none_or(|(_, most, _)| *most < value) {
            let name = table.scope.clone().unwrap_or_else(|| "a disk".to_owned());
            best = Some((name, value, figure.source.clone()));
        }
    }
    best
}

fn sleepers(facts: &Facts) -> Option<Waiting> {
    facts.start_trace();
    let few = is_short(facts);
    let count = facts.waiting().ok().filter(|count| *count >= SLEEPERS || few && *count >= 1.0);
    let source = facts.take_trace().sources.into_iter().next();
    let evidence = facts.evidence();
    // A live host counts the threads that wait now: its log is history.
    let is_look = !evidence.tasks.is_empty();
    let for_what = if is_look { counted_for(facts) } else { stands_for(facts) };
    if let Some(count) = count {
        let who = sleepers_named(facts).map(|names| format!(" ({names})")).unwrap_or_default();
        let proof = match count {
            1.0 => format!("a thread sleeps and cannot be interrupted (state D){who}"),
            _ => format!("{count:.0} threads sleep and cannot be interrupted (state D){who}"),
        };
        return Some(Waiting::of_threads(for_what, proof, source));
    }
    if is_look {
        return None;
    }
    let hung = evidence.log.iter().find(|line| line.value.contains("blocked for more than"));
    if let Some(line) = hung {
        let who = HUNG.captures(&line.value).map(|found| format!(" ({})", &found[1]));
        let who = who.unwrap_or_default();
        let proof = format!("the kernel reports tasks that have waited for minutes{who}");
        return Some(Waiting::of_threads(for_what, proof, Some(line.source.clone())));
    }
    let (leaf, source) = asleep(facts)?;
    let proof = format!("the threads whose stacks are shown sleep (in {leaf})");
    Some(Waiting::of_threads(for_what, proof, Some(source)))
}

/// Whether the lists are a few rows of sleeping threads with almost no CPU.
fn is_short(facts: &Facts) -> bool {
    let threads = &facts.evidence().threads;
    let used = |thread: &Thread| thread.cpu_percent.or(thread.life_percent).unwrap_or(0.0);
    threads.len() <= 6 && threads.iter().all(|thread| used(thread) < 5.0)
}

/// Names of the threads in uninterruptible sleep: `rsync, txg_sync, nfsd and 2 more`.
pub(super) fn sleepers_named(facts: &Facts) -> Option<String> {
    let threads = facts.evidence().threads.iter();
    let mut names: Vec<&str> = threads
        .filter(|thread| thread.state == Some('D'))
        .map(|thread| without_number(&thread.name))
        .collect();
    names.sort_unstable();
    names.dedup();
    let rest = names.len().saturating_sub(MOST_NAMED);
    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    names.truncate(MOST_NAMED);
    (!names.is_empty()).then(|| names.join(", ") + &more)
}

/// The function in which the first thread sleeps, if all threads with a stack sleep.
fn asleep(facts: &Facts) -> Option<(String, Source)> {
    const SLEEPS: &str = "schedule cv_wait cv_timedwait io_schedule rwsem_down mutex_lock_slow \
        zio_wait txg_wait wait_for";
    let stacks = &facts.evidence().kernel_stacks;
    let leaf = |stack: &KernelStack| {
        let top = stack.frames.iter().take(4).filter_map(|frame| frame.symbol.as_deref());
        let sleeps = |name: &&str| SLEEPS.split(' ').any(|own| name.contains(own));
        top.filter(sleeps).reduce(|_, deeper| deeper).map(str::to_owned)
    };
    let first = leaf(stacks.first()?)?;
    stacks.iter().all(|stack| leaf(stack).is_some()).then(|| (first, stacks[0].source.clone()))
}

/// The target for which most threads of a live host wait.
fn counted_for(facts: &Facts) -> Option<Wait> {
    let kinds = [("^memory", Wait::Memory), ("^disk", Wait::Disks), ("^lock", Wait::Locks)];
    let counted = kinds.map(|(kind, wait)| (facts.gauge_of("waits", kind, "threads").ok(), wait));
    let shown = counted.into_iter().filter_map(|(count, wait)| Some((count?, wait)));
    shown.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(count, _)| *count >= 1.0).map(|one| one.1)
}

/// The target of waiting threads, by the functions on their stacks.
fn stands_for(facts: &Facts) -> Option<Wait> {
    const MARKS: [(Wait, &str); 3] = [
        (Wait::Memory, "shrink_ try_to_free alloc_pages_slow"),
        (Wait::Disks, "io_schedule zio_wait txg_wait blk_ bio_ wait_on_page jbd2 nfs"),
        (Wait::Locks, "mutex rwsem rw_enter rrw_enter cv_wait down_read down_write"),
    ];
    let evidence = facts.evidence();
    let frames = evidence.kernel_stacks.iter().flat_map(|stack| &stack.frames);
    let symbols = frames.filter_map(|frame| frame.symbol.as_deref());
    let lines = evidence.log.iter().map(|line| line.value.as_str());
    let texts: Vec<&str> = symbols.chain(lines).collect();
    let any =
        |names: &str| names.split(' ').any(|name| texts.iter().any(|text| text.contains(name)));
    MARKS.into_iter().find(|(_, names)| any(names)).map(|(wait, _)| wait)
}

/// Whether threads sleep although the states of the CPUs show no wait for disks: they rest in that
/// state, and no thread waits for them.
pub(super) fn is_idle_with_sleepers(cpu: &Cpu, facts: &Facts) -> bool {
    let calm = cpu.busy_percent().is_some_and(|busy| busy < 15.0)
        && cpu.iowait_percent.is_some_and(|iowait| iowait < 3.0);
    calm && cpu.waits_for.is_none() && facts.evidence().log.is_empty()
}
