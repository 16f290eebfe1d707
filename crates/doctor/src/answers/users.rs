//! The second answer: who uses the CPU, in CPUs where a list says so.
//!
//! A list of programs and threads comes first; without one, threads or subsystems of a profile, as
//! parts of its samples. What the states of the CPUs have beside the list stands among its rows:
//! interrupts, time stolen by the hypervisor, and what the list does not show. What the list leaves
//! open is filled from samples by program.

use std::collections::BTreeMap;

use super::beside::{REMAINDER_CPUS, REMAINDER_PART, beside};
use super::cpu::Cpu;
use super::{cite, cpus, percent, spent};
use crate::atlas;
use crate::evidence::{LockUse, Source};
use crate::facts::{Basis, Consumption, Facts, Owner, Used, is_zfs_module, is_zfs_program};

/// What kind of user it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A program.
    Program,
    /// A thread of the kernel.
    Kernel,
    /// A thread of ZFS's, or its code.
    Zfs,
    /// Hard and soft interrupts.
    Interrupts,
    /// The hypervisor's other guests.
    Stolen,
    /// What the list does not show.
    NotShown,
    /// Code of a profile that does not tell whose it is.
    Code,
}

impl Kind {
    /// The word in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Program => "program",
            Self::Kernel => "kernel thread",
            Self::Zfs => "ZFS",
            Self::Interrupts => "interrupts",
            Self::Stolen => "stolen",
            Self::NotShown => "not shown",
            Self::Code => "code",
        }
    }
}

/// One user of the CPU.
#[derive(Clone, Debug, PartialEq)]
pub struct User {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// What such threads or such code does, where that is known.
    pub does: Option<&'static str>,
    /// CPUs it uses, where a list says so.
    pub cpus: Option<f64>,
    /// Percent of all CPUs, where the list counts so and their number is not known.
    pub machine_percent: Option<f64>,
    /// Percent of the busy samples, where a profile says so.
    pub samples_percent: Option<f64>,
    /// Seconds of CPU since it began, where that is all a list says.
    pub seconds: Option<f64>,
    /// Its part in the kernel, in CPUs, where a tool tells it apart.
    pub system_cpus: Option<f64>,
    /// The part of its CPUs that no list shows and the samples do: of processes that came and went
    /// between two looks.
    pub sampled_cpus: Option<f64>,
    /// Whether it stands for processes that have ended, of which the list knows only the parent.
    pub is_ended: bool,
    /// Rows of a list that it stands for; 1 elsewhere.
    pub rows: u64,
}

impl User {
    /// Somebody of whom nothing but the name is known.
    pub(super) fn new(name: impl Into<String>, kind: Kind) -> Self {
        Self {
            name: name.into(),
            kind,
            does: None,
            cpus: None,
            machine_percent: None,
            samples_percent: None,
            seconds: None,
            system_cpus: None,
            sampled_cpus: None,
            is_ended: false,
            rows: 1,
        }
    }

    /// Its use in words: `3.8 CPUs`, `38% of the machine`, `62% of the samples`.
    pub fn used(&self) -> String {
        if let Some(count) = self.cpus {
            return cpus(count);
        }
        match (self.machine_percent, self.samples_percent) {
            (Some(value), _) => format!("{} of all CPUs", percent(value)),
            (_, Some(value)) => format!("{} of the busy samples", percent(value)),
            _ => self.seconds.map(|s| format!("{} since it began", spent(s))).unwrap_or_default(),
        }
    }

    /// What there is to order by.
    pub(super) fn size(&self) -> f64 {
        self.cpus
            .map(|count| count * 100.0)
            .or(self.machine_percent)
            .or(self.samples_percent)
            // Any such figure may be of long ago.
            .or(self.seconds.map(|seconds| seconds * 1e-6))
            .unwrap_or(0.0)
    }

    /// Whether it is so little that it explains nothing.
    pub fn is_little(&self) -> bool {
        self.size() < 15.0
    }

    /// Whether it is spoken of as several: workers of the kernel are no single thread.
    pub(super) fn is_several(&self) -> bool {
        self.name == "kworker" && self.rows > 1
    }

    /// Its name with what it is, for sentences.
    pub fn described(&self) -> String {
        match self.kind {
            Kind::Kernel if self.is_several() => {
                format!("{} kernel workers ({})", self.rows, self.name)
            }
            Kind::Kernel if self.name.starts_with("kworker") => {
                format!("a kernel worker ({})", self.name)
            }
            Kind::Kernel => format!("the kernel thread {}", self.name),
            Kind::Zfs => format!("ZFS ({})", self.name),
            Kind::Stolen => "the hypervisor, which withholds it (stolen)".to_owned(),
            Kind::NotShown => "something that the list does not show".to_owned(),
            Kind::Interrupts | Kind::Program | Kind::Code => self.name.clone(),
        }
    }
}

/// The second answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Users {
    /// Those who use the CPU, best first; empty where nobody can be told.
    pub list: Vec<User>,
    /// Whether the figures are means over lives instead of what is used now.
    pub over_life: bool,
    /// Whether they are of samples.
    pub of_samples: bool,
    /// Number of the samples, where it is known.
    pub samples: Option<f64>,
    /// Whether the list comes down to rows that matter no more.
    pub comes_down: bool,
    /// Whether a lockup, a lock or stacks name them, without a figure.
    pub is_said: bool,
    /// What the list adds up to, in CPUs, where that is more than the states of the CPUs had.
    pub too_much_cpus: Option<f64>,
    /// Where it was read.
    pub sources: Vec<Source>,
}

/// Percent of the busy samples from which a module is a user to name.
const FOREIGN_PERCENT: f64 = 5.0;
/// Busy samples below which there are no shares.
const FEWEST_SAMPLES: f64 = 10.0;
/// Users that are named.
const NAMED: usize = 6;
/// Samples from which their parts by program fill what a list leaves open.
const ENOUGH_SAMPLES: f64 = 60.0;
/// Less than this fills nothing.
const LEAST_FILLED_CPUS: f64 = 0.05;
/// A list and the states of the CPUs are not of the same moment: up to this they agree.
const TOO_MUCH: f64 = 1.25;
const TOO_MUCH_CPUS: f64 = 0.5;

impl Users {
    pub(super) fn of(facts: &Facts, consumption: Option<&Consumption>, cpu: &Cpu) -> Self {
        let profiled = profiled(facts);
        let shows_much = consumption.is_some_and(|list| {
            let busy = cpu.busy_cpus.unwrap_or(0.0) * 100.0;
            list.percent >= 20.0 && list.percent >= 0.3 * busy
        });
        let sampled = profiled.clone();
        let mut users = match consumption {
            // A few rows that use next to nothing say less than samples do.
            Some(list) if shows_much || profiled.list.is_empty() => listed(list, cpu),
            _ if !profiled.list.is_empty() => profiled,
            _ => match locks(facts) {
                waiters if waiters.list.is_empty() => said(facts, cpu),
                waiters => waiters,
            },
        };
        if !users.of_samples {
            users.list.extend(beside(consumption, cpu));
        }
        let of_now = consumption.is_some_and(Consumption::is_of_now);
        if of_now && !users.of_samples && !users.is_said {
            fill(&mut users.list, &sampled, cpu);
            users.too_much_cpus = too_much(&users.list, cpu);
        }
        users.list.retain(|user| user.size() > 0.0 || users.is_said);
        if users.list.is_empty() {
            users = said(facts, cpu);
        }
        // Locks are taken for somebody: whoever has about as much stands before them.
        let comes_down = users.comes_down;
        let part = |user: &User| match user.kind {
            _ if user.name.starts_with("kernel/lock") => 0.6,
            // Behind a list that was cut there may be many like its last, and nobody larger.
            Kind::NotShown if !comes_down => 0.0,
            _ => 1.0,
        };
        let size = |user: &User| user.size() * part(user);
        // Of two with the same figure the kernel's is the one that is asked about.
        users.list.sort_by(|a, b| {
            size(b)
                .total_cmp(&size(a))
                .then_with(|| (a.kind == Kind::Program).cmp(&(b.kind == Kind::Program)))
        });
        users
    }

    /// Whoever uses most.
    pub fn first(&self) -> Option<&User> {
        self.list.first()
    }

    /// Whether even the first of a list uses next to nothing.
    pub fn is_little(&self) -> bool {
        !self.is_said && self.first().is_none_or(|user| user.seconds.is_none() && user.is_little())
    }

    /// The answer in a sentence.
    pub fn sentence(&self) -> String {
        if self.list.is_empty() {
            return "not shown by what was given".to_owned();
        }
        let named: Vec<String> = self
            .list
            .iter()
            .take(NAMED)
            .map(|user| {
                let name = match user.kind {
                    Kind::Stolen => "stolen by the hypervisor".to_owned(),
                    _ => user.name.clone(),
                };
                format!("{name} {}", user.used()).trim().to_owned()
            })
            .collect();
        let rest = self.list.len().saturating_sub(NAMED);
        let rest = if rest > 0 { format!(" and {rest} more") } else { String::new() };
        let seconds = self.list.first().is_some_and(|user| user.seconds.is_some());
        let life = match (self.over_life && !seconds, self.is_said) {
            (true, _) => " (means over their lives)",
            (_, true) => " (named, without a figure)",
            _ => "",
        };
        let short_lived = self.list.iter().take(NAMED).filter(|user| user.sampled_cpus.is_some());
        let short_lived: Vec<&str> = short_lived.map(|user| user.name.as_str()).collect();
        let sampled = match short_lived[..] {
            [] => String::new(),
            _ => {
                format!("; {} by samples, in processes that came and went", short_lived.join(", "))
            }
        };
        let too_much = self.too_much_cpus.map(|shown| {
            format!("; the list adds up to {}, more than the CPUs were busy", cpus(shown))
        });
        format!("{}{rest}{life}{sampled}{}", named.join(", "), too_much.unwrap_or_default())
    }
}

fn kind_of(owner: Owner) -> Kind {
    match owner {
        Owner::Program => Kind::Program,
        Owner::Kernel => Kind::Kernel,
        Owner::Zfs => Kind::Zfs,
    }
}

fn user_of(used: &Used, basis: Basis, cpu: &Cpu) -> User {
    let kind = match used {
        _ if used.is_zfs || is_zfs_program(&used.name) => Kind::Zfs,
        _ if used.is_kernel => Kind::Kernel,
        _ => Kind::Program,
    };
    let does =
        atlas::role_of(&used.name).filter(|_| kind != Kind::Program).and_then(atlas::role_does);
    let of_machine = used.percent;
    let (count, machine_percent) = match (basis, cpu.cpus) {
        (Basis::Machine, Some(count)) => (Some(of_machine * count / 100.0), None),
        (Basis::Machine, None) => (None, Some(of_machine)),
        (Basis::Seconds, _) => (None, None),
        _ => (Some(used.percent / 100.0), None),
    };
    User {
        does,
        cpus: count,
        machine_percent,
        seconds: (basis == Basis::Seconds).then_some(used.percent),
        system_cpus: used.system.map(|value| value / 100.0),
        is_ended: used.is_ended,
        rows: used.rows,
        ..User::new(used.name.clone(), kind)
    }
}

fn listed(list: &Consumption, cpu: &Cpu) -> Users {
    let mut sources = Vec::new();
    for used in list.users.iter().take(2) {
        cite(&mut sources, &used.source);
    }
    Users {
        list: list.users.iter().map(|used| user_of(used, list.basis, cpu)).collect(),
        over_life: matches!(list.basis, Basis::Life | Basis::Seconds),
        of_samples: false,
        samples: None,
        comes_down: list.comes_down,
        is_said: false,
        too_much_cpus: None,
        sources,
    }
}

/// Names what the list leaves open by the samples: processes that came and went between two looks
/// are in no list, and of children that have ended a list knows the parent.
fn fill(list: &mut Vec<User>, sampled: &Users, cpu: &Cpu) {
    let enough = sampled.of_samples && sampled.samples.is_some_and(|count| count >= ENOUGH_SAMPLES);
    let is_open = |user: &User| user.kind == Kind::NotShown || user.is_ended;
    let whole: f64 = list.iter().filter(|user| is_open(user)).filter_map(|user| user.cpus).sum();
    let (Some(busy), true) = (cpu.busy_cpus, enough && whole > 0.0) else { return };
    let lacking = |user: &User| {
        let known = list.iter().find(|one| one.name == user.name).and_then(|one| one.cpus);
        let share = user.samples_percent.unwrap_or(0.0) * busy / 100.0;
        (share - known.unwrap_or(0.0)).max(0.0)
    };
    let of_programs = sampled.list.iter().filter(|user| user.kind != Kind::Code);
    let mut lack: Vec<(&User, f64)> = of_programs.map(|user| (user, lacking(user))).collect();
    lack.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut open = whole;
    for (user, lacks) in lack {
        let part = lacks.min(open);
        if part < LEAST_FILLED_CPUS {
            break;
        }
        open -= part;
        match list.iter_mut().find(|one| one.name == user.name) {
            Some(known) => {
                known.cpus = known.cpus.map(|count| count + part);
                // Of that part it is not known what was in the kernel.
                known.system_cpus = None;
                known.sampled_cpus = Some(part);
            }
            None => list.push(User {
                cpus: Some(part),
                sampled_cpus: Some(part),
                samples_percent: None,
                ..user.clone()
            }),
        }
    }
    let left = open / whole;
    for user in list.iter_mut().filter(|user| is_open(user)) {
        user.cpus = user.cpus.map(|count| count * left);
        user.system_cpus = user.system_cpus.map(|count| count * left);
    }
    let matters = |user: &User, count: f64| match user.kind {
        Kind::NotShown => count >= REMAINDER_CPUS && count >= REMAINDER_PART * busy,
        _ => count >= LEAST_FILLED_CPUS,
    };
    list.retain(|user| !is_open(user) || user.cpus.is_none_or(|count| matters(user, count)));
}

/// What a list adds up to, where that is more than the CPUs were busy.
fn too_much(list: &[User], cpu: &Cpu) -> Option<f64> {
    let shown: f64 = list.iter().filter_map(|user| user.cpus).sum();
    let busy = cpu.busy_cpus.filter(|_| !cpu.since_boot && !cpu.cpus_by_figures)?;
    (shown > busy * TOO_MUCH + TOO_MUCH_CPUS).then_some(shown)
}

/// The lock that most is waited for, busily, by a lock profiler: it says where, not how much of the
/// machine.
fn locks(facts: &Facts) -> Users {
    let size = |one: &LockUse| {
        one.percent.or(one.wait_ns).unwrap_or_else(|| {
            #[expect(clippy::cast_precision_loss, reason = "a count to order by")]
            one.count.map_or(0.0, |count| count as f64)
        })
    };
    let busily = facts.evidence().locks.iter().filter(|one| !one.kind.contains("block"));
    let Some(most) = busily.max_by(|a, b| size(a).total_cmp(&size(b))) else {
        return Users::default();
    };
    let caller = most.callers.iter().find_map(|frame| frame.symbol.as_deref());
    // Who sleeps for a lock uses no CPU.
    let spins = most.kind.contains("spin");
    let is_zfs = most.callers.iter().any(|frame| {
        let name = frame.symbol.as_deref().unwrap_or("");
        let own = atlas::subsystem_of(name, frame.module.as_deref(), Some(true));
        own.is_some_and(|own| !atlas::is_of_kernel(own)) && spins
    });
    let name = match caller {
        Some(caller) => format!("lock {} below {caller}", most.lock),
        None => format!("lock {}", most.lock),
    };
    let user = User::new(name, if is_zfs { Kind::Zfs } else { Kind::Code });
    let sources = vec![most.source.clone()];
    Users { list: vec![user], is_said: true, sources, ..Users::default() }
}

/// Whom a lockup or a timed command names.
fn said(facts: &Facts, cpu: &Cpu) -> Users {
    let named = |name: &str, cpus| {
        let kind = match () {
            () if is_zfs_program(name) || atlas::is_subsystem(name) => Kind::Zfs,
            () => kind_of(facts.owner(name)),
        };
        let does = atlas::role_of(name)
            .and_then(atlas::role_does)
            .or_else(|| atlas::does(name))
            .filter(|_| kind != Kind::Program);
        User { does, cpus, ..User::new(name, kind) }
    };
    let mut users = Users::default();
    let lockup = cpu.lockup.as_ref().and_then(|lockup| Some((lockup, lockup.thread.as_ref()?)));
    if let Some((lockup, thread)) = lockup {
        users.list.push(named(thread, None));
        cite(&mut users.sources, &lockup.source);
    }
    let timed = cpu.timed.as_ref().filter(|timed| !timed.program.is_empty());
    if let Some(timed) = timed.filter(|timed| users.list.is_empty() && timed.is_busy()) {
        users.list.push(named(&timed.program, Some(timed.cpus)));
        cite(&mut users.sources, &timed.source);
    }
    if let Some(timed) = timed.filter(|_| users.list.is_empty()) {
        users.list.push(named(&timed.program, Some(timed.cpus)));
        cite(&mut users.sources, &timed.source);
    }
    users.is_said = !users.list.is_empty();
    users
}

/// Modules of the kernel that are neither its own nor ZFS's, with what their functions have.
fn foreign(facts: &Facts) -> Vec<User> {
    let mut modules: BTreeMap<String, (String, f64)> = BTreeMap::new();
    for (symbol, module, percent) in facts.top_symbols(usize::MAX) {
        let is_module = module.starts_with('[') || !module.contains(['.', '/', ' ']);
        let of_kernel = module == "?" || module.contains("kernel") || module.contains("vmlinux");
        let known = atlas::subsystem_of(&symbol, Some(&module), Some(true)).is_some();
        if is_module && !of_kernel && !known && !is_zfs_module(&module) {
            // Best first: the first of a module is its largest.
            modules.entry(module).or_insert((symbol, 0.0)).1 += percent;
        }
    }
    let modules = modules.into_iter().filter(|(_, (_, percent))| *percent >= FOREIGN_PERCENT);
    modules
        .map(|(module, (symbol, percent))| {
            let name = format!("{} (most in {symbol})", module.trim_matches(['[', ']']));
            User { samples_percent: Some(percent), ..User::new(name, Kind::Code) }
        })
        .collect()
}

/// Threads or subsystems of a profile.
fn profiled(facts: &Facts) -> Users {
    let (has_profile, _) = facts.profile_kind();
    if !has_profile {
        return Users::default();
    }
    facts.start_trace();
    let threads = facts.profiled_users();
    let weighted = facts.profiled_share_of_zfs().is_ok();
    let user = |name: String, kind, does, value| User {
        does,
        samples_percent: Some(value),
        ..User::new(name, kind)
    };
    let mut list: Vec<User> = threads
        .into_iter()
        .map(|one| {
            let kind = match &one {
                _ if one.is_zfs || is_zfs_program(&one.name) => Kind::Zfs,
                _ if one.is_kernel => Kind::Kernel,
                _ => Kind::Program,
            };
            let does = atlas::role_of(&one.name).and_then(atlas::role_does);
            let share = one.share_percent.unwrap_or(0.0);
            user(one.name, kind, does.filter(|_| one.is_kernel), share)
        })
        .collect();
    if list.is_empty() {
        let uses = facts.subsystems().unwrap_or_default();
        list = uses
            .into_iter()
            .map(|one| {
                let name = format!("{} (most in {})", one.name, one.function);
                let kind = if atlas::is_of_kernel(one.name) { Kind::Code } else { Kind::Zfs };
                user(name, kind, Some(one.does), one.percent)
            })
            .collect();
        list.extend(foreign(facts));
        // Functions of programs have no subsystem.
        let known: f64 = list.iter().filter_map(|one| one.samples_percent).sum();
        let first = facts.top_symbols(1).into_iter().next();
        if let Some((symbol, module, share)) = first
            && list.first().is_none_or(|top| top.samples_percent.unwrap_or(0.0) < share)
            && known < 100.0
            && symbol != "?"
        {
            let name = if module == "?" { symbol } else { format!("{symbol} in {module}") };
            list.push(user(name, Kind::Code, None, share));
        }
    }
    let sources = facts.take_trace().sources.into_iter().take(2).collect();
    if !weighted {
        // Stacks without weight show who was there, not how much.
        list.iter_mut().for_each(|user| user.samples_percent = None);
        return Users { list, is_said: true, sources, ..Users::default() };
    }
    let samples = facts.profile_samples().ok();
    if samples.is_some_and(|samples| samples < FEWEST_SAMPLES) {
        return Users::default();
    }
    Users { list, samples, of_samples: true, sources, ..Users::default() }
}
