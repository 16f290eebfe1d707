//! A value, or the word `auto` for the one that ogive chooses.

use std::fmt;
use std::str::FromStr;

/// A value, or the word `auto` for the one ogive chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Auto<T> {
    /// Let ogive choose.
    Auto,
    /// Exactly this.
    Exactly(T),
}

impl<T> Auto<T> {
    /// The value, if one was given.
    pub(crate) fn exactly(self) -> Option<T> {
        match self {
            Self::Auto => None,
            Self::Exactly(value) => Some(value),
        }
    }
}

impl<T: FromStr> FromStr for Auto<T>
where
    T::Err: fmt::Display,
{
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        text.parse().map(Self::Exactly).map_err(|reason| format!("{reason}, or the word auto"))
    }
}

impl<T: fmt::Display> fmt::Display for Auto<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Exactly(value) => value.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Count;

    #[test]
    fn auto_and_counts() {
        assert_eq!("auto".parse(), Ok(Auto::<Count>::Auto));
        assert_eq!("3".parse(), Ok(Auto::Exactly(Count(3))));
        assert!("0".parse::<Auto<Count>>().is_err());
        assert!("Auto".parse::<Auto<Count>>().is_err());
    }
}
