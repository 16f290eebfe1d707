//! What to do where names are missing, for this distribution: which file, which variables, which
//! commands.

use crate::model::Profile;

/// Sentences, most important first; none when nothing important is missing.
pub fn advice(_profile: &Profile) -> Vec<String> {
    Vec::new()
}
