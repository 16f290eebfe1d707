//! Gives up root's privilege to exceed quotas and use reserved blocks.
//!
//! Every write through the mount is made by a thread of this process. With `CAP_SYS_RESOURCE` no
//! user's quota would hold. Any user could fill the last blocks of a file system, which are kept
//! for root to repair it. So the threads that serve a mount drop the capability. It stays permitted
//! to the process: on some kernels pressure events need it, and another thread waits for those.

use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

/// This thread lacks the capability until this is dropped; threads that it starts meanwhile lack it
/// for good.
pub(super) struct WithoutReserve(Option<CapabilitySets>);

impl WithoutReserve {
    pub(super) fn begin() -> Self {
        let before = capabilities(None).ok();
        let before = before.filter(|own| own.effective.contains(CapabilitySet::SYS_RESOURCE));
        let given_up = before.filter(|own| {
            let effective = own.effective - CapabilitySet::SYS_RESOURCE;
            set_capabilities(None, CapabilitySets { effective, ..*own }).is_ok()
        });
        Self(given_up)
    }
}

impl Drop for WithoutReserve {
    fn drop(&mut self) {
        if let Some(before) = self.0 {
            // A permitted capability can be raised again; without it only pressure events may be
            // missing.
            if let Err(errno) = set_capabilities(None, before) {
                log::warn!("cannot raise a capability again: {errno}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has_reserve() -> bool {
        capabilities(None).unwrap().effective.contains(CapabilitySet::SYS_RESOURCE)
    }

    #[test]
    fn serving_threads_give_up_the_reserve_and_others_keep_it() {
        let before = has_reserve();
        let without = WithoutReserve::begin();
        assert!(!has_reserve());
        let (started, resume) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let _ = resume.recv();
            has_reserve()
        });
        drop(without);
        assert_eq!(has_reserve(), before);
        drop(started);
        assert!(!thread.join().unwrap(), "one that was started meanwhile");
    }
}
