//! The weight of the evidence for one rule.
//!
//! The log-odds of signs are added to the rule's prior. The signs of one group repeat one
//! observation, so the group counts once. The kinds of the signs bound the sum: names of threads,
//! settings and words are no proof. A cause with almost none of the CPU does not answer "where did
//! the CPU go". Words never make a cause likely. A cause that is not possible without words is a
//! hint: it is listed, but it has no first line and no remedy. (I. J. Good, "Weight of evidence: a
//! brief survey", 1985.)

use std::collections::BTreeMap;

use crate::evidence::Source;
use crate::expression::{Environment, Expression, ExpressionError};
use crate::facts::{Fallback, sentences};
use crate::rule::{Role, Rule, Sign, SignKind};

/// Confidence from which a finding is certain.
pub const CERTAIN: f64 = 0.90;
/// Confidence from which a finding is likely.
pub const LIKELY: f64 = 0.70;
/// Confidence of the weakest finding. Below it, less than half of the causes were right, over known
/// cases with fewer facts (`bench/doctor/perturb.py --floors`).
pub const POSSIBLE: f64 = 0.45;

/// The highest confidence.
const MOST: f64 = 0.99;
/// Without a symbol, lock, counter or log.
const CAP_WITHOUT_PROOF: f64 = 0.69;
/// Names of threads, and facts that fit them.
const CAP_THREAD_NAMES: f64 = 0.45;
/// Words alone.
const CAP_WORDS: f64 = 0.60;
/// Words in one of several lines: near, but no finding. In a longer text a single line is as often
/// about another thing.
const CAP_PASSING_WORD: f64 = 0.38;
/// Settings and versions: they make a cause possible, but do not show that it happens.
const CAP_SETTINGS: f64 = 0.35;
/// Fewer busy samples than this prove little.
const FEW_SAMPLES: f64 = 100.0;

/// A cause below this percentage of the busy CPU does not answer where the CPU goes.
const SMALL_PERCENT: f64 = 15.0;

/// The weight of a stack without weights, relative to the same place in a profile.
const PRESENCE: f64 = 0.7;

/// A fact for or against a finding.
#[derive(Clone, Debug, PartialEq)]
pub struct EvidenceLine {
    /// The fact as text, with its figures.
    pub text: String,
    /// Its kind.
    pub kind: SignKind,
    /// Log-odds it adds.
    pub weight: f64,
    /// The sources of its figures.
    pub sources: Vec<Source>,
}

/// A weighed rule.
#[derive(Debug)]
pub(super) struct Weighed {
    pub(super) log_odds: f64,
    pub(super) confidence: f64,
    /// Whether it depends on words in unread lines.
    pub(super) is_hint: bool,
    pub(super) share_percent: Option<f64>,
    pub(super) evidence: Vec<EvidenceLine>,
    pub(super) against: Vec<EvidenceLine>,
    pub(super) not_known: Vec<String>,
    /// Its signs that are not shown either way, by place; strongest first.
    pub(super) open: Vec<usize>,
}

/// One sign, evaluated.
struct Seen<'a> {
    sign: &'a Sign,
    /// The sign's own kind, or words if it holds only by unread lines.
    kind: SignKind,
    truth: Option<bool>,
    /// The sources of its facts.
    sources: Vec<Source>,
    /// Whether the matched words are a name.
    is_name: bool,
    /// The functions on stacks without weights, if no profile answers. Otherwise the threads that
    /// were busy over their life, if no list shows current use.
    present: Option<Vec<String>>,
}

impl Seen<'_> {
    /// Log-odds if it holds. A stack without weights shows a place but no share, and CPU over a
    /// life may not be current.
    fn weight(&self) -> f64 {
        if self.present.is_some() { self.sign.weight * PRESENCE } else { self.sign.weight }
    }

    /// Its text, and the sources of the figures. An unknown figure removes its clause.
    fn words(
        &self,
        rule: &Rule,
        environment: &Environment,
    ) -> Result<Option<(String, Vec<Source>)>, ExpressionError> {
        if let Some(names) = &self.present {
            return Ok(Some((presence_text(self.kind, names), Vec::new())));
        }
        let written = self.sign.text.write(environment)?;
        let text = match written.is_whole {
            true => Some(written.text),
            false => self.sign.text.write_known(environment)?,
        };
        let title = || (self.truth == Some(true)).then(|| rule.text.title.clone());
        Ok(text.or_else(title).map(|text| (text, written.sources)))
    }
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
    for sign in &rule.signs {
        let (sign, absent) = look(sign, environment)?;
        if sign.truth.is_none() {
            for what in absent {
                if !not_known.contains(&what) {
                    not_known.push(what);
                }
            }
        }
        seen.push(sign);
    }
    let all: Vec<&Seen<'_>> = seen.iter().collect();
    let shown: Vec<&Seen<'_>> = seen.iter().filter(|one| one.kind != SignKind::Words).collect();
    let (log_odds, confidence) = sureness(rule, &all, share_percent, environment);
    let (_, without_words) = sureness(rule, &shown, share_percent, environment);
    let is_hint = without_words < POSSIBLE;
    let confidence =
        if without_words < LIKELY { confidence.min(CAP_WITHOUT_PROOF) } else { confidence };
    let (mut evidence, mut against) = (Vec::new(), Vec::new());
    for seen in &seen {
        let mut sources = seen.sources.clone();
        let (list, weight) = match seen.truth {
            Some(true) if seen.sign.weight > 0.0 => (&mut evidence, seen.weight()),
            Some(true) => (&mut against, seen.weight()),
            Some(false) if seen.sign.otherwise < 0.0 => (&mut against, seen.sign.otherwise),
            _ => continue,
        };
        // The text may be empty.
        let Some((text, more)) = seen.words(rule, environment)? else { continue };
        for source in more {
            if !sources.contains(&source) {
                sources.push(source);
            }
        }
        let text = if seen.truth == Some(false) { format!("not so: {text}") } else { text };
        list.push(EvidenceLine { text, kind: seen.kind, weight, sources });
    }
    evidence.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    let mut open: Vec<usize> = (0..seen.len())
        .filter(|at| seen[*at].truth.is_none() && seen[*at].sign.weight > 0.0)
        .collect();
    open.sort_by(|a, b| seen[*b].sign.weight.total_cmp(&seen[*a].sign.weight));
    Ok(Some(Weighed {
        log_odds,
        confidence,
        is_hint,
        share_percent,
        evidence,
        against,
        not_known,
        open,
    }))
}

/// Log-odds and confidence from these signs.
fn sureness(
    rule: &Rule,
    seen: &[&Seen<'_>],
    share_percent: Option<f64>,
    environment: &Environment,
) -> (f64, f64) {
    let role = rule.text.role;
    let counted = counted_weights(seen);
    let sum = rule.text.prior + counted.iter().sum::<f64>() + share_penalty(role, share_percent);
    let log_odds = if sum.is_finite() { sum } else { 0.0 };
    let most = cap(role, seen, environment);
    (log_odds, sigmoid(log_odds).min(most).min(MOST))
}

/// The signs of a rule that hold or are shown not to hold, by place; `None` if its gate is closed.
pub(super) fn holding(
    rule: &Rule,
    environment: &Environment,
) -> Result<Option<Vec<Option<bool>>>, ExpressionError> {
    if let Some(gate) = &rule.applies
        && environment.truth(gate)?.0 == Some(false)
    {
        return Ok(None);
    }
    environment.set_share(share_of(rule.share.as_ref(), environment)?);
    let truths: Result<_, _> =
        rule.signs.iter().map(|sign| Ok(look(sign, environment)?.0.truth)).collect();
    truths.map(Some)
}

/// Evaluates a sign, and returns its unknown facts. If no profile or list answers, stacks without
/// weights and CPU over lives do; if nothing was measured, unread lines do.
fn look<'a>(
    sign: &'a Sign,
    environment: &Environment,
) -> Result<(Seen<'a>, Vec<String>), ExpressionError> {
    let (mut truth, mut trace) = environment.truth(&sign.when)?;
    let mut present = None;
    let can_show = matches!(sign.kind, SignKind::Symbol | SignKind::Lock | SignKind::Thread);
    if truth.is_none() && can_show && sign.weight > 0.0 {
        environment.facts().fall_back_to(Fallback::Presence);
        let seen = environment.truth(&sign.when);
        let names = environment.facts().fall_back_to(Fallback::Nothing);
        if let (Some(true), there) = seen?
            && !names.is_empty()
        {
            (truth, trace, present) = (Some(true), there, Some(names));
        }
    }
    let mut kind = sign.kind;
    if truth.is_none() {
        environment.facts().fall_back_to(Fallback::UnreadLines);
        let by_statement = environment.truth(&sign.when);
        environment.facts().fall_back_to(Fallback::Nothing);
        if let (Some(true), by) = by_statement? {
            (truth, trace, kind) = (Some(true), by, SignKind::Words);
        }
    }
    let (sources, is_name) = (trace.sources, trace.is_name);
    Ok((Seen { sign, kind, truth, sources, is_name, present }, trace.absent))
}

/// The line of evidence for functions with an unknown share.
fn presence_text(kind: SignKind, names: &[String]) -> String {
    let names = names.join(", ");
    match kind {
        SignKind::Thread => format!("{names} (not current use)"),
        _ => format!("{names} on a stack (where it was, not how often)"),
    }
}

fn share_of(
    share: Option<&Expression>,
    environment: &Environment,
) -> Result<Option<f64>, ExpressionError> {
    let share = share.map(|expression| environment.number(expression)).transpose()?.flatten();
    Ok(share.map(|percent| percent.clamp(0.0, 100.0)))
}

/// The group of all words for a rule: they are one observation.
const ALL_WORDS: &str = "what unread lines say";

/// The weight of each sign, with groups reduced to their strongest.
fn counted_weights(seen: &[&Seen<'_>]) -> Vec<f64> {
    let mut single = Vec::new();
    let mut groups: BTreeMap<&str, (Option<f64>, f64)> = BTreeMap::new();
    for seen in seen {
        let weight = match seen.truth {
            Some(true) => seen.weight(),
            Some(false) => seen.sign.otherwise,
            None => continue,
        };
        let is_words = seen.sign.kind == SignKind::Words && weight > 0.0;
        let group = if is_words { Some(ALL_WORDS) } else { seen.sign.group.as_deref() };
        match group {
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

/// The penalty of a rule that explains almost no CPU. An accusation needs a larger share, because a
/// small share is often normal work at the same time.
fn share_penalty(role: Role, share_percent: Option<f64>) -> f64 {
    if !matches!(role, Role::Cause | Role::LegitWork | Role::Kernel) {
        return 0.0;
    }
    match share_percent {
        Some(percent) if percent < 2.0 => -4.0,
        Some(percent) if percent < 5.0 => -2.0,
        Some(percent) if percent < SMALL_PERCENT && role != Role::Kernel => -2.0,
        _ => 0.0,
    }
}

/// The most that signs of these kinds can prove.
fn cap(role: Role, seen: &[&Seen<'_>], environment: &Environment) -> f64 {
    let held = |kinds: &[SignKind]| {
        seen.iter().any(|seen| {
            seen.truth == Some(true) && seen.sign.weight > 0.0 && kinds.contains(&seen.kind)
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
    // A setting makes the mechanism possible; a release or a kind of host does even less.
    let config = held(&[SignKind::Config]);
    let settings = config || held(&[SignKind::Host, SignKind::Version]);
    // Where ZFS is not loaded, one line may be the answer: it accuses no part of ZFS.
    let harmless = !matches!(role, Role::Cause | Role::LegitWork | Role::Unknown)
        && (environment.facts().zfs_loaded() == Ok(false)
            || environment.facts().statement_without_zfs().is_some());
    let passing = || !config && !harmless && in_passing(role, seen, environment);
    match (names, words, settings) {
        (true, true, _) | (true, _, true) => CAP_WITHOUT_PROOF,
        (true, false, false) => CAP_THREAD_NAMES,
        (false, true, _) if passing() => CAP_PASSING_WORD,
        (false, true, true) => CAP_WITHOUT_PROOF,
        (false, true, false) => CAP_WORDS,
        (false, false, _) => CAP_SETTINGS,
    }
}

/// Whether the matching words are in passing: one sign in one of several sentences, without a name.
/// An accusation needs more: two signs that match the same line are one observation. A match of a
/// name of a thread, function or parameter is never in passing.
fn in_passing(role: Role, seen: &[&Seen<'_>], environment: &Environment) -> bool {
    let held: Vec<&&Seen<'_>> = seen
        .iter()
        .filter(|seen| {
            seen.truth == Some(true) && seen.sign.weight > 0.0 && seen.kind == SignKind::Words
        })
        .collect();
    // Two signs with different lines are two observations.
    let independent = held.iter().enumerate().any(|(at, one)| {
        held[at + 1..]
            .iter()
            .any(|other| one.sources.iter().any(|m| other.sources.iter().any(|t| t != m)))
    });
    let independent = independent || role != Role::Cause && held.len() > 1;
    let lines = environment.facts().evidence().not_understood.iter();
    let count: usize = lines.map(|line| sentences(&line.value).count()).sum();
    count > 1 && !independent && !held.iter().any(|seen| seen.is_name)
}

fn sigmoid(log_odds: f64) -> f64 {
    1.0 / (1.0 + (-log_odds).exp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::{Evidence, Host, Property, Statement};
    use crate::facts::Facts;

    const RULE: &str = r#"
id = "x"
family = "f"
role = "cause"
title = "t"
verdict = "v"
grade = "A"
ask = ["who"]
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
                os: Some(Statement { value: "linux".to_owned(), source: source() }),
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
            not_understood: vec![Statement { value: words.to_owned(), source: source() }],
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
    fn cpu_over_a_life_counts_for_less_if_high_and_for_nothing_if_low() {
        let rule = RULE.replace("counter", "thread");
        let sign = r#"gauge("arcstats.c") > 5"#;
        let busy = rule.replace(sign, r#"thread_cpu("^z_") > 40.0"#);
        let quiet = rule.replace(sign, r#"thread_cpu("^z_") < 10.0"#);
        let weigh_at = |rule: &str, percent: f64| {
            let mut evidence = Evidence::default();
            let text = format!(
                "USER PID %CPU %MEM VSZ RSS TTY STAT START TIME COMMAND\n\
                 root 101 {percent:.1} 0.0 0 0 ? R 10:00 99:00 [z_unlinked]\n"
            );
            crate::read::read_bytes(&mut evidence, "ps.txt", text.as_bytes());
            crate::read::finish(&mut evidence);
            let environment = Environment::new(Facts::new(evidence));
            weigh(&Rule::parse("x.toml", rule).unwrap(), &environment).unwrap().unwrap()
        };
        let found = weigh_at(&busy, 98.0);
        assert!((found.log_odds - (4.0 * PRESENCE - 1.0)).abs() < 1e-9, "{}", found.log_odds);
        assert!(found.evidence[0].text.starts_with("z_unlinked with 98% of a CPU over its life"));
        for (rule, percent) in [(&busy, 15.0), (&busy, 30.0), (&quiet, 5.0)] {
            assert!(weigh_at(rule, percent).evidence.is_empty(), "{percent}");
        }
    }

    fn weighed_with(rule: &str, text: &str) -> Weighed {
        let mut evidence = Evidence::default();
        crate::read::read_bytes(&mut evidence, "report.txt", text.as_bytes());
        crate::read::finish(&mut evidence);
        let environment = Environment::new(Facts::new(evidence));
        let rule = Rule::parse("x.toml", rule).expect("it is a rule");
        weigh(&rule, &environment).expect("it is a rule").expect("it is a rule")
    }

    #[test]
    fn all_words_of_a_rule_are_one_observation() {
        let rule = RULE.replace("group = \"complaint\"\n", "");
        let found = weighed_with(&rule, "It is slow here.\nThe copy is very slow today.\n");
        assert!((found.log_odds - 2.0).abs() < 1e-9, "{}", found.log_odds);
        assert!(found.is_hint);
    }

    #[test]
    fn a_word_in_passing_names_nothing_unless_it_matches_a_name() {
        let rule = RULE.replace("said(\"very slow\")", "said(\"z_upgrade|very slow\")");
        let alone = "The copy is very slow.\n";
        let passing = "The copy is very slow. We run txg_sync tests on it.\n";
        let name = "The thread z_upgrade runs. Nobody asked for it to run.\n";
        assert!(weighed_with(&rule, alone).confidence >= POSSIBLE);
        assert!(weighed_with(&rule, passing).confidence < POSSIBLE);
        assert!(weighed_with(&rule, name).confidence >= POSSIBLE);
    }

    #[test]
    fn a_text_without_zfs_only_affects_hints() {
        let rule = RULE.replace("prop(\"encryption\", \"ccm\")", "zfs_loaded() == false");
        let rule = rule.replace("prop_value(\\\"encryption\\\", \\\"ccm\\\")", "os()");
        let found = weighed_with(&rule, "zfs module: not loaded\nThe server is busy.\n");
        assert!(found.is_hint && found.evidence.iter().all(|line| line.kind == SignKind::Words));
        assert!((found.log_odds - 3.0).abs() < 1e-9, "{}", found.log_odds);
        assert!(weighed_with(&rule, "The server is busy all day.\n").evidence.is_empty());
    }

    #[test]
    fn settings_alone_are_no_finding_and_words_add_no_certainty() {
        assert!(weighed("aes-256-ccm", "hello").confidence < POSSIBLE);
        let confidence = weighed("aes-256-ccm", "it is very slow").confidence;
        assert!((POSSIBLE..LIKELY).contains(&confidence), "{confidence}");
        assert!(weighed("off", "it is very slow").confidence < POSSIBLE);
    }
}
