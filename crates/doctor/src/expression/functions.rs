//! The functions that an expression may call: the list that documentation and linter use, and the
//! binding of each name to a question of [`Facts`].

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
    /// What it gives: `n` a number, `b` a truth, `s` text.
    pub result: char,
    /// What it means.
    pub meaning: &'static str,
}

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

/// The language: of each function its shape, name, arguments, result and meaning, and the question
/// that it asks of the facts. Those that are bound by hand ask none.
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

        /// Binds those that ask the facts.
        fn bind(context: &mut Context<'static>, facts: &Arc<Facts>) {
            $(bind!($shape, context, facts, $name, $ask);)*
        }
    };
}

/// Binds a question by the shape of its arguments.
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

/// A question without an argument; these three tell closures their types.
fn none<T>(ask: impl Fn(&Facts) -> Known<T>) -> impl Fn(&Facts) -> Known<T> {
    ask
}

/// A question of one text.
fn one<T>(ask: impl Fn(&Facts, &str) -> Known<T>) -> impl Fn(&Facts, &str) -> Known<T> {
    ask
}

/// A question of two.
fn two<T>(ask: impl Fn(&Facts, &str, &str) -> Known<T>) -> impl Fn(&Facts, &str, &str) -> Known<T> {
    ask
}

language! {
    one "thread_cpu" "t" 'n' "CPU of matching threads together, percent of one CPU"
        => Facts::thread_cpu;
    one "thread_max" "t" 'n' "CPU of the busiest matching thread, percent of one CPU"
        => Facts::thread_max;
    one "thread_life" "t" 'n' "the same averaged over its life (ps)" => Facts::thread_life;
    one "thread_time_s" "t" 'n' "CPU time of matching threads over their life, seconds"
        => Facts::thread_time_s;
    one "thread_count" "t" 'n' "how many threads match" => Facts::thread_count;
    two "thread_in_state" "ts" 'n' "how many matching threads are in one of these states (\"D\")"
        => Facts::thread_in_state;
    one "command" "r" 'b' "some process's name or command line matches" => Facts::command;
    one "cpu" "s" 'n' "percent of all CPUs in user, system, idle, iowait, interrupt, steal or busy"
        => Facts::cpu;
    one "comm_share" "t" 'n' "percent of the busy CPU used by matching threads"
        => Facts::comm_share;
    none "user_share" "" 'n' "percent of the busy CPU in user space" => Facts::user_share;
    none "zfs_share" "" 'n'
        "percent of the busy CPU that is ZFS's: its threads, and its functions below others"
        => Facts::zfs_share;
    none "process_share" "" 'n'
        "percent of the busy CPU in user processes, without their time inside ZFS"
        => Facts::process_share;
    none "top_process" "" 's' "the user process with the most CPU"
        => |f| text(f.top_process().map(|user| user.name.clone()));
    none "top_process_share" "" 'n' "its percent of the busy CPU" => Facts::top_process_share;
    none "top_process_cpu" "" 'n' "its percent of one CPU, if no kernel thread uses more"
        => Facts::top_process_cpu;
    none "waiting" "" 'n' "threads in uninterruptible sleep: a list, or vmstat's b"
        => Facts::waiting;
    one "timed_real" "r" 'n' "wall clock of a timed command, seconds"
        => |f, a| f.timed(a, |timing| timing.real_s);
    one "timed_user" "r" 'n' "its CPU in user space, seconds"
        => |f, a| f.timed(a, |timing| timing.user_s);
    one "timed_system" "r" 'n' "its CPU in the kernel, seconds"
        => |f, a| f.timed(a, |timing| timing.system_s);
    one "timed_system_share" "r" 'n' "its time in the kernel, percent of wall clock"
        => |f, a| f.timed(a, |timing| of_wall_clock(timing.system_s, timing));
    one "timed_cpu_share" "r" 'n' "its CPU in all, percent of wall clock; of several the most"
        => |f, a| f.timed(a, |timing| of_wall_clock(timing.user_s + timing.system_s, timing));
    one "timed_growth" "r" 'n'
        "exponent with which its CPU grows with the number in its text (2 = quadratic)"
        => Facts::timed_growth;
    one "timed_ratio" "r" 'n' "CPU of the dearest run of one command by that of its cheapest"
        => Facts::timed_ratio;
    none "load1" "" 'n' "load average of one minute" => Facts::load1;
    one "self_share" "f" 'n' "percent of busy samples in matching functions themselves"
        => Facts::self_share;
    one "kernel_self_share" "f" 'n'
        "the same in kernel code only: a library in user space may have functions of the same name"
        => Facts::kernel_self_share;
    one "stack_share" "f" 'n' "percent of busy samples with a matching function on the stack"
        => Facts::stack_share;
    two "under" "ff" 'n'
        "percent of busy samples with a function matching the second below one matching the first"
        => Facts::under;
    one "leaf_without_caller" "f" 'n'
        "percent of busy samples in matching functions with no caller recorded"
        => Facts::leaf_without_caller;
    two "in_thread" "tf" 'n'
        "percent of busy samples of matching threads with a matching function on the stack"
        => Facts::in_thread;
    one "module_self" "r" 'n' "percent of busy samples in matching modules" => Facts::module_self;
    one "unnamed_in" "r" 'n' "percent of busy samples in nameless functions of matching modules"
        => Facts::unnamed_in;
    none "spinning" "" 'n' "percent of busy samples that wait for a lock busily" => Facts::spinning;
    one "spin_under" "f" 'n' "percent of busy samples that wait for a lock below a matching caller"
        => Facts::spin_under;
    one "spin_caller" "f" 'n'
        "percent of busy samples that wait for a lock taken by a matching function itself"
        => Facts::spin_caller;
    one "stacks_at" "f" 'n'
        "threads whose kernel stack has a matching function (where, not how much)"
        => Facts::stacks_at;
    two "stacks_under" "ff" 'n' "threads whose kernel stack has the second below the first"
        => Facts::stacks_under;
    one "lock_share" "f" 'n' "percent of the lock profile by locks or callers that match"
        => Facts::lock_share;
    one "gauge" "s" 'n' "table.figure: a value of now" => Facts::gauge;
    one "arc" "s" 'n' "a size of the ARC in bytes, whichever tool shows it: size, c, c_min, c_max"
        => Facts::arc;
    three "gauge_of" "srs" 'n' "table, scope, figure: the largest of matching scopes"
        => Facts::gauge_of;
    three "gauge_sum" "srs" 'n' "table, scope, figure: the sum over matching scopes"
        => Facts::gauge_sum;
    two "scope_count" "sr" 'n' "how many scopes of a table match" => Facts::scope_count;
    one "rate" "s" 'n' "table.figure per second: two readings, a stated rate, or counter by age"
        => Facts::rate;
    one "delta" "s" 'n' "growth of a counter between two readings" => Facts::delta;
    two "ratio" "ss" 'n' "quotient of two gauges, or of two rates" => Facts::ratio;
    two "counter_share" "ss" 'n' "quotient of two counters' growth" => Facts::counter_share;
    two "counter_share_like" "rr" 'n'
        "quotient of the growth of all counters whose table.figure matches"
        => Facts::counter_share_like;
    one "word" "s" 's' "table.figure as text" => |f, a| text(f.word(a));
    two "prop" "sr" 'b' "some dataset or pool has the property with a matching value"
        => Facts::prop;
    two "prop_value" "sr" 's' "the first such value" => |f, a, b| text(f.prop_value(a, b));
    two "prop_owner" "sr" 's' "the first such dataset or pool"
        => |f, a, b| text(f.prop_owner(a, b));
    two "prop_datasets" "sr" 'n' "how many datasets or pools have it" => Facts::prop_datasets;
    one "prop_max" "s" 'n' "the largest value of a property, bytes or plain" => Facts::prop_max;
    one "record_excess" "s" 'n'
        "\"read\" or \"write\": how many times larger a record is, where it costs most"
        => Facts::record_excess;
    one "traffic" "s" 'n'
        "\"read\" or \"write\": bytes a second that programs move, of all data sets"
        => Facts::traffic;
    one "record_excess_owner" "s" 's' "that data set" => |f, a| text(f.record_excess_owner(a));
    one "record_excess_io" "s" 'n' "bytes of one read or write there" => Facts::record_excess_io;
    one "param" "s" 'n' "a module parameter or sysctl as a number" => Facts::param;
    one "param_text" "s" 's' "a module parameter or sysctl as text" => |f, a| text(f.param_text(a));
    two "param_is" "sr" 'b' "a parameter matches" => Facts::param_is;
    one "pool_says" "r" 'b' "zpool status says something that matches" => Facts::pool_says;
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
    none "ogive" "" 'b' "it is an ogive mount that is asked about; always known"
        => |f| Known::Ok(f.is_ogive());
    one "zfs_before" "s" 'b'
        "the installed branch lacks the fix that first came with these releases, or a commit"
        => Facts::zfs_before;
    one "zfs_at_least" "s" 'b' "the installed ZFS is at least this release" => Facts::zfs_at_least;
    one "tells" "s" 'b'
        "an unread line matches all patterns, divided by \" & \", `!` for none; of `words` only"
        => Facts::tells;
    one "said" "r" 'b' "an unread line matches, in any letter case; signs of `words` only"
        => Facts::says;
    one "log" "r" 'b' "a line of the log matches, in any letter case"
        => |f, a| f.log_count(a).map(|count| count > 0.0);
    one "log_count" "r" 'n' "how many lines of the log match" => Facts::log_count;
    one "known" "s" 'b' "a figure, property or parameter of the name was shown; always known"
        => |f, a| Known::Ok(f.is_shown(a));
    one "shown" "s" 'b' "evidence of this kind was shown; always known" => shown;
    unbound "subsystem" "s" 's'
        "functions of these subsystems (\"ddt, checksum/sha256\"), instead of a pattern" => ();
    unbound "role" "s" 's' "threads of these roles (\"read/done\"), instead of a pattern" => ();
    unbound "share" "" 'n' "the CPU that this rule explains, percent of the busy CPU" => ();
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
