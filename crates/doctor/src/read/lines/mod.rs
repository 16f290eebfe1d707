//! One engine for tools of which each line stands by itself: a format is a list of shapes.
//!
//! A shape is a pattern whose named groups say where what they match goes:
//!
//! - `scope` is what the table is about, and begins one,
//! - `text_state` is a word, `counter_sum` a figure that only grows,
//! - `cpu_idle` is a part of the use of the CPUs since boot, in percent or in ticks,
//! - `host_cpus` is a fact of the host (`host`), `run_real` one of a command (`timing`),
//! - `parameter_value` is that of a parameter, whose name is `key`,
//! - `parameters` are words `name=value`,
//! - `message` goes to the log, `log` behind the name of the format,
//! - `key` is the name of the figure `value` or `counter_value` beside it, `unit` its unit,
//! - any other name is a figure that is true at the moment.
//!
//! Before a dot stands the table of a figure if it is not the format's own. A shape without names
//! claims its lines and says nothing.
//!
//! Invariants: the first shape that fits reads the line, and one that none fits is given back. What
//! is no figure gives none. Patterns are compiled when the first line is shown to them.

mod engine;
pub(crate) mod formats;
mod host;
mod timing;

pub(crate) use engine::{FORMAT, Format, note, read};
pub(crate) use host::{say, set};
