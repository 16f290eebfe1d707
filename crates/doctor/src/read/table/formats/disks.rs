//! Load of disks and of file servers.

use crate::read::table::{Boot, FORMAT, Format, Heading, To, Unit, column, gauge};

/// Names of the device column, in all languages.
const DEVICE: &str = concat!(
    "Device|Device:|device|Gerät|Gerät:|Périphérique|Périphérique:|Dispositivo|Dispositivo:",
    "|Urządzenie|Urządzenie:|Устройство|Устройство:|Zařízení|Zařízení:",
);
const DEVICES: &str = concat!(
    "r/s tps rrqm/s r/i w/s d/s f/s %util & Device Device: device Gerät Gerät: Périphérique Périphérique: Dispositivo Dispositivo: ",
    "Urządzenie Urządzenie: Устройство Устройство: Zařízení Zařízení:",
);

/// `iostat` of Linux, FreeBSD and illumos: one row per device, and the CPUs.
pub(crate) static IOSTAT: [Format; 2] = [
    Format {
        name: "iostat",
        heading: Heading::of("avg-cpu: %idle", ""),
        clocked: true,
        boot: Boot::First,
        columns: &[column(
            "%user|%nice|%system|%sys|%iowait|%steal|%idle",
            To::Used,
            Unit::Percent,
        )],
        silent: &["Linux ", "extended device statistics"],
        above: &["avg-cpu: "],
        ..FORMAT
    },
    Format {
        name: "iostat",
        heading: Heading::of("", DEVICES),
        tables: &["iostat"],
        columns: &[
            column(DEVICE, To::Scope, Unit::Word),
            column("tps|await|svctm|r_await|w_await|aqu-sz|avgqu-sz", To::Own, Unit::Number),
        ],
        ..FORMAT
    },
];

/// FreeBSD's `gstat`: its figures get the names that iostat uses.
pub(crate) static GSTAT: [Format; 1] = [Format {
    name: "gstat",
    heading: Heading::of("L(q) ops/s Name", ""),
    tables: &["iostat"],
    columns: &[
        column("Name", To::Scope, Unit::Word),
        gauge("L(q)", "queue", Unit::Number),
        gauge("ms/r", "r_await", Unit::Number),
        gauge("ms/w", "w_await", Unit::Number),
        gauge("%busy", "util_percent", Unit::Number),
        column("kBps", To::Nothing, Unit::Number),
    ],
    above: &["dT: "],
    ..FORMAT
}];

/// `cifsiostat`: one row per share of an SMB server.
pub(crate) static CIFSIOSTAT: [Format; 1] = [Format {
    name: "cifsiostat",
    heading: Heading::of("Filesystem: fo/s fc/s fd/s", ""),
    tables: &["cifsiostat"],
    columns: &[column("Filesystem:", To::Scope, Unit::Word)],
    silent: &["Linux "],
    ..FORMAT
}];

/// Swap devices: `/proc/swaps` counts KiB, `swapon` prints a unit.
pub(crate) static SWAP: [Format; 2] = [
    Format {
        name: "swap",
        heading: Heading::of("Filename Type Size Used", ""),
        tables: &["swap"],
        columns: &[
            column("Filename", To::Scope, Unit::Word),
            gauge("Size", "size_bytes", Unit::BytesOf(1024)),
            gauge("Used", "used_bytes", Unit::BytesOf(1024)),
            column("Type|Priority", To::Nothing, Unit::Word),
        ],
        ..FORMAT
    },
    Format {
        name: "swap",
        heading: Heading::of("NAME TYPE SIZE USED PRIO", ""),
        tables: &["swap"],
        columns: &[
            column("NAME", To::Scope, Unit::Word),
            gauge("SIZE", "size_bytes", Unit::Bytes),
            gauge("USED", "used_bytes", Unit::Bytes),
            column("TYPE|PRIO", To::Nothing, Unit::Word),
        ],
        ..FORMAT
    },
];
