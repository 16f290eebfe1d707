//! Weights that replace those of the rules' files, to try counted weights.
//!
//! `bench/doctor/learn.py` counts the weight of each sign over labelled cases, one line for each
//! sign, and runs the doctor with it. The key of a sign is its condition, not its place. A changed
//! condition therefore never gets a weight that was counted for another.

use super::{Rule, SignKind};

/// Digits of a key.
const KEY_DIGITS: usize = 8;

/// The counted weight of one sign.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Counted {
    /// Log-odds if it holds.
    pub(super) weight: f64,
    /// Log-odds if it is shown not to hold.
    pub(super) otherwise: f64,
}

/// The key of a sign: FNV-1a of its kind and condition, in hexadecimal digits.
pub fn sign_key(kind: SignKind, when: &str) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in format!("{kind:?} {when}").bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    let mut text = format!("{hash:016x}");
    text.truncate(KEY_DIGITS);
    text
}

/// Reads one line: rule, key and weights. Comments and other lines give nothing.
pub(super) fn line(text: &str) -> Option<(&str, &str, Counted)> {
    let mut words = text.split_whitespace();
    let (rule, key) = (words.next().filter(|word| !word.starts_with('#'))?, words.next()?);
    let mut number = || words.next()?.parse::<f64>().ok().filter(|number| number.is_finite());
    Some((rule, key, Counted { weight: number()?, otherwise: number()? }))
}

impl Rule {
    /// Takes over a counted weight; false if the rule lacks the sign.
    pub(super) fn take_weight(&mut self, key: &str, counted: Counted) -> bool {
        let mut found = false;
        for sign in &mut self.signs {
            if sign_key(sign.kind, sign.when.source()) == key {
                (sign.weight, sign.otherwise) = (counted.weight, counted.otherwise);
                found = true;
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_is_known_by_its_kind_and_condition() {
        let key = sign_key(SignKind::Words, "said(\"slow\")");
        assert_eq!(key.len(), KEY_DIGITS);
        assert_ne!(key, sign_key(SignKind::Words, "said(\"Slow\")"));
        assert_ne!(key, sign_key(SignKind::Counter, "said(\"slow\")"));
    }

    #[test]
    fn a_line_is_a_rule_a_key_and_two_weights() {
        let counted = Counted { weight: 1.25, otherwise: -0.5 };
        assert_eq!(
            line("dedup-ddt 0123abcd 1.25 -0.50 3/4 1/90"),
            Some(("dedup-ddt", "0123abcd", counted))
        );
        for text in ["", "# rule key", "dedup-ddt 0123abcd 1.25", "dedup-ddt 0123abcd NaN 0"] {
            assert_eq!(line(text), None, "{text}");
        }
    }
}
