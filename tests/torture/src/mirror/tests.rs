//! The mirror suite against correct directories, and against some that lie.

use super::*;

struct Ground {
    _directory: tempfile::TempDir,
    plan: Plan,
}

/// A "mount" that is the source itself: the most faithful passthrough there is.
fn ground(seed: u64) -> Ground {
    let directory = tempfile::tempdir().unwrap();
    // Without free space, operations fail that should succeed.
    let room = rustix::fs::statvfs(directory.path()).unwrap();
    let free_bytes = room.f_bavail * room.f_frsize;
    let place = directory.path().display();
    assert!(free_bytes >= 1 << 30, "{place} has {free_bytes} bytes free, and 1 GiB is needed");
    let source = directory.path().join("source");
    let mirror = directory.path().join("mirror");
    std::fs::create_dir(&source).unwrap();
    std::fs::create_dir(&mirror).unwrap();
    let plan = Plan {
        mount: source.clone(),
        source,
        mirror,
        seed,
        operations: 1500,
        threads: 1,
        shared: false,
        behind_permille: 20,
        compare_every: 500,
        file_bytes_max: 300_000,
        permissions_without: 0,
        prober: None,
        log: None,
    };
    Ground { _directory: directory, plan }
}

#[test]
fn a_faithful_directory_passes_and_most_operations_succeed() {
    let ground = ground(42);
    let report = run(&ground.plan).unwrap();
    assert_eq!(report.operations, 1500);
    assert!(report.behind > 0, "{report:?}");
    assert!(report.succeeded > 500, "{report:?}");
    assert!(report.succeeded < report.operations, "errors were made too: {report:?}");
    assert_eq!(report.comparisons, 4);
}

#[test]
fn threads_share_a_directory() {
    let ground = ground(43);
    let plan = Plan { threads: 3, shared: true, operations: 400, ..ground.plan.clone() };
    let report = run(&plan).unwrap();
    assert_eq!(report.comparisons, 1);
    assert!(report.operations > 1000, "{report:?}");
}

#[test]
fn a_log_can_be_replayed() {
    let first = ground(44);
    let log = first.plan.mirror.join("../log");
    let report = run(&Plan { log: Some(log.clone()), ..first.plan.clone() }).unwrap();
    let second = ground(0);
    let again = replay(&second.plan, &PathBuf::from(format!("{}.0", log.display()))).unwrap();
    assert_eq!(again.operations, report.operations);
    assert_eq!(again.succeeded, report.succeeded);
}

/// One flipped byte in the source after the run: the trees no longer agree.
#[test]
fn a_flipped_byte_is_found() {
    let ground = ground(45);
    run(&ground.plan).unwrap();
    let known = look(&ground.plan.source, "");
    let victim = known
        .iter()
        .filter(|(_, kind)| *kind == FileKind::Regular)
        .map(|(path, _)| ground.plan.source.join(path))
        .find(|path| std::fs::metadata(path).is_ok_and(|status| status.len() > 0))
        .unwrap();
    let modified = crate::attributes::modified_of(&victim).unwrap();
    let mut bytes = std::fs::read(&victim).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&victim, bytes).unwrap();
    crate::attributes::restore_modified(&victim, modified).unwrap();
    let plan = &ground.plan;
    let error = compare_trees(&plan.mount, &plan.source, &plan.mirror).unwrap_err();
    assert!(error.to_string().contains("contents"), "{error}");
}

/// The "mount" is a copy that does not follow its source: the first change behind it that is
/// read through it shows stale bytes.
#[test]
fn a_stale_view_is_found() {
    let ground = ground(46);
    let stale = ground.plan.mirror.join("../stale");
    std::fs::create_dir(&stale).unwrap();
    let mut run = Run::new(&Plan { mount: stale.clone(), ..ground.plan.clone() }, 0).unwrap();
    for root in [run.mount.root(), run.mirror.root()] {
        std::fs::write(root.join("file"), b"old bytes").unwrap();
    }
    std::fs::create_dir_all(&run.source).unwrap();
    std::fs::write(run.source.join("file"), b"old bytes").unwrap();
    let change = Step::Behind { path: "file".into(), change: Change::SameSize, seed: 99 };
    let error = run.step(&change).unwrap_err();
    assert!(format!("{error:#}").contains("opened again after SameSize"), "{error:#}");
}

/// A wrong errno is a difference.
#[test]
fn a_wrong_errno_is_found() {
    let ground = ground(47);
    let mut run = Run::new(&ground.plan, 0).unwrap();
    std::fs::create_dir(run.mount.root().join("only-here")).unwrap();
    let make = Operation::MakeDirectory { path: "only-here".into(), permissions: 0o700 };
    let error = run.step(&Step::Both(make)).unwrap_err();
    assert!(error.to_string().contains("errno 17"), "{error}");
}
