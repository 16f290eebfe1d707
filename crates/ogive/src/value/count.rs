//! A number of threads or things, at least one.

use std::fmt;
use std::str::FromStr;

/// A number of threads or things, at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Count(pub(crate) u64);

impl FromStr for Count {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(0) | Err(_) => Err("give a whole number of at least 1".to_owned()),
            Ok(number) => Ok(Self(number)),
        }
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
