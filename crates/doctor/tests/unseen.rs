//! Known causes in output of tools that the rules' own tests lack, and innocents.
//!
//! These cases are older than the last changes of most rules. Some rules were changed because of
//! them, or because of the variants that `bench/doctor/perturb.py` makes of them. So they only show
//! that nothing broke. `bench/doctor/score.sh` measures answers to reports that no rule was written
//! for, over the check half of the cases.
//!
//! A folder is called `CAUSE[+CAUSE]--how`. One of the causes must come first; for `none` the
//! answer may not name a cause.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use ogive_doctor::bundle::Loader;
use ogive_doctor::diagnose;
use ogive_doctor::rule::{Role, RuleSet};

#[test]
fn causes_are_recognised_in_the_output_of_tools_that_the_rules_do_not_test() {
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
