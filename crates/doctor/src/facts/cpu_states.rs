//! The use of the machine's CPUs, by state.
//!
//! The tool with the longest interval answers. Figures since boot count only if there are no
//! others.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Facts, Known, absent};
use crate::evidence::CpuUse;

impl Facts {
    /// Use of all CPUs, percent, by state.
    pub fn cpu(&self, state: &str) -> Known<f64> {
        let rows = self.cpu_rows();
        if rows.is_empty() {
            return absent("CPU use by state (vmstat 1 10)");
        }
        // Tools that print one figure do not separate programs from the kernel.
        if !rows.iter().any(|row| row.is_split) && matches!(state, "user" | "system" | "interrupt")
        {
            return absent("CPU use by programs and by the kernel");
        }
        let mut sum = 0.0;
        for row in &rows {
            sum += match state {
                "user" => row.user,
                "system" => row.system,
                "idle" => row.idle,
                "iowait" => row.iowait,
                "interrupt" => row.interrupt,
                "steal" => row.steal,
                "busy" => row.user + row.system + row.interrupt,
                _ => return Err(super::Missing::Wrong(format!("no CPU state is called {state}"))),
            };
        }
        if let Some(row) = rows.first() {
            self.used(&row.source);
        }
        #[expect(clippy::cast_precision_loss, reason = "a number of rows")]
        Ok(sum / rows.len() as f64)
    }

    /// The mean use of all CPUs over the busy rows, where the mean of all rows hides a busy phase.
    pub(crate) fn cpu_while_busy(&self, percent: f64) -> Option<CpuUse> {
        let busy = |row: &CpuUse| row.user + row.system + row.interrupt + row.steal;
        let rows = self.cpu_rows();
        let phase: Vec<&&CpuUse> = rows.iter().filter(|row| busy(row) >= percent).collect();
        let all: f64 = rows.iter().map(|row| busy(row)).sum();
        #[expect(clippy::cast_precision_loss, reason = "a number of rows")]
        let (count, whole) = (phase.len() as f64, rows.len() as f64);
        if count < 2.0 || count < 0.3 * whole || all >= percent * whole {
            return None;
        }
        let source = phase.first()?.source.clone();
        self.used(&source);
        CpuUse::mean(phase.into_iter().copied())
    }

    /// Rows of CPU use, of the input that measured longest. A difference of two /proc/stat covers
    /// its whole interval. A tool that prints many rows covers more than the header of one `top`.
    /// Figures since boot count only where nothing else is given.
    fn cpu_rows(&self) -> Vec<&CpuUse> {
        let all = &self.evidence().cpu;
        let mut inputs: BTreeMap<&Arc<str>, Vec<&CpuUse>> = BTreeMap::new();
        for row in all.iter().filter(|row| !row.since_boot) {
            inputs.entry(&row.source.input).or_default().push(row);
        }
        let whole = |name: &str| name.rsplit('/').next() == Some("stat");
        let best = inputs.into_iter().max_by_key(|(name, rows)| (whole(name), rows.len()));
        best.map_or_else(|| all.iter().collect(), |(_, rows)| rows)
    }

    /// All busy CPU, in percent of one CPU, by the states of the CPUs.
    pub(super) fn stated_percent_of_one_cpu(&self) -> Option<f64> {
        let rows = self.cpu_rows();
        let busy: f64 = rows.iter().map(|row| row.user + row.system + row.interrupt).sum();
        let cpus = f64::from(self.evidence().host.cpus.as_ref()?.value);
        #[expect(clippy::cast_precision_loss, reason = "a number of rows")]
        (!rows.is_empty()).then(|| busy / rows.len() as f64 * cpus)
    }

    /// Share of the busy CPU in user space, percent.
    pub fn user_share(&self) -> Known<f64> {
        if let Ok(share) = self.profiled_user_share() {
            return Ok(share);
        }
        let (user, busy) = (self.cpu("user")?, self.cpu("busy")?);
        if busy <= 0.0 { absent("busy CPU") } else { Ok(user * 100.0 / busy) }
    }
}
