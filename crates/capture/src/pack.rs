//! Writes a capture as one file: the manifest first, then the content, compressed
//! (`docs/capture-format.md`).

use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ogive_doctor::bundle::{BUNDLE_VERSION, BundleWriter};
use ogive_profile::write::Output;
use serde_json::json;

use super::{Bundle, redact, samples};

/// The reason why a capture could not be packed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The profile cannot be encoded.
    #[error("cannot write the profile")]
    Profile(#[source] io::Error),
    /// The archive could not be created, or its manifest could not be added.
    #[error("cannot pack the capture")]
    Archive(#[source] io::Error),
    /// A file could not be added.
    #[error("cannot pack {name}")]
    File {
        /// The file's name inside the capture.
        name: String,
        /// The error.
        source: io::Error,
    },
}

/// Makes the archive of a bundle, with its profile in two formats. With `redacted`, names are
/// replaced first, in the bundle too.
///
/// # Errors
///
/// Errors of the compressor and of the profile's writer. The archive is written to memory only.
pub fn pack(bundle: &mut Bundle, duration: Duration, redacted: bool) -> Result<Vec<u8>, Error> {
    if redacted {
        redact::redact(bundle, &redact::Secrets::of_this_host());
    }
    if let Some(profile) = &bundle.profile {
        for (name, output) in [("profile.folded", Output::Folded), ("profile.pb.gz", Output::Pprof)]
        {
            let written = samples::written(profile, output).map_err(Error::Profile)?;
            bundle.files.push((name.to_owned(), written));
        }
    }
    let manifest = manifest(bundle, duration, redacted);
    let taken_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_secs());
    let mut writer = BundleWriter::new(Vec::new(), taken_s).map_err(Error::Archive)?;
    writer.add("manifest.json", manifest.as_bytes()).map_err(Error::Archive)?;
    for (name, content) in &bundle.files {
        let failed = |source| Error::File { name: name.clone(), source };
        writer.add(name, content).map_err(failed)?;
    }
    writer.finish().map_err(Error::Archive)
}

fn manifest(bundle: &Bundle, duration: Duration, redacted: bool) -> String {
    let files: Vec<_> = bundle
        .files
        .iter()
        .map(|(name, content)| json!({"name": name, "bytes": content.len()}))
        .collect();
    let manifest = json!({
        "format": "ogive capture",
        "version": BUNDLE_VERSION,
        "ogive": env!("CARGO_PKG_VERSION"),
        "seconds": duration.as_secs_f64(),
        "looking_cpu_seconds": bundle.cpu_seconds,
        "root": rustix::process::geteuid().is_root(),
        "redacted": redacted,
        "not_taken": bundle.notes,
        "files": files,
    });
    format!("{manifest:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ogive_doctor::bundle::Loader;

    #[test]
    fn a_packed_capture_is_read_back_and_its_manifest_lists_it() {
        let mut bundle = Bundle {
            files: vec![
                ("start/proc/loadavg".to_owned(), b"1.50 1.25 1.00 2/345 6789\n".to_vec()),
                ("commands/uname.txt".to_owned(), b"Linux h 6.1.0 #1 SMP x86_64\n".to_vec()),
            ],
            notes: vec!["no samples".to_owned()],
            cpu_seconds: Some(0.25),
            ..Bundle::default()
        };
        let manifest = manifest(&bundle, Duration::from_secs(2), false);
        let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
        assert_eq!(manifest["seconds"], 2.0);
        assert_eq!(manifest["looking_cpu_seconds"], 0.25);
        assert_eq!(manifest["not_taken"], json!(["no samples"]));
        assert_eq!(manifest["files"][1], json!({"name": "commands/uname.txt", "bytes": 28}));
        let packed = pack(&mut bundle, Duration::from_secs(2), false).unwrap();
        let mut loader = Loader::new();
        loader.add_stream("capture.tar.zst", &packed[..]).unwrap();
        let inputs = loader.read().evidence.inputs;
        let names: Vec<&str> = inputs.iter().map(|input| &*input.name).collect();
        for name in ["manifest.json", "start/proc/loadavg", "commands/uname.txt"] {
            assert!(names.iter().any(|known| known.ends_with(name)), "{name} in {names:?}");
        }
    }
}
