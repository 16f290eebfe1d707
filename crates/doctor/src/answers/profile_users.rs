//! Users without a list: threads or subsystems of a profile, or the lock with the most waits. A
//! lockup or a timed command also names threads.

use std::collections::BTreeMap;

use super::cite;
use super::cpu::Cpu;
use super::range::{Of, Range};
use super::users::{Kind, User, Users};
use crate::atlas;
use crate::evidence::LockUse;
use crate::facts::{FEWEST_SAMPLES, Facts, Owner, is_zfs_module};

/// Percent of the busy samples from which a module is named as a user.
const FOREIGN_PERCENT: f64 = 5.0;

fn share(name: String, kind: Kind, does: Option<&'static str>, percent: f64) -> User {
    let used = Some(Range::exact(percent, Of::PercentOfBusy));
    User { does, used, ..User::new(name, kind) }
}

/// Threads or subsystems of a profile.
pub(super) fn sampled(facts: &Facts) -> Users {
    let (has_profile, _) = facts.profile_kind();
    if !has_profile {
        return Users::default();
    }
    let samples = facts.profile_samples().ok();
    if samples.is_some_and(|samples| samples < FEWEST_SAMPLES) {
        return Users::default();
    }
    facts.start_trace();
    let weighted = facts.profiled_zfs_share().is_ok();
    let threads = facts.profiled_users().into_iter().map(|one| {
        let owner = match (one.is_zfs, one.is_kernel) {
            (true, _) => Owner::Zfs,
            (_, true) => Owner::Kernel,
            _ => Owner::Program,
        };
        let does = atlas::role_of(&one.name).and_then(atlas::role_does);
        let kind = Kind::of(&one.name, owner);
        share(one.name, kind, does.filter(|_| one.is_kernel), one.share_percent.unwrap_or(0.0))
    });
    let mut list: Vec<User> = threads.collect();
    if list.is_empty() {
        list = functions(facts);
    }
    let sources = facts.take_trace().sources.into_iter().take(2).collect();
    if !weighted {
        // Stacks without weight show the threads, not their CPU.
        list.iter_mut().for_each(|user| user.used = None);
        return Users { list, sources, ..Users::default() };
    }
    Users { list, samples, sources, ..Users::default() }
}

/// Users of a profile without threads: its subsystems, and the modules of neither the kernel nor
/// ZFS. The largest function is one if it is larger than all of them.
fn functions(facts: &Facts) -> Vec<User> {
    let uses = facts.subsystems().unwrap_or_default().into_iter().map(|one| {
        let name = format!("{} (most in {})", one.name, one.function);
        let kind = if atlas::is_of_kernel(one.name) { Kind::Code } else { Kind::Zfs };
        share(name, kind, Some(one.does), one.percent)
    });
    let mut list: Vec<User> = uses.collect();
    let mut modules: BTreeMap<String, (String, f64)> = BTreeMap::new();
    let symbols = facts.top_symbols(usize::MAX);
    for (symbol, module, percent) in &symbols {
        let is_module = module.starts_with('[') || !module.contains(['.', '/', ' ']);
        let of_kernel = module == "?" || module.contains("kernel") || module.contains("vmlinux");
        let known = atlas::subsystem_of(symbol, Some(module), Some(true)).is_some();
        if is_module && !of_kernel && !known && !is_zfs_module(module) {
            // Best first: the first function of a module is its largest.
            modules.entry(module.clone()).or_insert((symbol.clone(), 0.0)).1 += percent;
        }
    }
    let modules = modules.into_iter().filter(|(_, (_, percent))| *percent >= FOREIGN_PERCENT);
    list.extend(modules.map(|(module, (symbol, percent))| {
        let name = format!("{} (most in {symbol})", module.trim_matches(['[', ']']));
        share(name, Kind::Code, None, percent)
    }));
    // Functions of programs have no subsystem.
    let known: f64 = list.iter().filter_map(User::samples_percent).sum();
    let largest = list.first().and_then(User::samples_percent).unwrap_or(f64::MIN);
    if let Some((symbol, module, percent)) = symbols.into_iter().next()
        && largest < percent
        && known < 100.0
        && symbol != "?"
    {
        let name = if module == "?" { symbol } else { format!("{symbol} in {module}") };
        list.push(share(name, Kind::Code, None, percent));
    }
    list
}

/// The lock with most spinning, by a lock profiler. It shows the place, but not the share of the
/// machine.
pub(super) fn locks(facts: &Facts) -> Users {
    let size = |one: &LockUse| {
        one.percent.or(one.wait_ns).unwrap_or_else(|| {
            #[expect(clippy::cast_precision_loss, reason = "a count to order by")]
            one.count.map_or(0.0, |count| count as f64)
        })
    };
    // A thread that sleeps for a lock uses no CPU.
    let busily = facts.evidence().locks.iter().filter(|one| !one.kind.contains("block"));
    let Some(most) = busily.max_by(|a, b| size(a).total_cmp(&size(b))) else {
        return Users::default();
    };
    let is_zfs = most.kind.contains("spin")
        && most.callers.iter().any(|frame| {
            let name = frame.symbol.as_deref().unwrap_or("");
            let own = atlas::subsystem_of(name, frame.module.as_deref(), Some(true));
            own.is_some_and(|own| !atlas::is_of_kernel(own))
        });
    let name = match most.callers.iter().find_map(|frame| frame.symbol.as_deref()) {
        Some(caller) => format!("lock {} below {caller}", most.lock),
        None => format!("lock {}", most.lock),
    };
    let user = User::new(name, if is_zfs { Kind::Zfs } else { Kind::Code });
    Users { list: vec![user], sources: vec![most.source.clone()], ..Users::default() }
}

/// The threads that a lockup or a timed command names.
pub(super) fn named(facts: &Facts, cpu: &Cpu) -> Users {
    let lockup =
        cpu.lockup.as_ref().and_then(|one| Some((one.thread.as_ref()?, None, &one.source)));
    let timed = cpu.timed.as_ref().filter(|timed| !timed.program.is_empty());
    let timed = timed.map(|one| (&one.program, Some(one.cpus), &one.source));
    let Some((name, count, source)) = lockup.or(timed) else { return Users::default() };
    let kind = match atlas::is_subsystem(name) {
        true => Kind::Zfs,
        false => Kind::of(name, facts.owner(name)),
    };
    let does = atlas::role_of(name).and_then(atlas::role_does).or_else(|| atlas::does(name));
    let user = User {
        does: does.filter(|_| kind != Kind::Program),
        used: count.map(|count| Range::exact(count, Of::Cpus)),
        ..User::new(name, kind)
    };
    let mut users = Users { list: vec![user], ..Users::default() };
    cite(&mut users.sources, source);
    users
}
