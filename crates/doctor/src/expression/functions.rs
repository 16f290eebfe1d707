//! The functions that an expression may call: the list that documentation and linter use, and the
//! binding of each name to a question of [`Facts`].

use std::sync::Arc;

use cel::{Context, ExecutionError};
use parking_lot::Mutex;

use super::ABSENT;
use crate::facts::{self, Facts, Known, Missing};

/// A function of the language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// Its arguments: `r` a pattern, `f` a pattern or subsystems of functions, `t` a pattern or
    /// roles of threads, `s` other text, `n` a number.
    pub arguments: &'static str,
    /// What it gives: `n` a number, `b` a truth, `s` text.
    pub result: char,
    /// What it means.
    pub meaning: &'static str,
}

const fn f(
    name: &'static str,
    arguments: &'static str,
    result: char,
    meaning: &'static str,
) -> Function {
    Function { name, arguments, result, meaning }
}

/// All functions.
pub const FUNCTIONS: &[Function] = &[
    f("thread_cpu", "t", 'n', "CPU of matching threads together, percent of one CPU"),
    f("thread_max", "t", 'n', "CPU of the busiest matching thread, percent of one CPU"),
    f("thread_life", "t", 'n', "the same averaged over its life (ps)"),
    f("thread_time_s", "t", 'n', "CPU time of matching threads over their life, seconds"),
    f("thread_count", "t", 'n', "how many threads match"),
    f("thread_in_state", "ts", 'n', "how many matching threads are in one of these states (\"D\")"),
    f("command", "r", 'b', "some process's name or command line matches"),
    f(
        "cpu",
        "s",
        'n',
        "percent of all CPUs in user, system, idle, iowait, interrupt, steal or busy",
    ),
    f("comm_share", "t", 'n', "percent of the busy CPU used by matching threads"),
    f("user_share", "", 'n', "percent of the busy CPU in user space"),
    f(
        "zfs_share",
        "",
        'n',
        "percent of the busy CPU that is ZFS's: its threads, and its functions below others",
    ),
    f(
        "process_share",
        "",
        'n',
        "percent of the busy CPU in user processes, without their time inside ZFS",
    ),
    f("top_process", "", 's', "the user process with the most CPU"),
    f("top_process_share", "", 'n', "its percent of the busy CPU"),
    f("top_process_cpu", "", 'n', "its percent of one CPU, if no kernel thread uses more"),
    f("waiting", "", 'n', "threads in uninterruptible sleep: a list, or vmstat's b"),
    f("timed_real", "r", 'n', "wall clock of a timed command, seconds"),
    f("timed_user", "r", 'n', "its CPU in user space, seconds"),
    f("timed_system", "r", 'n', "its CPU in the kernel, seconds"),
    f("timed_system_share", "r", 'n', "its time in the kernel, percent of wall clock"),
    f("timed_cpu_share", "r", 'n', "its CPU in all, percent of wall clock; of several the most"),
    f(
        "timed_growth",
        "r",
        'n',
        "exponent with which its CPU grows with the number in its text (2 = quadratic)",
    ),
    f("timed_ratio", "r", 'n', "CPU of the dearest run of one command by that of its cheapest"),
    f("load1", "", 'n', "load average of one minute"),
    f("self_share", "f", 'n', "percent of busy samples in matching functions themselves"),
    f(
        "kernel_self_share",
        "f",
        'n',
        "the same in kernel code only: a library in user space may have functions of the same name",
    ),
    f("stack_share", "f", 'n', "percent of busy samples with a matching function on the stack"),
    f(
        "under",
        "ff",
        'n',
        "percent of busy samples with a function matching the second below one matching the first",
    ),
    f(
        "leaf_without_caller",
        "f",
        'n',
        "percent of busy samples in matching functions with no caller recorded",
    ),
    f(
        "in_thread",
        "tf",
        'n',
        "percent of busy samples of matching threads with a matching function on the stack",
    ),
    f("module_self", "r", 'n', "percent of busy samples in matching modules"),
    f("unnamed_in", "r", 'n', "percent of busy samples in nameless functions of matching modules"),
    f("spinning", "", 'n', "percent of busy samples that wait for a lock busily"),
    f(
        "spin_under",
        "f",
        'n',
        "percent of busy samples that wait for a lock below a matching caller",
    ),
    f(
        "spin_caller",
        "f",
        'n',
        "percent of busy samples that wait for a lock taken by a matching function itself",
    ),
    f(
        "stacks_at",
        "f",
        'n',
        "threads whose kernel stack has a matching function (where, not how much)",
    ),
    f("stacks_under", "ff", 'n', "threads whose kernel stack has the second below the first"),
    f("lock_share", "f", 'n', "percent of the lock profile by locks or callers that match"),
    f("gauge", "s", 'n', "table.figure: a value of now"),
    f(
        "arc",
        "s",
        'n',
        "a size of the ARC in bytes, whichever tool shows it: size, c, c_min, c_max",
    ),
    f("gauge_of", "srs", 'n', "table, scope, figure: the largest of matching scopes"),
    f("gauge_sum", "srs", 'n', "table, scope, figure: the sum over matching scopes"),
    f("scope_count", "sr", 'n', "how many scopes of a table match"),
    f("rate", "s", 'n', "table.figure per second: two readings, a stated rate, or counter by age"),
    f("delta", "s", 'n', "growth of a counter between two readings"),
    f("ratio", "ss", 'n', "quotient of two gauges, or of two rates"),
    f("counter_share", "ss", 'n', "quotient of two counters' growth"),
    f(
        "counter_share_like",
        "rr",
        'n',
        "quotient of the growth of all counters whose table.figure matches",
    ),
    f("word", "s", 's', "table.figure as text"),
    f("prop", "sr", 'b', "some dataset or pool has the property with a matching value"),
    f("prop_value", "sr", 's', "the first such value"),
    f("prop_owner", "sr", 's', "the first such dataset or pool"),
    f("prop_datasets", "sr", 'n', "how many datasets or pools have it"),
    f("prop_max", "s", 'n', "the largest value of a property, bytes or plain"),
    f(
        "record_excess",
        "s",
        'n',
        "\"read\" or \"write\": how many times larger a record is, in the data set where it costs most",
    ),
    f(
        "traffic",
        "s",
        'n',
        "\"read\" or \"write\": bytes a second that programs move, of all data sets",
    ),
    f("record_excess_owner", "s", 's', "that data set"),
    f("record_excess_io", "s", 'n', "bytes of one read or write there"),
    f("param", "s", 'n', "a module parameter or sysctl as a number"),
    f("param_text", "s", 's', "a module parameter or sysctl as text"),
    f("param_is", "sr", 'b', "a parameter matches"),
    f("pool_says", "r", 'b', "zpool status says something that matches"),
    f("pools", "", 'n', "number of imported pools"),
    f("mounts", "", 'n', "number of mounted ZFS datasets"),
    f("os", "", 's', "linux, freebsd, illumos or macos"),
    f("kernel", "", 's', "the kernel release"),
    f("kernel_at_least", "s", 'b', "the kernel is at least this release"),
    f("kernel_before", "s", 'b', "the kernel is older than this release"),
    f("ncpu", "", 'n', "number of CPUs"),
    f("ram_bytes", "", 'n', "RAM, bytes"),
    f("uptime_s", "", 'n', "seconds since boot"),
    f("zfs_loaded", "", 'b', "the ZFS module is loaded"),
    f("cpu_has", "s", 'b', "the CPU has the feature, by the name of /proc/cpuinfo"),
    f("virtual", "", 'b', "it is a virtual machine"),
    f("numa_nodes", "", 'n', "number of NUMA nodes"),
    f("ogive", "", 'b', "it is an ogive mount that is asked about; always known"),
    f(
        "zfs_before",
        "s",
        'b',
        "the installed branch lacks the fix that first came with these releases, or a commit",
    ),
    f("zfs_at_least", "s", 'b', "the installed ZFS is at least this release"),
    f(
        "tells",
        "s",
        'b',
        "an unread line matches all patterns, divided by \" & \"; `!` for none; signs of `words` only",
    ),
    f("said", "r", 'b', "an unread line matches, in any letter case; signs of `words` only"),
    f("log", "r", 'b', "a line of the log matches, in any letter case"),
    f("log_count", "r", 'n', "how many lines of the log match"),
    f("known", "s", 'b', "a figure, property or parameter of the name was shown; always known"),
    f("shown", "s", 'b', "evidence of this kind was shown; always known"),
    f(
        "subsystem",
        "s",
        's',
        "functions of these subsystems (\"ddt, checksum/sha256\"), instead of a pattern",
    ),
    f("role", "s", 's', "threads of these roles (\"read/done\"), instead of a pattern"),
    f("share", "", 'n', "the CPU that this rule explains, percent of the busy CPU"),
    f("max_of", "nn", 'n', "the larger of two numbers"),
    f("min_of", "nn", 'n', "the smaller of two numbers"),
];

/// An answer for CEL; what is missing is noted.
fn give<T>(facts: &Facts, name: &str, answer: Known<T>) -> Result<T, ExecutionError> {
    answer.map_err(|missing| match missing {
        Missing::Absent(what) => {
            facts.missed(&what);
            ExecutionError::function_error(name, format!("{ABSENT}{what}"))
        }
        Missing::Wrong(why) => ExecutionError::function_error(name, why),
    })
}

/// Binds methods of facts by the shape of their arguments.
macro_rules! bind {
    ($context:ident, $facts:ident, none: $($name:literal => $ask:expr),* $(,)?) => {$({
        let facts = Arc::clone($facts);
        $context.add_function($name, move || give(&facts, $name, ($ask)(&facts)));
    })*};
    ($context:ident, $facts:ident, one: $($name:literal => $ask:expr),* $(,)?) => {$({
        let facts = Arc::clone($facts);
        $context.add_function($name, move |a: Arc<String>| give(&facts, $name, ($ask)(&facts, a.as_str())));
    })*};
    ($context:ident, $facts:ident, two: $($name:literal => $ask:expr),* $(,)?) => {$({
        let facts = Arc::clone($facts);
        $context.add_function($name, move |a: Arc<String>, b: Arc<String>| give(&facts, $name, ($ask)(&facts, a.as_str(), b.as_str())));
    })*};
    ($context:ident, $facts:ident, three: $($name:literal => $ask:expr),* $(,)?) => {$({
        let facts = Arc::clone($facts);
        $context.add_function($name, move |a: Arc<String>, b: Arc<String>, c: Arc<String>| {
            give(&facts, $name, ($ask)(&facts, a.as_str(), b.as_str(), c.as_str()))
        });
    })*};
}

/// Text for CEL.
fn text(answer: Known<String>) -> Known<Arc<String>> {
    answer.map(Arc::new)
}

/// A context with every function bound.
pub(super) fn context(facts: &Arc<Facts>, share: &Arc<Mutex<Option<f64>>>) -> Context<'static> {
    let mut context = Context::default();
    bind_cpu(&mut context, facts);
    bind_profile(&mut context, facts);
    bind_figures(&mut context, facts);
    bind_settings(&mut context, facts);
    bind_host(&mut context, facts);
    let (share, own) = (Arc::clone(share), Arc::clone(facts));
    context.add_function("share", move || {
        let known = share.lock().ok_or_else(|| Missing::Absent("the share of the CPU".to_owned()));
        give(&own, "share", known)
    });
    context.add_function("subsystem", |names: Arc<String>| Arc::new(facts::subsystem(&names)));
    context.add_function("role", |names: Arc<String>| Arc::new(facts::role(&names)));
    context.add_function("max_of", |a: f64, b: f64| a.max(b));
    context.add_function("min_of", |a: f64, b: f64| a.min(b));
    context
}

fn bind_cpu(context: &mut Context<'static>, facts: &Arc<Facts>) {
    bind!(context, facts, one:
        "thread_cpu" => Facts::thread_cpu, "thread_max" => Facts::thread_max, "thread_life" => Facts::thread_life,
        "thread_time_s" => Facts::thread_time_s, "thread_count" => Facts::thread_count, "command" => Facts::command,
        "cpu" => Facts::cpu, "comm_share" => Facts::comm_share,
        "timed_real" => |facts: &Facts, a: &str| facts.timed(a, |timing| timing.real_s),
        "timed_user" => |facts: &Facts, a: &str| facts.timed(a, |timing| timing.user_s),
        "timed_system" => |facts: &Facts, a: &str| facts.timed(a, |timing| timing.system_s),
        "timed_system_share" => |facts: &Facts, a: &str| facts.timed(a, |timing| timing.system_s * 100.0 / timing.real_s.max(0.001)),
        "timed_cpu_share" => |facts: &Facts, a: &str| facts.timed(a, |timing| (timing.user_s + timing.system_s) * 100.0 / timing.real_s.max(0.001)),
        "timed_growth" => Facts::timed_growth,
        "timed_ratio" => Facts::timed_ratio,
    );
    bind!(context, facts, two: "thread_in_state" => Facts::thread_in_state);
    bind!(context, facts, none:
        "user_share" => Facts::user_share, "zfs_share" => Facts::zfs_share, "process_share" => Facts::process_share,
        "load1" => Facts::load1,
        "top_process" => |facts: &Facts| text(facts.top_process().map(|user| user.name.clone())),
        "top_process_share" => Facts::top_process_share, "top_process_cpu" => Facts::top_process_cpu,
        "waiting" => Facts::waiting,
    );
}

fn bind_profile(context: &mut Context<'static>, facts: &Arc<Facts>) {
    bind!(context, facts, one:
        "self_share" => Facts::self_share, "kernel_self_share" => Facts::kernel_self_share, "stack_share" => Facts::stack_share,
        "leaf_without_caller" => Facts::leaf_without_caller, "module_self" => Facts::module_self,
        "unnamed_in" => Facts::unnamed_in, "spin_under" => Facts::spin_under, "spin_caller" => Facts::spin_caller,
        "stacks_at" => Facts::stacks_at, "lock_share" => Facts::lock_share,
    );
    bind!(context, facts, two:
        "under" => Facts::under, "in_thread" => Facts::in_thread, "stacks_under" => Facts::stacks_under,
    );
    bind!(context, facts, none: "spinning" => Facts::spinning);
}

fn bind_figures(context: &mut Context<'static>, facts: &Arc<Facts>) {
    bind!(context, facts, one:
        "gauge" => Facts::gauge, "arc" => Facts::arc, "rate" => Facts::rate, "delta" => Facts::delta,
        "word" => |facts: &Facts, a: &str| text(facts.word(a)),
        "known" => |facts: &Facts, a: &str| Known::Ok(facts.is_shown(a)),
        "shown" => shown,
    );
    bind!(context, facts, two:
        "ratio" => Facts::ratio, "counter_share" => Facts::counter_share, "counter_share_like" => Facts::counter_share_like,
        "scope_count" => Facts::scope_count,
    );
    bind!(context, facts, three: "gauge_of" => Facts::gauge_of, "gauge_sum" => Facts::gauge_sum);
}

fn bind_settings(context: &mut Context<'static>, facts: &Arc<Facts>) {
    bind!(context, facts, two:
        "prop" => Facts::prop, "prop_datasets" => Facts::prop_datasets, "param_is" => Facts::param_is,
        "prop_value" => |facts: &Facts, a: &str, b: &str| text(facts.prop_value(a, b)),
        "prop_owner" => |facts: &Facts, a: &str, b: &str| text(facts.prop_owner(a, b)),
    );
    bind!(context, facts, one:
        "traffic" => Facts::traffic, "record_excess" => Facts::record_excess, "record_excess_io" => Facts::record_excess_io,
        "record_excess_owner" => |facts: &Facts, a: &str| text(facts.record_excess_owner(a)),
        "prop_max" => Facts::prop_max, "param" => Facts::param, "pool_says" => Facts::pool_says,
        "param_text" => |facts: &Facts, a: &str| text(facts.param_text(a)),
    );
    bind!(context, facts, none: "pools" => Facts::pools, "mounts" => Facts::mounts);
}

fn bind_host(context: &mut Context<'static>, facts: &Arc<Facts>) {
    bind!(context, facts, none:
        "os" => |facts: &Facts| text(facts.os()),
        "kernel" => |facts: &Facts| text(facts.kernel()),
        "ncpu" => Facts::ncpu, "ram_bytes" => Facts::ram_bytes, "uptime_s" => Facts::uptime_s,
        "zfs_loaded" => Facts::zfs_loaded, "virtual" => Facts::is_virtual, "numa_nodes" => Facts::numa_nodes,
        "ogive" => |facts: &Facts| Known::Ok(facts.is_ogive()),
    );
    bind!(context, facts, one:
        "kernel_at_least" => Facts::kernel_at_least, "cpu_has" => Facts::cpu_has, "zfs_before" => Facts::zfs_before,
        "zfs_at_least" => Facts::zfs_at_least, "said" => Facts::says, "tells" => Facts::tells,
        "log_count" => Facts::log_count,
        "kernel_before" => |facts: &Facts, a: &str| facts.kernel_at_least(a).map(|newer| !newer),
        "log" => |facts: &Facts, a: &str| facts.log_count(a).map(|count| count > 0.0),
    );
}

/// Whether a kind of evidence was shown.
fn shown(facts: &Facts, kind: &str) -> Known<bool> {
    let evidence = facts.evidence();
    let (profile, callers) = facts.profile_kind();
    let answer = match kind {
        "profile" => profile,
        "callers" => callers,
        "threads" => facts.thread_cpu("").is_ok(),
        "cpu" => !evidence.cpu.is_empty(),
        "arcstats" | "memory" | "dbufstats" | "txgs" | "sar" | "iotop" => {
            facts.has_table(if kind == "memory" { "meminfo" } else { kind })
        }
        "rates" => facts.rate("arcstats.hits").is_ok() || facts.delta("arcstats.hits").is_ok(),
        "properties" => evidence.properties.iter().any(|property| !property.of_pool),
        "params" => !evidence.parameters.is_empty(),
        "versions" => evidence.host.zfs_version.is_some(),
        "log" => !evidence.log.is_empty(),
        "words" => !evidence.not_understood.is_empty(),
        "pool" => {
            !evidence.pools.is_empty()
                || evidence.properties.iter().any(|property| property.of_pool)
        }
        "stacks" => !evidence.kernel_stacks.is_empty(),
        "locks" => !evidence.locks.is_empty(),
        "timings" => !evidence.timings.is_empty(),
        _ => return Err(Missing::Wrong(format!("no kind of evidence is called {kind}"))),
    };
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Evidence;
    use crate::expression::{Environment, Expression};

    #[test]
    fn every_function_of_the_list_is_bound() {
        let environment = Environment::new(Facts::new(Evidence::default()));
        for function in FUNCTIONS {
            let arguments: Vec<&str> = function
                .arguments
                .chars()
                .map(|kind| match kind {
                    'n' => "1.0",
                    's' if function.name == "cpu" => "'user'",
                    's' if function.name == "shown" => "'profile'",
                    's' if function.name.contains("kernel_")
                        || function.name.starts_with("zfs_") =>
                    {
                        "'1.2.3'"
                    }
                    's' => "'a.b'",
                    _ => "'a'",
                })
                .collect();
            let source = format!("{}({})", function.name, arguments.join(", "));
            let expression = Expression::compile(&source).unwrap();
            let answer = environment.evaluate(&expression);
            assert!(answer.is_ok(), "{source}: {answer:?}");
        }
    }
}
