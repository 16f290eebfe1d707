//! What people and logs say.

use super::{Facts, Known, absent};
use crate::evidence::{Remark, Said};

impl Facts {
    /// Whether a person wrote something that matches; letter case does not count.
    pub fn says(&self, text: &str) -> Known<bool> {
        let pattern = self.prose_pattern(text)?;
        let remarks = &self.evidence().remarks;
        if remarks.is_empty() {
            return absent("a description of what happens");
        }
        let hit = remarks.iter().find(|remark: &&Remark| {
            pattern.is_match(&remark.text)
                || remark
                    .key
                    .as_deref()
                    .is_some_and(|key| pattern.is_match(&format!("{key}: {}", remark.text)))
        });
        if let Some(remark) = hit {
            self.used(&remark.source);
        }
        Ok(hit.is_some())
    }

    /// What a person wrote under a key.
    pub fn note(&self, key: &str) -> Known<String> {
        let hit = self.evidence().remarks.iter().find(|remark| remark.key.as_deref() == Some(key));
        match hit {
            Some(remark) => {
                self.used(&remark.source);
                Ok(remark.text.clone())
            }
            None => absent(format!("a note \"{key}: ...\"")),
        }
    }

    /// A number out of what a person wrote: the first group of the pattern; `1,5` and `3 million` are understood.
    pub fn said_number(&self, text: &str) -> Known<f64> {
        let pattern = self.prose_pattern(text)?;
        for remark in &self.evidence().remarks {
            let group = pattern
                .captures(&remark.text)
                .and_then(|groups| groups.get(1).map(|group| group.as_str().to_owned()));
            if let Some(number) = group.and_then(|group| super::settings::quantity(&group)) {
                self.used(&remark.source);
                return Ok(number);
            }
        }
        absent("such a figure in the description")
    }

    /// How many lines of the kernel's or ZFS's log match.
    pub fn log_count(&self, text: &str) -> Known<f64> {
        let pattern = self.prose_pattern(text)?;
        let log = &self.evidence().log;
        if log.is_empty() {
            return absent("the kernel log (dmesg)");
        }
        let mut count = 0_u32;
        for line in log.iter().filter(|line: &&Said<String>| pattern.is_match(&line.value)) {
            if count == 0 {
                self.used(&line.source);
            }
            count += 1;
        }
        Ok(f64::from(count))
    }
}
