//! The host: CPUs by kind and by number, memory, pressure, and CPU by role of threads.

use std::time::Instant;

use hashbrown::HashMap;
use ogive_proc::meminfo;
use ogive_proc::pressure::{Share, stalls};
use ogive_profile::threads::Snapshot;
use serde_json::{Value, json};

use super::Step;
use super::roles::HostRoles;

/// At most so many CPUs have series each.
const CPUS_MAX: u32 = 512;
/// The resources in /proc/pressure.
const PRESSURES: [&str; 3] = ["cpu", "io", "memory"];

/// The state of the last step, for differences.
#[derive(Debug)]
pub(super) struct Host {
    cpus: Option<Snapshot>,
    stalls: HashMap<String, (u64, Instant)>,
    own: Option<(f64, Instant)>,
    roles: HostRoles,
    description: Value,
}

impl Host {
    pub(super) fn new() -> Self {
        let uname = rustix::system::uname();
        let name = uname.nodename().to_string_lossy().into_owned();
        let kernel = uname.release().to_string_lossy().into_owned();
        let cpus = Snapshot::read().map_or(0, |snapshot| snapshot.cpus.len());
        Self {
            cpus: None,
            stalls: HashMap::new(),
            own: None,
            roles: HostRoles::new(),
            description: json!({
                "id": "host", "kind": "host", "name": name, "state": "answers",
                "kernel": kernel, "cpus": cpus,
            }),
        }
    }

    pub(super) fn forget(&mut self) {
        self.cpus = None;
        self.stalls.clear();
        self.own = None;
        self.roles.forget();
    }

    pub(super) fn describe(&self) -> Value {
        self.description.clone()
    }

    pub(super) fn step(&mut self, step: &mut Step) {
        self.put_cpus(step);
        if let Ok(text) = std::fs::read_to_string("/proc/meminfo") {
            put_memory(&text, step);
        }
        for what in PRESSURES {
            if let Ok(text) = std::fs::read_to_string(format!("/proc/pressure/{what}")) {
                self.put_pressure(what, &text, Instant::now(), step);
            }
        }
        self.roles.step(step);
        self.put_own(step);
    }

    fn put_cpus(&mut self, step: &mut Step) {
        let Ok(now) = Snapshot::read() else { return };
        if let Some(before) = self.cpus.replace(now.clone()) {
            let all = now.total.since(&before.total).percent(None);
            for (kind, percent) in [
                ("cpu_usr", all.usr),
                ("cpu_sys", all.sys),
                ("cpu_irq", all.irq),
                ("cpu_iowait", all.iowait),
                ("cpu_steal", all.steal),
                ("cpu_idle", all.idle),
            ] {
                step.put("host", kind, percent);
            }
            for (number, times) in now.cpus.iter().filter(|(number, _)| **number < CPUS_MAX) {
                let Some(earlier) = before.cpus.get(number) else { continue };
                let one = times.since(earlier).percent(Some(*number));
                step.put("host", &format!("core_usr.{number}"), one.usr);
                step.put("host", &format!("core_sys.{number}"), one.sys + one.irq);
            }
        }
    }

    /// The share of time in which some threads (`some`) or all (`full`) waited. It comes from the
    /// kernel's total in microseconds, because the kernel's averages lag by ten seconds.
    fn put_pressure(&mut self, what: &str, text: &str, now: Instant, step: &mut Step) {
        for stall in stalls(text) {
            let kind = match stall.share {
                Share::Some => "some",
                Share::Full => "full",
            };
            let total = stall.total_us;
            let name = format!("pressure_{what}_{kind}");
            if let Some((before, at)) = self.stalls.insert(name.clone(), (total, now)) {
                let seconds = now.saturating_duration_since(at).as_secs_f64();
                #[expect(clippy::cast_precision_loss, reason = "microseconds of a step")]
                let stalled = total.saturating_sub(before) as f64 / 1e6;
                step.put("host", &name, (stalled / seconds * 100.0).min(100.0));
            }
        }
    }

    /// The cost of watching: CPU of this process, in percent of one CPU.
    fn put_own(&mut self, step: &mut Step) {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        #[expect(clippy::cast_precision_loss, reason = "seconds of CPU of a process")]
        let used = time.tv_sec as f64 + time.tv_nsec as f64 / 1e9;
        let now = Instant::now();
        if let Some((before, at)) = self.own.replace((used, now)) {
            let seconds = now.saturating_duration_since(at).as_secs_f64();
            step.put("host", "own_cpu", (used - before) / seconds * 100.0);
        }
    }
}

/// Memory by use; the parts add up to the total.
fn put_memory(meminfo: &str, step: &mut Step) {
    #[expect(clippy::cast_precision_loss, reason = "four digits are shown")]
    let values: HashMap<&str, f64> =
        meminfo::rows(meminfo).map(|(name, bytes)| (name, bytes as f64)).collect();
    let get = |name: &str| values.get(name).copied();
    let (Some(total), Some(free)) = (get("MemTotal"), get("MemFree")) else { return };
    let sum = |names: &[&str]| names.iter().filter_map(|name| get(name)).sum::<f64>();
    let shared = sum(&["Shmem"]);
    let cache = (sum(&["Cached", "Buffers"]) - shared).max(0.0);
    let programs = sum(&["AnonPages"]);
    let slab = sum(&["Slab"]);
    let rest = total - free - cache - programs - slab - shared;
    step.put("host", "memory_total", total);
    step.put("host", "memory_programs", programs);
    step.put("host", "memory_shared", shared);
    step.put("host", "memory_slab", slab);
    step.put("host", "memory_kernel", rest.max(0.0));
    step.put("host", "memory_cache", cache);
    step.put("host", "memory_free", free);
    if let Some(available) = get("MemAvailable") {
        step.put("host", "memory_available", available);
    }
    if let (Some(swap), Some(left)) = (get("SwapTotal"), get("SwapFree"))
        && swap > 0.0
    {
        step.put("host", "swap_used", swap - left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn parts_of_memory_add_up() {
        let text = "MemTotal: 1000 kB\nMemFree: 100 kB\nMemAvailable: 400 kB\nBuffers: 20 kB\n\
                    Cached: 300 kB\nShmem: 50 kB\nAnonPages: 250 kB\nSlab: 150 kB\nodd\nSwapTotal: 0 kB\n";
        let mut step = Step::default();
        put_memory(text, &mut step);
        let values: HashMap<_, _> = step.values.into_iter().collect();
        let parts = ["programs", "shared", "slab", "kernel", "cache", "free"];
        let sum: f64 = parts.iter().map(|part| values[&format!("host.memory_{part}")]).sum();
        assert_eq!(sum, 1000.0 * 1024.0);
        assert_eq!(values["host.memory_kernel"], 180.0 * 1024.0);
        assert!(!values.contains_key("host.swap_used"));
    }

    #[test]
    fn pressure_is_the_share_of_the_time_between_two_steps() {
        let mut host = Host::new();
        let start = Instant::now();
        let text = |total: u64| format!("some avg10=0.00 avg60=0.00 total={total}\nnonsense\n");
        let mut step = Step::default();
        host.put_pressure("io", &text(5_000_000), start, &mut step);
        assert!(step.values.is_empty(), "one look is no rate");
        host.put_pressure("io", &text(5_500_000), start + Duration::from_secs(2), &mut step);
        assert_eq!(step.values, [("host.pressure_io_some".to_owned(), 25.0)]);
    }

    #[test]
    fn this_host_has_series_of_its_cpus_and_of_the_cost_of_watching() {
        let mut host = Host::new();
        let mut step = Step::default();
        host.step(&mut step);
        let mut step = Step::default();
        host.step(&mut step);
        for name in ["host.cpu_usr", "host.cpu_idle", "host.core_usr.0", "host.own_cpu"] {
            assert!(step.values.iter().any(|(own, _)| own == name), "{name}");
        }
    }
}
