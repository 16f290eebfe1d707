//! The wear of the SSD under a second level, as the SSD reports it.
//!
//! smartctl(8) reads it, if it is installed. It supports NVMe, SATA, the bridges between them (USB,
//! RAID controllers), and the quirks of each maker. An ioctl of our own would be unsafe code for
//! NVMe alone, and would need root as well.
//!
//! For SATA, only standard figures count (ACS device statistics), because each maker gives SMART
//! attributes its own meaning. The disk of a file is found in /sys. A file system without a single
//! disk (overlayfs, btrfs, NFS) and a virtual disk have no such figures, and the report says so.

use std::io::Read as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use ogive_text::Bytes;
use serde_json::{Value, json};

/// How long to wait for a disk's answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of an answer of smartctl at most.
const ANSWER_BYTES_MAX: u64 = 4 << 20;
/// Nested volumes at most.
const DEPTH_MAX: usize = 8;
/// Disks at most.
const DISKS_MAX: usize = 16;
/// The unit of NVMe write counts, in bytes.
const NVME_UNIT_BYTES: u64 = 512_000;

/// The report of a disk about itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Wear {
    model: Option<String>,
    /// Percent of the endurance that the maker guarantees; may exceed 100.
    percentage_used: Option<u64>,
    temperature_celsius: Option<i64>,
    media_errors: Option<u64>,
    /// Bytes written over the life of the disk, by all programs.
    written_bytes: Option<u64>,
    passed: Option<bool>,
}

/// A disk below a second level, with its report or the reason why there is none.
#[derive(Debug)]
pub(super) struct Disk {
    path: PathBuf,
    wear: Result<Wear, String>,
}

/// The reports of the disks that a path is on, or the reason why there is no disk.
pub(super) fn look(path: &Path) -> Result<Vec<Disk>, String> {
    let disks = disks_of(path, Path::new("/sys"))?;
    Ok(disks.into_iter().map(|path| Disk { wear: ask(&path), path }).collect())
}

/// The disks that a file or block device is on.
fn disks_of(path: &Path, sys: &Path) -> Result<Vec<PathBuf>, String> {
    let metadata = std::fs::metadata(path).map_err(|error| error.to_string())?;
    let is_block = metadata.file_type().is_block_device();
    let number = if is_block { metadata.rdev() } else { metadata.dev() };
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    let mut found = Vec::new();
    below(&sys.join(format!("dev/block/{major}:{minor}")), 0, &mut found);
    if found.is_empty() {
        return Err("it is not on a single disk of this machine".to_owned());
    }
    Ok(found)
}

/// Adds the disks below a block device, going down through partitions and volumes.
fn below(device: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    let Ok(place) = device.canonicalize() else { return };
    if depth > DEPTH_MAX || found.len() >= DISKS_MAX {
        return;
    }
    if place.join("partition").exists() {
        return place.parent().into_iter().for_each(|disk| below(disk, depth + 1, found));
    }
    let slaves = std::fs::read_dir(place.join("slaves")).into_iter().flatten().flatten();
    let slaves: Vec<_> = slaves.map(|slave| slave.path()).collect();
    if !slaves.is_empty() {
        return slaves.iter().for_each(|slave| below(slave, depth + 1, found));
    }
    if let Some(name) = place.file_name() {
        // In /sys a slash in a name is an exclamation mark.
        let disk = Path::new("/dev").join(name.to_string_lossy().replace('!', "/"));
        if !found.contains(&disk) {
            found.push(disk);
        }
    }
}

/// Reads a disk's report through smartctl.
fn ask(disk: &Path) -> Result<Wear, String> {
    let started = Command::new("smartctl")
        .args(["--json=c", "--xall"])
        .arg(disk)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut asking = match started {
        Ok(asking) => asking,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err("install smartmontools to see its wear and temperature here".to_owned());
        }
        Err(error) => return Err(format!("cannot run smartctl: {error}")),
    };
    let (send, receive) = mpsc::channel();
    if let Some(answer) = asking.stdout.take() {
        std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = answer.take(ANSWER_BYTES_MAX).read_to_end(&mut text);
            // The caller may have given up.
            let _ = send.send(text);
        });
    }
    let answer = receive.recv_timeout(PATIENCE);
    if answer.is_err() {
        let _ = asking.kill();
    }
    let _ = asking.wait();
    let answer = answer.map_err(|_| "it does not answer smartctl".to_owned())?;
    read(&answer)
}

/// Reads what smartctl printed.
fn read(answer: &[u8]) -> Result<Wear, String> {
    let report: Value =
        serde_json::from_slice(answer).map_err(|_| "smartctl printed no JSON".to_owned())?;
    let number = |place: &str| report.pointer(place).and_then(Value::as_u64);
    let nvme = |name: &str| number(&format!("/nvme_smart_health_information_log/{name}"));
    let sectors = statistic(&report, 1, 24);
    let sector_bytes = number("/logical_block_size");
    let wear = Wear {
        model: report.get("model_name").and_then(Value::as_str).map(str::to_owned),
        percentage_used: nvme("percentage_used")
            .or(statistic(&report, 7, 8))
            .or(number("/endurance_used/current_percent")),
        temperature_celsius: report.pointer("/temperature/current").and_then(Value::as_i64),
        media_errors: nvme("media_errors").or(statistic(&report, 4, 8)),
        written_bytes: nvme("data_units_written")
            .map(|units| units.saturating_mul(NVME_UNIT_BYTES))
            .or(sectors.zip(sector_bytes).map(|(count, size)| count.saturating_mul(size))),
        passed: report.pointer("/smart_status/passed").and_then(Value::as_bool),
    };
    if wear != (Wear { model: wear.model.clone(), ..Wear::default() }) {
        return Ok(wear);
    }
    let message = report.pointer("/smartctl/messages/0/string").and_then(Value::as_str);
    let message = message.unwrap_or("it does not report its wear to smartctl");
    let needs_root = message.contains("ermission denied");
    Err(if needs_root { format!("{message}; ask as root") } else { message.to_owned() })
}

/// A figure of the device statistics (ACS): page, and offset in it. Only if the disk says it is
/// valid.
fn statistic(report: &Value, page: u64, offset: u64) -> Option<u64> {
    let is = |value: &Value, name: &str, number| value.get(name)?.as_u64().map(|n| n == number);
    let pages = report.pointer("/ata_device_statistics/pages")?.as_array()?;
    let page = pages.iter().find(|it| is(it, "number", page) == Some(true))?;
    let rows = page.get("table")?.as_array()?;
    let row = rows.iter().find(|it| is(it, "offset", offset) == Some(true))?;
    row.pointer("/flags/valid")?.as_bool()?.then_some(())?;
    row.get("value")?.as_u64()
}

/// For people: a row for each disk.
pub(super) fn rows(looked: &Result<Vec<Disk>, String>) -> Vec<(&'static str, String)> {
    let disks = match looked {
        Ok(disks) => disks,
        Err(why) => return vec![("disk", format!("its wear is unknown: {why}"))],
    };
    disks.iter().map(|disk| ("disk", format!("{}: {}", disk.path.display(), disk.line()))).collect()
}

/// For programs.
pub(super) fn json(looked: &Result<Vec<Disk>, String>) -> Value {
    match looked {
        Ok(disks) => disks.iter().map(Disk::json).collect(),
        Err(why) => json!([{ "error": why }]),
    }
}

impl Disk {
    fn line(&self) -> String {
        let wear = match &self.wear {
            Ok(wear) => wear,
            Err(why) => return format!("its wear is unknown: {why}"),
        };
        let mut parts: Vec<String> = wear.model.iter().cloned().collect();
        if wear.passed == Some(false) {
            parts.push("REPORTS THAT IT FAILS".to_owned());
        }
        parts.extend(wear.percentage_used.map(|used| format!("{used}% of its endurance used")));
        parts.extend(wear.written_bytes.map(|bytes| format!("{} written to it", Bytes(bytes))));
        parts.extend(wear.media_errors.map(|count| format!("{count} media errors")));
        parts.extend(wear.temperature_celsius.map(|celsius| format!("{celsius} °C")));
        parts.join(", ")
    }

    fn json(&self) -> Value {
        match &self.wear {
            Ok(wear) => json!({
                "path": self.path.to_string_lossy(),
                "model": wear.model,
                "percentage_used": wear.percentage_used,
                "written_bytes": wear.written_bytes,
                "media_errors": wear.media_errors,
                "temperature_celsius": wear.temperature_celsius,
                "passed": wear.passed,
            }),
            Err(why) => json!({ "path": self.path.to_string_lossy(), "error": why }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn an_nvme_disk_reports_its_wear() {
        let wear = read(include_bytes!("samples/nvme.json")).unwrap();
        let disk = Disk { path: "/dev/nvme0n1".into(), wear: Ok(wear) };
        assert_eq!(
            disk.line(),
            "CT250P2SSD8, 3% of its endurance used, 478.2 GiB written to it, 2 media errors, 26 °C"
        );
        let report = disk.json();
        assert_eq!(report["written_bytes"], 1_002_900_u64 * 512_000);
        assert_eq!(report["percentage_used"], 3);
    }

    #[test]
    fn a_sata_disk_reports_the_figures_of_the_standard() {
        // Attribute 241 is not used, because its unit differs between makers.
        let wear = read(include_bytes!("samples/sata.json")).unwrap();
        assert_eq!(wear.written_bytes, Some(8_486_453_248 * 512));
        assert_eq!((wear.percentage_used, wear.media_errors), (Some(1), Some(0)));
        assert_eq!((wear.temperature_celsius, wear.passed), (Some(47), Some(true)));
    }

    #[test]
    fn unknown_wear_is_reported_with_the_way_to_get_it() {
        let why = read(include_bytes!("samples/refused.json")).unwrap_err();
        assert!(why.contains("Permission denied; ask as root"), "{why}");
        let disk = Disk { path: "/dev/x".into(), wear: Err(why) };
        assert!(disk.line().starts_with("its wear is unknown"));
        for nothing in [&b""[..], b"[]", b"{}", b"{\"nvme_smart_health_information_log\": 7}"] {
            assert!(read(nothing).is_err());
        }
        let failing = Wear { passed: Some(false), ..Wear::default() };
        let disk = Disk { path: "/dev/x".into(), wear: Ok(failing) };
        assert_eq!(disk.line(), "REPORTS THAT IT FAILS");
    }

    #[test]
    fn disks_are_found_below_partitions_and_volumes() {
        let sys = tempfile::tempdir().unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        let number = fs::metadata(file.path()).unwrap().dev();
        let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
        assert!(disks_of(file.path(), sys.path()).unwrap_err().contains("a single disk"));
        // A volume of a partition of one disk and of another disk.
        let make = |path: &str| {
            let path = sys.path().join("devices").join(path);
            fs::create_dir_all(&path).unwrap();
            path
        };
        let (volume, part) = (make("virtual/block/dm-0/slaves"), make("pci/nvme0n1/nvme0n1p2"));
        fs::write(part.join("partition"), "2\n").unwrap();
        make("pci/nvme0n1/slaves");
        std::os::unix::fs::symlink(part, volume.join("nvme0n1p2")).unwrap();
        std::os::unix::fs::symlink(make("pci/cciss!c0d0"), volume.join("other")).unwrap();
        fs::create_dir_all(sys.path().join("dev/block")).unwrap();
        let link = sys.path().join(format!("dev/block/{major}:{minor}"));
        std::os::unix::fs::symlink(volume.parent().unwrap(), link).unwrap();
        let mut disks = disks_of(file.path(), sys.path()).unwrap();
        disks.sort();
        assert_eq!(disks, [Path::new("/dev/cciss/c0d0"), Path::new("/dev/nvme0n1")]);
    }
}
