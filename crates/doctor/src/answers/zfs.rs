//! The third answer: whether ZFS is among the users, with a lower and an upper bound.
//!
//! ZFS works in its own threads, which a list shows. It also works inside programs that read and
//! write, where only their kernel time or a profile shows it. The lower bound is the CPU of its
//! threads. The upper bound adds the hidden remainder and the kernel time of programs. "No" needs
//! an upper bound that is small compared with the first user, or a host without ZFS.
//!
//! If the question is about an ogive mount, the process of that mount takes the place of ZFS.

use std::collections::HashSet;

use super::cpu::{Cpu, Part, State};
use super::range::{Of, Range};
use super::users::{Kind, User, Users};
use super::{cite, cpus, list_users, percent};
use crate::atlas;
use crate::evidence::Source;
use crate::facts::{Basis, Consumption, Facts, is_zfs_program};

/// Whether ZFS is among the users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Among {
    /// It is not loaded, or its upper bound is small compared with the first user.
    No,
    /// A considerable part is shown to belong to ZFS.
    Yes,
    /// Neither "yes" nor "no" is shown.
    Unknown,
}

impl Among {
    /// The word in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::No => "no",
            Self::Yes => "yes",
            Self::Unknown => "not shown",
        }
    }
}

/// The third answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Zfs {
    /// The answer as one word.
    pub among: Among,
    /// The name in question: `ZFS` or `ogive`.
    pub name: &'static str,
    /// Its use by a list; the upper bound is infinite where nothing bounds it.
    pub listed: Option<Range>,
    /// Its part of the busy samples of a profile.
    pub sampled: Option<Range>,
    /// Whether the evidence mentions it at all.
    pub is_hinted: bool,
    /// The reason.
    pub because: String,
    /// Where it was read.
    pub sources: Vec<Source>,
}

/// From this many CPUs of its own threads on, ZFS is a user.
const SPEAKS_CPUS: f64 = 0.3;
/// The same as a part of the busy CPUs or samples.
const SPEAKS_PART: f64 = 0.15;
/// Up to this part of the first user, a use is small.
const SMALL: f64 = 0.25;
/// A first user below this many CPUs, or percent of all, does not acquit: ZFS may use as much.
const ACQUITS_CPUS: f64 = 0.5;
const ACQUITS_PERCENT: f64 = 20.0;
/// A list with fewer users than this may be an excerpt.
const PICKED_ROWS: usize = 4;
/// In a table with fewer rows of functions than this, the hidden rows may be large.
const MANY_ROWS: usize = 8;
/// A first user with this percent of a profile outweighs all the rest.
const MOST_OF_SAMPLES: f64 = 60.0;

/// Programs whose kernel time is work of the file system that they read and write.
const MOVES_FILES: &str = "rsync cp mv rm tar dd find du ls cat fio smbd nfsd git zfs zpool zdb \
    updatedb updatedb.mlocat bonnie++ iozone sysbench scp rclone borg restic samba nfsd: \
    ganesha.nfsd md5sum sha256sum grep unzip gzip pigz cpio mbuffer filebench";

/// The facts that decide.
struct Shown<'a> {
    facts: &'a Facts,
    list: Option<&'a Consumption>,
    cpu: &'a Cpu,
    users: &'a Users,
}

impl Zfs {
    pub(super) fn of(facts: &Facts, list: Option<&Consumption>, cpu: &Cpu, users: &Users) -> Self {
        let name = if facts.is_ogive() { "ogive" } else { "ZFS" };
        let mut zfs = Self {
            among: Among::Unknown,
            name,
            listed: None,
            sampled: None,
            is_hinted: facts.hints_at_zfs(),
            because: because_seen(facts),
            sources: Vec::new(),
        };
        if name == "ZFS" && facts.zfs_loaded() == Ok(false) {
            if let Some(statement) = &facts.evidence().host.zfs_loaded {
                cite(&mut zfs.sources, &statement.source);
            }
            return zfs.because(Among::No, "it is not loaded");
        }
        let shown = Shown { facts, list, cpu, users };
        zfs.by_own(&shown).by_samples(&shown).by_list(&shown)
    }

    fn because(self, among: Among, because: impl Into<String>) -> Self {
        Self { among, because: because.into(), ..self }
    }

    fn is_one(&self, user: &User) -> bool {
        if self.name == "ogive" { user.name == "ogive" } else { user.kind == Kind::Zfs }
    }

    /// By the CPU of its own threads and commands on a list. Otherwise by a log, a lock, stacks or
    /// a timed command with its name.
    fn by_own(mut self, shown: &Shown<'_>) -> Self {
        let Shown { list, cpu, users, .. } = *shown;
        // Where samples show the users, a list may still have ZFS's threads; threads that use
        // nothing are no users.
        let mut rows = match users.is_of_samples() {
            true => Vec::new(),
            false => users.list.clone(),
        };
        if let Some(list) = list {
            let known: HashSet<&str> = users.list.iter().map(|user| user.name.as_str()).collect();
            let others =
                list.users.iter().filter(|one| rows.is_empty() || !known.contains(&*one.name));
            let others: Vec<User> =
                others.map(|one| list_users::user(one, list.basis, cpu)).collect();
            rows.extend(others);
        }
        let own: Vec<&User> = rows.iter().filter(|user| self.is_one(user)).collect();
        let Some(first) = own.first().filter(|user| user.part(Of::PercentOfBusy).is_none()) else {
            return self;
        };
        match list {
            Some(list) => {
                let named = list.users.iter().filter(|one| own.iter().any(|u| u.name == one.name));
                named.take(2).for_each(|one| cite(&mut self.sources, &one.source));
            }
            None => self.sources.clone_from(&users.sources),
        }
        let Some(of) = first.used.map(|used| used.of) else {
            let because = format!("the evidence names {}, which belongs to it", first.name);
            return self.because(Among::Yes, because);
        };
        let sum = |of_own: bool, end: fn(Range) -> f64| -> f64 {
            let users = rows.iter().filter(|user| self.is_one(user) == of_own);
            users.filter_map(|user| user.part(of)).map(end).sum::<f64>().abs()
        };
        let busy = match of {
            Of::Cpus => cpu.busy_cpus(),
            Of::PercentOfMachine => cpu.busy_percent(),
            _ => return self,
        };
        let most = sum(true, |used| used.most);
        let of_others = sum(false, |used| used.most);
        let all = most + of_others;
        // It has at least the part of the busy CPUs that the other ranges leave.
        let left = busy.map_or(0.0, |busy| busy - of_others).min(most);
        let least = sum(true, |used| used.least).max(left);
        let busy = busy.or_else(|| list.filter(|list| list.comes_down).map(|_| all));
        self.listed = Some(Range::between(least, f64::INFINITY, of));
        let speaks = of == Of::Cpus && least >= SPEAKS_CPUS
            || busy.is_some_and(|busy| least >= SPEAKS_PART * busy && busy >= 0.3);
        if !speaks {
            return self;
        }
        let used = Range::between(least, most, of).words();
        let names: Vec<&str> = own.iter().take(3).map(|one| one.name.as_str()).collect();
        let names = names.join(", ");
        let because = match self.name {
            "ogive" => format!("its process uses {used}"),
            _ if list.is_none() => format!("its command {names} used {used}"),
            _ if own.iter().all(|one| is_zfs_program(&one.name)) => {
                format!("its commands ({names}) use {used}")
            }
            _ => format!("its threads ({names}) use {used}"),
        };
        self.because(Among::Yes, because)
    }

    /// By samples: its functions and its threads.
    fn by_samples(mut self, shown: &Shown<'_>) -> Self {
        let Shown { facts, users, .. } = *shown;
        if self.among == Among::Yes {
            return self;
        }
        let own = users.list.iter().filter(|user| self.is_one(user));
        let own = own
            .filter_map(User::samples_percent)
            .fold(None, |sum, one| Some(sum.unwrap_or(0.0) + one));
        facts.start_trace();
        let functions = facts.profiled_zfs_share().ok().filter(|_| self.name == "ZFS");
        let shares = match self.name {
            "ogive" => own.map(|share| (share, share, true)),
            _ if !users.is_of_samples() && functions.is_none() => None,
            _ => {
                // Its own threads and commands count, whatever their functions.
                let least = own.unwrap_or(0.0).max(functions.unwrap_or(0.0));
                let rest = (100.0 - facts.profile_shown()).max(0.0) + facts.unowned_share();
                // Where most functions are locks and copies, their owner decides.
                let is_owned = facts.unowned_share() < 0.4 * facts.profile_shown();
                let is_long = rest < 50.0 || facts.top_symbols(usize::MAX).len() >= MANY_ROWS;
                Some((least, (least + rest).min(100.0), is_owned && is_long))
            }
        };
        let Some((least, most, is_owned)) = shares else { return self };
        for source in facts.take_trace().sources.iter().take(2) {
            cite(&mut self.sources, source);
        }
        self.sampled = Some(Range::between(least, most, Of::PercentOfBusy));
        let has = format!("{} of the busy samples are in its threads or functions", percent(least));
        if least >= 100.0 * SPEAKS_PART {
            return self.because(Among::Yes, has);
        }
        let first = users.list.iter().filter(|user| !self.is_one(user));
        let first = first.filter_map(User::samples_percent).fold(0.0, f64::max);
        // A table of functions shows the largest: below its last row are many small ones.
        let rest = most - least;
        let small =
            most <= SMALL * first || least <= SMALL * first && (50.0..=80.0).contains(&rest);
        let outweighs = first >= MOST_OF_SAMPLES && least < 5.0;
        if !is_owned || !(small && first >= 10.0 || most < 100.0 * SPEAKS_PART || outweighs) {
            let (least, most) = (percent(least), percent(most));
            let because = format!("it has at least {least} and at most {most} of the busy samples");
            return self.because(Among::Unknown, because);
        }
        match rest {
            rest if rest >= 1.0 => {
                let rest = percent(rest);
                self.because(Among::No, format!("{has}, {rest} in functions that are not shown"))
            }
            _ => self.because(Among::No, has),
        }
    }

    /// By a list of threads and the states of the CPUs.
    fn by_list(mut self, shown: &Shown<'_>) -> Self {
        let Shown { cpu, users, .. } = *shown;
        if self.among != Among::Unknown || users.are_named_only() {
            return self;
        }
        let own = self.listed;
        let least = own.map_or(0.0, |own| own.least);
        if let Some(most) = most_of(least, shown) {
            self.listed = Some(Range::between(least, most, Of::Cpus));
        }
        let has = match own {
            Some(own) => format!("its threads use {}", Range::exact(least, own.of).words()),
            None => "none of its threads is listed".to_owned(),
        };
        if let Some(because) = calm(shown, self.is_hinted, &has) {
            return self.because(Among::No, because);
        }
        // The process of a mount does all of its work.
        if let Some(own) = own.filter(|_| self.name == "ogive") {
            return self.because(
                Among::No,
                format!("its process uses {}", Range::exact(least, own.of).words()),
            );
        }
        let first = users.first().filter(|first| !self.is_one(first) && first.kind != Kind::Zfs);
        let exclusion = first
            .and_then(|first| self.by_bound(first, cpu, &has))
            .or_else(|| by_states(least, cpu))
            .or_else(|| {
                let first = first.filter(|first| outweighed(own, first, shown));
                first.map(|_| has.clone())
            });
        if let Some(because) = exclusion {
            return self.because(Among::No, because);
        }
        let because = match first {
            Some(first) if is_in_user_space(first) => {
                format!("{has}; {} works in user space, and other users are not shown", first.name)
            }
            Some(first) if moves_files(first) => format!(
                "{has}; the kernel time of {} may be ZFS's work, which a profile would show",
                first.name
            ),
            _ if own.is_some() => format!("{has}; the rest is not shown"),
            Some(_) => "the evidence neither names nor excludes it".to_owned(),
            None => return self,
        };
        self.because(Among::Unknown, because)
    }

    /// Whether its upper bound is small compared with the first user.
    fn by_bound(&self, first: &User, cpu: &Cpu, has: &str) -> Option<String> {
        let (most, size) = (self.listed?.most, first.part(Of::Cpus)?.least);
        let enough = ACQUITS_CPUS.min(cpu.busy_cpus().map_or(ACQUITS_CPUS, |busy| 0.5 * busy));
        let small = first.kind != Kind::NotShown && most <= SMALL * size && size >= enough;
        small.then(|| match most {
            most if most < 0.01 => format!("{has}, and there is no room for others"),
            most => format!("{has}, and it can have {} at most", cpus(most)),
        })
    }

    /// The answer in a sentence.
    pub fn sentence(&self) -> String {
        format!("{}: {}", self.among.name(), self.because)
    }
}

/// By the states of the CPUs alone: CPU outside the kernel does not belong to ZFS.
fn by_states(least: f64, cpu: &Cpu) -> Option<String> {
    // A tool with one figure does not separate the kernel from programs.
    if !cpu.parts.iter().any(|(part, _)| *part == Part::System) {
        return None;
    }
    let system = cpu.part(Part::System);
    let busy = cpu.busy_percent().filter(|busy| *busy >= 10.0 && !cpu.since_boot())?;
    let own = least * 100.0 / cpu.cpus.unwrap_or(1.0);
    (system + own <= SMALL * (busy - system))
        .then(|| format!("the kernel as a whole has {} of the CPUs", percent(system)))
}

/// Whether it has next to nothing compared with a first user that does work of its own, on a list
/// that would show it.
fn outweighed(own: Option<Range>, first: &User, shown: &Shown<'_>) -> bool {
    let least = own.map_or(0.0, |own| own.least);
    let shows = !shown.facts.lists_containers()
        && shown.list.is_some_and(|list| {
            let of_kernel = list.is_of_now() || list.has_kernel || list.users.len() > PICKED_ROWS;
            list.comes_near && of_kernel || list.users.iter().any(|one| one.is_zfs)
        });
    let outweighs = match first.used {
        Some(Range { least: size, of: Of::Cpus, .. }) => {
            size >= ACQUITS_CPUS && least <= 0.1 * size
        }
        Some(Range { least: size, of: Of::PercentOfMachine, .. }) => size >= ACQUITS_PERCENT,
        _ => false,
    };
    // Kernel time of a program that moves files may belong to ZFS; of other programs it is their
    // own.
    let own_work = match first.kind {
        Kind::Program => {
            let most = shown.cpu.most() == Some(Part::System);
            is_in_user_space(first) || !moves_files(first) && !most
        }
        // Some systems have all kernel threads, including ZFS's, in one process. Reclaim also asks
        // ZFS for memory.
        Kind::Kernel => {
            !matches!(first.name.as_str(), "nfsd" | "kernel" | "kernel_task")
                && !first.name.starts_with("kswapd")
        }
        Kind::Interrupts | Kind::Stolen => true,
        Kind::Zfs | Kind::NotShown | Kind::Code => false,
    };
    // A kernel worker's work for others does not belong to ZFS, which has its own threads.
    let size = first.part(Of::Cpus).map_or(0.0, |used| used.least);
    let worker = first.kind == Kind::Kernel && own.is_some() && least <= 0.1 * size;
    // A worker's name may name its user: `kworker/22:2+bcachefs`.
    let named = first.name.starts_with("kworker/")
        && first.name.contains(['+', '-'])
        && atlas::role_of(&first.name).is_some_and(|role| role != "kernel/work");
    own_work && (shows && (outweighs || worker) || named && outweighs)
}

fn moves_files(user: &User) -> bool {
    MOVES_FILES.split(' ').any(|name| name == user.name)
}

/// Whether a program does its own work: almost none of its CPU is in the kernel.
pub(super) fn is_in_user_space(user: &User) -> bool {
    let system = user.system_cpus.zip(user.cpus());
    user.kind == Kind::Program && system.is_some_and(|(system, all)| system <= 0.15 * all)
}

/// The evidence of ZFS, if its part of the CPU is unknown.
fn because_seen(facts: &Facts) -> String {
    let evidence = facts.evidence();
    let mut frames = evidence.kernel_stacks.iter().flat_map(|stack| &stack.frames);
    let on_stacks = frames.any(|frame| {
        let symbol = frame.symbol.as_deref().unwrap_or("");
        let own = atlas::subsystem_of(symbol, frame.module.as_deref(), Some(true));
        own.is_some_and(|own| !atlas::is_of_kernel(own))
    });
    let has_threads = facts.lists_zfs();
    match (on_stacks, has_threads) {
        (true, _) => "its functions are on stacks, but its CPU is not shown",
        (_, true) => "its threads are listed, but their CPU is not shown",
        _ => "neither its threads nor its functions are shown",
    }
    .to_owned()
}

/// The reason why no user has much CPU, if so.
fn calm(shown: &Shown<'_>, is_hinted: bool, has: &str) -> Option<String> {
    let Shown { cpu, list, .. } = *shown;
    // Old use does not acquit now.
    let calm = match (cpu.state, cpu.busy_percent()) {
        _ if cpu.since_boot() => false,
        (State::Idle | State::Waiting, Some(busy)) => {
            busy < 10.0
                || busy < 15.0 && (!is_hinted || cpu.busy_cpus().is_some_and(|count| count < 1.0))
        }
        (State::Idle, None) => true,
        _ => false,
    };
    // Most of a small use may belong to ZFS.
    let own = list.map_or(0.0, |list| {
        let own = list.users.iter().filter(|one| one.is_zfs);
        own.map(|one| one.percent).sum::<f64>() / list.percent.max(0.1)
    });
    let is_its = cpu.state == State::Waiting && own >= 0.5;
    if !calm || is_its || list.is_some_and(|list| list.percent >= 100.0) {
        return None;
    }
    Some(match cpu.busy_percent() {
        Some(busy) => format!("no user has more than the {} that is busy", percent(busy)),
        None => has.to_owned(),
    })
}

/// The most it can have, in CPUs: its threads, the hidden remainder, and kernel time of programs.
fn most_of(least: f64, shown: &Shown<'_>) -> Option<f64> {
    let Shown { cpu, users, .. } = *shown;
    let list = shown.list.filter(|list| match list.basis {
        Basis::Seconds => false,
        Basis::Machine => cpu.cpus.is_some(),
        _ => true,
    })?;
    let sum = |kinds: &[Kind]| -> f64 {
        let of = users.list.iter().filter(|user| kinds.contains(&user.kind));
        of.filter_map(|user| user.part(Of::Cpus)).map(|used| used.most).sum()
    };
    let not_shown = sum(&[Kind::NotShown]);
    // Without the states of the CPUs, there may be many rows below the last.
    if not_shown == 0.0 && !(cpu.busy_cpus().is_some() && list.is_of_now()) {
        return None;
    }
    let programs = users.list.iter().filter(|user| user.kind == Kind::Program);
    let shown: Option<f64> = programs.map(|user| user.system_cpus).sum();
    let all = sum(&[Kind::Program]);
    let system = cpu.cpus.map(|count| cpu.part(Part::System) * count / 100.0);
    let of_programs = shown.unwrap_or_else(|| match system {
        Some(system) => (system - sum(&[Kind::Kernel, Kind::Zfs])).clamp(0.0, all),
        None => all,
    });
    Some(least + not_shown + of_programs)
}
