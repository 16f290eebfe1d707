//! Diagnoses each named directory or file, and writes one answer (JSON) per name into a directory:
//! `diagnose [--signs | --weights DIRECTORY] [--rules DIRECTORY] OUT INPUT...`.
//!
//! With `-` for OUT, answers are printed as text. Instead of an answer, `--signs` writes which
//! signs of the rules hold, and the rules themselves to `rules.json`. `--weights` weighs each input
//! by `DIRECTORY/<name>.txt`. Both are for `bench/doctor/learn.py`.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ogive_doctor::bundle::Loader;
use ogive_doctor::diagnose::signs_held;
use ogive_doctor::evidence::Evidence;
use ogive_doctor::report::{self, Style};
use ogive_doctor::rule::{RuleSet, sign_key};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("diagnose: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let usage = "usage: diagnose [--signs | --weights DIRECTORY] [--rules DIRECTORY] OUT INPUT...";
    let mut arguments = std::env::args().skip(1).peekable();
    let signs = arguments.next_if_eq("--signs").is_some();
    let mut weights = None;
    if arguments.next_if_eq("--weights").is_some() {
        weights = Some(PathBuf::from(arguments.next().ok_or(usage)?));
    }
    let further = arguments.next_if_eq("--rules").and_then(|_| arguments.next());
    let out = arguments.next().ok_or(usage)?;
    let mut rules = RuleSet::bundled()?;
    if let Some(directory) = further {
        rules.add_directory(Path::new(&directory))?;
    }
    let folder = Path::new(&out);
    if out != "-" {
        std::fs::create_dir_all(folder)?;
    }
    if signs {
        // Counting begins with the weights in the rules' files.
        std::fs::write(folder.join("rules.json"), format!("{:#}\n", written(&rules)))?;
    }
    for input in arguments {
        let path = Path::new(&input);
        let mut loader = Loader::new();
        loader.add_path(path)?;
        let evidence = loader.read().evidence;
        let name = path
            .file_name()
            .map_or_else(|| input.clone(), |name| name.to_string_lossy().into_owned());
        let file = folder.join(format!("{name}.json"));
        if signs {
            std::fs::write(file, format!("{:#}\n", held(&rules, evidence)))?;
            continue;
        }
        if let Some(weights) = &weights {
            let text = std::fs::read_to_string(weights.join(format!("{name}.txt")))?;
            if let Some(stale) = rules.take_weights(&text).first() {
                return Err(format!("{name}.txt: there is no sign {stale}").into());
            }
        }
        let diagnosis = ogive_doctor::diagnose(&rules, evidence);
        if out == "-" {
            println!("{}", report::text(&diagnosis, Style::default()));
            continue;
        }
        std::fs::write(file, format!("{:#}\n", report::json(&diagnosis)))?;
    }
    Ok(())
}

/// Every sign as written in its rule's file, by rule and key.
fn written(rules: &RuleSet) -> serde_json::Value {
    let mut all = BTreeMap::new();
    for rule in rules.iter() {
        let signs: BTreeMap<_, _> = rule
            .text
            .signs
            .iter()
            .map(|sign| (sign_key(sign.kind, &sign.when), serde_json::json!(sign)))
            .collect();
        all.insert(rule.text.id.clone(), signs);
    }
    serde_json::json!(all)
}

/// Whether each sign holds, by rule and key; signs with an unknown answer are omitted.
fn held(rules: &RuleSet, evidence: Evidence) -> serde_json::Value {
    let mut all: BTreeMap<String, BTreeMap<String, bool>> = BTreeMap::new();
    for (id, holds) in signs_held(rules, evidence) {
        let Some(rule) = rules.get(&id) else { continue };
        let own = all.entry(id).or_default();
        for (sign, holds) in rule.text.signs.iter().zip(holds) {
            if let Some(holds) = holds {
                own.insert(sign_key(sign.kind, &sign.when), holds);
            }
        }
    }
    serde_json::json!(all)
}
