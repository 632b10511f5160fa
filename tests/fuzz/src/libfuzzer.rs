//! One program for all targets under libFuzzer; `KODE_FUZZ_TARGET` says which.
//!
//! Rule: nothing is decided here. libFuzzer has the `main`; a panic ends the program, so that it keeps the bytes.
#![no_main]

use std::sync::LazyLock;
use std::{env, panic, process, slice};

#[link(name = "fuzzer", kind = "static")]
#[link(name = "stdc++")]
unsafe extern "C" {}

static TARGET: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let wanted = env::var("KODE_FUZZ_TARGET").unwrap_or_default();
    let found = kode_fuzz::TARGETS.iter().find(|(name, _)| *name == wanted);
    found.map(|(_, run)| *run).unwrap_or_else(|| panic!("KODE_FUZZ_TARGET names no target: {wanted:?}"))
});

/// Called once, before anything else.
#[unsafe(no_mangle)]
pub extern "C" fn LLVMFuzzerInitialize(_count: *mut i32, _arguments: *mut *mut *mut u8) -> i32 {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        report(panic);
        process::abort();
    }));
    0
}

/// Called with each input.
///
/// # Safety
/// libFuzzer gives `size` bytes at `data`, without another writer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LLVMFuzzerTestOneInput(data: *const u8, size: usize) -> i32 {
    // SAFETY: as above; there need be nothing at `data` when `size` is 0.
    let bytes = if size == 0 { &[] } else { unsafe { slice::from_raw_parts(data, size) } };
    TARGET(bytes);
    0
}
