//! The second level's part of `arcstats` and `ogivestats`.

use super::SecondLevel;
use ogive_l2::{DeviceInUse, Usage};
use std::path::Path;

/// A device's description and contents (JSON).
pub(super) fn device(device: &DeviceInUse, path: Option<&Path>) -> serde_json::Value {
    let usage = &device.usage;
    let name = u128::from_be_bytes(device.device);
    serde_json::json!({
        "path": path.map(|path| path.to_string_lossy()),
        "device": format!("{name:032x}"),
        "cipher": device.cipher.name(),
        "engine": device.engine,
        "room_bytes": device.room_bytes,
        "segments": usage.segments.1,
        "segments_used": usage.segments.0,
        "records": usage.records,
        "plain_bytes": usage.plain_bytes,
        "stored_bytes": usage.stored_bytes,
        "recovered": usage.recovered,
        "bypassed": usage.bypassed,
    })
}

impl SecondLevel {
    /// Sets the rows of `arcstats` that are about the second level.
    pub(crate) fn arcstats(&self, set: &mut impl FnMut(&str, i128)) {
        let usage = self.tier.usage();
        let sum = |of: fn(&Usage) -> u64| i128::from(usage.iter().map(of).sum::<u64>());
        for (name, value) in self.tier.counts().fields() {
            set(name, i128::from(value));
        }
        set("l2_ndev", usage.len() as i128);
        set("l2_size", sum(|usage| usage.plain_bytes));
        set("l2_asize", sum(|usage| usage.stored_bytes));
        set("l2_bufc_data_asize", sum(|usage| usage.stored_bytes));
        set("l2_mfu_asize", sum(|usage| usage.frequent_bytes));
        set("l2_mru_asize", sum(|usage| usage.stored_bytes.saturating_sub(usage.frequent_bytes)));
        set("l2_prefetch_asize", sum(|usage| usage.prefetched_bytes));
        set("l2_hdr_size", sum(|usage| usage.index_bytes));
        let (count, bytes) = (sum(|usage| usage.summaries), sum(|usage| usage.summary_bytes));
        set("l2_log_blk_count", count);
        set("l2_log_blk_asize", bytes);
        set("l2_log_blk_avg_asize", bytes.checked_div(count).unwrap_or(0));
        let ratio = sum(|usage| usage.stored_bytes).checked_div(bytes).unwrap_or(0);
        set("l2_data_to_meta_ratio", ratio);
    }

    /// Records that were refused because the write budget is used up for now.
    pub(crate) fn refused_by_budget(&self) -> u64 {
        self.tier.counts().l2_refused_budget
    }

    /// The second level's own counters. Some of them are rows of `arcstats` as well, which the
    /// caller leaves out.
    pub(crate) fn own(&self, push: &mut impl FnMut(&str, u64)) {
        let usage = self.tier.usage();
        for (name, value) in self.tier.counts().fields() {
            push(name, value);
        }
        push("l2_records", usage.iter().map(|usage| usage.records).sum());
        push("l2_segments", usage.iter().map(|usage| usage.segments.1).sum());
        push("l2_segments_used", usage.iter().map(|usage| usage.segments.0).sum());
        push("l2_queue_bytes", usage.iter().map(|usage| usage.queue_bytes).sum());
        push("l2_recovering", usage.iter().filter(|usage| !usage.recovered).count() as u64);
        push("l2_recovery_ns", usage.iter().map(|usage| usage.recovery_ns).max().unwrap_or(0));
        push("l2_bypassed", usage.iter().filter(|usage| usage.bypassed).count() as u64);
    }
}
