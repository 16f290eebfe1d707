//! Many hosts at once: the findings of each, and the facts that ill hosts share.

use std::io::Write as _;

use ogive_doctor::bundle::{BundleWriter, Loader, is_capture};
use ogive_doctor::diagnose::VerdictKind;
use ogive_doctor::fleet::{Fleet, Host, MIN_FOR_LIFT, Unread};
use ogive_doctor::report::{self, Style};
use ogive_doctor::rule::RuleSet;

fn host(rules: &RuleSet, name: &str, ill: bool, kernel: &str) -> Host {
    let cipher = if ill { "aes-256-ccm" } else { "aes-256-gcm" };
    let profile = if ill {
        "z_rd_int;kthread;zio_execute;ccm_mode_decrypt_contiguous_blocks;aes_encrypt_block 900\n\
         cat;read;zfs_read;copy_to_user 100\n"
    } else {
        "md5sum;main;md5_process_block 900\ncat;read;zfs_read;copy_to_user 50\n"
    };
    let files = [
        ("profile.folded", profile.to_owned()),
        ("zfs-get.txt", format!("NAME  PROPERTY  VALUE  SOURCE\ntank  encryption  {cipher}  -\n")),
        ("uname.txt", format!("Linux {name} {kernel} #1 SMP x86_64 GNU/Linux\n")),
        ("zfs-version.txt", "zfs-2.1.11-1\nzfs-kmod-2.1.11-1\n".to_owned()),
    ];
    let mut loader = Loader::new();
    for (name, content) in files {
        loader.add_bytes(name, content.into_bytes());
    }
    Host::diagnosed(rules, name, loader.read().evidence)
}

fn fleet(ill: usize, well: usize) -> Fleet {
    let rules = RuleSet::bundled().expect("they compile");
    let mut hosts = Vec::new();
    for at in 0..ill {
        hosts.push(host(&rules, &format!("ill-{at}"), true, "5.15.0-91-generic"));
    }
    for at in 0..well {
        hosts.push(host(&rules, &format!("well-{at}"), false, "6.1.0-18-amd64"));
    }
    let unread = Unread { name: "<b>broken".to_owned(), reason: "damaged & cut".to_owned() };
    Fleet::new(hosts, vec![unread])
}

#[test]
fn ill_hosts_come_first_with_the_facts_that_only_they_share() {
    let fleet = fleet(MIN_FOR_LIFT, MIN_FOR_LIFT + 1);
    let worst = &fleet.groups[0];
    assert_eq!((worst.id.as_str(), worst.verdict), ("encryption-ccm", VerdictKind::Cause));
    assert_eq!((fleet.ill(), worst.hosts.len()), (MIN_FOR_LIFT, MIN_FOR_LIFT));
    let first = worst.common.first().expect("they have something in common");
    // Kernel and cipher differ on the same hosts, so one row represents both.
    assert_eq!((first.ill, first.others), ((5, 5), (0, 6)), "{worst:?}");
    assert_eq!((first.is.name.as_str(), first.alike), ("kernel", 1), "{worst:?}");
    let lift = first.lift.expect("there are hosts enough");
    assert!((lift - 11.0 / 5.0).abs() < 0.01, "{lift}");
    // A fact of all hosts is not listed.
    assert!(worst.common.iter().all(|row| row.is.name != "version of ZFS"), "{worst:?}");
    let sentence = fleet.sentence();
    assert!(
        sentence.starts_with("5 of 11 hosts with a problem, worst encryption-ccm"),
        "{sentence}"
    );
    assert!(sentence.contains("1 bundle could not be read"), "{sentence}");
}

#[test]
fn three_hosts_get_counts_and_no_statistics() {
    let fleet = fleet(1, 2);
    let worst = &fleet.groups[0];
    assert!(!worst.common.is_empty() && worst.common.iter().all(|row| row.lift.is_none()));
    assert!(worst.common.iter().all(|row| row.others.0 == 0 && row.ill == (1, 1)), "{worst:?}");
    let text = report::fleet(&fleet, false, Style::default());
    assert!(text.contains("1 of 1 here, 0 of 2 elsewhere") && !text.contains("lift"), "{text}");
}

#[test]
fn the_order_of_hosts_does_not_change_a_fleet() {
    let fleet = fleet(2, 3);
    let mut hosts = fleet.hosts.clone();
    hosts.reverse();
    assert_eq!(Fleet::new(hosts, fleet.unread.clone()), fleet);
}

#[test]
fn table_json_and_page_have_all_hosts_and_escape_outside_text() {
    let mut fleet = fleet(2, 2);
    fleet.hosts[0].name = "<script>alert(1)</script>\x1b[2J".to_owned();
    let page = report::fleet_html(&fleet);
    assert!(!page.contains("<script") && !page.contains('\x1b'), "{page}");
    assert!(page.contains("&lt;script&gt;") && page.contains("&lt;b&gt;broken: damaged &amp; cut"));
    assert!(page.contains("default-src 'none'") && !page.contains("http://"), "{page}");
    fleet.hosts[1].trouble = Some("profile.pb: cut short".to_owned());
    let text = report::fleet(&fleet, true, Style::default());
    assert!(text.contains("Read in part: ill-1: profile.pb: cut short"), "{text}");
    assert!(!text.contains('\x1b') && text.contains("Not read: <b>broken"), "{text}");
    let json = report::fleet_json(&fleet);
    assert_eq!(json["hosts"].as_array().map(Vec::len), Some(4));
    assert_eq!(json["unread"][0]["reason"], "damaged & cut");
    assert_eq!(json["groups"][0]["id"], "encryption-ccm");
}

#[test]
fn only_captures_have_the_beginning_of_a_capture() {
    let directory = tempfile::tempdir().expect("a directory");
    let write = |name: &str, content: &[u8]| {
        let path = directory.path().join(name);
        std::fs::File::create(&path).and_then(|mut file| file.write_all(content)).expect("written");
        path
    };
    let pack = |first: &str| {
        let mut writer = BundleWriter::new(Vec::new(), 1).expect("a writer");
        writer.add(first, b"{}\n").expect("added");
        writer.add("uname.txt", &b"Linux a 6.1.0\n".repeat(10_000)).expect("added");
        writer.finish().expect("finished")
    };
    let capture = pack("manifest.json");
    assert!(is_capture(&write("a.ogive", &capture)));
    assert!(!is_capture(&write("b.tar.zst", &pack("other.json"))));
    assert!(!is_capture(&write("c.ogive", b"manifest.json\0 but no archive")));
    assert!(!is_capture(&write("d.ogive", &capture[..10])));
    assert!(!is_capture(&write("e.ogive", b"")));
    assert!(!is_capture(directory.path()));
    assert!(!is_capture(&directory.path().join("none")));
}
