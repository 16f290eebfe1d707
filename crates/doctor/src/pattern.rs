//! A constant pattern, compiled at its first use.

use std::ops::Deref;
use std::sync::OnceLock;

use regex::Regex;

/// A pattern that is part of the program; a fault in it is a bug.
#[derive(Debug)]
pub(crate) struct Pattern {
    text: &'static str,
    compiled: OnceLock<Regex>,
}

impl Pattern {
    /// The pattern with this text.
    pub(crate) const fn new(text: &'static str) -> Self {
        Self { text, compiled: OnceLock::new() }
    }
}

impl Deref for Pattern {
    type Target = Regex;

    fn deref(&self) -> &Regex {
        self.compiled.get_or_init(|| Regex::new(self.text).expect("a constant pattern"))
    }
}
