//! Names of events as perf writes them: `cycles:ppp`, `cpu_core/cycles/P`, `sched:sched_switch`.

/// An event's name without the kind of core in front (`cpu_atom/`) and the modifiers behind (`:u`).
pub(crate) fn event_base(name: &str) -> &str {
    if let Some((unit, rest)) = name.split_once('/')
        && let Some((event, _)) = rest.rsplit_once('/')
        && !event.is_empty()
        && unit.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    {
        return event;
    }
    let is_modifier = |byte: u8| b"ukhHGpPSDIWebR".contains(&byte);
    match name.rsplit_once(':') {
        Some((event, modifiers)) if modifiers.bytes().all(is_modifier) => event,
        _ => name,
    }
}

/// `3 samples (1.5% of all) of the event cycles`.
pub(crate) fn samples_of_event(samples: u64, all: u64, event: &str) -> String {
    format!("{} of the event {event}", samples_of(samples, all))
}

/// `3 samples (1.5% of all)`.
pub(crate) fn samples_of(samples: u64, all: u64) -> String {
    let percent = samples as f64 * 100.0 / all.max(1) as f64;
    let what = if samples == 1 { "sample" } else { "samples" };
    format!("{samples} {what} ({percent:.1}% of all)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_base_name_leaves_out_core_and_mode() {
        for (name, base) in [
            ("cycles", "cycles"),
            ("cycles:uppp", "cycles"),
            ("cpu_core/cycles/", "cycles"),
            ("cpu_atom/cycles/Pu", "cycles"),
            ("armv8_cortex_a53/event=0x11/", "event=0x11"),
            ("sched:sched_switch", "sched:sched_switch"),
            ("syscalls:sys_enter_read:u", "syscalls:sys_enter_read"),
            ("mem:0x1000:rw", "mem:0x1000:rw"),
            ("//", "//"),
            ("", ""),
        ] {
            assert_eq!(event_base(name), base, "{name}");
        }
    }
}
