//! Known causes in other tools' output than the rules' own tests have, and innocents. They were
//! written before most rules were changed last. Some rules were changed after them, and after
//! variants of them that `bench/doctor/perturb.py` makes. So they show that nothing broke. What the
//! doctor makes of reports that no rule was written after is measured by `bench/doctor/score.sh`
//! over the half of the cases that is for checking.
//! A folder is called `CAUSE[+CAUSE]--how`; one of the causes must come first, and for `none` no
//! cause may be named at all.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use ogive_doctor::bundle::Loader;
use ogive_doctor::diagnose;
use ogive_doctor::rule::{Role, RuleSet};

#[test]
fn causes_are_recognised_in_other_tools_outputs_than_those_of_the_rules() {
    let rules = RuleSet::bundled().expect("the bundled rules compile");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/unseen");
    let mut faults = BTreeMap::new();
    let mut cases = 0;
    for case in fs::read_dir(folder).expect("the cases are there") {
        let path = case.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let (causes, _) = name.split_once("--").expect("CAUSE--how");
        let mut loader = Loader::new();
        loader.add_path(&path).expect("a readable case");
        let diagnosis = diagnose(&rules, loader.read().evidence);
        cases += 1;
        let first = diagnosis.findings.first();
        let right = match causes {
            "none" => first.is_none_or(|finding| finding.role != Role::Cause),
            _ => first.is_some_and(|finding| causes.split('+').any(|cause| cause == finding.id)),
        };
        if !right {
            let found: Vec<String> = diagnosis
                .findings
                .iter()
                .map(|finding| format!("{} {:.2}", finding.id, finding.confidence))
                .collect();
            faults.insert(name, found.join(", "));
        }
    }
    assert!(cases >= 20, "{cases}");
    assert!(faults.is_empty(), "{faults:#?}");
}
