//! The third answer: whether ZFS is among the users, and at most with how much.
//!
//! ZFS works in threads of its own, which a list shows, and below programs that read and write,
//! which only their kernel time or a profile shows. So the least is what its threads use; the most
//! adds what the list does not show and the kernel time of programs. "No" needs a most that is
//! small beside the first user, or a host without ZFS.
//!
//! Where a mount of ogive is asked about, its process is what is looked for.

use super::cpu::{Cpu, Part, State};
use super::users::{Kind, User, Users};
use super::{cite, cpus, percent};
use crate::atlas;
use crate::evidence::Source;
use crate::facts::{Basis, Consumption, Facts, Owner, is_zfs_program};

/// Whether it is among the users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Among {
    /// It is not loaded, or its most is small beside the first user.
    No,
    /// A considerable part is shown to be its.
    Yes,
    /// Neither is shown.
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
    /// In a word.
    pub among: Among,
    /// Who is looked for: `ZFS` or `ogive`.
    pub name: &'static str,
    /// CPUs that are shown to be its.
    pub least_cpus: Option<f64>,
    /// CPUs it can have at most, for all that is shown.
    pub most_cpus: Option<f64>,
    /// The same as percent of the busy samples of a profile.
    pub samples_percent: Option<(f64, f64)>,
    /// Whether anything that was given speaks of it at all.
    pub is_hinted: bool,
    /// Why.
    pub because: String,
    /// Where it was read.
    pub sources: Vec<Source>,
}

/// CPUs of its own threads from which it is a user to speak of.
const SPEAKS_CPUS: f64 = 0.3;
/// The same as part of what is busy or sampled.
const SPEAKS_PART: f64 = 0.15;
/// Beside a first user, at most this part of it is small.
const SMALL: f64 = 0.25;
/// A first user below this many CPUs acquits nobody: ZFS may have as much.
const ACQUITS_CPUS: f64 = 0.5;
/// A list of fewer users than this may be rows that somebody picked.
const PICKED_ROWS: usize = 4;
/// Rows of a table of functions below which those not shown may be large.
const MANY_ROWS: usize = 8;
/// Part of a profile's first user that is so much that the rest does not matter.
const MOST_OF_SAMPLES: f64 = 60.0;

/// Programs whose kernel time is work of the file system they read and write.
const MOVES_FILES: [&str; 38] = [
    "rsync",
    "cp",
    "mv",
    "rm",
    "tar",
    "dd",
    "find",
    "du",
    "ls",
    "cat",
    "fio",
    "smbd",
    "nfsd",
    "git",
    "zfs",
    "zpool",
    "zdb",
    "updatedb",
    "updatedb.mlocat",
    "bonnie++",
    "iozone",
    "sysbench",
    "scp",
    "rclone",
    "borg",
    "restic",
    "samba",
    "nfsd:",
    "ganesha.nfsd",
    "md5sum",
    "sha256sum",
    "grep",
    "unzip",
    "gzip",
    "pigz",
    "cpio",
    "mbuffer",
    "filebench",
];

impl Zfs {
    pub(super) fn of(
        facts: &Facts,
        consumption: Option<&Consumption>,
        cpu: &Cpu,
        users: &Users,
    ) -> Self {
        let name = if facts.is_ogive() { "ogive" } else { "ZFS" };
        let mut zfs = Self {
            among: Among::Unknown,
            name,
            least_cpus: None,
            most_cpus: None,
            samples_percent: None,
            is_hinted: facts.hints_at_zfs(),
            because: because_seen(facts),
            sources: Vec::new(),
        };
        if !facts.is_ogive() && facts.zfs_loaded() == Ok(false) {
            zfs.among = Among::No;
            zfs.because = "it is not loaded".to_owned();
            if let Some(said) = &facts.evidence().host.zfs_loaded {
                cite(&mut zfs.sources, &said.source);
            }
            return zfs;
        }
        zfs.by_own(consumption, cpu);
        if zfs.among == Among::Yes {
            return zfs;
        }
        zfs.by_profile(facts, users);
        if zfs.among == Among::Unknown && users.is_said {
            zfs.by_names(users);
        } else if zfs.among == Among::Unknown {
            zfs.by_list(facts, consumption, cpu, users);
        }
        zfs
    }

    fn is_one(&self, name: &str, is_zfs: bool) -> bool {
        if self.name == "ogive" { name == "ogive" } else { is_zfs || is_zfs_program(name) }
    }

    /// By samples: its functions and its threads.
    fn by_profile(&mut self, facts: &Facts, users: &Users) {
        if self.name == "ogive" {
            let own = users.list.iter().find(|user| user.name == "ogive");
            if let Some(share) = own.and_then(|user| user.samples_percent) {
                self.judge_samples(share, share, true, users);
            }
            return;
        }
        facts.start_trace();
        if !users.of_samples && facts.profiled_share_of_zfs().is_err() {
            return;
        }
        let least = facts.profiled_share_of_zfs().unwrap_or(0.0);
        // Threads and commands of its own count, whatever their functions.
        let own = users.list.iter().filter(|user| user.kind == Kind::Zfs);
        let least = own.filter_map(|user| user.samples_percent).sum::<f64>().max(least);
        let rest = (100.0 - facts.profile_shown()).max(0.0) + facts.unowned_share();
        let most = (least + rest).min(100.0);
        for source in facts.take_trace().sources.iter().take(2) {
            cite(&mut self.sources, source);
        }
        // Where most of what is shown are locks and copies, whose they are decides.
        let is_owned = facts.unowned_share() < 0.4 * facts.profile_shown();
        let rows = facts.top_symbols(usize::MAX).len();
        self.judge_samples(least, most, is_owned && (rest < 50.0 || rows >= MANY_ROWS), users);
    }

    /// By whom the log, stacks or a timed command name.
    fn by_names(&mut self, users: &Users) {
        let own = users.list.iter().find(|user| {
            let busy = user.cpus.is_none_or(|count| count >= SPEAKS_CPUS);
            busy && (user.kind == Kind::Zfs || self.is_one(&user.name, false))
        });
        if let Some(user) = own {
            self.among = Among::Yes;
            self.because = match user.cpus {
                Some(count) => format!("its command {} used {}", user.name, cpus(count)),
                None => format!("what was given names {}, which is its", user.name),
            };
            self.sources.clone_from(&users.sources);
        }
    }

    fn judge_samples(&mut self, least: f64, most: f64, is_owned: bool, users: &Users) {
        self.samples_percent = Some((least, most));
        if least >= 100.0 * SPEAKS_PART {
            self.among = Among::Yes;
            self.because =
                format!("{} of the busy samples are in its threads or functions", percent(least));
            return;
        }
        let first = users.list.iter().filter(|user| user.kind != Kind::Zfs);
        let first = first.filter_map(|user| user.samples_percent).fold(0.0, f64::max);
        // A table of functions shows the largest: what is below its last row is many small ones.
        let rest = most - least;
        let small =
            most <= SMALL * first || least <= SMALL * first && (50.0..=80.0).contains(&rest);
        let outweighs = first >= MOST_OF_SAMPLES && least < 5.0;
        if is_owned && (small && first >= 10.0 || most < 100.0 * SPEAKS_PART || outweighs) {
            self.among = Among::No;
            self.because =
                format!("{} of the busy samples are in its threads or functions", percent(least));
            if rest >= 1.0 {
                self.because.push_str(&format!(
                    ", {} in functions that are not shown",
                    percent(most - least)
                ));
            }
        } else {
            self.because = format!(
                "of the busy samples it has {} at least and {} at most",
                percent(least),
                percent(most)
            );
        }
    }

    /// By the CPU of its own threads and commands on a list.
    fn by_own(&mut self, consumption: Option<&Consumption>, cpu: &Cpu) {
        let Some(list) = consumption else { return };
        let scale = |percent: f64| match (list.basis, cpu.cpus) {
            (Basis::Machine, Some(count)) => Some(percent * count / 100.0),
            (Basis::Machine, None) | (Basis::Seconds, _) => None,
            _ => Some(percent / 100.0),
        };
        let own: Vec<_> =
            list.users.iter().filter(|one| self.is_one(&one.name, one.is_zfs)).collect();
        if own.is_empty() {
            return;
        }
        for one in own.iter().take(2) {
            cite(&mut self.sources, &one.source);
        }
        self.least_cpus = scale(own.iter().map(|one| one.percent).sum::<f64>().abs());
        let busy = cpu.busy_cpus.or_else(|| scale(list.percent).filter(|_| list.comes_down));
        let has_much = |least: f64| {
            least >= SPEAKS_CPUS
                || busy.is_some_and(|busy| busy >= 0.3 && least >= SPEAKS_PART * busy)
        };
        let Some(least) = self.least_cpus.filter(|least| has_much(*least)) else { return };
        self.among = Among::Yes;
        let commands = own.iter().all(|one| is_zfs_program(&one.name));
        let names: Vec<&str> = own.iter().take(3).map(|one| one.name.as_str()).collect();
        let among = match self.name {
            "ogive" => "its process uses".to_owned(),
            _ if commands => format!("its commands ({}) use", names.join(", ")),
            _ => format!("its threads ({}) use", names.join(", ")),
        };
        self.because = format!("{among} {}", cpus(least));
    }

    /// By a list of threads and the states of the CPUs.
    fn by_list(
        &mut self,
        facts: &Facts,
        consumption: Option<&Consumption>,
        cpu: &Cpu,
        users: &Users,
    ) {
        self.most_cpus = most_of(self.least_cpus, consumption, cpu, users);
        self.judge_list(facts, consumption, cpu, users);
    }

    fn judge_list(
        &mut self,
        facts: &Facts,
        consumption: Option<&Consumption>,
        cpu: &Cpu,
        users: &Users,
    ) {
        let least = match self.least_cpus {
            Some(least) => format!("its threads use {}", cpus(least)),
            None => "none of its threads is listed".to_owned(),
        };
        if let Some(because) = calm(consumption, cpu, self.is_hinted, &least) {
            self.among = Among::No;
            self.because = because;
            return;
        }
        let Some(first) = users.first().filter(|first| first.kind != Kind::Zfs) else {
            if let Some(because) = self.by_states(cpu) {
                self.among = Among::No;
                self.because = because;
            } else if self.least_cpus.is_some() {
                self.because = format!("{least}; the rest is not shown");
            }
            return;
        };
        let exclusion = self
            .by_bound(first, cpu, &least)
            .or_else(|| self.by_states(cpu))
            .or_else(|| self.beside(first, facts, consumption, cpu).then(|| least.clone()));
        if let Some(because) = exclusion {
            self.among = Among::No;
            self.because = because;
            return;
        }
        if is_in_user_space(first) {
            self.because = format!(
                "{least}; {} works in user space, and who else uses CPU is not shown",
                first.name
            );
            return;
        }
        let moves_files = MOVES_FILES.contains(&first.name.as_str());
        self.because = match (moves_files, self.least_cpus) {
            (true, _) => format!(
                "{least}; what {} does in the kernel may be ZFS's work, which a profile shows",
                first.name
            ),
            (false, Some(_)) => format!("{least}; the rest is not shown"),
            (false, None) => "what is shown can neither name nor exclude it".to_owned(),
        };
    }

    /// Its most is small beside the first user.
    fn by_bound(&self, first: &User, cpu: &Cpu, least: &str) -> Option<String> {
        let (most, size) = (self.most_cpus?, first.cpus?);
        let enough = ACQUITS_CPUS.min(cpu.busy_cpus.map_or(ACQUITS_CPUS, |busy| 0.5 * busy));
        let small = first.kind != Kind::NotShown && most <= SMALL * size && size >= enough;
        small.then(|| match most {
            most if most < 0.01 => format!("{least}, and there is no room for others"),
            most => format!("{least}, and it can have {} at most", cpus(most)),
        })
    }

    /// By the states of the CPUs alone: what is not the kernel's is not ZFS's.
    fn by_states(&self, cpu: &Cpu) -> Option<String> {
        // Tools that show one figure do not tell the kernel from programs.
        if !cpu.parts.iter().any(|(part, _)| *part == Part::System) {
            return None;
        }
        let system = cpu.part(Part::System);
        let busy = cpu.busy_percent.filter(|busy| *busy >= 10.0 && !cpu.since_boot)?;
        let own = self.least_cpus.unwrap_or(0.0) * 100.0 / cpu.cpus.unwrap_or(1.0);
        (system + own <= SMALL * (busy - system))
            .then(|| format!("the kernel as a whole has {} of the CPUs", percent(system)))
    }

    /// It has next to nothing beside a first user who does work of its own, on a list that would
    /// show it.
    fn beside(
        &self,
        first: &User,
        facts: &Facts,
        consumption: Option<&Consumption>,
        cpu: &Cpu,
    ) -> bool {
        let least = self.least_cpus.unwrap_or(0.0);
        let shows = !facts.lists_containers()
            && consumption.is_some_and(|list| {
                let of_kernel =
                    list.is_of_now() || list.has_kernel || list.users.len() > PICKED_ROWS;
                list.comes_near && of_kernel || own_row(list)
            });
        let outweighs = match (first.cpus, first.machine_percent) {
            (Some(size), _) => size >= ACQUITS_CPUS && least <= 0.1 * size,
            (None, Some(of_all)) => of_all >= 20.0,
            _ => false,
        };
        // Kernel time of a program that moves files may be ZFS's; of others it is their own.
        let own_work = match first.kind {
            Kind::Program => {
                let most = cpu.most() == Some(Part::System);
                is_in_user_space(first) || !MOVES_FILES.contains(&first.name.as_str()) && !most
            }
            // Some systems have all threads of the kernel, ZFS's too, in one process.
            // Reclaim asks ZFS, too, for memory.
            Kind::Kernel => {
                !matches!(first.name.as_str(), "nfsd" | "kernel" | "kernel_task")
                    && !first.name.starts_with("kswapd")
            }
            Kind::Interrupts | Kind::Stolen => true,
            Kind::Zfs | Kind::NotShown | Kind::Code => false,
        };
        // Work for others that a worker of the kernel does is not ZFS's, which has its own threads.
        let worker = first.kind == Kind::Kernel
            && self.least_cpus.is_some()
            && least <= 0.1 * first.cpus.unwrap_or(0.0);
        // A worker's name may say for whom: `kworker/22:2+bcachefs`.
        let named = first.name.starts_with("kworker/")
            && first.name.contains(['+', '-'])
            && atlas::role_of(&first.name).is_some_and(|role| role != "kernel/work");
        own_work && (shows && (outweighs || worker) || named && outweighs)
    }

    /// The answer in a sentence.
    pub fn sentence(&self) -> String {
        match self.among {
            Among::No => format!("no: {}", self.because),
            Among::Yes => format!("yes: {}", self.because),
            Among::Unknown => format!("not shown: {}", self.because),
        }
    }
}

/// Whether a program is shown to do its own work: next to none of its CPU is the kernel's.
pub(super) fn is_in_user_space(user: &User) -> bool {
    let system = user.system_cpus.zip(user.cpus);
    user.kind == Kind::Program && system.is_some_and(|(system, all)| system <= 0.15 * all)
}

/// What is shown of it where its part of the CPU is not.
fn because_seen(facts: &Facts) -> String {
    let evidence = facts.evidence();
    let frames = evidence.kernel_stacks.iter().flat_map(|stack| &stack.frames);
    let is_own = |symbol: &str, module: Option<&str>| {
        let own = atlas::subsystem_of(symbol, module, Some(true));
        own.is_some_and(|own| !atlas::is_of_kernel(own))
    };
    let on_stacks = frames
        .filter_map(|frame| Some((frame.symbol.as_deref()?, frame.module.as_deref())))
        .any(|(symbol, module)| is_own(symbol, module));
    let has_threads = evidence.threads.iter().any(|thread| facts.owner_of(thread) == Owner::Zfs);
    match (on_stacks, has_threads) {
        (true, _) => "its functions are on stacks, and what CPU it uses is not shown",
        (_, true) => "its threads are listed, and what CPU they use is not shown",
        _ => "neither its threads nor its functions are shown",
    }
    .to_owned()
}

/// Why nobody uses the CPU to speak of, where that is so.
fn calm(
    consumption: Option<&Consumption>,
    cpu: &Cpu,
    is_hinted: bool,
    least: &str,
) -> Option<String> {
    // What was long ago acquits nobody now.
    if cpu.since_boot {
        return None;
    }
    let calm = match (cpu.state, cpu.busy_percent) {
        (State::Idle | State::Waiting, Some(busy)) => {
            busy < 10.0
                || busy < 15.0 && (!is_hinted || cpu.busy_cpus.is_some_and(|count| count < 1.0))
        }
        (State::Idle, None) => true,
        _ => false,
    };
    // Of the little that is used most may be its.
    let own = consumption.map_or(0.0, |list| {
        let own = list.users.iter().filter(|one| one.is_zfs);
        own.map(|one| one.percent).sum::<f64>() / list.percent.max(0.1)
    });
    if cpu.state == State::Waiting && own >= 0.5 {
        return None;
    }
    if !calm || consumption.is_some_and(|list| list.percent >= 100.0) {
        return None;
    }
    Some(match cpu.busy_percent {
        Some(busy) => format!("nobody uses more than the {} that is busy", percent(busy)),
        None => least.to_owned(),
    })
}

/// Whether one of its threads is on the list, so that the list is of them as well.
fn own_row(list: &Consumption) -> bool {
    list.users.iter().any(|one| one.is_zfs)
}

/// The most it can have: its threads, what is not shown, and kernel time of programs.
fn most_of(
    least: Option<f64>,
    consumption: Option<&Consumption>,
    cpu: &Cpu,
    users: &Users,
) -> Option<f64> {
    let list = consumption.filter(|list| match list.basis {
        Basis::Seconds => false,
        Basis::Machine => cpu.cpus.is_some(),
        _ => true,
    })?;
    let not_shown =
        users.list.iter().find(|user| user.kind == Kind::NotShown).and_then(|user| user.cpus);
    let not_shown = match (not_shown, cpu.busy_cpus) {
        (Some(rest), _) => rest,
        (None, Some(_)) if list.is_of_now() => 0.0,
        // Without the states of the CPUs, rows below the last may be many.
        _ => return None,
    };
    let programs = users.list.iter().filter(|user| user.kind == Kind::Program);
    let told: Option<f64> = programs.clone().map(|user| user.system_cpus).sum();
    let all: f64 = programs.filter_map(|user| user.cpus).sum();
    let threads: f64 = users
        .list
        .iter()
        .filter(|user| matches!(user.kind, Kind::Kernel | Kind::Zfs))
        .filter_map(|user| user.cpus)
        .sum();
    let system = cpu.cpus.map(|count| cpu.part(Part::System) * count / 100.0);
    let of_programs = told.unwrap_or_else(|| match system {
        Some(system) => (system - threads).clamp(0.0, all),
        None => all,
    });
    Some(least.unwrap_or(0.0) + not_shown + of_programs)
}
