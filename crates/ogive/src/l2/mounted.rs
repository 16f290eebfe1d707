//! `ogive l2 add`, `remove` and `status` of a mount, through its control file `l2`.
//!
//! The daemon opens the device with its own options. A write to the control file returns only an
//! errno, so this module reads the reason from the file afterwards.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use ogive_text::Bytes;
use serde_json::Value;

use super::report::{print_table, write_stdout};
use super::wear;
use crate::exit::{self, Refusal};

/// A change to the devices of a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Add { size_bytes: Option<u64> },
    Remove,
}

fn control(mount_point: &Path) -> PathBuf {
    mount_point.join(".ogive/l2")
}

/// The text of the control file; an error message if no ogive mount is there.
fn status_of(mount_point: &Path) -> Result<Value> {
    let path = control(mount_point);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let reason = format!("no ogive mount is at {}", mount_point.display());
            return Err(Refusal::new(exit::MOUNT_POINT, reason)
                .hint("\"findmnt --types fuse.ogive\" lists them")
                .into());
        }
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    serde_json::from_str(&text).with_context(|| format!("cannot read {}", path.display()))
}

/// Whether a path is that of a mount, and not of a device.
pub(super) fn is_mount(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|it| it.is_dir())
}

/// `ogive l2 add` and `ogive l2 remove`.
pub(super) fn change(mount_point: &Path, device: &Path, change: Change) -> Result<()> {
    if !is_mount(mount_point) {
        let reason =
            format!("{} is not a directory, so nothing is mounted there", mount_point.display());
        return Err(Refusal::new(exit::MOUNT_POINT, reason)
            .hint("the mount comes first, then the device")
            .into());
    }
    if status_of(mount_point)?.get("devices").is_none() {
        let reason = format!("the mount at {} was started without --l2", mount_point.display());
        return Err(Refusal::new(exit::FAILURE, reason)
            .hint("unmount, and mount with --l2")
            .into());
    }
    let device =
        std::path::absolute(device).context("cannot find the absolute path of the device")?;
    let bytes = device.as_os_str().as_encoded_bytes();
    if bytes.contains(&b'\n') {
        let reason = "a mount cannot take a path with a line break";
        return Err(Refusal::new(exit::USAGE, reason).into());
    }
    let (word, more) = match change {
        Change::Add { size_bytes: Some(size) } => ("add", format!("\nsize_bytes {size}")),
        Change::Add { size_bytes: None } => ("add", String::new()),
        Change::Remove => ("remove", String::new()),
    };
    let mut request = format!("{word} ").into_bytes();
    request.extend_from_slice(bytes);
    let line = String::from_utf8_lossy(&request).into_owned();
    request.extend_from_slice(more.as_bytes());
    request.push(b'\n');
    let path = control(mount_point);
    let cannot = || format!("cannot ask the mount at {}", mount_point.display());
    let mut file = File::options().write(true).open(&path).with_context(cannot)?;
    // Each write is a request, so the line must go in one write; it is short enough.
    match file.write_all(&request) {
        Ok(()) => Ok(()),
        Err(error) => {
            let last = status_of(mount_point)?;
            let words = last.pointer("/last_request/error").and_then(Value::as_str);
            let is_ours =
                last.pointer("/last_request/request").and_then(Value::as_str) == Some(&line);
            match words.filter(|_| is_ours) {
                Some(words) => Err(Refusal::new(exit::FAILURE, words).into()),
                None if error.kind() == std::io::ErrorKind::ResourceBusy => {
                    let reason = "another device is being added or removed";
                    Err(Refusal::new(exit::BUSY, reason).hint("try again when that is done").into())
                }
                None => Err(error).with_context(cannot),
            }
        }
    }
}

/// `ogive l2 status MNT`.
pub(super) fn status(mount_point: &Path, json: bool) -> Result<()> {
    let mut status = status_of(mount_point)?;
    let mut disks = Vec::new();
    for device in status.get_mut("devices").and_then(Value::as_array_mut).into_iter().flatten() {
        let path = device.get("path").and_then(Value::as_str).map(PathBuf::from);
        let looked =
            path.map_or_else(|| Err("its path is unknown".to_owned()), |path| wear::look(&path));
        if let Some(members) = device.as_object_mut() {
            members.insert("disks".to_owned(), wear::json(&looked));
        }
        disks.push(wear::rows(&looked));
    }
    if json {
        return write_stdout(&format!("{status:#}\n"));
    }
    let devices = status.get("devices").and_then(Value::as_array).cloned().unwrap_or_default();
    if devices.is_empty() {
        return write_stdout("no device of a second level is in use\n");
    }
    for (device, disks) in devices.iter().zip(disks) {
        print_table(&[rows(device), disks].concat())?;
        write_stdout("\n")?;
    }
    let padding = status.get("padding").and_then(Value::as_str).unwrap_or("?");
    let added = status.get("padding_bytes").and_then(Value::as_u64).unwrap_or(0);
    let added = format!("{padding}, {} added since the mount began", Bytes(added));
    print_table(&[("padding", added)])
}

fn rows(device: &Value) -> Vec<(&'static str, String)> {
    let text = |name: &str| device.get(name).and_then(Value::as_str).unwrap_or("?").to_owned();
    let number = |name: &str| device.get(name).and_then(Value::as_u64).unwrap_or(0);
    let is = |name: &str| device.get(name).and_then(Value::as_bool).unwrap_or(false);
    let standing = match (is("recovered"), is("bypassed")) {
        (_, true) => "paused for a while, because it failed or was slow",
        (false, _) => "being read; records that are not indexed yet are misses",
        (true, _) => "in use",
    };
    vec![
        ("path", text("path")),
        ("device", text("device")),
        ("sealed", text("cipher")),
        ("engine", text("engine")),
        ("room", Bytes(number("room_bytes")).to_string()),
        ("used", format!("{} of {} segments", number("segments_used"), number("segments"))),
        (
            "records",
            format!(
                "{}: {}, {} on the device",
                number("records"),
                Bytes(number("plain_bytes")),
                Bytes(number("stored_bytes"))
            ),
        ),
        ("standing", standing.to_owned()),
    ]
}
