//! AES-256-CCM, which the second level does not have: its CPU time over the records of a read.
//!
//! CCM (NIST SP 800-38C) encrypts and authenticates in series, block after block. So it is bounded
//! by the latency of AES, and sealing costs what opening costs. The benchmark seals, because that
//! needs no bytes that were sealed before.

use aes::Aes256;
use anyhow::{Result, anyhow};
use ccm::aead::{AeadInOut as _, KeyInit as _};
use ccm::consts::{U12, U16};
use rustix::time::{ClockId, clock_gettime};

/// Bytes of a record, as a mount has them by default.
const RECORD_BYTES: usize = 128 << 10;

/// CCM under a public key, because nothing here is secret.
pub(super) struct Ccm {
    cipher: ccm::Ccm<Aes256, U16, U12>,
    spent_ns: u64,
}

impl Ccm {
    pub(super) fn new() -> Self {
        Self { cipher: ccm::Ccm::new(&[7; 32].into()), spent_ns: 0 }
    }

    /// Works on every record of a block.
    pub(super) fn work(&mut self, block: &mut [u8]) -> Result<()> {
        let before = thread_cpu_ns();
        for record in block.chunks_mut(RECORD_BYTES) {
            // One nonce for all, because the sealed bytes are thrown away.
            let sealed = self.cipher.encrypt_inout_detached(&[0; 12].into(), &[], record.into());
            sealed.map_err(|_| anyhow!("a record is too long for CCM"))?;
        }
        self.spent_ns += thread_cpu_ns() - before;
        Ok(())
    }

    /// CPU time of the work so far.
    pub(super) fn spent_ns(&self) -> u64 {
        self.spent_ns
    }
}

fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
