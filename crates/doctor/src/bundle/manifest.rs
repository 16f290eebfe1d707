//! The manifest of a capture: the cost of the capture, and the facts that it could not take.

use serde_json::Value;

/// The facts of a manifest that the doctor uses.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Manifest {
    /// The CPU cost of the capture, in percent of one CPU.
    pub(super) looking_percent: Option<f64>,
    /// Notes on missing facts, and how to allow them.
    pub(super) not_taken: Vec<String>,
}

/// Reads an input if it is a manifest.
pub(super) fn read(name: &str, bytes: &[u8]) -> Option<Manifest> {
    let is_named = name.rsplit('/').next() == Some("manifest.json");
    let value: Value = serde_json::from_slice(Some(bytes).filter(|_| is_named)?).ok()?;
    (value["format"] == "ogive capture").then(|| {
        let part = value["looking_cpu_seconds"].as_f64().zip(value["seconds"].as_f64());
        let part = part.filter(|(_, seconds)| *seconds > 0.0);
        let notes = value["not_taken"].as_array().into_iter().flatten();
        Manifest {
            looking_percent: part.map(|(spent, seconds)| spent * 100.0 / seconds),
            not_taken: notes.filter_map(|note| Some(note.as_str()?.to_owned())).collect(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_is_recognised_by_its_name_and_its_format() {
        let text = br#"{"files": [], "format": "ogive capture", "looking_cpu_seconds": 0.5,
            "not_taken": ["no samples"], "seconds": 10.0}"#;
        let manifest = read("start/../manifest.json", text);
        let expected =
            Manifest { looking_percent: Some(5.0), not_taken: vec!["no samples".to_owned()] };
        assert_eq!(manifest, Some(expected));
        assert_eq!(read("other.json", text), None);
        assert_eq!(read("manifest.json", b"{\"name\": \"a page\"}"), None);
        assert_eq!(read("manifest.json", b"\xff"), None);
    }
}
