//! The weight of the evidence for one rule.
//!
//! Log-odds are added, starting from the rule's prior; signs of one group say the same and count
//! once. What the sum may amount to is bounded by what kind of signs it stands on: names of threads,
//! settings and words are no proof, and a cause that can be shown to take next to no CPU is no
//! answer to "where did the CPU go". (I. J. Good, "Weight of evidence: a brief survey", 1985.)

use std::collections::BTreeMap;

use super::finding::EvidenceLine;
use crate::expression::{Environment, Expression, ExpressionError};
use crate::rule::{Role, Rule, Sign, SignKind};

/// Confidence from which a finding is certain.
pub const CERTAIN: f64 = 0.90;
/// Confidence from which a finding is likely.
pub const LIKELY: f64 = 0.70;
/// Confidence from which there is a finding at all.
pub const POSSIBLE: f64 = 0.40;

/// Nobody is surer than this.
const MOST: f64 = 0.99;
/// Without a symbol, lock, counter or log.
const CAP_WITHOUT_PROOF: f64 = 0.69;
/// Names of threads, and what fits to them.
const CAP_THREAD_NAMES: f64 = 0.45;
/// Words alone.
const CAP_WORDS: f64 = 0.60;
/// Settings and versions: they make it possible, they do not show that it happens.
const CAP_SETTINGS: f64 = 0.35;
/// Fewer busy samples than this prove little.
const FEW_SAMPLES: f64 = 60.0;

/// A weighed rule.
#[derive(Debug)]
pub(super) struct Weighed {
    pub(super) log_odds: f64,
    pub(super) confidence: f64,
    pub(super) share_percent: Option<f64>,
    pub(super) evidence: Vec<EvidenceLine>,
    pub(super) against: Vec<EvidenceLine>,
    pub(super) not_known: Vec<String>,
}

/// One sign, evaluated.
struct Seen<'a> {
    sign: &'a Sign,
    truth: Option<bool>,
}

/// Weighs a rule; `None` if its gate is closed.
pub(super) fn weigh(
    rule: &Rule,
    environment: &Environment,
) -> Result<Option<Weighed>, ExpressionError> {
    if let Some(gate) = &rule.applies
        && environment.truth(gate)?.0 == Some(false)
    {
        return Ok(None);
    }
    let share_percent = share_of(rule.share.as_ref(), environment)?;
    environment.set_share(share_percent);
    let mut not_known = Vec::new();
    let mut seen = Vec::new();
    let mut sources = Vec::new();
    for sign in &rule.signs {
        let (truth, trace) = environment.truth(&sign.when)?;
        if truth.is_none() {
            for what in trace.absent {
                if !not_known.contains(&what) {
                    not_known.push(what);
                }
            }
        }
        sources.push(trace.sources);
        seen.push(Seen { sign, truth });
    }
    let counted = counted_weights(&seen);
    let mut log_odds = rule.text.prior
        + counted.iter().sum::<f64>()
        + share_penalty(rule.text.role, share_percent);
    if !log_odds.is_finite() {
        log_odds = 0.0;
    }
    let confidence = sigmoid(log_odds).min(cap(&seen, environment)).min(MOST);
    let (mut evidence, mut against) = (Vec::new(), Vec::new());
    for (seen, mut sources) in seen.iter().zip(sources) {
        let (list, weight) = match seen.truth {
            Some(true) if seen.sign.weight > 0.0 => (&mut evidence, seen.sign.weight),
            Some(true) => (&mut against, seen.sign.weight),
            Some(false) if seen.sign.otherwise < 0.0 => (&mut against, seen.sign.otherwise),
            _ => continue,
        };
        let (text, more) = seen.sign.text.write(environment)?;
        for source in more {
            if !sources.contains(&source) {
                sources.push(source);
            }
        }
        let text = if seen.truth == Some(false) { format!("not so: {text}") } else { text };
        list.push(EvidenceLine { text, kind: seen.sign.kind, weight, sources });
    }
    evidence.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    Ok(Some(Weighed { log_odds, confidence, share_percent, evidence, against, not_known }))
}

fn share_of(
    share: Option<&Expression>,
    environment: &Environment,
) -> Result<Option<f64>, ExpressionError> {
    let share = share.map(|expression| environment.number(expression)).transpose()?.flatten();
    Ok(share.map(|percent| percent.clamp(0.0, 100.0)))
}

/// What each sign counts, groups reduced to their strongest.
fn counted_weights(seen: &[Seen<'_>]) -> Vec<f64> {
    let mut single = Vec::new();
    let mut groups: BTreeMap<&str, (Option<f64>, f64)> = BTreeMap::new();
    for seen in seen {
        let weight = match seen.truth {
            Some(true) => seen.sign.weight,
            Some(false) => seen.sign.otherwise,
            None => continue,
        };
        match &seen.sign.group {
            None => single.push(weight),
            Some(group) => {
                let entry = groups.entry(group).or_insert((None, 0.0));
                if seen.truth == Some(true) {
                    entry.0 = Some(entry.0.map_or(weight, |known| f64::max(known, weight)));
                } else {
                    entry.1 = f64::min(entry.1, weight);
                }
            }
        }
    }
    single.extend(groups.into_values().map(|(held, missed)| held.unwrap_or(missed)));
    single
}

/// What a rule costs that explains (next to) no CPU.
fn share_penalty(role: Role, share_percent: Option<f64>) -> f64 {
    if !matches!(role, Role::Cause | Role::LegitWork | Role::Kernel) {
        return 0.0;
    }
    match share_percent {
        Some(percent) if percent < 2.0 => -4.0,
        Some(percent) if percent < 5.0 => -2.0,
        _ => 0.0,
    }
}

/// The most that signs of these kinds can prove.
fn cap(seen: &[Seen<'_>], environment: &Environment) -> f64 {
    let held = |kinds: &[SignKind]| {
        seen.iter().any(|seen| {
            seen.truth == Some(true) && seen.sign.weight > 0.0 && kinds.contains(&seen.sign.kind)
        })
    };
    let measured = held(&[SignKind::Lock, SignKind::Counter, SignKind::Log]);
    if measured {
        return MOST;
    }
    if held(&[SignKind::Symbol]) {
        let few = environment.facts().profile_samples().is_ok_and(|samples| samples < FEW_SAMPLES);
        return if few { CAP_WITHOUT_PROOF } else { MOST };
    }
    let (names, words) = (held(&[SignKind::Thread]), held(&[SignKind::Words]));
    let settings = held(&[SignKind::Config, SignKind::Host, SignKind::Version]);
    match (names, words, settings) {
        (true, true, _) | (true, _, true) => CAP_WITHOUT_PROOF,
        (true, false, false) => CAP_THREAD_NAMES,
        (false, true, true) => CAP_WITHOUT_PROOF,
        (false, true, false) => CAP_WORDS,
        (false, false, _) => CAP_SETTINGS,
    }
}

fn sigmoid(log_odds: f64) -> f64 {
    1.0 / (1.0 + (-log_odds).exp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::{Evidence, Host, Property, Remark, Said, Source};
    use crate::facts::Facts;

    const RULE: &str = r#"
id = "x"
family = "f"
role = "cause"
title = "t"
verdict = "v"
grade = "A"
ask = "true"
prior = -1.0
[[signs]]
kind = "config"
when = 'prop("encryption", "ccm")'
weight = 4.0
otherwise = -4.0
text = "encryption is {prop_value(\"encryption\", \"ccm\")}"
[[signs]]
kind = "words"
when = 'said("slow")'
weight = 2.0
group = "complaint"
text = "it is slow"
[[signs]]
kind = "words"
when = 'said("very slow")'
weight = 3.0
group = "complaint"
text = "it is very slow"
[[signs]]
kind = "counter"
when = 'gauge("arcstats.c") > 5'
weight = 4.0
text = "c"
[remedy]
"#;

    fn source() -> Source {
        Source { input: "a".into(), line: Some(1) }
    }

    fn weighed(value: &str, words: &str) -> Weighed {
        let evidence = Evidence {
            host: Host {
                os: Some(Said { value: "linux".to_owned(), source: source() }),
                ..Host::default()
            },
            properties: vec![Property {
                owner: "tank".to_owned(),
                of_pool: false,
                name: "encryption".to_owned(),
                value: value.to_owned(),
                origin: None,
                source: source(),
            }],
            remarks: vec![Remark { key: None, text: words.to_owned(), source: source() }],
            ..Evidence::default()
        };
        let environment = Environment::new(Facts::new(evidence));
        weigh(&Rule::parse("x.toml", RULE).expect("it is a rule"), &environment)
            .expect("it is a rule")
            .expect("it is a rule")
    }

    #[test]
    fn signs_of_a_group_count_once_and_what_is_missing_counts_neither_way() {
        let both = weighed("aes-256-ccm", "It is VERY SLOW");
        assert!((both.log_odds - 6.0).abs() < 1e-9, "{}", both.log_odds);
        assert_eq!(both.not_known, ["arcstats.c"]);
        assert_eq!(both.evidence.len(), 3);
        assert_eq!(both.evidence[0].sources, [source()]);
    }

    #[test]
    fn settings_alone_are_no_finding_and_words_do_not_make_it_certain() {
        assert!(weighed("aes-256-ccm", "hello").confidence < POSSIBLE);
        let told = weighed("aes-256-ccm", "very slow").confidence;
        assert!((POSSIBLE..LIKELY).contains(&told), "{told}");
        assert!(weighed("off", "very slow").confidence < POSSIBLE);
    }
}
