//! Tests that plant difficult names everywhere in a capture, in each spelling. Redaction must leave
//! none of them in file names, contents or the manifest.

use std::fmt::Write as _;

use super::*;

/// Parts of the planted names. A redacted capture must contain none of them.
const PARTS: [&str; 20] = [
    "Quarterly",
    "Numbers",
    "mergers",
    "Acme",
    "Größe",
    "wren",
    "finch",
    "robin",
    "Ledger",
    "Heron",
    "kestrel",
    "Osprey",
    "plover",
    "q9",
    "zz",
    "Magpie",
    "Snap",
    "siskin",
    "bunting",
    "Harrier",
];

const POOL: &str = "Ledger tank";
const ENDS_OPEN: &str = "kestrel-";
const DATA_SETS: [&str; 4] =
    ["Ledger tank/Quarterly Numbers/mergers", "Ledger tank/Größe", "kestrel-/Acme.", "zz/Heron:"];
const MOUNTS: [&str; 4] = ["/mnt/Acme Größe", "/srv/Osprey#\\1", "/data.Heron-", "/q9"];

fn secrets() -> Secrets {
    Secrets {
        hosts: vec!["zz".to_owned(), "robin-".to_owned()],
        users: vec!["wren".to_owned(), "q9".to_owned()],
        mount_points: MOUNTS.map(str::to_owned).into(),
    }
}

/// A name in the spellings of several programs.
fn spelled(name: &str) -> Vec<String> {
    let percent = |is_upper: bool| {
        let letter = |byte: u8| match byte {
            plain if plain.is_ascii_alphanumeric() || b"/-._".contains(&plain) => {
                char::from(plain).to_string()
            }
            other if is_upper => format!("%{other:02X}"),
            other => format!("%{other:02x}"),
        };
        name.bytes().map(letter).collect()
    };
    let units =
        |c: char| c.encode_utf16(&mut [0; 2]).iter().map(|u| format!("\\u{u:04x}")).collect();
    let json = name.replace('\\', "\\\\");
    let ascii = json.chars().map(|c| if c.is_ascii() { c.to_string() } else { units(c) }).collect();
    let octal = name.replace('\\', "\\134").replace(' ', "\\040").replace('#', "\\043");
    vec![name.to_owned(), octal, percent(false), percent(true), json, ascii]
}

/// The output of a program that mentions all names.
fn talk(start: &str, names: &[&str]) -> String {
    let mut text = String::new();
    for name in names.iter().flat_map(|name| spelled(name)) {
        for line in [
            format!("{start}{name}"),
            format!("{start}\"{name}\", 7"),
            format!("{start}cannot open {name}/robin-/Snap Magpie.pdf"),
            format!("{start}<{name}>"),
            format!("{start}x%20{name}"),
        ] {
            let _ = writeln!(text, "{line}");
        }
    }
    text
}

fn bundle() -> Bundle {
    let all: Vec<&str> =
        DATA_SETS.into_iter().chain(MOUNTS).chain([POOL, "robin-", "wren"]).collect();
    let mut get = format!("{:40}  PROPERTY     VALUE  SOURCE\n", "NAME");
    for name in DATA_SETS {
        let _ = writeln!(get, "{name:40}  compression  lz4    local");
    }
    let file = |name: &str, text: String| (name.to_owned(), text.into_bytes());
    let list = "NAME         SIZE  ALLOC\nLedger tank    1T   500G\nkestrel-       2T     1G\nzz  1T  1G\n";
    let objset = |name: &str| {
        format!("31 1 0x01 7 2160 5 6\nname type data\ndataset_name  7  {name}\nreads 4 5\n")
    };
    let kstat = "start/proc/spl/kstat/zfs";
    let files = vec![
        file("commands/zpool-list.txt", list.to_owned()),
        file("commands/zfs-get.txt", get),
        file("commands/uname.txt", "Linux zz 6.1.0 #1 SMP x86_64\n".to_owned()),
        file(
            "commands/zpool-status.txt",
            "  pool: Ledger tank\n state: ONLINE\nconfig:\n\n\tNAME  STATE\n\tLedger tank  ONLINE  0\n\
             \t  /var/Osprey Files/disk Magpie  ONLINE  0 0 0\n\t  sda  ONLINE  0 0 0\n".to_owned(),
        ),
        file(
            "commands/zpool-get.txt",
            "NAME         PROPERTY  VALUE  SOURCE\nLedger tank  comment  call Harrier  local\n\
             Ledger tank  org.Acme:who  bunting  local\nLedger tank  ashift  12  local\n\
             Ledger tank  bootfs  Ledger tank/Größe  local\n".to_owned(),
        ),
        file("commands/dmesg.txt", talk("[ 1.0] ZFS: ", &all)
            + "[ 2.0] INFO: task q9:77 blocked for more than 120 seconds.\n\
               [ 3.0] CPU: 1 PID: 7 Comm: my siskin Not tainted zfs\n\
               [ 4.0] ZFS: see /home/finch/Quarterly Numbers of Acme\n"),
        file(&format!("{kstat}/dbgmsg"), talk("1 spa.c:7: ", &all) + "2 Ledger tank/Snap Magpie@q9 finch\n"),
        file(&format!("{kstat}/{POOL}/objset-0x36"), objset(DATA_SETS[0])),
        file(&format!("{kstat}/{ENDS_OPEN}/objset-0x37"), objset("kestrel-/bunting Nest")),
        file(&format!("{kstat}/{POOL}/reads"),
            "UID start origin level blkid aflags origin pid process\n\
             0 1 0x36 0 0 0 x 77 my siskin\n".to_owned()),
        file("start/thread-stats.txt",
            "77 77 (my siskin) S 1 0 0\n78 78 (q9) S 1 0 0\nHarrier is no line of it\n".to_owned()),
        file("proc/mounts", "zz:/Acme /mnt/Acme\\040Größe nfs4 rw,addr=zz 0 0\n".to_owned()),
        file("start/.ogive/mount",
            "{\"source\": \"s3://acme-Heron/Quarterly Numbers/\", \"mount_point\": \"/mnt/Acme Größe\",\n\
             \"policy\": \"arc\", \"devices\": [\"/srv/Osprey#\\\\1/plover l2\"]}\n".to_owned()),
    ];
    let mentions = talk("", &all);
    let notes = mentions.lines().map(str::to_owned).chain([
        "/mnt/Acme Größe has no control directory; no counters of the mount".to_owned(),
        "cannot ask https://wren:finch@bunting.example/Snap".to_owned(),
    ]);
    Bundle { notes: notes.collect(), files, ..Bundle::default() }
}

/// The packed content, one string per line.
fn packed(bundle: &Bundle) -> Vec<String> {
    let mut all: Vec<String> = bundle.notes.clone();
    for (name, content) in &bundle.files {
        all.push(name.clone());
        all.extend(String::from_utf8_lossy(content).lines().map(|line| format!("{name}: {line}")));
    }
    all
}

#[test]
fn no_part_of_a_planted_name_remains_in_any_spelling() {
    let mut bundle = bundle();
    let open = packed(&bundle);
    for part in PARTS {
        assert!(open.iter().any(|line| line.contains(part)), "the test is blind for {part}");
    }
    redact(&mut bundle, &secrets());
    let mut left = Vec::new();
    for line in packed(&bundle) {
        let found = PARTS.iter().flat_map(|part| spelled(part)).find(|part| line.contains(part));
        left.extend(found.map(|part| format!("{part} in {line}")));
    }
    assert!(left.is_empty(), "{} lines:\n{}", left.len(), left.join("\n"));
    let closed = packed(&bundle).join("\n");
    for kept in ["compression", "lz4", "ashift", "sda", "\"policy\": \"arc\"", "objset-0x36"] {
        assert!(closed.contains(kept), "{kept} is gone");
    }
}
