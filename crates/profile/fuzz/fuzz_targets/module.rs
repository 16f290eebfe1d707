//! Any bytes as a kernel module and as kallsyms.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ogive_profile::symbols::{Kallsyms, ModuleFile};

fuzz_target!(|data: &[u8]| {
    let table = Kallsyms::parse(data);
    let _ = table.find(0xffff_ffff_8100_0000);
    if let Ok(module) = ModuleFile::parse(data) {
        let _ = module.find(16);
    }
});
