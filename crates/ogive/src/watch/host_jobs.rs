//! Diagnoses and captures for the live view, as `ogive doctor` and `ogive capture` make them.

use std::time::Duration;

use ogive_doctor::report;
use ogive_doctor::rule::RuleSet;
use ogive_watch::hour_comparison::Earlier;
use ogive_watch::jobs::{Looker, Subject};
use serde_json::Value;

use super::hour_comparison;

/// With the built-in rules.
pub(super) struct Host {
    rules: RuleSet,
}

impl Host {
    pub(super) fn new(rules: RuleSet) -> Self {
        Self { rules }
    }
}

impl Looker for Host {
    fn diagnose(&self, subject: &Subject, duration: Duration) -> Result<Value, String> {
        let look = ogive_capture::look(&subject_of(subject), duration);
        let mut diagnosis = ogive_doctor::diagnose(&self.rules, look.loaded.evidence);
        diagnosis.overview.looking_percent = look.looking_percent;
        let mut answer = report::json(&diagnosis);
        if let Some(members) = answer.as_object_mut() {
            members.insert("notes".to_owned(), look.notes.into());
        }
        Ok(answer)
    }

    fn compare(&self, source: &str, subject: &Subject, earlier: &Earlier) -> Value {
        hour_comparison::compare(&self.rules, source, subject, earlier)
    }

    fn capture(&self, subject: &Subject, duration: Duration) -> Result<Vec<u8>, String> {
        let mut bundle = ogive_capture::take(&subject_of(subject), duration);
        let packed = ogive_capture::pack(&mut bundle, duration, false);
        packed.map_err(|error| format!("{:#}", anyhow::Error::from(error)))
    }
}

fn subject_of(subject: &Subject) -> ogive_capture::Subject {
    match subject {
        Subject::Host => ogive_capture::Subject::Host,
        Subject::Mount(path, _) => ogive_capture::Subject::Mount(path.clone()),
    }
}
