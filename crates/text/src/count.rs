//! Counts with their noun.

use std::fmt::Display;

/// `1 file`, `2 files`: a count and `one` or `many`. The words may have the verb (`file is`, `files
/// are`).
pub fn counted<N: Display + PartialEq + From<u8>>(count: N, one: &str, many: &str) -> String {
    let words = if count == N::from(1) { one } else { many };
    format!("{count} {words}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular_and_none_is_not() {
        let files = [0_usize, 1, 2].map(|count| counted(count, "file is", "files are"));
        assert_eq!(files, ["0 files are", "1 file is", "2 files are"]);
        assert_eq!(counted(1_u64, "read", "reads"), "1 read");
    }
}
