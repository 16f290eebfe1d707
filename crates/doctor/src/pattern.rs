//! A constant pattern, compiled at its first use.

use std::ops::Deref;
use std::sync::OnceLock;

use regex::Regex;

/// A pattern of the program itself, so that a fault in it is one of the program.
#[derive(Debug)]
pub(crate) struct Pattern {
    text: &'static str,
    compiled: OnceLock<Regex>,
}

impl Pattern {
    /// The pattern of this text.
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
