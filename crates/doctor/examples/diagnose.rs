//! Diagnoses each directory or file named, and writes one answer (JSON) a name into a directory:
//! `diagnose OUT INPUT...`; with `-` for OUT the answers are printed as text.

use std::path::Path;
use std::process::ExitCode;

use ogive_doctor::bundle::Loader;
use ogive_doctor::report::{self, Style};
use ogive_doctor::rule::RuleSet;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("diagnose: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let out = arguments.next().ok_or("usage: diagnose OUT INPUT...")?;
    let rules = RuleSet::bundled()?;
    for input in arguments {
        let path = Path::new(&input);
        let mut loader = Loader::new();
        loader.add_path(path)?;
        let diagnosis = ogive_doctor::diagnose(&rules, loader.read().evidence);
        if out == "-" {
            println!("{}", report::text(&diagnosis, Style::default()));
            continue;
        }
        let name = path
            .file_name()
            .map_or_else(|| input.clone(), |name| name.to_string_lossy().into_owned());
        std::fs::create_dir_all(&out)?;
        std::fs::write(
            Path::new(&out).join(format!("{name}.json")),
            format!("{:#}\n", report::json(&diagnosis)),
        )?;
    }
    Ok(())
}
