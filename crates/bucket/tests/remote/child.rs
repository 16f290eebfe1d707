//! Tests that need their own environment: they run again, in a process that has it.

use ogive_bucket::RemoteOptions;
use ogive_demo_store::DemoStore;
use std::ffi::OsStr;
use std::process::Command;

/// Whether this is that process.
pub(crate) fn is_child() -> bool {
    std::env::var_os("CHILD").is_some()
}

/// Runs a test again with these variables, and without any that set a proxy or credentials.
pub(crate) fn again(test: &str, variables: &[(&str, &OsStr)]) {
    let mut run = Command::new(std::env::current_exe().unwrap());
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy().to_ascii_uppercase();
        if text.ends_with("_PROXY") || text.starts_with("AWS_") {
            run.env_remove(name);
        }
    }
    run.args(["--exact", test]).env("CHILD", "").envs(variables.iter().copied());
    let output = run.output().unwrap();
    let output_text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && output_text.contains("1 passed"), "{output_text}");
}

/// Runs a test again as a client of a demo store: with its address and credentials, and with the
/// variables of `with`.
pub(crate) fn again_at(test: &str, store: &DemoStore, with: &[(&str, &str)]) {
    let all = store.variables().into_iter().chain(with.iter().copied());
    let variables: Vec<(&str, &OsStr)> = all.map(|(name, text)| (name, text.as_ref())).collect();
    again(test, &variables);
}

/// The bucket of that store, in the process that runs again.
pub(crate) fn demo_options() -> RemoteOptions {
    RemoteOptions { bucket: "demo".to_owned(), ..RemoteOptions::default() }
}
