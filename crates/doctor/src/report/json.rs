//! The answer as JSON. The schema is described in `docs/doctor.md`; a change that would break a
//! reader raises [`JSON_VERSION`].

use serde_json::{Value, json};

use crate::answers::{Answers, Of, User, Wait};
use crate::diagnose::{Diagnosis, EvidenceLine, Finding};
use crate::evidence::Source;

/// Version of the schema.
pub const JSON_VERSION: u32 = 1;

/// An object: fields under their own names, and others.
macro_rules! object {
    ($of:expr => $($field:ident),* $(; $($others:tt)*)?) => {
        serde_json::json!({ $(stringify!($field): $of.$field,)* $($($others)*)? })
    };
}
pub(super) use object;

/// The answer as JSON.
pub fn json(diagnosis: &Diagnosis) -> Value {
    let verdict = &diagnosis.verdict;
    let considered = diagnosis.considered.iter().filter(|(_, confidence)| *confidence >= 0.01);
    object!(diagnosis => rule_faults;
        "version": JSON_VERSION,
        "verdict": verdict.kind.name(),
        "sentence": verdict.sentence,
        "ask": verdict.ask(),
        "step": verdict.step.as_ref().map(|step| object!(step => run, outcomes)),
        "answers": answers(&diagnosis.answers),
        "place": verdict.place.as_ref().map(|place| {
            object!(place => name, by; "percent": place.percent.map(rounded))
        }),
        "running": all(&diagnosis.running, |one| object!(one => text; "source": source(&one.source))),
        "findings": all(&diagnosis.findings, finding),
        "considered": considered
            .map(|(id, confidence)| json!({"id": id, "confidence": rounded(*confidence)}))
            .collect::<Vec<_>>(),
        "overview": overview(diagnosis),
        "inputs": all(&diagnosis.inputs, |input| {
            object!(input => formats, facts, lines, unread, first_unread, trouble, in_part;
                "name": &*input.name)
        }),
        "not_understood": all(&diagnosis.not_understood, |line| {
            json!({"source": source(&line.source), "text": line.value})
        }),
    )
}

fn answers(answers: &Answers) -> Value {
    let Answers { cpu, users, zfs } = answers;
    let listed = zfs.listed.filter(|part| part.of == Of::Cpus);
    let parts = cpu.parts.iter();
    let parts = parts.map(|(part, percent)| (part.name().to_owned(), json!(rounded(*percent))));
    json!({
        "cpu": {
            "state": cpu.state.name(),
            "waits_for": cpu.waits_for.map(Wait::name),
            "cpus": cpu.cpus,
            "busy_cpus": cpu.busy_cpus().map(rounded),
            "busy_percent": cpu.busy_percent().map(rounded),
            "iowait_percent": cpu.iowait_percent.map(rounded),
            "parts": parts.collect::<serde_json::Map<_, _>>(),
            "sentence": cpu.sentence(),
            "sources": all(&cpu.sources, source),
        },
        "users": {
            "list": all(&users.list, user),
            "over_life": users.over_life(),
            "too_much_cpus": users.too_much_cpus.map(rounded),
            "sentence": users.sentence(),
            "sources": all(&users.sources, source),
        },
        "zfs": {
            "among": zfs.among.name(),
            "name": zfs.name,
            "least_cpus": listed.map(|part| rounded(part.least)),
            "most_cpus": listed.map(|part| part.most).filter(|most| most.is_finite()).map(rounded),
            "samples_percent": zfs.sampled.map(|part| [rounded(part.least), rounded(part.most)]),
            "sentence": zfs.sentence(),
            "sources": all(&zfs.sources, source),
        },
    })
}

fn user(user: &User) -> Value {
    let part = |of: Of| user.part(of).map(|used| rounded(used.middle()));
    let cpus = user.part(Of::Cpus);
    object!(user => name, does;
        "kind": user.kind.name(),
        "cpus": part(Of::Cpus), "machine_percent": part(Of::PercentOfMachine),
        "least_cpus": cpus.map(|used| rounded(used.least)),
        "most_cpus": cpus.map(|used| rounded(used.most)),
        "samples_percent": part(Of::PercentOfBusy),
        "seconds": part(Of::Seconds),
        "system_cpus": user.system_cpus.map(rounded),
        "sampled_cpus": user.sampled_cpus.map(rounded))
}

fn overview(diagnosis: &Diagnosis) -> Value {
    let overview = &diagnosis.overview;
    object!(overview => busy_percent, user_percent, system_percent, iowait_percent, cpus,
    zfs_share_percent, zfs_version, kernel;
    "busy_samples": overview.samples,
    "looking_percent": overview.looking_percent.map(rounded),
    "consumers": all(&overview.consumers, |user| object!(user => name;
        "share_percent": user.share_percent.map(rounded),
        "cpu_percent": user.cpu_percent.map(rounded),
        "zfs": user.is_zfs, "kernel": user.is_kernel,
        "threads": all(&user.threads, |(name, share)| {
            json!({"name": name, "share_percent": rounded(*share)})
        }))),
    "symbols": all(&overview.symbols, |(symbol, module, share)| {
        json!({"symbol": symbol, "module": module, "self_percent": rounded(*share)})
    }))
}

fn finding(finding: &Finding) -> Value {
    object!(finding => id, family, role, title, verdict, not_known, remedy, mechanism, ask, references;
        "confidence": rounded(finding.confidence),
        "confidence_word": finding.word.to_string(),
        "hint": finding.is_hint,
        "share_percent": finding.share_percent.map(rounded),
        "evidence": all(&finding.evidence, line),
        "against": all(&finding.against, line),
        "ruled_out": all(&finding.ruled_out, |out| {
            object!(out => cause, because; "sources": all(&out.sources, source))
        }),
        "not_ruled_out": all(&finding.open, |open| object!(open => cause, by, ask)),
        "versions": object!(finding.versions => installed, fixed, has_fix, affected))
}

fn line(line: &EvidenceLine) -> Value {
    object!(line => text, kind;
        "weight": rounded(line.weight), "sources": all(&line.sources, source))
}

/// A list, with `value` of each element.
pub(super) fn all<T>(list: &[T], value: impl Fn(&T) -> Value) -> Vec<Value> {
    list.iter().map(value).collect()
}

/// The place of a fact.
pub(super) fn source(source: &Source) -> Value {
    json!({"input": &*source.input, "line": source.line})
}

fn rounded(value: f64) -> f64 {
    (value * 10_000.0).round() / 10_000.0
}
