//! Samples whose stack in user space is not a chain of addresses, but something that has to be
//! unwound elsewhere. They are shown with what they have, and their share is said.

use super::sample::SampleFields;
use crate::model::{Meta, samples_of};

/// How many there are of each kind.
#[derive(Debug, Default)]
pub(super) struct Unwinding {
    samples: u64,
    copied: u64,
    deferred: u64,
}

impl Unwinding {
    /// Counts a sample.
    pub(super) fn add(&mut self, fields: &SampleFields<'_>) {
        self.samples += 1;
        self.copied += u64::from(fields.copied_stack);
        self.deferred += u64::from(fields.is_deferred());
    }

    pub(super) fn note(&self, meta: &mut Meta) {
        if self.copied > 0 {
            meta.note(format!(
                "{} have their user stack as a copy of memory (--call-graph dwarf), which is not \
                 unwound here: what called their functions is missing; \"perf script -i FILE | \
                 ogive profile -\" has it",
                samples_of(self.copied, self.samples)
            ));
        }
        if self.deferred > 0 {
            meta.note(format!(
                "{} have their user stack in a record of its own (--call-graph fp,defer), which is \
                 not joined to them here; \"perf script -i FILE | ogive profile -\" has it",
                samples_of(self.deferred, self.samples)
            ));
        }
    }
}
