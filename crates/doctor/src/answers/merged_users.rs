//! Users from all sources, in this order: a list, samples, locks, names in a log.

use super::cite;
use super::cpu::Cpu;
use super::range::Of;
use super::users::{Kind, User, Users};
use super::{list_users, profile_users};
use crate::facts::{Consumption, Facts};

impl Users {
    pub(super) fn of(facts: &Facts, consumption: Option<&Consumption>, cpu: &Cpu) -> Self {
        let sampled = profile_users::sampled(facts);
        let shows_much = consumption.is_some_and(|list| {
            let busy = cpu.busy_cpus().unwrap_or(0.0) * 100.0;
            list.percent >= 20.0 && list.percent >= 0.3 * busy
        });
        let mut users = match consumption {
            // A few rows with almost no CPU show less than samples.
            Some(list) if shows_much || sampled.list.is_empty() => Self::listed(list, cpu),
            _ if !sampled.list.is_empty() => sampled.clone(),
            _ => profile_users::locks(facts),
        };
        if !users.is_of_samples() {
            users.list.extend(list_users::remainder(consumption, cpu));
        }
        users.list.retain(|user| user.used.is_none() || user.size() > 0.0);
        if users.list.is_empty() {
            users = profile_users::named(facts, cpu);
        }
        if consumption.is_some_and(Consumption::is_of_now) && users.counted() == Some(Of::Cpus) {
            list_users::fill(&mut users.list, &sampled, cpu);
            users.too_much_cpus = list_users::bound(&mut users, facts, cpu);
        }
        users.order();
        users
    }

    fn listed(list: &Consumption, cpu: &Cpu) -> Self {
        let mut sources = Vec::new();
        for used in list.users.iter().take(2) {
            cite(&mut sources, &used.source);
        }
        let users = list.users.iter().map(|used| list_users::user(used, list.basis, cpu)).collect();
        Self { list: users, comes_down: list.comes_down, sources, ..Self::default() }
    }

    fn order(&mut self) {
        let comes_down = self.comes_down;
        let part = |user: &User| match user.kind {
            // Threads that wait for a lock use it, so a user with about as much stands before the
            // lock.
            _ if user.name.starts_with("kernel/lock") => 0.6,
            // A list that was cut may hide many rows like its last, but none larger.
            Kind::NotShown if !comes_down => 0.0,
            // The CPU of ended children is an upper bound, and their names are unknown.
            _ if user.is_ended => 0.8,
            _ => 1.0,
        };
        let size = |user: &User| user.size() * part(user);
        // Of two users with the same figure the kernel's comes first.
        self.list.sort_by(|a, b| {
            size(b)
                .total_cmp(&size(a))
                .then_with(|| (a.kind == Kind::Program).cmp(&(b.kind == Kind::Program)))
        });
    }
}
