//! The answer for programs. The schema is described in `docs/doctor.md`; a change that would break
//! a reader raises [`JSON_VERSION`].

use serde_json::{Value, json};

use crate::answers::{Answers, Of, User, Wait};
use crate::diagnose::{Diagnosis, EvidenceLine, Finding};
use crate::evidence::Source;

/// Version of the schema.
pub const JSON_VERSION: u32 = 1;

/// The answer as JSON.
pub fn json(diagnosis: &Diagnosis) -> Value {
    json!({
        "version": JSON_VERSION,
        "verdict": diagnosis.verdict.kind.name(),
        "sentence": diagnosis.verdict.sentence,
        "ask": diagnosis.verdict.ask(),
        "step": diagnosis.verdict.step.as_ref().map(|step| json!({
            "run": step.run, "outcomes": step.outcomes,
        })),
        "answers": answers(&diagnosis.answers),
        "place": diagnosis.verdict.place.as_ref().map(|place| json!({
            "name": place.name, "by": place.by, "percent": place.percent.map(rounded),
        })),
        "running": diagnosis.running.iter().map(|running| json!({
            "text": running.text, "source": source(&running.source),
        })).collect::<Vec<_>>(),
        "findings": diagnosis.findings.iter().map(finding).collect::<Vec<_>>(),
        "considered": diagnosis.considered.iter().filter(|(_, confidence)| *confidence >= 0.01)
            .map(|(id, confidence)| json!({"id": id, "confidence": rounded(*confidence)})).collect::<Vec<_>>(),
        "overview": overview(diagnosis),
        "inputs": diagnosis.inputs.iter().map(|input| json!({
            "name": &*input.name, "formats": input.formats, "facts": input.facts,
            "lines": input.lines, "unread": input.unread, "first_unread": input.first_unread,
            "trouble": input.trouble, "in_part": input.in_part,
        })).collect::<Vec<_>>(),
        "not_understood": diagnosis.not_understood.iter()
            .map(|line| json!({"source": source(&line.source), "text": line.value})).collect::<Vec<_>>(),
        "rule_faults": diagnosis.rule_faults,
    })
}

fn answers(answers: &Answers) -> Value {
    let Answers { cpu, users, zfs } = answers;
    let listed = zfs.listed.filter(|part| part.of == Of::Cpus);
    json!({
        "cpu": {
            "state": cpu.state.name(),
            "waits_for": cpu.waits_for.map(Wait::name),
            "cpus": cpu.cpus,
            "busy_cpus": cpu.busy_cpus().map(rounded),
            "busy_percent": cpu.busy_percent().map(rounded),
            "iowait_percent": cpu.iowait_percent.map(rounded),
            "parts": cpu.parts.iter().map(|(part, percent)| {
                (part.name().to_owned(), json!(rounded(*percent)))
            }).collect::<serde_json::Map<_, _>>(),
            "sentence": cpu.sentence(),
            "sources": sources(&cpu.sources),
        },
        "users": {
            "list": users.list.iter().map(|user| json!({
                "name": user.name, "kind": user.kind.name(), "does": user.does,
                "cpus": part(user, Of::Cpus), "machine_percent": part(user, Of::PercentOfMachine),
                "least_cpus": user.part(Of::Cpus).map(|used| rounded(used.least)),
                "most_cpus": user.part(Of::Cpus).map(|used| rounded(used.most)),
                "samples_percent": part(user, Of::PercentOfBusy),
                "seconds": part(user, Of::Seconds),
                "system_cpus": user.system_cpus.map(rounded),
                "sampled_cpus": user.sampled_cpus.map(rounded),
            })).collect::<Vec<_>>(),
            "over_life": users.over_life(),
            "too_much_cpus": users.too_much_cpus.map(rounded),
            "sentence": users.sentence(),
            "sources": sources(&users.sources),
        },
        "zfs": {
            "among": zfs.among.name(),
            "name": zfs.name,
            "least_cpus": listed.map(|part| rounded(part.least)),
            "most_cpus": listed.map(|part| part.most).filter(|most| most.is_finite()).map(rounded),
            "samples_percent": zfs.sampled.map(|part| [rounded(part.least), rounded(part.most)]),
            "sentence": zfs.sentence(),
            "sources": sources(&zfs.sources),
        },
    })
}

fn overview(diagnosis: &Diagnosis) -> Value {
    let overview = &diagnosis.overview;
    json!({
        "busy_percent": overview.busy_percent,
        "user_percent": overview.user_percent,
        "system_percent": overview.system_percent,
        "iowait_percent": overview.iowait_percent,
        "cpus": overview.cpus,
        "zfs_share_percent": overview.zfs_share_percent,
        "busy_samples": overview.samples,
        "zfs_version": overview.zfs_version,
        "kernel": overview.kernel,
        "looking_percent": overview.looking_percent.map(rounded),
        "consumers": overview.consumers.iter().map(|user| json!({
            "name": user.name, "share_percent": user.share_percent.map(rounded),
            "cpu_percent": user.cpu_percent.map(rounded), "zfs": user.is_zfs, "kernel": user.is_kernel,
            "threads": user.threads.iter().map(|(name, share)| json!({
                "name": name, "share_percent": rounded(*share),
            })).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
        "symbols": overview.symbols.iter().map(|(symbol, module, share)| json!({
            "symbol": symbol, "module": module, "self_percent": rounded(*share),
        })).collect::<Vec<_>>(),
    })
}

fn finding(finding: &Finding) -> Value {
    json!({
        "id": finding.id,
        "family": finding.family,
        "role": finding.role,
        "title": finding.title,
        "verdict": finding.verdict,
        "confidence": rounded(finding.confidence),
        "confidence_word": finding.word.to_string(),
        "hint": finding.is_hint,
        "share_percent": finding.share_percent.map(rounded),
        "evidence": finding.evidence.iter().map(line).collect::<Vec<_>>(),
        "against": finding.against.iter().map(line).collect::<Vec<_>>(),
        "not_known": finding.not_known,
        "ruled_out": finding.ruled_out.iter().map(|out| json!({
            "cause": out.cause, "because": out.because, "sources": sources(&out.sources),
        })).collect::<Vec<_>>(),
        "not_ruled_out": finding.open.iter().map(|open| json!({
            "cause": open.cause, "by": open.by, "ask": open.ask,
        })).collect::<Vec<_>>(),
        "remedy": finding.remedy,
        "versions": {
            "installed": finding.versions.installed,
            "fixed": finding.versions.fixed,
            "has_fix": finding.versions.has_fix,
            "affected": finding.versions.affected,
        },
        "mechanism": finding.mechanism,
        "ask": finding.ask,
        "references": finding.references,
    })
}

fn part(user: &User, of: Of) -> Option<f64> {
    user.part(of).map(|used| rounded(used.middle()))
}

fn line(line: &EvidenceLine) -> Value {
    json!({"text": line.text, "kind": line.kind, "weight": rounded(line.weight), "sources": sources(&line.sources)})
}

fn sources(all: &[Source]) -> Vec<Value> {
    all.iter().map(source).collect()
}

fn source(source: &Source) -> Value {
    json!({"input": &*source.input, "line": source.line})
}

fn rounded(value: f64) -> f64 {
    (value * 10_000.0).round() / 10_000.0
}
