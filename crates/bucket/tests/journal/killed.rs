//! A writing process is killed at any moment: every acknowledged write survives.

use super::seed::{rounds, seed};
use super::{contents, object, object_bytes, open};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

const BASE_BYTES: u64 = 40_000;
const DIRECTORY: &str = "OGIVE_TEST_STAGE";
const SEED: &str = "OGIVE_TEST_SEED";
const THIS: &str = "killed::writes_of_a_killed_process_are_replayed";

/// A change of a file, drawn from a seed.
enum Change {
    Write(u64, Vec<u8>),
    Resize(u64),
    Sync,
    Compact,
}

fn draw(random: &mut fastrand::Rng) -> Change {
    match random.u32(..100) {
        0..70 => {
            let bytes = vec![random.u8(..); random.usize(1..20_000)];
            Change::Write(random.u64(..100_000), bytes)
        }
        70..85 => Change::Resize(random.u64(..100_000)),
        85..98 => Change::Sync,
        _ => Change::Compact,
    }
}

fn apply(file: &mut Vec<u8>, change: Change) {
    match change {
        Change::Write(offset, bytes) => {
            let end = offset as usize + bytes.len();
            file.resize(file.len().max(end), 0);
            file[offset as usize..end].copy_from_slice(&bytes);
        }
        Change::Resize(size) => file.resize(size as usize, 0),
        Change::Sync | Change::Compact => {}
    }
}

/// Writes until killed, and prints a line after each change.
fn write_until_killed(directory: &Path) -> ! {
    let seed = std::env::var(SEED).unwrap().parse().unwrap();
    let mut random = fastrand::Rng::with_seed(seed);
    let opened = open(directory).unwrap();
    let file = opened.journal.stage("k", object(BASE_BYTES)).unwrap();
    let mut out = std::io::stdout();
    writeln!(out, "\nbegun").unwrap();
    loop {
        match draw(&mut random) {
            Change::Write(offset, bytes) => file.write(offset, &bytes).unwrap(),
            Change::Resize(size) => file.resize(size).unwrap(),
            Change::Sync => _ = file.sync().unwrap(),
            Change::Compact => file.compact(true).unwrap(),
        }
        writeln!(out, "done").unwrap();
    }
}

/// A child process, killed and reaped when this is dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn writes_of_a_killed_process_are_replayed() {
    // The child is this test itself, with the directory in its environment.
    if let Some(directory) = std::env::var_os(DIRECTORY) {
        write_until_killed(directory.as_ref());
    }
    let mut random = fastrand::Rng::with_seed(seed());
    for round in 0..rounds(12, 25) {
        let seed = random.u64(..);
        let directory = tempfile::tempdir().unwrap();
        let mut child = Killed(
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", THIS, "--nocapture"])
                .env(DIRECTORY, directory.path())
                .env(SEED, seed.to_string())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap(),
        );
        let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
        lines.find(|line| line.as_ref().is_ok_and(|line| line == "begun")).unwrap().unwrap();
        let wanted = random.usize(..400);
        let mut done = lines.by_ref().take(wanted).filter(Result::is_ok).count();
        drop(child);
        // Lines that it printed before its end, and that were not read yet.
        done += lines.map_while(Result::ok).filter(|line| line == "done").count();

        let opened = open(directory.path()).unwrap();
        let found = contents(&opened.staged[0], &object_bytes(BASE_BYTES));
        let mut changes = fastrand::Rng::with_seed(seed);
        let mut expected = object_bytes(BASE_BYTES);
        (0..done).for_each(|_| apply(&mut expected, draw(&mut changes)));
        let without = expected.clone();
        // The change in progress may be included or not.
        apply(&mut expected, draw(&mut changes));
        assert!(
            found == without || found == expected,
            "round {round}, seed {seed}: the journal differs from the {done} acknowledged changes"
        );
    }
}
