//! A profile in figures: its facts, and the heaviest threads, roles, modules and functions.
//!
//! The names of the fields are the schema. `schema` increases when a field changes its meaning.

use serde::Serialize;

use crate::model::{Meta, Mode, Share, SymbolShare, View};
use crate::roles::Roles;

/// Rows of each table.
const ROWS: usize = 50;

/// The figures.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// The version of these fields.
    pub schema: u32,
    /// The facts about the whole profile.
    pub profile: Meta,
    /// All weight in [`Meta::unit`].
    pub weight: u64,
    /// All samples.
    pub samples: u64,
    /// CPU seconds, if the source allows to compute them.
    pub cpu_seconds: Option<f64>,
    /// Weight outside the idle task; all shares are parts of it.
    pub busy_weight: u64,
    /// CPU seconds outside the idle task.
    pub busy_cpu_seconds: Option<f64>,
    /// Weight in the kernel, by the leaf.
    pub kernel_share: f64,
    /// By role of thread.
    pub roles: Vec<Row>,
    /// By name of thread.
    pub threads: Vec<Row>,
    /// By module of the leaf.
    pub modules: Vec<Row>,
    /// By function: its own weight.
    pub functions: Vec<FunctionRow>,
    /// By function: its weight including callees.
    pub functions_total: Vec<FunctionRow>,
}

/// A name and its weight.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The name.
    pub name: String,
    /// A description, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
    /// Its weight.
    pub weight: u64,
    /// Its samples.
    pub samples: u64,
    /// Its part of the busy weight, 0 to 1.
    pub share: f64,
}

/// A function and its weight.
#[derive(Debug, Clone, Serialize)]
pub struct FunctionRow {
    /// The function.
    pub symbol: String,
    /// Its module.
    pub module: String,
    /// Kernel or user.
    pub mode: Mode,
    /// Its weight.
    pub weight: u64,
    /// Its part of the busy weight, 0 to 1.
    pub share: f64,
}

/// Computes the figures.
pub fn summary(view: &View<'_>, roles: &Roles) -> Summary {
    let busy = view.busy();
    let profile = view.profile();
    let kernel = busy.filter(|sample| {
        let leaf = profile.split_stack(sample.stack);
        leaf.is_some_and(|(leaf, _)| profile.frame(leaf).mode == Mode::Kernel)
    });
    let rows = |shares: Vec<Share>, what: &dyn Fn(&str) -> Option<String>| {
        let heaviest = shares.into_iter().take(ROWS);
        heaviest
            .map(|Share { name, weight, samples, share }| Row {
                what: what(&name),
                name,
                weight,
                samples,
                share,
            })
            .collect()
    };
    let by_role =
        |name: &str| roles.iter().find(|role| role.role == name).map(|role| role.what.clone());
    let by_thread = |name: &str| roles.of(name).map(|role| role.what.clone());
    Summary {
        schema: 1,
        profile: profile.meta.clone(),
        weight: view.weight(),
        samples: view.count(),
        cpu_seconds: view.cpu_seconds(),
        busy_weight: busy.weight(),
        busy_cpu_seconds: busy.cpu_seconds(),
        kernel_share: kernel.share_of(&busy),
        roles: rows(busy.by_thread_group(|thread| roles.group(thread.name)), &by_role),
        threads: rows(busy.by_thread_name(), &by_thread),
        modules: rows(busy.by_module(), &|_| None),
        functions: functions(busy.self_by_symbol()),
        functions_total: functions(busy.total_by_symbol()),
    }
}

fn functions(shares: Vec<SymbolShare<'_>>) -> Vec<FunctionRow> {
    let heaviest = shares.into_iter().take(ROWS);
    heaviest
        .map(|share| FunctionRow {
            symbol: share.symbol.into_owned(),
            module: share.module.to_owned(),
            mode: share.mode,
            weight: share.weight,
            share: share.share,
        })
        .collect()
}
