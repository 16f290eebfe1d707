//! Any tool of a system reveals that system, and excludes causes that the system cannot have.

use ogive_doctor::evidence::Evidence;
use ogive_doctor::facts::Facts;
use ogive_doctor::read::{finish, read_bytes};

fn os(files: &[(&str, &str)]) -> Option<String> {
    let mut evidence = Evidence::default();
    for (name, text) in files {
        read_bytes(&mut evidence, name, text.as_bytes());
    }
    finish(&mut evidence);
    Facts::new(evidence).os().ok()
}

const FREEBSD_TOP: &str = "\
last pid: 12345;  load averages:  4.00,  2.00,  3.00    up 3+01:02:03  12:00:00
CPU:  1.0% user,  0.0% nice, 60.0% system,  0.0% interrupt, 39.0% idle
Mem: 100M Active, 2G Inact, 20G Wired, 1G Free
";
const LINUX_TOP: &str = "\
top - 12:00:00 up 3 days,  1:02,  2 users,  load average: 4.00, 2.00, 3.00
%Cpu(s):  1.0 us, 60.0 sy,  0.0 ni, 39.0 id,  0.0 wa,  0.0 hi,  0.0 si,  0.0 st
";

#[test]
fn any_tool_reveals_the_system_and_uname_has_priority() {
    assert_eq!(os(&[("a.txt", FREEBSD_TOP)]).as_deref(), Some("freebsd"));
    assert_eq!(os(&[("a.txt", LINUX_TOP)]).as_deref(), Some("linux"));
    assert_eq!(os(&[("a", "zfs:0:arcstats:size\t4294967296\n")]).as_deref(), Some("illumos"));
    let uname = "Linux host 5.15.0-91-generic #101 SMP x86_64 GNU/Linux\n";
    assert_eq!(os(&[("a", FREEBSD_TOP), ("uname.txt", uname)]).as_deref(), Some("linux"));
}

#[test]
fn tools_of_two_systems_reveal_no_system() {
    assert_eq!(os(&[("a.txt", FREEBSD_TOP), ("b.txt", LINUX_TOP)]), None);
    assert_eq!(os(&[("a.txt", "arc_prune is at 100%, what is it?\n")]), None);
}
