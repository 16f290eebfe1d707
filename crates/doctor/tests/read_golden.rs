//! Every sample below `tests/read_samples` gives exactly the evidence in its golden file.
//!
//! `OGIVE_UPDATE_GOLDEN=1 cargo test -p ogive-doctor --test read_golden` rewrites these files; read
//! the difference before you commit it.

use std::borrow::Borrow;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use ogive_doctor::evidence::{Evidence, Frame};
use ogive_doctor::read;

fn names<F: Borrow<Frame>>(frames: &[F]) -> String {
    let name = |frame: &F| match (&frame.borrow().symbol, &frame.borrow().module) {
        (Some(symbol), Some(module)) => format!("{symbol} [{module}]"),
        (Some(symbol), None) => symbol.clone(),
        (None, module) => format!("? {module:?}"),
    };
    frames.iter().map(name).collect::<Vec<_>>().join(" < ")
}

/// Evidence as lines, one per fact, with the line of its source.
fn describe(evidence: &Evidence) -> String {
    let mut out = String::new();
    let at = |source: &ogive_doctor::evidence::Source| {
        source.line.map_or("-".to_owned(), |line| line.to_string())
    };
    for input in &evidence.inputs {
        let _ = writeln!(
            out,
            "formats {:?} facts {} trouble {:?}",
            input.formats, input.facts, input.trouble
        );
    }
    let host = format!("{:?}", evidence.host);
    for part in host.split("Some(Statement { ").skip(1) {
        let _ = writeln!(out, "host {}", part.split(", source").next().unwrap_or(part));
    }
    describe_cpus(evidence, &mut out);
    for thread in &evidence.threads {
        let _ = writeln!(
            out,
            "{} thread {} {:?} id {:?} kernel {:?} state {:?} cpu {:?} life {:?} time {:?} x{}",
            at(&thread.source),
            thread.name,
            thread.command,
            thread.id,
            thread.kernel,
            thread.state,
            thread.cpu_percent,
            thread.life_percent,
            thread.cpu_time_s,
            thread.count
        );
        if let Some(percent) = thread.system_percent {
            let _ = writeln!(out, "    of it in the kernel {percent}");
        }
        if let Some(percent) = thread.machine_percent {
            let _ = writeln!(out, "    of all CPUs {percent}");
        }
        if let Some(process) = thread.process.filter(|process| Some(*process) != thread.id) {
            let _ = writeln!(out, "    of process {process}");
        }
    }
    for timing in &evidence.timings {
        let _ = writeln!(
            out,
            "{} timing {:?} {} {} {}",
            at(&timing.source),
            timing.command,
            timing.real_s,
            timing.user_s,
            timing.system_s
        );
    }
    describe_profiles(evidence, &mut out);
    describe_rest(evidence, &mut out);
    out
}

fn describe_cpus(evidence: &Evidence, out: &mut String) {
    let at = |source: &ogive_doctor::evidence::Source| {
        source.line.map_or("-".to_owned(), |line| line.to_string())
    };
    for used in &evidence.cpu {
        let _ = writeln!(
            out,
            "{} cpu user {} system {} idle {} iowait {} interrupt {} steal {} since boot {}",
            at(&used.source),
            used.user,
            used.system,
            used.idle,
            used.iowait,
            used.interrupt,
            used.steal,
            used.since_boot
        );
    }
    for one in &evidence.single_cpus {
        let used = &one.used;
        let _ = writeln!(
            out,
            "{} one cpu {} user {} system {} idle {} iowait {} interrupt {} steal {} since boot {}",
            at(&used.source),
            one.name,
            used.user,
            used.system,
            used.idle,
            used.iowait,
            used.interrupt,
            used.steal,
            used.since_boot
        );
    }
}

fn describe_profiles(evidence: &Evidence, out: &mut String) {
    let at = |source: &ogive_doctor::evidence::Source| {
        source.line.map_or("-".to_owned(), |line| line.to_string())
    };
    for profile in &evidence.profiles {
        let _ = writeln!(
            out,
            "profile samples {:?} weighted {} off cpu {}",
            profile.samples, profile.weighted, profile.off_cpu
        );
        for row in &profile.rows {
            let frame = names(std::slice::from_ref(&row.frame));
            let _ = writeln!(
                out,
                "{}   row {:?} {frame} self {:?} total {:?}",
                at(&row.source),
                row.thread,
                row.self_percent,
                row.total_percent
            );
            for chain in &row.chains {
                let _ = writeln!(
                    out,
                    "{}     {:.2}% {}",
                    at(&chain.source),
                    chain.percent,
                    names(&chain.frames)
                );
            }
        }
        for stack in &profile.stacks {
            let _ = writeln!(
                out,
                "{}   stack {:?} {} {}",
                at(&stack.source),
                stack.thread,
                stack.weight,
                names(&stack.frames)
            );
        }
    }
}

fn describe_rest(evidence: &Evidence, out: &mut String) {
    let at = |source: &ogive_doctor::evidence::Source| {
        source.line.map_or("-".to_owned(), |line| line.to_string())
    };
    for stack in &evidence.kernel_stacks {
        let _ = writeln!(
            out,
            "{} place {:?} x{} {}",
            at(&stack.source),
            stack.thread,
            stack.count,
            names(&stack.frames)
        );
    }
    for lock in &evidence.locks {
        let _ = writeln!(
            out,
            "{} lock {} {:?} count {:?} wait {:?} percent {:.1?} callers {}",
            at(&lock.source),
            lock.lock,
            lock.kind,
            lock.count,
            lock.wait_ns,
            lock.percent,
            names(&lock.callers)
        );
    }
    for table in &evidence.tables {
        let _ = writeln!(
            out,
            "table {} {:?} taken {:?} age {:?}",
            table.name, table.scope, table.taken_ns, table.age_s
        );
        for figure in &table.figures {
            let _ = writeln!(out, "{}   {} {:?}", at(&figure.source), figure.name, figure.value);
        }
    }
    for property in &evidence.properties {
        let kind = if property.of_pool { "pool" } else { "dataset" };
        let _ = writeln!(
            out,
            "{} {kind} {} {}={} {:?}",
            at(&property.source),
            property.owner,
            property.name,
            property.value,
            property.origin
        );
    }
    for parameter in &evidence.parameters {
        let _ = writeln!(
            out,
            "{} parameter {}={}",
            at(&parameter.source),
            parameter.name,
            parameter.value
        );
    }
    for line in &evidence.pools {
        let _ =
            writeln!(out, "{} pool {} {}: {}", at(&line.source), line.pool, line.field, line.text);
    }
    for line in &evidence.log {
        let _ = writeln!(out, "{} log {}", at(&line.source), line.value);
    }
    for line in &evidence.not_understood {
        let _ = writeln!(out, "{} not understood: {}", at(&line.source), line.value);
    }
}

#[test]
fn samples_give_the_evidence_in_their_golden_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/read_samples");
    let update = std::env::var_os("OGIVE_UPDATE_GOLDEN").is_some();
    let mut samples: Vec<PathBuf> =
        std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    samples.retain(|path| path.is_file());
    samples.sort();
    assert!(samples.len() >= 40, "samples are missing in {}", folder.display());
    let mut wrong = Vec::new();
    for path in samples {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let mut evidence = Evidence::default();
        read::read_bytes(&mut evidence, &name, &std::fs::read(&path).unwrap());
        read::finish(&mut evidence);
        let found = describe(&evidence);
        let golden = folder.join("expected").join(format!("{name}.evidence"));
        if update {
            std::fs::create_dir_all(golden.parent().unwrap()).unwrap();
            std::fs::write(&golden, &found).unwrap();
        }
        let expected = std::fs::read_to_string(&golden).unwrap_or_default();
        if let Some((at, (expected, found))) =
            expected.lines().zip(found.lines()).enumerate().find(|(_, (a, b))| a != b)
        {
            wrong.push(format!(
                "{}:{}:\n  expected {expected}\n  found    {found}",
                golden.display(),
                at + 1
            ));
        } else if expected.lines().count() != found.lines().count() {
            wrong.push(format!(
                "{}: {} lines expected, {} found",
                golden.display(),
                expected.lines().count(),
                found.lines().count()
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// An unknown line below the output of any tool stays in the evidence, as a line of a log or as one
/// that was not understood.
#[test]
fn no_line_is_dropped_without_a_trace() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/read_samples");
    let mut lost = Vec::new();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if !path.is_file() {
            continue;
        }
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let mut text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
        text.push_str("\nfrobnicated qq 17 ?? zz, 3\n");
        let mut evidence = Evidence::default();
        read::read_bytes(&mut evidence, &name, text.as_bytes());
        read::finish(&mut evidence);
        if !format!("{evidence:?}").contains("frobnicated") {
            lost.push(name);
        }
    }
    assert!(lost.is_empty(), "a line was lost below {lost:?}");
}
