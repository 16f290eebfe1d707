//! Times set through the mount arrive in the source, and times set behind the mount are shown.

use std::path::Path;

use anyhow::{Result, ensure};
use rustix::fs::{
    AtFlags, CWD, StatxFlags, StatxTimestamp, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, statx,
    utimensat,
};

use super::{Promise, Round};

/// The promises of this module.
pub const PROMISES: &[Promise] = &[Promise {
    name: "times-as-they-are-set",
    says: "times of any age keep their fractions, set through the mount or behind it, alone or both",
    round: times_as_they_are_set,
    rounds_percent: 30,
}];

/// Seconds at the limits: the ends of 32 bits, signed and unsigned, and of ext4 (2446), and
/// beyond. Also the landing on the moon, 1900, and the ends of 64 bits.
const SECONDS: [i64; 19] = [
    i64::MIN,
    -62_135_596_801,
    -2_208_988_800,
    -2_147_483_649,
    -2_147_483_648,
    -14_182_940,
    -2,
    -1,
    0,
    1,
    2_147_483_647,
    2_147_483_648,
    4_294_967_295,
    4_294_967_296,
    15_032_385_535,
    15_032_385_536,
    253_402_300_800,
    1 << 40,
    i64::MAX,
];
const FRACTIONS: [i64; 5] = [0, 1, 400_000_000, 500_000_000, 999_999_999];

type Times = [(i64, u32); 2];

fn times_as_they_are_set(round: &mut Round) -> Result<()> {
    std::fs::write(round.source.join("file"), "bytes")?;
    std::fs::create_dir(round.source.join("directory"))?;
    std::os::unix::fs::symlink("nowhere", round.source.join("link"))?;
    std::fs::write(round.source.join("twin"), "bytes")?;
    std::fs::create_dir(round.source.join("directory-twin"))?;
    std::os::unix::fs::symlink("nowhere", round.source.join("link-twin"))?;
    for (name, twin) in [("file", "twin"), ("directory", "directory-twin"), ("link", "link-twin")] {
        let ((mount, source), (_, twin)) = (round.paths(name), round.paths(twin));
        for seconds in SECONDS {
            let nanoseconds = FRACTIONS[round.random.usize(0..FRACTIONS.len())];
            let time = Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
            let other = Timespec { tv_sec: round.random.i64(-5..5), tv_nsec: 999_999_999 };
            let pair = if round.random.bool() { [time, other] } else { [other, time] };
            let when = format!("{name}, {pair:?}");
            set(&twin, pair)?;
            set(&mount, pair)?;
            let expected = times(&twin)?;
            same(&source, expected, &format!("{when}, source"))?;
            same(&mount, expected, &format!("{when}, mount"))?;
            alone(round, (&mount, &source), &when)?;
        }
    }
    for (number, seconds) in SECONDS.into_iter().enumerate() {
        // Set behind the mount, on a file that is new to it.
        let (mount, source) = round.paths(&number.to_string());
        std::fs::write(&source, "bytes")?;
        let nanoseconds = FRACTIONS[round.random.usize(0..FRACTIONS.len())];
        let time = Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
        set(&source, [time, time])?;
        same(&mount, times(&source)?, &format!("{time:?}, set behind the mount"))?;
    }
    Ok(())
}

/// Sets one of the two times to now, and leaves the other; or the other way round.
fn alone(round: &mut Round, (mount, source): (&Path, &Path), when: &str) -> Result<()> {
    let special = |nanoseconds| Timespec { tv_sec: 0, tv_nsec: nanoseconds };
    let (now, omit) = (special(UTIME_NOW), special(UTIME_OMIT));
    let before = times(source)?;
    let of_first = round.random.bool();
    set(mount, if of_first { [now, omit] } else { [omit, now] })?;
    let (changed, kept) = if of_first { (0, 1) } else { (1, 0) };
    let after = times(source)?;
    ensure!(after[kept] == before[kept], "{when}: the time that was left out is {:?}", after[kept]);
    // No machine that runs this has a clock at that time.
    let is_now = after[changed] != before[changed] && after[changed].0 > 1_500_000_000;
    ensure!(is_now, "{when}: now is {:?}", after[changed]);
    same(mount, after, &format!("{when}, one of them now"))
}

fn set(path: &Path, [last_access, last_modification]: [Timespec; 2]) -> Result<()> {
    let times = Timestamps { last_access, last_modification };
    Ok(utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}

fn times(path: &Path) -> Result<Times> {
    let mask = StatxFlags::ATIME | StatxFlags::MTIME;
    let statx = statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, mask)?;
    let time = |time: StatxTimestamp| (time.tv_sec, time.tv_nsec);
    Ok([time(statx.stx_atime), time(statx.stx_mtime)])
}

fn same(path: &Path, expected: Times, when: &str) -> Result<()> {
    let got = times(path)?;
    ensure!(got == expected, "{when}: {got:?} instead of {expected:?}");
    Ok(())
}
