//! Any bytes as a program with unwind tables, with a stack and registers.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&[u8], Vec<u64>, Vec<u64>, bool)| {
    let (file, stack, registers, aarch64) = input;
    let stack: Vec<u8> = stack.iter().flat_map(|word| word.to_le_bytes()).collect();
    ogive_profile::unwind_hostile(file, &stack, &registers, aarch64);
});
