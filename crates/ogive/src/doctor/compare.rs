//! `ogive doctor --compare`: two hosts, or two times of one, side by side.

use std::path::Path;

use anyhow::Result;
use ogive_doctor::bundle::Loader;
use ogive_doctor::compare::{self, Outcome};
use ogive_doctor::evidence::Evidence;
use ogive_doctor::report;
use ogive_doctor::rule::RuleSet;

use super::args::DoctorArgs;
use super::{print, style};
use crate::exit::{self, Refusal};

/// Compares the two inputs.
pub(super) fn run(rules: &RuleSet, args: &DoctorArgs) -> Result<u8> {
    let [healthy, sick] = args.paths.as_slice() else {
        let message = format!("--compare takes two paths, not {}", args.paths.len());
        let hint = "name the healthy one first: --compare HEALTHY SICK";
        return Err(Refusal::new(exit::USAGE, message).hint(hint).into());
    };
    let (healthy_name, sick_name) = names(healthy, sick);
    let comparison =
        compare::compare(rules, (&healthy_name, load(healthy)?), (&sick_name, load(sick)?));
    if args.json {
        print(&format!("{:#}\n", report::comparison_json(&comparison)))?;
    } else {
        print(&report::comparison(&comparison, args.long, style()))?;
    }
    Ok(match comparison.outcome {
        Outcome::Cause => exit::CAUSE_FOUND,
        Outcome::MoreWork | Outcome::Program => exit::SUCCESS,
        Outcome::Place => exit::CAUSE_OPEN,
        Outcome::Nothing | Outcome::Insufficient => exit::EVIDENCE,
    })
}

fn load(path: &Path) -> Result<Evidence> {
    let mut loader = Loader::new();
    loader.add_path(path).map_err(|error| Refusal::new(exit::FAILURE, error.to_string()))?;
    Ok(loader.read().evidence)
}

/// The names of the two: their file names, or their whole paths if the file names are equal.
fn names(healthy: &Path, sick: &Path) -> (String, String) {
    let short = |path: &Path| {
        path.file_name()
            .map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
    };
    let (first, second) = (short(healthy), short(sick));
    if first == second {
        return (healthy.display().to_string(), sick.display().to_string());
    }
    (first, second)
}
