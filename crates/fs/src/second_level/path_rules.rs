//! The files that may go to the second level, by their paths.
//!
//! A pattern follows gitignore(5) without its exclamation mark: `*` and `?` match within a name,
//! `**` matches any directories, `[...]` is a class. A pattern with a slash before its end is a
//! path from the source; one without matches a name at any depth. A pattern that matches a
//! directory matches everything in it. One that ends in a slash matches only directories. A file
//! may go there if it matches no exclude pattern, and one include pattern, if there are any.
//!
//! Patterns match bytes: names need not be text.

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};
use std::path::Path;

/// Most patterns of a kind.
const PATTERNS_MAX: usize = 1024;

/// The rules about files that may go to a second level. Without patterns all may.
#[derive(Clone, Debug, Default)]
pub struct PathRules {
    include: Option<GlobSet>,
    exclude: Option<GlobSet>,
}

/// Why a pattern is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathRuleError {
    /// It can match no path.
    #[error("the pattern {pattern:?} names no file: {reason}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// Why.
        reason: String,
    },
    /// The list has too many patterns.
    #[error("more than {PATTERNS_MAX} patterns")]
    Many,
}

impl PathRules {
    /// Rules of patterns.
    ///
    /// # Errors
    /// See [`PathRuleError`].
    pub fn new(include: &[String], exclude: &[String]) -> Result<Self, PathRuleError> {
        Ok(Self { include: set(include)?, exclude: set(exclude)? })
    }

    /// Whether all files may go there.
    pub(crate) fn allow_all(&self) -> bool {
        self.include.is_none() && self.exclude.is_none()
    }

    /// Whether the file with this path, relative to the source, may go there.
    pub(crate) fn allow(&self, path: &Path) -> bool {
        let is_in = |set: &GlobSet| set.is_match(path);
        self.include.as_ref().is_none_or(is_in) && !self.exclude.as_ref().is_some_and(is_in)
    }
}

fn set(patterns: &[String]) -> Result<Option<GlobSet>, PathRuleError> {
    if patterns.is_empty() {
        return Ok(None);
    }
    if patterns.len() > PATTERNS_MAX {
        return Err(PathRuleError::Many);
    }
    let mut set = GlobSetBuilder::new();
    let wrong = |pattern: &String, reason: String| PathRuleError::Pattern {
        pattern: pattern.clone(),
        reason,
    };
    for pattern in patterns {
        let name = pattern.strip_suffix('/').unwrap_or(pattern);
        let name = name.strip_prefix('/').unwrap_or(name);
        if name.is_empty() || name.starts_with('!') || name.split('/').any(|part| part.is_empty()) {
            return Err(wrong(pattern, "give a name, or a path from SRC".to_owned()));
        }
        let anywhere = if pattern.starts_with('/') || name.contains('/') { "" } else { "**/" };
        let itself = (!pattern.ends_with('/')).then(|| format!("{anywhere}{name}"));
        for text in itself.into_iter().chain([format!("{anywhere}{name}/**")]) {
            set.add(glob(&text).map_err(|error| wrong(pattern, error.kind().to_string()))?);
        }
    }
    let set = set.build().map_err(|error| wrong(&patterns.join(" "), error.to_string()))?;
    Ok(Some(set))
}

fn glob(text: &str) -> Result<Glob, globset::Error> {
    GlobBuilder::new(text).literal_separator(true).backslash_escape(true).build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt as _;

    fn rules(include: &[&str], exclude: &[&str]) -> PathRules {
        let owned = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        PathRules::new(&owned(include), &owned(exclude)).unwrap()
    }

    #[test]
    fn a_pattern_means_what_it_means_in_a_gitignore() {
        for (pattern, matched, not) in [
            ("*.key", &["a.key", "deep/er/a.key", "x.key/inside"][..], &["a.keys", "key"][..]),
            ("secret", &["secret", "a/secret", "a/secret/b/c"], &["secrets", "a/secret2"]),
            ("secret/", &["secret/a", "b/secret/a"], &["secret", "b/secret"]),
            ("/top", &["top", "top/a"], &["a/top"]),
            ("a/b", &["a/b", "a/b/c"], &["x/a/b", "a/x/b"]),
            ("a/*.log", &["a/x.log"], &["a/b/x.log", "x.log"]),
            ("a/**/x", &["a/x", "a/b/c/x"], &["x", "b/a/x"]),
            ("**/build", &["build", "a/b/build/o"], &["builds"]),
            ("file[0-9]", &["file1", "d/file7"], &["filex", "file10"]),
            ("a?c", &["abc"], &["a/c", "ac"]),
            ("\\*", &["*"], &["x"]),
        ] {
            let rules = rules(&[], &[pattern]);
            for path in matched {
                assert!(!rules.allow(Path::new(path)), "{pattern} matches {path}");
            }
            for path in not {
                assert!(rules.allow(Path::new(path)), "{pattern} does not match {path}");
            }
        }
    }

    #[test]
    fn an_excluded_path_is_not_included() {
        let rules = rules(&["*.sst", "logs/"], &["tmp/"]);
        for (path, expected) in [
            ("a.sst", true),
            ("logs/today", true),
            ("tmp/a.sst", false),
            ("logs/tmp/x", false),
            ("other", false),
        ] {
            assert_eq!(rules.allow(Path::new(path)), expected, "{path}");
        }
        assert!(!rules.allow_all() && PathRules::default().allow_all());
        assert!(PathRules::default().allow(Path::new("anything")));
    }

    #[test]
    fn names_need_not_be_text() {
        let name = std::ffi::OsStr::from_bytes(b"dir\xff/a\xfe.key");
        assert!(!rules(&[], &["*.key"]).allow(Path::new(name)));
    }

    #[test]
    fn patterns_that_can_match_nothing_are_refused() {
        for wrong in ["", "/", "a//b", "!a", "[", "a/[b"] {
            let refused = PathRules::new(&[], &[wrong.to_owned()]).unwrap_err().to_string();
            assert!(refused.contains("names no file"), "{wrong}: {refused}");
        }
        let many = vec!["x".to_owned(); PATTERNS_MAX + 1];
        assert_eq!(PathRules::new(&many, &[]).unwrap_err(), PathRuleError::Many);
    }
}
