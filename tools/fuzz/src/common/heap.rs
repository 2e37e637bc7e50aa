//! How much memory a thread holds: an allocator that counts, and refuses what is beyond a limit.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static LIVE: Cell<i64> = const { Cell::new(0) };
    static PEAK: Cell<i64> = const { Cell::new(0) };
    static LIMIT: Cell<i64> = const { Cell::new(i64::MAX) };
}

/// The system's allocator, with the bytes of each thread counted.
pub struct Counting;

fn count(bytes: i64) {
    // A thread that ends has none of these any more.
    let _ = LIVE.try_with(|live| {
        let now = live.get() + bytes;
        live.set(now);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(now)));
        let limit = LIMIT.try_with(Cell::get).unwrap_or(i64::MAX);
        if now > limit {
            // What says so allocates, too.
            let _ = LIMIT.try_with(|limit| limit.set(i64::MAX));
            eprintln!("{bytes} bytes more are {now} bytes, wanted at most {limit}");
            std::process::abort();
        }
    });
}

// SAFETY: every call goes to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as i64 - layout.size() as i64);
        // SAFETY: as the caller promises.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Runs `work`, which this thread may have hold at most `limit` bytes more; gives how many it held at most. Without
/// the allocator of this module that is 0.
pub fn bounded<T>(limit: u64, work: impl FnOnce() -> T) -> (T, u64) {
    let before = LIVE.get();
    PEAK.set(before);
    LIMIT.set(before.saturating_add(i64::try_from(limit).unwrap_or(i64::MAX)));
    let done = work();
    LIMIT.set(i64::MAX);
    (done, (PEAK.get() - before).max(0) as u64)
}
