//! The functions that an expression may call.
//!
//! One list has the name, arguments, result and meaning of each function, and its method of
//! [`Facts`]. The linter uses this list, and `docs/rules.md` is generated from it.

use std::sync::Arc;

use cel::{Context, ExecutionError};
use parking_lot::Mutex;

use super::ABSENT;
use crate::evidence::Timing;
use crate::facts::{self, Facts, Known, Missing};

/// A function of the language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// Its arguments: `r` a pattern, `f` a pattern or subsystems of functions, `t` a pattern or
    /// roles of threads, `s` other text, `n` a number.
    pub arguments: &'static str,
    /// Its result: `n` a number, `b` a truth, `s` text.
    pub result: char,
    /// Its meaning.
    pub meaning: &'static str,
}

/// An answer for CEL; a missing fact is recorded.
fn give<T>(facts: &Facts, name: &str, answer: Known<T>) -> Result<T, ExecutionError> {
    answer.map_err(|missing| match missing {
        Missing::Absent(what) => {
            facts.missed(&what);
            ExecutionError::function_error(name, format!("{ABSENT}{what}"))
        }
        Missing::Wrong(why) => ExecutionError::function_error(name, why),
    })
}

/// The language: shape, name, arguments, result and meaning of each function, and its method of
/// [`Facts`]. A function of the shape `unbound` has no method; [`context`] binds it.
macro_rules! language {
    ($($shape:ident $name:literal $arguments:literal $result:literal $meaning:literal
        => $ask:expr;)*) => {
        /// All functions.
        pub const FUNCTIONS: &[Function] = &[$(Function {
            name: $name,
            arguments: $arguments,
            result: $result,
            meaning: $meaning,
        }),*];

        /// Binds the functions with a method of [`Facts`].
        fn bind(context: &mut Context<'static>, facts: &Arc<Facts>) {
            $(bind!($shape, context, facts, $name, $ask);)*
        }
    };
}

/// Binds a method by the shape of its arguments.
macro_rules! bind {
    (none, $context:ident, $facts:ident, $name:literal, $ask:expr) => {
        let (own, ask) = (Arc::clone($facts), none($ask));
        $context.add_function($name, move || give(&own, $name, ask(&own)));
    };
    (one, $context:ident, $facts:ident, $name:literal, $ask:expr) => {
        let (own, ask) = (Arc::clone($facts), one($ask));
        let bound = move |a: Arc<String>| give(&own, $name, ask(&own, &a));
        $context.add_function($name, bound);
    };
    (two, $context:ident, $facts:ident, $name:literal, $ask:expr) => {
        let (own, ask) = (Arc::clone($facts), two($ask));
        let bound = move |a: Arc<String>, b: Arc<String>| give(&own, $name, ask(&own, &a, &b));
        $context.add_function($name, bound);
    };
    (three, $context:ident, $facts:ident, $name:literal, $ask:expr) => {
        let own = Arc::clone($facts);
        let bound = move |a: Arc<String>, b: Arc<String>, c: Arc<String>| {
            give(&own, $name, $ask(&own, &a, &b, &c))
        };
        $context.add_function($name, bound);
    };
    (unbound, $context:ident, $facts:ident, $name:literal, $ask:expr) => {};
}

/// A method without an argument. These three functions give closures their types.
fn none<T>(ask: impl Fn(&Facts) -> Known<T>) -> impl Fn(&Facts) -> Known<T> {
    ask
}

/// A method with one text.
fn one<T>(ask: impl Fn(&Facts, &str) -> Known<T>) -> impl Fn(&Facts, &str) -> Known<T> {
    ask
}

/// A method with two texts.
fn two<T>(ask: impl Fn(&Facts, &str, &str) -> Known<T>) -> impl Fn(&Facts, &str, &str) -> Known<T> {
    ask
}

language! {
    one "thread_cpu" "t" 'n' "CPU of matching threads together, percent of one CPU"
        => Facts::thread_cpu;
    one "thread_max" "t" 'n' "CPU of the busiest matching thread, percent of one CPU"
        => Facts::thread_max;
    one "thread_life" "t" 'n' "CPU of the busiest matching thread over its life (ps), percent of one CPU" => Facts::thread_life;
    one "thread_time_s" "t" 'n' "CPU time of matching threads over their life, seconds"
        => Facts::thread_time_s;
    one "thread_count" "t" 'n' "how many threads match" => Facts::thread_count;
    two "thread_in_state" "ts" 'n' "how many matching threads are in one of these states (`D`)"
        => Facts::thread_in_state;
    one "command" "r" 'b' "the name or command line of a process matches" => Facts::command;
    one "cpu" "s" 'n' "percent of all CPUs in user, system, idle, iowait, interrupt, steal or busy"
        => Facts::cpu;
    one "comm_share" "t" 'n' "percent of the busy CPU used by matching threads"
        => Facts::comm_share;
    none "user_share" "" 'n' "percent of the busy CPU in user space" => Facts::user_share;
    none "zfs_share" "" 'n'
        "percent of the busy CPU in threads of ZFS, and in its functions in other threads"
        => Facts::zfs_share;
    none "process_share" "" 'n'
        "percent of the busy CPU in user processes, without their time inside ZFS"
        => Facts::process_share;
    none "top_process" "" 's' "the user process with the most CPU"
        => |f| text(f.top_process().map(|user| user.name.clone()));
    none "top_process_share" "" 'n' "percent of the busy CPU that the top user process uses" => Facts::top_process_share;
    none "top_process_cpu" "" 'n' "percent of one CPU that the top user process uses, if no kernel thread uses more"
        => Facts::top_process_cpu;
    none "waiting" "" 'n' "threads in uninterruptible sleep: a list, or vmstat's b"
        => Facts::waiting;
    one "timed_real" "r" 'n' "wall clock of a timed command, seconds"
        => |f, a| f.timed(a, |timing| timing.real_s);
    one "timed_user" "r" 'n' "CPU of a timed command in user space, seconds"
        => |f, a| f.timed(a, |timing| timing.user_s);
    one "timed_system" "r" 'n' "CPU of a timed command in the kernel, seconds"
        => |f, a| f.timed(a, |timing| timing.system_s);
    one "timed_system_share" "r" 'n' "CPU of a timed command in the kernel, percent of its wall clock"
        => |f, a| f.timed(a, |timing| of_wall_clock(timing.system_s, timing));
    one "timed_cpu_share" "r" 'n' "CPU of a timed command, percent of its wall clock; the highest of several runs"
        => |f, a| f.timed(a, |timing| of_wall_clock(timing.user_s + timing.system_s, timing));
    one "timed_growth" "r" 'n'
        "exponent by which the CPU of a timed command grows with the number in it (2 is quadratic)"
        => Facts::timed_growth;
    one "timed_ratio" "r" 'n' "CPU of the most expensive run of a command, divided by that of the cheapest"
        => Facts::timed_ratio;
    none "load1" "" 'n' "load average of one minute" => Facts::load1;
    one "self_share" "f" 'n' "percent of busy samples in matching functions themselves"
        => Facts::self_share;
    one "kernel_self_share" "f" 'n'
        "percent of busy samples in matching functions of the kernel themselves"
        => Facts::kernel_self_share;
    one "stack_share" "f" 'n' "percent of busy samples with a matching function on the stack"
        => Facts::stack_share;
    two "under" "ff" 'n'
        "percent of busy samples in which the first function calls the second, directly or not"
        => Facts::under;
    one "leaf_without_caller" "f" 'n'
        "percent of busy samples in matching functions with no caller recorded"
        => Facts::leaf_without_caller;
    two "in_thread" "tf" 'n'
        "percent of busy samples of matching threads with a matching function on the stack"
        => Facts::in_thread;
    one "module_self" "r" 'n' "percent of busy samples in matching modules" => Facts::module_self;
    one "unnamed_in" "r" 'n' "percent of busy samples in functions without a name, of matching modules"
        => Facts::unnamed_in;
    none "spinning" "" 'n' "percent of busy samples that spin for a lock" => Facts::spinning;
    one "spin_under" "f" 'n' "percent of busy samples that spin for a lock below a matching caller"
        => Facts::spin_under;
    one "spin_caller" "f" 'n'
        "percent of busy samples that spin for a lock which a matching function takes itself"
        => Facts::spin_caller;
    one "stacks_at" "f" 'n'
        "how many threads have a matching function on their kernel stack"
        => Facts::stacks_at;
    two "stacks_under" "ff" 'n' "how many threads have the second function below the first on their kernel stack"
        => Facts::stacks_under;
    one "lock_share" "f" 'n' "percent of a lock profile that matching locks or callers have"
        => Facts::lock_share;
    one "gauge" "s" 'n' "the figure `table.figure`, if it is a value of now and no counter" => Facts::gauge;
    one "arc" "s" 'n' "`size`, `c`, `c_min` or `c_max` of the ARC in bytes, from any tool"
        => Facts::arc;
    three "gauge_of" "srs" 'n' "table, scope, figure: the largest value of the matching scopes"
        => Facts::gauge_of;
    three "gauge_sum" "srs" 'n' "table, scope, figure: the sum of the matching scopes"
        => Facts::gauge_sum;
    two "scope_count" "sr" 'n' "how many scopes of a table match" => Facts::scope_count;
    one "rate" "s" 'n' "`table.figure` per second, from two readings, a printed rate, or a counter and its age"
        => Facts::rate;
    one "delta" "s" 'n' "growth of the counter `table.figure` between two readings" => Facts::delta;
    two "ratio" "ss" 'n' "quotient of two gauges, or of two rates" => Facts::ratio;
    two "counter_share" "ss" 'n' "quotient of two counters' growth" => Facts::counter_share;
    two "counter_share_like" "rr" 'n'
        "the same for sums of all counters whose `table.figure` matches"
        => Facts::counter_share_like;
    one "word" "s" 's' "`table.figure` as text" => |f, a| text(f.word(a));
    two "prop" "sr" 'b' "a dataset or pool has this property with a matching value"
        => Facts::prop;
    two "prop_value" "sr" 's' "the first matching value of this property" => |f, a, b| text(f.prop_value(a, b));
    two "prop_owner" "sr" 's' "the first dataset or pool with a matching value of this property"
        => |f, a, b| text(f.prop_owner(a, b));
    two "prop_datasets" "sr" 'n' "how many datasets or pools have a matching value of this property" => Facts::prop_datasets;
    one "prop_max" "s" 'n' "the largest value of a property, bytes or plain" => Facts::prop_max;
    one "record_excess" "s" 'n'
        "`read` or `write`: size of a record divided by that of one I/O, in the dataset that loses most"
        => Facts::record_excess;
    one "traffic" "s" 'n'
        "`read` or `write`: bytes per second that programs move, of all datasets"
        => Facts::traffic;
    one "record_excess_owner" "s" 's' "`read` or `write`: the dataset of `record_excess`" => |f, a| text(f.record_excess_owner(a));
    one "record_excess_io" "s" 'n' "`read` or `write`: bytes of one I/O in the dataset of `record_excess`" => Facts::record_excess_io;
    one "param" "s" 'n' "a module parameter or sysctl as a number" => Facts::param;
    one "param_text" "s" 's' "a module parameter or sysctl as text" => |f, a| text(f.param_text(a));
    two "param_is" "sr" 'b' "the value of a module parameter or sysctl matches" => Facts::param_is;
    one "pool_says" "r" 'b' "a line of zpool status matches" => Facts::pool_says;
    none "pools" "" 'n' "number of imported pools" => Facts::pools;
    none "mounts" "" 'n' "number of mounted ZFS datasets" => Facts::mounts;
    none "os" "" 's' "linux, freebsd, illumos or macos" => |f| text(f.os());
    none "kernel" "" 's' "the kernel release" => |f| text(f.kernel());
    one "kernel_at_least" "s" 'b' "the kernel is at least this release" => Facts::kernel_at_least;
    one "kernel_before" "s" 'b' "the kernel is older than this release"
        => |f, a| f.kernel_at_least(a).map(|newer| !newer);
    none "ncpu" "" 'n' "number of CPUs" => Facts::ncpu;
    none "ram_bytes" "" 'n' "RAM, bytes" => Facts::ram_bytes;
    none "uptime_s" "" 'n' "seconds since boot" => Facts::uptime_s;
    none "zfs_loaded" "" 'b' "the ZFS module is loaded" => Facts::zfs_loaded;
    one "cpu_has" "s" 'b' "the CPU has the feature, by the name of /proc/cpuinfo" => Facts::cpu_has;
    none "virtual" "" 'b' "it is a virtual machine" => Facts::is_virtual;
    none "numa_nodes" "" 'n' "number of NUMA nodes" => Facts::numa_nodes;
    none "ogive" "" 'b' "the question is about an ogive mount; always known"
        => |f| Known::Ok(f.is_ogive());
    one "zfs_before" "s" 'b'
        "the installed release lacks a commit, or the fix of these releases (`2.1.3, 2.2.0`)"
        => Facts::zfs_before;
    one "zfs_at_least" "s" 'b' "the installed ZFS is at least this release" => Facts::zfs_at_least;
    one "tells" "s" 'b'
        "one unread sentence matches all patterns of `a & b & !c`, and none after `!`; for `words` only"
        => Facts::tells;
    one "said" "r" 'b' "an unread sentence matches, in any letter case; for signs of `words` only"
        => Facts::says;
    one "log" "r" 'b' "a line of the log matches, in any letter case"
        => |f, a| f.log_count(a).map(|count| count > 0.0);
    one "log_count" "r" 'n' "how many lines of the log match" => Facts::log_count;
    one "known" "s" 'b' "a figure, property or parameter of this name was given; always known"
        => |f, a| Known::Ok(f.is_shown(a));
    one "shown" "s" 'b' "evidence of this kind was given, such as `profile`, `callers`, `threads`; always known" => shown;
    unbound "subsystem" "s" 's'
        "functions of these subsystems (`ddt, checksum/sha256`)" => ();
    unbound "role" "s" 's' "threads of these roles (`read/done`)" => ();
    unbound "share" "" 'n' "percent of the busy CPU that this rule explains" => ();
    unbound "max_of" "nn" 'n' "the larger of two numbers" => ();
    unbound "min_of" "nn" 'n' "the smaller of two numbers" => ();
}

/// Text for CEL.
fn text(answer: Known<String>) -> Known<Arc<String>> {
    answer.map(Arc::new)
}

/// A context with every function bound.
pub(super) fn context(facts: &Arc<Facts>, share: &Arc<Mutex<Option<f64>>>) -> Context<'static> {
    let mut context = Context::default();
    bind(&mut context, facts);
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

/// Percent of the wall clock of a command.
fn of_wall_clock(seconds: f64, timing: &Timing) -> f64 {
    seconds * 100.0 / timing.real_s.max(0.001)
}

/// Whether evidence of a kind was given.
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
        _ => return Err(Missing::Wrong(format!("there is no kind of evidence {kind}"))),
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
