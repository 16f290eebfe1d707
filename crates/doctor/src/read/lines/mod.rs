//! One engine for tools whose lines are independent: a format is a list of shapes.
//!
//! A shape is a pattern; the names of its groups say where their matches go:
//!
//! - `scope` is the subject of a table, and begins one,
//! - `text_state` is a word, `counter_sum` a figure that only grows,
//! - `cpu_idle` is a part of the use of the CPUs since boot, in percent or in ticks,
//! - `host_cpus` is a fact of the host (`host`), `run_real` one of a command (`timing`),
//! - `parameter_value` is the value of a parameter with the name `key`,
//! - `parameters` are words `name=value`,
//! - `message` goes to the log, and `log` too, after the name of the format,
//! - `key` is the name of the figure `value` or `counter_value`, `unit` its unit,
//! - any other name is a momentary figure.
//!
//! A name before a dot is the table of the figure, if it is not the format's own. A shape without
//! groups claims its lines and records nothing.
//!
//! Invariants: the first shape that fits reads the line; a line that fits none is left over. A
//! match that is not a number gives no figure. Patterns are compiled at their first use.

mod engine;
pub(crate) mod formats;
mod host;
mod timing;

pub(crate) use engine::{FORMAT, Format, note, read};
pub(crate) use host::{note_fact, set_once};
