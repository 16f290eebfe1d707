//! A redacted capture shows no name, and its diagnosis is the same.

use std::io::Read as _;

use ogive_doctor::bundle::{BundleWriter, Loader};
use ogive_doctor::rule::RuleSet;
use ogive_profile::write::Output;
use ogive_profile::{Meta, Mode, Profile, Sample, StackId, WeightUnit};

use super::*;
use crate::samples;

/// A redacted capture must hold none of these.
const SECRET: [&str; 20] = [
    "payroll-db",
    "corp.example",
    "alice",
    "secretpool",
    "ceo-mail",
    "quietpool",
    "salaryd",
    "vault",
    "10.11.12.13",
    "fe80::dead:beef:1",
    "52:54:00:12:34:56",
    "WX1A2B3C4D",
    "compute_bonus",
    "quarterly",
    "/mnt",
    "/export",
    "4c1b7e2a",
    "wormhole",
    "minnie",
    "libpayroll",
];

fn secrets() -> Secrets {
    Secrets {
        hosts: vec!["payroll-db.corp.example".to_owned(), "payroll-db".to_owned()],
        users: vec!["alice".to_owned()],
        mount_points: vec!["/".to_owned(), "/vault/alice".to_owned(), "/mnt/minnie".to_owned()],
    }
}

fn text_files() -> Vec<(String, Vec<u8>)> {
    let arcstats = |hits: u64, snap: u64| {
        format!(
            "13 1 0x01 98 26656 5000000000 {snap}\nname                            type data\n\
             hits                            4    {hits}\nmisses                          4    20\n\
             c                               4    67108864\nsize                            4    67000000\n"
        )
    };
    let files = [
        ("start/proc/spl/kstat/zfs/arcstats", arcstats(1000, 65_000_000_000)),
        ("end/proc/spl/kstat/zfs/arcstats", arcstats(2000, 75_000_000_000)),
        (
            "start/proc/spl/kstat/zfs/secretpool/objset-0x36",
            "31 1 0x01 7 2160 5 6\nname type data\ndataset_name 7 secretpool/ceo-mail\nreads 4 5\n".to_owned(),
        ),
        ("start/proc/spl/kstat/zfs/secretpool/state", "ONLINE\n".to_owned()),
        (
            "start/proc/spl/kstat/zfs/dbgmsg",
            "timestamp message\n1 spa.c:1: secretpool/ceo-mail@quarterly on /dev/disk/by-id/ata-WDC_WX1A2B3C4D-part1\n".to_owned(),
        ),
        (
            "start/thread-stats.txt",
            "2 2 (kthreadd) S 0 0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 0 0 0\n\
             9 9 (z_rd_int) R 2 0 0 0 -1 0 0 0 0 0 7 8 0 0 20 0 1 0 0 0 0\n\
             77 77 (salaryd) S 1 0 0 0 -1 0 0 0 0 0 5 5 0 0 20 0 1 0 0 0 0\n\
             77 78 (worm) hole) S 1 0 0 0 -1 0 0 0 0 0 5 5 0 0 20 0 1 0 0 0 0\n".to_owned(),
        ),
        ("commands/zpool-list.txt", "NAME        SIZE  ALLOC  FRAG  CAP  DEDUP  HEALTH\nsecretpool  1T  500G  10%  50%  1.00x  ONLINE\n".to_owned()),
        ("commands/uname.txt", "Linux payroll-db 6.1.0-18-amd64 #1 SMP x86_64 GNU/Linux\n".to_owned()),
        ("commands/zfs-version.txt", "zfs-2.1.11-1\nzfs-kmod-2.1.11-1\n".to_owned()),
        (
            "commands/zfs-get.txt",
            "NAME                        PROPERTY    VALUE        SOURCE\n\
             secretpool                  encryption  aes-256-ccm  local\n\
             secretpool/ceo-mail         encryption  aes-256-ccm  inherited from secretpool\n\
             secretpool/ceo-mail@quarterly  used  1G  -\n".to_owned(),
        ),
        (
            "commands/zfs-get-busiest.txt",
            "NAME            PROPERTY    VALUE        SOURCE\n\
             quietpool/mail  encryption  aes-256-ccm  local\n".to_owned(),
        ),
        (
            "commands/zpool-status.txt",
            "  pool: secretpool\n state: ONLINE\nconfig:\n\tNAME STATE READ WRITE CKSUM\n\tsecretpool ONLINE 0 0 0\n\
             \t  ata-WDC_WD40EFRX_WX1A2B3C4D  ONLINE 0 0 0\n\t  sda  ONLINE 0 0 0\n\t  4c1b7e2a-1111-2222-3333-444455556666 ONLINE 0 0 0\n".to_owned(),
        ),
        (
            "commands/dmesg.txt",
            "[    1.0] systemd[1]: Hostname set to <payroll-db>.\n\
             [    2.0] NET: Registered, address 10.11.12.13, 52:54:00:12:34:56, fe80::dead:beef:1\n\
             [    3.0] INFO: task salaryd:77 blocked for more than 120 seconds.\n\
             [    4.0] ZFS: Loaded module v0.6.5.11-1 by alice@corp.example from 10.11.12.13\n\
             [    5.0]  txg_wait_synced+0xde/0x130 [zfs]\n\
             [    6.0] audit: exe=/vault/alice/bin/salaryd\n\
             [    7.0] ZFS: cannot import secretpool from /vault/alice/images/disk0, see /home/alice/x\n".to_owned(),
        ),
        ("proc/cmdline", "BOOT_IMAGE=/vmlinuz root=UUID=4c1b7e2a-1111-2222-3333-444455556666 ip=10.11.12.13 init_on_alloc=1\n".to_owned()),
        ("proc/mounts", "payroll-db:/export/minnie /mnt/minnie nfs4 rw,addr=10.11.12.13 0 0\nsecretpool/ceo-mail /vault/alice zfs rw 0 0\n".to_owned()),
        (
            "start/.ogive/mount",
            "{\n  \"mount_point\": \"/mnt/minnie\",\n  \"source\": \"/vault/alice/quarterly\",\n  \"second_level\": {\n    \"devices\": [\n      \"/mnt/wormhole/l2\"\n    ],\n    \"cipher\": \"aes-256-ccm\"\n  },\n  \"record_size_bytes\": 131072\n}\n".to_owned(),
        ),
    ];
    files.into_iter().map(|(name, text)| (name.to_owned(), text.into_bytes())).collect()
}

fn profile() -> Profile {
    let mut profile = Profile::new(Meta {
        host: Some("payroll-db".to_owned()),
        command: Some("/home/alice/bin/perf".to_owned()),
        unit: WeightUnit::Samples,
        notes: vec!["see /home/alice".to_owned()],
        ..Meta::default()
    });
    let mut add = |thread: (i32, &str), frames: &[(&str, &str, Mode)], count: u32| {
        let thread = profile.add_thread(thread.0, thread.0, thread.1);
        let mut stack = StackId::EMPTY;
        for (symbol, module, mode) in frames {
            let (symbol, module) = (profile.intern(symbol), profile.intern(module));
            let frame = profile.add_frame(symbol, module, *mode, 0x1000);
            stack = profile.push_frame(stack, frame);
        }
        let sample = Sample { time_ns: 5, weight: u64::from(count), thread, cpu: 0, stack, count };
        profile.push(sample);
    };
    let read = [
        ("taskq_thread", "[spl]", Mode::Kernel),
        ("zio_decrypt", "[zfs]", Mode::Kernel),
        ("ccm_decrypt_final", "[icp]", Mode::Kernel),
        ("aes_encrypt_block", "[icp]", Mode::Kernel),
    ];
    add((9, "z_rd_int"), &read, 800);
    let own = [
        ("compute_bonus", "/vault/alice/bin/salaryd", Mode::User),
        ("read", "/usr/lib/libc.so.6", Mode::User),
    ];
    add((77, "salaryd"), &own, 100);
    add((78, "worm) hole"), &[("quarterly", "/opt/libpayroll.so", Mode::User)], 50);
    profile.finish();
    profile
}

fn bundle(redacted: bool) -> Vec<(String, Vec<u8>)> {
    let mut bundle = Bundle {
        files: text_files(),
        profile: Some(profile()),
        notes: vec!["/mnt/minnie has no control directory".to_owned()],
        ..Bundle::default()
    };
    if redacted {
        redact(&mut bundle, &secrets());
    }
    let found = bundle.profile.take().unwrap();
    for (name, output) in [("profile.folded", Output::Folded), ("profile.pb.gz", Output::Pprof)] {
        bundle.files.push((name.to_owned(), samples::written(&found, output).unwrap()));
    }
    bundle.files.push(("manifest.json".to_owned(), bundle.notes.join("\n").into_bytes()));
    bundle.files
}

/// Everything that is packed: names and contents, the profile decompressed.
fn bytes_of(files: &[(String, Vec<u8>)]) -> String {
    let mut all = Vec::new();
    for (name, content) in files {
        all.extend(name.bytes());
        all.push(b'\n');
        if name.ends_with(".gz") {
            flate2::read::GzDecoder::new(&content[..]).read_to_end(&mut all).unwrap();
        } else {
            all.extend(content);
        }
    }
    String::from_utf8_lossy(&all).into_owned()
}

#[test]
fn the_bytes_of_a_redacted_capture_contain_no_secret() {
    let open = bytes_of(&bundle(false));
    for secret in SECRET {
        assert!(open.contains(secret), "the test is blind for {secret}");
    }
    let closed = bytes_of(&bundle(true));
    for secret in SECRET {
        let around = closed.find(secret).map(|at| {
            let from = closed.floor_char_boundary(at.saturating_sub(60));
            closed[from..closed.ceil_char_boundary((at + 60).min(closed.len()))].to_owned()
        });
        assert!(around.is_none(), "{secret}: {around:?}");
    }
    for kept in [
        "z_rd_int",
        "aes-256-ccm",
        "ccm_decrypt_final",
        "pool1/dataset",
        "program1",
        "0.6.5.11",
        "init_on_alloc=1",
        "zfs/pool1/objset-0x36",
        "txg_wait_synced+0xde/0x130",
        "sda",
        "6.1.0-18-amd64",
        "libc.so.6",
    ] {
        assert!(closed.contains(kept), "{kept} is gone");
    }
}

#[test]
fn a_redacted_capture_has_the_same_diagnosis() {
    let rules = RuleSet::bundled().unwrap();
    let answer = |files: Vec<(String, Vec<u8>)>| {
        let mut writer = BundleWriter::new(Vec::new(), 1).unwrap();
        for (name, content) in &files {
            writer.add(name, content).unwrap();
        }
        let mut loader = Loader::new();
        loader.add_stream("capture.tar.zst", &writer.finish().unwrap()[..]).unwrap();
        let diagnosis = ogive_doctor::diagnose(&rules, loader.read().evidence);
        let first = &diagnosis.findings[0];
        (diagnosis.verdict.kind, first.id.clone(), (first.confidence * 100.0).round())
    };
    let (open, closed) = (answer(bundle(false)), answer(bundle(true)));
    assert_eq!(open.1, "encryption-ccm");
    assert_eq!(open, closed);
}

#[test]
fn a_pool_may_have_the_name_of_a_counter() {
    let mut bundle = Bundle {
        files: vec![
            ("commands/zpool-list.txt".to_owned(), b"NAME SIZE\nhits 1T\n".to_vec()),
            ("start/proc/spl/kstat/zfs/arcstats".to_owned(), b"hits 4 7\n".to_vec()),
        ],
        ..Bundle::default()
    };
    redact(&mut bundle, &Secrets::default());
    assert_eq!(bundle.files[0].1, b"NAME SIZE\npool1 1T\n");
    assert_eq!(bundle.files[1].1, b"hits 4 7\n");
}
